//! See `nephoscope_storage::wal::fuzzing::log`.
#![no_main]

use nephoscope_storage::wal::fuzzing;

#[global_allocator]
static ALLOCATOR: nephoscope_fuzz::Bounded = nephoscope_fuzz::Bounded;

libfuzzer_sys::fuzz_target!(|data: &[u8]| fuzzing::log(data));
