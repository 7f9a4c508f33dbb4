//! Memory that tasks borrow while they run, kept from call to call.

use std::sync::{Mutex, PoisonError};

use outstride_kernels::Scalar;

use crate::aligned::Aligned;

/// The scratch memory of one task.
#[derive(Debug, Default)]
pub(crate) struct Scratch<T> {
    /// A copied box of the input.
    pub(crate) input: Aligned<T>,
    /// Sums that wait to be stored.
    pub(crate) sums: Aligned<T>,
    /// A box of the input, transformed into points.
    pub(crate) points: Aligned<T>,
    /// Products of points that wait to be added up.
    pub(crate) products: Aligned<T>,
    /// A copied box of the input, cut into parts for matrix tiles.
    pub(crate) parts: Aligned<u16>,
}

/// The scratch memory of tasks that do not run just now: never more than ran at the same time.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool<T>(Mutex<Vec<Scratch<T>>>);

impl<T: Scalar> ScratchPool<T> {
    /// Lends scratch memory with whatever is in it.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut Scratch<T>) -> R) -> R {
        let pool = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let mut scratch = pool().pop().unwrap_or_default();
        let result = use_it(&mut scratch);
        pool().push(scratch);
        result
    }
}
