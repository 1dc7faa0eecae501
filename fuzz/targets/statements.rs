//! See `nephoscope_script::fuzzing::statements`.
#![no_main]

use nephoscope_script::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::statements(data));
