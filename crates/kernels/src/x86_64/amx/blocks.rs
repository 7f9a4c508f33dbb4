//! Sums of products of tiles, a few instructions of assembly per step. Between steps there is time for [other work](Work), which
//! vectors do: a product of tiles leaves them one of their two ports. The compiler knows no tiles, so that they keep their values
//! meanwhile.
//!
//! Counting, comparing and jumping take that port from vectors as well. Forty such instructions a step, twenty more than there are, and
//! nearly nothing is finished meanwhile.

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::finish::Work;
use crate::matrix::{FETCHED_BY_STEP, MatrixBlock, MatrixStep, PART_ROW, TILE_ROWS};

// What the assembly relies on: rows of 64 bytes, tiles of 1024.
const _: () = assert!(PART_ROW * size_of::<u16>() == 64 && TILE_ROWS == 16);

/// How a block of sums is computed.
pub(super) trait Block {
    /// Adds the products of all steps to what sums begin with, leaves these in the tiles, and does so many pieces of work after
    /// each step. Meanwhile it stores the sums that tiles held before, if that is anywhere.
    ///
    /// # Safety
    ///
    /// Tiles must be configured, and all that the block names readable or writable, with room for the sums that tiles hold; and
    /// as [`Work::advance`].
    unsafe fn run(block: &MatrixBlock<'_>, held: *mut f32, work: &mut impl Work, pieces: usize);

    /// Stores the sums that tiles hold.
    ///
    /// # Safety
    ///
    /// Tiles must be configured, and there must be room for the sums.
    unsafe fn store(to: *mut f32);
}

/// How numbers or bytes are multiplied.
pub(super) trait Products {
    /// Which parts of weights and inputs are multiplied with each other, one pair after the other.
    const PAIRS: &'static [(usize, usize)];

    /// Adds the product of one of the two current tiles of rows and one of columns to one of the four of sums.
    ///
    /// # Safety
    ///
    /// Tiles must be configured.
    unsafe fn multiply<const SUM: usize, const ROWS: usize, const COLUMNS: usize>();
}

/// Bytes of a row of a tile, and elements of a tile of weights.
const ROW: usize = 64;
const TILE: usize = 512;

/// Two tiles of rows by two of columns.
pub(super) struct TwoByTwo<P>(PhantomData<P>);

/// Four tiles of rows by one of columns.
pub(super) struct FourByOne<P>(PhantomData<P>);

/// What follows every instruction on tiles. While the core's other hardware thread does anything at all, instructions on tiles hold
/// each other up if fewer than eight others lie between them: four loads and four products take 230 cycles so close together and 150
/// at this distance. While it is idle they take 60 either way.
macro_rules! distance {
    () => {
        ".rept 8\nnop\n.endr"
    };
}

/// An instruction for one of the four tiles of sums.
macro_rules! of_sum {
    ($number:expr, $before:expr, $after:literal ; $($operands:tt)*) => {
        match $number {
            0 => asm!(concat!($before, "tmm0", $after), distance!(), $($operands)* out("tmm0") _, options(nostack)),
            1 => asm!(concat!($before, "tmm1", $after), distance!(), $($operands)* out("tmm1") _, options(nostack)),
            2 => asm!(concat!($before, "tmm2", $after), distance!(), $($operands)* out("tmm2") _, options(nostack)),
            3 => asm!(concat!($before, "tmm3", $after), distance!(), $($operands)* out("tmm3") _, options(nostack)),
            _ => unreachable!("there are four"),
        }
    };
}

/// Stores a tile of sums, whose rows are so many bytes apart.
///
/// # Safety
///
/// Tiles must be configured, and there must be room for it.
#[inline(always)]
unsafe fn store_sum<const SUM: usize>(to: *mut u8, row: usize) {
    // SAFETY: handed on from the caller.
    unsafe { of_sum!(SUM, "tilestored [{to} + {row}], ", ""; to = in(reg) to, row = in(reg) row,) }
}

/// How the sums of a block begin.
struct Start {
    /// Where those go that tiles hold from the block before; nowhere if null.
    held: *mut u8,
    /// From a row of these to the next.
    held_row: usize,
    /// Where to load sums from; zeros if null.
    begin: *const u8,
    /// From a row of these to the next, and from a tile of rows.
    row: usize,
    tile: usize,
}

impl Start {
    /// Stores a tile of sums and begins it anew, given how far into those held and into those to begin with it is.
    ///
    /// # Safety
    ///
    /// Tiles must be configured, and both tiles readable or writable.
    #[inline(always)]
    unsafe fn tile<const SUM: usize>(&self, held: usize, begin: usize) {
        // SAFETY: handed on from the caller.
        unsafe {
            if !self.held.is_null() {
                store_sum::<SUM>(self.held.wrapping_add(held), self.held_row);
            }
            if self.begin.is_null() {
                of_sum!(SUM, "tilezero ", "";);
            } else {
                let begin = self.begin.wrapping_add(begin);
                of_sum!(SUM, "tileloadd ", ", [{begin} + {row}]"; begin = in(reg) begin, row = in(reg) self.row,);
            }
        }
    }
}

/// Loads two tiles of columns that follow each other, or the first of them alone. To `stream`, they are not to take room in the
/// first-level cache.
///
/// # Safety
///
/// Tiles must be configured, and the weights readable.
#[inline(always)]
unsafe fn load_columns<const BOTH: bool>(weights: *const u16, stream: bool) {
    macro_rules! load {
        ($($text:expr),*) => {
            asm!(
                $($text, distance!(),)*
                weights = in(reg) weights, row = in(reg) ROW,
                out("tmm6") _, out("tmm7") _,
                options(nostack, readonly),
            )
        };
    }
    // SAFETY: handed on from the caller.
    unsafe {
        match (BOTH, stream) {
            (true, true) => {
                load!("tileloaddt1 tmm6, [{weights} + {row}]", "tileloaddt1 tmm7, [{weights} + {row} + 1024]")
            }
            (true, false) => {
                load!("tileloadd tmm6, [{weights} + {row}]", "tileloadd tmm7, [{weights} + {row} + 1024]")
            }
            (false, true) => load!("tileloaddt1 tmm6, [{weights} + {row}]"),
            (false, false) => load!("tileloadd tmm6, [{weights} + {row}]"),
        }
    }
}

impl<P: Products> TwoByTwo<P> {
    /// Adds the products of a step. At the `FIRST` one, sums begin: while a tile is stored, the next is still multiplied.
    ///
    /// # Safety
    ///
    /// As [`Block::run`].
    #[inline(always)]
    unsafe fn multiply<const FIRST: bool>(
        block: &MatrixBlock<'_>,
        step: &MatrixStep,
        rows: [*const u16; 2],
        start: &Start,
    ) {
        let mut loaded = (usize::MAX, usize::MAX);
        // SAFETY: the caller vouches for all of it.
        unsafe {
            for &(columns, part) in P::PAIRS {
                if loaded.0 != columns {
                    load_columns::<true>(step.weights.wrapping_add(columns * 2 * TILE), block.stream);
                }
                if loaded.1 != part {
                    load_rows(rows, step.input, part * block.part_stride);
                }
                let begins = FIRST && loaded == (usize::MAX, usize::MAX);
                loaded = (columns, part);
                if begins {
                    start.tile::<0>(0, 0);
                }
                P::multiply::<0, 0, 0>();
                if begins {
                    start.tile::<1>(64, 64);
                }
                P::multiply::<1, 0, 1>();
                if begins {
                    start.tile::<2>(2048, start.tile);
                }
                P::multiply::<2, 1, 0>();
                if begins {
                    start.tile::<3>(2112, start.tile + 64);
                }
                P::multiply::<3, 1, 1>();
            }
        }
    }
}

impl<P: Products> Block for TwoByTwo<P> {
    #[inline(always)]
    unsafe fn run(block: &MatrixBlock<'_>, held: *mut f32, work: &mut impl Work, pieces: usize) {
        let (begin, row, tile) = block.begin(128, 2048);
        let start = Start { held: held.cast(), held_row: 128, begin, row, tile };
        let rows = [block.rows[0], block.rows[1]];
        let (mut steps, mut fetch) = (block.steps.iter(), block.fetch);
        // SAFETY: the caller vouches for all of it.
        unsafe {
            let Some(first) = steps.next() else {
                start.tile::<0>(0, 0);
                start.tile::<1>(64, 64);
                start.tile::<2>(2048, tile);
                start.tile::<3>(2112, tile + 64);
                return;
            };
            Self::multiply::<true>(block, first, rows, &start);
            loop {
                fetch_some(&mut fetch);
                work.advance(pieces);
                let Some(step) = steps.next() else { return };
                Self::multiply::<false>(block, step, rows, &start);
            }
        }
    }

    unsafe fn store(to: *mut f32) {
        let to = to.cast::<u8>();
        // SAFETY: handed on from the caller.
        unsafe {
            store_sum::<0>(to, 128);
            store_sum::<1>(to.wrapping_add(64), 128);
            store_sum::<2>(to.wrapping_add(2048), 128);
            store_sum::<3>(to.wrapping_add(2112), 128);
        }
    }
}

impl<P: Products> FourByOne<P> {
    /// Adds the products of a step. At the `FIRST` one, sums begin: while a tile is stored, the next is still multiplied.
    ///
    /// # Safety
    ///
    /// As [`Block::run`].
    #[inline(always)]
    unsafe fn multiply<const FIRST: bool>(block: &MatrixBlock<'_>, step: &MatrixStep, start: &Start) {
        let [a, b, c, d] = block.rows;
        let mut loaded = usize::MAX;
        // SAFETY: the caller vouches for all of it.
        unsafe {
            for &(columns, part) in P::PAIRS {
                let begins = FIRST && loaded == usize::MAX;
                if loaded != columns {
                    load_columns::<false>(step.weights.wrapping_add(columns * TILE), block.stream);
                    loaded = columns;
                }
                load_rows([a, b], step.input, part * block.part_stride);
                if begins {
                    start.tile::<0>(0, 0);
                }
                P::multiply::<0, 0, 0>();
                if begins {
                    start.tile::<1>(1024, start.tile);
                }
                P::multiply::<1, 1, 0>();
                load_rows([c, d], step.input, part * block.part_stride);
                if begins {
                    start.tile::<2>(2048, 2 * start.tile);
                }
                P::multiply::<2, 0, 0>();
                if begins {
                    start.tile::<3>(3072, 3 * start.tile);
                }
                P::multiply::<3, 1, 0>();
            }
        }
    }
}

impl<P: Products> Block for FourByOne<P> {
    #[inline(always)]
    unsafe fn run(block: &MatrixBlock<'_>, held: *mut f32, work: &mut impl Work, pieces: usize) {
        let (begin, row, tile) = block.begin(64, 1024);
        let start = Start { held: held.cast(), held_row: 64, begin, row, tile };
        let (mut steps, mut fetch) = (block.steps.iter(), block.fetch);
        // SAFETY: the caller vouches for all of it.
        unsafe {
            let Some(first) = steps.next() else {
                start.tile::<0>(0, 0);
                start.tile::<1>(1024, tile);
                start.tile::<2>(2048, 2 * tile);
                start.tile::<3>(3072, 3 * tile);
                return;
            };
            Self::multiply::<true>(block, first, &start);
            loop {
                fetch_some(&mut fetch);
                work.advance(pieces);
                let Some(step) = steps.next() else { return };
                Self::multiply::<false>(block, step, &start);
            }
        }
    }

    unsafe fn store(to: *mut f32) {
        let to = to.cast::<u8>();
        // SAFETY: handed on from the caller.
        unsafe {
            store_sum::<0>(to, 64);
            store_sum::<1>(to.wrapping_add(1024), 64);
            store_sum::<2>(to.wrapping_add(2048), 64);
            store_sum::<3>(to.wrapping_add(3072), 64);
        }
    }
}

/// Loads the current tiles of rows.
///
/// # Safety
///
/// Tiles must be configured, and a tile readable so many bytes and elements from each of the rows.
#[inline(always)]
unsafe fn load_rows(rows: [*const u16; 2], bytes: isize, elements: usize) {
    let [first, second] = rows;
    // SAFETY: handed on from the caller.
    unsafe {
        asm!(
            "tileloadd tmm4, [{first} + {row}]",
            distance!(),
            "tileloadd tmm5, [{second} + {row}]",
            distance!(),
            first = in(reg) first.wrapping_byte_offset(bytes).wrapping_add(elements),
            second = in(reg) second.wrapping_byte_offset(bytes).wrapping_add(elements),
            row = in(reg) ROW,
            out("tmm4") _, out("tmm5") _,
            options(nostack, readonly),
        );
    }
}

/// Brings near what is fetched after a step, if anything is.
#[inline(always)]
fn fetch_some(from: &mut *const u16) {
    if !from.is_null() {
        for line in 0..FETCHED_BY_STEP / PART_ROW {
            // SAFETY: fetching accesses no memory.
            unsafe { _mm_prefetch::<_MM_HINT_T1>(from.wrapping_add(line * PART_ROW).cast()) };
        }
        *from = from.wrapping_add(FETCHED_BY_STEP);
    }
}

macro_rules! products {
    ($(#[$what:meta])* $name:ident, $pairs:expr, $product:literal) => {
        $(#[$what])*
        pub(super) struct $name;

        impl Products for $name {
            const PAIRS: &'static [(usize, usize)] = &$pairs;

            #[inline(always)]
            unsafe fn multiply<const SUM: usize, const ROWS: usize, const COLUMNS: usize>() {
                // SAFETY: handed on from the caller.
                unsafe {
                    match (ROWS, COLUMNS) {
                        (0, 0) => of_sum!(SUM, concat!($product, " "), ", tmm4, tmm6";),
                        (0, 1) => of_sum!(SUM, concat!($product, " "), ", tmm4, tmm7";),
                        (1, 0) => of_sum!(SUM, concat!($product, " "), ", tmm5, tmm6";),
                        (1, 1) => of_sum!(SUM, concat!($product, " "), ", tmm5, tmm7";),
                        _ => unreachable!("there are two of each"),
                    }
                }
            }
        }
    };
}

products! {
    /// 16-bit numbers.
    Whole, [(0, 0)], "tdpbf16ps"
}
products! {
    /// Numbers of 11 bits of significand.
    Float16, [(0, 0)], "tdpfp16ps"
}
products! {
    /// Numbers in two parts.
    Halves, [(1, 0), (1, 1), (0, 1), (0, 0)], "tdpbf16ps"
}
products! {
    /// Numbers in three parts. What is left out is below the rounding of a product.
    Thirds, [(2, 0), (1, 0), (1, 1), (0, 1), (0, 2), (0, 0)], "tdpbf16ps"
}
products! {
    /// Unsigned bytes by signed ones.
    Unsigned, [(0, 0)], "tdpbusd"
}
products! {
    /// Signed bytes.
    Signed, [(0, 0)], "tdpbssd"
}
