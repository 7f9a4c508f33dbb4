//! OpenVINO `ConvolutionBackpropData-1` and `GroupConvolutionBackpropData-1`.

use super::resolve::{AxisRequest, Names, Placed, at_least, list_or};
use super::{Call, Dialect, DialectName, FilterCall, Operands, PadRule, Policy, Split, TensorType};
use crate::attributes::{Attributes, Reader};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

const NAMES: Names = Names {
    dialect: "openvino",
    input: "data",
    filter: "filter",
    bias: "bias",
    groups: "the group axis of filter",
    strides: "strides",
    dilations: "dilations",
};

const ATTRIBUTES: &[&str] = &["auto_pad", "dilations", "output_padding", "pads_begin", "pads_end", "strides"];

/// The attributes of both operators, and their optional third input. An empty list means all 1 for `strides` and
/// `dilations`, all 0 for the pads and `output_padding`.
///
/// data is `(N, C_IN, X…)` of rank 3 to 5, filter is `(C_IN, C_OUT, X…)`. There is no bias.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvolutionBackpropData {
    /// Stride per spatial axis.
    pub strides: Vec<i64>,
    /// What is cropped at the beginning of each spatial axis.
    pub pads_begin: Vec<i64>,
    /// What is cropped at the end of each spatial axis.
    pub pads_end: Vec<i64>,
    /// Dilation per spatial axis.
    pub dilations: Vec<i64>,
    /// How pads are chosen.
    pub auto_pad: AutoPad,
    /// Extra size at the end of each spatial axis.
    pub output_padding: Vec<i64>,
    /// The values of the third input, spatial sizes only; see [`output_shape`].
    pub output_shape: Option<Vec<i64>>,
}

/// The same attributes on a filter `(G, C_IN, C_OUT, X…)` with its groups as an axis of their own.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct GroupConvolutionBackpropData(pub ConvolutionBackpropData);

/// OpenVINO's `auto_pad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoPad {
    /// Pads as written.
    #[default]
    Explicit,
    /// Fitted to `output_shape`, the odd element cropped at the *beginning*; without it, no padding.
    SameUpper,
    /// Fitted to `output_shape`, the odd element cropped at the *end*; without it, no padding.
    SameLower,
    /// No padding.
    Valid,
}

impl AutoPad {
    fn parse(word: &str) -> Result<Self, SpecError> {
        match word.to_ascii_lowercase().as_str() {
            "explicit" => Ok(AutoPad::Explicit),
            "same_upper" => Ok(AutoPad::SameUpper),
            "same_lower" => Ok(AutoPad::SameLower),
            "valid" => Ok(AutoPad::Valid),
            _ => Err(SpecError::Word {
                name: "auto_pad",
                expected: &["explicit", "same_upper", "same_lower", "valid"],
                found: word.into(),
            }),
        }
    }
}

/// Checks the type of the third input and hands its values on.
pub fn output_shape(tensor: &TensorType<'_>, values: &[i64]) -> Result<Vec<i64>, SpecError> {
    const INTEGERS: &[DType] =
        &[DType::I8, DType::I16, DType::I32, DType::I64, DType::U8, DType::U16, DType::U32, DType::U64];
    if !INTEGERS.contains(&tensor.dtype) {
        return Err(SpecError::DTypeNotAllowed {
            tensor: "output_shape",
            dialect: NAMES.dialect,
            found: tensor.dtype,
            allowed: INTEGERS,
        });
    }
    match tensor.shape {
        [_] => Ok(values.to_vec()),
        shape => Err(SpecError::Rank { tensor: "output_shape", expected: "1".into(), found: shape.len() }),
    }
}

impl ConvolutionBackpropData {
    /// Reads the attributes of a layer, with the values of its third input where it has one.
    pub fn from_attributes(
        attributes: &Attributes,
        output_shape: Option<Vec<i64>>,
    ) -> Result<Self, SpecError> {
        let reader = Reader::new(NAMES.dialect, ATTRIBUTES, attributes)?;
        Ok(ConvolutionBackpropData {
            strides: reader.required_ints("strides")?,
            pads_begin: reader.required_ints("pads_begin")?,
            pads_end: reader.required_ints("pads_end")?,
            dilations: reader.required_ints("dilations")?,
            auto_pad: reader.text("auto_pad")?.map_or(Ok(AutoPad::Explicit), |word| AutoPad::parse(&word))?,
            output_padding: reader.ints("output_padding")?,
            output_shape,
        })
    }

    /// OpenVINO's split is the mirror image of ONNX's and oneDNN's. Without same_*, the text splits the total all
    /// the same, whereas the runtime takes the beginning as written.
    fn pad_rule(&self, policy: Policy) -> PadRule {
        match (self.output_shape.is_some(), self.auto_pad, policy) {
            (true, AutoPad::SameUpper, _) => PadRule::FitOutputShape(Split::BeginHeavy),
            (true, AutoPad::SameLower, _) | (true, _, Policy::Spec) => {
                PadRule::FitOutputShape(Split::EndHeavy)
            }
            (true, _, Policy::Runtime) => PadRule::CutToOutputShape,
            (false, AutoPad::Explicit, _) => PadRule::Written,
            (false, _, _) => PadRule::Unpadded,
        }
    }

    fn resolve_filter(
        &self,
        filter: &TensorType<'_>,
        layout: fn(usize) -> FilterLayout,
    ) -> Result<FilterCall, SpecError> {
        let channel_axes = layout(0).rank();
        match filter.shape.len().checked_sub(channel_axes) {
            Some(spatial @ 1..=3) => {
                NAMES.filter_call(filter, layout(spatial), 1, &self.strides, &self.dilations)
            }
            _ => Err(SpecError::Rank {
                tensor: "filter",
                expected: format!("{} to {}", channel_axes + 1, channel_axes + 3),
                found: filter.shape.len(),
            }),
        }
    }

    fn resolve_with(
        &self,
        filter: FilterCall,
        operands: &Operands<'_>,
        policy: Policy,
    ) -> Result<Call, SpecError> {
        let spatial = filter.kernel.len();
        let pads_begin = list_or("pads_begin", &self.pads_begin, spatial, 0)?;
        let pads_end = list_or("pads_end", &self.pads_end, spatial, 0)?;
        let output_padding = list_or("output_padding", &self.output_padding, spatial, 0)?;
        let output_shape = self.output_shape.as_deref().unwrap_or_default();
        if self.output_shape.is_some() && output_shape.len() != spatial {
            let expected = format!("{spatial}: the spatial sizes only, without batch and channels");
            return Err(SpecError::Length { name: "output_shape", expected, found: output_shape.len() });
        }
        for (name, list) in [
            ("pads_begin", pads_begin.as_slice()),
            ("pads_end", &pads_end),
            ("output_padding", &output_padding),
            ("output_shape", output_shape),
        ] {
            at_least(name, list, 0)?;
        }
        let rule = self.pad_rule(policy);
        NAMES.call(operands, filter, DataLayout::ncx(spatial), rule, |axis| {
            let index = axis.index;
            let full = axis.full() + i128::from(output_padding[index]);
            let (begin, end) = (i128::from(pads_begin[index]), i128::from(pads_end[index]));
            Ok(match rule {
                PadRule::FitOutputShape(split) => {
                    let output = i128::from(output_shape[index]);
                    Placed { begin: AxisRequest::split(full - output, split), output }
                }
                PadRule::CutToOutputShape => {
                    let begin = if self.auto_pad == AutoPad::Explicit { begin } else { 0 };
                    Placed { begin, output: i128::from(output_shape[index]) }
                }
                PadRule::Unpadded => Placed { begin: 0, output: full },
                _ => Placed { begin, output: full - begin - end },
            })
        })
    }
}

impl Dialect for ConvolutionBackpropData {
    fn name(&self) -> DialectName {
        DialectName::Openvino
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        self.resolve_filter(filter, FilterLayout::iox)
    }

    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, DType::NUMERIC)?;
        NAMES.refuse_bias(operands)?;
        self.resolve_with(self.filter(&operands.filter)?, operands, policy)
    }
}

impl Dialect for GroupConvolutionBackpropData {
    fn name(&self) -> DialectName {
        DialectName::OpenvinoGroup
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        self.0.resolve_filter(filter, FilterLayout::giox)
    }

    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, DType::NUMERIC)?;
        NAMES.refuse_bias(operands)?;
        self.0.resolve_with(self.filter(&operands.filter)?, operands, policy)
    }
}
