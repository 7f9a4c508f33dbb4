//! What the tests share: an independent implementation of the operator to compare with, and generators of problems.

#![allow(dead_code, unused_imports, unused_macros)] // Each test file uses its own part.

pub(crate) mod generate;
pub(crate) mod memory;
pub(crate) mod number;
pub(crate) mod relayout;
pub(crate) mod run;
pub(crate) mod scatter;

/// Expands a macro-like call once per numeric element type: `for_each_number!(check(arguments))` calls
/// `check::<f16>(arguments)`, `check::<bf16>(arguments)` and so on.
macro_rules! for_each_number {
    ($function:ident($($argument:expr),*)) => {{
        $function::<outstride::f16>($($argument),*);
        $function::<outstride::bf16>($($argument),*);
        $function::<f32>($($argument),*);
        $function::<f64>($($argument),*);
        $function::<i8>($($argument),*);
        $function::<i16>($($argument),*);
        $function::<i32>($($argument),*);
        $function::<i64>($($argument),*);
        $function::<u8>($($argument),*);
        $function::<u16>($($argument),*);
        $function::<u32>($($argument),*);
        $function::<u64>($($argument),*);
    }};
}
pub(crate) use for_each_number;
