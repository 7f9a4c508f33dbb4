//! Tensors of any library that speaks DLPack.

mod abi;
mod export;
mod import;

pub(super) use export::Export;
pub(super) use import::{borrow, capsule};
