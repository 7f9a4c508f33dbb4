//! Runs graphs of transposed convolutions and the element-wise operators that sit between them.

mod activation;
mod arithmetic;
mod convert;
mod evaluate;
mod node;
mod numbers;
mod quantize;

pub(crate) use evaluate::Evaluator;
