//! The inner loops of transposed convolution, for every instruction set, behind one [table](kernels).
//!
//! Six kinds of tile cover the operator. Each computes a small block of sums over all taps and channels in
//! registers, adds the bias and leaves the block in a scratch tile; the caller puts tiles where they belong.
//!
//! | kernel | lanes of a vector | used for |
//! |---|---|---|
//! | [`panel`](PanelTile) | output channels (and phases) | channels-last input, small maps, large strides |
//! | [`pixel`](PixelTiles) | neighbouring positions | channels-first input |
//! | [`fold`](FoldedRows) | as `pixel`, with products that are added up afterwards | channels-first input, few output channels |
//! | [`lane`](LaneTile) | channels, each with its own weights | depthwise, channels-last |
//! | [`winograd`](WinogradInput) | as `panel`, between transforms that save products | many channels, phases of two or three taps |
//! | [`tile`](MatrixBlock) | matrix tiles of positions × output channels | many channels, where the CPU has such tiles |
//!
//! This is the only crate with vector instructions. Everything is generic over the private trait `Simd`; an
//! instruction set is a folder that implements it.

mod activation;
mod copy;
mod fetch;
mod fold;
mod integers;
mod interleave;
mod isa;
mod lane;
mod matrix;
mod pages;
mod panel;
mod peak;
mod pixel;
mod portable;
mod quantize;
mod simd;
mod storage;
mod table;
mod transpose;
mod winograd;
#[cfg(target_arch = "x86_64")]
mod x86_64;

pub use copy::Runs;
pub use fold::{FoldTap, FoldedRows};
pub use isa::{Isa, ParseIsaError};
pub use lane::{LaneTap, LaneTile};
pub use matrix::{
    BYTE_ROW, Begin, FETCHED_BY_STEP, FINISHED_COLUMNS, FinishedRows, LEAST_BIAS, MatrixBlock, MatrixSession,
    MatrixStep, NARROW_COLUMNS, PART_ROW, PartRows, Pieces, RowsTarget, TILE_ROWS, TINY, VANISHING,
};
pub use pages::prefer_huge_pages;
pub use panel::{
    Fetch, MAX_ROWS, PanelKernels, PanelRows, PanelSums, PanelTap, PanelTile, RowPointers, TilePanel,
    fetched_by_tap, lines_fetched_by_tap,
};
pub use pixel::{LinesAhead, MAX_COLUMNS, MOST_LINES_AHEAD, PixelTap, PixelTiles};
pub use quantize::{ByteOutput, Requantization, UNBOUNDED};
pub use simd::Scalar;
pub use storage::{Output, OutputRows, Source, Storage, Stored, settle};
pub use table::{KernelName, Kernels, Real, best_kernels, kernel_names, kernels};
pub use winograd::{Filtering, MAX_WINOGRAD_AXES, NOWHERE, WinogradInput, WinogradOutput};
