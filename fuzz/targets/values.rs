//! See `nephoscope_drivers::postgres::fuzzing::values`.
#![no_main]

use nephoscope_drivers::postgres::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::values(data));
