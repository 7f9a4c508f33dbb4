//! Functions of two values, and joining tensors.

use anyhow::{Context as _, Result, bail};
use outstride::{DType, Element, Limits, bf16, f16};
use outstride_io::model::{Attribute, Node};
use outstride_io::{AnyTensor, Storable};

use super::numbers::{from_f64, to_f64};
use crate::convolve::{values_of, with_element};

/// The arithmetic between layers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Add,
    Sub,
    Mul,
    Div,
}

impl Binary {
    /// The operator of a name, ONNX's or OpenVINO's.
    pub(super) fn from_op(op: &str) -> Option<Self> {
        Some(match op {
            "Add" => Binary::Add,
            "Sub" | "Subtract" => Binary::Sub,
            "Mul" | "Multiply" => Binary::Mul,
            "Div" | "Divide" => Binary::Div,
            _ => return None,
        })
    }

    fn of(self, a: f64, b: f64) -> f64 {
        match self {
            Binary::Add => a + b,
            Binary::Sub => a - b,
            Binary::Mul => a * b,
            Binary::Div => a / b,
        }
    }
}

/// The operator on tensors whose shapes agree by numpy's rule. Doubles give the correctly rounded result for every
/// float type up to f32, and for f64 itself.
pub(super) fn binary(op: Binary, a: &AnyTensor, b: &AnyTensor) -> Result<AnyTensor> {
    if !a.values().dtype().is_float() {
        bail!("{op:?} of {} is not supported; floats are", a.values().dtype());
    }
    with_broadcast(a, b, |a, b| op.of(a, b))
}

/// A function of two tensors' elements.
pub(super) fn with_broadcast(
    a: &AnyTensor,
    b: &AnyTensor,
    function: impl Fn(f64, f64) -> f64,
) -> Result<AnyTensor> {
    let dtype = a.values().dtype();
    if dtype != b.values().dtype() {
        bail!("the inputs have types {dtype} and {}; they must be the same", b.values().dtype());
    }
    let rank = a.shape().len().max(b.shape().len());
    let (a_shape, b_shape) = (padded(a.shape(), rank), padded(b.shape(), rank));
    let mut shape = Vec::with_capacity(rank);
    for (axis, (&x, &y)) in a_shape.iter().zip(&b_shape).enumerate() {
        shape.push(match (x, y) {
            (x, y) if x == y => x,
            (1, y) => y,
            (x, 1) => x,
            _ => bail!("shapes {:?} and {:?} do not agree on axis {axis}", a.shape(), b.shape()),
        });
    }
    let count = checked_count(&shape, dtype)?;
    let (a_values, b_values) = (to_f64(a), to_f64(b));
    let mut values = Vec::with_capacity(count);
    let mut index = vec![0; rank];
    for _ in 0..count {
        values.push(function(a_values[position(&index, &a_shape)], b_values[position(&index, &b_shape)]));
        advance(&mut index, &shape);
    }
    from_f64(dtype, &shape, values)
}

fn padded(shape: &[usize], rank: usize) -> Vec<usize> {
    std::iter::repeat_n(1, rank - shape.len()).chain(shape.iter().copied()).collect()
}

/// Where an element lies; axes of one element are the same everywhere.
fn position(index: &[usize], shape: &[usize]) -> usize {
    index.iter().zip(shape).fold(0, |position, (&i, &size)| position * size + if size == 1 { 0 } else { i })
}

fn advance(index: &mut [usize], shape: &[usize]) {
    for axis in (0..shape.len()).rev() {
        index[axis] += 1;
        if index[axis] < shape[axis] {
            return;
        }
        index[axis] = 0;
    }
}

/// How many elements a result has. Two small tensors can ask for a large one.
fn checked_count(shape: &[usize], dtype: DType) -> Result<usize> {
    let limit = Limits::default().max_bytes;
    let count = shape.iter().try_fold(1usize, |count, &size| count.checked_mul(size));
    let fits = |&count: &usize| (count as u64).saturating_mul(dtype.size() as u64) <= limit;
    count.filter(fits).with_context(|| format!("a result of shape {shape:?} needs more than {limit} bytes"))
}

/// Tensors one after the other along an axis.
pub(super) fn concat(node: &Node, inputs: &[Option<&AnyTensor>]) -> Result<AnyTensor> {
    let tensors: Vec<&AnyTensor> = inputs.iter().copied().flatten().collect();
    let first = *tensors.first().context("there is nothing to join")?;
    let rank = first.shape().len();
    let axis = match node.attributes.get("axis") {
        Some(Attribute::Int(axis)) => {
            usize::try_from(if *axis < 0 { axis + rank as i64 } else { *axis }).ok()
        }
        _ => None,
    };
    let Some(axis) = axis.filter(|&axis| axis < rank) else {
        bail!("`axis` must be an axis of tensors of rank {rank}");
    };
    for tensor in &tensors {
        let agree = tensor.shape().len() == rank
            && (0..rank).all(|other| other == axis || tensor.shape()[other] == first.shape()[other]);
        if !agree || tensor.values().dtype() != first.values().dtype() {
            bail!("{:?} cannot be joined to {:?} along axis {axis}", tensor.shape(), first.shape());
        }
    }
    with_element!(first.values().dtype(), concat_in(&tensors, axis))
}

fn concat_in<T: Element + Storable>(tensors: &[&AnyTensor], axis: usize) -> Result<AnyTensor> {
    let mut shape = tensors[0].shape().to_vec();
    let sizes = tensors.iter().map(|tensor| tensor.shape()[axis]);
    shape[axis] = sizes.fold(0, usize::saturating_add);
    let count = checked_count(&shape, <T as Storable>::DTYPE)?;
    // Of a result that has elements, every part of the shape can be multiplied.
    let outer: usize = if count == 0 { 0 } else { shape[..axis].iter().product() };
    let mut values: Vec<T> = Vec::with_capacity(count);
    for block in 0..outer {
        for tensor in tensors {
            let length: usize = tensor.shape()[axis..].iter().product();
            values.extend_from_slice(&values_of::<T>(tensor)?[block * length..(block + 1) * length]);
        }
    }
    AnyTensor::new(shape, values).context("a shape and its values do not agree")
}
