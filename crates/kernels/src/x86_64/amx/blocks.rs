//! Sums of products of tiles, a block of assembly per step. Between steps there is time for [other work](Work), which vectors
//! do: products of tiles and vectors do not hinder each other, though loads of tiles and vectors do. The compiler knows no tiles, so that
//! they keep their values meanwhile.

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;

use super::super::finish::Work;
use crate::matrix::{FETCHED_BY_STEP, MatrixBlock, PART_ROW, TILE_ROWS};

// What the assembly relies on: rows of 64 bytes, tiles of 1024.
const _: () = assert!(PART_ROW * size_of::<u16>() == 64 && TILE_ROWS == 16);

/// How a block of sums is computed.
pub(super) trait Block {
    /// Adds the products of all steps to what sums begin with, and does so many pieces of work after each of them.
    ///
    /// # Safety
    ///
    /// Tiles must be configured, and all that the block names readable or writable; and as [`Work::advance`].
    unsafe fn run(block: &MatrixBlock<'_>, work: &mut impl Work, pieces: usize);
}

/// How numbers or bytes are multiplied.
pub(super) trait Products {
    /// Which parts of weights and inputs are multiplied with each other, one pair after the other.
    const PAIRS: &'static [(usize, usize)];

    /// The two current tiles of rows by the two of columns.
    ///
    /// # Safety
    ///
    /// Tiles must be configured.
    unsafe fn two_by_two();

    /// The two current tiles of rows by one of columns: the first or the last two tiles of sums.
    ///
    /// # Safety
    ///
    /// Tiles must be configured.
    unsafe fn two_by_one<const LAST: bool>();
}

/// Bytes of a row of a tile, and elements of a tile of weights.
const ROW: usize = 64;
const TILE: usize = 512;

/// Two tiles of rows by two of columns.
pub(super) struct TwoByTwo<P>(PhantomData<P>);

/// Four tiles of rows by one of columns.
pub(super) struct FourByOne<P>(PhantomData<P>);

/// Assembly that uses all tiles.
macro_rules! tiles {
    ($($text:expr),* ; $($operands:tt)*) => {
        asm!(
            $($text,)*
            $($operands)*
            out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
            out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
            options(nostack),
        )
    };
}

/// Begins four tiles of sums with zeros.
macro_rules! zero_sums {
    () => {
        tiles!("tilezero tmm0", "tilezero tmm1", "tilezero tmm2", "tilezero tmm3";)
    };
}

/// Loads a tile of columns. To `stream`, it is not to take room in the first-level cache.
macro_rules! load_columns {
    ($tile:tt, $weights:expr, $stream:expr) => {
        if $stream {
            asm!(
                concat!("tileloaddt1 ", $tile, ", [{weights} + {row}]"),
                weights = in(reg) $weights, row = in(reg) ROW,
                out("tmm6") _, out("tmm7") _,
                options(nostack, readonly),
            );
        } else {
            asm!(
                concat!("tileloadd ", $tile, ", [{weights} + {row}]"),
                weights = in(reg) $weights, row = in(reg) ROW,
                out("tmm6") _, out("tmm7") _,
                options(nostack, readonly),
            );
        }
    };
}

impl<P: Products> Block for TwoByTwo<P> {
    #[inline(always)]
    unsafe fn run(block: &MatrixBlock<'_>, work: &mut impl Work, pieces: usize) {
        let (begin, row, tile) = block.begin(128, 2048);
        // SAFETY: the caller vouches for all of it.
        unsafe {
            if begin.is_null() {
                zero_sums!();
            } else {
                tiles!(
                    "tileloadd tmm0, [{first} + {row}]",
                    "tileloadd tmm1, [{first} + {row} + 64]",
                    "tileloadd tmm2, [{second} + {row}]",
                    "tileloadd tmm3, [{second} + {row} + 64]";
                    first = in(reg) begin, second = in(reg) begin.wrapping_add(tile), row = in(reg) row,
                );
            }
            let rows = [block.rows[0], block.rows[1]];
            let mut fetch = Fetch(block.fetch);
            for step in block.steps {
                let mut loaded = (usize::MAX, usize::MAX);
                for &(columns, part) in P::PAIRS {
                    if loaded.0 != columns {
                        let weights = step.weights.wrapping_add(columns * 2 * TILE);
                        load_columns!("tmm6", weights, block.stream);
                        load_columns!("tmm7", weights.wrapping_add(TILE), block.stream);
                    }
                    if loaded.1 != part {
                        load_rows(rows, step.input, part * block.part_stride);
                    }
                    loaded = (columns, part);
                    P::two_by_two();
                }
                fetch.advance();
                work.advance(pieces);
            }
            tiles!(
                "tilestored [{first} + {row}], tmm0",
                "tilestored [{first} + {row} + 64], tmm1",
                "tilestored [{first} + {row} + 2048], tmm2",
                "tilestored [{first} + {row} + 2112], tmm3";
                first = in(reg) block.out, row = in(reg) 128usize,
            );
        }
    }
}

impl<P: Products> Block for FourByOne<P> {
    #[inline(always)]
    unsafe fn run(block: &MatrixBlock<'_>, work: &mut impl Work, pieces: usize) {
        let (begin, row, tile) = block.begin(64, 1024);
        // SAFETY: the caller vouches for all of it.
        unsafe {
            if begin.is_null() {
                zero_sums!();
            } else {
                tiles!(
                    "tileloadd tmm0, [{from} + {row}]",
                    "add {from}, {tile}",
                    "tileloadd tmm1, [{from} + {row}]",
                    "add {from}, {tile}",
                    "tileloadd tmm2, [{from} + {row}]",
                    "add {from}, {tile}",
                    "tileloadd tmm3, [{from} + {row}]";
                    from = inout(reg) begin => _, tile = in(reg) tile, row = in(reg) row,
                );
            }
            let [a, b, c, d] = block.rows;
            let mut fetch = Fetch(block.fetch);
            for step in block.steps {
                let mut loaded = usize::MAX;
                for &(columns, part) in P::PAIRS {
                    if loaded != columns {
                        load_columns!("tmm6", step.weights.wrapping_add(columns * TILE), block.stream);
                        loaded = columns;
                    }
                    load_rows([a, b], step.input, part * block.part_stride);
                    P::two_by_one::<false>();
                    load_rows([c, d], step.input, part * block.part_stride);
                    P::two_by_one::<true>();
                }
                fetch.advance();
                work.advance(pieces);
            }
            tiles!(
                "tilestored [{first} + {row}], tmm0",
                "tilestored [{first} + {row} + 1024], tmm1",
                "tilestored [{first} + {row} + 2048], tmm2",
                "tilestored [{first} + {row} + 3072], tmm3";
                first = in(reg) block.out, row = in(reg) 64usize,
            );
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
            "tileloadd tmm5, [{second} + {row}]",
            first = in(reg) first.wrapping_byte_offset(bytes).wrapping_add(elements),
            second = in(reg) second.wrapping_byte_offset(bytes).wrapping_add(elements),
            row = in(reg) ROW,
            out("tmm4") _, out("tmm5") _,
            options(nostack, readonly),
        );
    }
}

/// What is fetched after every step, if anything.
struct Fetch(*const u16);

impl Fetch {
    #[inline(always)]
    fn advance(&mut self) {
        if !self.0.is_null() {
            for line in 0..FETCHED_BY_STEP / PART_ROW {
                // SAFETY: fetching accesses no memory.
                unsafe { _mm_prefetch::<_MM_HINT_T1>(self.0.wrapping_add(line * PART_ROW).cast()) };
            }
            self.0 = self.0.wrapping_add(FETCHED_BY_STEP);
        }
    }
}

macro_rules! products {
    ($(#[$what:meta])* $name:ident, $pairs:expr, $product:literal) => {
        $(#[$what])*
        pub(super) struct $name;

        impl Products for $name {
            const PAIRS: &'static [(usize, usize)] = &$pairs;

            #[inline(always)]
            unsafe fn two_by_two() {
                // SAFETY: handed on from the caller.
                unsafe {
                    tiles!(
                        concat!($product, " tmm0, tmm4, tmm6"),
                        concat!($product, " tmm1, tmm4, tmm7"),
                        concat!($product, " tmm2, tmm5, tmm6"),
                        concat!($product, " tmm3, tmm5, tmm7");
                    );
                }
            }

            #[inline(always)]
            unsafe fn two_by_one<const LAST: bool>() {
                // SAFETY: handed on from the caller.
                unsafe {
                    if LAST {
                        tiles!(
                            concat!($product, " tmm2, tmm4, tmm6"),
                            concat!($product, " tmm3, tmm5, tmm6");
                        );
                    } else {
                        tiles!(
                            concat!($product, " tmm0, tmm4, tmm6"),
                            concat!($product, " tmm1, tmm5, tmm6");
                        );
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
