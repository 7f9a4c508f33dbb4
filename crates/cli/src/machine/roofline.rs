//! The ceilings, measured: multiply-adds in registers, and reading and writing of footprints from the caches to memory.
//!
//! ```text
//! no call can take less than  max( flops / arithmetic,  read bytes / reading + written bytes / writing )
//! ```
//!
//! where the last two depend on how much memory the call touches. A path that needs fewer multiplications than the
//! definition may beat the first term; nothing beats the second but data left in a cache by whoever ran before.

use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Context as _, Result};
use outstride::{Axis, DType, Isa, Kernels, Path, Plan, Real, kernels};

use super::Team;

/// Footprints at which reading and writing are measured, of all threads together.
const FOOTPRINTS: [usize; 5] = [1 << 18, 1 << 21, 1 << 23, 1 << 25, 1 << 28];

/// Each ceiling is the best of probes that together take this many seconds.
const PROBE_SECONDS: f64 = 0.03;

/// The ceilings of an instruction set on some threads.
#[derive(Clone, Debug)]
pub(crate) struct Roofline {
    pub(crate) isa: Isa,
    /// Floating-point operations per second.
    pub(crate) arithmetic: f64,
    /// The same by matrix tiles, where there are any.
    pub(crate) tiles: Option<f64>,
    levels: Vec<Level>,
}

/// Bytes per second at a footprint.
#[derive(Clone, Copy, Debug)]
struct Level {
    footprint: usize,
    read: f64,
    write: f64,
}

/// The least seconds that a call can take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bound {
    pub(crate) arithmetic: f64,
    pub(crate) memory: f64,
}

impl Bound {
    pub(crate) fn seconds(&self) -> f64 {
        self.arithmetic.max(self.memory)
    }

    /// Which ceiling it is.
    pub(crate) fn name(&self) -> &'static str {
        if self.arithmetic >= self.memory { "arithmetic" } else { "memory" }
    }
}

impl Roofline {
    /// Measures the ceilings for tensors of a type. Takes about half a second.
    pub(crate) fn measure(team: &Team, dtype: DType) -> Result<Self> {
        match dtype {
            DType::F64 => Self::measure_in::<f64>(team, dtype),
            _ => Self::measure_in::<f32>(team, dtype),
        }
    }

    /// For tensors that are computed with in `T`.
    fn measure_in<T: Real>(team: &Team, dtype: DType) -> Result<Self> {
        let isa = Isa::best();
        let kernels = kernels::<T>(isa).context("every build has the portable kernels")?;
        let arithmetic = flops(team, 1 << 18, |rounds| Some(kernels.probe_arithmetic(rounds)));
        let arithmetic = arithmetic.context("every instruction set has a probe")?;
        let tiles = flops(team, 1 << 9, |rounds| kernels.probe_matrix_tiles(dtype, rounds));
        let part = FOOTPRINTS[FOOTPRINTS.len() - 1] / size_of::<T>() / team.threads();
        let memory: Vec<Mutex<Vec<T>>> =
            (0..team.threads()).map(|_| Mutex::new(vec![T::default(); part])).collect();
        let level = |&footprint: &usize| {
            let length = footprint / size_of::<T>() / team.threads();
            // Enough passes that waking the threads does not count.
            let passes = ((1 << 25) / footprint).max(1);
            let rate = |probe: fn(&Kernels<T>, &mut [T])| {
                let seconds = fastest(|| {
                    team.on_every_thread(|thread| {
                        let mut own = memory[thread].lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                        (0..passes).for_each(|_| probe(kernels, &mut own[..length]));
                    });
                });
                (passes * length * team.threads() * size_of::<T>()) as f64 / seconds
            };
            let write = rate(|kernels, own| kernels.probe_write(own));
            let read = rate(|kernels, own| kernels.probe_read(own));
            Level { footprint, read, write }
        };
        Ok(Roofline { isa, arithmetic, tiles, levels: FOOTPRINTS.iter().map(level).collect() })
    }

    /// Bytes per second of reading and of writing from memory proper.
    pub(crate) fn memory(&self) -> (f64, f64) {
        self.levels.last().map_or((0.0, 0.0), |level| (level.read, level.write))
    }

    /// The least time of a planned call.
    pub(crate) fn bound(&self, plan: &Plan) -> Bound {
        let bytes = |shape: Vec<usize>| {
            shape.iter().map(|&size| size as f64).product::<f64>() * plan.dtype().size() as f64
        };
        let geometry = plan.geometry();
        // On small maps most of a kernel may fall outside the output; its weights need not be read.
        let used = geometry.axes().iter().map(|axis| used_kernel(axis) / axis.kernel as f64).product::<f64>();
        let read = bytes(geometry.input_shape()) + bytes(geometry.filter_shape()) * used;
        let written = bytes(geometry.output_shape());
        let (reading, writing) = self.bandwidth(read + written);
        let tiles = self.tiles.filter(|_| plan.path() == Path::Tile);
        Bound {
            arithmetic: plan.flops() as f64 / tiles.unwrap_or(self.arithmetic),
            memory: read / reading + written / writing,
        }
    }

    /// Reading and writing at a footprint, between the measured ones in proportion to the logarithm of the size.
    fn bandwidth(&self, footprint: f64) -> (f64, f64) {
        let above = self.levels.iter().position(|level| level.footprint as f64 >= footprint);
        let above = above.unwrap_or(self.levels.len() - 1);
        let (low, high) = (&self.levels[above.saturating_sub(1)], &self.levels[above]);
        let (from, to) = ((low.footprint as f64).ln(), (high.footprint as f64).ln());
        let part = if to > from { ((footprint.ln() - from) / (to - from)).clamp(0.0, 1.0) } else { 1.0 };
        let between = |low: f64, high: f64| low + (high - low) * part;
        (between(low.read, high.read), between(low.write, high.write))
    }
}

/// How many kernel elements of an axis meet an input and land inside the output.
fn used_kernel(axis: &Axis) -> f64 {
    let (stride, last) = (axis.stride as i64, axis.input as i64 - 1);
    let lands = |t: &usize| {
        // i·s + t·d − begin for the input i: at least 0, below the output's size.
        let shift = axis.pad_begin - *t as i64 * axis.dilation as i64;
        let first = (shift + stride - 1).div_euclid(stride).max(0);
        first <= (shift + axis.output as i64 - 1).div_euclid(stride).min(last)
    };
    (0..axis.kernel).filter(lands).count() as f64
}

/// Operations per second of a probe that returns how many it did, the same number in every round.
fn flops(team: &Team, rounds: usize, probe: impl Fn(usize) -> Option<u128> + Sync) -> Option<f64> {
    let per_round = probe(1)? as f64;
    let seconds = fastest(|| {
        team.on_every_thread(|_| {
            probe(rounds);
        });
    });
    Some(per_round * rounds as f64 * team.threads() as f64 / seconds)
}

/// The fastest of several runs.
fn fastest(run: impl Fn()) -> f64 {
    let start = Instant::now();
    let mut best = f64::INFINITY;
    let mut runs = 0;
    while runs < 3 || start.elapsed().as_secs_f64() < PROBE_SECONDS {
        let begin = Instant::now();
        run();
        best = best.min(begin.elapsed().as_secs_f64());
        runs += 1;
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn roofline() -> Roofline {
        let level = |footprint, read, write| Level { footprint, read, write };
        Roofline {
            isa: Isa::Portable,
            arithmetic: 1.0,
            tiles: None,
            levels: vec![level(16, 8.0, 4.0), level(64, 4.0, 2.0)],
        }
    }

    #[test]
    fn bandwidth_lies_between_the_measured_footprints() {
        let roofline = roofline();
        assert_eq!(roofline.bandwidth(1.0), (8.0, 4.0));
        assert_eq!(roofline.bandwidth(16.0), (8.0, 4.0));
        let (read, write) = roofline.bandwidth(32.0);
        assert!((read - 6.0).abs() < 1e-9 && (write - 3.0).abs() < 1e-9, "{read} {write}");
        assert_eq!(roofline.bandwidth(64.0), (4.0, 2.0));
        assert_eq!(roofline.bandwidth(1e9), (4.0, 2.0));
    }

    #[test]
    fn weights_that_only_feed_cropped_outputs_do_not_count() {
        let axis = Axis { input: 1, kernel: 4, stride: 2, dilation: 1, output: 2, pad_begin: 1 };
        assert_eq!(used_kernel(&axis), 2.0);
        assert_eq!(used_kernel(&Axis { input: 4, output: 8, ..axis }), 4.0);
        assert_eq!(used_kernel(&Axis { input: 0, ..axis }), 0.0);
        assert_eq!(used_kernel(&Axis { pad_begin: -1, output: 2, ..axis }), 1.0);
    }

    #[test]
    fn ceilings_are_measured() {
        let team = Team::new(2).unwrap();
        let roofline = Roofline::measure(&team, DType::F32).unwrap();
        assert!(roofline.arithmetic > 1e6, "{roofline:?}");
        assert!(roofline.levels.iter().all(|level| level.read > 1e6 && level.write > 1e6), "{roofline:?}");
    }
}
