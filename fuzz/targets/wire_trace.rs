//! See `nephoscope_traces::fuzzing::wire_trace`.
#![no_main]

use nephoscope_traces::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::wire_trace(data));
