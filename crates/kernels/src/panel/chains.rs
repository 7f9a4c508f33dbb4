//! The channels of a tap, cut into chains.

use super::{FETCH_EVERY, PanelTap, PanelTile};
use crate::storage::LINE;

/// What is left of a tap.
pub(super) struct Chains {
    next: usize,
    channels: usize,
    most: usize,
}

/// Channels that are added up before their sums are added to others.
pub(super) struct Chain {
    pub(super) first: usize,
    pub(super) channels: usize,
}

impl Chains {
    #[inline(always)]
    pub(super) fn of<T>(tile: &PanelTile<'_, T>, tap: &PanelTap) -> Self {
        Chains { next: 0, channels: tap.count * tile.channels, most: tile.chain }
    }
}

impl Iterator for Chains {
    type Item = Chain;

    #[inline(always)]
    fn next(&mut self) -> Option<Chain> {
        let first = self.next;
        let channels = (self.channels - first).min(self.most);
        self.next = first + channels;
        (channels > 0).then_some(Chain { first, channels })
    }
}

impl Chain {
    /// Whether sums of channels before it are put aside.
    #[inline(always)]
    pub(super) fn is_another(&self) -> bool {
        self.first > 0
    }

    /// Where lines are fetched from on beside it, given where they are beside its tap.
    #[inline(always)]
    pub(super) fn fetch<T>(&self, of_tap: *const T) -> *const T {
        of_tap.wrapping_byte_add(self.first / FETCH_EVERY * LINE)
    }
}
