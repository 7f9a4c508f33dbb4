//! How much of the input a box of positions reads.

use super::axis::EngineAxis;
use super::boxes::Boxes;

/// How many input positions a box of `chunk` positions reads at most.
pub(crate) fn input_positions(axes: &[EngineAxis<'_>], chunk: &[usize], reach: &[usize]) -> usize {
    let of_axis =
        |((axis, &count), &reach): ((&EngineAxis<'_>, &usize), &usize)| (count + reach).min(axis.input);
    axes.iter().zip(chunk).zip(reach).map(of_axis).product()
}

/// How many input positions the first, and so the largest, of the boxes reads at most.
pub(crate) fn positions_of_first(axes: &[EngineAxis<'_>], boxes: &Boxes, reach: &[usize]) -> usize {
    let chunk: Vec<usize> = boxes.get(0).iter().map(|span| span.count).collect();
    input_positions(axes, &chunk, reach)
}
