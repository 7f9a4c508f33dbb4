//! Everything one call of the engine works on.

use outstride_kernels::{Output, Real, Source};

use super::axis::EngineAxis;
use super::finish::Finish;
use super::pack::PackedFilter;
use super::scratch::ScratchPool;

/// One call: the axes, the packed weights, and where input and output lie.
pub(crate) struct Problem<'a, T: Real> {
    /// The call's number, which no other call with the same scratch memory has.
    pub(crate) call: u64,
    pub(crate) filter: &'a PackedFilter<T>,
    /// The batch first, then the spatial axes.
    pub(crate) axes: Vec<EngineAxis<'a>>,
    pub(crate) x: Source<'a, T>,
    pub(crate) x_offset: usize,
    pub(crate) x_channel_stride: isize,
    pub(crate) y: &'a Output<'a, T>,
    pub(crate) y_offset: usize,
    pub(crate) y_channel_stride: isize,
    /// Whether outputs go past the caches, which cannot hold them anyway.
    pub(crate) stream: bool,
    pub(crate) finish: Finish<'a>,
    pub(crate) scratch: &'a ScratchPool<T>,
}

impl<T: Real> Problem<'_, T> {
    /// Where the first input channel of a group begins.
    pub(crate) fn x_group(&self, group: usize) -> usize {
        let channel = (group * self.filter.in_channels) as isize;
        self.x_offset.wrapping_add_signed(channel * self.x_channel_stride)
    }

    /// Finishes sums of an output channel, counted from the first group's on.
    pub(crate) fn finish_channel(&self, channel: usize, sums: &mut [T]) {
        let scales = self.finish.scaling.map(|scaling| scaling.channels(channel..channel + 1));
        self.finish.apply(self.filter.kernels, sums, scales);
    }

    /// Where an output channel of a group begins.
    pub(crate) fn y_channel(&self, group: usize, channel: usize) -> isize {
        let channel = (group * self.filter.out_channels + channel) as isize;
        self.y_offset as isize + channel * self.y_channel_stride
    }
}
