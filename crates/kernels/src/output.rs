//! Output memory that several threads fill at once, each its own elements.

use std::marker::PhantomData;

/// Exclusive memory, lent to tasks that write different elements of it.
#[derive(Debug)]
pub struct Output<'a, T> {
    start: *mut T,
    len: usize,
    memory: PhantomData<&'a mut [T]>,
}

// SAFETY: writes go through `unsafe` functions whose callers promise that no two threads write one element, and
// nothing is ever read.
unsafe impl<T: Send> Sync for Output<'_, T> {}

impl<'a, T: Copy> Output<'a, T> {
    /// Lends the memory.
    pub fn new(memory: &'a mut [T]) -> Self {
        Output { start: memory.as_mut_ptr(), len: memory.len(), memory: PhantomData }
    }

    /// Writes `values` from index `first` on, `stride` elements apart.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// No other thread may write any of these elements at the same time.
    #[inline]
    pub unsafe fn write(&self, first: isize, stride: isize, values: &[T]) {
        self.check(first, stride, values.len());
        // SAFETY: the first and last element are inside, so all between are; the caller vouches for exclusiveness.
        unsafe {
            let target = self.start.offset(first);
            if stride == 1 {
                copy(values, target);
            } else {
                for (index, &value) in values.iter().enumerate() {
                    target.offset(index as isize * stride).write(value);
                }
            }
        }
    }

    /// Index 0 of the memory.
    pub(crate) fn start(&self) -> *mut T {
        self.start
    }

    /// The memory from index `first` on, of which `count` elements are inside.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    #[inline]
    pub(crate) fn run(&self, first: isize, count: usize) -> *mut T {
        self.check(first, 1, count);
        self.start.wrapping_offset(first)
    }

    /// Writes one value `count` times from index `first` on, `stride` elements apart.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the memory.
    ///
    /// # Safety
    ///
    /// No other thread may write any of these elements at the same time.
    #[inline]
    pub unsafe fn fill(&self, first: isize, stride: isize, count: usize, value: T) {
        self.check(first, stride, count);
        for index in 0..count {
            // SAFETY: as in `write`.
            unsafe { self.start.offset(first + index as isize * stride).write(value) };
        }
    }

    #[inline]
    fn check(&self, first: isize, stride: isize, count: usize) {
        if count == 0 {
            return;
        }
        let last = first + (count as isize - 1) * stride;
        let inside = |index: isize| index >= 0 && (index as usize) < self.len;
        assert!(inside(first) && inside(last), "output elements {first} to {last} of {}", self.len);
    }
}

/// Copies short runs without the call that a copy of unknown length would be.
///
/// # Safety
///
/// `target` must be writable for the length of `values` and apart from it.
#[inline(always)]
unsafe fn copy<T: Copy>(values: &[T], target: *mut T) {
    const BLOCK: usize = 16;
    let blocks = values.chunks_exact(BLOCK);
    let rest = blocks.remainder();
    let whole = values.len() - rest.len();
    for (index, block) in blocks.enumerate() {
        // SAFETY: the caller vouches for the target; a block has BLOCK elements.
        unsafe {
            target.add(index * BLOCK).cast::<[T; BLOCK]>().copy_from_nonoverlapping(block.as_ptr().cast(), 1)
        };
    }
    for (index, &value) in rest.iter().enumerate() {
        // SAFETY: the caller vouches for the target.
        unsafe { target.add(whole + index).write(value) };
    }
}
