//! A tile of one panel.

use super::chains::Chains;
use super::channels::accumulate_tap;
use super::rows::{fetch_rows, write};
use super::sums::{add_bias, begin, join, keep, put_aside};
use super::{PanelRows, PanelSums, PanelTile, RowPointers, TilePanel, to_fetch};
use crate::storage::Convert;

/// Computes a tile of the panel of some number, whose weights are stored as `Q`.
///
/// # Safety
///
/// As [`panel`](super::panel).
#[inline(always)]
pub(super) unsafe fn alone<S: Convert<Q>, Q, const ROWS: usize, const VECTORS: usize>(
    tile: &PanelTile<'_, S::Scalar>,
    number: usize,
    panel: &mut TilePanel<'_, S::Scalar>,
) {
    let width = VECTORS * S::LANES;
    let out = &mut panel.sums[tile.place..][..ROWS * width];
    assert!(panel.bias.is_none_or(|bias| bias.len() >= width));
    let out = out.as_mut_ptr();
    // Where a tile is done as soon as that, stores past the caches take up the places of lines that it reads.
    let stream = panel.to.is_some_and(|to| to.stream) && !S::PAIRS;
    if let Some(to) = panel.to.filter(|_| !stream) {
        fetch_rows::<S, VECTORS>(to, tile.distances);
    }
    // SAFETY: the caller vouches for the instruction set, the rows and the weights; bias and out were just checked.
    panel.became = unsafe {
        let mut sums = begin::<S, ROWS, VECTORS>(tile.resume, out);
        let mut aside = false;
        for (index, tap) in tile.taps.iter().enumerate() {
            let weights = panel.weights.cast::<Q>().add(tap.number * tile.channels_of_tap * width);
            let fetch = to_fetch::<S, Q, VECTORS>(tile, number, index, panel);
            let rows = &tile.rows[tap.rows];
            for chain in Chains::of(tile, tap) {
                if chain.is_another() {
                    put_aside::<S, ROWS, VECTORS>(&mut sums, !aside, out);
                    aside = true;
                }
                let (distance, channels) = (tap.distance + chain.first as isize, chain.channels);
                let (weights, fetch) = (weights.add(chain.first * width), chain.fetch(fetch));
                let is_done = S::IS_ITSELF
                    && S::accumulate_panel(&mut sums, rows, distance, weights.cast(), fetch, channels);
                if !is_done {
                    let rows = moved(rows, distance);
                    accumulate_tap::<S, Q, ROWS, VECTORS>(&mut sums, &rows, weights, fetch, channels);
                }
            }
        }
        if aside {
            join::<S, ROWS, VECTORS>(&mut sums, out);
        }
        let finite = add_bias::<S, ROWS, VECTORS>(&mut sums, panel.bias);
        match panel.to.filter(|_| finite) {
            Some(to) => {
                let rows = PanelRows { to, distances: tile.distances };
                write::<S, ROWS, VECTORS>(&mut sums, &rows, stream);
                PanelSums::Written
            }
            None => {
                keep::<S, ROWS, VECTORS>(&sums, out);
                if finite { PanelSums::Kept } else { PanelSums::NotFinite }
            }
        }
    };
}

/// Rows so many elements further on.
#[inline(always)]
fn moved<T>(rows: &RowPointers<T>, distance: isize) -> RowPointers<T> {
    rows.map(|row| row.wrapping_offset(distance))
}
