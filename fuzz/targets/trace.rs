//! See `nephoscope_storage::trace::fuzzing::trace`.
#![no_main]

use nephoscope_storage::trace::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::trace(data));
