//! The independent implementation of the operator that the property tests use as well.

#![allow(dead_code)] // The property tests use the rest.

#[path = "../../../crates/outstride/tests/support/number.rs"]
pub(crate) mod number;
#[path = "../../../crates/outstride/tests/support/scatter.rs"]
pub(crate) mod scatter;
