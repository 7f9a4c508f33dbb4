//! Winograd's minimal filtering: neighbouring outputs of an axis from fewer products than they have taps.
//!
//! Inputs become *points*, sums of a few of them; a point times the weights of the same point, added up over all channels,
//! is a *product*; outputs are sums of products. With `d` the inputs, `g` the weights and `y` the outputs of a *tile*,
//! `y[j] = Σ d[j + t] · g[t]`. Along several axes, each is transformed in turn.

mod filtering;
mod transforms;

use std::mem::MaybeUninit;

use crate::fetch::fetch;
use crate::panel::PanelRows;
use crate::simd::Simd;
use crate::storage::LINE;

pub use filtering::Filtering;
use transforms::{FourOfThree, FourOfTwo, ThreeOfTwo, Transforms, TwoOfThree, TwoOfTwo};

/// The most axes that are transformed.
pub const MAX_WINOGRAD_AXES: usize = 3;

/// Tiles of inputs to transform.
#[derive(Clone, Copy, Debug)]
pub struct WinogradInput<'a, T> {
    /// Of every axis.
    pub filtering: Filtering,
    /// Per tile, channel 0 of its first input.
    pub tiles: &'a [*const T],
    /// Per transformed axis, from an input to the next.
    pub strides: &'a [isize],
    /// Side by side, in the input and among the points.
    pub channels: usize,
    /// Elements from a point of all tiles to the next.
    pub point_len: usize,
}

/// Products to make outputs of.
#[derive(Clone, Copy, Debug)]
pub struct WinogradOutput<'a, T> {
    /// Of every axis.
    pub filtering: Filtering,
    /// How many are transformed.
    pub axes: usize,
    /// Per point, where its products `[tile][column]` begin, and the distance from a tile's to the next's.
    pub points: &'a [(*const T, usize)],
    /// Per tile and output, where its columns go; [`NOWHERE`] for outputs that do not exist.
    pub places: &'a [usize],
    /// What is added: one value per column.
    pub bias: &'a [T],
    /// Where its columns go instead, per tile and output, if they are wanted in an output.
    pub rows: Option<PanelRows<'a, T>>,
}

/// The place of an output that does not exist.
pub const NOWHERE: usize = usize::MAX;

/// Runs a generic function for a filtering and a number of axes, given the points and outputs of an axis and all points.
macro_rules! with_transforms {
    ($filtering:expr, $axes:expr, $function:ident::<$simd:ty>($($argument:expr),*)) => {
        match ($filtering, $axes) {
            (Filtering::TwoOfTwo, 1) => $function::<$simd, TwoOfTwo, 3, 2, 1, 3>($($argument),*),
            (Filtering::TwoOfTwo, 2) => $function::<$simd, TwoOfTwo, 3, 2, 2, 9>($($argument),*),
            (Filtering::TwoOfTwo, _) => $function::<$simd, TwoOfTwo, 3, 2, 3, 27>($($argument),*),
            (Filtering::ThreeOfTwo, 1) => $function::<$simd, ThreeOfTwo, 4, 3, 1, 4>($($argument),*),
            (Filtering::ThreeOfTwo, 2) => $function::<$simd, ThreeOfTwo, 4, 3, 2, 16>($($argument),*),
            (Filtering::ThreeOfTwo, _) => $function::<$simd, ThreeOfTwo, 4, 3, 3, 64>($($argument),*),
            (Filtering::TwoOfThree, 1) => $function::<$simd, TwoOfThree, 4, 2, 1, 4>($($argument),*),
            (Filtering::TwoOfThree, 2) => $function::<$simd, TwoOfThree, 4, 2, 2, 16>($($argument),*),
            (Filtering::TwoOfThree, _) => $function::<$simd, TwoOfThree, 4, 2, 3, 64>($($argument),*),
            (Filtering::FourOfTwo, 1) => $function::<$simd, FourOfTwo, 5, 4, 1, 5>($($argument),*),
            (Filtering::FourOfTwo, _) => $function::<$simd, FourOfTwo, 5, 4, 2, 25>($($argument),*),
            (Filtering::FourOfThree, 1) => $function::<$simd, FourOfThree, 6, 4, 1, 6>($($argument),*),
            (Filtering::FourOfThree, _) => $function::<$simd, FourOfThree, 6, 4, 2, 36>($($argument),*),
        }
    };
}

/// Transforms tiles of inputs into `points`, `[point][tile][channel]`.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; every input of every tile must be readable at all channels.
#[inline(always)]
pub(crate) unsafe fn transform_input<S: Simd>(
    input: &WinogradInput<'_, S::Scalar>,
    points: &mut [S::Scalar],
) {
    let axes = input.strides.len();
    let count = input.filtering.points().pow(axes as u32);
    assert!((1..=input.filtering.most_axes()).contains(&axes));
    assert!(input.point_len >= input.tiles.len() * input.channels && points.len() >= count * input.point_len);
    // SAFETY: the caller vouches for the instruction set and the inputs; the points were just checked.
    unsafe { with_transforms!(input.filtering, axes, points_of::<S>(input, points.as_mut_ptr())) }
}

/// Makes outputs of products, and stores them in `out` or where their rows go. Returns whether all of them are finite.
///
/// # Safety
///
/// The CPU must have `S`'s instruction set; the products of every point must be readable for as many tiles as there are
/// places for, and as many columns as there is bias for. Rows must have somewhere to go that nobody else writes to.
#[inline(always)]
pub(crate) unsafe fn transform_output<S: Simd>(
    output: &WinogradOutput<'_, S::Scalar>,
    out: &mut [S::Scalar],
) -> bool {
    let axes = output.axes;
    assert!((1..=output.filtering.most_axes()).contains(&axes) && output.bias.len().is_multiple_of(S::LANES));
    assert!(output.points.len() == output.filtering.points().pow(axes as u32));
    // SAFETY: the caller vouches for the instruction set and the products.
    unsafe {
        match output.rows {
            Some(mut rows) => {
                assert!(rows.distances.len() >= output.places.len());
                with_transforms!(output.filtering, axes, outputs_of::<S>(output, &mut rows))
            }
            None => with_transforms!(output.filtering, axes, outputs_of::<S>(output, &mut Places(out))),
        }
    }
}

/// Where sums go.
trait Target<S: Simd> {
    /// Stores a vector of the output of some number, from a column of its place on.
    ///
    /// # Safety
    ///
    /// As [`transform_output`].
    unsafe fn put(&mut self, number: usize, place: usize, column: usize, sums: S::Vector);
}

struct Places<'a, T>(&'a mut [T]);

impl<S: Simd> Target<S> for Places<'_, S::Scalar> {
    #[inline(always)]
    unsafe fn put(&mut self, _: usize, place: usize, column: usize, sums: S::Vector) {
        let to = &mut self.0[place + column..][..S::LANES];
        // SAFETY: the caller vouches for the instruction set, and there are as many elements.
        unsafe { S::store(to.as_mut_ptr(), sums) }
    }
}

impl<S: Simd> Target<S> for PanelRows<'_, S::Scalar> {
    #[inline(always)]
    unsafe fn put(&mut self, number: usize, _: usize, column: usize, sums: S::Vector) {
        let to = self.to.first.wrapping_offset(self.distances[number]).wrapping_add(column);
        // SAFETY: the caller vouches for the instruction set and the rows; the mask leaves out what is behind their columns.
        unsafe {
            let values = match self.to.bounds {
                Some([least, greatest]) => S::at_most(S::at_least(sums, S::splat(least)), S::splat(greatest)),
                None => sums,
            };
            let columns = self.to.columns.saturating_sub(column);
            if columns < S::LANES {
                S::store_masked(to, values, S::mask(0, columns));
            } else if self.to.stream && size_of::<S::Vector>() == LINE && to.addr().is_multiple_of(LINE) {
                S::stream(to, values);
            } else {
                S::store(to, values);
            }
        }
    }
}

/// As [`transform_input`].
///
/// # Safety
///
/// As [`transform_input`]; there must be room for all points.
#[inline(always)]
unsafe fn points_of<
    S: Simd,
    F: Transforms<POINTS, OUTPUTS>,
    const POINTS: usize,
    const OUTPUTS: usize,
    const AXES: usize,
    const COUNT: usize,
>(
    input: &WinogradInput<'_, S::Scalar>,
    points: *mut S::Scalar,
) {
    const { assert!(COUNT == POINTS.pow(AXES as u32)) };
    let mut distances = [0isize; COUNT];
    for (point, distance) in distances.iter_mut().enumerate() {
        let mut rest = point;
        for &stride in input.strides[..AXES].iter().rev() {
            *distance += (rest % POINTS) as isize * stride;
            rest /= POINTS;
        }
    }
    for (tile, &from) in input.tiles.iter().enumerate() {
        let to = points.wrapping_add(tile * input.channels);
        for channel in (0..input.channels).step_by(S::LANES) {
            let whole = channel + S::LANES <= input.channels;
            // SAFETY: the caller vouches for the instruction set, for the inputs and for room for the points; behind the last
            // channel, the mask leaves out what does not exist.
            unsafe {
                let mask = S::mask(0, input.channels - channel);
                let mut values = MaybeUninit::<[S::Vector; COUNT]>::uninit();
                let values = filled(&mut values, |point| {
                    let from = from.wrapping_offset(distances[point]).wrapping_add(channel);
                    if whole { S::load(from) } else { S::load_masked(from, mask) }
                });
                for axis in 0..AXES {
                    let inner = POINTS.pow((AXES - 1 - axis) as u32);
                    for line in 0..COUNT / POINTS {
                        let first = line / inner * inner * POINTS + line % inner;
                        let line = std::array::from_fn(|index| values[first + index * inner]);
                        for (index, value) in F::points::<S>(line).into_iter().enumerate() {
                            values[first + index * inner] = value;
                        }
                    }
                }
                for point in 0..COUNT {
                    let to = to.wrapping_add(point * input.point_len + channel);
                    if whole {
                        S::store(to, values[point]);
                    } else {
                        S::store_masked(to, values[point], mask);
                    }
                }
            }
        }
    }
}

/// As [`transform_output`].
///
/// # Safety
///
/// As [`transform_output`].
#[inline(always)]
unsafe fn outputs_of<
    S: Simd,
    F: Transforms<POINTS, OUTPUTS>,
    const POINTS: usize,
    const OUTPUTS: usize,
    const AXES: usize,
    const COUNT: usize,
>(
    output: &WinogradOutput<'_, S::Scalar>,
    target: &mut impl Target<S>,
) -> bool {
    const { assert!(COUNT == POINTS.pow(AXES as u32)) };
    let outputs = OUTPUTS.pow(AXES as u32);
    // SAFETY: the caller vouches for the instruction set.
    let zero = unsafe { S::splat(S::Scalar::default()) };
    let mut trace = zero;
    for (tile, places) in output.places.chunks_exact(outputs).enumerate() {
        for column in (0..output.bias.len()).step_by(S::LANES) {
            // SAFETY: the caller vouches for the instruction set and the products; the bias has whole vectors.
            unsafe {
                let mut values = MaybeUninit::<[S::Vector; COUNT]>::uninit();
                let values = filled(&mut values, |point| {
                    let (products, pitch) = output.points[point];
                    fetch(products.wrapping_add((tile + 1) * pitch + column));
                    S::load(products.add(tile * pitch + column))
                });
                for axis in 0..AXES {
                    // Axes before are transformed already.
                    let inner = POINTS.pow((AXES - 1 - axis) as u32);
                    let outer = OUTPUTS.pow(axis as u32);
                    for line in 0..outer * inner {
                        let (outer, inner_index) = (line / inner, line % inner);
                        let first = outer * inner * POINTS + inner_index;
                        let line = std::array::from_fn(|index| values[first + index * inner]);
                        let first = outer * inner * OUTPUTS + inner_index;
                        for (index, value) in F::outputs::<S>(line).into_iter().enumerate() {
                            values[first + index * inner] = value;
                        }
                    }
                }
                let bias = S::load(output.bias.as_ptr().add(column));
                for (number, (&place, value)) in places.iter().zip(&*values).enumerate() {
                    if place != NOWHERE {
                        let sum = S::add(*value, bias);
                        // Zero times anything but a finite value is NaN.
                        trace = S::multiply_add(sum, zero, trace);
                        target.put(tile * outputs + number, place, column, sum);
                    }
                }
            }
        }
    }
    // SAFETY: the caller vouches for the instruction set.
    unsafe { !S::any_nan(trace) }
}

/// An array of what is made for every index: whoever fills it with zeros before has that done, too.
#[inline(always)]
fn filled<V, const COUNT: usize>(
    memory: &mut MaybeUninit<[V; COUNT]>,
    make: impl Fn(usize) -> V,
) -> &mut [V; COUNT] {
    let first = memory.as_mut_ptr().cast::<V>();
    for index in 0..COUNT {
        // SAFETY: there are so many elements, all of which are written before they are handed out.
        unsafe { first.add(index).write(make(index)) };
    }
    // SAFETY: as above.
    unsafe { memory.assume_init_mut() }
}
