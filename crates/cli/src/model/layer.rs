//! One layer of a model: the shapes of its tensors and what the call means.

use outstride::{Call, DType, DialectName, Operands, Policy, SpecError, TensorType};
use outstride_io::model::{Dim, ModelLayer, ValueType};

use super::Shapes;

/// What is known of a layer's tensors.
#[derive(Clone, Debug)]
pub(crate) struct LayerShapes<'a> {
    layer: &'a ModelLayer<'a>,
    pub(crate) input: Option<ValueType>,
    pub(crate) filter: Option<ValueType>,
    pub(crate) bias: Option<ValueType>,
    /// OpenVINO's third input, where its values are in the file.
    output_shape: Option<Vec<i64>>,
}

/// A layer whose call means something.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) call: Call,
    pub(crate) dtype: DType,
    /// The symbol that was taken for a batch of 1.
    pub(crate) assumed_batch: Option<String>,
}

/// Why a layer's call has no meaning yet.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Unresolved {
    #[error(
        "the shape of {tensor} is not in the model; give it with --shape {name}=SIZES, or run the model through ONNX's shape inference first"
    )]
    Shape { tensor: &'static str, name: String },
    #[error("the {tensor} `{name}` has size {size} on axis {axis}; give its shape with --shape {name}=SIZES")]
    Size { tensor: &'static str, name: String, axis: usize, size: String },
    #[error("the node has no {0}")]
    Missing(&'static str),
    #[error(transparent)]
    Spec(#[from] SpecError),
}

impl<'a> LayerShapes<'a> {
    pub(crate) fn of(layer: &'a ModelLayer<'a>, shapes: &Shapes<'_>) -> Self {
        let known = |index: usize| {
            let name = layer.node.input(index)?;
            // Values of the main graph have been inferred; those of subgraphs are as the file says.
            let constant = layer.scope.constant(name).map(|constant| ValueType {
                dtype: constant.dtype(),
                shape: Some(constant.shape().iter().map(|&size| Dim::Known(size)).collect()),
            });
            constant.or_else(|| shapes.get(name)).or_else(|| layer.scope.value_type(name).cloned())
        };
        let third_is_sizes = takes_sizes(layer.dialect);
        LayerShapes {
            layer,
            input: known(0),
            filter: known(1),
            bias: if third_is_sizes { None } else { known(2) },
            output_shape: third_is_sizes.then(|| sizes(layer)).flatten(),
        }
    }

    /// The values of OpenVINO's third input.
    pub(crate) fn output_shape(&self) -> Option<&[i64]> {
        self.output_shape.as_deref()
    }

    /// The call, where all sizes but the batch are known.
    pub(crate) fn resolve(&self, policy: Policy) -> Result<Resolved, Unresolved> {
        let node = self.layer.node;
        let name = |index: usize| node.input(index).unwrap_or_default().to_owned();
        for (index, tensor) in [(0, "data input"), (1, "filter")] {
            if node.input(index).is_none() {
                return Err(Unresolved::Missing(tensor));
            }
        }
        let mut request = self.layer.request();
        if takes_sizes(self.layer.dialect) && node.input(2).is_some() && self.output_shape.is_none() {
            return Err(Unresolved::Shape { tensor: "the output_shape input", name: name(2) });
        }
        request.output_shape = self.output_shape.clone();
        let (input, assumed_batch) = self.sizes(&self.input, "the input", "input", 0)?;
        let (filter, _) = self.sizes(&self.filter, "the filter", "filter", 1)?;
        let dialect = request.read(self.layer.dialect)?;
        let of = |value_type: &Option<ValueType>| value_type.as_ref().and_then(|known| known.dtype);
        let dtype = of(&self.input).or(of(&self.filter)).unwrap_or(DType::F32);
        let filter_type = TensorType::new(of(&self.filter).unwrap_or(dtype), &filter);
        let mut operands = Operands::new(TensorType::new(dtype, &input), filter_type);
        let bias_shape = self.bias.as_ref().and_then(ValueType::sizes);
        let out_channels = [dialect.filter(&filter_type)?.out_channels];
        if !takes_sizes(self.layer.dialect) && node.input(2).is_some() {
            let shape = bias_shape.as_deref().unwrap_or(&out_channels);
            operands = operands.with_bias(TensorType::new(of(&self.bias).unwrap_or(dtype), shape));
        }
        let call = dialect.resolve(&operands, policy)?;
        Ok(Resolved { call, dtype, assumed_batch })
    }

    /// The type of the layer's output; a batch that is open stays open.
    pub(crate) fn output_type(&self, policy: Policy) -> Option<ValueType> {
        let resolved = self.resolve(policy).ok()?;
        let mut value_type = ValueType::known(resolved.dtype, &resolved.call.output_shape());
        if let (Some(symbol), Some(shape)) = (resolved.assumed_batch, &mut value_type.shape)
            && let Some(batch) = shape.first_mut()
        {
            *batch = if symbol == "?" { Dim::Unknown } else { Dim::Symbol(symbol) };
        }
        Some(value_type)
    }

    /// All sizes; an open batch counts as 1, and is named.
    fn sizes(
        &self,
        value_type: &Option<ValueType>,
        the_tensor: &'static str,
        tensor: &'static str,
        index: usize,
    ) -> Result<(Vec<usize>, Option<String>), Unresolved> {
        let name = || self.layer.node.input(index).unwrap_or_default().to_owned();
        let shape = value_type.as_ref().and_then(|value_type| value_type.shape.as_ref());
        let shape = shape.ok_or_else(|| Unresolved::Shape { tensor: the_tensor, name: name() })?;
        let mut batch = None;
        let mut sizes = Vec::with_capacity(shape.len());
        for (axis, dim) in shape.iter().enumerate() {
            sizes.push(match dim {
                Dim::Known(size) => *size,
                open if axis == 0 && index == 0 => {
                    batch = Some(open.to_string());
                    1
                }
                open => {
                    let size = open.to_string();
                    return Err(Unresolved::Size { tensor, name: name(), axis, size });
                }
            });
        }
        Ok((sizes, batch))
    }
}

/// Whether the third input holds sizes rather than a bias.
pub(crate) fn takes_sizes(dialect: DialectName) -> bool {
    matches!(dialect, DialectName::Openvino | DialectName::OpenvinoGroup)
}

/// The values of OpenVINO's third input, where they are in the file.
fn sizes(layer: &ModelLayer<'_>) -> Option<Vec<i64>> {
    let constant = layer.scope.constant(layer.node.input(2)?)?.load().ok()?;
    crate::convolve::output_shape_values(&constant).ok()
}
