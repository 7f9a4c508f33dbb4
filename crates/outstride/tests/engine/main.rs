//! The fast engine against the reference: every instruction set, path, layout and number of threads, on thousands of
//! generated layers.

mod accuracy;
mod activations;
mod equality;
mod halves;
mod integers;
mod layers;
mod plans;
mod quantized;
mod streams;
mod threads;
