//! Layers to measure: shapes and strides without weights, from a layers file or from oneDNN's problem strings.
//!
//! ```
//! use outstride_io::layers::Layer;
//!
//! let layer: Layer = "mb1_ic16oc8_ih8oh16kh4sh2ph1".parse()?;
//! assert_eq!(layer.input_shape(), [1, 16, 8, 8]);
//! assert_eq!(layer.filter_shape(), [16, 8, 4, 4]);
//! assert_eq!((layer.pads_begin, layer.pads_end), (vec![1, 1], vec![1, 1]));
//! # Ok::<(), outstride_io::layers::LayerError>(())
//! ```
//!
//! A layers file is a JSON list of objects, one list entry per spatial axis where a field has several:
//!
//! | field | meaning | without it |
//! |---|---|---|
//! | `id` | the layer's name | required |
//! | `d` | how many spatial axes | required |
//! | `n`, `cin`, `cout` | batch, input and output channels of all groups | required |
//! | `in`, `k`, `s` | input size, kernel, stride | required |
//! | `p` | pads at the beginning, and at the end where there is no `pe` | required |
//! | `pe` | pads at the end | `p` |
//! | `op` | output padding | 0 |
//! | `dil` | dilation, 1 for none | 1 |
//! | `g` | groups | 1 |
//! | `skip` | peers that a comparison should leave out here | none |
//!
//! Other fields are for people and are passed over.

mod error;
mod file;
mod problem;

use std::path::Path;

pub use error::LayerError;

/// A transposed convolution without its weights. Spatial lists have one entry per axis, outermost first.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Layer {
    /// The layer's name.
    pub id: String,
    /// The batch size.
    pub batch: usize,
    /// Input channels of all groups.
    pub in_channels: usize,
    /// Output channels of all groups.
    pub out_channels: usize,
    /// The number of groups, which divides both channel counts.
    pub groups: usize,
    /// Input sizes.
    pub input: Vec<usize>,
    /// Kernel sizes.
    pub kernel: Vec<usize>,
    /// Strides.
    pub strides: Vec<i64>,
    /// Dilations; 1 means none.
    pub dilations: Vec<i64>,
    /// What is cropped at the beginning.
    pub pads_begin: Vec<i64>,
    /// What is cropped at the end.
    pub pads_end: Vec<i64>,
    /// What is appended at the end.
    pub output_padding: Vec<i64>,
    /// Peers that a comparison should leave out: those that cannot run the layer in sensible time.
    pub skip: Vec<String>,
}

impl Layer {
    /// Reads a layers file.
    pub fn read_file(path: &Path) -> Result<Vec<Layer>, LayerError> {
        file::read(path)
    }

    /// Reads the contents of a layers file; `path` only serves the messages.
    pub fn parse_file(path: &Path, text: &[u8]) -> Result<Vec<Layer>, LayerError> {
        file::parse(path, text)
    }

    /// `(N, C, X…)`
    pub fn input_shape(&self) -> Vec<usize> {
        [self.batch, self.in_channels].into_iter().chain(self.input.iter().copied()).collect()
    }

    /// `(N, X…, C)`
    pub fn channels_last_input_shape(&self) -> Vec<usize> {
        [self.batch].into_iter().chain(self.input.iter().copied()).chain([self.in_channels]).collect()
    }

    /// `(C, M/groups, k…)`
    pub fn filter_shape(&self) -> Vec<usize> {
        let channels = [self.in_channels, self.out_channels / self.groups.max(1)];
        channels.into_iter().chain(self.kernel.iter().copied()).collect()
    }
}

impl std::str::FromStr for Layer {
    type Err = LayerError;

    /// Reads a problem string of oneDNN's benchmark, such as `mb1_ic16oc8_ih8oh16kh4sh2ph1nup2`.
    ///
    /// The fields are `g`, `mb` (2 if absent), `ic`, `oc`, and for each of the axes d, h and w the input size `i`, the
    /// output size `o`, kernel `k`, stride `s`, padding `p` and dilation `d` (0 for none); `n` and a name end the
    /// string. Values for h alone make a square, for d alone a cube, for w alone one axis. Without an output size the
    /// pads are the same on both sides; with one, the end is padded as the size demands, and a missing `p` is half of
    /// the whole.
    fn from_str(text: &str) -> Result<Self, LayerError> {
        problem::parse(text)
    }
}
