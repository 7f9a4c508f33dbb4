//! Models as the commands see them: opened, with shapes as far as they are known.

mod args;
mod layer;
mod neutral;
mod shapes;
mod through;

pub(crate) use args::{ModelArgs, ShapeArg, open, select};
pub(crate) use layer::{LayerShapes, Resolved, takes_sizes};
pub(crate) use neutral::as_written;
pub(crate) use shapes::Shapes;
