//! What blocks of rows are multiplied with.

use std::ops::Range;

use outstride_kernels::{MatrixStep, PART_ROW, Real};

use super::super::bundle::Member;
use super::{Job, MatrixSums};

/// The taps of a member, for the windows that they were found for.
#[derive(Default)]
pub(super) struct MemberTaps {
    found_for: Option<usize>,
    /// Their numbers, those that are abreast counted as one, and how far from a position of the task they read.
    taps: Vec<(usize, isize)>,
}

/// What a job multiplies, for the windows and the block of channels that it was found for.
#[derive(Default)]
pub(super) struct Steps {
    found_for: Option<(usize, usize)>,
    steps: Vec<MatrixStep>,
    /// Of bytes, what sums begin with; nothing if that is zero.
    columns: Vec<i32>,
}

impl Steps {
    pub(super) fn steps(&self) -> &[MatrixStep] {
        &self.steps
    }

    pub(super) fn columns(&self) -> &[i32] {
        &self.columns
    }
}

impl<T: Real> MatrixSums<'_, T> {
    /// Finds what a job multiplies at a block of rows with a block of channels, given the taps of all members.
    #[inline]
    pub(super) fn find_steps(
        &self,
        job: &mut Job<'_, T>,
        taps: &mut [MemberTaps],
        rows: usize,
        block: usize,
    ) {
        let number = job.row_blocks.windows_of(rows);
        if job.steps.found_for == Some((number, block)) {
            return;
        }
        let of_member = &mut taps[job.member_number];
        if of_member.found_for != Some(number) {
            of_member.taps = self.taps(job.member, job.row_blocks.windows(number));
            of_member.found_for = Some(number);
        }
        self.plan_steps(job, &of_member.taps, block);
        self.take_zeros_away(job, &of_member.taps);
        job.steps.found_for = Some((number, block));
    }

    /// The steps of a block of channels.
    fn plan_steps(&self, job: &mut Job<'_, T>, taps: &[(usize, isize)], block: usize) {
        let (first, count) = job.blocks.block(block);
        let weights = &job.weights[job.block_range(block)];
        let step_len = self.weights.step_len(job.prepared.panel);
        let steps = &mut job.steps.steps;
        steps.clear();
        steps.reserve(taps.len() * count);
        for &(tap, distance) in taps {
            let row = distance * (PART_ROW * size_of::<u16>()) as isize;
            let of_tap = &weights[tap * count * step_len..][..count * step_len];
            steps.extend(of_tap.chunks_exact(step_len).enumerate().map(|(step, weights)| MatrixStep {
                input: row + (first + step) as isize * self.input.step_bytes(),
                weights: weights.as_ptr(),
            }));
        }
    }

    /// What must be taken away from the sums of a job for inputs that all stand for zero to make zero.
    fn take_zeros_away(&self, job: &mut Job<'_, T>, taps: &[(usize, isize)]) {
        let columns = &mut job.steps.columns;
        columns.clear();
        let tap_sums = self.weights.tap_sums(self.site.group, job.number);
        let zero = T::as_f32_source(&self.site.problem.x).map_or(0, |x| self.session.zero_byte(x));
        if zero == 0 || tap_sums.is_empty() {
            return;
        }
        let width = job.prepared.width();
        columns.resize(width, 0);
        for &(tap, _) in taps {
            let sums = &tap_sums[tap * width..][..width];
            columns.iter_mut().zip(sums).for_each(|(column, sum)| *column -= zero * sum);
        }
    }

    /// The numbers of the taps of the windows, and how far from a position they read. Of those that are abreast, all are multiplied if any
    /// is in its window; the others read zeros.
    fn taps(&self, member: &Member, windows: &[Range<usize>]) -> Vec<(usize, isize)> {
        let mut taps = vec![(0, 0isize)];
        for (axis, window) in windows.iter().enumerate() {
            let deltas = &member.deltas[axis];
            let begin = member.spans[axis].first + self.site.spans[axis].first;
            let at_once = if axis + 1 == windows.len() { self.weights.abreast } else { 1 };
            let count = deltas.len().div_ceil(at_once);
            let numbers =
                if window.is_empty() { 0..0 } else { window.start / at_once..window.end.div_ceil(at_once) };
            let with = |&(number, distance): &(usize, isize)| {
                numbers.clone().map(move |tap| {
                    let shift = begin - deltas[tap * at_once] as i64;
                    (number * count + tap, distance + shift as isize * self.input.strides[axis])
                })
            };
            taps = taps.iter().flat_map(with).collect();
        }
        taps
    }
}
