//! Storing sums position by position: runs of channels where they are side by side, single elements elsewhere.

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
struct Run {
    column: usize,
    len: usize,
    /// From the output of residue 0 and channel 0.
    offset: isize,
    stride: isize,
}

/// Where the sums of one panel go.
pub(super) struct PositionStore<'a, T: Real> {
    site: &'a Site<'a, T>,
    member: &'a Member,
    width: usize,
    runs: Vec<Run>,
    /// The output of channel 0 at the first position.
    base: isize,
    /// Where several phases share the panel, of which some may have outputs outside.
    shared: Option<SharedStore>,
    /// Where a position's outputs are side by side, those of all positions that have them inside: kernels can write there.
    rows: Option<OutputRows<'a, T>>,
}

impl<'a, T: Real> PositionStore<'a, T> {
    pub(super) fn new(site: &'a Site<'a, T>, member: &'a Member, prepared: &Prepared<'_, T>) -> Self {
        let problem = site.problem;
        let segments = panels_of(problem.filter).segments(prepared.panel);
        let shared = member.shared.then(|| SharedStore::new(site, member, segments));
        let runs = match &shared {
            Some(shared) => joined(shared.pieces.iter().map(|piece| piece.run)),
            None => joined(segments.iter().map(|segment| Run::of(problem, segment))),
        };
        let mut base = problem.y_channel(site.group, 0);
        // Of a member with several phases, each panel has its own; where these share it, pieces know theirs.
        let phase = (!member.shared).then(|| problem.filter.phase(segments[0].phase));
        for (axis, of) in problem.axes.iter().enumerate() {
            let residue = match &phase {
                Some(phase) if axis > 0 => phase[axis - 1].residue,
                _ => 0,
            };
            let first = of.output_at(member.spans[axis].first, residue) + site.spans[axis].first * of.stride;
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
        let of_segment = size_of::<Run>() + size_of::<Piece>() + axes * size_of::<usize>();
        size_of::<Self>() + axes * size_of::<Span>() + segments * of_segment
    }

    /// Where kernels can write the sums of any positions, if they can.
    pub(super) fn all_output_rows(&self) -> Option<&OutputRows<'a, T>> {
        self.rows.as_ref().filter(|_| self.shared.is_none())
    }

    /// Where kernels can write the sums of a tile, if they can.
    pub(super) fn output_rows(&self, tile: usize) -> Option<&OutputRows<'a, T>> {
        let is_inside = |shared: &SharedStore| shared.is_interior(self.site.positions.extent(tile));
        self.rows.as_ref().filter(|_| self.shared.as_ref().is_none_or(is_inside))
    }

    /// Stores the sums of some pieces, given those of their tiles from `first` on, `tile_len` apart.
    pub(super) fn store(&self, pieces: Range<usize>, first: usize, sums: &[T], tile_len: usize) {
        let Site { problem, positions, .. } = *self.site;
        for number in pieces {
            let piece = &positions.pieces[number];
            let sums = &sums[(piece.tile - first) * tile_len + piece.row * self.width..];
            let outputs = &positions.outputs()[piece.first..piece.first + piece.count];
            match &self.shared {
                Some(shared) if !shared.is_interior(positions.extent(number)) => {
                    self.store_border(shared, piece.first, outputs, sums);
                }
                _ => store_rows(problem, &self.runs, self.base, outputs, sums, self.width),
            }
        }
    }

    /// Stores the sums of positions from `first` on, of which some have outputs outside.
    fn store_border(&self, shared: &SharedStore, first: usize, outputs: &[isize], sums: &[T]) {
        let Site { problem, spans, positions, .. } = *self.site;
        positions.for_each_run(first..first + outputs.len(), |run, index, along| {
            let rows = run.start - first..run.end - first;
            let are_inside = |(axis, &at): (usize, &i64)| {
                axis == along || shared.inside[axis].contains(&Span { first: at, count: 1 })
            };
            let inside =
                if index.iter().enumerate().all(are_inside) { shared.inside[along] } else { Span::EMPTY };
            let inside = inside.intersect(&Span { first: index[along], count: rows.len() });
            // Together those inside; what is before and behind them, one by one.
            let before = (inside.first - index[along]).clamp(0, rows.len() as i64) as usize;
            let (begin, end) = (rows.start + before, rows.start + before + inside.count);
            if inside.count > 0 {
                let sums = &sums[begin * self.width..];
                store_rows(problem, &self.runs, self.base, &outputs[begin..end], sums, self.width);
            }
            let mut index: Vec<i64> = index.iter().zip(spans).map(|(at, span)| span.first + at).collect();
            let first_index = index[along];
            for row in (rows.start..begin).chain(end..rows.end) {
                index[along] = first_index + (row - rows.start) as i64;
                let sums = &sums[row * self.width..][..self.width];
                let base = self.base + outputs[row];
                store_border_row(problem, self.member, &shared.pieces, base, &index, sums);
            }
        });
    }
}

impl<T: Real> PositionStore<'_, T> {
    /// Where kernels can write rows of columns from: none unless channels are side by side.
    pub(super) fn targets(&self) -> Option<impl Iterator<Item = (Range<usize>, RowsTarget<'_>)>> {
        let output = T::as_f32_output(self.site.problem.y)?;
        let fits = |run: &Run| run.stride == 1 && run.len <= FINISHED_COLUMNS;
        let target = move |run: &Run| {
            let target =
                RowsTarget { output, first: self.base + run.offset, stream: self.site.problem.stream };
            (run.column..run.column + run.len, target)
        };
        self.runs.iter().all(fits).then(|| self.runs.iter().map(target))
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

/// Stores a row of shared panels where some of the phases may lie outside the output.
fn store_border_row<T: Real>(
    problem: &Problem<'_, T>,
    member: &Member,
    pieces: &[Piece],
    base: isize,
    index: &[i64],
    sums: &[T],
) {
    let is_inside = |piece: &&Piece| {
        problem.axes[1..].iter().enumerate().all(|(axis, of)| {
            let q = member.spans[axis + 1].first + index[axis + 1];
            (0..of.output as i64).contains(&of.output_at(q, piece.residues[axis]))
        })
    };
    let store = |run: Run| {
        // SAFETY: as in `store_rows`.
        unsafe { problem.y.write(base + run.offset, run.stride, &sums[run.column..][..run.len]) };
    };
    let mut pending: Option<Run> = None;
    for piece in pieces.iter().filter(is_inside) {
        let joined = pending.as_ref().and_then(|run| run.joined(&piece.run));
        if let (None, Some(run)) = (joined, pending) {
            store(run);
        }
        pending = joined.or(Some(piece.run));
    }
    pending.into_iter().for_each(store);
}

/// What is known of a panel that several phases share.
struct SharedStore {
    pieces: Vec<Piece>,
    /// Per axis, between which indices of the task all outputs are inside.
    inside: Vec<Span>,
}

/// Columns of a panel that belong to one phase.
struct Piece {
    run: Run,
    /// Of its phase, per spatial axis.
    residues: Vec<usize>,
}

impl SharedStore {
    fn new<T: Real>(site: &Site<'_, T>, member: &Member, segments: &[Segment]) -> Self {
        let problem = site.problem;
        let piece = |segment: &Segment| {
            let phase = problem.filter.phase(segment.phase);
            let residues: Vec<usize> = phase.iter().map(|phase| phase.residue).collect();
            let distances = residues.iter().zip(&problem.axes[1..]);
            let to_phase: isize = distances.map(|(&residue, axis)| residue as isize * axis.y_stride).sum();
            let of_channels = Run::of(problem, segment);
            Piece { run: Run { offset: of_channels.offset + to_phase, ..of_channels }, residues }
        };
        let inside = problem.axes.iter().enumerate().map(|(axis, of)| {
            let Span { first, count } = member.inside(axis, of);
            Span { first: first - site.spans[axis].first, count }
        });
        SharedStore { pieces: segments.iter().map(piece).collect(), inside: inside.collect() }
    }

    /// Whether all outputs of all positions lie inside the output.
    fn is_interior(&self, extent: &[Span]) -> bool {
        self.inside.iter().zip(extent).all(|(inside, extent)| inside.contains(extent))
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
        let stride = problem.y_channel_stride;
        let offset = segment.first_channel as isize * stride;
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
