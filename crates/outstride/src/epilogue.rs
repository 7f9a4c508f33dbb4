//! What happens to a sum before it is stored: bias, activation, one rounding.

use outstride_spec::{Activation, IntegerOverflow};

/// What happens to each sum between the bias and the store.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Epilogue {
    /// The elementwise function.
    pub activation: Activation,
    /// How integer sums fit the element type.
    pub overflow: IntegerOverflow,
}

/// The activation of one value, by its definition. NaN passes through all of them.
pub(crate) fn activate(v: f64, activation: &Activation) -> f64 {
    match *activation {
        Activation::Identity => v,
        Activation::Relu => at_least(v, 0.0),
        Activation::Tanh => v.tanh(),
        Activation::Sigmoid => 1.0 / (1.0 + (-v).exp()),
        Activation::HardSwish => v * at_most(at_least(v / 6.0 + 0.5, 0.0), 1.0),
        Activation::LeakyRelu { alpha } => {
            if v < 0.0 {
                f64::from(alpha) * v
            } else {
                v
            }
        }
        Activation::Clip { min, max } => at_most(at_least(v, min.into()), max.into()),
        Activation::HardSigmoid { alpha, beta } => {
            at_most(at_least(f64::from(alpha) * v + f64::from(beta), 0.0), 1.0)
        }
    }
}

/// `max(v, bound)` that lets a NaN in `v` pass, unlike `f64::max`.
fn at_least(v: f64, bound: f64) -> f64 {
    if v < bound { bound } else { v }
}

/// `min(v, bound)` that lets a NaN in `v` pass.
fn at_most(v: f64, bound: f64) -> f64 {
    if v > bound { bound } else { v }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Activation; 8] = [
        Activation::Identity,
        Activation::Relu,
        Activation::Tanh,
        Activation::Sigmoid,
        Activation::HardSwish,
        Activation::LeakyRelu { alpha: 0.1 },
        Activation::Clip { min: -1.0, max: 2.0 },
        Activation::HardSigmoid { alpha: 0.2, beta: 0.5 },
    ];

    #[test]
    fn nan_passes_through() {
        for activation in ALL {
            assert!(activate(f64::NAN, &activation).is_nan(), "{activation:?}");
        }
    }

    #[test]
    fn infinities_end_where_the_operator_says() {
        let low = f64::NEG_INFINITY;
        assert_eq!(activate(low, &Activation::Relu), 0.0);
        assert_eq!(activate(low, &Activation::Tanh), -1.0);
        assert_eq!(activate(f64::INFINITY, &Activation::Tanh), 1.0);
        assert_eq!(activate(low, &Activation::Sigmoid), 0.0);
        assert!(activate(low, &Activation::HardSwish).is_nan());
        assert_eq!(activate(low, &Activation::HardSigmoid { alpha: 0.2, beta: 0.5 }), 0.0);
    }

    #[test]
    fn values_follow_the_formulas() {
        assert_eq!(activate(-2.0, &Activation::LeakyRelu { alpha: 0.5 }), -1.0);
        assert_eq!(activate(3.0, &Activation::HardSwish), 3.0);
        assert_eq!(activate(1.5, &Activation::HardSwish), 1.125);
        assert_eq!(activate(5.0, &Activation::Clip { min: 3.0, max: 1.0 }), 1.0);
        assert_eq!(activate(0.0, &Activation::Clip { min: 3.0, max: 1.0 }), 1.0);
        assert_eq!(activate(0.0, &Activation::Sigmoid), 0.5);
    }
}
