//! Bytes of sums are those of the definition.

use outstride_kernels::{ByteOutput, Isa, Kernels, Real, Requantization, UNBOUNDED, best_kernels, kernels};

/// Numbers of no meaning, all bits of them.
fn bits(state: &mut u64) -> u32 {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*state >> 32) as u32
}

/// Around every tie that a byte can lie at, and anything else.
fn reals(scale: f32, state: &mut u64) -> Vec<f32> {
    let ties = (-400..400).map(|integer| (integer as f32 + 0.5) * scale);
    let around = ties.flat_map(|tie| {
        (0..9).map(move |step| f32::from_bits(tie.to_bits().wrapping_add(step).wrapping_sub(4)))
    });
    let anything: Vec<f32> = (0..1000).map(|_| f32::from_bits(bits(state))).collect();
    around.chain(anything).chain([0.0, -0.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN]).collect()
}

/// Whether real numbers become the bytes that the definition makes of them, with any zero point.
fn check_bytes<T: Real>(kernels: &Kernels<T>, scale: f32, reals: &[f32]) {
    for zero_point in [0.0, -128.0, 255.0] {
        let mut values: Vec<T> = reals.iter().map(|&real| T::from_f64(real.into())).collect();
        let to = Requantization {
            scales: &[1.0],
            bias: &[0.0],
            bounds: UNBOUNDED,
            output: Some(ByteOutput::new((scale, zero_point), &[1.0], &[0.0])),
        };
        kernels.requantize(&mut values, &to);
        for (value, &real) in values.into_iter().zip(reals) {
            let (found, expected) = (value.to_f64(), (real / scale).round_ties_even() + zero_point);
            let same = (found as i8, found as u8) == (expected as i8, expected as u8);
            assert!(same, "{kernels:?}: {real:e} / {scale:e} + {zero_point} is no {found}");
        }
    }
}

fn quotients_are_rounded<T: Real>() {
    let mut state = 7;
    let mut scales =
        vec![0.25, 1.0 / 3.0, 1e-30, 1e30, 1e-38, 1e-44, 1e38, f32::MAX, 1.0 - f32::EPSILON / 2.0];
    scales.extend((0..200).map(|_| f32::from_bits((bits(&mut state) & 0x7f_ffff) | 0x3c00_0000)));
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<T>) {
        for &scale in &scales {
            check_bytes(kernels, scale, &reals(scale, &mut state));
        }
    }
}

#[test]
fn quotients_are_rounded_as_after_a_division() {
    quotients_are_rounded::<f32>();
    quotients_are_rounded::<f64>();
}

/// Bytes rise with the real number, computed either way: if those next to every tie are right, all are. Farther away, what is computed
/// is off by far less than the distance to the tie. Powers of two change nothing about it.
fn check_ties(significand: u32) {
    /// More than bytes have, with any zero point. Below zero, everything is the same but for the sign.
    const TIES: u16 = 512;
    const NEIGHBOURS: i32 = 3;
    let scale = f32::from_bits(1f32.to_bits() | significand);
    let around = (0..TIES).flat_map(|integer| {
        let tie = f32::from(integer) + 0.5;
        let neighbour = move |steps| f32::from_bits((tie * scale).to_bits().wrapping_add_signed(steps));
        assert!(neighbour(-NEIGHBOURS) / scale < tie && neighbour(NEIGHBOURS) / scale > tie);
        (-NEIGHBOURS..=NEIGHBOURS).map(neighbour)
    });
    check_bytes(best_kernels::<f32>(Isa::ALL[0]), scale, &around.collect::<Vec<f32>>());
}

#[test]
fn ties_are_rounded_with_some_scales() {
    for significand in (0..1 << 23).step_by(99_991) {
        check_ties(significand);
    }
}

#[test]
#[ignore = "takes about twenty minutes: run it after a change of how quotients are found"]
fn ties_are_rounded_with_every_scale() {
    for significand in 0..1 << 23 {
        check_ties(significand);
    }
}

#[test]
fn every_column_has_its_scale_and_bias() {
    for kernels in Isa::ALL.into_iter().filter_map(kernels::<f32>) {
        for width in [1usize, 2, 7, 16, 20, 32, 33] {
            let scales: Vec<f32> = (0..width).map(|column| 0.1 + column as f32).collect();
            let bias: Vec<f32> = (0..width).map(|column| 3.3 - column as f32).collect();
            let sums: Vec<f32> = (0..3 * width).map(|value| value as f32 - 5.0).collect();
            let mut values = sums.clone();
            let bounds = (-40.0, 90.5);
            kernels.requantize(
                &mut values,
                &Requantization { scales: &scales, bias: &bias, bounds, output: None },
            );
            for (index, (value, sum)) in values.into_iter().zip(sums).enumerate() {
                let real = sum * scales[index % width] + bias[index % width];
                assert_eq!(value, real.clamp(bounds.0, bounds.1), "{kernels:?} {width} at {index}");
            }
        }
    }
}
