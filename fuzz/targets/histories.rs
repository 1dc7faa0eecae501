//! See `nephoscope_histories::fuzzing::histories`.
#![no_main]

use nephoscope_histories::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::histories(data));
