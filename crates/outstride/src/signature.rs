//! What an operator knows of its calls before it sees an input.

use std::sync::Arc;

use outstride_spec::{Activation, Call, DType, Dialect, FilterCall, Operands, Policy, TensorType};

use crate::error::Error;
use crate::limits::Limits;
use crate::parallel::{CurrentRayon, SharedExecutor};
use crate::tensor::Arrangement;

/// The attributes, the filter's shape, and how calls are to be made.
#[derive(Clone, Debug)]
pub(crate) struct Signature {
    dialect: Arc<dyn Dialect>,
    /// The type that the dialect takes the tensors for.
    dtype: DType,
    filter_shape: Vec<usize>,
    has_bias: bool,
    pub(crate) filter_call: FilterCall,
    pub(crate) policy: Policy,
    pub(crate) limits: Limits,
    pub(crate) activation: Option<Activation>,
    pub(crate) executor: SharedExecutor,
}

impl Signature {
    /// Checks the filter and the number of biases against the attributes.
    pub(crate) fn new(
        dialect: Arc<dyn Dialect>,
        dtype: DType,
        filter_shape: &[usize],
        bias: Option<usize>,
        limits: Limits,
    ) -> Result<Self, Error> {
        let filter_call = dialect.filter(&TensorType::new(dtype, filter_shape))?;
        if let Some(found) = bias.filter(|&found| found != filter_call.out_channels) {
            return Err(Error::BiasLength { expected: filter_call.out_channels, found });
        }
        // Counted as if no axis were empty: the lists of phases and taps grow with the kernel even then.
        let elements = filter_shape.iter().map(|&size| size.max(1)).product();
        limits.check_bytes("the weights", elements, dtype.size())?;
        Ok(Signature {
            dialect,
            dtype,
            filter_shape: filter_shape.to_vec(),
            has_bias: bias.is_some(),
            filter_call,
            policy: Policy::default(),
            limits,
            activation: None,
            executor: SharedExecutor(Arc::new(CurrentRayon)),
        })
    }

    /// What a call on an input of this shape means.
    pub(crate) fn resolve(&self, input_shape: &[usize]) -> Result<Call, Error> {
        let tensor = |shape| TensorType::new(self.dtype, shape);
        let mut operands = Operands::new(tensor(input_shape), tensor(&self.filter_shape));
        let bias_shape = [self.filter_call.out_channels];
        if self.has_bias {
            operands = operands.with_bias(tensor(&bias_shape));
        }
        let call = self.dialect.resolve(&operands, self.policy)?;
        Ok(Call { activation: self.activation.unwrap_or(call.activation), ..call })
    }

    /// What a call on a row-major input of this shape means, and how canonical views of input and output would lie.
    pub(crate) fn resolve_row_major(
        &self,
        input_shape: &[usize],
    ) -> Result<(Call, Arrangement, Arrangement), Error> {
        let call = self.resolve(input_shape)?;
        let x = Arrangement::row_major(input_shape)?.canonical_data(&call.input);
        let y = Arrangement::row_major(&call.output_shape())?.canonical_data(&call.output);
        Ok((call, x, y))
    }

    /// What a call into an output of this shape means, if it may be made.
    pub(crate) fn resolve_into(&self, input_shape: &[usize], output_shape: &[usize]) -> Result<Call, Error> {
        let call = self.resolve(input_shape)?;
        let expected = call.output_shape();
        if output_shape != expected {
            return Err(Error::OutputShape { expected, found: output_shape.to_vec() });
        }
        self.limits.check_work(&call.geometry)?;
        Ok(call)
    }
}
