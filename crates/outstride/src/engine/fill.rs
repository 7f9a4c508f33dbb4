//! The outputs that no tap reaches: they hold the activated bias.

use outstride_kernels::{Output, Real};

use super::axis::EngineAxis;

/// Writes the bias to every output whose residue along some axis has no phase.
///
/// # Safety
///
/// No other thread may write these elements at the same time.
pub(crate) unsafe fn fill_uncovered<T: Real>(
    axes: &[EngineAxis<'_>],
    y: &Output<'_, T>,
    y_offset: usize,
    y_channel_stride: isize,
    bias: &[T],
) {
    if axes.iter().all(EngineAxis::is_covered) {
        return;
    }
    for (channel, &value) in bias.iter().enumerate() {
        let base = y_offset as isize + channel as isize * y_channel_stride;
        // SAFETY: handed on from the caller.
        unsafe { fill_axis(axes, y, base, value) };
    }
}

/// Writes the bias to every output, for inputs without elements.
///
/// # Safety
///
/// As [`fill_uncovered`].
pub(crate) unsafe fn fill_everything<T: Real>(
    axes: &[EngineAxis<'_>],
    y: &Output<'_, T>,
    y_offset: usize,
    y_channel_stride: isize,
    bias: &[T],
) {
    let [axis, inner @ ..] = axes else { return };
    for (channel, &value) in bias.iter().enumerate() {
        let base = y_offset as isize + channel as isize * y_channel_stride;
        // SAFETY: handed on from the caller.
        unsafe { fill_all(0, axis.output as i64, axis.y_stride, inner, y, base, value) };
    }
}

/// # Safety
///
/// As [`fill_uncovered`].
unsafe fn fill_axis<T: Real>(axes: &[EngineAxis<'_>], y: &Output<'_, T>, base: isize, value: T) {
    let [axis, inner @ ..] = axes else { return };
    let inner_covered = inner.iter().all(EngineAxis::is_covered);
    let mut phases = axis.phases.iter().peekable();
    // Outputs by rising residue of `o + pad_begin`: the gaps between phases are runs of uncovered residues.
    let mut residue = 0i64;
    while residue < axis.stride {
        match phases.peek() {
            Some(phase) if phase.residue as i64 == residue => {
                if !inner_covered {
                    let span = axis.span(phase.residue);
                    for q in span.first..span.end() {
                        let at = base + axis.output_at(q, phase.residue) as isize * axis.y_stride;
                        // SAFETY: handed on from the caller.
                        unsafe { fill_axis(inner, y, at, value) };
                    }
                }
                phases.next();
                residue += 1;
            }
            next => {
                let gap_end = next.map_or(axis.stride, |phase| phase.residue as i64);
                // SAFETY: handed on from the caller.
                unsafe { fill_residues(axis, residue, gap_end, inner, y, base, value) };
                residue = gap_end;
            }
        }
    }
}

/// Fills every output of an axis whose residue lies in `from..to`, with all that lies inside it.
///
/// # Safety
///
/// As [`fill_uncovered`].
unsafe fn fill_residues<T: Real>(
    axis: &EngineAxis<'_>,
    from: i64,
    to: i64,
    inner: &[EngineAxis<'_>],
    y: &Output<'_, T>,
    base: isize,
    value: T,
) {
    let first_q = (axis.pad_begin - axis.stride).div_euclid(axis.stride);
    let last_q = (axis.pad_begin + axis.output as i64).div_euclid(axis.stride);
    for q in first_q..=last_q {
        let start = (q * axis.stride + from - axis.pad_begin).max(0);
        let end = (q * axis.stride + to - axis.pad_begin).min(axis.output as i64);
        // SAFETY: handed on from the caller.
        unsafe { fill_all(start, end, axis.y_stride, inner, y, base, value) };
    }
}

/// Fills the outputs `start..end` of an axis and everything inside them.
///
/// # Safety
///
/// As [`fill_uncovered`].
unsafe fn fill_all<T: Real>(
    start: i64,
    end: i64,
    stride: isize,
    inner: &[EngineAxis<'_>],
    y: &Output<'_, T>,
    base: isize,
    value: T,
) {
    if start >= end {
        return;
    }
    match inner {
        // SAFETY: handed on from the caller.
        [] => unsafe { y.fill(base + start as isize * stride, stride, (end - start) as usize, value) },
        [next, rest @ ..] => {
            for output in start..end {
                let at = base + output as isize * stride;
                // SAFETY: handed on from the caller.
                unsafe { fill_all(0, next.output as i64, next.y_stride, rest, y, at, value) };
            }
        }
    }
}
