//! The input of a task, cut into parts.

use std::ops::Range;

use outstride_kernels::{MatrixSession, PART_ROW, PartRows, Real, Source, TILE_ROWS};

use super::super::super::axis::Span;
use super::super::super::channels::{BoxTarget, copy_block, copy_row, position_strides};
use super::super::super::pack::PackedFilter;
use super::super::super::problem::Problem;
use super::super::super::scratch::{BoxOfCall, Kept};
use super::grain::Grain;

/// Bytes of a row of a tile.
const ROW_BYTES: usize = PART_ROW * size_of::<u16>();

/// A box of the input with zeros around it: `[32 channels][part][position][channel]`. Behind the few channels of a position are those of
/// the next ones along the last axis, as many as there are [taps abreast](super::MatrixWeights::abreast).
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
    /// For some positions that are not yet cut.
    pub(in crate::engine::panel) line: &'a mut Kept<T>,
    pub(in crate::engine::panel) parts: &'a mut Kept<u16>,
    /// Whether some numbers of the parts are tiny.
    pub(in crate::engine::panel) tiny: &'a mut bool,
}

/// Elements of a copy of so many positions. Tiles may read on behind the last one.
pub(in crate::engine::panel) fn parts_len<T: Real>(positions: usize, filter: &PackedFilter<T>) -> usize {
    let grain = filter.grain();
    filter.in_channels.div_ceil(grain.row_channels()) * grain.parts() * (positions + TILE_ROWS) * PART_ROW
}

/// Elements of positions that become f32 together before they are cut: they stay in the first-level cache.
pub(in crate::engine::panel) fn line_len<T: Real>(filter: &PackedFilter<T>) -> usize {
    const NEAR: usize = 1 << 12;
    filter.in_channels.max(NEAR)
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
        // What is side by side is best read all at once.
        let is_beside = problem.x_channel_stride == 1;
        let channels_at_once = if is_beside { channels.next_multiple_of(row_channels) } else { row_channels };
        let len_at_once = channels_at_once / row_channels * step_len;
        let PartsScratch { line, parts, tiny } = scratch;
        let parts = parts.of(whose, parts_len(positions, problem.filter), |parts| {
            *tiny = false;
            let line = line.any(line_len(problem.filter));
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
                *tiny |= block.copy(session, line, parts);
            }
            for part in parts.chunks_exact_mut(part_stride) {
                part[positions * PART_ROW..].fill(0);
            }
            let last = needed.len() - 1;
            let along = Along { stride: strides[last], count: needed[last].count };
            let abreast = problem.filter.matrix.as_ref().map_or(1, |weights| weights.abreast);
            for part in parts.chunks_exact_mut(part_stride).filter(|_| abreast > 1) {
                let rows = bytemuck::cast_slice_mut(&mut part[..positions * PART_ROW]);
                put_abreast(rows, along, (channels * ROW_BYTES / row_channels, abreast));
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

    /// Copies numbers as tiles hold them, and outside the input what stands for zero. Returns whether some are tiny.
    fn copy(&self, session: &MatrixSession, line: &mut [T], target: &mut [u16]) -> bool {
        let grain = self.problem.filter.grain();
        let is_beside = self.problem.x_channel_stride == 1;
        // Other numbers than f32 become such before they are cut, and so do those that are not side by side.
        let is_cut_at_once = is_beside && self.problem.x.as_computed().is_some();
        let at_once = T::as_f32_source(&self.problem.x).filter(|x| is_cut_at_once || grain.holds(x.dtype()));
        let mut tiny = false;
        let row = |from: isize, distances: &[isize], count: usize, target: &mut [u16], pitch: usize| {
            tiny |= match at_once {
                Some(x) if is_beside => {
                    session.copy_rows(x, from, self.along(), count, self.channels, self.rows(target, pitch))
                }
                Some(x) => self.turn_row(x, session, (from, distances, count), (target, pitch)),
                None => self.cut_row(session, line, (from, distances, count), (target, pitch)),
            };
        };
        let zero = match (grain, at_once) {
            (Grain::Bytes { .. }, Some(x)) => session.zero_byte(x) as u8,
            _ => 0,
        };
        let fill = fill_of_parts(u16::from_ne_bytes([zero, zero]), self.part_stride);
        let target = BoxTarget { memory: target, parts: self.parts, part_stride: self.part_stride, fill };
        copy_block(self.problem, self.begin(), self.channels, self.needed, self.strides, target, row);
        tiny
    }

    /// From a position of a row to the next, in the input.
    fn along(&self) -> isize {
        self.problem.axes[self.needed.len() - 1].x_stride
    }

    /// Copies a row of positions that are side by side, or else one by one.
    fn turn_row(
        &self,
        x: &Source<'_, f32>,
        session: &MatrixSession,
        (from, distances, count): (isize, &[isize], usize),
        (target, pitch): (&mut [u16], usize),
    ) -> bool {
        let along = self.along();
        if along == 1 {
            return session.turn_rows(x, from, distances, count, self.rows(target, pitch));
        }
        (0..count).fold(false, |tiny, position| {
            let memory = &mut target[position * pitch..];
            let from = from + position as isize * along;
            tiny | session.turn_rows(x, from, distances, 1, self.rows(memory, pitch))
        })
    }

    /// Cuts a row of positions, as many at a time as a line holds.
    fn cut_row(
        &self,
        session: &MatrixSession,
        line: &mut [T],
        (from, distances, count): (isize, &[isize], usize),
        (target, pitch): (&mut [u16], usize),
    ) -> bool {
        let at_once = line.len() / self.channels.max(1);
        let mut tiny = false;
        for first in (0..count).step_by(at_once) {
            let (from, count) = (from + first as isize * self.along(), at_once.min(count - first));
            copy_row(self.problem, from, distances, count, line, self.channels);
            let rows = self.rows(&mut target[first * pitch..], pitch);
            tiny |= T::as_f32(line)
                .is_some_and(|line| session.cut_rows(line, self.channels, count, self.channels, rows));
        }
        tiny
    }
}

/// The axis whose positions are put abreast.
#[derive(Clone, Copy)]
struct Along {
    /// From a position to the next, in positions.
    stride: usize,
    count: usize,
}

/// Puts the channels of the next positions, so many bytes, behind those of each, until so many are abreast. Where there is no next one, no
/// tap reads there.
fn put_abreast(rows: &mut [u8], along: Along, (bytes, abreast): (usize, usize)) {
    let put = match bytes {
        ..=8 => put_some_abreast::<8>,
        9..=16 => put_some_abreast::<16>,
        _ => put_some_abreast::<32>,
    };
    let (rows, _) = rows.as_chunks_mut();
    for rows in rows.chunks_exact_mut((along.count * along.stride).max(1)) {
        for number in 1..abreast {
            put(rows, number * along.stride, number * bytes..(number + 1) * bytes);
        }
    }
}

/// Puts the channels that lie so many rows ahead, of at most `MOST` bytes, where they belong in every row. As many are moved wherever a row
/// has room: what is too much is overwritten, or meets no weight.
fn put_some_abreast<const MOST: usize>(rows: &mut [[u8; ROW_BYTES]], ahead: usize, place: Range<usize>) {
    let has_room = place.start + MOST <= ROW_BYTES;
    for row in 0..rows.len().saturating_sub(ahead) {
        let next = rows[row + ahead];
        if has_room {
            rows[row][place.start..place.start + MOST].copy_from_slice(&next[..MOST]);
        } else {
            rows[row][place.clone()].copy_from_slice(&next[..place.len()]);
        }
    }
}

/// Fills the rows of a position, as many as there are parts of all steps. Rows are whole, whether or not there are that many
/// channels.
fn fill_of_parts(outside: u16, part_stride: usize) -> impl Fn(&mut [u16]) {
    move |target| target.chunks_mut(part_stride).for_each(|rows| rows[..PART_ROW].fill(outside))
}
