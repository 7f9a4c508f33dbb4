//! A call as files, commands and scripts write it: a dialect's name and loosely typed attributes.

use super::{Dialect, DialectName, jax, onednn_graph, onnx, openvino, ort_nhwc, tensorflow, torch};
use crate::attributes::Attributes;
use crate::error::SpecError;

/// A call of any dialect before its attributes have been read.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// The operator's or function's name. Where given, it must belong to the dialect; `conv_transpose2d` also
    /// fixes the number of spatial axes.
    pub op: Option<String>,
    /// The opset of `onnx` or the domain version of `ort-nhwc`; the newest where absent.
    pub version: Option<i64>,
    /// Exactly as the dialect spells them.
    pub attributes: Attributes,
    /// The values of OpenVINO's third input.
    pub output_shape: Option<Vec<i64>>,
}

impl Request {
    /// Reads the attributes by the rules of `dialect`.
    ///
    /// ```
    /// use outstride_spec::{AttributeValue, DialectName, Request};
    ///
    /// let strides = AttributeValue::List(vec![AttributeValue::Int(2)]);
    /// let request = Request { attributes: [("stride".into(), strides)].into(), ..Default::default() };
    /// let error = request.read(DialectName::Onnx).unwrap_err();
    /// assert!(error.to_string().starts_with("onnx has no attribute `stride`"));
    /// ```
    pub fn read(&self, dialect: DialectName) -> Result<Box<dyn Dialect>, SpecError> {
        let spatial = self.check_op(dialect)?;
        let attributes = &self.attributes;
        if self.output_shape.is_some()
            && !matches!(dialect, DialectName::Openvino | DialectName::OpenvinoGroup)
        {
            return Err(SpecError::UnexpectedTensor {
                dialect: dialect.as_str(),
                tensor: "output_shape input",
            });
        }
        Ok(match dialect {
            DialectName::Onnx => Box::new(onnx::ConvTranspose::from_attributes(
                attributes,
                self.version.unwrap_or(onnx::ConvTranspose::default().opset),
            )?),
            DialectName::OrtNhwc => Box::new(ort_nhwc::ConvTranspose::from_attributes(
                attributes,
                self.version.unwrap_or(ort_nhwc::NEWEST_VERSION),
            )?),
            DialectName::OnednnGraph => Box::new(onednn_graph::ConvTranspose::from_attributes(attributes)?),
            DialectName::Openvino => Box::new(openvino::ConvolutionBackpropData::from_attributes(
                attributes,
                self.output_shape.clone(),
            )?),
            DialectName::OpenvinoGroup => {
                let conv = openvino::ConvolutionBackpropData::from_attributes(
                    attributes,
                    self.output_shape.clone(),
                )?;
                Box::new(openvino::GroupConvolutionBackpropData(conv))
            }
            DialectName::Torch => Box::new(torch::ConvTranspose::from_attributes(attributes, spatial)?),
            DialectName::Tensorflow => {
                Box::new(tensorflow::ConvTranspose::from_attributes(attributes, spatial)?)
            }
            DialectName::Jax => Box::new(jax::ConvTranspose::from_attributes(attributes)?),
        })
    }

    /// Checks the operator's name and returns the number of spatial axes it implies, if it does.
    fn check_op(&self, dialect: DialectName) -> Result<Option<usize>, SpecError> {
        let Some(op) = &self.op else { return Ok(None) };
        let known: &'static [&'static str] = match dialect {
            DialectName::Onnx | DialectName::OrtNhwc | DialectName::OnednnGraph => &["ConvTranspose"],
            DialectName::Openvino => &["ConvolutionBackpropData"],
            DialectName::OpenvinoGroup => &["GroupConvolutionBackpropData"],
            DialectName::Torch => &["conv_transpose1d", "conv_transpose2d", "conv_transpose3d"],
            DialectName::Tensorflow => &["conv1d_transpose", "conv2d_transpose", "conv3d_transpose"],
            DialectName::Jax => &["conv_transpose"],
        };
        match known.iter().position(|name| name == op) {
            Some(index) => Ok((known.len() == 3).then_some(index + 1)),
            None => Err(SpecError::Word { name: "op", expected: known, found: op.clone() }),
        }
    }
}
