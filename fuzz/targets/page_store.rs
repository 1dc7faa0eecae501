//! See `nephoscope_storage::page_store::fuzzing::messages`.
#![no_main]

use nephoscope_storage::page_store::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::messages(data));
