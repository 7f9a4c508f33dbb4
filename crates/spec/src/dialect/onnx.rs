//! ONNX `ConvTranspose`, opsets 1, 11 and 22.

use super::resolve::{AxisRequest, Names, Placed, at_least, list_or, spatial_axes};
use super::{Call, Dialect, DialectName, FilterCall, Operands, PadRule, Policy, Split, TensorType};
use crate::attributes::{Attributes, Reader};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

pub(super) const NAMES: Names = Names {
    dialect: "onnx",
    input: "X",
    filter: "W",
    bias: "B",
    groups: "group",
    strides: "strides",
    dilations: "dilations",
};

pub(super) const ATTRIBUTES: [&str; 8] =
    ["auto_pad", "dilations", "group", "kernel_shape", "output_padding", "output_shape", "pads", "strides"];

const TYPES_BEFORE_22: &[DType] = &[DType::F16, DType::F32, DType::F64];
const TYPES_SINCE_22: &[DType] = &[DType::F16, DType::Bf16, DType::F32, DType::F64];

/// The attributes of ONNX's operator. An empty list means the attribute is absent.
///
/// X is `(N, C, X…)`, W is `(C, M/group, k…)`, B is `(M)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose {
    /// How pads are chosen where they are not written down.
    pub auto_pad: AutoPad,
    /// Dilation per spatial axis; absent means 1.
    pub dilations: Vec<i64>,
    /// Number of groups.
    pub group: i64,
    /// Must equal W's spatial shape where present.
    pub kernel_shape: Vec<i64>,
    /// Extra size at the end of each spatial axis; absent means 0.
    pub output_padding: Vec<i64>,
    /// Spatial output sizes; where present, `pads` is ignored and pads are derived.
    pub output_shape: Vec<i64>,
    /// All beginnings, then all ends; absent means 0.
    pub pads: Vec<i64>,
    /// Stride per spatial axis; absent means 1.
    pub strides: Vec<i64>,
    /// The opset import of the model. The operator in force is the newest of 1, 11 and 22 not above it.
    pub opset: i64,
}

impl Default for ConvTranspose {
    fn default() -> Self {
        ConvTranspose {
            auto_pad: AutoPad::NotSet,
            dilations: Vec::new(),
            group: 1,
            kernel_shape: Vec::new(),
            output_padding: Vec::new(),
            output_shape: Vec::new(),
            pads: Vec::new(),
            strides: Vec::new(),
            opset: 22,
        }
    }
}

/// ONNX's `auto_pad`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AutoPad {
    /// `pads` as written.
    #[default]
    NotSet,
    /// Output size input × stride, the odd element cropped at the end.
    SameUpper,
    /// Output size input × stride, the odd element cropped at the beginning.
    SameLower,
    /// No padding.
    Valid,
}

impl AutoPad {
    const WORDS: &'static [&'static str] = &["NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID"];

    fn parse(word: &str) -> Result<Self, SpecError> {
        match word {
            "" | "NOTSET" => Ok(AutoPad::NotSet),
            "SAME_UPPER" => Ok(AutoPad::SameUpper),
            "SAME_LOWER" => Ok(AutoPad::SameLower),
            "VALID" => Ok(AutoPad::Valid),
            _ => Err(SpecError::Word { name: "auto_pad", expected: Self::WORDS, found: word.into() }),
        }
    }
}

impl ConvTranspose {
    /// Reads the attributes of a node of a model that imports `opset`.
    pub fn from_attributes(attributes: &Attributes, opset: i64) -> Result<Self, SpecError> {
        Self::read(&Reader::new(NAMES.dialect, &ATTRIBUTES, attributes)?, opset)
    }

    pub(super) fn read(reader: &Reader<'_>, opset: i64) -> Result<Self, SpecError> {
        Ok(ConvTranspose {
            auto_pad: AutoPad::parse(&reader.text("auto_pad")?.unwrap_or_default())?,
            dilations: reader.ints("dilations")?,
            group: reader.int("group")?.unwrap_or(1),
            kernel_shape: reader.ints("kernel_shape")?,
            output_padding: reader.ints("output_padding")?,
            output_shape: reader.ints("output_shape")?,
            pads: reader.ints("pads")?,
            strides: reader.ints("strides")?,
            opset,
        })
    }

    fn check_opset(&self) -> Result<(), SpecError> {
        if self.opset < 1 { Err(NAMES.value("opset", None, "at least 1", self.opset)) } else { Ok(()) }
    }

    pub(super) fn resolve_filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        self.check_opset()?;
        let spatial = spatial_axes("W", filter.shape.len(), 2)?;
        let layout = FilterLayout::iox(spatial);
        let call = NAMES.filter_call(filter, layout, self.group, &self.strides, &self.dilations)?;
        let kernel_shape_agrees = self.kernel_shape.is_empty()
            || self
                .kernel_shape
                .iter()
                .map(|&k| usize::try_from(k).ok())
                .eq(call.kernel.iter().map(|&k| Some(k)));
        if !kernel_shape_agrees {
            return Err(SpecError::KernelShape { attribute: self.kernel_shape.clone(), filter: call.kernel });
        }
        Ok(call)
    }

    /// Resolves the geometry for data in `(N, C, X…)` or, for the nhwc domain, in another layout.
    pub(super) fn resolve_in(
        &self,
        layout: impl Fn(usize) -> DataLayout,
        operands: &Operands<'_>,
        policy: Policy,
    ) -> Result<Call, SpecError> {
        spatial_axes("X", operands.input.shape.len(), 2)?;
        let filter = self.resolve_filter(&operands.filter)?;
        let spatial = filter.kernel.len();
        let pads = self.checked_pads(spatial)?;
        let output_padding = list_or("output_padding", &self.output_padding, spatial, 0)?;
        at_least("output_padding", &output_padding, 0)?;
        let output_shape = match self.output_shape.as_slice() {
            [] => None,
            sizes if sizes.len() == spatial => Some(sizes),
            sizes => {
                let expected = format!("{spatial}: the spatial sizes only, without batch and channels");
                return Err(SpecError::Length { name: "output_shape", expected, found: sizes.len() });
            }
        };
        at_least("output_shape", output_shape.unwrap_or_default(), 1)?;

        NAMES.call(operands, filter, layout(spatial), self.pad_rule(), |axis| {
            let index = axis.index;
            let output_padding = i128::from(output_padding[index]);
            check_output_padding(axis, output_padding, policy)?;
            let full = axis.full() + output_padding;
            let placed = match (self.pad_rule(), output_shape) {
                (PadRule::FitOutputShape(split), Some(sizes)) => {
                    let output = i128::from(sizes[index]);
                    let limit = axis.full() + axis.stride() - 1;
                    if output > limit {
                        return Err(SpecError::OutputShapeTooLarge {
                            axis: index,
                            limit: i64::try_from(limit).unwrap_or(i64::MAX),
                            found: sizes[index],
                        });
                    }
                    Placed { begin: AxisRequest::split(full - output, split), output }
                }
                (PadRule::FitStride(split), _) => {
                    let total = (full - axis.input() * axis.stride()).max(0);
                    Placed { begin: AxisRequest::split(total, split), output: full - total }
                }
                (PadRule::Unpadded, _) => Placed { begin: 0, output: full },
                _ => {
                    let (begin, end) = (i128::from(pads[index]), i128::from(pads[index + spatial]));
                    Placed { begin, output: full - begin - end }
                }
            };
            placed.not_empty(index)
        })
    }

    fn pad_rule(&self) -> PadRule {
        match (self.output_shape.is_empty(), self.auto_pad) {
            (false, AutoPad::SameUpper) => PadRule::FitOutputShape(Split::EndHeavy),
            (false, _) => PadRule::FitOutputShape(Split::BeginHeavy),
            (true, AutoPad::SameUpper) => PadRule::FitStride(Split::EndHeavy),
            (true, AutoPad::SameLower) => PadRule::FitStride(Split::BeginHeavy),
            (true, AutoPad::Valid) => PadRule::Unpadded,
            (true, AutoPad::NotSet) => PadRule::Written,
        }
    }

    /// `pads` with one beginning and one end per axis. Checked even where it will be ignored.
    fn checked_pads(&self, spatial: usize) -> Result<Vec<i64>, SpecError> {
        if !self.pads.is_empty() && self.auto_pad != AutoPad::NotSet {
            return Err(SpecError::Conflict {
                first: "pads",
                second: "an `auto_pad` other than NOTSET".into(),
                fix: "remove one of them",
            });
        }
        let pads = match self.pads.len() {
            0 => vec![0; 2 * spatial],
            length if length == 2 * spatial => self.pads.clone(),
            found => {
                let expected = format!("{}: all beginnings, then all ends", 2 * spatial);
                return Err(SpecError::Length { name: "pads", expected, found });
            }
        };
        at_least("pads", &pads, 0)?;
        Ok(pads)
    }
}

/// The text bounds output_padding by stride or dilation; ONNX Runtime by the stride alone.
fn check_output_padding(axis: &AxisRequest, found: i128, policy: Policy) -> Result<(), SpecError> {
    let (limit, bound) = match policy {
        Policy::Spec => (axis.stride().max(axis.dilation()), "larger of stride and dilation"),
        Policy::Runtime => (axis.stride(), "stride"),
    };
    if found < limit {
        return Ok(());
    }
    let narrow = |value| i64::try_from(value).unwrap_or(i64::MAX);
    Err(SpecError::OutputPaddingTooLarge {
        axis: axis.index,
        limit: narrow(limit),
        found: narrow(found),
        bound,
    })
}

impl Dialect for ConvTranspose {
    fn name(&self) -> DialectName {
        DialectName::Onnx
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        self.resolve_filter(filter)
    }

    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError> {
        let types = if self.opset >= 22 { TYPES_SINCE_22 } else { TYPES_BEFORE_22 };
        NAMES.check_types(operands, types)?;
        self.resolve_in(DataLayout::ncx, operands, policy)
    }
}
