//! The elementwise functions that may follow the bias.

/// An elementwise function applied to each sum, after the bias and before the one rounding to the output type.
///
/// NaN passes through every one of them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Activation {
    /// `v`
    #[default]
    Identity,
    /// `max(v, 0)`
    Relu,
    /// `tanh v`
    Tanh,
    /// `1 / (1 + e^-v)`
    Sigmoid,
    /// `v · clamp(v/6 + 0.5, 0, 1)`
    HardSwish,
    /// `v` where `v ≥ 0`, else `alpha · v`
    LeakyRelu {
        /// The slope below zero.
        alpha: f32,
    },
    /// `min(max(v, min), max)`; `max` wins when `min > max`
    Clip {
        /// The lower bound.
        min: f32,
        /// The upper bound.
        max: f32,
    },
    /// `clamp(alpha · v + beta, 0, 1)`
    HardSigmoid {
        /// The slope.
        alpha: f32,
        /// The value at zero.
        beta: f32,
    },
}

impl Activation {
    /// The names a dialect may use, each with the number of parameters it needs.
    pub const NAMES: [(&'static str, usize); 7] = [
        ("Relu", 0),
        ("Tanh", 0),
        ("Sigmoid", 0),
        ("HardSwish", 0),
        ("LeakyRelu", 1),
        ("Clip", 2),
        ("HardSigmoid", 2),
    ];

    /// The function of that (case-sensitive) name, or `None` if the name is unknown or a function with parameters
    /// has not exactly as many as it needs. Parameters of a function that takes none are ignored.
    pub fn from_name(name: &str, params: &[f32]) -> Option<Self> {
        Some(match (name, params) {
            ("Relu", _) => Activation::Relu,
            ("Tanh", _) => Activation::Tanh,
            ("Sigmoid", _) => Activation::Sigmoid,
            ("HardSwish", _) => Activation::HardSwish,
            ("LeakyRelu", &[alpha]) => Activation::LeakyRelu { alpha },
            ("Clip", &[min, max]) => Activation::Clip { min, max },
            ("HardSigmoid", &[alpha, beta]) => Activation::HardSigmoid { alpha, beta },
            _ => return None,
        })
    }

    /// The function's name, `Identity` included.
    pub fn name(&self) -> &'static str {
        match self {
            Activation::Identity => "Identity",
            Activation::Relu => "Relu",
            Activation::Tanh => "Tanh",
            Activation::Sigmoid => "Sigmoid",
            Activation::HardSwish => "HardSwish",
            Activation::LeakyRelu { .. } => "LeakyRelu",
            Activation::Clip { .. } => "Clip",
            Activation::HardSigmoid { .. } => "HardSigmoid",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_with_its_own_number_of_parameters_only() {
        for (name, needed) in Activation::NAMES {
            for given in 0..4 {
                let parsed = Activation::from_name(name, &vec![0.5; given]);
                assert_eq!(parsed.is_some(), needed == 0 || given == needed, "{name} with {given}");
                if let Some(activation) = parsed {
                    assert_eq!(activation.name(), name);
                }
            }
        }
        assert_eq!(Activation::from_name("relu", &[]), None);
        assert_eq!(Activation::from_name("Identity", &[]), None);
        assert_eq!(Activation::from_name("", &[]), None);
    }
}
