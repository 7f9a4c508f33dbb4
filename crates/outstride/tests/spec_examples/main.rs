//! What the specifications say by example: their published calls, and every point where texts and implementations part
//! ways, each with the outcome that was settled on.

mod case;
mod disagreements;
mod one_problem;
mod published;

#[path = "../support/mod.rs"]
mod support;
