//! One problem in the words of every dialect.
//!
//! A [`Problem`] is written in canonical order and in neutral terms; [`Problem::spell`] says it as a dialect would,
//! attribute by attribute. That is a translation of words, not of meaning: two dialects that are given the same
//! `same_upper` may well do different things, and seeing that is the point. What a dialect has no word for is an
//! error with the reason.

mod spell;
mod words;

use std::fmt;

use crate::dialect::{DialectName, Request};
use crate::error::SpecError;
use crate::layout::DataLayout;

/// A transposed convolution in neutral terms. Lists have one entry per spatial axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// `(N, C, in…)`
    pub input: Vec<usize>,
    /// `(C, M/groups, k…)`
    pub filter: Vec<usize>,
    /// Whether there is a bias.
    pub bias: bool,
    /// The number of groups.
    pub groups: i64,
    /// The strides.
    pub strides: Vec<i64>,
    /// The dilations.
    pub dilations: Vec<i64>,
    /// What is cropped at the beginning and the end of each axis; `None` where nothing was said.
    pub pads: Option<Vec<(i64, i64)>>,
    /// Extra size at the end of each axis; `None` where nothing was said.
    pub output_padding: Option<Vec<i64>>,
    /// How pads are chosen where they are not written down.
    pub auto_pad: AutoPad,
    /// The spatial sizes asked for.
    pub output_size: Option<Vec<i64>>,
}

/// The ways to have pads chosen, under their common names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoPad {
    /// Pads as written.
    #[default]
    None,
    /// `SAME` or `SAME_UPPER`.
    SameUpper,
    /// `SAME_LOWER`
    SameLower,
    /// `VALID`
    Valid,
}

/// A problem in a dialect's own words and layouts.
#[derive(Clone, Debug)]
pub struct Spelling {
    /// The attributes.
    pub request: Request,
    /// The input's shape in the dialect's layout.
    pub input: Vec<usize>,
    /// The filter's shape in the dialect's layout.
    pub filter: Vec<usize>,
    /// What a reader should know about the translation.
    pub note: Option<String>,
}

/// Why a problem cannot be said in a dialect.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum SpellError {
    /// The dialect has no word for a part of it.
    #[error("{dialect} {lacks}; {instead}")]
    #[allow(missing_docs)]
    Inexpressible { dialect: DialectName, lacks: &'static str, instead: &'static str },

    /// The problem is none in any dialect.
    #[error(transparent)]
    Invalid(#[from] SpecError),
}

impl Problem {
    /// A problem with stride and dilation 1, one group, and nothing said about pads.
    ///
    /// ```
    /// use outstride_spec::neutral::Problem;
    /// use outstride_spec::{DType, DialectName, Operands, Policy, TensorType};
    ///
    /// let problem = Problem { strides: vec![2], ..Problem::new(&[1, 16, 28], &[16, 8, 4]) };
    /// let spelling = problem.spell(DialectName::Tensorflow).unwrap();
    /// assert_eq!(spelling.input, [1, 28, 16]);
    /// assert_eq!(spelling.filter, [4, 8, 16]);
    /// let operands = Operands::new(
    ///     TensorType::new(DType::F32, &spelling.input),
    ///     TensorType::new(DType::F32, &spelling.filter),
    /// );
    /// let call = spelling.request.read(DialectName::Tensorflow)?.resolve(&operands, Policy::Spec)?;
    /// assert_eq!(call.output_shape(), [1, 58, 8]);
    /// # Ok::<(), outstride_spec::SpecError>(())
    /// ```
    pub fn new(input: &[usize], filter: &[usize]) -> Self {
        let spatial = filter.len().saturating_sub(2);
        Problem {
            input: input.to_vec(),
            filter: filter.to_vec(),
            bias: false,
            groups: 1,
            strides: vec![1; spatial],
            dilations: vec![1; spatial],
            pads: None,
            output_padding: None,
            auto_pad: AutoPad::None,
            output_size: None,
        }
    }

    /// Says the problem in a dialect's words.
    pub fn spell(&self, dialect: DialectName) -> Result<Spelling, SpellError> {
        self.check()?;
        match dialect {
            DialectName::Onnx => Ok(self.onnx(DataLayout::ncx)),
            DialectName::OrtNhwc => Ok(self.onnx(DataLayout::nxc)),
            DialectName::OnednnGraph => Ok(self.onednn_graph()),
            DialectName::Openvino => self.openvino(),
            DialectName::OpenvinoGroup => self.openvino_group(),
            DialectName::Torch => self.torch(),
            DialectName::Tensorflow => self.tensorflow(),
            DialectName::Jax => self.jax(),
        }
    }

    fn spatial(&self) -> usize {
        self.filter.len() - 2
    }

    fn check(&self) -> Result<(), SpecError> {
        if self.filter.len() < 3 {
            let expected = "at least 3: (C, M/groups, k…)".into();
            return Err(SpecError::Rank { tensor: "the filter", expected, found: self.filter.len() });
        }
        if self.input.len() != self.filter.len() {
            let expected = format!("{}, as the filter: (N, C, X…)", self.filter.len());
            return Err(SpecError::Rank { tensor: "the input", expected, found: self.input.len() });
        }
        let lengths = [
            ("strides", Some(self.strides.len())),
            ("dilations", Some(self.dilations.len())),
            ("pads", self.pads.as_ref().map(Vec::len)),
            ("output_padding", self.output_padding.as_ref().map(Vec::len)),
            ("output_size", self.output_size.as_ref().map(Vec::len)),
        ];
        for (name, length) in lengths {
            if let Some(found) = length.filter(|&length| length != self.spatial()) {
                let expected = format!("{}, one per spatial axis", self.spatial());
                return Err(SpecError::Length { name, expected, found });
            }
        }
        Ok(())
    }
}

impl fmt::Display for AutoPad {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            AutoPad::None => "none",
            AutoPad::SameUpper => "same_upper",
            AutoPad::SameLower => "same_lower",
            AutoPad::Valid => "valid",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dialect::{Call, Operands, Policy, TensorType};
    use crate::dtype::DType;
    use proptest::prelude::*;

    fn resolve(problem: &Problem, dialect: DialectName) -> Result<Call, SpellError> {
        let Spelling { request, input, filter, .. } = problem.spell(dialect)?;
        let operands =
            Operands::new(TensorType::new(DType::F32, &input), TensorType::new(DType::F32, &filter));
        Ok(request.read(dialect)?.resolve(&operands, Policy::Spec)?)
    }

    fn sizes(problem: &Problem) -> Vec<(DialectName, Result<usize, String>)> {
        let size = |dialect| match resolve(problem, dialect) {
            Ok(call) => Ok(call.geometry.axes()[0].output),
            Err(error) => Err(error.to_string()),
        };
        DialectName::ALL.map(|dialect| (dialect, size(dialect))).to_vec()
    }

    #[test]
    fn written_pads_mean_the_same_wherever_they_can_be_written() {
        let problem = Problem {
            strides: vec![2, 2],
            pads: Some(vec![(1, 1), (1, 1)]),
            output_padding: Some(vec![1, 1]),
            ..Problem::new(&[1, 4, 28, 28], &[4, 3, 3, 3])
        };
        for (dialect, size) in sizes(&problem) {
            assert_eq!(size, Ok(56), "{dialect}");
        }
    }

    #[test]
    fn the_same_word_means_different_sizes() {
        let problem = Problem {
            strides: vec![2],
            auto_pad: AutoPad::SameUpper,
            ..Problem::new(&[1, 4, 28], &[4, 3, 3])
        };
        for (dialect, size) in sizes(&problem) {
            match dialect {
                DialectName::Openvino | DialectName::OpenvinoGroup => assert_eq!(size, Ok(57), "{dialect}"),
                DialectName::Torch => assert!(size.unwrap_err().contains("no automatic padding")),
                _ => assert_eq!(size, Ok(56), "{dialect}"),
            }
        }
    }

    #[test]
    fn what_a_dialect_lacks_is_said_with_its_name() {
        let plain = Problem::new(&[1, 4, 5], &[4, 3, 3]);
        let grouped = Problem { groups: 2, ..plain.clone() };
        let asymmetric = Problem { pads: Some(vec![(1, 0)]), ..plain.clone() };
        let lower = Problem { auto_pad: AutoPad::SameLower, ..plain.clone() };
        let sized = Problem { output_size: Some(vec![6]), ..plain.clone() };
        let biased = Problem { bias: true, ..plain };
        for (problem, dialect, message) in [
            (&grouped, DialectName::Openvino, "openvino has no groups here; openvino-group has them"),
            (&grouped, DialectName::Tensorflow, "tensorflow has no groups"),
            (&grouped, DialectName::Jax, "jax has no groups"),
            (&asymmetric, DialectName::Torch, "torch pads both ends alike"),
            (&asymmetric, DialectName::Tensorflow, "tensorflow takes explicit pads in 2-D only"),
            (&lower, DialectName::Tensorflow, "tensorflow has no SAME_LOWER"),
            (&lower, DialectName::Jax, "jax has no SAME_LOWER"),
            (&sized, DialectName::Jax, "jax takes no output size"),
            (&biased, DialectName::Openvino, "openvino takes no bias"),
        ] {
            let error = problem.spell(dialect).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    #[test]
    fn malformed_problems_are_refused_before_they_are_spelt() {
        let plain = Problem::new(&[1, 4, 5], &[4, 3, 3]);
        for (problem, message) in [
            (Problem::new(&[1, 4], &[4, 3]), "the filter has rank 2"),
            (Problem::new(&[1, 4, 5, 5], &[4, 3, 3]), "the input has rank 4"),
            (Problem { strides: vec![1, 1], ..plain.clone() }, "`strides` has 2 entries"),
            (Problem { pads: Some(vec![]), ..plain }, "`pads` has 0 entries"),
        ] {
            let error = problem.spell(DialectName::Onnx).unwrap_err().to_string();
            assert!(error.starts_with(message), "{error}");
        }
    }

    fn any_size() -> impl Strategy<Value = i64> + Clone {
        prop_oneof![4 => -2i64..9, 1 => any::<i64>()]
    }

    fn any_problem() -> impl Strategy<Value = Problem> {
        let lists = (1usize..5).prop_flat_map(|spatial| {
            let list = prop::collection::vec(any_size(), spatial);
            let pads = prop::collection::vec((any_size(), any_size()), spatial);
            let shape = prop::collection::vec(prop_oneof![4 => 0usize..7, 1 => any::<usize>()], spatial + 2);
            (
                (shape.clone(), shape),
                (list.clone(), list.clone()),
                prop::option::of(pads),
                prop::option::of(list.clone()),
                prop::option::of(list),
            )
        });
        let auto_pad =
            prop::sample::select(vec![AutoPad::None, AutoPad::SameUpper, AutoPad::SameLower, AutoPad::Valid]);
        (lists, any_size(), any::<bool>(), auto_pad).prop_map(|(lists, groups, bias, auto_pad)| {
            let ((input, filter), (strides, dilations), pads, output_padding, output_size) = lists;
            Problem {
                input,
                filter,
                bias,
                groups,
                strides,
                dilations,
                pads,
                output_padding,
                auto_pad,
                output_size,
            }
        })
    }

    proptest! {
        #[test]
        fn no_problem_panics(problem in any_problem()) {
            for dialect in DialectName::ALL {
                let _ = resolve(&problem, dialect);
            }
        }
    }
}
