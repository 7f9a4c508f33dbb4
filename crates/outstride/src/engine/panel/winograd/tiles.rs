//! The tiles of a task: which positions they hold, and what they read.

use std::ops::Range;

use outstride_kernels::{NOWHERE, Real};

use super::super::super::axis::Span;
use super::super::super::channels::{Input, position_strides};
use super::super::bundle::Member;
use super::super::rows::Positions;
use super::Tiling;
use super::scheme::Scheme;

/// The tiles of the positions of a box.
pub(in crate::engine::panel) struct Tiles {
    /// Per tile and axis, its first position. Axes are fastest.
    firsts: Vec<i64>,
    /// Per tile and output, the number of its position; [`NOWHERE`] behind the last.
    numbers: Vec<usize>,
    axes: usize,
    /// Per tile and output, where its row lies among sums of so many columns.
    places: Vec<usize>,
    width: usize,
    /// Per tile and output, how far it lies from that of index 0.
    outputs: Vec<isize>,
}

impl Tiles {
    /// Of positions `spans`, numbered in `order`.
    pub(in crate::engine::panel) fn new(scheme: &Scheme, spans: &[Span], order: &[usize]) -> Self {
        let tilings = scheme.tilings();
        let outputs: Vec<usize> = tilings.iter().map(|tiling| tiling.outputs).collect();
        let (strides, _) = position_strides(spans, order);
        let tiled: Vec<usize> =
            spans.iter().zip(tilings).map(|(span, tiling)| tiling.tiles(span.count)).collect();
        let count: usize = tiled.iter().product();
        let mut tiles = Tiles {
            firsts: Vec::with_capacity(count * spans.len()),
            numbers: Vec::with_capacity(count * outputs.iter().product::<usize>()),
            axes: spans.len(),
            places: Vec::new(),
            width: 0,
            outputs: Vec::new(),
        };
        let parts: Vec<Vec<usize>> = (0..spans.len())
            .map(|axis| parts_of_numbers(tilings[axis], spans[axis].count, strides[axis]))
            .collect();
        for_each_index(&tiled, |tile| {
            let first = tile.iter().zip(tilings).map(|(&tile, tiling)| tiling.first(tile));
            tiles.firsts.extend(first.zip(spans).map(|(first, span)| span.first + first as i64));
            let of_tile = tile.iter().zip(&parts).zip(&outputs);
            push_sums(
                &mut tiles.numbers,
                of_tile.map(|((&tile, parts), &outputs)| &parts[tile * outputs..][..outputs]),
            );
        });
        tiles
    }

    /// The most bytes that so many tiles take, of so many outputs each, with what they are found by.
    pub(in crate::engine::panel) fn most_bytes(tiles: usize, outputs: usize, axes: usize) -> usize {
        // A first position and an input; of each output a number, a place, the place of its position, and a distance.
        tiles * (axes + 1 + 4 * outputs) * size_of::<usize>()
    }

    pub(in crate::engine::panel) fn len(&self) -> usize {
        self.firsts.len() / self.axes
    }

    /// Tiles that are multiplied at once: at most so many.
    pub(super) fn rows(&self, most: usize) -> impl Iterator<Item = Range<usize>> + Clone {
        let count = self.len();
        let rows = count.div_ceil(count.div_ceil(most).max(1)).max(1);
        (0..count).step_by(rows).map(move |first| first..count.min(first + rows))
    }

    /// Per tile, its first input for a member, channel 0.
    pub(super) fn inputs<T: Real>(
        &self,
        scheme: &Scheme,
        member: &Member,
        input: &Input<'_, T>,
    ) -> Vec<*const T> {
        let reach = scheme.reach();
        let at = |first: &[i64]| {
            let of_axis = |axis: usize| {
                let index = first[axis] + member.spans[axis].first - reach[axis] as i64;
                index as isize * input.strides[axis]
            };
            input.origin(0).wrapping_offset((0..self.axes).map(of_axis).sum())
        };
        self.firsts.chunks_exact(self.axes).map(at).collect()
    }

    /// Per tile and output, where its row begins among sums of so many columns, in tiles of rows so far apart, and how far it
    /// lies in the output from that of index 0.
    pub(super) fn places(
        &mut self,
        positions: &Positions,
        tile_len: usize,
        width: usize,
    ) -> (&[usize], &[isize]) {
        if self.outputs.is_empty() {
            let output = |&number: &usize| positions.outputs().get(number).copied().unwrap_or_default();
            self.outputs = self.numbers.iter().map(output).collect();
        }
        if self.width != width {
            self.width = width;
            let of_positions = positions.places(tile_len, width);
            let place = |&number: &usize| of_positions.get(number).map_or(NOWHERE, |&place| place as usize);
            self.places = self.numbers.iter().map(place).collect();
        }
        (&self.places, &self.outputs)
    }
}

/// Per tile of an axis and output, what its index adds to the number of a position; [`NOWHERE`] behind the last.
fn parts_of_numbers(tiling: Tiling, count: usize, stride: usize) -> Vec<usize> {
    let outputs = |tile| (0..tiling.outputs).map(move |output| tiling.first(tile) + output * tiling.step);
    let part = |index| if index < count { index * stride } else { NOWHERE };
    (0..tiling.tiles(count)).flat_map(outputs).map(part).collect()
}

/// Appends the sums of one part of every axis each, the last axis fastest; [`NOWHERE`] with any part that is.
fn push_sums<'p>(sums: &mut Vec<usize>, axes: impl Iterator<Item = &'p [usize]>) {
    let from = sums.len();
    sums.push(0);
    for parts in axes {
        let count = sums.len() - from;
        sums.resize(from + count * parts.len(), 0);
        // From the last one on, so that none is written to before it was read.
        for index in (0..count).rev() {
            let sum = sums[from + index];
            for (place, part) in sums[from + index * parts.len()..].iter_mut().zip(parts) {
                *place = sum.saturating_add(*part);
            }
        }
    }
}

/// Every index below some counts, the last axis fastest.
fn for_each_index(counts: &[usize], mut visit: impl FnMut(&[usize])) {
    let mut index = vec![0; counts.len()];
    for _ in 0..counts.iter().product() {
        visit(&index);
        for axis in (0..counts.len()).rev() {
            index[axis] += 1;
            if index[axis] < counts[axis] {
                break;
            }
            index[axis] = 0;
        }
    }
}
