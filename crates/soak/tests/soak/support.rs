//! What must hold of every run: the engine's own tests say it.
#![allow(dead_code)] // These tests use a part of it.

#[path = "../../../engine/tests/support/check.rs"]
pub mod check;
#[path = "../../../engine/tests/support/story.rs"]
pub mod story;

pub use story::Story;

/// A second in nanoseconds, as a float.
pub const SECOND: f64 = 1e9;
