//! See `nephoscope_drivers::net::http::fuzzing::response`.
#![no_main]

use nephoscope_drivers::net::http::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::response(data));
