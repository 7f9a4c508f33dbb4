//! Matrix tiles: 16 × 16 sums of 16-bit products per instruction.
//!
//! A number is the sum of one, two or three 16-bit ones with the exponent range of 32-bit ones, 8 bits of significand each
//! (*parts*). Of the nine products of two sums of three, six matter: those left out are below the rounding of the product
//! itself.

mod blocks;
mod rows;

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::OnceLock;

use super::{byte_rows, finish};
use crate::matrix::{ByteKernels, MatrixKernels, PartKernels};

/// Whether this CPU has tiles with 16-bit floats and the system lets this process use them. Asked once.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE
        .get_or_init(|| cpu_has_tiles() && is_x86_feature_detected!("avx512bf16") && system_permits_tiles())
}

fn cpu_has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    const INT8: u32 = 1 << 25;
    const ALL: u32 = BF16 | TILE | INT8;
    const SYSTEM_SAVES_VECTORS: u32 = 1 << 27;
    const TILE_STATE: u64 = 0b11 << 17;
    if cpuid(0).eax < 7 || cpuid(1).ecx & SYSTEM_SAVES_VECTORS == 0 {
        return false;
    }
    // SAFETY: the CPU has just said that the instruction exists.
    let saved = unsafe { saved_state() };
    cpuid(7).edx & ALL == ALL && saved & TILE_STATE == TILE_STATE
}

/// What the CPU says of itself.
// Only newer compilers know that asking is safe.
#[allow(unused_unsafe)]
fn cpuid(leaf: u32) -> CpuidResult {
    // SAFETY: every x86-64 CPU has the instruction.
    unsafe { __cpuid_count(leaf, 0) }
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

/// All of it as a table.
pub(crate) const KERNELS: MatrixKernels = MatrixKernels {
    configure,
    release,
    parts: Some(PartKernels {
        blocks: [
            [blocks::four_by_one_whole, blocks::two_by_two_whole],
            [blocks::four_by_one_halves, blocks::two_by_two_halves],
            [blocks::four_by_one_thirds, blocks::two_by_two_thirds],
        ],
        split: [rows::split::<1>, rows::split::<2>, rows::split::<3>],
        copy_rows: rows::copy_rows,
        turn_rows: rows::turn_rows,
        are_sound: rows::are_sound,
        add_bias: rows::add_bias,
        finish_f32: finish::finish_f32,
        finish_bf16: finish::finish_bf16,
        finish_f16: finish::finish_f16,
        turn_f32: finish::turn_f32,
        turn_bf16: finish::turn_bf16,
        turn_f16: finish::turn_f16,
    }),
    bytes: ByteKernels {
        blocks: [
            [blocks::four_by_one_unsigned, blocks::two_by_two_unsigned],
            [blocks::four_by_one_signed, blocks::two_by_two_signed],
        ],
        copy_rows: [byte_rows::copy_rows::<0>; 2],
        turn_rows: [byte_rows::turn_rows::<0>; 2],
        signed_offset: 0,
        requantize: byte_rows::requantize,
        requantize_to_i8: finish::requantize_i8,
        requantize_to_u8: finish::requantize_u8,
        requantize_to_f32: finish::requantize_f32,
        turn_to_i8: finish::turn_i8,
        turn_to_u8: finish::turn_u8,
        turn_to_f32: finish::turn_reals,
    },
    range_of: finish::range_of,
};
