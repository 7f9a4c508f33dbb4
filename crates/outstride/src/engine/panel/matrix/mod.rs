//! Sums by matrix tiles: positions × output channels, 32 input channels at a time.

mod ahead;
mod finish;
mod grain;
mod input;
mod room;
mod row_blocks;
mod steps;
mod waiting;
mod weights;

use std::ops::Range;

use outstride_kernels::{Begin, FETCHED_BY_STEP, MatrixBlock, MatrixSession, MatrixStep, Real, TILE_ROWS};

pub(super) use ahead::Ahead;
pub(crate) use grain::Grain;
pub(crate) use weights::MatrixWeights;

use super::super::pack::PackedFilter;
use super::bundle::Member;
use super::run::Site;
use super::store::PositionStore;
use super::sums::{PanelGroup, Prepared};
pub(super) use input::{PartsInput, PartsScratch, line_len, parts_len};
use room::Room;
use row_blocks::MemberBlocks;
pub(super) use row_blocks::{Blocks, RowBlocks, Rows};
use steps::{MemberTaps, Steps};
use waiting::{Unit, Waiting};
use weights::StepBlocks;

/// The most tiles of rows that are computed at once.
const MOST_TILES: usize = 4;

/// The most rows that are computed at once.
pub(super) const MOST_ROWS: usize = MOST_TILES * TILE_ROWS;

/// Sums that there must be room for where some are stored while others are multiplied: two blocks of rows of two panels each.
pub(super) const WAITING_SUMS: usize = 2 * 2 * MOST_ROWS * TILE_ROWS;

/// What the sums of a task are made of.
pub(super) struct MatrixSums<'a, T: Real> {
    pub(super) site: &'a Site<'a, T>,
    pub(super) input: &'a PartsInput<'a>,
    pub(super) weights: &'a MatrixWeights,
    pub(super) session: &'a MatrixSession,
    /// What is fetched where no weights are.
    pub(super) ahead: &'a Ahead,
}

/// What is done with sums as soon as they are complete.
pub(super) enum Then<'a, T: Real> {
    /// They are finished and stored, those of every member.
    Store(Vec<PositionStore<'a, T>>),
    Finish,
    Leave,
}

/// Tiles of rows that are computed at once, of a panel of so many vectors.
fn row_tiles(vectors: usize) -> usize {
    MOST_TILES / vectors
}

/// Rows that are computed at once, of a panel of so many vectors.
pub(super) fn rows_at_once(vectors: usize) -> usize {
    row_tiles(vectors) * TILE_ROWS
}

/// Tiles of rows that there must be room for.
pub(super) fn padded_tiles(tiles: usize) -> usize {
    tiles.next_multiple_of(MOST_TILES)
}

/// Weights that blocks of rows are multiplied with one after the other: they stay in the second-level cache meanwhile.
const NEAR_BYTES: usize = 1 << 19;

/// Weights that pass by, from one use of them to the next, without driving the inputs of a few rows out of the first-level cache.
const PASSING_BYTES: usize = 24 << 10;

/// The sums of one panel of one member.
struct Job<'a, T: Real> {
    member: &'a Member,
    /// Of all members of the bundle.
    member_number: usize,
    prepared: &'a Prepared<'a, T>,
    /// Of all panels of the filter.
    number: usize,
    row_blocks: MemberBlocks<'a>,
    blocks: StepBlocks,
    weights: &'a [u16],
    /// Weights that will be read after this job.
    following: &'a [u16],
    /// Where the sums of all rows begin, if they are not stored at once.
    place: usize,
    store: Option<&'a PositionStore<'a, T>>,
    /// Elements of the weights of a step's channels, with all taps.
    channels_len: usize,
    steps: Steps,
}

impl<T: Real> Job<'_, T> {
    /// The weights of a block of channels.
    fn block_range(&self, block: usize) -> Range<usize> {
        let (first, count) = self.blocks.block(block);
        first * self.channels_len..(first + count) * self.channels_len
    }

    /// Elements of the sums of a block of rows.
    fn rows_len(&self) -> usize {
        rows_at_once(self.prepared.panel.vectors) * self.prepared.width()
    }
}

/// The most bytes that a panel takes while it is computed, of so many taps, with all steps of a block of channels and how it is stored.
pub(super) fn bytes_of_job<T: Real>(filter: &PackedFilter<T>, taps: usize) -> usize {
    let blocks = StepBlocks::new(filter.in_channels, taps, filter.grain());
    let (_, steps) = blocks.block(0);
    // They grow while they are made.
    let steps = 2 * steps * taps * size_of::<MatrixStep>() + 2 * filter.kernels.lanes() * size_of::<i32>();
    size_of::<Job<'_, T>>() + 2 * size_of::<Unit<'_>>() + steps
}

/// How many jobs, from the first one on, have few enough weights to stay near.
fn near_jobs(jobs: &[Job<'_, impl Real>]) -> usize {
    let mut bytes = 0;
    let is_near = |job: &&Job<'_, _>| {
        bytes += size_of_val(job.weights);
        bytes <= NEAR_BYTES
    };
    jobs.iter().take_while(is_near).count().max(1)
}

impl<'a, T: Real> MatrixSums<'a, T> {
    /// Computes the sums of the panels `range` of every member, and does with them what it is told to. Meanwhile it has weights
    /// fetched that come next, at last those of the panels from `after` on.
    pub(super) fn compute(
        &self,
        range: Range<usize>,
        after: Option<usize>,
        panels: &PanelGroup<'_, T>,
        row_blocks: &mut RowBlocks<'a>,
        then: &Then<'_, T>,
        sums: &mut [T],
    ) {
        row_blocks.prepare(self.site, row_tiles(panels.panel(0, 0).panel.vectors));
        let members = &self.site.bundle.members;
        let weights_of = |number: usize| self.weights.panel(self.site.group, number);
        let job = |index: usize| {
            let (number, panel) = (index / range.len(), index % range.len());
            let member = &members[number];
            let after = after.map(|after| member.panels.start + after + panel);
            let blocks = self.weights.blocks(self.site.problem.filter.in_channels, member.taps());
            let weights = weights_of(member.panels.start + range.start + panel);
            Job {
                member,
                member_number: number,
                prepared: panels.panel(panel, number),
                number: member.panels.start + range.start + panel,
                row_blocks: row_blocks.of_member(number),
                blocks,
                weights,
                channels_len: weights.len() / blocks.steps().max(1),
                following: after.filter(|after| member.panels.contains(after)).map_or(&[], weights_of),
                place: panels.place(panel, number, 0),
                store: match then {
                    Then::Store(stores) => stores.get(panel * members.len() + number),
                    Then::Finish | Then::Leave => None,
                },
                steps: Steps::default(),
            }
        };
        let mut taps: Vec<MemberTaps> = members.iter().map(|_| MemberTaps::default()).collect();
        let mut jobs: Vec<Job<'_, T>> = (0..members.len() * range.len()).map(job).collect();
        let stores = matches!(then, Then::Store(_));
        if stores && jobs.iter().all(|job| job.blocks.len() <= 1) {
            let mut rest = &mut jobs[..];
            while !rest.is_empty() {
                let count = near_jobs(rest);
                let (near, others) = rest.split_at_mut(count);
                near.iter_mut().zip(&*others).for_each(|(job, next)| job.following = next.weights);
                self.compute_and_store(near, &mut taps, &Room::new(sums));
                rest = others;
            }
            return;
        }
        for index in 1..jobs.len() {
            jobs[index - 1].following = jobs[index].weights;
        }
        let room = Room::new(sums);
        for job in &mut jobs {
            // What is stored needs no place of its own any more.
            let begin = if stores { 0 } else { job.place };
            for block in 0..job.blocks.len() {
                let stream = job.block_range(block).len() * size_of::<u16>() > PASSING_BYTES;
                for rows in 0..job.row_blocks.len() {
                    self.find_steps(job, &mut taps, rows, block);
                    let place = begin + job.row_blocks.first_tile(rows) * panels.tile_len();
                    let out = room.at(place, job.rows_len());
                    let inputs = self.inputs(job.row_blocks, rows);
                    self.multiply(job, &self.block(job, (rows, block), inputs, stream, out));
                    if block + 1 == job.blocks.len() && !matches!(then, Then::Leave) {
                        self.session.store_held();
                        // SAFETY: tiles hold nothing now, and these sums are complete.
                        let out = unsafe { room.sums(place, job.rows_len()) };
                        self.finish(job.member, job.prepared, job.row_blocks.block(rows), job.store, out);
                    }
                }
            }
        }
        self.session.store_held();
    }

    /// Computes the sums of jobs with one block of channels, and stores those of some rows while it multiplies the next: the inputs
    /// of a few rows stay in the first-level cache while the weights of all jobs pass by.
    fn compute_and_store(&self, jobs: &mut [Job<'_, T>], taps: &mut [MemberTaps], room: &Room<'_, T>) {
        let units = self.units(jobs);
        let weights: usize = jobs.iter().map(|job| size_of_val(job.weights)).sum();
        let Some(row_blocks) = jobs.first().map(|job| job.row_blocks) else { return };
        let len = jobs.iter().map(Job::rows_len).max().unwrap_or(0);
        let jobs_at_once = units.iter().map(|unit| unit.jobs.len()).max().unwrap_or(0);
        // Of both jobs of a unit, if there are two.
        let (mut out, mut waiting) = ([0, len], [jobs_at_once * len, (jobs_at_once + 1) * len]);
        let mut last = None;
        let stream = weights > PASSING_BYTES;
        // All members have the same positions.
        for rows in 0..row_blocks.len() {
            let inputs = self.inputs(row_blocks, rows);
            for unit in &units {
                unit.jobs.clone().for_each(|index| self.find_steps(&mut jobs[index], taps, rows, 0));
                let before = last.map(|last| Waiting::of(last, jobs, room, waiting));
                match &jobs[unit.jobs.clone()] {
                    [first, second] => {
                        let first_block = self.block(first, (rows, 0), inputs, stream, room.at(out[0], len));
                        let second_block =
                            self.block(second, (rows, 0), inputs, stream, room.at(out[1], len));
                        self.multiply_beside(first, &[first_block, second_block], before);
                    }
                    [job, ..] => {
                        let block = self.block(job, (rows, 0), inputs, stream, room.at(out[0], len));
                        self.multiply_beside(job, &[block], before);
                    }
                    [] => {}
                }
                last = Some((unit, rows));
                std::mem::swap(&mut out, &mut waiting);
            }
        }
        if let Some(last) = last {
            self.store_now(Waiting::of(last, jobs, room, waiting));
        }
    }

    /// Where the tiles of a block of rows begin.
    fn inputs(&self, row_blocks: MemberBlocks<'_>, number: usize) -> [*const u16; MOST_TILES] {
        let begins = &self.site.positions.begins;
        let (first, last) = (row_blocks.first_tile(number), begins.len() - 1);
        // Behind the last tile, that one again.
        std::array::from_fn(|tile| self.input.row(begins[(first + tile).min(last)]))
    }

    /// The products of a block of rows and a block of channels, whose steps were found. Made where they are needed: to copy what was
    /// just written takes longer than to write it.
    #[inline(always)]
    fn block<'b>(
        &self,
        job: &'b Job<'_, T>,
        (number, block): (usize, usize),
        inputs: [*const u16; MOST_TILES],
        stream: bool,
        out: *mut f32,
    ) -> MatrixBlock<'b> {
        let steps = job.steps.steps();
        let behind = job.block_range(block).end;
        let next = if behind < job.weights.len() { &job.weights[behind..] } else { job.following };
        let fetched = number * steps.len() * FETCHED_BY_STEP;
        let fetch = next.get(fetched..).filter(|rest| !rest.is_empty());
        MatrixBlock {
            rows: inputs,
            used: job.row_blocks.used(number),
            part_stride: self.input.part_stride,
            steps,
            fetch: fetch.map_or_else(|| self.ahead.take(steps.len()), <[u16]>::as_ptr),
            stream,
            out,
            begin: match (block, job.steps.columns()) {
                (0, []) => Begin::Zeros,
                (0, columns) => Begin::Columns(columns),
                _ => Begin::Sums,
            },
        }
    }

    /// Computes a [block](Self::block).
    fn multiply(&self, job: &Job<'_, T>, block: &MatrixBlock<'_>) {
        let vectors = job.prepared.panel.vectors;
        // SAFETY: tiles begin at positions of the box; with any of the steps' distances, these and the 15 behind them are
        // inside the copy. Every step's weights are of a panel as wide. There is room for the sums of as many rows.
        unsafe {
            match self.weights.grain {
                Grain::Pieces(pieces) => self.session.multiply(pieces, vectors, block),
                Grain::Bytes { signed } => self.session.multiply_bytes(signed, vectors, block),
            }
        }
    }
}
