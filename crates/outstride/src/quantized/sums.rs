//! The engine that forms the sums: in integers, or in floats that hold all of them exactly.

use outstride_kernels::Stored;
use outstride_spec::{Call, FilterCall};

use super::Byte;
use crate::engine::{Engine, Finish, Plan, Scaling, Treatment};
use crate::error::Error;
use crate::integer::greatest_sum;
use crate::op::{Options, Precision};
use crate::parallel::Executor;
use crate::tensor::{TensorView, TensorViewMut};

/// Integers from zero to this are floats of 32 bits, too.
const EXACT: f64 = (1 << 24) as f64;

/// Tiles of bytes sum in integers of 32 bits.
const EXACT_IN_TILES: f64 = (1u64 << 31) as f64;

/// Sums of products of bytes.
#[derive(Debug)]
pub(super) enum Sums {
    /// Floats of 32 bits hold them, whatever the input, or matrix tiles of bytes form them.
    Small(Engine<f32>, Scaling),
    /// Only floats of 64 bits do.
    Large(Engine<f64>, Scaling),
}

impl Sums {
    pub(super) fn new(
        call: &FilterCall,
        signed: bool,
        filter: &TensorView<'_, i8>,
        scales: Vec<f32>,
        bias: Vec<f32>,
        options: &Options,
    ) -> Result<Self, Error> {
        let greatest = greatest_sum(call, filter, None);
        if greatest < EXACT_IN_TILES {
            let small = greatest < EXACT;
            // Tiles of bytes stand in for all others.
            let vectors = Options { precision: Precision::Strict, ..*options };
            let mut engine = Engine::<f32>::new(call, filter, None, &vectors)?;
            if engine.use_byte_tiles(call, filter, signed, !small, options) || small {
                let scaling = engine.scaling(scales, bias);
                return Ok(Sums::Small(engine, scaling));
            }
        }
        let engine = Engine::<f64>::new(call, filter, None, options)?;
        let scaling = engine.scaling(scales, bias);
        Ok(Sums::Large(engine, scaling))
    }

    pub(super) fn scaling(&self) -> &Scaling {
        match self {
            Sums::Small(_, scaling) | Sums::Large(_, scaling) => scaling,
        }
    }

    pub(super) fn run<X: Byte, Y: Stored<f32> + Stored<f64>>(
        &self,
        call: &Call,
        zero_point: f32,
        x: TensorView<'_, X>,
        y: TensorViewMut<'_, Y>,
        finish: &Finish<'_>,
        executor: &dyn Executor,
    ) {
        let finish = *finish;
        match self {
            Sums::Small(engine, _) => {
                engine.execute(call, x, y, &Treatment { zero_point, finish }, executor);
            }
            Sums::Large(engine, _) => {
                let zero_point = zero_point.into();
                engine.execute(call, x, y, &Treatment { zero_point, finish }, executor);
            }
        }
    }

    pub(super) fn plan<X: Byte>(
        &self,
        call: &Call,
        x_strides: &[isize],
        y_strides: &[isize],
        threads: usize,
    ) -> Plan {
        match self {
            Sums::Small(engine, _) => engine.plan_for::<X>(call, x_strides, y_strides, threads),
            Sums::Large(engine, _) => engine.plan_for::<X>(call, x_strides, y_strides, threads),
        }
    }
}
