//! Functions of one value.

use anyhow::{Result, bail};
use outstride_io::AnyTensor;
use outstride_io::model::{Attribute, Node};

use super::numbers::{from_f64, scalar, to_f64};

/// A function with its parameters. It is evaluated in double precision and rounded once.
#[derive(Clone, Debug)]
pub(super) enum Unary {
    Relu,
    LeakyRelu {
        alpha: f64,
    },
    /// The slopes below zero, one per channel or one for all.
    PRelu {
        slopes: AnyTensor,
    },
    Elu {
        alpha: f64,
    },
    Celu {
        alpha: f64,
    },
    Selu {
        alpha: f64,
        gamma: f64,
    },
    ThresholdedRelu {
        alpha: f64,
    },
    Sigmoid,
    HardSigmoid {
        alpha: f64,
        beta: f64,
    },
    HardSwish,
    Tanh,
    Clip {
        min: f64,
        max: f64,
    },
    Softplus,
    Softsign,
    Mish,
    Gelu {
        tanh: bool,
    },
    Swish {
        alpha: f64,
    },
    Abs,
    Neg,
    Exp,
}

const NAMES: [&str; 23] = [
    "Relu",
    "ReLU",
    "LeakyRelu",
    "PRelu",
    "PReLU",
    "Elu",
    "Celu",
    "Selu",
    "ThresholdedRelu",
    "Sigmoid",
    "HardSigmoid",
    "HardSwish",
    "HSwish",
    "Tanh",
    "Clip",
    "Clamp",
    "Softplus",
    "Softsign",
    "Mish",
    "Gelu",
    "Swish",
    "Abs",
    "Neg",
];

impl Unary {
    pub(super) fn is_known(op: &str) -> bool {
        NAMES.contains(&op) || op == "Exp"
    }

    /// The function that a node stands for; `None` where its operator is no function of one value.
    pub(super) fn read(node: &Node, inputs: &[Option<&AnyTensor>], opset: i64) -> Result<Option<Self>> {
        let float = |name: &str, default: f64| match node.attributes.get(name) {
            Some(Attribute::Float(value)) => Ok(f64::from(*value)),
            Some(Attribute::Int(value)) => Ok(*value as f64),
            Some(_) => bail!("`{name}` must be a number"),
            None => Ok(default),
        };
        let given = |index: usize| inputs.get(index).copied().flatten();
        Ok(Some(match node.op.as_str() {
            "Relu" | "ReLU" => Unary::Relu,
            "LeakyRelu" => Unary::LeakyRelu { alpha: float("alpha", f64::from(0.01f32))? },
            "PRelu" | "PReLU" => Unary::PRelu { slopes: super::node::required(inputs, 1)?.clone() },
            "Elu" => Unary::Elu { alpha: float("alpha", 1.0)? },
            "Celu" => Unary::Celu { alpha: float("alpha", 1.0)? },
            "Selu" => Unary::Selu {
                alpha: float("alpha", f64::from(1.673_263_2_f32))?,
                gamma: float("gamma", f64::from(1.050_701_f32))?,
            },
            "ThresholdedRelu" => Unary::ThresholdedRelu { alpha: float("alpha", 1.0)? },
            "Sigmoid" => Unary::Sigmoid,
            "HardSigmoid" => {
                Unary::HardSigmoid { alpha: float("alpha", f64::from(0.2f32))?, beta: float("beta", 0.5)? }
            }
            "HardSwish" | "HSwish" => Unary::HardSwish,
            "Tanh" => Unary::Tanh,
            // The bounds were attributes before opset 11 and are inputs since.
            "Clip" if opset < 11 => {
                Unary::Clip { min: float("min", f64::NEG_INFINITY)?, max: float("max", f64::INFINITY)? }
            }
            "Clip" => Unary::Clip {
                min: given(1).map_or(Ok(f64::NEG_INFINITY), scalar)?,
                max: given(2).map_or(Ok(f64::INFINITY), scalar)?,
            },
            "Clamp" => {
                Unary::Clip { min: float("min", f64::NEG_INFINITY)?, max: float("max", f64::INFINITY)? }
            }
            "Softplus" => Unary::Softplus,
            "Softsign" => Unary::Softsign,
            "Mish" => Unary::Mish,
            "Gelu" => {
                let tanh = matches!(node.attributes.get("approximate"), Some(Attribute::Text(word)) if word == "tanh");
                Unary::Gelu { tanh }
            }
            "Swish" => Unary::Swish { alpha: float("alpha", 1.0)? },
            "Abs" => Unary::Abs,
            "Neg" => Unary::Neg,
            "Exp" => Unary::Exp,
            _ => return Ok(None),
        }))
    }

    pub(super) fn apply(&self, tensor: &AnyTensor) -> Result<AnyTensor> {
        let dtype = tensor.values().dtype();
        if let Unary::PRelu { slopes } = self {
            return super::arithmetic::with_broadcast(
                tensor,
                slopes,
                |v, slope| if v < 0.0 { slope * v } else { v },
            );
        }
        let values = to_f64(tensor).into_iter().map(|value| self.of(value)).collect();
        from_f64(dtype, tensor.shape(), values)
    }

    fn of(&self, v: f64) -> f64 {
        match *self {
            Unary::Relu => {
                if v < 0.0 {
                    0.0
                } else {
                    v
                }
            }
            Unary::LeakyRelu { alpha } => {
                if v < 0.0 {
                    alpha * v
                } else {
                    v
                }
            }
            Unary::PRelu { .. } => v,
            Unary::Elu { alpha } => {
                if v < 0.0 {
                    alpha * v.exp_m1()
                } else {
                    v
                }
            }
            Unary::Celu { alpha } => {
                if v < 0.0 {
                    alpha * (v / alpha).exp_m1()
                } else {
                    v
                }
            }
            Unary::Selu { alpha, gamma } => gamma * if v > 0.0 { v } else { alpha * v.exp_m1() },
            Unary::ThresholdedRelu { alpha } => {
                if v > alpha || v.is_nan() {
                    v
                } else {
                    0.0
                }
            }
            Unary::Sigmoid => sigmoid(v),
            Unary::HardSigmoid { alpha, beta } => clamp(alpha * v + beta, 0.0, 1.0),
            Unary::HardSwish => v * clamp(v / 6.0 + 0.5, 0.0, 1.0),
            Unary::Tanh => v.tanh(),
            Unary::Clip { min, max } => clamp(v, min, max),
            Unary::Softplus => softplus(v),
            Unary::Softsign => v / (1.0 + v.abs()),
            Unary::Mish => v * softplus(v).tanh(),
            Unary::Gelu { tanh: true } => {
                let inner = (2.0 / std::f64::consts::PI).sqrt() * (v + 0.044_715 * v * v * v);
                0.5 * v * (1.0 + inner.tanh())
            }
            Unary::Gelu { tanh: false } => 0.5 * v * (1.0 + erf(v / std::f64::consts::SQRT_2)),
            Unary::Swish { alpha } => v * sigmoid(alpha * v),
            Unary::Abs => v.abs(),
            Unary::Neg => -v,
            Unary::Exp => v.exp(),
        }
    }
}

/// `min(max(v, min), max)` that lets NaN pass and never panics, whatever the bounds.
fn clamp(v: f64, min: f64, max: f64) -> f64 {
    let v = if v < min { min } else { v };
    if v > max { max } else { v }
}

fn sigmoid(v: f64) -> f64 {
    1.0 / (1.0 + (-v).exp())
}

/// `ln(1 + eᵛ)` without overflow.
fn softplus(v: f64) -> f64 {
    if v > 0.0 { v + (-v).exp().ln_1p() } else { v.exp().ln_1p() }
}

/// The error function, to about 1e-15: its power series near zero, a continued fraction beyond.
fn erf(v: f64) -> f64 {
    let x = v.abs();
    let value = if x < 3.0 {
        let (mut term, mut sum, mut n) = (x, x, 0.0);
        while term.abs() > 1e-17 * sum.abs() {
            n += 1.0;
            term *= -x * x / n;
            sum += term / (2.0 * n + 1.0);
        }
        sum * 2.0 / std::f64::consts::PI.sqrt()
    } else {
        let fraction = (1..=60).rev().fold(0.0, |rest, k| f64::from(k) / 2.0 / (x + rest));
        1.0 - (-x * x).exp() / std::f64::consts::PI.sqrt() / (x + fraction)
    };
    if v.is_nan() { v } else { value.copysign(v) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_function_has_its_known_values() {
        for (x, expected) in [
            (0.0, 0.0),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.9, 0.999_958_902_121_900_5),
            (3.1, 0.999_988_351_342_632_8),
            (6.0, 1.0),
        ] {
            assert!((erf(x) - expected).abs() < 1e-13, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!(erf(f64::NAN).is_nan());
        assert_eq!(erf(f64::INFINITY), 1.0);
    }

    #[test]
    fn functions_have_their_values() {
        for (function, input, expected) in [
            (Unary::Relu, -1.0, 0.0),
            (Unary::LeakyRelu { alpha: 0.5 }, -2.0, -1.0),
            (Unary::Clip { min: 3.0, max: 1.0 }, 2.0, 1.0),
            (Unary::Softplus, 800.0, 800.0),
            (Unary::HardSwish, 1.5, 1.125),
            (Unary::Sigmoid, 0.0, 0.5),
            (Unary::Gelu { tanh: false }, 0.0, 0.0),
        ] {
            assert_eq!(function.of(input), expected, "{function:?}");
            assert!(function.of(f64::NAN).is_nan(), "{function:?}");
        }
    }
}
