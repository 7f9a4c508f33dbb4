//! What an instruction set can do at most: loops that only multiply and add, only read, only write. A benchmark runs
//! them to learn the ceilings of the machine it is on.

use std::hint::black_box;

use crate::isa::Isa;
use crate::simd::{Scalar, Simd};

/// The probes of an instruction set.
#[derive(Clone, Copy)]
pub(crate) struct Probes<T: Scalar> {
    /// Independent chains of the arithmetic probe.
    pub(crate) chains: usize,
    pub(crate) arithmetic: unsafe fn(usize),
    pub(crate) read: unsafe fn(&[T]),
    pub(crate) write: unsafe fn(&mut [T]),
}

/// How many independent sums keep the arithmetic units busy and still fit the registers. Two units of four cycles
/// latency need eight; portable vectors take two registers each, and more for what lies between multiply and add.
pub(crate) const fn chains(isa: Isa) -> usize {
    match isa {
        Isa::Portable => 6,
        Isa::Avx2 | Isa::Avx512 | Isa::Vnni | Isa::Amx | Isa::AmxFp16 => 12,
    }
}

/// `rounds` multiply-adds on each of `CHAINS` vectors, all in registers.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn arithmetic<S: Simd, const CHAINS: usize>(rounds: usize) {
    // SAFETY: the caller vouches for the instruction set.
    unsafe {
        // v ← v/2 + 1/2 settles at 1: neither overflow nor the slow numbers near zero.
        let half = S::splat(black_box(S::Scalar::from_f64(0.5)));
        let mut sums = [half; CHAINS];
        for _ in 0..rounds {
            for sum in &mut sums {
                *sum = S::multiply_add(*sum, half, half);
            }
        }
        keep::<S, CHAINS>(&sums);
    }
}

/// Makes the compiler compute the sums. Stores, because it is by them that it finds what the portable vectors are.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
unsafe fn keep<S: Simd, const COUNT: usize>(sums: &[S::Vector; COUNT]) {
    const { assert!(S::LANES <= 16) };
    let mut memory = [[S::Scalar::default(); 16]; COUNT];
    for (sum, memory) in sums.iter().zip(&mut memory) {
        // SAFETY: the caller vouches for the instruction set; no vector has more than 16 lanes.
        unsafe { S::store(memory.as_mut_ptr(), *sum) };
    }
    black_box(&memory);
}

/// Reads every whole group of four vectors.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn read<S: Simd>(values: &[S::Scalar]) {
    // SAFETY: the caller vouches for the instruction set; a chunk has four vectors.
    unsafe {
        let mut sums = [S::splat(S::Scalar::default()); 4];
        for chunk in values.chunks_exact(4 * S::LANES) {
            for (index, sum) in sums.iter_mut().enumerate() {
                *sum = S::add(*sum, S::load(chunk.as_ptr().add(index * S::LANES)));
            }
        }
        keep::<S, 4>(&sums);
    }
}

/// Writes every whole group of four vectors, with ordinary stores.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set.
#[inline(always)]
pub(crate) unsafe fn write<S: Simd>(values: &mut [S::Scalar]) {
    // SAFETY: the caller vouches for the instruction set; a chunk has four vectors.
    unsafe {
        // A value the compiler does not know, or it would call a function that bypasses the caches.
        let value = S::splat(black_box(S::Scalar::from_f64(0.5)));
        for chunk in values.chunks_exact_mut(4 * S::LANES) {
            for index in 0..4 {
                S::store(chunk.as_mut_ptr().add(index * S::LANES), value);
            }
        }
    }
    black_box(values);
}
