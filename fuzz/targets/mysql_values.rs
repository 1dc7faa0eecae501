//! See `nephoscope_drivers::mysql::fuzzing::values`.
#![no_main]

use nephoscope_drivers::mysql::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::values(data));
