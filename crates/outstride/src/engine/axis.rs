//! The axes an engine loops over: the batch, which is an axis of kernel 1 and stride 1, and the spatial ones.

use std::ops::Range;

use outstride_spec::{Geometry, Phase, Tap};

/// One axis of a running problem.
#[derive(Clone, Debug)]
pub(crate) struct EngineAxis<'a> {
    pub(crate) input: usize,
    pub(crate) output: usize,
    pub(crate) stride: i64,
    pub(crate) pad_begin: i64,
    pub(crate) x_stride: isize,
    pub(crate) y_stride: isize,
    pub(crate) phases: &'a [Phase],
}

/// Consecutive positions `q` of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    pub(crate) first: i64,
    pub(crate) count: usize,
}

impl Span {
    /// None at all.
    pub(crate) const EMPTY: Span = Span { first: 0, count: 0 };

    pub(crate) fn end(&self) -> i64 {
        self.first + self.count as i64
    }

    pub(crate) fn intersect(&self, other: &Span) -> Span {
        let first = self.first.max(other.first);
        Span { first, count: (self.end().min(other.end()) - first).max(0) as usize }
    }

    pub(crate) fn contains(&self, other: &Span) -> bool {
        self.first <= other.first && other.end() <= self.end()
    }

    /// The smallest span that holds both.
    pub(crate) fn hull(&self, other: &Span) -> Span {
        if self.count == 0 {
            return *other;
        }
        if other.count == 0 {
            return *self;
        }
        let first = self.first.min(other.first);
        Span { first, count: (self.end().max(other.end()) - first) as usize }
    }
}

/// Of rising or falling deltas, those at which some position of `read` finds an index of `inside`: a kernel may have many more
/// taps than the input has elements, and only these may cost time.
#[inline]
pub(crate) fn meeting(deltas: &[usize], read: Span, inside: Span) -> Range<usize> {
    if read.count == 0 || inside.count == 0 {
        return 0..0;
    }
    let least = read.first - (inside.end() - 1);
    let greatest = read.end() - 1 - inside.first;
    let meets = |&delta: &usize| (least..=greatest).contains(&(delta as i64));
    if deltas.first().is_some_and(meets) && deltas.last().is_some_and(meets) {
        return 0..deltas.len();
    }
    let (start, end) = if deltas.first() <= deltas.last() {
        (
            deltas.partition_point(|&delta| (delta as i64) < least),
            deltas.partition_point(|&delta| delta as i64 <= greatest),
        )
    } else {
        (
            deltas.partition_point(|&delta| delta as i64 > greatest),
            deltas.partition_point(|&delta| delta as i64 >= least),
        )
    };
    start..end.max(start)
}

/// The positions at which all of rising or falling deltas find an index of `inside`.
pub(crate) fn all_meet(deltas: &[usize], inside: Span) -> Span {
    let (Some(&first), Some(&last)) = (deltas.first(), deltas.last()) else {
        return Span { first: 0, count: 0 };
    };
    let (least, greatest) = (first.min(last), first.max(last));
    let first = inside.first + greatest as i64;
    Span { first, count: (inside.end() + least as i64 - first).max(0) as usize }
}

/// Whether steps of an axis, so far apart, go right behind so many of the next faster axis.
pub(crate) fn follows(slower: isize, faster: isize, count: usize) -> bool {
    faster.checked_mul(count as isize) == Some(slower)
}

/// The only phase of the batch axis.
pub(crate) fn batch_phases() -> Vec<Phase> {
    vec![Phase { residue: 0, taps: vec![Tap { kernel: 0, delta: 0 }] }]
}

impl<'a> EngineAxis<'a> {
    /// All indices of the input.
    pub(crate) fn whole_input(&self) -> Span {
        Span { first: 0, count: self.input }
    }

    /// The batch and the spatial axes; strides are those of canonical `(N, C, X…)` views.
    pub(crate) fn all(
        geometry: &Geometry,
        batch_phases: &'a [Phase],
        phases: &'a [Vec<Phase>],
        x_strides: &[isize],
        y_strides: &[isize],
    ) -> Vec<Self> {
        let batch = EngineAxis {
            input: geometry.batch(),
            output: geometry.batch(),
            stride: 1,
            pad_begin: 0,
            x_stride: x_strides[0],
            y_stride: y_strides[0],
            phases: batch_phases,
        };
        let spatial = geometry.axes().iter().enumerate().map(|(index, axis)| EngineAxis {
            input: axis.input,
            output: axis.output,
            stride: axis.stride as i64,
            pad_begin: axis.pad_begin,
            x_stride: x_strides[2 + index],
            y_stride: y_strides[2 + index],
            phases: &phases[index],
        });
        std::iter::once(batch).chain(spatial).collect()
    }

    /// The positions at which the phase of this residue has outputs: `0 ≤ s·q + r − pad_begin < output`.
    pub(crate) fn span(&self, residue: usize) -> Span {
        let residue = residue as i64;
        let first_output = (residue - self.pad_begin).rem_euclid(self.stride);
        let left = self.output as i64 - first_output;
        Span {
            first: (first_output + self.pad_begin - residue) / self.stride,
            count: if left > 0 { ((left - 1) / self.stride + 1) as usize } else { 0 },
        }
    }

    /// The positions at which a phase of any of these residues has outputs.
    pub(crate) fn hull(&self, residues: impl Iterator<Item = usize>) -> Span {
        let spans = residues.map(|residue| self.span(residue));
        spans.fold(Span { first: 0, count: 0 }, |hull, span| hull.hull(&span))
    }

    /// All residues, whether they have a phase or not.
    pub(crate) fn residues(&self) -> Range<usize> {
        0..self.stride as usize
    }

    /// The positions at which any phase has outputs.
    pub(crate) fn positions(&self) -> Span {
        self.hull(self.phases.iter().map(|phase| phase.residue))
    }

    /// The largest delta of any tap.
    pub(crate) fn reach(&self) -> usize {
        let largest = |phase: &Phase| phase.taps.last().map_or(0, |tap| tap.delta);
        self.phases.iter().map(largest).max().unwrap_or(0)
    }

    /// The output of position `q` in the phase of residue `r`.
    pub(crate) fn output_at(&self, q: i64, residue: usize) -> i64 {
        q * self.stride + residue as i64 - self.pad_begin
    }

    /// Whether every residue that has outputs has a phase, so that nothing is left to the bias alone.
    pub(crate) fn is_covered(&self) -> bool {
        self.phases.len() as i64 == self.stride
    }

    /// The share of residues that have a phase.
    pub(crate) fn covered_share(&self) -> f64 {
        self.phases.len() as f64 / self.stride as f64
    }

    /// The share of all taps that meet an input anywhere: of a kernel that is larger than the input, few may.
    pub(crate) fn met_share(&self) -> f64 {
        let met = |phase: &Phase| {
            let deltas: Vec<usize> = phase.taps.iter().map(|tap| tap.delta).collect();
            meeting(&deltas, self.span(phase.residue), self.whole_input()).len()
        };
        let taps: usize = self.phases.iter().map(|phase| phase.taps.len()).sum();
        self.phases.iter().map(met).sum::<usize>() as f64 / taps.max(1) as f64
    }

    /// The share of taps that meet an input at some of so many positions that follow each other.
    pub(crate) fn share_met_together(&self, positions: usize) -> f64 {
        let (mut met, mut all) = (0.0, 0.0);
        for phase in self.phases {
            let span = self.span(phase.residue);
            for tap in &phase.taps {
                let read = Span { first: span.first - tap.delta as i64, count: span.count };
                let inside = read.intersect(&self.whole_input()).count;
                // Runs that begin so many positions before them meet them, too.
                let beside = if inside > 0 { positions - 1 } else { 0 };
                met += (inside + beside).min(span.count) as f64;
                all += span.count as f64;
            }
        }
        if all > 0.0 { met / all } else { 1.0 }
    }

    /// The same outputs, all of one phase, given that of the batch.
    pub(crate) fn covered(&self, batch_phases: &'a [Phase]) -> Self {
        EngineAxis { stride: 1, pad_begin: 0, phases: batch_phases, ..self.clone() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn meeting_deltas_are_those_that_find_an_index() {
        for deltas in [[0, 1, 3, 4, 9], [9, 4, 3, 1, 0]] {
            for (first, count) in (-4..14).flat_map(|first| (0..4).map(move |count| (first, count))) {
                let (read, inside) = (Span { first, count }, Span { first: 1, count: 4 });
                let meets =
                    |&delta: &usize| (first..read.end()).any(|q| (1..5).contains(&(q - delta as i64)));
                let found = meeting(&deltas, read, inside);
                assert!(deltas[found.clone()].iter().all(meets), "{read:?}");
                assert_eq!(found.len(), deltas.iter().filter(|delta| meets(delta)).count(), "{read:?}");
            }
        }
    }

    #[test]
    fn all_deltas_meet_where_each_does() {
        let inside = Span { first: 1, count: 4 };
        for deltas in [&[0, 1][..], &[2], &[3, 0], &[1, 2, 9], &[9, 2, 1], &[]] {
            let found = all_meet(deltas, inside);
            for q in -4..14 {
                let meets = |&delta: &usize| (1..5).contains(&(q - delta as i64));
                let all = !deltas.is_empty() && deltas.iter().all(meets);
                assert_eq!(found.first <= q && q < found.end(), all, "{deltas:?} at {q}");
            }
        }
    }

    #[test]
    fn spans_partition_the_outputs() {
        let phases = batch_phases();
        for stride in 1..6 {
            for pad_begin in -7..8 {
                for output in 0..12 {
                    let axis = EngineAxis {
                        input: 4,
                        output,
                        stride,
                        pad_begin,
                        x_stride: 1,
                        y_stride: 1,
                        phases: &phases,
                    };
                    let mut seen = vec![0; output];
                    for residue in 0..stride as usize {
                        let span = axis.span(residue);
                        for q in span.first..span.end() {
                            seen[axis.output_at(q, residue) as usize] += 1;
                        }
                    }
                    assert_eq!(seen, vec![1; output], "stride {stride}, pad {pad_begin}");
                }
            }
        }
    }
}
