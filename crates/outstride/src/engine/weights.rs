//! The weights of a filter in memory.

use std::borrow::Cow;
use std::fmt;
use std::sync::OnceLock;

use outstride_kernels::{Kernels, PanelKernels, Real, Source, Stored};

use crate::aligned::{Aligned, NoMemory};

/// Weights in the type that is computed with, or in a narrower one of which kernels can read them, and then in both if need be.
#[derive(Debug)]
pub(crate) struct Weights<T: Real> {
    kept: Box<dyn Memory<T>>,
    widened: OnceLock<Aligned<T>>,
    kernels: &'static Kernels<T>,
}

/// Weights of some type.
trait Memory<T: Real>: fmt::Debug + Send + Sync {
    fn source<'a>(&'a self, kernels: &'a Kernels<T>) -> Source<'a, T>;
}

impl<T: Real, Q: Stored<T>> Memory<T> for Aligned<Q> {
    fn source<'a>(&'a self, kernels: &'a Kernels<T>) -> Source<'a, T> {
        Source::new(self.as_slice(), kernels)
    }
}

impl<T: Real> Weights<T> {
    pub(crate) fn new<Q: Stored<T>>(kept: Aligned<Q>, kernels: &'static Kernels<T>) -> Self {
        Weights { kept: Box::new(kept), widened: OnceLock::new(), kernels }
    }

    /// As they are kept.
    pub(crate) fn kept(&self) -> Source<'_, T> {
        self.kept.source(self.kernels)
    }

    /// Whether they are kept in a narrower type than what is computed with.
    pub(crate) fn are_narrow(&self) -> bool {
        self.kept().as_computed().is_none()
    }

    /// Has narrow ones in the type that is computed with as well.
    pub(crate) fn widen(&self) -> Result<(), NoMemory> {
        if !self.are_narrow() || self.widened.get().is_some() {
            return Ok(());
        }
        let mut widened = Aligned::zeros(self.kept().len())?;
        self.kept().read_run(0, widened.as_mut_slice());
        // Another thread may have been faster; its weights are the same.
        let _ = self.widened.set(widened);
        Ok(())
    }

    /// In the type that is computed with. Narrow ones must have been [widened](Self::widen).
    pub(crate) fn computed(&self) -> &[T] {
        let widened = || self.widened.get().expect("planned to read them so").as_slice();
        self.kept().as_computed().unwrap_or_else(widened)
    }

    /// Bytes that they take.
    pub(crate) fn bytes(&self) -> usize {
        self.kept().bytes() + self.widened.get().map_or(0, |widened| size_of_val(widened.as_slice()))
    }

    /// Bytes that they take in the type that is computed with.
    pub(crate) fn computed_bytes(&self) -> usize {
        self.kept().len() * size_of::<T>()
    }
}

/// Weights that follow each other.
#[derive(Clone, Copy)]
pub(crate) struct WeightRun<'a, T: 'static> {
    pub(crate) source: Source<'a, T>,
    pub(crate) first: usize,
    pub(crate) len: usize,
}

impl<'a, T: Real> WeightRun<'a, T> {
    /// One of them.
    pub(crate) fn get(&self, index: usize) -> T {
        assert!(index < self.len);
        self.source.get(self.first + index)
    }

    /// Where one lies, which need not be there.
    pub(crate) fn pointer(&self, index: usize) -> *const u8 {
        self.source.pointer(self.first + index)
    }

    /// The panel kernels that can read them where they lie.
    pub(crate) fn panels(&self) -> PanelKernels<T> {
        self.source.panels()
    }

    /// All of them in the type that is computed with.
    pub(crate) fn computed(&self) -> Cow<'a, [T]> {
        if let Some(all) = self.source.as_computed() {
            return Cow::Borrowed(&all[self.first..self.first + self.len]);
        }
        let mut widened = vec![T::default(); self.len];
        self.source.read_run(self.first as isize, &mut widened);
        Cow::Owned(widened)
    }
}

#[cfg(test)]
mod tests {
    use half::f16;
    use outstride_kernels::{Isa, best_kernels};

    use super::*;

    fn numbers(count: usize) -> Vec<f32> {
        (0..count).map(|number| number as f32 - 7.5).collect()
    }

    fn narrow(count: usize) -> Weights<f32> {
        let narrow = numbers(count).into_iter().map(f16::from_f32).collect();
        Weights::new(Aligned::from_vec(narrow), best_kernels(Isa::best()))
    }

    #[test]
    fn narrow_weights_are_widened_where_they_are_read() {
        let weights = narrow(100);
        assert!(weights.are_narrow());
        let run = WeightRun { source: weights.kept(), first: 3, len: 50 };
        assert_eq!(run.computed(), &numbers(100)[3..53]);
        assert_eq!(run.get(4), numbers(100)[7]);
    }

    #[test]
    fn narrow_weights_can_be_had_wide_as_well() {
        let weights = narrow(100);
        assert_eq!(weights.bytes(), 200);
        weights.widen().unwrap();
        assert_eq!(weights.computed(), numbers(100));
        assert_eq!((weights.bytes(), weights.computed_bytes()), (600, 400));
    }

    #[test]
    fn weights_as_wide_as_they_are_computed_with_stay_where_they_are() {
        let weights = Weights::new(Aligned::from_vec(numbers(40)), best_kernels::<f32>(Isa::best()));
        assert!(!weights.are_narrow());
        weights.widen().unwrap();
        assert_eq!(weights.bytes(), 160);
        assert_eq!(weights.computed(), numbers(40));
    }
}
