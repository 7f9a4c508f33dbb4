//! The input of a task, cut into parts.

use outstride_kernels::{MatrixSession, PART_ROW, PartRows, Real, Source, TILE_ROWS};
use outstride_spec::DType;

use super::super::super::axis::Span;
use super::super::super::channels::{copy_block, copy_row, position_strides};
use super::super::super::pack::PackedFilter;
use super::super::super::problem::Problem;
use super::grain::Grain;
use crate::aligned::Aligned;

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
    let grain = filter.grain();
    filter.in_channels.div_ceil(grain.row_channels()) * grain.parts() * (positions + TILE_ROWS) * PART_ROW
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
        let part_stride = (positions + TILE_ROWS) * PART_ROW;
        let (count, row_channels) = (problem.filter.grain().parts(), problem.filter.grain().row_channels());
        let parts = parts.at_least(parts_len(positions, problem.filter));
        let mut tiny = false;
        for (step, parts) in parts.chunks_exact_mut(count * part_stride).enumerate() {
            let first = step * row_channels;
            let there = row_channels.min(channels - first);
            let block = Block { problem, group, first, channels: there, needed, strides: &element_strides };
            tiny |= match (T::as_f32_source(&problem.x), problem.filter.grain()) {
                (Some(x), Grain::Bytes { .. }) => block.copy_bytes(x, session, parts),
                (Some(x), _) if x.dtype() == DType::Bf16 => block.copy_parts(x, session, parts),
                _ => block.split(count, session, whole.at_least(positions * PART_ROW), parts, part_stride),
            };
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

/// Up to 32 channels of a box.
struct Block<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    group: usize,
    first: usize,
    channels: usize,
    needed: &'a [Span],
    /// Between positions, in elements.
    strides: &'a [isize],
}

impl<T: Real> Block<'_, T> {
    /// Where the first channel begins.
    fn begin(&self) -> usize {
        let distance = self.first as isize * self.problem.x_channel_stride;
        self.problem.x_group(self.group).wrapping_add_signed(distance)
    }

    /// Copies numbers and cuts them into parts. Returns whether some are tiny.
    fn split(
        &self,
        parts: usize,
        session: &MatrixSession,
        whole: &mut [T],
        target: &mut [u16],
        part_stride: usize,
    ) -> bool {
        if self.channels < PART_ROW {
            whole.fill(T::default());
        }
        let row = |from: isize, distances: &[isize], count: usize, target: &mut [T], pitch: usize| {
            copy_row(self.problem, from, distances, count, target, pitch);
        };
        let outside = T::default();
        copy_block(
            self.problem,
            self.begin(),
            self.channels,
            self.needed,
            self.strides,
            (whole, outside),
            row,
        );
        T::as_f32(whole).is_some_and(|whole| session.split(parts, whole, target, part_stride))
    }

    /// Copies numbers that are parts as they are. Returns whether some are tiny.
    fn copy_parts(&self, x: &Source<'_, f32>, session: &MatrixSession, target: &mut [u16]) -> bool {
        let along = self.problem.axes[self.needed.len() - 1].x_stride;
        let mut tiny = false;
        let row = |from: isize, distances: &[isize], count: usize, target: &mut [u16], pitch: usize| {
            let distances = &distances[..self.channels];
            tiny |= if self.problem.x_channel_stride == 1 {
                session.copy_rows(x, from, along, count, distances.len(), PartRows { memory: target, pitch })
            } else if along == 1 {
                session.turn_rows(x, from, distances, count, PartRows { memory: target, pitch })
            } else {
                (0..count).fold(false, |tiny, position| {
                    let memory = &mut target[position * pitch..];
                    let from = from + position as isize * along;
                    tiny | session.turn_rows(x, from, distances, 1, PartRows { memory, pitch })
                })
            };
        };
        // Rows are whole, whether or not there are that many channels.
        copy_block(self.problem, self.begin(), PART_ROW, self.needed, self.strides, (target, 0), row);
        tiny
    }

    /// Copies bytes, and outside the input what stands for zero. None of them is tiny.
    fn copy_bytes(&self, x: &Source<'_, f32>, session: &MatrixSession, target: &mut [u16]) -> bool {
        let along = self.problem.axes[self.needed.len() - 1].x_stride;
        let channel = self.problem.x_channel_stride;
        let distances: Vec<isize> = (0..self.channels as isize).map(|index| index * channel).collect();
        let row = |from: isize, _: &[isize], count: usize, target: &mut [u16], pitch: usize| {
            if channel == 1 {
                session.copy_byte_rows(
                    x,
                    from,
                    along,
                    count,
                    self.channels,
                    PartRows { memory: target, pitch },
                );
            } else if along == 1 {
                session.turn_byte_rows(x, from, &distances, count, PartRows { memory: target, pitch });
            } else {
                for position in 0..count {
                    let memory = &mut target[position * pitch..];
                    let from = from + position as isize * along;
                    session.turn_byte_rows(x, from, &distances, 1, PartRows { memory, pitch });
                }
            }
        };
        let zero = session.zero_byte(x) as u8;
        let outside = u16::from_ne_bytes([zero, zero]);
        copy_block(self.problem, self.begin(), PART_ROW, self.needed, self.strides, (target, outside), row);
        false
    }
}
