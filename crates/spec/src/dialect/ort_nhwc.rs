//! ONNX Runtime's `com.ms.internal.nhwc` `ConvTranspose`: ONNX's operator on channels-last data, with an activation.

use super::{Call, Dialect, DialectName, FilterCall, Operands, Policy, TensorType, onnx};
use crate::activation::Activation;
use crate::attributes::{Attributes, Reader};
use crate::dtype::DType;
use crate::error::SpecError;
use crate::layout::DataLayout;

const NAMES: super::resolve::Names = super::resolve::Names { dialect: "ort-nhwc", ..onnx::NAMES };

const ATTRIBUTES: [&str; 10] = [
    "activation",
    "activation_params",
    "auto_pad",
    "dilations",
    "group",
    "kernel_shape",
    "output_padding",
    "output_shape",
    "pads",
    "strides",
];

const TYPES: &[DType] = &[DType::F16, DType::F32, DType::F64];

/// The newest version of the domain that has the operator.
pub(super) const NEWEST_VERSION: i64 = 11;

/// The attributes of the nhwc domain's operator, versions 1 and 11.
///
/// X is `(N, X…, C)`; W stays `(C, M/group, k…)` and B `(M)`, as in ONNX.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ConvTranspose {
    /// The attributes shared with ONNX; its `opset` is the version of this domain.
    pub conv: onnx::ConvTranspose,
    /// What follows the bias.
    pub activation: Activation,
}

impl ConvTranspose {
    /// Reads the attributes of a node of a model that imports `version` of the domain.
    pub fn from_attributes(attributes: &Attributes, version: i64) -> Result<Self, SpecError> {
        let reader = Reader::new(NAMES.dialect, &ATTRIBUTES, attributes)?;
        let params = reader.floats("activation_params")?;
        let activation = match reader.text("activation")? {
            None => Activation::Identity,
            Some(name) => match Activation::from_name(&name, &params) {
                Some(activation) => activation,
                None => return Err(SpecError::Activation { name, params: params.len() }),
            },
        };
        Ok(ConvTranspose { conv: onnx::ConvTranspose::read(&reader, version)?, activation })
    }
}

impl Dialect for ConvTranspose {
    fn name(&self) -> DialectName {
        DialectName::OrtNhwc
    }

    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError> {
        let call = self.conv.resolve_filter(filter)?;
        let outputs = DataLayout::nxc(call.kernel.len());
        Ok(call.for_outputs(&outputs))
    }

    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError> {
        NAMES.check_types(operands, TYPES)?;
        let call = self.conv.resolve_in(DataLayout::nxc, operands, policy)?;
        Ok(Call { activation: self.activation, ..call })
    }
}
