//! A tile of two panels together, one half of its rows after the other.

use std::ops::Range;

use super::alone::alone;
use super::chains::Chains;
use super::rows::write;
use super::sums::{add_bias, begin, join, keep, put_aside};
use super::{PanelRows, PanelSums, PanelTile, TilePanel, to_fetch};
use crate::simd::Simd;
use crate::storage::Convert;

/// Rows of tiles that two panels have computed together.
pub(crate) const PAIR_ROWS: usize = 6;

/// The sums of two panels of two vectors.
pub(crate) type PairSums<V> = [[[V; 2]; PAIR_ROWS]; 2];

/// The rows that two panels will be written to, side by side: loops have them brought near. Without their lines, stores would wait, and
/// whatever is stored behind them.
#[repr(C)]
#[derive(Clone, Copy)]
pub(crate) struct OutputsAhead<T> {
    pub(crate) first: *const T,
    /// Where the distances of rows from there begin, and the last of them.
    pub(crate) distances: [*const isize; 2],
}

impl<T> OutputsAhead<T> {
    #[inline(always)]
    fn of(first: *const T, distances: &[isize]) -> Self {
        let distances = if distances.is_empty() { &[0] } else { distances };
        let Range { start, end } = distances.as_ptr_range();
        OutputsAhead { first, distances: [start, end.wrapping_sub(1)] }
    }
}

/// Computes a tile of two panels of two vectors, from the one of some number on: half of the rows, then the others.
///
/// # Safety
///
/// As [`panel`](super::panel), of `2 · PAIR_ROWS` rows.
#[inline(always)]
pub(super) unsafe fn pair<S: Convert<Q>, Q>(
    tile: &PanelTile<'_, S::Scalar>,
    number: usize,
    panels: &mut [TilePanel<'_, S::Scalar>; 2],
) {
    let width = 2 * S::LANES;
    for panel in &mut *panels {
        assert!(panel.bias.is_none_or(|bias| bias.len() >= width));
        assert!(panel.sums[tile.place..].len() >= 2 * PAIR_ROWS * width);
        panel.became = if panel.to.is_some() { PanelSums::Written } else { PanelSums::Kept };
    }
    for half in 0..2 {
        let before = tile.place + half * PAIR_ROWS * width;
        let distances = tile.distances.chunks(PAIR_ROWS).nth(half).unwrap_or_default();
        // SAFETY: the caller vouches for the instruction set, the rows and the weights; bias and sums were just checked.
        unsafe {
            let out = [panels[0].sums.as_mut_ptr().add(before), panels[1].sums.as_mut_ptr().add(before)];
            let mut sums = [
                begin::<S, PAIR_ROWS, 2>(tile.resume, out[0]),
                begin::<S, PAIR_ROWS, 2>(tile.resume, out[1]),
            ];
            let mut aside = false;
            for (index, tap) in tile.taps.iter().enumerate() {
                let before = tap.number * tile.channels_of_tap * width;
                let weights =
                    [&panels[0], &panels[1]].map(|panel| panel.weights.cast::<S::Scalar>().add(before));
                let fetch = to_fetch::<S, Q, 2>(tile, number + half, index, &panels[half]);
                let outputs = match panels[0].to {
                    Some(to) if index + 1 == tile.taps.len() => OutputsAhead::of(to.first, distances),
                    // What is near already costs the least, if no other thread reads it.
                    _ => OutputsAhead::of(out[0], &[0]),
                };
                let rows = &tile.rows[tap.rows].as_chunks().0[half];
                for chain in Chains::of(tile, tap) {
                    if chain.is_another() {
                        put_aside::<S, PAIR_ROWS, 2>(&mut sums[0], !aside, out[0]);
                        put_aside::<S, PAIR_ROWS, 2>(&mut sums[1], !aside, out[1]);
                        aside = true;
                    }
                    let distance = tap.distance + chain.first as isize;
                    let weights = weights.map(|weights| weights.add(chain.first * width));
                    let fetch = chain.fetch(fetch);
                    S::accumulate_pair(&mut sums, rows, distance, weights, fetch, &outputs, chain.channels);
                }
            }
            if aside {
                join::<S, PAIR_ROWS, 2>(&mut sums[0], out[0]);
                join::<S, PAIR_ROWS, 2>(&mut sums[1], out[1]);
            }
            // Not in a loop, which would keep them in memory.
            finish_half::<S>(&mut sums[0], distances, &mut panels[0], out[0]);
            finish_half::<S>(&mut sums[1], distances, &mut panels[1], out[1]);
        }
    }
    for (index, panel) in panels.iter_mut().enumerate() {
        if panel.became == PanelSums::NotFinite && panel.to.is_some() {
            // Whoever makes them finite needs all rows, and those of the other half may have been written.
            // SAFETY: handed on from the caller.
            unsafe { alone::<S, Q, { 2 * PAIR_ROWS }, 2>(tile, number + index, panel) };
        }
    }
}

/// Writes the sums of half a tile, or keeps them.
///
/// # Safety
///
/// As [`panel`](super::panel).
#[inline(always)]
unsafe fn finish_half<S: Simd>(
    sums: &mut [[S::Vector; 2]; PAIR_ROWS],
    distances: &[isize],
    panel: &mut TilePanel<'_, S::Scalar>,
    out: *mut S::Scalar,
) {
    // SAFETY: handed on from the caller.
    unsafe {
        let finite = add_bias::<S, PAIR_ROWS, 2>(sums, panel.bias);
        match panel.to {
            Some(to) if finite => {
                write::<S, PAIR_ROWS, 2>(sums, &PanelRows { to, distances }, false);
            }
            Some(_) => {}
            None => keep::<S, PAIR_ROWS, 2>(sums, out),
        }
        if !finite {
            panel.became = PanelSums::NotFinite;
        }
    }
}
