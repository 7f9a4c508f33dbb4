//! What the table's kernels compute, each against its definition. In a crate of their own, as a second one of all kernels takes
//! minutes to compile.

mod fold;
mod interleave;
mod pieces;
mod pixel;
mod quantize;
mod transpose;
mod winograd;
