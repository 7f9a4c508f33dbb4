//! The checks and the arithmetic that the dialects share.

use super::{Call, FilterCall, IntegerOverflow, Operands, PadRule, Split, TensorType};
use crate::activation::Activation;
use crate::dtype::DType;
use crate::error::SpecError;
use crate::geometry::{Axis, Geometry, MAX_EXTENT};
use crate::layout::{DataLayout, FilterLayout};

/// What a dialect calls its tensors and attributes, so that messages speak the user's language.
pub(super) struct Names {
    pub(super) dialect: &'static str,
    pub(super) input: &'static str,
    pub(super) filter: &'static str,
    pub(super) bias: &'static str,
    pub(super) groups: &'static str,
    pub(super) strides: &'static str,
    pub(super) dilations: &'static str,
}

impl Names {
    /// Resolves the filter's half of a call. `layout` must have been made for the filter's own rank.
    pub(super) fn filter_call(
        &self,
        filter: &TensorType<'_>,
        layout: FilterLayout,
        groups: i64,
        strides: &[i64],
        dilations: &[i64],
    ) -> Result<FilterCall, SpecError> {
        check_extents(self.filter, filter.shape)?;
        check_count(self.filter, filter.shape)?;
        let kernel: Vec<usize> = layout.spatial.iter().map(|&axis| filter.shape[axis]).collect();
        if let Some(axis) = layout.spatial.iter().find(|&&axis| filter.shape[axis] == 0) {
            return Err(SpecError::Value {
                name: format!("the kernel size of {}", self.filter),
                axis: Some(*axis),
                expected: "at least 1".into(),
                found: "0".into(),
            });
        }
        let in_channels = filter.shape[layout.input];
        let groups = layout.group.map_or(groups, |axis| filter.shape[axis] as i64);
        if groups < 1 {
            return Err(self.value(self.groups, None, "at least 1", groups));
        }
        let groups = usize::try_from(groups).unwrap_or(usize::MAX);
        let in_channels =
            if layout.group.is_some() { in_channels.checked_mul(groups) } else { Some(in_channels) };
        let overflow = |what: &str| SpecError::Overflow { what: what.into(), axis: None };
        let in_channels = in_channels.ok_or_else(|| overflow("number of input channels"))?;
        if in_channels % groups != 0 {
            return Err(SpecError::Groups {
                attribute: self.groups,
                groups: groups as i64,
                what: "input channels",
                channels: in_channels,
            });
        }
        let out_channels = filter.shape[layout.output].checked_mul(groups);
        Ok(FilterCall {
            groups,
            in_channels,
            out_channels: out_channels.ok_or_else(|| overflow("number of output channels"))?,
            strides: self.positive(self.strides, strides, kernel.len())?,
            dilations: self.positive(self.dilations, dilations, kernel.len())?,
            kernel,
            layout,
            channels_last: false,
        })
    }

    fn positive(&self, name: &'static str, list: &[i64], spatial: usize) -> Result<Vec<usize>, SpecError> {
        let list = list_or(name, list, spatial, 1)?;
        at_least(name, &list, 1)?;
        let bounded = |(axis, &value)| match usize::try_from(value) {
            Ok(value) if value <= MAX_EXTENT => Ok(value),
            _ => Err(SpecError::Overflow { what: format!("value of `{name}`"), axis: Some(axis) }),
        };
        list.iter().enumerate().map(bounded).collect()
    }

    pub(super) fn value(
        &self,
        name: &str,
        axis: Option<usize>,
        expected: &str,
        found: impl ToString,
    ) -> SpecError {
        SpecError::Value {
            name: format!("`{name}`"),
            axis,
            expected: expected.into(),
            found: found.to_string(),
        }
    }

    /// Checks element types: each allowed, all the same.
    pub(super) fn check_types(
        &self,
        operands: &Operands<'_>,
        allowed: &'static [DType],
    ) -> Result<(), SpecError> {
        let tensors = [
            (self.input, Some(operands.input)),
            (self.filter, Some(operands.filter)),
            (self.bias, operands.bias),
        ];
        for (tensor, operand) in tensors {
            let Some(TensorType { dtype, .. }) = operand else { continue };
            if !allowed.contains(&dtype) {
                return Err(SpecError::DTypeNotAllowed {
                    tensor,
                    dialect: self.dialect,
                    found: dtype,
                    allowed,
                });
            }
            if dtype != operands.input.dtype {
                return Err(SpecError::MixedDTypes {
                    tensor,
                    dialect: self.dialect,
                    expected: operands.input.dtype,
                    found: dtype,
                    reference: self.input,
                });
            }
        }
        Ok(())
    }

    /// Refuses a bias, for the dialects that have none.
    pub(super) fn refuse_bias(&self, operands: &Operands<'_>) -> Result<(), SpecError> {
        match operands.bias {
            Some(_) => Err(SpecError::UnexpectedTensor { dialect: self.dialect, tensor: "bias" }),
            None => Ok(()),
        }
    }

    /// Checks the tensors against each other, places every axis, and builds the call.
    pub(super) fn call(
        &self,
        operands: &Operands<'_>,
        filter: FilterCall,
        input: DataLayout,
        pad_rule: PadRule,
        place: impl Fn(&AxisRequest) -> Result<Placed, SpecError>,
    ) -> Result<Call, SpecError> {
        let shape = operands.input.shape;
        check_extents(self.input, shape)?;
        if shape.len() != input.rank() {
            return Err(SpecError::Rank {
                tensor: self.input,
                expected: format!("{} to match {}", input.rank(), self.filter),
                found: shape.len(),
            });
        }
        if shape[input.channel] != filter.in_channels {
            return Err(SpecError::Channels {
                tensor: self.input,
                what: "channels",
                axis: input.channel,
                expected: filter.in_channels,
                found: shape[input.channel],
                reference: self.filter,
            });
        }
        if let Some(bias) = operands.bias
            && bias.shape != [filter.out_channels]
        {
            return Err(SpecError::BiasShape {
                tensor: self.bias,
                expected: filter.out_channels,
                found: bias.shape.to_vec(),
            });
        }
        let mut axes = Vec::with_capacity(filter.kernel.len());
        for index in 0..filter.kernel.len() {
            let request = AxisRequest {
                index,
                input: shape[input.spatial[index]],
                kernel: filter.kernel[index],
                stride: filter.strides[index],
                dilation: filter.dilations[index],
            };
            axes.push(request.axis(place(&request)?)?);
        }
        let batch = input.batch.map_or(1, |axis| shape[axis]);
        let FilterCall { groups, in_channels, out_channels, layout, .. } = filter;
        Ok(Call {
            geometry: Geometry::new(batch, groups, in_channels, out_channels, axes)?,
            output: input.clone(),
            input,
            filter: layout,
            activation: Activation::Identity,
            overflow: IntegerOverflow::Saturate,
            pad_rule,
        })
    }
}

/// One spatial axis before its pads are known. Arithmetic on it is done in 128 bits, where products of two sizes
/// cannot overflow, and checked once when the axis is built.
pub(super) struct AxisRequest {
    pub(super) index: usize,
    input: usize,
    kernel: usize,
    stride: usize,
    dilation: usize,
}

/// Where the output of an axis lies within the full extent.
pub(super) struct Placed {
    pub(super) begin: i128,
    pub(super) output: i128,
}

impl AxisRequest {
    pub(super) fn input(&self) -> i128 {
        self.input as i128
    }

    pub(super) fn stride(&self) -> i128 {
        self.stride as i128
    }

    pub(super) fn dilation(&self) -> i128 {
        self.dilation as i128
    }

    pub(super) fn effective_kernel(&self) -> i128 {
        (self.kernel as i128 - 1) * self.dilation() + 1
    }

    /// The size before cropping, without output padding.
    pub(super) fn full(&self) -> i128 {
        (self.input() - 1) * self.stride() + self.effective_kernel()
    }

    /// Splits a padding total; a negative one counts as zero, leaving the surplus output at the end.
    pub(super) fn split(total: i128, split: Split) -> i128 {
        let total = total.max(0);
        match split {
            Split::EndHeavy => total / 2,
            Split::BeginHeavy => total - total / 2,
        }
    }

    fn axis(&self, placed: Placed) -> Result<Axis, SpecError> {
        let overflow = |what: &str| SpecError::Overflow { what: what.into(), axis: Some(self.index) };
        if placed.output < 0 {
            let size = i64::try_from(placed.output).map_err(|_| overflow("output size"))?;
            return Err(SpecError::EmptyOutput { axis: self.index, size });
        }
        Ok(Axis {
            input: self.input,
            kernel: self.kernel,
            stride: self.stride,
            dilation: self.dilation,
            output: usize::try_from(placed.output).map_err(|_| overflow("output size"))?,
            pad_begin: i64::try_from(placed.begin).map_err(|_| overflow("padding"))?,
        })
    }
}

impl Placed {
    /// Refuses an empty axis, for the dialects that do.
    pub(super) fn not_empty(self, axis: usize) -> Result<Self, SpecError> {
        if self.output <= 0 {
            return Err(SpecError::EmptyOutput {
                axis,
                size: i64::try_from(self.output).unwrap_or(i64::MIN),
            });
        }
        Ok(self)
    }
}

/// Refuses sizes beyond any memory, so that 128-bit arithmetic on a few of them cannot overflow.
fn check_extents(tensor: &'static str, shape: &[usize]) -> Result<(), SpecError> {
    match shape.iter().position(|&size| size > MAX_EXTENT) {
        Some(axis) => Err(SpecError::Overflow { what: format!("size of {tensor}"), axis: Some(axis) }),
        None => Ok(()),
    }
}

/// Refuses more elements than any memory holds, so that whoever lays the filter out can count them. Axes of size 0 do
/// not excuse the others, as in [`Geometry::new`].
fn check_count(tensor: &'static str, shape: &[usize]) -> Result<(), SpecError> {
    let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size.max(1)));
    match count {
        Some(count) if count <= MAX_EXTENT => Ok(()),
        _ => Err(SpecError::Overflow { what: format!("element count of {tensor}"), axis: None }),
    }
}

/// The list itself if it has one entry per spatial axis, the default for every axis if it is empty.
pub(super) fn list_or(
    name: &'static str,
    list: &[i64],
    spatial: usize,
    default: i64,
) -> Result<Vec<i64>, SpecError> {
    match list.len() {
        0 => Ok(vec![default; spatial]),
        length if length == spatial => Ok(list.to_vec()),
        found => Err(SpecError::Length { name, expected: per_axis(spatial), found }),
    }
}

/// As [`list_or`], and one entry stands for every axis.
pub(super) fn broadcast_or(
    name: &'static str,
    list: &[i64],
    spatial: usize,
    default: i64,
) -> Result<Vec<i64>, SpecError> {
    match *list {
        [one] => Ok(vec![one; spatial]),
        _ => list_or(name, list, spatial, default),
    }
}

/// Checks every entry against a lower bound.
pub(super) fn at_least(name: &'static str, list: &[i64], minimum: i64) -> Result<(), SpecError> {
    match list.iter().position(|&value| value < minimum) {
        None => Ok(()),
        Some(axis) => Err(SpecError::Value {
            name: format!("`{name}`"),
            axis: Some(axis),
            expected: format!("at least {minimum}"),
            found: list[axis].to_string(),
        }),
    }
}

/// How many spatial axes a tensor of this rank has beside `others`; at least one.
pub(super) fn spatial_axes(tensor: &'static str, rank: usize, others: usize) -> Result<usize, SpecError> {
    match rank.checked_sub(others) {
        Some(spatial) if spatial >= 1 => Ok(spatial),
        _ => Err(SpecError::Rank {
            tensor,
            expected: format!("at least {}: {others} and one per spatial axis", others + 1),
            found: rank,
        }),
    }
}

fn per_axis(spatial: usize) -> String {
    format!("{spatial}, one per spatial axis")
}
