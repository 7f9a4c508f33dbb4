//! Storing sums position by position: runs of channels where they are side by side, single elements elsewhere.

use std::cell::{OnceCell, RefCell};
use std::ops::Range;

use outstride_kernels::{FINISHED_COLUMNS, OutputRows, Real, RowsTarget, UNBOUNDED};

use super::super::axis::Span;
use super::super::panels::Segment;
use super::super::problem::Problem;
use super::bundle::Member;
use super::panels_of;
use super::run::Site;
use super::sums::Prepared;

/// Columns of a panel whose outputs are an arithmetic progression in memory.
#[derive(Clone, Copy)]
pub(super) struct Run {
    column: usize,
    len: usize,
    /// From the output of the phase of residues 0 and channel 0.
    offset: isize,
    stride: isize,
}

/// Where the sums of one panel go.
pub(super) struct PositionStore<'a, T: Real> {
    site: &'a Site<'a, T>,
    member: &'a Member,
    width: usize,
    runs: Vec<Run>,
    /// The output of the phase of residues 0 and channel 0 at the first position, whether it is there or not.
    base: isize,
    /// Where several phases share the panel, of which some may have outputs outside.
    shared: Option<SharedStore<'a>>,
    /// Where a position's outputs are side by side, those of all positions that have them inside: kernels can write there.
    rows: Option<OutputRows<'a, T>>,
}

impl<'a, T: Real> PositionStore<'a, T> {
    pub(super) fn new(site: &'a Site<'a, T>, member: &'a Member, prepared: &Prepared<'_, T>) -> Self {
        let problem = site.problem;
        let segments = panels_of(problem.filter).segments(prepared.panel);
        let shared = member.shared.then(|| SharedStore::new(site, member, segments));
        let runs = match &shared {
            Some(shared) => joined(shared.pieces.iter().copied()),
            None => joined(segments.iter().map(|segment| Run::of(problem, segment))),
        };
        let mut base = problem.y_channel(site.group, 0);
        for (axis, of) in problem.axes.iter().enumerate() {
            let first = of.output_at(member.spans[axis].first + site.spans[axis].first, 0);
            base += first as isize * of.y_stride;
        }
        let rows = match runs[..] {
            [Run { column: 0, len, offset, stride: 1 }] if prepared.scales.is_none() => {
                let inside = match &shared {
                    Some(shared) => site.positions.output_range_within(&shared.inside),
                    None => Some(site.positions.output_range()),
                };
                inside.and_then(|range| problem.y.rows(base + offset, range, len))
            }
            _ => None,
        };
        let rows = rows.zip(problem.finish.bounds()).map(|(rows, bounds)| {
            let rows = rows.streamed(problem.stream);
            if bounds == UNBOUNDED {
                return rows;
            }
            rows.within([bounds.0, bounds.1].map(|bound| T::from_f64(bound.into())))
        });
        PositionStore { site, member, width: prepared.width(), runs, base, shared, rows }
    }

    /// The most bytes of one of a panel with so many segments, in so many axes.
    pub(super) fn most_bytes(segments: usize, axes: usize) -> usize {
        let of_border = size_of::<Border>() + axes * size_of::<Option<i64>>() + segments * size_of::<Run>();
        let of_runs = segments * (2 * size_of::<Run>() + axes * size_of::<usize>());
        size_of::<Self>() + of_runs + axes * size_of::<Span>() + KEPT_BORDERS * of_border
    }

    /// Where kernels can write the sums of any positions, if they can.
    pub(super) fn all_output_rows(&self) -> Option<&OutputRows<'a, T>> {
        self.rows.as_ref().filter(|_| self.shared.is_none())
    }

    /// Where kernels can write the sums of a tile, if they can.
    pub(super) fn output_rows(&self, tile: usize) -> Option<&OutputRows<'a, T>> {
        let is_inside = |shared: &SharedStore<'_>| shared.is_interior(self.site.positions.extent(tile));
        self.rows.as_ref().filter(|_| self.shared.as_ref().is_none_or(is_inside))
    }

    /// Stores the sums of some pieces, given those of their tiles from `first` on, `tile_len` apart.
    pub(super) fn store(&self, pieces: Range<usize>, first: usize, sums: &[T], tile_len: usize) {
        let Site { problem, positions, .. } = *self.site;
        let outputs = positions.outputs();
        for number in pieces {
            let piece = &positions.pieces[number];
            let sums = &sums[(piece.tile - first) * tile_len + piece.row * self.width..];
            let all = piece.first..piece.first + piece.count;
            match &self.shared {
                Some(shared) if !shared.is_interior(positions.extent(number)) => {
                    self.for_each_part(all, |part, runs| {
                        let sums = &sums[(part.start - piece.first) * self.width..];
                        store_rows(problem, runs, self.base, &outputs[part], sums, self.width);
                        true
                    });
                }
                _ => store_rows(problem, &self.runs, self.base, &outputs[all], sums, self.width),
            }
        }
    }

    /// Visits some positions, those together that have the same outputs inside, with the columns of these, as long as `visit` wants
    /// to go on. Returns whether it did to the end.
    pub(super) fn for_each_part(
        &self,
        positions: Range<usize>,
        mut visit: impl FnMut(Range<usize>, &[Run]) -> bool,
    ) -> bool {
        let Some(shared) = &self.shared else { return visit(positions, &self.runs) };
        let mut goes_on = true;
        self.site.positions.for_each_run(positions, |run, index, along| {
            let inside = shared.inside[along].intersect(&Span { first: index[along], count: run.len() });
            let before = (inside.first - index[along]).clamp(0, run.len() as i64) as usize;
            let (begin, end) = (run.start + before, run.start + before + inside.count);
            let alone = |position: usize| position..position + 1;
            let together = Some(begin..end).filter(|together| !together.is_empty());
            let parts = (run.start..begin).map(alone).chain(together).chain((end..run.end).map(alone));
            for part in parts {
                let steps = (part.start - run.start) as i64;
                let at = |axis: usize| index[axis] + if axis == along { steps } else { 0 };
                goes_on = goes_on && shared.with_runs_at(self, at, |runs| visit(part, runs));
            }
        });
        goes_on
    }

    /// Where kernels can write rows of the columns of some runs from: nowhere unless channels are side by side.
    pub(super) fn targets<'r>(
        &'r self,
        runs: &'r [Run],
    ) -> Option<impl Iterator<Item = (Range<usize>, RowsTarget<'r>)>> {
        let output = T::as_f32_output(self.site.problem.y)?;
        let fits = |run: &Run| run.stride == 1 && run.len <= FINISHED_COLUMNS;
        let target = move |run: &Run| {
            let target =
                RowsTarget { output, first: self.base + run.offset, stream: self.site.problem.stream };
            (run.column..run.column + run.len, target)
        };
        runs.iter().all(fits).then(|| runs.iter().map(target))
    }

    /// The runs of positions whose outputs are all inside.
    pub(super) fn runs(&self) -> &[Run] {
        &self.runs
    }
}

/// Whether all outputs of all positions lie inside the output.
pub(super) fn is_interior<T: Real>(problem: &Problem<'_, T>, member: &Member, extent: &[Span]) -> bool {
    let inside = |(axis, of)| member.inside(axis, of).contains(&extent[axis]);
    !member.shared || problem.axes.iter().enumerate().all(inside)
}

fn store_rows<T: Real>(
    problem: &Problem<'_, T>,
    runs: &[Run],
    base: isize,
    outputs: &[isize],
    sums: &[T],
    width: usize,
) {
    let row_distance = match outputs {
        [first, second, ..] => second - first,
        _ => isize::MAX,
    };
    for run in runs {
        if run.stride == 1 {
            let sums = &sums[run.column..];
            // SAFETY: each output belongs to one position of one phase, and each task has its own positions and panels.
            unsafe {
                problem.y.write_rows(base + run.offset, outputs, sums, (width, run.len), problem.stream);
            }
            continue;
        }
        // Where the elements of a run are farther apart than rows are, column by column: otherwise the columns of one
        // row tend to fall into the same set of a cache.
        let by_columns = row_distance.unsigned_abs() < run.stride.unsigned_abs();
        let columns = if by_columns { run.len } else { 1 };
        for column in 0..columns {
            let offset = base + run.offset + column as isize * run.stride;
            for (row, &output) in outputs.iter().enumerate() {
                let values = &sums[row * width + run.column + column..][..run.len / columns];
                // SAFETY: as above.
                unsafe { problem.y.write(output + offset, run.stride, values) };
            }
        }
    }
}

/// What is known of a panel that several phases share.
struct SharedStore<'a> {
    segments: &'a [Segment],
    /// Where each of them goes.
    pieces: Vec<Run>,
    /// Per axis, between which indices of the task all outputs are inside.
    inside: Vec<Span>,
    /// Per segment and axis, the last one first, the residues of its phase. Found when somebody asks.
    residues: OnceCell<Vec<usize>>,
    /// The last few borders that somebody asked for.
    borders: RefCell<Vec<Border>>,
}

/// Positions that have the same outputs inside.
struct Border {
    /// Per axis, the index, if some outputs are outside there.
    at: Vec<Option<i64>>,
    /// What is inside.
    runs: Vec<Run>,
}

/// Borders that are kept: along a row of positions, they come in turns.
const KEPT_BORDERS: usize = 4;

impl<'a> SharedStore<'a> {
    fn new<T: Real>(site: &Site<'_, T>, member: &Member, segments: &'a [Segment]) -> Self {
        let inside = site.problem.axes.iter().enumerate().map(|(axis, of)| {
            let Span { first, count } = member.inside(axis, of);
            Span { first: first - site.spans[axis].first, count }
        });
        SharedStore {
            segments,
            pieces: segments.iter().map(|segment| Run::of(site.problem, segment)).collect(),
            inside: inside.collect(),
            residues: OnceCell::new(),
            borders: RefCell::default(),
        }
    }

    /// Whether all outputs of all positions lie inside the output.
    fn is_interior(&self, extent: &[Span]) -> bool {
        self.inside.iter().zip(extent).all(|(inside, extent)| inside.contains(extent))
    }

    /// Gives `visit` the runs that are inside at an index of every axis.
    fn with_runs_at<T: Real, R>(
        &self,
        store: &PositionStore<'_, T>,
        at: impl Fn(usize) -> i64,
        visit: impl FnOnce(&[Run]) -> R,
    ) -> R {
        let border = |axis: usize| {
            let index = Span { first: at(axis), count: 1 };
            (!self.inside[axis].contains(&index)).then_some(index.first)
        };
        let axes = 0..self.inside.len();
        if axes.clone().all(|axis| border(axis).is_none()) {
            return visit(&store.runs);
        }
        let mut borders = self.borders.borrow_mut();
        let known = borders.iter().position(|known| axes.clone().all(|axis| known.at[axis] == border(axis)));
        let number = known.unwrap_or_else(|| {
            if borders.len() == KEPT_BORDERS {
                borders.clear();
            }
            let runs = self.runs_at(store, border);
            borders.push(Border { at: axes.map(border).collect(), runs });
            borders.len() - 1
        });
        visit(&borders[number].runs)
    }

    /// The runs that are inside at some border, given per axis the index if some outputs are outside there.
    fn runs_at<T: Real>(
        &self,
        store: &PositionStore<'_, T>,
        border: impl Fn(usize) -> Option<i64>,
    ) -> Vec<Run> {
        let Site { problem, spans, .. } = *store.site;
        let residues = self.residues.get_or_init(|| {
            let of_segment = |segment: &Segment| problem.filter.phase_from_last(segment.phase);
            self.segments.iter().flat_map(of_segment).map(|phase| phase.residue).collect()
        });
        let spatial = problem.axes.len() - 1;
        // Of an axis with outputs outside, its place among the residues, and which of these are inside.
        let inside = |axis: usize| {
            let q = store.member.spans[axis].first + spans[axis].first + border(axis)?;
            let first = problem.axes[axis].output_at(q, 0);
            Some((spatial - axis, -first..problem.axes[axis].output as i64 - first))
        };
        let inside: Vec<(usize, Range<i64>)> = (1..=spatial).filter_map(inside).collect();
        let are_inside = |(_, residues): &(&Run, &[usize])| {
            inside.iter().all(|(place, inside)| inside.contains(&(residues[*place] as i64)))
        };
        let pieces = self.pieces.iter().zip(residues.chunks_exact(spatial)).filter(are_inside);
        joined(pieces.map(|(run, _)| *run))
    }
}

/// As few arithmetic progressions as these are together.
fn joined(all: impl Iterator<Item = Run>) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    for run in all {
        match runs.last().and_then(|last| last.joined(&run)) {
            Some(joined) => {
                runs.pop();
                runs.push(joined);
            }
            None => runs.push(run),
        }
    }
    runs
}

impl Run {
    /// The channels of one phase.
    fn of<T: Real>(problem: &Problem<'_, T>, segment: &Segment) -> Self {
        let phases = problem.filter.phase_from_last(segment.phase).zip(problem.axes.iter().rev());
        let to_phase: isize = phases.map(|(phase, axis)| phase.residue as isize * axis.y_stride).sum();
        let stride = problem.y_channel_stride;
        let offset = to_phase + segment.first_channel as isize * stride;
        Run { column: segment.column, len: segment.channels, offset, stride }
    }

    /// Both as one progression, if they are.
    fn joined(&self, next: &Run) -> Option<Run> {
        let gap = next.offset - (self.offset + (self.len as isize - 1) * self.stride);
        let own = self.len == 1 || self.stride == gap;
        let theirs = next.len == 1 || next.stride == gap;
        let side_by_side = next.column == self.column + self.len;
        (own && theirs && side_by_side).then_some(Run { len: self.len + next.len, stride: gap, ..*self })
    }
}
