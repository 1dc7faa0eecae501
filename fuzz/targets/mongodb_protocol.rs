//! See `nephoscope_drivers::mongodb::fuzzing::protocol`.
#![no_main]

use nephoscope_drivers::mongodb::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::protocol(data));
