//! Phases and taps: the form in which engines compute the operator without inserting zeros.
//!
//! In padded coordinates `o' = o + pad_begin = s·q + r`, the outputs of one residue `r` form a *phase*. Kernel index
//! `t` feeds the phase of residue `t·d mod s`, where it reads the input at `q − delta`:
//!
//! ```text
//! o' = s·q + r = s·i + d·t     ⇒     i = q − delta   with   delta = (d·t − r) / s
//! ```
//!
//! Neither depends on the input's size or on the padding, so weights are laid out once for all of them.

/// One kernel element that feeds a phase of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Tap {
    /// Which kernel element.
    pub kernel: usize,
    /// How far before position `q` it reads the input.
    pub delta: usize,
}

/// The outputs of one residue class of an axis, and the taps that feed them.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Phase {
    /// `o' mod s`
    pub residue: usize,
    /// By rising kernel index, and so by rising delta.
    pub taps: Vec<Tap>,
}

impl Phase {
    /// The phases of an axis that have a tap, by rising residue. The outputs of all others hold the bias alone: there
    /// are such outputs where the kernel is smaller than the stride, or shares a factor with the dilation.
    ///
    /// ```
    /// use outstride_spec::Phase;
    ///
    /// let phases = Phase::of_axis(3, 2, 1);
    /// assert_eq!(phases[0].taps.iter().map(|tap| (tap.kernel, tap.delta)).collect::<Vec<_>>(), [(0, 0), (2, 1)]);
    /// assert_eq!(phases[1].taps.iter().map(|tap| (tap.kernel, tap.delta)).collect::<Vec<_>>(), [(1, 0)]);
    /// ```
    pub fn of_axis(kernel: usize, stride: usize, dilation: usize) -> Vec<Phase> {
        let mut taps: Vec<(usize, Tap)> = (0..kernel)
            .map(|t| {
                // In 128 bits and saturating: a dilation is only checked against the input when there is one.
                let (position, stride) = (t as u128 * dilation as u128, stride as u128);
                let delta = usize::try_from(position / stride).unwrap_or(usize::MAX);
                ((position % stride) as usize, Tap { kernel: t, delta })
            })
            .collect();
        taps.sort_by_key(|&(residue, tap)| (residue, tap.kernel));
        let of_residue = |taps: &[(usize, Tap)]| Phase {
            residue: taps[0].0,
            taps: taps.iter().map(|&(_, tap)| tap).collect(),
        };
        taps.chunk_by(|a, b| a.0 == b.0).map(of_residue).collect()
    }

    /// The tap that reads `delta` before position `q`, if there is one. Kernels may have millions of taps.
    pub fn tap_at(&self, delta: usize) -> Option<&Tap> {
        let index = self.taps.binary_search_by_key(&delta, |tap| tap.delta).ok()?;
        Some(&self.taps[index])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Axis;

    #[test]
    fn phases_hold_every_contribution_of_the_definition() {
        for (kernel, stride, dilation) in
            [(4, 2, 1), (3, 2, 1), (2, 5, 1), (5, 3, 2), (4, 6, 4), (3, 1, 2), (1, 1, 1)]
        {
            for pad_begin in -3..6 {
                let axis = Axis { input: 6, kernel, stride, dilation, output: 30, pad_begin };
                let phases = Phase::of_axis(kernel, stride, dilation);
                for phase in &phases {
                    let by_delta = (0..40).filter_map(|delta| phase.tap_at(delta));
                    assert!(by_delta.eq(&phase.taps));
                }
                assert_eq!(phases.iter().map(|phase| phase.taps.len()).sum::<usize>(), kernel);
                for output in 0..axis.output {
                    let padded = output as i64 + pad_begin;
                    let (q, residue) = (padded.div_euclid(stride as i64), padded.rem_euclid(stride as i64));
                    let found: Vec<(usize, usize)> = phases
                        .iter()
                        .filter(|phase| phase.residue as i64 == residue)
                        .flat_map(|phase| &phase.taps)
                        .map(|tap| (tap.kernel, q - tap.delta as i64))
                        .filter(|&(_, i)| 0 <= i && i < axis.input as i64)
                        .map(|(t, i)| (t, i as usize))
                        .collect();
                    assert_eq!(found, axis.contributions(output).collect::<Vec<_>>());
                }
            }
        }
    }
}
