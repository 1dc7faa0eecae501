//! See `nephoscope_storage::capture::fuzzing::records`.
#![no_main]

use nephoscope_storage::capture::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::records(data));
