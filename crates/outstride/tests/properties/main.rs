//! What must hold of every transposed convolution, on generated problems.

mod adjoint;
mod dialects;
mod elements;
mod epilogue;
mod layouts;
mod limits;

#[path = "../support/mod.rs"]
mod support;
