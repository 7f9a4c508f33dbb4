//! The class `ConvTranspose`: an operator with its weights, prepared once and called many times.

use std::sync::Arc;
use std::time::Instant;

use outstride::{DType, Error, Executor, SpecError};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};

use crate::array::{Borrowed, Output};
use crate::attributes::{self, ActivationArgument};
use crate::error::{invalid, refused};
use crate::operator::{Operator, Weights};
use crate::pickling;
use crate::recipe::{Recipe, dialect_named};
use crate::threads::{executor, torch_executor};

/// A transposed convolution with its weights, prepared once and called on inputs of any size.
///
/// `weight` and `bias` are copied. `dialect` says how the attributes are spelt and the tensors laid out: "torch", "onnx",
/// "ort-nhwc", "onednn-graph", "openvino", "openvino-group", "tensorflow" or "jax"; `policy`, whether its specification
/// ("spec") or its own runtime ("runtime") decides where they disagree; `opset`, which version of "onnx" or "ort-nhwc" is
/// meant, the newest by default. `activation` is applied after the bias: "Relu", "Tanh", "Sigmoid", "HardSwish",
/// ("LeakyRelu", alpha), ("Clip", min, max) or ("HardSigmoid", alpha, beta). `precision` says how sums may be computed:
/// "full", by anything whose error stays within that of plain summation; "strict", by products and sums of the elements
/// themselves; "bf16-compute", also of inputs and weights rounded to bf16, where that is faster.
#[pyclass(frozen, module = "outstride", weakref)]
pub(crate) struct ConvTranspose {
    operator: Box<dyn Operator>,
    recipe: Recipe,
}

impl ConvTranspose {
    pub(crate) fn from_parts(weights: &Weights<Vec<u8>>, recipe: Recipe) -> PyResult<Self> {
        let settings = recipe.settings()?;
        let operator = weights.prepare(&settings).map_err(|error| refused(&error))?;
        Ok(ConvTranspose { operator, recipe })
    }
}

#[pymethods]
impl ConvTranspose {
    #[new]
    #[allow(clippy::too_many_arguments)] // In Python they have names.
    #[pyo3(signature = (weight, bias=None, *, dialect="torch", policy="spec", activation=None, precision="full", opset=None, **attributes))]
    fn new(
        weight: &Bound<'_, PyAny>,
        bias: Option<&Bound<'_, PyAny>>,
        dialect: &str,
        policy: &str,
        activation: Option<ActivationArgument>,
        precision: &str,
        opset: Option<i64>,
        attributes: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Self> {
        let attributes = attributes.map(attributes::from_python).transpose()?.unwrap_or_default();
        let recipe = Recipe {
            dialect: dialect_named(dialect)?,
            policy: policy.into(),
            activation,
            precision: precision.into(),
            opset,
            attributes,
        };
        Self::from_parts(&copy_weights(weight, bias, &recipe)?, recipe)
    }

    /// Runs on `x`: a NumPy array, or anything with `__dlpack__` whose memory the CPU can reach. Returns a new tensor of
    /// the same kind, or `out` with the result in it. Uses `threads` threads, or all that this process may use.
    #[pyo3(signature = (x, *, out=None, threads=None))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        x: &Bound<'py, PyAny>,
        out: Option<&Bound<'py, PyAny>>,
        threads: Option<i64>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let input = Borrowed::new("x", x)?;
        let mut output = match out {
            Some(out) => Output::given(out)?,
            None => Output::like(x, &input, &self.shape_for(input.shape())?)?,
        };
        let executor = threads.map(|threads| executor(Some(threads))).transpose()?;
        self.run(py, &input, &mut output, executor, 1)?;
        output.into_result()
    }

    /// The shape of the result for an input of this shape.
    fn output_shape<'py>(&self, py: Python<'py>, shape: Vec<i64>) -> PyResult<Bound<'py, PyTuple>> {
        PyTuple::new(py, self.shape_for(&sizes(&shape)?)?)
    }

    /// How an input of this shape would be run, and why so.
    #[pyo3(signature = (shape, *, threads=None))]
    fn explain(&self, shape: Vec<i64>, threads: Option<i64>) -> PyResult<String> {
        let plan = self.operator.explain(&sizes(&shape)?, executor(threads)?);
        plan.map_err(|error| refused(&error))
    }

    /// The dialect's name.
    #[getter]
    fn dialect(&self) -> &'static str {
        self.recipe.dialect.as_str()
    }

    /// The name of the element type, such as "f32".
    #[getter]
    fn dtype(&self) -> &'static str {
        self.operator.weights().dtype.name()
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let weights = self.operator.weights();
        let bias = if weights.bias.is_some() { ", bias" } else { "" };
        let (dtype, shape) = (weights.dtype, weights.shape);
        let mut text = format!("ConvTranspose({dtype} weight {shape:?}{bias}, dialect='{}'", self.dialect());
        for (name, value) in attributes::to_python(py, &self.recipe.attributes)? {
            text.push_str(&format!(", {name}={}", value.repr()?));
        }
        Ok(text + ")")
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        pickling::reduce(py, &self.operator.weights(), &self.recipe)
    }
}

impl ConvTranspose {
    /// Runs so many times while other Python threads go on.
    fn run(
        &self,
        py: Python<'_>,
        input: &Borrowed<'_>,
        output: &mut Output<'_>,
        executor: Option<Arc<dyn Executor>>,
        times: u32,
    ) -> PyResult<()> {
        let (from, to) = (&input.memory, &mut output.borrowed.memory);
        if to.overlaps(from) {
            return Err(invalid("`out` and `x` share memory; pass an `out` of its own"));
        }
        let run = || {
            for _ in 0..times {
                // SAFETY: `input` and `output` keep the memory alive, and say of what type it is as truly as their owners
                // do. That no other thread writes to it meanwhile is up to the caller, as with everything that lets other
                // threads run.
                unsafe { self.operator.run(from, to, executor.clone())? }
            }
            Ok(())
        };
        py.detach(run).map_err(|error: Error| refused(&error))
    }

    fn shape_for(&self, input: &[usize]) -> PyResult<Vec<usize>> {
        self.operator.output_shape(input).map_err(|error| refused(&error))
    }
}

/// Runs on `x` into `out` with so many of PyTorch's own threads.
#[pyfunction]
pub(crate) fn run_beside_torch(
    py: Python<'_>,
    op: &ConvTranspose,
    x: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    threads: i64,
) -> PyResult<()> {
    let (input, mut output) = (Borrowed::new("x", x)?, Output::given(out)?);
    op.run(py, &input, &mut output, Some(torch_executor(threads)?), 1)
}

/// Seconds that so many runs take without Python around each: what the cost of a call is measured against.
#[pyfunction]
pub(crate) fn time_runs(
    py: Python<'_>,
    op: &ConvTranspose,
    x: &Bound<'_, PyAny>,
    out: &Bound<'_, PyAny>,
    times: u32,
) -> PyResult<f64> {
    let (input, mut output) = (Borrowed::new("x", x)?, Output::given(out)?);
    let start = Instant::now();
    op.run(py, &input, &mut output, None, times)?;
    Ok(start.elapsed().as_secs_f64())
}

fn copy_weights(
    weight: &Bound<'_, PyAny>,
    bias: Option<&Bound<'_, PyAny>>,
    recipe: &Recipe,
) -> PyResult<Weights<Vec<u8>>> {
    let weight = Borrowed::new("weight", weight)?;
    let bias = bias.map(|bias| Borrowed::new("bias", bias)).transpose()?;
    if let Some(bias) = &bias {
        check_bias(weight.dtype(), bias, recipe)?;
    }
    let copy = |tensor: &Borrowed<'_>, what| {
        // SAFETY: `tensor` keeps its memory alive; that no other thread writes to it meanwhile is up to the caller.
        unsafe { tensor.memory.row_major_bytes(what) }.map_err(|error| refused(&error))
    };
    Ok(Weights {
        dtype: weight.dtype(),
        shape: weight.shape().to_vec(),
        filter: copy(&weight, "the weights")?,
        bias: bias.map(|bias| copy(&bias, "the bias")).transpose()?,
    })
}

fn check_bias(expected: DType, bias: &Borrowed<'_>, recipe: &Recipe) -> PyResult<()> {
    if bias.dtype() != expected {
        let error = SpecError::MixedDTypes {
            tensor: "bias",
            dialect: recipe.dialect.as_str(),
            expected,
            found: bias.dtype(),
            reference: "weight",
        };
        return Err(refused(&error.into()));
    }
    match bias.shape() {
        [_] => Ok(()),
        shape => {
            Err(invalid(format!("`bias` must have one axis, one value per output channel, got {shape:?}")))
        }
    }
}

fn sizes(shape: &[i64]) -> PyResult<Vec<usize>> {
    let size = |&size| usize::try_from(size).map_err(|_| invalid(format!("`shape` has a size of {size}")));
    shape.iter().map(size).collect()
}
