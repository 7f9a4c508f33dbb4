//! The inner loops of the largest panel tiles, instruction by instruction.
//!
//! Multiply-adds alone take two instructions a cycle, so that whatever else a channel costs has to fit beside them: compilers add
//! a tenth to the time of these loops, by addresses that they compute or reload and by the registers they choose.

pub(super) mod avx2;
pub(super) mod avx512;
