//! The lists that names, places and texts are made of. They are part of what a seed means: a change here
//! changes the generated data, and the golden test says so.

pub(crate) mod names;
pub(crate) mod places;
pub(crate) mod words;
