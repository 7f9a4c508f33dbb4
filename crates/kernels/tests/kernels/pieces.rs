//! Pieces make up the number they are of.

use half::{bf16, f16};
use outstride_kernels::Pieces;

/// All parts that a number can have.
fn parts(value: f32) -> [bf16; 3] {
    Pieces::Bf16(3).of(value).map(bf16::from_bits)
}

#[test]
fn parts_add_up() {
    for value in [0.0, 1.0, -1.0 / 3.0, std::f32::consts::PI, 1e-12, 3.0e38, 16_777_215.0, -0.1] {
        let sum: f64 = parts(value).into_iter().map(f64::from).sum();
        assert_eq!(sum, f64::from(value));
    }
    assert!(parts(f32::NAN)[0].is_nan());
    assert_eq!(parts(f32::NEG_INFINITY)[0], bf16::NEG_INFINITY);
}

#[test]
fn two_parts_hold_any_f16() {
    for bits in 0..=u16::MAX {
        let value = f16::from_bits(bits);
        if value.is_finite() {
            assert_eq!(parts(value.to_f32())[2], bf16::ZERO, "{value}");
            assert_eq!(Pieces::F16.of(value.to_f32())[0], bits);
        }
    }
}
