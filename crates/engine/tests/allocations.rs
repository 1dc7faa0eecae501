//! A transaction allocates nothing: counted by the allocator of this program, with the driver that costs nothing.
#![allow(clippy::unwrap_used)]

mod support;

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use nephoscope_engine::Run;
use serde_json::json;
use support::{alone, open_phase, read_all, spec, wait_until};

/// The system's allocator, counting what threads ask for that do not keep out of it.
struct Counting;

static COUNT: AtomicU64 = AtomicU64::new(0);

thread_local! {
    /// The threads of the test itself keep out of the count.
    static APART: Cell<bool> = const { Cell::new(false) };
}

fn count() {
    if !APART.try_with(Cell::get).unwrap_or(true) {
        COUNT.fetch_add(1, Ordering::Relaxed);
    }
}

// SAFETY: every call is passed on as it came, and counting allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: as the caller promises.
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of the worker in a second in the midst of a run, and the transactions of about that time.
fn allocations(load: serde_json::Value, pipeline: bool) -> (u64, u64) {
    let _alone = alone();
    APART.set(true);
    let mut spec = spec("noop://", [open_phase("all", load)]);
    (spec.interval_ms, spec.pipeline) = (500, pipeline);
    let run = Run::start(&spec).unwrap();
    wait_until(&run, 1.05);
    let before = COUNT.load(Ordering::Relaxed);
    std::thread::sleep(Duration::from_secs(1));
    let counted = COUNT.load(Ordering::Relaxed) - before;
    run.stop();
    let story = read_all(&run, &spec);
    (counted, story.between(1.0, 2.0).committed())
}

#[test]
fn a_transaction_of_a_closed_loop_allocates_nothing() {
    let mix = json!({"write": 3, "read": 3, "transfer": 3, "change_of_mind": 1});
    for pipeline in [false, true] {
        let (counted, committed) = allocations(json!({"concurrency": 4, "mix": mix}), pipeline);
        // The two or three intervals that end in the time are handed over in a few vectors each.
        assert!(
            committed > 10_000 && (1..200).contains(&counted),
            "{counted} allocations for {committed} transactions"
        );
    }
}

#[test]
fn a_transaction_of_an_open_load_allocates_nothing() {
    let load = json!({"rate": 10_000, "arrivals": "poisson", "mix": "half"});
    let (counted, committed) = allocations(load, false);
    assert!(
        committed > 2_000 && (1..200).contains(&counted),
        "{counted} allocations for {committed} transactions"
    );
}
