//! The one table of kernels. Planner, tests, benches and commands all read it.

use std::fmt;

use outstride_spec::{Activation, DType};

use crate::activation::activate;
use crate::fold::{FoldedRows, fold};
use crate::isa::Isa;
use crate::lane::{LaneKernel, LaneTile, lane};
use crate::matrix::{MatrixKernels, MatrixSession, PARTS, Pieces};
use crate::panel::{PanelKernels, panels_of};
use crate::peak::{self, Probes};
use crate::pixel::{PixelKernels, PixelTiles, has_loop, pixel};
use crate::portable::Portable;
use crate::quantize::{Requantization, requantize};
use crate::simd::Scalar;
use crate::storage::{Output, Source, Storage, storage_of};
use crate::winograd::{WinogradInput, WinogradOutput, transform_input, transform_output};

/// A floating-point type that kernels exist for.
pub trait Real: Scalar {
    /// The type's name.
    const DTYPE: DType;

    /// The same values, if they are 32-bit numbers: what matrix tiles compute with.
    fn as_f32(values: &[Self]) -> Option<&[f32]>;

    /// As [`as_f32`](Self::as_f32).
    fn as_f32_mut(values: &mut [Self]) -> Option<&mut [f32]>;

    /// As [`as_f32`](Self::as_f32).
    fn as_f32_source<'a, 's>(source: &'s Source<'a, Self>) -> Option<&'s Source<'a, f32>>;

    /// As [`as_f32`](Self::as_f32).
    fn as_f32_output<'a, 's>(output: &'s Output<'a, Self>) -> Option<&'s Output<'a, f32>>;

    /// The kernels of every instruction set this build has, the best first, whether or not this CPU has it: hence for
    /// this module alone.
    #[doc(hidden)]
    fn table(key: key::Key) -> &'static [Kernels<Self>];
}

/// Nobody outside can name, let alone make, the key to the unchecked table, nor implement [`Real`].
mod key {
    #[derive(Debug)]
    pub struct Key(pub(super) ());
}

/// The kernels of one instruction set for one element type.
#[derive(Clone, Copy)]
pub struct Kernels<T: Scalar> {
    isa: Isa,
    /// That of the vector kernels.
    vectors: Isa,
    lanes: usize,
    matrix: Option<MatrixKernels>,
    pixel: PixelKernels<T>,
    lane: LaneKernel<T>,
    fold: unsafe fn(&FoldedRows<'_, T>, &mut [T]) -> bool,
    winograd_input: unsafe fn(&WinogradInput<'_, T>, &mut [T]),
    winograd_output: unsafe fn(&WinogradOutput<'_, T>, &mut [T]) -> bool,
    activate: unsafe fn(&mut [T], &Activation),
    requantize: unsafe fn(&mut [T], &Requantization<'_>),
    /// For memory of the type itself.
    own: Storage<T>,
    /// For memory of narrower types.
    narrow: Option<Narrow<T>>,
    probes: Probes<T>,
}

/// The kernels of an instruction set, if this CPU has it.
///
/// A value of [`Kernels`] is the proof that the CPU has the instructions: this is the only way to one.
pub fn kernels<T: Real>(isa: Isa) -> Option<&'static Kernels<T>> {
    T::table(key::Key(())).iter().find(|kernels| kernels.isa == isa && isa.is_available())
}

/// The best kernels this CPU can run, not above `cap`.
pub fn best_kernels<T: Real>(cap: Isa) -> &'static Kernels<T> {
    let candidates = Isa::ALL.into_iter().filter(|&isa| isa <= cap);
    candidates.filter_map(kernels).next().expect("every build has portable kernels")
}

/// The names of all kernels of this build, each with its elements per vector, whether or not this CPU can run it.
pub fn kernel_names<T: Real>() -> Vec<(KernelName, usize)> {
    let of_isa = |kernels: &Kernels<T>| {
        let lanes = kernels.lanes;
        kernels.names().into_iter().map(move |name| (name, lanes))
    };
    T::table(key::Key(())).iter().flat_map(of_isa).collect()
}

impl<T: Real> Kernels<T> {
    /// The instruction set.
    pub fn isa(&self) -> Isa {
        self.isa
    }

    /// Elements per vector.
    pub fn lanes(&self) -> usize {
        self.lanes
    }

    /// The instruction set of the vector kernels, which may be below the [instruction set](Self::isa).
    pub fn vector_isa(&self) -> Isa {
        self.vectors
    }

    /// Whether there are kernels for matrix tiles of numbers of a type.
    pub fn has_matrix_tiles(&self, dtype: DType) -> bool {
        self.matrix.is_some_and(|kernels| kernels.multiply(dtype))
    }

    /// The least instruction set that has all that matrix tiles need for numbers of a type.
    pub fn matrix_isa(&self, dtype: DType) -> Isa {
        match (self.isa, dtype) {
            (Isa::AmxFp16, DType::F16) => Isa::AmxFp16,
            (isa, _) => isa.min(Isa::Amx),
        }
    }

    /// The fewest pieces in which matrix tiles hold all of a value of a type.
    pub fn pieces(&self, dtype: DType) -> Pieces {
        self.matrix.map_or(Pieces::Bf16(PARTS), |kernels| kernels.pieces(dtype))
    }

    /// Readies this thread's matrix tiles, if there are kernels for them.
    pub fn matrix_session(&self) -> Option<MatrixSession> {
        // SAFETY: the CPU has the instruction set, or `kernels` would not have given `self`.
        self.matrix.map(|kernels| unsafe { MatrixSession::new(kernels) })
    }

    /// The panel kernels for weights of the type itself.
    pub fn panels(&self) -> PanelKernels<T> {
        self.own.panel
    }

    /// The most rows of their tiles.
    pub fn panel_rows(&self) -> usize {
        self.panels().most_rows()
    }

    /// The shapes (columns, vectors) of the pixel kernels' largest tiles, falling in vectors.
    pub fn pixel_shapes(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.pixel.by_vectors.iter().map(|&(vectors, kernels)| (kernels.len(), vectors))
    }

    /// Whether pixel tiles of some shape, with a single tap, multiply by what the compiler made, while others have a loop written by hand.
    pub fn lacks_pixel_loop(&self, columns: usize, vectors: usize) -> bool {
        let loops = self.pixel.loops;
        !loops.is_empty() && !has_loop(loops, columns, vectors)
    }

    /// Computes pixel tiles of `columns` by `vectors` vectors into `out`, `[column][position]`. Returns whether every sum was
    /// finite.
    ///
    /// # Safety
    ///
    /// At each channel, every tap's input must be readable for all positions of all tiles, its weights for `columns` columns.
    pub unsafe fn pixel(
        &self,
        columns: usize,
        vectors: usize,
        tiles: &PixelTiles<'_, T>,
        out: &mut [T],
    ) -> bool {
        let kernels = self.pixel.by_vectors.iter().find(|&&(have, _)| have == vectors);
        let Some((_, kernels)) = kernels else { panic!("there is no pixel kernel of {vectors} vectors") };
        // SAFETY: the CPU has the instruction set, or `kernels` would not have given `self`; the caller vouches for the pointers.
        unsafe { kernels[columns - 1](tiles, out) }
    }

    /// Computes positions of a depthwise layer into `out`, `[position][channel]`. Returns whether every sum was finite.
    ///
    /// # Safety
    ///
    /// Each tap must have one weight per value of the bias, and at every position as many readable inputs.
    pub unsafe fn lane(&self, tile: &LaneTile<'_, T>, out: &mut [T]) -> bool {
        // SAFETY: as for `pixel`.
        unsafe { (self.lane)(tile, out) }
    }

    /// Adds up rows of products, into `out`. Returns whether every sum is finite.
    pub fn fold(&self, rows: &FoldedRows<'_, T>, out: &mut [T]) -> bool {
        // SAFETY: the CPU has the instruction set, or `kernels` would not have given `self`.
        unsafe { (self.fold)(rows, out) }
    }

    /// Transforms tiles of inputs into `points`, `[point][tile][channel]`.
    ///
    /// # Safety
    ///
    /// Every input of every tile must be readable at all channels.
    pub unsafe fn winograd_input(&self, input: &WinogradInput<'_, T>, points: &mut [T]) {
        // SAFETY: as for `pixel`.
        unsafe { (self.winograd_input)(input, points) }
    }

    /// Makes outputs of products, and stores them in `out`. Returns whether all of them are finite.
    ///
    /// # Safety
    ///
    /// The products of every point must be readable for as many tiles as there are places for, and as many columns as
    /// there is bias for.
    /// Where its rows go is as for [`PanelKernels::compute`].
    pub unsafe fn winograd_output(&self, output: &WinogradOutput<'_, T>, out: &mut [T]) -> bool {
        // SAFETY: as for `pixel`.
        unsafe { (self.winograd_output)(output, out) }
    }

    /// `bias + Σ x·w` as the kernels compute it, if that is finite; otherwise in 64 bits, where sums do not become too
    /// large on the way.
    pub fn sum(&self, products: impl Iterator<Item = (T, T)> + Clone, bias: T) -> T {
        let plus_product = match self.isa {
            Isa::Portable => T::plus_product,
            Isa::Avx2 | Isa::Avx512 | Isa::Vnni | Isa::Amx | Isa::AmxFp16 => T::plus_fused_product,
        };
        let sum = products.clone().fold(T::default(), |sum, (x, w)| plus_product(sum, x, w)).plus(bias);
        if sum.is_finite() {
            return sum;
        }
        let sum: f64 = products.map(|(x, w)| x.to_f64() * w.to_f64()).sum();
        T::from_f64(sum + bias.to_f64())
    }

    /// Applies an activation to every value.
    pub fn activate(&self, values: &mut [T], activation: &Activation) {
        if *activation != Activation::Identity {
            // SAFETY: the CPU has the instruction set, or `kernels` would not have given `self`.
            unsafe { (self.activate)(values, activation) }
        }
    }

    /// Makes real numbers of integer sums in rows of columns, `sum · scale + bias` within the bounds, and of these integers
    /// again if there is an output, `real / scale` to the nearest integer, ties to even, plus the zero point: each operation
    /// rounded to 32 bits. Integers that are no byte need not be the right ones, but are no byte either.
    ///
    /// # Panics
    ///
    /// If there are not as many biases as scales.
    pub fn requantize(&self, sums: &mut [T], to: &Requantization<'_>) {
        assert_eq!(to.scales.len(), to.bias.len());
        // SAFETY: the CPU has the instruction set, or `kernels` would not have given `self`.
        unsafe { (self.requantize)(sums, to) }
    }

    /// Does nothing but multiply-adds in registers, `rounds` times as many as keep the arithmetic units busy, and
    /// returns how many floating-point operations that was.
    pub fn probe_arithmetic(&self, rounds: usize) -> u128 {
        // SAFETY: the CPU has the instruction set, or `kernels` would not have given `self`.
        unsafe { (self.probes.arithmetic)(rounds) };
        2 * (self.probes.chains * self.lanes) as u128 * rounds as u128
    }

    /// As [`probe_arithmetic`](Self::probe_arithmetic), by matrix tiles for numbers of a type, if there are kernels for
    /// them.
    pub fn probe_matrix_tiles(&self, dtype: DType, rounds: usize) -> Option<u128> {
        let session = self.matrix_session().filter(|_| self.has_matrix_tiles(dtype));
        session.map(|session| session.probe(dtype, rounds))
    }

    /// Does nothing but read the values (up to a last few).
    pub fn probe_read(&self, values: &[T]) {
        // SAFETY: as for `probe_arithmetic`.
        unsafe { (self.probes.read)(values) }
    }

    /// Does nothing but overwrite the values (up to a last few), through the caches.
    pub fn probe_write(&self, values: &mut [T]) {
        // SAFETY: as for `probe_arithmetic`.
        unsafe { (self.probes.write)(values) }
    }

    pub(crate) fn storage_own(&self) -> &Storage<T> {
        &self.own
    }

    /// The names of the table's entries, such as `f32_panel_12x2_avx512`.
    pub fn names(&self) -> Vec<KernelName> {
        let name = |family, columns, vectors| KernelName {
            dtype: T::DTYPE,
            family,
            tile: (columns, vectors),
            isa: self.isa,
        };
        if self.isa != self.vectors {
            let tiles = (1..=PARTS).rev().flat_map(|parts| {
                let of_parts = |rows, columns| KernelName {
                    dtype: Pieces::Bf16(parts).dtype(),
                    ..name("tile", rows, columns)
                };
                [of_parts(2, 2), of_parts(4, 1)]
            });
            let bytes = [DType::I8, DType::U8].into_iter().flat_map(|dtype| {
                [(2, 2), (4, 1)].map(|(rows, columns)| KernelName { dtype, ..name("tile", rows, columns) })
            });
            let all = tiles.chain(bytes).filter(|name| self.has_matrix_tiles(name.dtype));
            return all.filter(|name| self.matrix_isa(name.dtype) == self.isa).collect();
        }
        let by_panels = |family| (1..=2).rev().map(move |vectors| name(family, self.panel_rows(), vectors));
        let by_pixels =
            |family| self.pixel_shapes().map(move |(columns, vectors)| name(family, columns, vectors));
        let narrow = self.narrow.iter().flat_map(|narrow| [&narrow.bf16, &narrow.f16]).flat_map(|storage| {
            let rows = storage.panel.most_rows();
            let dtype = storage.dtype;
            (1..=2).rev().map(move |vectors| KernelName { dtype, ..name("panel", rows, vectors) })
        });
        let panels = by_panels("panel").chain(narrow).chain(by_panels("winograd"));
        panels.chain(by_pixels("pixel")).chain(by_pixels("fold")).chain([name("lane", 1, 4)]).collect()
    }
}

/// Kernels for memory of types narrower than 32-bit floats.
#[derive(Clone, Copy)]
pub(crate) struct Narrow<T: 'static> {
    pub(crate) bf16: Storage<T>,
    pub(crate) f16: Storage<T>,
    pub(crate) i8: Storage<T>,
    pub(crate) u8: Storage<T>,
}

impl Kernels<f32> {
    pub(crate) fn narrow(&self) -> &Narrow<f32> {
        self.narrow.as_ref().expect("all kernels of 32-bit floats can store narrower types")
    }
}

impl<T: Real> fmt::Debug for Kernels<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} kernels for {}", T::DTYPE, self.isa)
    }
}

/// A kernel's name: element type, family, tile and instruction set.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelName {
    /// The element type.
    pub dtype: DType,
    /// `panel`, `winograd`, `pixel`, `fold`, `lane` or `tile`.
    pub family: &'static str,
    /// Rows or columns, and vectors, of the largest tile.
    pub tile: (usize, usize),
    /// The instruction set.
    pub isa: Isa,
}

impl fmt::Display for KernelName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (first, vectors) = self.tile;
        write!(f, "{}_{}_{first}x{vectors}_{}", self.dtype, self.family, self.isa)
    }
}

/// Builds the kernels of an instruction set: each is the generic function, compiled with the set enabled.
macro_rules! kernels_of {
    (
        $simd:ty, $isa:expr, $lanes:literal, [$($feature:literal),*], $narrow:expr,
        panel rows [$($rows:literal)*],
        pixel $([$($columns:literal)*] x $vectors:literal)*
    ) => {{
        type T = <$simd as crate::simd::Simd>::Scalar;

        $(#[target_feature(enable = $feature)])*
        unsafe fn pixel_kernel<const COLUMNS: usize, const VECTORS: usize>(
            tiles: &PixelTiles<'_, T>,
            out: &mut [T],
        ) -> bool {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { pixel::<$simd, COLUMNS, VECTORS>(tiles, out) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn lane_kernel(tile: &LaneTile<'_, T>, out: &mut [T]) -> bool {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { lane::<$simd>(tile, out) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn fold_kernel(rows: &FoldedRows<'_, T>, out: &mut [T]) -> bool {
            // SAFETY: the features are those of the instruction set.
            unsafe { fold::<$simd>(rows, out) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn winograd_input(input: &WinogradInput<'_, T>, points: &mut [T]) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { transform_input::<$simd>(input, points) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn winograd_output(output: &WinogradOutput<'_, T>, out: &mut [T]) -> bool {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { transform_output::<$simd>(output, out) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn activate_kernel(values: &mut [T], activation: &Activation) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { activate::<$simd>(values, activation) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn requantize_kernel(sums: &mut [T], to: &Requantization<'_>) {
            // SAFETY: the features are those of the instruction set; the caller vouches for the rest.
            unsafe { requantize::<$simd>(sums, to) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn probe_arithmetic(rounds: usize) {
            // SAFETY: the features are those of the instruction set.
            unsafe { peak::arithmetic::<$simd, { peak::chains($isa) }>(rounds) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn probe_read(values: &[T]) {
            // SAFETY: the features are those of the instruction set.
            unsafe { peak::read::<$simd>(values) }
        }

        $(#[target_feature(enable = $feature)])*
        unsafe fn probe_write(values: &mut [T]) {
            // SAFETY: the features are those of the instruction set.
            unsafe { peak::write::<$simd>(values) }
        }

        Kernels {
            isa: $isa,
            vectors: $isa,
            lanes: $lanes,
            matrix: None,
            pixel: PixelKernels {
                by_vectors: &[$(($vectors, &[$(pixel_kernel::<$columns, $vectors>),*])),*],
                loops: <$simd as crate::simd::Simd>::CHANNEL_LOOPS,
            },
            lane: lane_kernel,
            fold: fold_kernel,
            winograd_input,
            winograd_output,
            activate: activate_kernel,
            requantize: requantize_kernel,
            own: storage_of!(
                $simd, T, <T as Real>::DTYPE, [$($feature),*], panels_of!($simd, T, [$($feature),*], [$($rows)*])
            ),
            narrow: $narrow,
            probes: Probes {
                chains: peak::chains($isa),
                arithmetic: probe_arithmetic,
                read: probe_read,
                write: probe_write,
            },
        }
    }};
}

/// Kernels for memory of narrower types, which are computed with as 32-bit floats. Weights of 16 bits are widened once for so many rows,
/// which pays where there are no more.
macro_rules! narrow_of {
    (f32, $simd:ty, $features:tt, panel rows $rows:tt) => {
        Some(Narrow {
            bf16: storage_of!(
                $simd,
                half::bf16,
                DType::Bf16,
                $features,
                panels_of!($simd, half::bf16, $features, $rows)
            ),
            f16: storage_of!(
                $simd,
                half::f16,
                DType::F16,
                $features,
                panels_of!($simd, half::f16, $features, $rows)
            ),
            i8: storage_of!($simd, i8, DType::I8, $features, PanelKernels::NONE),
            u8: storage_of!($simd, u8, DType::U8, $features, PanelKernels::NONE),
        })
    };
    ($other:ident, $simd:ty, $features:tt, panel rows $rows:tt) => {
        None
    };
}

/// Values of a type as those of another, which is the same or not.
macro_rules! as_f32 {
    (f32) => {
        fn as_f32(values: &[f32]) -> Option<&[f32]> {
            Some(values)
        }

        fn as_f32_mut(values: &mut [f32]) -> Option<&mut [f32]> {
            Some(values)
        }

        fn as_f32_source<'a, 's>(source: &'s Source<'a, f32>) -> Option<&'s Source<'a, f32>> {
            Some(source)
        }

        fn as_f32_output<'a, 's>(output: &'s Output<'a, f32>) -> Option<&'s Output<'a, f32>> {
            Some(output)
        }
    };
    ($other:ident) => {
        fn as_f32(_: &[$other]) -> Option<&[f32]> {
            None
        }

        fn as_f32_mut(_: &mut [$other]) -> Option<&mut [f32]> {
            None
        }

        fn as_f32_source<'a, 's>(_: &'s Source<'a, $other>) -> Option<&'s Source<'a, f32>> {
            None
        }

        fn as_f32_output<'a, 's>(_: &'s Output<'a, $other>) -> Option<&'s Output<'a, f32>> {
            None
        }
    };
}

#[cfg(target_arch = "x86_64")]
macro_rules! table_of {
    (
        $type:ident, $dtype:ident, $matrix:expr, $avx512:ty, $lanes512:literal, $avx2:ty, $lanes2:literal,
        $lanes:literal
    ) => {
        impl Real for $type {
            const DTYPE: DType = DType::$dtype;

            as_f32!($type);

            fn table(_key: key::Key) -> &'static [Kernels<Self>] {
                const AVX512: Kernels<$type> = kernels_of!(
                    $avx512, Isa::Avx512, $lanes512, ["avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"],
                    narrow_of!(
                        $type, $avx512, ["avx512f", "avx512bw", "avx512dq", "avx512vl", "fma"],
                        panel rows [1 2 4 8]
                    ),
                    panel rows [1 2 4 6 8 10 12],
                    pixel [1 2 3] x 8 [1 2 3 4] x 6 [1 2 3 4 5 6] x 4 [1 2 3 4 5 6 7 8 9] x 3
                        [1 2 3 4 5 6 7 8 9 10 11 12 13 14] x 2 [1 2 3 4 5 6 7 8 9 10 11 12 13 14] x 1
                );
                static TABLE: [Kernels<$type>; 6] = [
                    Kernels { isa: Isa::AmxFp16, matrix: $matrix[0], ..AVX512 },
                    Kernels { isa: Isa::Amx, matrix: $matrix[1], ..AVX512 },
                    Kernels { isa: Isa::Vnni, matrix: $matrix[2], ..AVX512 },
                    AVX512,
                    kernels_of!(
                        $avx2, Isa::Avx2, $lanes2, ["avx2", "fma", "f16c"],
                        narrow_of!($type, $avx2, ["avx2", "fma", "f16c"], panel rows [1 2 4]),
                        panel rows [1 2 3 4 5 6],
                        pixel [1 2 3] x 4 [1 2 3 4 5 6] x 2 [1 2 3 4 5 6] x 1
                    ),
                    portable_kernels!($type, $lanes),
                ];
                &TABLE
            }
        }
    };
}

#[cfg(not(target_arch = "x86_64"))]
macro_rules! table_of {
    ($type:ident, $dtype:ident, $lanes:literal) => {
        impl Real for $type {
            const DTYPE: DType = DType::$dtype;

            as_f32!($type);

            fn table(_key: key::Key) -> &'static [Kernels<Self>] {
                static TABLE: [Kernels<$type>; 1] = [portable_kernels!($type, $lanes)];
                &TABLE
            }
        }
    };
}

macro_rules! portable_kernels {
    ($type:ident, $lanes:literal) => {
        kernels_of!(
            Portable<$type, $lanes>, Isa::Portable, $lanes, [],
            narrow_of!($type, Portable<$type, $lanes>, [], panel rows [1 2 4]),
            panel rows [1 2 4],
            pixel [1 2 3 4] x 1
        )
    };
}

#[cfg(target_arch = "x86_64")]
mod tables {
    use super::*;
    use crate::x86_64::avx2::{Avx2F32, Avx2F64};
    use crate::x86_64::avx512::{Avx512F32, Avx512F64};

    use crate::x86_64::{amx, vnni};

    /// Of every instruction set above AVX-512, the best first.
    const MATRIX: [Option<MatrixKernels>; 3] =
        [Some(amx::KERNELS_WITH_F16), Some(amx::KERNELS), Some(vnni::KERNELS)];

    table_of!(f32, F32, MATRIX, Avx512F32, 16, Avx2F32, 8, 8);
    table_of!(f64, F64, [None; 3], Avx512F64, 8, Avx2F64, 4, 4);
}

#[cfg(not(target_arch = "x86_64"))]
mod tables {
    use super::*;

    table_of!(f32, F32, 8);
    table_of!(f64, F64, 4);
}
