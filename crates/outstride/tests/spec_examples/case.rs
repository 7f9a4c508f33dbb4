//! A call written down as a user would: a dialect, loosely typed attributes, and values.

use std::sync::Arc;

use outstride::{
    AttributeValue, ConvTranspose, DType, DialectName, Element, Error, Limits, Operands, Policy, Request,
    SpecError, Tensor, TensorType,
};

pub(crate) const POLICIES: [Policy; 2] = [Policy::Spec, Policy::Runtime];

pub(crate) fn int(value: i64) -> AttributeValue {
    AttributeValue::Int(value)
}

pub(crate) fn ints<const N: usize>(values: [i64; N]) -> AttributeValue {
    AttributeValue::List(values.map(AttributeValue::Int).into())
}

pub(crate) fn floats<const N: usize>(values: [f64; N]) -> AttributeValue {
    AttributeValue::List(values.map(AttributeValue::Float).into())
}

pub(crate) fn text(value: &str) -> AttributeValue {
    AttributeValue::Text(value.into())
}

pub(crate) fn texts<const N: usize>(values: [&str; N]) -> AttributeValue {
    AttributeValue::List(values.map(text).into())
}

pub(crate) fn pairs<const N: usize>(values: [[i64; 2]; N]) -> AttributeValue {
    AttributeValue::List(values.map(ints).into())
}

/// A call of `f32` tensors, or of any other type through [`Case::run_as`].
#[derive(Clone, Debug)]
pub(crate) struct Case {
    pub(crate) dialect: DialectName,
    pub(crate) request: Request,
    x: Tensor<f32>,
    w: Tensor<f32>,
    bias: Option<Vec<f32>>,
}

impl Case {
    /// x = [1, 2, 3] and w = [1, 10, 100] with one channel each, in the dialect's layouts and with its required
    /// attributes, for the problem that the tables of the dialects are explained with. JAX takes its kernel back to
    /// front, so here it is given with `transpose_kernel`.
    pub(crate) fn new(dialect: DialectName) -> Self {
        let channels_last = [1, 3, 1];
        let channels_first = [1, 1, 3];
        let (x, w): (&[usize], &[usize]) = match dialect {
            DialectName::Onnx | DialectName::Openvino | DialectName::Torch => {
                (&channels_first, &channels_first)
            }
            DialectName::OpenvinoGroup => (&channels_first, &[1, 1, 1, 3]),
            DialectName::OrtNhwc => (&channels_last, &channels_first),
            DialectName::OnednnGraph | DialectName::Tensorflow | DialectName::Jax => {
                (&channels_last, &[3, 1, 1])
            }
        };
        let case = Case {
            dialect,
            request: Request::default(),
            x: Tensor::from_vec(x, vec![1.0, 2.0, 3.0]).unwrap(),
            w: Tensor::from_vec(w, vec![1.0, 10.0, 100.0]).unwrap(),
            bias: None,
        };
        match dialect {
            DialectName::Onnx | DialectName::OrtNhwc | DialectName::Torch => case,
            DialectName::OnednnGraph | DialectName::Openvino | DialectName::OpenvinoGroup => case
                .set("strides", ints([1]))
                .set("dilations", ints([1]))
                .set("pads_begin", ints([0]))
                .set("pads_end", ints([0])),
            DialectName::Tensorflow => {
                case.set("strides", int(1)).set("padding", text("VALID")).set("output_shape", ints([1, 5, 1]))
            }
            DialectName::Jax => case
                .set("strides", ints([1]))
                .set("padding", text("VALID"))
                .set("transpose_kernel", AttributeValue::Bool(true)),
        }
    }

    /// The explained problem with stride 2, where the full output is 1 10 102 20 203 30 300.
    pub(crate) fn with_stride_2(dialect: DialectName) -> Self {
        match dialect {
            DialectName::Torch => Self::new(dialect).set("stride", int(2)),
            DialectName::Tensorflow => {
                Self::new(dialect).set("strides", int(2)).set("output_shape", ints([1, 7, 1]))
            }
            _ => Self::new(dialect).set("strides", ints([2])),
        }
    }

    pub(crate) fn set(mut self, name: &str, value: AttributeValue) -> Self {
        self.request.attributes.insert(name.into(), value);
        self
    }

    pub(crate) fn unset(mut self, name: &str) -> Self {
        self.request.attributes.remove(name);
        self
    }

    pub(crate) fn x(self, shape: &[usize], values: &[f32]) -> Self {
        Case { x: Tensor::from_vec(shape, values.to_vec()).unwrap(), ..self }
    }

    pub(crate) fn w(self, shape: &[usize], values: &[f32]) -> Self {
        Case { w: Tensor::from_vec(shape, values.to_vec()).unwrap(), ..self }
    }

    pub(crate) fn bias(self, values: &[f32]) -> Self {
        Case { bias: Some(values.to_vec()), ..self }
    }

    pub(crate) fn version(mut self, version: i64) -> Self {
        self.request.version = Some(version);
        self
    }

    /// OpenVINO's third input; an attribute elsewhere.
    pub(crate) fn output_size<const N: usize>(mut self, sizes: [i64; N]) -> Self {
        match self.dialect {
            DialectName::Openvino | DialectName::OpenvinoGroup => {
                self.request.output_shape = Some(sizes.to_vec());
                self
            }
            _ => self.set("output_shape", ints(sizes)),
        }
    }

    pub(crate) fn run(&self, policy: Policy) -> Result<Tensor<f32>, Error> {
        self.run_as(policy, |value| value)
    }

    /// Runs with the values converted to another element type.
    pub(crate) fn run_as<T: Element>(
        &self,
        policy: Policy,
        convert: impl Fn(f32) -> T,
    ) -> Result<Tensor<T>, Error> {
        let converted = |tensor: &Tensor<f32>| {
            Tensor::from_vec(tensor.shape(), tensor.data().iter().map(|&value| convert(value)).collect())
        };
        let bias: Option<Vec<T>> =
            self.bias.as_ref().map(|bias| bias.iter().map(|&value| convert(value)).collect());
        let dialect = Arc::from(self.request.read(self.dialect)?);
        let w = converted(&self.w)?;
        let op = ConvTranspose::from_dialect(dialect, w.view(), bias.as_deref(), Limits::default())?;
        op.with_policy(policy).run(converted(&self.x)?.view())
    }

    /// Resolves the call with all tensors of one type.
    pub(crate) fn resolve_as(&self, dtype: DType, policy: Policy) -> Result<Vec<usize>, SpecError> {
        let operands =
            Operands::new(TensorType::new(dtype, self.x.shape()), TensorType::new(dtype, self.w.shape()));
        Ok(self.request.read(self.dialect)?.resolve(&operands, policy)?.output_shape())
    }

    /// Resolves the call with a bias of that shape.
    pub(crate) fn resolve_with_bias(&self, shape: &[usize]) -> Result<Vec<usize>, SpecError> {
        let f32_of = |shape| TensorType::new(DType::F32, shape);
        let operands = Operands::new(f32_of(self.x.shape()), f32_of(self.w.shape())).with_bias(f32_of(shape));
        Ok(self.request.read(self.dialect)?.resolve(&operands, Policy::Spec)?.output_shape())
    }

    /// Expects these values, in the tensor's own order, under both policies.
    #[track_caller]
    pub(crate) fn gives(&self, expected: &[f32]) {
        for policy in POLICIES {
            self.gives_under(policy, expected);
        }
    }

    #[track_caller]
    pub(crate) fn gives_under(&self, policy: Policy, expected: &[f32]) {
        match self.run(policy) {
            Ok(y) => assert_eq!(y.data(), expected, "{policy}: {:?}", self.request),
            Err(error) => panic!("{policy}: {error}; {:?}", self.request),
        }
    }

    /// Expects a refusal of that kind under both policies.
    #[track_caller]
    pub(crate) fn is_refused(&self, kind: &str) {
        for policy in POLICIES {
            self.is_refused_under(policy, kind);
        }
    }

    #[track_caller]
    pub(crate) fn is_refused_under(&self, policy: Policy, kind: &str) {
        match self.run(policy) {
            Err(Error::Spec(error)) => assert_eq!(error.kind(), kind, "{policy}: {error}"),
            other => panic!("{policy}: expected a refusal for {kind}, got {other:?}; {:?}", self.request),
        }
    }
}
