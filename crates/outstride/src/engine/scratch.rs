//! Memory that tasks borrow while they run, kept from call to call.

use std::sync::{Mutex, PoisonError};

use bytemuck::Zeroable;
use outstride_kernels::Scalar;

use super::panel::KeptPositions;
use crate::aligned::Aligned;

/// The scratch memory of one task.
#[derive(Debug, Default)]
pub(crate) struct Scratch<T> {
    /// A copied box of the input.
    pub(crate) input: Kept<T>,
    /// Sums that wait to be stored.
    pub(crate) sums: Aligned<T>,
    /// A box of the input, transformed into points.
    pub(crate) points: Aligned<T>,
    /// Products of points that wait to be added up.
    pub(crate) products: Aligned<T>,
    /// A copied box of the input, cut into parts for matrix tiles.
    pub(crate) parts: Kept<u16>,
    /// Whether some of the numbers in parts are tiny.
    pub(crate) tiny_parts: bool,
    /// How the positions of the last tasks lie.
    pub(crate) positions: KeptPositions,
}

/// Which box of which call's input.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BoxOfCall {
    pub(crate) call: u64,
    /// Among the boxes of all groups.
    pub(crate) number: usize,
}

/// A copied box of the input, for whichever tasks of a call share it.
#[derive(Debug, Default)]
pub(crate) struct Kept<E> {
    memory: Aligned<E>,
    whose: Option<BoxOfCall>,
}

impl<E: Zeroable> Kept<E> {
    /// So many elements of a box, which `copy` fills unless they are there already.
    pub(crate) fn of(&mut self, whose: BoxOfCall, len: usize, copy: impl FnOnce(&mut [E])) -> &mut [E] {
        if self.whose != Some(whose) {
            copy(self.any(len));
            self.whose = Some(whose);
        }
        self.memory.at_least(len)
    }

    /// At least so many elements, with whatever was there before.
    pub(crate) fn any(&mut self, len: usize) -> &mut [E] {
        self.whose = None;
        self.memory.at_least(len)
    }
}

/// The scratch memory of tasks that do not run just now, with who had it last: never more than ran at the same time.
#[derive(Debug, Default)]
pub(crate) struct ScratchPool<T>(Mutex<Vec<(ThreadMark, Scratch<T>)>>);

impl<T: Scalar> ScratchPool<T> {
    /// Lends scratch memory with whatever is in it: what this thread had last, if it is there, for that is in its core's caches.
    pub(crate) fn with<R>(&self, use_it: impl FnOnce(&mut Scratch<T>) -> R) -> R {
        let pool = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let own = ThreadMark::of_this_thread();
        let mut scratch = {
            let mut pool = pool();
            match pool.iter().position(|(mark, _)| *mark == own) {
                Some(place) => pool.swap_remove(place).1,
                None => pool.pop().map_or_else(Scratch::default, |(_, scratch)| scratch),
            }
        };
        let result = use_it(&mut scratch);
        pool().push((own, scratch));
        result
    }
}

/// Tells threads from each other as long as both live.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct ThreadMark(usize);

impl ThreadMark {
    fn of_this_thread() -> Self {
        thread_local!(static MARK: u8 = const { 0 });
        ThreadMark(MARK.with(|mark| std::ptr::from_ref(mark).addr()))
    }
}
