//! PyTorch `conv_transpose1d`, `conv_transpose2d`, `conv_transpose3d`, and the `output_size` of the modules.

use super::resolve::{Names, Placed, at_least, broadcast_or, spatial_axes};
use super::{Call, Dialect, DialectName, FilterCall, IntegerOverflow, Operands, PadRule, Policy, TensorType};
use crate::attributes::{Attributes, Reader};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::{DataLayout, FilterLayout};

const NAMES: Names = Names {
    dialect: "torch",
    input: "input",
    filter: "weight",
    bias: "bias",
    groups: "groups",
    strides: "stride",
    dilations: "dilation",
};

const ATTRIBUTES: &[&str] =
    &["dilation", "groups", "output_padding", "output_size", "padding", "padding_mode", "stride"];

const TYPES: &[DType] = &[DType::F16, DType::Bf16, DType::F32, DType::F64, DType::I64];

/// The arguments of PyTorch's functions. A list has one entry for all spatial axes, or one for each; an empty list
/// is the default.
///
/// input is `(N, C, X…)` or, unbatched, `(C, X…)`; weight is `(C, M/groups, k…)`; bias is `(M)`.
#[derive(Clone, Debug, PartialEq)]
pub struct ConvTranspose {
    /// 1, 2 or 3 for the function of that rank; `None` takes it from the weight.
    pub spatial: Option<usize>,
    /// Stride; default 1.
    pub stride: Vec<i64>,
    /// What is cropped at both ends; default 0.
    pub padding: Vec<i64>,
    /// Extra size at the end; default 0.
    pub output_padding: Vec<i64>,
    /// Number of groups.
    pub groups: i64,
    /// Dilation; default 1.
    pub dilation: Vec<i64>,
    /// The `output_size` of a module's call: spatial sizes, or a full shape whose last entries count. It replaces
    /// `output_padding`.
    pub output_size: Option<Vec<i64>>,
}

impl Default for ConvTranspose {
    fn default() -> Self {
        ConvTranspose {
            spatial: None,
            stride: Vec::new(),
            padding: Vec::new(),
            output_padding: Vec::new(),
            groups: 1,
            dilation: Vec::new(),
            output_size: None,
        }
    }
}

impl ConvTranspose {
    /// Reads the arguments of a call of the function with `spatial` spatial axes.
    pub fn from_attributes(attributes: &Attributes, spatial: Option<usize>) -> Result<Self, SpecError> {
        let reader = Reader::new(NAMES.dialect, ATTRIBUTES, attributes)?;
        if let Some(mode) = reader.text("padding_mode")?
            && mode != "zeros"
        {
            return Err(SpecError::Word { name: "padding_mode", expected: &["zeros"], found: mode });
        }
        Ok(ConvTranspose {
            spatial,
            stride: reader.int_or_ints("stride")?,
            padding: reader.int_or_ints("padding")?,
            output_padding: reader.int_or_ints("output_padding")?,
            groups: reader.int("groups")?.unwrap_or(1),
            dilation: reader.int_or_ints("dilation")?,
            output_size: reader.optional_ints("output_size")?,
        })
    }

    /// The spatial entries of `output_size`, which may be a full shape.
    fn spatial_output_size(&self, layout: &DataLayout) -> Result<Option<&[i64]>, SpecError> {
        let Some(sizes) = self.output_size.as_deref() else { return Ok(None) };
        let spatial = layout.spatial.len();
        if sizes.len() != spatial && sizes.len() != layout.rank() {
            let expected = format!("{spatial} spatial sizes, or all {}", layout.rank());
            return Err(SpecError::Length { name: "output_size", expected, found: sizes.len() });
        }
        Ok(Some(&sizes[sizes.len() - spatial..]))
    }
}

impl Dialect for ConvTranspose {
    fn name(&self) -> DialectName {
        DialectName::Torch
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        let spatial = spatial_axes("weight", filter.shape.len(), 2)?;
        if self.spatial.is_some_and(|expected| expected != spatial) || spatial > 3 {
            return Err(SpecError::Rank {
                tensor: "weight",
                expected: self.spatial.map_or("3, 4 or 5".into(), |spatial| (spatial + 2).to_string()),
                found: filter.shape.len(),
            });
        }
        let stride = broadcast_or("stride", &self.stride, spatial, 1)?;
        let dilation = broadcast_or("dilation", &self.dilation, spatial, 1)?;
        let call = NAMES.filter_call(filter, FilterLayout::iox(spatial), self.groups, &stride, &dilation)?;
        if let Some(axis) = filter.shape[..2].iter().position(|&size| size == 0) {
            return Err(NAMES.value("weight", Some(axis), "at least one channel", 0));
        }
        Ok(call)
    }

    fn resolve(&self, operands: &Operands<'_>, _policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, TYPES)?;
        let filter = self.filter(&operands.filter)?;
        let spatial = filter.kernel.len();
        let rank = operands.input.shape.len();
        let layout = match rank.checked_sub(spatial) {
            Some(1) => DataLayout::cx(spatial),
            Some(2) => DataLayout::ncx(spatial),
            _ => {
                return Err(SpecError::Rank {
                    tensor: "input",
                    expected: format!(
                        "{} (batched) or {} (unbatched) to match weight",
                        spatial + 2,
                        spatial + 1
                    ),
                    found: rank,
                });
            }
        };
        let padding = broadcast_or("padding", &self.padding, spatial, 0)?;
        let output_padding = broadcast_or("output_padding", &self.output_padding, spatial, 0)?;
        at_least("padding", &padding, 0)?;
        at_least("output_padding", &output_padding, 0)?;
        let output_size = self.spatial_output_size(&layout)?;
        let call = NAMES.call(operands, filter, layout, PadRule::Written, |axis| {
            let index = axis.index;
            if axis.input() == 0 {
                return Err(NAMES.value("the spatial size of input", Some(index), "at least 1", 0));
            }
            let begin = i128::from(padding[index]);
            let smallest = axis.full() - 2 * begin;
            let extra = match output_size {
                Some(sizes) => {
                    let extra = i128::from(sizes[index]) - smallest;
                    if extra < 0 || extra >= axis.stride() {
                        let range = format!("from {smallest} to {}", smallest + axis.stride() - 1);
                        return Err(NAMES.value("output_size", Some(index), &range, sizes[index]));
                    }
                    extra
                }
                None => i128::from(output_padding[index]),
            };
            let limit = axis.stride().max(axis.dilation());
            if extra >= limit {
                return Err(SpecError::OutputPaddingTooLarge {
                    axis: index,
                    limit: i64::try_from(limit).unwrap_or(i64::MAX),
                    found: output_padding[index],
                    bound: "larger of stride and dilation",
                });
            }
            Placed { begin, output: smallest + extra }.not_empty(index)
        })?;
        Ok(Call { overflow: IntegerOverflow::Wrap, ..call })
    }
}
