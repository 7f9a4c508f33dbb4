//! Where the sums of columns belong, as far as it depends on the filter alone.

use std::ops::Range;

use outstride_kernels::Real;
use outstride_spec::Phase;

use super::super::axis::{EngineAxis, Span};
use super::super::pack::PackedFilter;

/// Phases of the last axis that are computed before their outputs are stored: whole lines of them.
const PHASES_AT_ONCE: usize = 32;

/// One output channel of one phase.
#[derive(Debug)]
pub(super) struct Column {
    pub(super) channel: usize,
    /// Of the batch and every spatial axis.
    pub(super) residues: Vec<usize>,
}

/// Outputs of one channel along the last axis.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) channel: usize,
    /// Which of the rows it is.
    pub(super) row: usize,
    /// By rising residue along the last axis: the residue, and the column.
    pub(super) phases: Vec<(usize, usize)>,
}

/// The outputs of some columns, which are stored together.
#[derive(Debug)]
pub(super) struct Outputs {
    /// The columns by the runs of outputs that they belong to.
    pub(super) runs: Vec<Run>,
    /// Of the batch and every spatial axis but the last, the residues of runs; every combination once.
    pub(super) rows: Vec<Vec<usize>>,
    /// Of the batch and every spatial axis, the residues of the columns, each once.
    residues: Vec<Vec<usize>>,
    /// How many columns there are.
    pub(super) columns: usize,
    /// Whether the runs are those of neighbouring channels, and otherwise the same.
    pub(super) has_neighbours: bool,
}

impl Outputs {
    pub(super) fn of<'a>(columns: impl Iterator<Item = &'a Column> + Clone) -> Self {
        let axes = columns.clone().next().map_or(0, |column| column.residues.len());
        let residues =
            (0..axes).map(|axis| distinct(columns.clone().map(|column| column.residues[axis]))).collect();
        let mut rows: Vec<Vec<usize>> = Vec::new();
        let mut runs: Vec<Run> = Vec::new();
        for (number, column) in columns.clone().enumerate() {
            let (outer, last) = column.residues.split_at(axes - 1);
            let row = rows.iter().position(|row| row == outer).unwrap_or_else(|| {
                rows.push(outer.to_vec());
                rows.len() - 1
            });
            let phase = (last[0], number);
            match runs.iter_mut().find(|run| run.channel == column.channel && run.row == row) {
                Some(run) => run.phases.push(phase),
                None => runs.push(Run { channel: column.channel, row, phases: vec![phase] }),
            }
        }
        runs.iter_mut().for_each(|run| run.phases.sort_unstable());
        let are_neighbours = |pair: &[Run]| {
            let [a, b] = pair else { return false };
            let residues = |run: &Run| run.phases.iter().map(|&(residue, _)| residue).collect::<Vec<_>>();
            a.channel + 1 == b.channel && a.row == b.row && residues(a) == residues(b)
        };
        let has_neighbours = runs.windows(2).all(are_neighbours);
        Outputs { columns: columns.count(), residues, runs, rows, has_neighbours }
    }

    /// The positions at which any of the columns has outputs.
    pub(super) fn positions(&self, axes: &[EngineAxis<'_>]) -> Vec<Span> {
        axes.iter().zip(&self.residues).map(|(axis, residues)| axis.hull(residues.iter().copied())).collect()
    }
}

/// The phases that are stored together: some of the last axis, and the same of all others.
pub(super) fn phases_together<T: Real>(filter: &PackedFilter<T>) -> impl Iterator<Item = Range<usize>> {
    let inner = filter.phases.last().map_or(1, Vec::len);
    let phases: usize = filter.phases.iter().map(Vec::len).product();
    (0..phases).step_by(inner.max(1)).flat_map(move |outer| {
        let end = outer + inner;
        (outer..end).step_by(PHASES_AT_ONCE).map(move |first| first..end.min(first + PHASES_AT_ONCE))
    })
}

/// The residues of a phase, and that of the batch before them.
pub(super) fn residues(phases: &[&Phase]) -> Vec<usize> {
    std::iter::once(0).chain(phases.iter().map(|phase| phase.residue)).collect()
}

/// Each value once, rising.
pub(super) fn distinct(values: impl Iterator<Item = usize>) -> Vec<usize> {
    let mut values: Vec<usize> = values.collect();
    values.sort_unstable();
    values.dedup();
    values
}
