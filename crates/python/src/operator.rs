//! The library's operator with its element type erased.

use std::sync::Arc;

use bytemuck::Pod;
use outstride::{
    ConvTranspose, DType, Dialect, Element, Error, Executor, Options, Policy, Precision, SpecError, Tensor,
    bf16, f16,
};

use crate::array::Memory;

/// A prepared operator of some element type.
pub(crate) trait Operator: Send + Sync {
    fn output_shape(&self, input: &[usize]) -> Result<Vec<usize>, Error>;

    fn explain(&self, input: &[usize], executor: Arc<dyn Executor>) -> Result<String, Error>;

    /// Runs on memory that somebody else owns; with an executor other than its own where one is given.
    ///
    /// # Safety
    ///
    /// The memory of both must be there, be of this operator's element type, and until the end nobody may write to
    /// either or read from `out`.
    unsafe fn run(
        &self,
        x: &Memory,
        out: &mut Memory,
        executor: Option<Arc<dyn Executor>>,
    ) -> Result<(), Error>;

    /// The filter and bias it was made of.
    fn weights(&self) -> Weights<&[u8]>;
}

/// A filter and a bias of one element type, in row-major order.
pub(crate) struct Weights<Bytes> {
    pub(crate) dtype: DType,
    pub(crate) shape: Vec<usize>,
    pub(crate) filter: Bytes,
    pub(crate) bias: Option<Bytes>,
}

/// What an operator is to do beside its weights.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) dialect: Arc<dyn Dialect>,
    pub(crate) policy: Policy,
    pub(crate) activation: Option<outstride::Activation>,
    pub(crate) precision: Precision,
    pub(crate) executor: Arc<dyn Executor>,
}

impl Weights<Vec<u8>> {
    /// Prepares an operator with these weights.
    pub(crate) fn prepare(&self, settings: &Settings) -> Result<Box<dyn Operator>, Error> {
        match self.dtype {
            DType::F16 => self.prepare_as::<f16>(settings),
            DType::Bf16 => self.prepare_as::<bf16>(settings),
            DType::F32 => self.prepare_as::<f32>(settings),
            DType::F64 => self.prepare_as::<f64>(settings),
            DType::I8 => self.prepare_as::<i8>(settings),
            DType::I16 => self.prepare_as::<i16>(settings),
            DType::I32 => self.prepare_as::<i32>(settings),
            DType::I64 => self.prepare_as::<i64>(settings),
            DType::U8 => self.prepare_as::<u8>(settings),
            DType::U16 => self.prepare_as::<u16>(settings),
            DType::U32 => self.prepare_as::<u32>(settings),
            DType::U64 => self.prepare_as::<u64>(settings),
            DType::Bool => Err(SpecError::DTypeNotAllowed {
                tensor: "weight",
                dialect: settings.dialect.name().as_str(),
                found: DType::Bool,
                allowed: DType::NUMERIC,
            }
            .into()),
        }
    }

    fn prepare_as<T: Element + Pod>(&self, settings: &Settings) -> Result<Box<dyn Operator>, Error> {
        let filter = Tensor::from_vec(&self.shape, bytemuck::pod_collect_to_vec::<u8, T>(&self.filter))?;
        let bias = self.bias.as_deref().map(bytemuck::pod_collect_to_vec::<u8, T>);
        let dialect = settings.dialect.clone();
        let options = Options { precision: settings.precision, ..Options::default() };
        let op = ConvTranspose::with_options(dialect, filter.view(), bias.as_deref(), &options)?
            .with_policy(settings.policy)
            .with_executor(settings.executor.clone());
        let op = match settings.activation {
            Some(activation) => op.with_activation(activation),
            None => op,
        };
        Ok(Box::new(Prepared { op, filter, bias }))
    }
}

/// An operator, and a copy of its weights for pickling: the engine keeps them in an order of its own.
struct Prepared<T: Element> {
    op: ConvTranspose<T>,
    filter: Tensor<T>,
    bias: Option<Vec<T>>,
}

impl<T: Element + Pod> Operator for Prepared<T> {
    fn output_shape(&self, input: &[usize]) -> Result<Vec<usize>, Error> {
        Ok(self.op.resolve(input)?.output_shape())
    }

    fn explain(&self, input: &[usize], executor: Arc<dyn Executor>) -> Result<String, Error> {
        Ok(self.op.clone().with_executor(executor).plan(input)?.explain())
    }

    unsafe fn run(
        &self,
        x: &Memory,
        out: &mut Memory,
        executor: Option<Arc<dyn Executor>>,
    ) -> Result<(), Error> {
        // SAFETY: the caller vouches for the memory.
        let (x, out) = unsafe { (x.view::<T>()?, out.view_mut::<T>()?) };
        match executor {
            Some(executor) => self.op.clone().with_executor(executor).run_into(x, out),
            None => self.op.run_into(x, out),
        }
    }

    fn weights(&self) -> Weights<&[u8]> {
        Weights {
            dtype: T::DTYPE,
            shape: self.filter.shape().to_vec(),
            filter: bytemuck::cast_slice(self.filter.data()),
            bias: self.bias.as_deref().map(bytemuck::cast_slice),
        }
    }
}
