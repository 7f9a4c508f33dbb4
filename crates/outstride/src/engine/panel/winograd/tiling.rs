//! How the positions of an axis are dealt to tiles.

/// The tiles of an axis: each has so many outputs, so far apart. What lies between them belongs to the tiles beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Tiling {
    pub(crate) outputs: usize,
    pub(crate) step: usize,
}

impl Tiling {
    /// Every position is a tile of its own.
    pub(crate) const NONE: Self = Tiling { outputs: 1, step: 1 };

    /// Positions that neighbouring tiles have together, without a gap.
    pub(crate) fn granule(self) -> usize {
        self.outputs.saturating_mul(self.step)
    }

    /// Tiles that hold so many positions.
    pub(crate) fn tiles(self, positions: usize) -> usize {
        positions / self.granule() * self.step + (positions % self.granule()).min(self.step)
    }

    /// The first position of a tile.
    pub(super) fn first(self, tile: usize) -> usize {
        tile / self.step * self.granule() + tile % self.step
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_hold_every_position_once() {
        for (outputs, step) in [(1, 1), (2, 1), (3, 1), (2, 2), (2, 5), (3, 4)] {
            let tiling = Tiling { outputs, step };
            for positions in 0..40 {
                let tiles = (0..tiling.tiles(positions)).map(|tile| tiling.first(tile));
                let mut held: Vec<usize> = tiles
                    .clone()
                    .flat_map(|first| (0..outputs).map(move |output| first + output * step))
                    .collect();
                assert!(
                    tiles.clone().all(|first| first < positions),
                    "a tile of {positions} without any of them"
                );
                held.retain(|&position| position < positions);
                held.sort_unstable();
                assert!(held.into_iter().eq(0..positions), "{tiling:?} of {positions}");
            }
        }
    }
}
