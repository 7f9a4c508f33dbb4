//! Memory that begins at a cache line.

use bytemuck::Zeroable;
use bytemuck::allocation::try_zeroed_vec;
use outstride_kernels::prefer_huge_pages;

/// Bytes of a cache line.
pub(crate) const LINE: usize = 64;

/// Elements of which the first begins a cache line.
#[derive(Clone, Debug)]
pub(crate) struct Aligned<T> {
    memory: Vec<T>,
    start: usize,
    len: usize,
}

impl<T> Default for Aligned<T> {
    fn default() -> Self {
        Aligned { memory: Vec::new(), start: 0, len: 0 }
    }
}

/// The system has no memory left.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NoMemory;

impl<T: Zeroable> Aligned<T> {
    /// So many zeros. The system gives large memory full of zeros, page by page when it is first written.
    pub(crate) fn zeros(len: usize) -> Result<Self, NoMemory> {
        let slack = LINE / size_of::<T>();
        let mut memory: Vec<T> = try_zeroed_vec(len.saturating_add(slack)).map_err(|()| NoMemory)?;
        prefer_huge_pages(&mut memory);
        let start = memory.as_ptr().align_offset(LINE).min(slack);
        Ok(Aligned { memory, start, len })
    }

    /// At least so many elements, with whatever was there before.
    pub(crate) fn at_least(&mut self, len: usize) -> &mut [T] {
        if self.len < len {
            // What was there need not be kept, so both need not exist at once.
            *self = Aligned::default();
            *self = Aligned::zeros(len).unwrap_or_else(|_| panic!("no memory for {len} scratch elements"));
        }
        &mut self.as_mut_slice()[..len]
    }
}

impl<T> Aligned<T> {
    /// These elements, wherever they begin.
    pub(crate) fn from_vec(memory: Vec<T>) -> Self {
        Aligned { start: 0, len: memory.len(), memory }
    }

    /// The elements alone.
    pub(crate) fn into_vec(mut self) -> Vec<T> {
        self.memory.truncate(self.start + self.len);
        self.memory.drain(..self.start);
        self.memory
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn as_slice(&self) -> &[T] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn as_mut_slice(&mut self) -> &mut [T] {
        &mut self.memory[self.start..self.start + self.len]
    }
}

impl<T: PartialEq> PartialEq for Aligned<T> {
    fn eq(&self, other: &Self) -> bool {
        self.as_slice() == other.as_slice()
    }
}
