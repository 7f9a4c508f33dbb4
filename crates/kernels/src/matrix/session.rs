//! The kernels of matrix tiles, on a thread whose tiles are configured.

use std::cell::Cell;

use outstride_spec::DType;

use super::{
    BYTE_ROW, Begin, FINISHED_COLUMNS, FinishedRows, MatrixBlock, MatrixKernels, MatrixStep, NARROW_COLUMNS,
    PART_ROW, PARTS, PartBlockKernels, PartKernels, PartRows, Pieces, TILE_ROWS, are_bytes,
};
use crate::quantize::Requantization;
use crate::storage::{Output, Source};

/// Where [rows that are finished](FinishedRows) go.
#[derive(Clone, Copy)]
pub struct RowsTarget<'a> {
    /// The memory.
    pub output: &'a Output<'a, f32>,
    /// The index that the distance of each row is added to.
    pub first: isize,
    /// Whether whole lines go past the caches.
    pub stream: bool,
}

/// Where sums go that tiles hold: storing them takes no time while others are multiplied.
#[derive(Clone, Copy)]
struct Held {
    out: *mut f32,
    column_tiles: usize,
}

/// This thread's tiles, ready for use. Gives them back when dropped.
pub struct MatrixSession {
    kernels: MatrixKernels,
    /// The sums that tiles hold, if they hold any.
    held: Cell<Option<Held>>,
    /// Tiles belong to a thread.
    not_send: std::marker::PhantomData<*const ()>,
}

impl MatrixSession {
    /// # Safety
    ///
    /// The CPU must have what the kernels need.
    pub(crate) unsafe fn new(kernels: MatrixKernels) -> Self {
        // SAFETY: the caller vouches for it.
        unsafe { (kernels.configure)() };
        MatrixSession { kernels, held: Cell::new(None), not_send: std::marker::PhantomData }
    }

    fn parts(&self) -> &PartKernels {
        self.kernels.parts.as_ref().expect("only asked for where there are tiles of floats")
    }

    /// The kernels for numbers in such pieces, with so many tiles of columns.
    fn blocks(&self, pieces: Pieces, column_tiles: usize) -> &PartBlockKernels {
        let by_columns = match pieces {
            Pieces::Bf16(parts) => &self.parts().blocks[parts - 1],
            Pieces::F16 => {
                self.parts().f16_blocks.as_ref().expect("only asked for where there are such tiles")
            }
        };
        &by_columns[column_tiles - 1]
    }

    /// As [`copy_rows`](Self::copy_rows), of f32 from the first one on.
    ///
    /// # Panics
    ///
    /// As [`copy_rows`](Self::copy_rows).
    pub fn cut_rows(
        &self,
        source: &[f32],
        stride: usize,
        count: usize,
        channels: usize,
        target: PartRows<'_>,
    ) -> bool {
        assert!(count == 0 || source.len() >= (count - 1) * stride + channels);
        assert!(target.hold(count, channels.div_ceil(PART_ROW)));
        // SAFETY: both were just checked.
        unsafe { self.cut(source.as_ptr(), stride as isize, count, channels, target) }
    }

    /// # Safety
    ///
    /// All positions must be readable, and the target hold them.
    unsafe fn cut(
        &self,
        from: *const f32,
        stride: isize,
        count: usize,
        channels: usize,
        target: PartRows<'_>,
    ) -> bool {
        let split = self.parts().split[target.parts - 1];
        let (memory, distances) = (target.memory.as_mut_ptr(), (target.pitch, target.step));
        // SAFETY: the session has the instructions; the caller vouches for the rest.
        unsafe { split(from, stride, count, channels, memory, distances, target.part_stride) }
    }

    /// Copies inputs, 16-bit floats, bytes, or f32 that are cut into parts, to rows of [`PART_ROW`] or [`BYTE_ROW`] channels,
    /// as many steps of them as there are channels for: at each of `count` positions, `stride` elements apart from index `first` on,
    /// `channels` channels side by side. Behind them are zeros, or anything for bytes, which hold the
    /// [zero byte](Self::zero_byte) in place of the zero point. Returns whether a bf16 or f32 other than zero was
    /// [tiny](super::TINY).
    ///
    /// # Panics
    ///
    /// If the source is of another type, an element would lie outside it, there are not that many parts, or the target is too short.
    pub fn copy_rows(
        &self,
        source: &Source<'_, f32>,
        first: isize,
        stride: isize,
        count: usize,
        channels: usize,
        target: PartRows<'_>,
    ) -> bool {
        let is_cut = source.dtype() == DType::F32;
        let row_channels = if is_cut { PART_ROW } else { row_channels(source.dtype()) };
        assert!(target.hold(count, channels.div_ceil(row_channels)));
        let from = source.strided_runs(first, stride, count, channels);
        if is_cut {
            // SAFETY: all positions are inside the source, and the target was just checked.
            return unsafe { self.cut(from.cast(), stride, count, channels, target) };
        }
        let (memory, distances) = (target.memory.as_mut_ptr(), (target.pitch, target.step));
        // SAFETY: the session has the instructions; all positions are inside the source, and the target was just checked.
        unsafe {
            if !are_bytes(source.dtype()) {
                let tiny = (self.parts().copy_rows)(from.cast(), stride, count, channels, memory, distances);
                // No f16 is.
                return tiny && source.dtype() == DType::Bf16;
            }
            let signed = usize::from(source.dtype() == DType::I8);
            (self.kernels.bytes.copy_rows[signed])(from, stride, count, channels, memory, distances);
        }
        false
    }

    /// As [`copy_rows`](Self::copy_rows), where positions are side by side, and the channels of one step at some distances
    /// from the first.
    ///
    /// # Panics
    ///
    /// As [`copy_rows`](Self::copy_rows).
    pub fn turn_rows(
        &self,
        source: &Source<'_, f32>,
        first: isize,
        distances: &[isize],
        count: usize,
        target: PartRows<'_>,
    ) -> bool {
        assert!(distances.len() <= row_channels(source.dtype()) && target.hold(count, 1));
        let from = source.spread_runs(first, distances, count);
        let memory = target.memory.as_mut_ptr();
        // SAFETY: the session has the instructions; all channels are inside the source, and the target was just checked.
        unsafe {
            if !are_bytes(source.dtype()) {
                let tiny = (self.parts().turn_rows)(from.cast(), distances, count, memory, target.pitch);
                // No f16 is.
                return tiny && source.dtype() == DType::Bf16;
            }
            let signed = usize::from(source.dtype() == DType::I8);
            (self.kernels.bytes.turn_rows[signed])(from, distances, count, memory, target.pitch);
        }
        false
    }

    /// The byte that copies hold in place of a source's zero point.
    pub fn zero_byte(&self, source: &Source<'_, f32>) -> i32 {
        let offset = if source.dtype() == DType::I8 { self.kernels.bytes.signed_offset } else { 0 };
        source.zero_point() as i32 + i32::from(offset)
    }

    /// As [`multiply`](Self::multiply), for bytes: the sums are integers of 32 bits.
    ///
    /// # Panics
    ///
    /// If they begin with integers, but not one per column.
    ///
    /// # Safety
    ///
    /// As [`multiply`](Self::multiply).
    pub unsafe fn multiply_bytes(&self, signed: bool, column_tiles: usize, block: &MatrixBlock<'_>) {
        check_columns(block, column_tiles);
        let kernels = &self.kernels.bytes.blocks[usize::from(signed)][column_tiles - 1];
        // SAFETY: as for `multiply`.
        unsafe { (kernels.multiply)(block, self.hold(block.out, column_tiles)) }
    }

    /// As [`Kernels::requantize`](crate::Kernels::requantize), of the integers that
    /// [`multiply_bytes`](Self::multiply_bytes) left.
    ///
    /// # Panics
    ///
    /// If there are not as many scales as biases.
    pub fn requantize(&self, sums: &mut [f32], to: &Requantization<'_>) {
        assert!(to.scales.len() == to.bias.len());
        // SAFETY: the session has the instructions.
        unsafe { (self.kernels.bytes.requantize)(sums, to) }
    }

    /// Computes a block of numbers in such pieces, with so many tiles of columns (1 or 2). Tiles may hold the sums until another
    /// block is computed or [they are stored](Self::store_held).
    ///
    /// # Panics
    ///
    /// If they begin with integers, or there are no kernels for the pieces.
    ///
    /// # Safety
    ///
    /// Every step's inputs and weights must be readable at all tiles and pieces, and `out` writable for four tiles, by nobody else
    /// until the sums are stored. No other session of this thread may have begun or ended since this one began: tiles are the
    /// thread's.
    pub unsafe fn multiply(&self, pieces: Pieces, column_tiles: usize, block: &MatrixBlock<'_>) {
        check_numbers(block);
        // SAFETY: the session has the instructions, and configured the tiles; the caller vouches for the rest.
        unsafe {
            (self.blocks(pieces, column_tiles).multiply)(block, self.hold(block.out, column_tiles));
        }
    }

    /// What tiles hold so far goes there, or nowhere if null, and what they will hold goes to `out`.
    fn hold(&self, out: *mut f32, column_tiles: usize) -> *mut f32 {
        if self.held.get().is_some_and(|held| held.column_tiles != column_tiles) {
            self.store_held();
        }
        let next = self.kernels.store_held.map(|_| Held { out, column_tiles });
        self.held.replace(next).map_or(std::ptr::null_mut(), |held| held.out)
    }

    /// Stores the sums that tiles hold, if they hold any.
    pub fn store_held(&self) {
        if let (Some(held), Some(store)) = (self.held.take(), self.kernels.store_held) {
            // SAFETY: the session configured the tiles; whoever had the sums computed vouched for room until now.
            unsafe { (store[held.column_tiles - 1])(held.out) }
        }
    }

    /// Does nothing but products of tiles in the first-level cache, `rounds` times 64 steps, and returns how many
    /// operations on whole numbers of a type that was.
    pub(crate) fn probe(&self, dtype: DType, rounds: usize) -> u128 {
        const STEPS: usize = 64;
        /// A row of a tile, which begins with a line as those of inputs and weights do.
        #[derive(Clone, Copy)]
        #[repr(align(64))]
        struct Row(#[expect(dead_code, reason = "read by kernels")] [u16; PART_ROW]);
        // No zeros, which take less power; of any type, numbers near one.
        let numbers: [u16; PART_ROW] = std::array::from_fn(|index| 0x3f00 + (index as u16 * 37) % 0x80);
        let rows = vec![Row(numbers); PARTS * 2 * TILE_ROWS];
        let mut out = vec![0.0f32; 4 * TILE_ROWS * TILE_ROWS];
        let steps = [MatrixStep { input: 0, weights: rows.as_ptr().cast() }; STEPS];
        let second = rows[TILE_ROWS..].as_ptr().cast();
        let block = MatrixBlock {
            rows: [rows.as_ptr().cast(), second, second, second],
            used: [TILE_ROWS as u8; 4],
            part_stride: 2 * TILE_ROWS * PART_ROW,
            steps: &steps,
            fetch: std::ptr::null(),
            stream: false,
            out: out.as_mut_ptr(),
            begin: Begin::Zeros,
        };
        for _ in 0..rounds {
            // SAFETY: inputs and weights have all parts of two tiles, and there is room for four tiles of sums.
            unsafe {
                match dtype {
                    bytes if are_bytes(bytes) => self.multiply_bytes(dtype == DType::I8, 2, &block),
                    _ => self.multiply(self.kernels.pieces(dtype), 2, &block),
                }
            }
        }
        self.store_held();
        let sums = (4 * TILE_ROWS * TILE_ROWS) as u128;
        let channels = if are_bytes(dtype) { BYTE_ROW } else { PART_ROW };
        2 * sums * (channels * STEPS * rounds) as u128
    }

    /// Whether all sums are finite and, if there were tiny inputs, none [vanishes](super::VANISHING).
    pub fn are_sound(&self, sums: &[f32], tiny_inputs: bool) -> bool {
        // SAFETY: the session has the instructions.
        unsafe { (self.parts().are_sound)(sums, tiny_inputs) }
    }

    /// Adds the bias to sums, brings them up to the first bound and down to the second, and writes them to the target. Returns
    /// whether that is all there is to do: there must be a kernel for the output's type, the bounds may not be subnormal, and all
    /// sums with their bias must be finite. Otherwise what was written is of no use, nor is it where these are subnormal, which is
    /// not noticed.
    ///
    /// # Panics
    ///
    /// If there are too many columns, or too few for others beside them, not as many biases, or an element would lie outside the output.
    ///
    /// # Safety
    ///
    /// Every row must be readable, and every distance within their range. No other thread may write any of the output's
    /// elements at the same time. With `stream`, this thread must [`settle`](crate::settle) before another one may read them.
    pub unsafe fn finish(
        &self,
        from: &FinishedRows<'_>,
        bias: &[f32],
        bounds: (f32, f32),
        target: &RowsTarget<'_>,
    ) -> bool {
        check_bias(from, bias);
        match self.parts().finish.to(target.output.dtype()) {
            // SAFETY: the session has the instructions; the caller vouches for the rest.
            Some(finish) if !are_subnormal(bounds) => unsafe {
                finish(from, bias, bounds, Self::address(from, target), target.stream)
            },
            _ => false,
        }
    }

    /// [Multiplies](Self::multiply) blocks, and [finishes](Self::finish) other sums meanwhile.
    ///
    /// # Panics
    ///
    /// As both.
    ///
    /// # Safety
    ///
    /// As both; the blocks' sums must be others than those that are finished, which may be those that tiles hold.
    pub unsafe fn multiply_and_finish(
        &self,
        (pieces, column_tiles): (Pieces, usize),
        blocks: &[MatrixBlock<'_>],
        from: &FinishedRows<'_>,
        bias: &[f32],
        bounds: (f32, f32),
        target: &RowsTarget<'_>,
    ) -> bool {
        blocks.iter().for_each(check_numbers);
        check_bias(from, bias);
        let kernels = self.blocks(pieces, column_tiles);
        // SAFETY: the session has the instructions, and configured the tiles; the caller vouches for the rest.
        unsafe {
            match (kernels.and_finish.to(target.output.dtype()), blocks.last()) {
                (Some(multiply), Some(last)) if !are_subnormal(bounds) => {
                    let to = Self::address(from, target);
                    let held = self.hold(last.out, column_tiles);
                    multiply(blocks, held, from, bias, bounds, to, target.stream)
                }
                _ => {
                    for block in blocks {
                        (kernels.multiply)(block, self.hold(block.out, column_tiles));
                    }
                    false
                }
            }
        }
    }

    /// [Multiplies blocks of bytes](Self::multiply_bytes), and [finishes](Self::finish_bytes) other sums meanwhile.
    ///
    /// # Panics
    ///
    /// As both.
    ///
    /// # Safety
    ///
    /// As both; the blocks' sums must be others than those that are finished, which may be those that tiles hold.
    pub unsafe fn multiply_and_finish_bytes(
        &self,
        (signed, column_tiles): (bool, usize),
        blocks: &[MatrixBlock<'_>],
        from: &FinishedRows<'_>,
        to: &Requantization<'_>,
        target: &RowsTarget<'_>,
    ) -> bool {
        blocks.iter().for_each(|block| check_columns(block, column_tiles));
        check_scales(from, to);
        let kernels = &self.kernels.bytes.blocks[usize::from(signed)][column_tiles - 1];
        // SAFETY: the session has the instructions, and configured the tiles; the caller vouches for the rest.
        unsafe {
            match (kernels.and_requantize.to(target.output.dtype()), blocks.last()) {
                (Some(multiply), Some(last)) => {
                    let address = Self::address(from, target);
                    let held = self.hold(last.out, column_tiles);
                    multiply(blocks, held, from, to, address, target.stream)
                }
                _ => {
                    for block in blocks {
                        (kernels.multiply)(block, self.hold(block.out, column_tiles));
                    }
                    false
                }
            }
        }
    }

    /// Finishes sums as [`finish`](Self::finish) does, and writes them as [`Output::write_transposed`] does: with their bias,
    /// `source[distances[row] + column]` to index `first + column · stride + row`, as many columns as there are biases.
    ///
    /// # Panics
    ///
    /// If an element would lie outside the output.
    ///
    /// # Safety
    ///
    /// Every source element must be readable, and no other thread may write any of the output's elements at the same time. With
    /// `stream`, this thread must [`settle`](crate::settle) before another one may read them.
    pub unsafe fn finish_turned(
        &self,
        from: (*const f32, &[isize]),
        bias: &[f32],
        bounds: (f32, f32),
        output: &Output<'_, f32>,
        (first, stride): (isize, isize),
        stream: bool,
    ) -> bool {
        let Some(finish) = self.parts().finish_turned.to(output.dtype()) else { return false };
        if are_subnormal(bounds) {
            return false;
        }
        if !bias.is_empty() {
            output.check_columns(first, stride, bias.len(), from.1.len());
        }
        // SAFETY: the session has the instructions; the caller vouches for the rest.
        unsafe { finish(from, bias, bounds, (output.at(first), stride), stream) }
    }

    /// Finishes the integers that [`multiply_bytes`](Self::multiply_bytes) left as [`finish`](Self::finish) does sums. Returns
    /// whether there is a kernel for the output's type and, where there are sums beside others, for such a scale; otherwise
    /// nothing was written.
    ///
    /// # Panics
    ///
    /// If there are too many columns, not as many scales and biases, or an element would lie outside the output.
    ///
    /// # Safety
    ///
    /// As [`finish`](Self::finish).
    pub unsafe fn finish_bytes(
        &self,
        from: &FinishedRows<'_>,
        to: &Requantization<'_>,
        target: &RowsTarget<'_>,
    ) -> bool {
        check_scales(from, to);
        match self.kernels.bytes.requantize_to.to(target.output.dtype()) {
            // SAFETY: the session has the instructions; the caller vouches for the rest.
            Some(requantize) => unsafe { requantize(from, to, Self::address(from, target), target.stream) },
            None => false,
        }
    }

    /// Finishes integers as [`finish_bytes`](Self::finish_bytes) does, and writes them as [`finish_turned`](Self::finish_turned)
    /// does. Returns whether it could; otherwise what was written is of no use.
    ///
    /// # Panics
    ///
    /// If there are not as many scales as biases, or an element would lie outside the output.
    ///
    /// # Safety
    ///
    /// As [`finish_turned`](Self::finish_turned).
    pub unsafe fn finish_bytes_turned(
        &self,
        from: (*const f32, &[isize]),
        to: &Requantization<'_>,
        output: &Output<'_, f32>,
        (first, stride): (isize, isize),
        stream: bool,
    ) -> bool {
        let columns = to.scales.len();
        assert!(to.bias.len() == columns);
        let Some(turn) = self.kernels.bytes.turn_to.to(output.dtype()) else { return false };
        if columns > 0 {
            output.check_columns(first, stride, columns, from.1.len());
        }
        // SAFETY: the session has the instructions; the caller vouches for the rest.
        unsafe { turn(from, to, (output.at(first), stride), stream) }
    }

    /// Where the index lies that the rows' distances are added to.
    ///
    /// # Panics
    ///
    /// If there are too many columns, or an element would lie outside the output.
    fn address(from: &FinishedRows<'_>, target: &RowsTarget<'_>) -> *mut u8 {
        assert!(from.columns <= FINISHED_COLUMNS && from.rows.len() == from.distances.len());
        if !from.rows.is_empty() {
            target.output.check_rows(target.first, from.range, from.all_columns());
        }
        target.output.at(target.first)
    }

    /// The least and the greatest of some distances, if there are any.
    pub fn range_of(&self, distances: &[isize]) -> (isize, isize) {
        // SAFETY: the session has the instructions.
        unsafe { (self.kernels.range_of)(distances) }
    }

    /// Adds the bias to rows as long as it. Returns whether all results are finite.
    pub fn add_bias(&self, sums: &mut [f32], bias: &[f32]) -> bool {
        // SAFETY: the session has the instructions.
        unsafe { (self.parts().add_bias)(sums, bias) }
    }
}

/// # Panics
///
/// If sums begin with integers.
fn check_numbers(block: &MatrixBlock<'_>) {
    assert!(!matches!(block.begin, Begin::Columns(_)), "these sums are no integers");
}

/// # Panics
///
/// If sums begin with integers, but not one per column.
fn check_columns(block: &MatrixBlock<'_>, column_tiles: usize) {
    if let Begin::Columns(values) = block.begin {
        assert!(values.len() == column_tiles * TILE_ROWS);
    }
}

/// # Panics
///
/// If there are not as many scales and biases as columns.
fn check_scales(from: &FinishedRows<'_>, to: &Requantization<'_>) {
    let columns = from.all_columns();
    assert!(to.scales.len() == columns && to.bias.len() == columns);
}

/// # Panics
///
/// If there are not as many biases as columns, or others go beside columns that do not fill tiles.
fn check_bias(from: &FinishedRows<'_>, bias: &[f32]) {
    assert!(bias.len() == from.all_columns());
    assert!(from.beside.is_none() || matches!(from.columns, NARROW_COLUMNS | FINISHED_COLUMNS));
}

/// Whether one of them is, which a narrowing instruction might take for zero.
fn are_subnormal(bounds: (f32, f32)) -> bool {
    bounds.0.is_subnormal() || bounds.1.is_subnormal()
}

/// Channels of a row of inputs that tiles hold as they are.
fn row_channels(dtype: DType) -> usize {
    match dtype {
        DType::Bf16 | DType::F16 => PART_ROW,
        DType::I8 | DType::U8 => BYTE_ROW,
        other => panic!("tiles do not hold {other} as it is"),
    }
}

impl Drop for MatrixSession {
    fn drop(&mut self) {
        // SAFETY: whoever made the session vouched for the instructions.
        unsafe { (self.kernels.release)() };
    }
}
