//! Matrix tiles: 16 × 16 sums of 16-bit products per instruction.
//!
//! A number is the sum of one, two or three 16-bit ones with the exponent range of 32-bit ones, 8 bits of significand each
//! (*parts*). Of the nine products of two sums of three, six matter: those left out are below the rounding of the product
//! itself. Newer CPUs multiply the other kind of 16-bit numbers as they are: 11 bits of significand, the whole of an f16.

mod blocks;
mod rows;

use std::arch::asm;
use std::arch::x86_64::*;
use std::marker::PhantomData;
use std::sync::OnceLock;

use half::{bf16, f16};

use super::finish::{Idle, Narrow, Nearest, Requantized, Work, Worker};
use super::{byte_rows, finish};
use crate::matrix::{
    ByteBlockKernels, ByteKernels, FinishKernels, FinishedRows, MatrixBlock, MatrixKernels, PartBlockKernels,
    PartKernels, RequantizeKernels,
};
use crate::quantize::Requantization;
use blocks::{Block, Float16, FourByOne, Halves, Products, Signed, Thirds, TwoByTwo, Unsigned, Whole};

/// Whether this CPU has tiles with 16-bit floats and the system lets this process use them. Asked once.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE
        .get_or_init(|| cpu_has_tiles() && is_x86_feature_detected!("avx512bf16") && system_permits_tiles())
}

/// Whether these tiles can hold f16 as they are, too.
pub(crate) fn is_available_for_f16() -> bool {
    const F16: u32 = 1 << 21;
    is_available() && cpuid(7, 0).eax >= 1 && cpuid(7, 1).eax & F16 != 0
}

fn cpu_has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    const ALL: u32 = BF16 | TILE | INT8;
    const SYSTEM_SAVES_VECTORS: u32 = 1 << 27;
    const TILE_STATE: u64 = 0b11 << 17;
    if cpuid(0, 0).eax < 7 || cpuid(1, 0).ecx & SYSTEM_SAVES_VECTORS == 0 {
        return false;
    }
    // SAFETY: the CPU has just said that the instruction exists.
    let saved = unsafe { saved_state() };
    cpuid(7, 0).edx & ALL == ALL && saved & TILE_STATE == TILE_STATE
}

/// What the CPU says of itself.
// Only newer compilers know that asking is safe.
#[allow(unused_unsafe)]
fn cpuid(leaf: u32, number: u32) -> CpuidResult {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { __cpuid_count(leaf, number) }
}

/// Which state the system saves when it switches tasks.
///
/// # Safety
///
/// The CPU must have the instruction `xgetbv`.
#[target_feature(enable = "xsave")]
unsafe fn saved_state() -> u64 {
    // SAFETY: register 0 always exists.
    unsafe { _xgetbv(0) }
}

#[cfg(target_os = "linux")]
fn system_permits_tiles() -> bool {
    const REQUEST_PERMISSION: libc::c_ulong = 0x1023;
    const TILE_DATA: libc::c_ulong = 18;
    // SAFETY: the call asks for permission to use the state, and touches no memory of ours.
    unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) == 0 }
}

#[cfg(not(target_os = "linux"))]
fn system_permits_tiles() -> bool {
    false
}

/// Prepares this thread's tiles: eight of 16 rows by 64 bytes.
///
/// # Safety
///
/// Tiles must be [available](is_available).
pub(crate) unsafe fn configure() {
    #[repr(C, align(64))]
    struct Configuration {
        palette: u8,
        start_row: u8,
        reserved: [u8; 14],
        row_bytes: [u16; 16],
        rows: [u8; 16],
    }
    let mut configuration =
        Configuration { palette: 1, start_row: 0, reserved: [0; 14], row_bytes: [0; 16], rows: [0; 16] };
    configuration.row_bytes[..8].fill(64);
    configuration.rows[..8].fill(16);
    // SAFETY: the caller vouches for tiles; the configuration is 64 bytes of a known palette.
    unsafe { asm!("ldtilecfg [{}]", in(reg) &configuration, options(nostack, readonly)) };
}

/// Gives this thread's tiles back, so that switching tasks need not save them.
///
/// # Safety
///
/// Tiles must be [available](is_available).
pub(crate) unsafe fn release() {
    // SAFETY: the caller vouches for tiles.
    unsafe { asm!("tilerelease", options(nostack, nomem)) };
}

/// Has work done while it multiplies blocks.
struct Meanwhile<'a, B> {
    blocks: &'a [MatrixBlock<'a>],
    /// Where the sums go that tiles hold before; nowhere if null.
    held: *mut f32,
    how: PhantomData<B>,
}

impl<B: Block> Worker for Meanwhile<'_, B> {
    #[inline(always)]
    unsafe fn have_done(self, work: &mut impl Work) {
        let steps: usize = self.blocks.iter().map(|block| block.steps.len()).sum();
        let per_step = work.len().div_ceil(steps.max(1));
        // SAFETY: handed on from the caller.
        unsafe {
            let mut held = self.held;
            for block in self.blocks {
                B::run(block, held, work, per_step);
                held = block.out;
            }
            work.advance(usize::MAX);
        }
    }
}

/// See [`MatrixSession::multiply`](crate::MatrixSession::multiply).
///
/// # Safety
///
/// As [`Block::run`].
unsafe fn multiply<B: Block>(block: &MatrixBlock<'_>, held: *mut f32) {
    // SAFETY: handed on from the caller.
    unsafe { B::run(block, held, &mut Idle, 0) }
}

/// See [`MatrixSession::multiply_and_finish`](crate::MatrixSession::multiply_and_finish).
///
/// # Safety
///
/// As [`Block::run`] and [`finish::finish`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn multiply_and_finish<B: Block, Q>(
    blocks: &[MatrixBlock<'_>],
    held: *mut f32,
    from: &FinishedRows<'_>,
    bias: &[f32],
    bounds: (f32, f32),
    target: *mut u8,
    stream: bool,
) -> bool
where
    Nearest<Q>: Narrow<Element = Q>,
{
    let worker = Meanwhile::<B> { blocks, held, how: PhantomData };
    // SAFETY: handed on from the caller.
    unsafe { finish::finish::<Q>(worker, from, bias, bounds, target, stream) }
}

/// See [`MatrixSession::multiply_and_finish_bytes`](crate::MatrixSession::multiply_and_finish_bytes).
///
/// # Safety
///
/// As [`Block::run`] and [`Requantized::requantize`].
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
unsafe fn multiply_and_requantize<B: Block, Q: Requantized>(
    blocks: &[MatrixBlock<'_>],
    held: *mut f32,
    from: &FinishedRows<'_>,
    to: &Requantization<'_>,
    target: *mut u8,
    stream: bool,
) -> bool {
    let worker = Meanwhile::<B> { blocks, held, how: PhantomData };
    // SAFETY: handed on from the caller.
    unsafe { Q::requantize(worker, from, to, target, stream) }
}

/// The kernels of both shapes for numbers.
const fn of_numbers<P: Products>() -> [PartBlockKernels; 2] {
    const fn of_shape<B: Block>() -> PartBlockKernels {
        PartBlockKernels {
            multiply: multiply::<B>,
            and_finish: FinishKernels {
                f32: multiply_and_finish::<B, f32>,
                bf16: multiply_and_finish::<B, bf16>,
                f16: multiply_and_finish::<B, f16>,
            },
        }
    }
    [of_shape::<FourByOne<P>>(), of_shape::<TwoByTwo<P>>()]
}

/// The kernels of both shapes for bytes.
const fn of_bytes<P: Products>() -> [ByteBlockKernels; 2] {
    const fn of_shape<B: Block>() -> ByteBlockKernels {
        ByteBlockKernels {
            multiply: multiply::<B>,
            and_requantize: RequantizeKernels {
                i8: multiply_and_requantize::<B, i8>,
                u8: multiply_and_requantize::<B, u8>,
                f32: multiply_and_requantize::<B, f32>,
            },
        }
    }
    [of_shape::<FourByOne<P>>(), of_shape::<TwoByTwo<P>>()]
}

const PART_KERNELS: PartKernels = PartKernels {
    blocks: [of_numbers::<Whole>(), of_numbers::<Halves>(), of_numbers::<Thirds>()],
    f16_blocks: None,
    split: [rows::split::<1>, rows::split::<2>, rows::split::<3>],
    copy_rows: rows::copy_rows,
    turn_rows: rows::turn_rows,
    are_sound: rows::are_sound,
    add_bias: rows::add_bias,
    finish: FinishKernels {
        f32: finish::finish_now::<f32>,
        bf16: finish::finish_now::<bf16>,
        f16: finish::finish_now::<f16>,
    },
    finish_turned: FinishKernels { f32: finish::turn_f32, bf16: finish::turn_bf16, f16: finish::turn_f16 },
};

/// All of it as a table.
pub(crate) const KERNELS: MatrixKernels = MatrixKernels {
    configure,
    release,
    store_held: Some([<FourByOne<Whole> as Block>::store, <TwoByTwo<Whole> as Block>::store]),
    parts: Some(PART_KERNELS),
    bytes: ByteKernels {
        blocks: [of_bytes::<Unsigned>(), of_bytes::<Signed>()],
        copy_rows: [byte_rows::copy_rows::<0>; 2],
        turn_rows: [byte_rows::turn_rows::<0>; 2],
        signed_offset: 0,
        requantize: byte_rows::requantize,
        requantize_to: finish::REQUANTIZE,
        turn_to: finish::TURN,
    },
    range_of: finish::range_of,
};

/// The same with those for f16 as they are.
pub(crate) const KERNELS_WITH_F16: MatrixKernels = MatrixKernels {
    parts: Some(PartKernels { f16_blocks: Some(of_numbers::<Float16>()), ..PART_KERNELS }),
    ..KERNELS
};
