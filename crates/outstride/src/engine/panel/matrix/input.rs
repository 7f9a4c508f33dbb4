//! The input of a task, cut into parts.

use outstride_kernels::{MatrixSession, PART_ROW, Real, TILE_ROWS};

use super::super::super::aligned::Aligned;
use super::super::super::axis::Span;
use super::super::super::channels::{copy_block, position_strides};
use super::super::super::pack::PackedFilter;
use super::super::super::problem::Problem;

/// A box of the input with zeros around it: `[32 channels][part][position][channel]`.
pub(in crate::engine::panel) struct PartsInput<'a> {
    /// Where the position with all indices 0 (which the box need not contain) lies.
    origin: *const u16,
    /// Per axis, the distance between positions, counted in positions.
    pub(in crate::engine::panel) strides: Vec<isize>,
    pub(in crate::engine::panel) part_stride: usize,
    parts: usize,
    /// Whether some numbers other than zero are [tiny](outstride_kernels::TINY).
    pub(in crate::engine::panel) tiny: bool,
    memory: std::marker::PhantomData<&'a [u16]>,
}

/// Elements of a copy of so many positions. Tiles may read on behind the last one.
pub(in crate::engine::panel) fn parts_len<T: Real>(positions: usize, filter: &PackedFilter<T>) -> usize {
    filter.in_channels.div_ceil(PART_ROW) * filter.parts() * (positions + TILE_ROWS) * PART_ROW
}

impl<'a> PartsInput<'a> {
    /// Copies the indices `needed` of every axis, the last axis of `order` fastest.
    pub(in crate::engine::panel) fn copied<T: Real>(
        problem: &Problem<'_, T>,
        group: usize,
        needed: &[Span],
        order: &[usize],
        session: &MatrixSession,
        whole: &mut Aligned<T>,
        parts: &'a mut Aligned<u16>,
    ) -> Self {
        let channels = problem.filter.in_channels;
        let (strides, positions) = position_strides(needed, order);
        let element_strides: Vec<isize> =
            strides.iter().map(|&stride| (stride * PART_ROW) as isize).collect();
        let whole = whole.at_least(positions * PART_ROW);
        let part_stride = (positions + TILE_ROWS) * PART_ROW;
        let count = problem.filter.parts();
        let parts = parts.at_least(parts_len(positions, problem.filter));
        let mut tiny = false;
        for (step, parts) in parts.chunks_exact_mut(count * part_stride).enumerate() {
            let first = step * PART_ROW;
            let there = PART_ROW.min(channels - first);
            if there < PART_ROW {
                whole.fill(T::default());
            }
            let x = problem.x_group(group).wrapping_add_signed(first as isize * problem.x_channel_stride);
            copy_block(problem, x, there, needed, &element_strides, whole);
            if let Some(whole) = T::as_f32(whole) {
                tiny |= session.split(count, whole, parts, part_stride);
            }
            for part in parts.chunks_exact_mut(part_stride) {
                part[positions * PART_ROW..].fill(0);
            }
        }
        let before: isize =
            needed.iter().zip(&strides).map(|(span, &stride)| span.first as isize * stride as isize).sum();
        PartsInput {
            origin: parts.as_ptr().wrapping_offset(-before * PART_ROW as isize),
            strides: strides.into_iter().map(|stride| stride as isize).collect(),
            part_stride,
            parts: count,
            tiny,
            memory: std::marker::PhantomData,
        }
    }

    /// The first part and channels of a position given by its distance from that of index 0.
    pub(in crate::engine::panel) fn row(&self, position: isize) -> *const u16 {
        self.origin.wrapping_offset(position * PART_ROW as isize)
    }

    /// From some 32 channels to the next, in bytes.
    pub(in crate::engine::panel) fn step_bytes(&self) -> isize {
        (self.parts * self.part_stride * size_of::<u16>()) as isize
    }
}
