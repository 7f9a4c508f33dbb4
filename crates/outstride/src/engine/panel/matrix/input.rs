//! The input of a task, cut into parts.

use outstride_kernels::{MatrixSession, PART_ROW, PartRows, Real, Source, TILE_ROWS};

use super::super::super::axis::Span;
use super::super::super::channels::{copy_block, copy_row, position_strides};
use super::super::super::pack::PackedFilter;
use super::super::super::problem::Problem;
use super::super::super::scratch::{BoxOfCall, Kept};
use super::grain::Grain;

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

/// The memory that it takes.
pub(in crate::engine::panel) struct PartsScratch<'a, T> {
    /// For numbers that are not yet cut.
    pub(in crate::engine::panel) whole: &'a mut Kept<T>,
    pub(in crate::engine::panel) parts: &'a mut Kept<u16>,
    /// Whether some numbers of the parts are tiny.
    pub(in crate::engine::panel) tiny: &'a mut bool,
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
        (scratch, whose): (PartsScratch<'a, T>, BoxOfCall),
    ) -> Self {
        let channels = problem.filter.in_channels;
        let (strides, positions) = position_strides(needed, order);
        let element_strides: Vec<isize> =
            strides.iter().map(|&stride| (stride * PART_ROW) as isize).collect();
        let part_stride = (positions + TILE_ROWS) * PART_ROW;
        let (count, row_channels) = (problem.filter.grain().parts(), problem.filter.grain().row_channels());
        let step_len = count * part_stride;
        // What is side by side is best read all at once. Other numbers than f32 must become such before they can be cut.
        let is_beside = problem.x_channel_stride == 1;
        let is_cut = is_beside && problem.x.as_computed().is_some();
        let is_copied = is_cut || problem.filter.grain().holds(problem.x.dtype());
        let together = is_copied && is_beside;
        let channels_at_once = if together { channels.next_multiple_of(row_channels) } else { row_channels };
        let len_at_once = channels_at_once / row_channels * step_len;
        let PartsScratch { whole, parts, tiny } = scratch;
        let parts = parts.of(whose, parts_len(positions, problem.filter), |parts| {
            *tiny = false;
            for (number, parts) in parts.chunks_exact_mut(len_at_once.max(1)).enumerate() {
                let first = number * channels_at_once;
                let there = channels_at_once.min(channels - first);
                let strides = &element_strides;
                let block = Block {
                    problem,
                    group,
                    first,
                    channels: there,
                    needed,
                    strides,
                    parts: count,
                    part_stride,
                };
                *tiny |= match T::as_f32_source(&problem.x) {
                    Some(x) if is_copied => block.copy(x, session, parts),
                    _ => block.split(session, whole.any(positions * PART_ROW), parts),
                };
            }
            for part in parts.chunks_exact_mut(part_stride) {
                part[positions * PART_ROW..].fill(0);
            }
        });
        let before: isize =
            needed.iter().zip(&strides).map(|(span, &stride)| span.first as isize * stride as isize).sum();
        PartsInput {
            origin: parts.as_ptr().wrapping_offset(-before * PART_ROW as isize),
            strides: strides.into_iter().map(|stride| stride as isize).collect(),
            part_stride,
            parts: count,
            tiny: *tiny,
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

/// Some channels of a box.
struct Block<'a, T: Real> {
    problem: &'a Problem<'a, T>,
    group: usize,
    first: usize,
    channels: usize,
    needed: &'a [Span],
    /// Between positions, in elements.
    strides: &'a [isize],
    parts: usize,
    /// From a part to the next, in elements.
    part_stride: usize,
}

impl<T: Real> Block<'_, T> {
    /// Where the first channel begins.
    fn begin(&self) -> usize {
        let distance = self.first as isize * self.problem.x_channel_stride;
        self.problem.x_group(self.group).wrapping_add_signed(distance)
    }

    /// The rows of some positions, from the first on.
    fn rows<'m>(&self, memory: &'m mut [u16], pitch: usize) -> PartRows<'m> {
        let (parts, part_stride) = (self.parts, self.part_stride);
        PartRows { memory, pitch, step: parts * part_stride, parts, part_stride }
    }

    /// Copies numbers and cuts them into parts. Returns whether some are tiny.
    fn split(&self, session: &MatrixSession, whole: &mut [T], target: &mut [u16]) -> bool {
        if self.channels < PART_ROW {
            whole.fill(T::default());
        }
        let row = |from: isize, distances: &[isize], count: usize, target: &mut [T], pitch: usize| {
            copy_row(self.problem, from, distances, count, target, pitch);
        };
        let fill = |target: &mut [T]| target[..self.channels].fill(T::default());
        copy_block(self.problem, self.begin(), self.channels, self.needed, self.strides, (whole, fill), row);
        T::as_f32(whole).is_some_and(|whole| session.split(self.parts, whole, target, self.part_stride))
    }

    /// Copies numbers that tiles hold as they are, or that are side by side and cut on their way, and outside the input what stands
    /// for zero. Returns whether some are tiny.
    fn copy(&self, x: &Source<'_, f32>, session: &MatrixSession, target: &mut [u16]) -> bool {
        let along = self.problem.axes[self.needed.len() - 1].x_stride;
        let mut tiny = false;
        let row = |from: isize, distances: &[isize], count: usize, target: &mut [u16], pitch: usize| {
            tiny |= if self.problem.x_channel_stride == 1 {
                session.copy_rows(x, from, along, count, self.channels, self.rows(target, pitch))
            } else if along == 1 {
                session.turn_rows(x, from, distances, count, self.rows(target, pitch))
            } else {
                (0..count).fold(false, |tiny, position| {
                    let memory = &mut target[position * pitch..];
                    let from = from + position as isize * along;
                    tiny | session.turn_rows(x, from, distances, 1, self.rows(memory, pitch))
                })
            };
        };
        let zero = match self.problem.filter.grain() {
            Grain::Pieces(_) => 0,
            Grain::Bytes { .. } => session.zero_byte(x) as u8,
        };
        let fill = fill_of_parts(u16::from_ne_bytes([zero, zero]), self.part_stride);
        copy_block(self.problem, self.begin(), self.channels, self.needed, self.strides, (target, fill), row);
        tiny
    }
}

/// Fills the rows of a position, as many as there are parts of all steps. Rows are whole, whether or not there are that many
/// channels.
fn fill_of_parts(outside: u16, part_stride: usize) -> impl Fn(&mut [u16]) {
    move |target| target.chunks_mut(part_stride).for_each(|rows| rows[..PART_ROW].fill(outside))
}
