//! Matrix tiles: 16 × 16 sums of 16-bit products per instruction.
//!
//! A number is the sum of one, two or three 16-bit ones with the exponent range of 32-bit ones, 8 bits of significand each
//! (*parts*). Of the nine products of two sums of three, six matter: those left out are below the rounding of the product
//! itself.

use std::arch::asm;
use std::arch::x86_64::*;
use std::sync::OnceLock;

use crate::matrix::{FETCHED_BY_STEP, MatrixBlock, MatrixKernels, MatrixStep, PART_ROW, TINY, VANISHING};

/// Whether this CPU has tiles with 16-bit floats and the system lets this process use them. Asked once.
pub(crate) fn is_available() -> bool {
    static AVAILABLE: OnceLock<bool> = OnceLock::new();
    *AVAILABLE
        .get_or_init(|| cpu_has_tiles() && is_x86_feature_detected!("avx512bf16") && system_permits_tiles())
}

fn cpu_has_tiles() -> bool {
    const BF16: u32 = 1 << 22;
    const TILE: u32 = 1 << 24;
    const SYSTEM_SAVES_VECTORS: u32 = 1 << 27;
    const TILE_STATE: u64 = 0b11 << 17;
    if cpuid(0).eax < 7 || cpuid(1).ecx & SYSTEM_SAVES_VECTORS == 0 {
        return false;
    }
    // SAFETY: the CPU has just said that the instruction exists.
    let saved = unsafe { saved_state() };
    cpuid(7).edx & (BF16 | TILE) == BF16 | TILE && saved & TILE_STATE == TILE_STATE
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
    const ARCH_PRCTL: isize = 158;
    const REQUEST_PERMISSION: isize = 0x1023;
    const TILE_DATA: isize = 18;
    let result: isize;
    // SAFETY: the call asks for permission to use the state, and touches no memory of ours.
    unsafe {
        asm!(
            "syscall",
            inlateout("rax") ARCH_PRCTL => result,
            in("rdi") REQUEST_PERMISSION,
            in("rsi") TILE_DATA,
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    result == 0
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

/// Begins four tiles of sums.
macro_rules! zero_sums {
    () => {
        "tilezero tmm0
         tilezero tmm1
         tilezero tmm2
         tilezero tmm3"
    };
}

/// Brings [`FETCHED_BY_STEP`](crate::matrix::FETCHED_BY_STEP) elements near.
macro_rules! fetch {
    () => {
        "prefetcht1 [{fetch}]
         prefetcht1 [{fetch} + 64]
         prefetcht1 [{fetch} + 128]
         prefetcht1 [{fetch} + 192]
         prefetcht1 [{fetch} + 256]
         prefetcht1 [{fetch} + 320]
         prefetcht1 [{fetch} + 384]
         prefetcht1 [{fetch} + 448]
         add {fetch}, 512"
    };
}

/// Four products of the current inputs and weights.
macro_rules! square {
    () => {
        "tdpbf16ps tmm0, tmm4, tmm6
         tdpbf16ps tmm1, tmm4, tmm7
         tdpbf16ps tmm2, tmm5, tmm6
         tdpbf16ps tmm3, tmm5, tmm7"
    };
}

/// Two tiles of rows by two of columns, given how a step's products are made.
macro_rules! two_by_two {
    ($name:ident, $parts:literal: $($products:expr),* $(,)?) => {
        /// # Safety
        ///
        /// Tiles must be configured, and all that the block names readable or writable.
        unsafe fn $name(block: &MatrixBlock<'_>) {
            // One part has no next one.
            let part_bytes = if $parts > 1 { block.part_stride * size_of::<u16>() } else { 0 };
            // SAFETY: the caller vouches for all of it. Inputs and weights are read 16 rows of 64 bytes at a time.
            unsafe {
                asm!(
                    "test {offset}, {offset}",
                    "jnz 2f",
                    zero_sums!(),
                    "jmp 3f",
                    "2:",
                    "lea {first}, [{out} + 2048]",
                    "tileloadd tmm0, [{out} + {pitch}]",
                    "tileloadd tmm1, [{out} + {pitch} + 64]",
                    "tileloadd tmm2, [{first} + {pitch}]",
                    "tileloadd tmm3, [{first} + {pitch} + 64]",
                    "3:",
                    "test {count}, {count}",
                    "jz 5f",
                    "4:",
                    "mov {offset}, [{step}]",
                    "mov {weights}, [{step} + 8]",
                    "lea {first}, [{rows0} + {offset}]",
                    "lea {second}, [{rows1} + {offset}]",
                    $($products,)*
                    "add {step}, 16",
                    "dec {count}",
                    "jnz 4b",
                    "5:",
                    "lea {first}, [{out} + 2048]",
                    "tilestored [{out} + {pitch}], tmm0",
                    "tilestored [{out} + {pitch} + 64], tmm1",
                    "tilestored [{first} + {pitch}], tmm2",
                    "tilestored [{first} + {pitch} + 64], tmm3",
                    out = in(reg) block.out,
                    pitch = in(reg) 128usize,
                    row = in(reg) 64usize,
                    rows0 = in(reg) block.rows[0],
                    rows1 = in(reg) block.rows[1],
                    part = in(reg) part_bytes,
                    step = inout(reg) block.steps.as_ptr() => _,
                    count = inout(reg) block.steps.len() => _,
                    fetch = inout(reg) block.fetch => _,
                    offset = inout(reg) u64::from(block.resume) => _,
                    weights = out(reg) _,
                    first = out(reg) _,
                    second = out(reg) _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

two_by_two! {
    two_by_two_whole, 1:
    // The last register is an operand all the same.
    "/* {part} */",
    "tileloadd tmm6, [{weights} + {row} + 0]",
    "tileloadd tmm7, [{weights} + {row} + 1024]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    fetch!(),
    square!(),
}

two_by_two! {
    two_by_two_halves, 2:
    "tileloadd tmm6, [{weights} + {row} + 2048]",
    "tileloadd tmm7, [{weights} + {row} + 3072]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "add {first}, {part}",
    "add {second}, {part}",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "tileloadd tmm6, [{weights} + {row} + 0]",
    "tileloadd tmm7, [{weights} + {row} + 1024]",
    fetch!(),
    square!(),
    "lea {first}, [{rows0} + {offset}]",
    "lea {second}, [{rows1} + {offset}]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
}

two_by_two! {
    two_by_two_thirds, 3:
    "tileloadd tmm6, [{weights} + {row} + 4096]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm7, [{weights} + {row} + 5120]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "tileloadd tmm6, [{weights} + {row} + 2048]",
    "tileloadd tmm7, [{weights} + {row} + 3072]",
    square!(),
    "add {first}, {part}",
    "add {second}, {part}",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
    "tileloadd tmm6, [{weights} + {row}]",
    "tileloadd tmm7, [{weights} + {row} + 1024]",
    square!(),
    "add {first}, {part}",
    "add {second}, {part}",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    fetch!(),
    square!(),
    "lea {first}, [{rows0} + {offset}]",
    "lea {second}, [{rows1} + {offset}]",
    "tileloadd tmm4, [{first} + {row}]",
    "tileloadd tmm5, [{second} + {row}]",
    square!(),
}

/// The current part of four tiles of rows by the current weights.
macro_rules! column {
    () => {
        "lea {first}, [{rows0} + {offset}]
         tileloadd tmm4, [{first} + {row}]
         tdpbf16ps tmm0, tmm4, tmm6
         lea {first}, [{rows1} + {offset}]
         tileloadd tmm5, [{first} + {row}]
         tdpbf16ps tmm1, tmm5, tmm6
         lea {first}, [{rows2} + {offset}]
         tileloadd tmm4, [{first} + {row}]
         tdpbf16ps tmm2, tmm4, tmm6
         lea {first}, [{rows3} + {offset}]
         tileloadd tmm5, [{first} + {row}]
         tdpbf16ps tmm3, tmm5, tmm6"
    };
}

/// Four tiles of rows by one of columns, given how a step's products are made.
macro_rules! four_by_one {
    ($name:ident, $parts:literal: $($products:expr),* $(,)?) => {
        /// # Safety
        ///
        /// Tiles must be configured, and all that the block names readable or writable.
        unsafe fn $name(block: &MatrixBlock<'_>) {
            // One part has no next one.
            let part_bytes = if $parts > 1 { block.part_stride * size_of::<u16>() } else { 0 };
            // SAFETY: the caller vouches for all of it. Inputs and weights are read 16 rows of 64 bytes at a time.
            unsafe {
                asm!(
                    "test {offset}, {offset}",
                    "jnz 2f",
                    zero_sums!(),
                    "jmp 3f",
                    "2:",
                    "tileloadd tmm0, [{out} + {row}]",
                    "tileloadd tmm1, [{out} + {row} + 1024]",
                    "tileloadd tmm2, [{out} + {row} + 2048]",
                    "tileloadd tmm3, [{out} + {row} + 3072]",
                    "3:",
                    "test {count}, {count}",
                    "jz 5f",
                    "4:",
                    "mov {offset}, [{step}]",
                    "mov {weights}, [{step} + 8]",
                    $($products,)*
                    "add {step}, 16",
                    "dec {count}",
                    "jnz 4b",
                    "5:",
                    "tilestored [{out} + {row}], tmm0",
                    "tilestored [{out} + {row} + 1024], tmm1",
                    "tilestored [{out} + {row} + 2048], tmm2",
                    "tilestored [{out} + {row} + 3072], tmm3",
                    out = in(reg) block.out,
                    row = in(reg) 64usize,
                    rows0 = in(reg) block.rows[0],
                    rows1 = in(reg) block.rows[1],
                    rows2 = in(reg) block.rows[2],
                    rows3 = in(reg) block.rows[3],
                    part = in(reg) part_bytes,
                    step = inout(reg) block.steps.as_ptr() => _,
                    count = inout(reg) block.steps.len() => _,
                    fetch = inout(reg) block.fetch => _,
                    offset = inout(reg) u64::from(block.resume) => _,
                    weights = out(reg) _,
                    first = out(reg) _,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    };
}

four_by_one! {
    four_by_one_whole, 1:
    "/* {part} */",
    "tileloadd tmm6, [{weights} + {row} + 0]",
    fetch!(),
    column!(),
}

four_by_one! {
    four_by_one_halves, 2:
    "tileloadd tmm6, [{weights} + {row} + 1024]",
    column!(),
    "add {offset}, {part}",
    column!(),
    "tileloadd tmm6, [{weights} + {row} + 0]",
    column!(),
    "mov {offset}, [{step}]",
    fetch!(),
    column!(),
}

four_by_one! {
    four_by_one_thirds, 3:
    "tileloadd tmm6, [{weights} + {row} + 2048]",
    column!(),
    "tileloadd tmm6, [{weights} + {row} + 1024]",
    column!(),
    "add {offset}, {part}",
    column!(),
    "tileloadd tmm6, [{weights} + {row}]",
    column!(),
    "add {offset}, {part}",
    column!(),
    "mov {offset}, [{step}]",
    fetch!(),
    column!(),
}

/// Cuts rows of 32 numbers into parts: `target[part · stride + row · 32 + column]`. Returns whether a number other than
/// zero was [tiny](crate::matrix::TINY).
///
/// # Safety
///
/// The CPU must have AVX-512 with BF16; all rows must be readable and all parts writable.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,avx512bf16")]
unsafe fn split<const PARTS: usize>(
    source: *const f32,
    rows: usize,
    target: *mut u16,
    stride: usize,
) -> bool {
    let magnitude = _mm512_set1_epi32(i32::MAX);
    let one = _mm512_set1_epi32(1);
    let tiny = _mm512_set1_epi32(TINY.to_bits() as i32 - 1);
    let mut found = 0;
    for row in 0..rows {
        // SAFETY: the caller vouches for the rows.
        let mut halves = unsafe {
            let source = source.add(row * PART_ROW);
            [_mm512_loadu_ps(source), _mm512_loadu_ps(source.add(16))]
        };
        for half in halves {
            // Less one, zero is the largest of all.
            let bits = _mm512_sub_epi32(_mm512_and_si512(_mm512_castps_si512(half), magnitude), one);
            found |= _mm512_cmplt_epu32_mask(bits, tiny);
        }
        for part in 0..PARTS {
            let rounded = halves.map(|half| _mm512_cvtneps_pbh(half));
            for (half, rounded) in halves.iter_mut().zip(rounded) {
                *half = _mm512_sub_ps(*half, _mm512_cvtpbh_ps(rounded));
            }
            for (half, rounded) in rounded.into_iter().enumerate() {
                let to = target.wrapping_add(part * stride + row * PART_ROW + half * 16);
                // SAFETY: both are 32 bytes of plain bits; the caller vouches for the target.
                unsafe { _mm256_storeu_si256(to.cast(), std::mem::transmute::<__m256bh, __m256i>(rounded)) };
            }
        }
    }
    found != 0
}

/// Whether all sums are finite and, where it matters, none [vanishes](crate::matrix::VANISHING).
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl,fma")]
pub(crate) unsafe fn are_sound(sums: &[f32], tiny_inputs: bool) -> bool {
    let zero = _mm512_setzero_ps();
    let bound = _mm512_set1_ps(if tiny_inputs { VANISHING } else { -1.0 });
    let (mut trace, mut vanishing) = (zero, 0);
    for sums in sums.chunks_exact(16) {
        // SAFETY: a chunk has 16 elements.
        let sums = unsafe { _mm512_loadu_ps(sums.as_ptr()) };
        // Zero times anything but a finite value is NaN.
        trace = _mm512_fmadd_ps(sums, zero, trace);
        vanishing |= _mm512_cmp_ps_mask::<_CMP_LT_OQ>(_mm512_abs_ps(sums), bound);
    }
    vanishing == 0 && _mm512_cmp_ps_mask::<_CMP_UNORD_Q>(trace, trace) == 0
}

/// Adds the bias to rows as long as it.
///
/// # Safety
///
/// The CPU must have AVX-512.
#[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
pub(crate) unsafe fn add_bias(sums: &mut [f32], bias: &[f32]) {
    for row in sums.chunks_exact_mut(bias.len()) {
        for (sums, bias) in row.chunks_exact_mut(16).zip(bias.chunks_exact(16)) {
            // SAFETY: chunks have 16 elements.
            unsafe {
                let sum = _mm512_add_ps(_mm512_loadu_ps(sums.as_ptr()), _mm512_loadu_ps(bias.as_ptr()));
                _mm512_storeu_ps(sums.as_mut_ptr(), sum);
            }
        }
    }
}

// What the assembly relies on.
const _: () = assert!(size_of::<MatrixStep>() == 16 && PART_ROW == 32 && FETCHED_BY_STEP == 256);

/// The functions above as a table.
pub(crate) const KERNELS: MatrixKernels = MatrixKernels {
    configure,
    release,
    blocks: [
        [four_by_one_whole, two_by_two_whole],
        [four_by_one_halves, two_by_two_halves],
        [four_by_one_thirds, two_by_two_thirds],
    ],
    split: [split::<1>, split::<2>, split::<3>],
    are_sound,
    add_bias,
};
