//! See `nephoscope_drivers::simpledb::fuzzing::protocol`.
#![no_main]

use nephoscope_drivers::simpledb::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::protocol(data));
