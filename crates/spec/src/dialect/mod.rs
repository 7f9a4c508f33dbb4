//! The spellings of the operator, one module each, and what resolving one of them yields.

pub mod jax;
pub mod onednn_graph;
pub mod onnx;
pub mod openvino;
pub mod ort_nhwc;
pub mod tensorflow;
pub mod torch;

mod request;
mod resolve;

use std::fmt;
use std::str::FromStr;

use crate::activation::Activation;
use crate::dtype::DType;
use crate::error::SpecError;
use crate::geometry::Geometry;
use crate::layout::{DataLayout, FilterLayout};
use crate::phase::Phase;

pub use request::Request;

/// A specification's way to write the operator: its attribute names, defaults, layouts and rules.
///
/// Resolving happens in two steps, because a filter is prepared once and used for inputs of many sizes:
/// [`filter`](Dialect::filter) needs the filter alone, [`resolve`](Dialect::resolve) the whole call.
pub trait Dialect: fmt::Debug + Send + Sync {
    /// Which dialect this is.
    fn name(&self) -> DialectName;

    /// What the filter's shape and the attributes say before any input is known.
    fn filter(&self, filter: &TensorType<'_>) -> Result<FilterCall, SpecError>;

    /// Checks the call by the dialect's rules and says what it means.
    fn resolve(&self, operands: &Operands<'_>, policy: Policy) -> Result<Call, SpecError>;
}

/// The dialects, by the names used in commands, files and messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum DialectName {
    /// ONNX ConvTranspose, opsets 1, 11 and 22.
    Onnx,
    /// ONNX Runtime's com.ms.internal.nhwc ConvTranspose.
    OrtNhwc,
    /// oneDNN Graph ConvTranspose-1.
    OnednnGraph,
    /// OpenVINO ConvolutionBackpropData-1.
    Openvino,
    /// OpenVINO GroupConvolutionBackpropData-1.
    OpenvinoGroup,
    /// PyTorch conv_transpose1d, 2d, 3d.
    Torch,
    /// TensorFlow conv1d_transpose, conv2d_transpose, conv3d_transpose.
    Tensorflow,
    /// JAX lax.conv_transpose.
    Jax,
}

impl DialectName {
    /// Every dialect.
    pub const ALL: [DialectName; 8] = [
        DialectName::Onnx,
        DialectName::OrtNhwc,
        DialectName::OnednnGraph,
        DialectName::Openvino,
        DialectName::OpenvinoGroup,
        DialectName::Torch,
        DialectName::Tensorflow,
        DialectName::Jax,
    ];

    /// The name as written in commands and files, such as `ort-nhwc`.
    pub fn as_str(self) -> &'static str {
        match self {
            DialectName::Onnx => "onnx",
            DialectName::OrtNhwc => "ort-nhwc",
            DialectName::OnednnGraph => "onednn-graph",
            DialectName::Openvino => "openvino",
            DialectName::OpenvinoGroup => "openvino-group",
            DialectName::Torch => "torch",
            DialectName::Tensorflow => "tensorflow",
            DialectName::Jax => "jax",
        }
    }
}

impl fmt::Display for DialectName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The text was not the name of a dialect.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{0}` is not a dialect; use one of {names}",
    names = DialectName::ALL.map(DialectName::as_str).join(", ")
)]
pub struct UnknownDialect(String);

impl FromStr for DialectName {
    type Err = UnknownDialect;

    fn from_str(name: &str) -> Result<Self, Self::Err> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.as_str() == name);
        found.ok_or_else(|| UnknownDialect(name.to_owned()))
    }
}

/// What to do where a specification and its own runtime part ways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Policy {
    /// The written text decides.
    #[default]
    Spec,
    /// What the dialect's own runtime does decides.
    Runtime,
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Policy::Spec => "spec",
            Policy::Runtime => "runtime",
        })
    }
}

/// The element type and shape of a tensor, without its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorType<'a> {
    /// The element type.
    pub dtype: DType,
    /// The size of each axis, in the dialect's layout.
    pub shape: &'a [usize],
}

impl<'a> TensorType<'a> {
    /// A tensor type.
    pub fn new(dtype: DType, shape: &'a [usize]) -> Self {
        TensorType { dtype, shape }
    }
}

/// The types of a call's tensors, in the dialect's layouts.
#[derive(Clone, Copy, Debug)]
pub struct Operands<'a> {
    /// The data.
    pub input: TensorType<'a>,
    /// The weights.
    pub filter: TensorType<'a>,
    /// One value per output channel.
    pub bias: Option<TensorType<'a>>,
}

impl<'a> Operands<'a> {
    /// Operands without a bias.
    pub fn new(input: TensorType<'a>, filter: TensorType<'a>) -> Self {
        Operands { input, filter, bias: None }
    }

    /// The same operands with a bias.
    pub fn with_bias(self, bias: TensorType<'a>) -> Self {
        Operands { bias: Some(bias), ..self }
    }
}

/// The part of a call that does not depend on the input's size: enough to lay the weights out for an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FilterCall {
    /// The number of groups.
    pub groups: usize,
    /// Input channels of all groups.
    pub in_channels: usize,
    /// Output channels of all groups.
    pub out_channels: usize,
    /// Per spatial axis, the kernel size.
    pub kernel: Vec<usize>,
    /// Per spatial axis, the stride.
    pub strides: Vec<usize>,
    /// Per spatial axis, the dilation.
    pub dilations: Vec<usize>,
    /// Where the filter tensor keeps what.
    pub layout: FilterLayout,
    /// Whether outputs are to have their channels behind all other axes. Weights may be laid out for it.
    pub channels_last: bool,
}

impl FilterCall {
    /// The same for outputs that keep their axes so.
    pub(crate) fn for_outputs(self, layout: &DataLayout) -> Self {
        FilterCall { channels_last: layout.spatial.iter().all(|&axis| axis < layout.channel), ..self }
    }

    /// Per spatial axis, its phases.
    pub fn phases(&self) -> Vec<Vec<Phase>> {
        let sizes = self.kernel.iter().zip(&self.strides).zip(&self.dilations);
        sizes.map(|((&kernel, &stride), &dilation)| Phase::of_axis(kernel, stride, dilation)).collect()
    }
}

/// A resolved call: the geometry, and where each tensor keeps what.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// What is to be computed.
    pub geometry: Geometry,
    /// The input's axes.
    pub input: DataLayout,
    /// The filter's axes.
    pub filter: FilterLayout,
    /// The output's axes.
    pub output: DataLayout,
    /// What follows the bias.
    pub activation: Activation,
    /// What happens to integer sums that the element type cannot hold.
    pub overflow: IntegerOverflow,
    /// How the pads came about.
    pub pad_rule: PadRule,
}

impl Call {
    /// The output's shape in the dialect's layout.
    pub fn output_shape(&self) -> Vec<usize> {
        self.output.arrange(&self.geometry.output_shape())
    }
}

/// What happens to the exact sum of integer products where the element type cannot hold it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum IntegerOverflow {
    /// The nearest value the type holds.
    #[default]
    Saturate,
    /// The low bits, as the framework's own integer arithmetic leaves them.
    Wrap,
}

/// Which side of an axis loses the odd element of a padding total.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Split {
    /// The larger half is cropped at the beginning.
    BeginHeavy,
    /// The larger half is cropped at the end.
    EndHeavy,
}

/// How a call's pads and output size came about, for explanations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PadRule {
    /// The pads were written down; the size follows.
    Written,
    /// Nothing is cropped.
    Unpadded,
    /// The size is input × stride where the kernel reaches that far; the surplus is split.
    FitStride(Split),
    /// The size was written down; the surplus is split.
    FitOutputShape(Split),
    /// The size was written down and so was the beginning's pad; the end gives way.
    CutToOutputShape,
    /// The pads were written for the stride-dilated input, so they enlarge the output.
    PaddedInput,
}

impl fmt::Display for PadRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let odd = |split| match split {
            Split::BeginHeavy => "the odd element at the beginning",
            Split::EndHeavy => "the odd element at the end",
        };
        match *self {
            PadRule::Written => f.write_str("pads as written"),
            PadRule::Unpadded => f.write_str("nothing cropped"),
            PadRule::FitStride(split) => write!(f, "fitted to input × stride, {}", odd(split)),
            PadRule::FitOutputShape(split) => write!(f, "fitted to the output size, {}", odd(split)),
            PadRule::CutToOutputShape => f.write_str("begin as written, end cut to the output size"),
            PadRule::PaddedInput => f.write_str("pads added around the stride-dilated input"),
        }
    }
}
