//! The x86-64 instruction sets.

pub(crate) mod amx;
pub(crate) mod avx2;
pub(crate) mod avx512;
mod byte_rows;
mod bytes;
mod finish;
mod halves;
mod panel_loop;
mod pixel_loop;
pub(crate) mod vnni;
