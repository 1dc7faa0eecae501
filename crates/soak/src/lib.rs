//! Nothing but its tests: whole runs of the engine in simulated time, under loads and faults that a seed draws.
//!
//! They have a crate of their own because the engine's other tests and its example are to be built as the product is,
//! with a clock that nobody can move.
