//! Memory for sums that tiles may hold for a while.

use std::marker::PhantomData;

use outstride_kernels::Real;

/// Sums of 32 bits. No slice of them lives on while tiles write any.
pub(super) struct Room<'a, T> {
    first: *mut f32,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
}

impl<'a, T: Real> Room<'a, T> {
    pub(super) fn new(memory: &'a mut [T]) -> Self {
        let Some(memory) = T::as_f32_mut(memory) else { unreachable!("matrix tiles compute 32-bit numbers") };
        Room { first: memory.as_mut_ptr(), len: memory.len(), memory: PhantomData }
    }

    /// Where so many sums go.
    #[inline]
    pub(super) fn at(&self, place: usize, len: usize) -> *mut f32 {
        assert!(place <= self.len && len <= self.len - place);
        self.first.wrapping_add(place)
    }

    /// So many sums.
    ///
    /// # Safety
    ///
    /// Tiles must hold none of them, and nobody else may use them meanwhile.
    #[expect(clippy::mut_from_ref, reason = "the caller vouches for it")]
    pub(super) unsafe fn sums(&self, place: usize, len: usize) -> &mut [T] {
        // SAFETY: there are that many, of this type, and the caller vouches for the rest.
        unsafe { std::slice::from_raw_parts_mut(self.at(place, len).cast(), len) }
    }
}
