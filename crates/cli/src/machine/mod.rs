//! What this machine can do at most: the roofline that a layer's time is held against.

mod roofline;
mod team;

pub(crate) use roofline::Roofline;
pub(crate) use team::Team;
