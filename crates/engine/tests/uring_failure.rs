//! A ring of io_uring that fails for good ends the run or the probes, which say why. Alone in its process: all rings are broken.
#![allow(clippy::unwrap_used)]

mod support;

use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use nephoscope_engine::Run;
use nephoscope_engine::probes::Probes;
use nephoscope_engine::spec::IoChoice;
use nephoscope_runtime::Io;
use serde_json::json;
use support::{open_phase, read_all, spec};

/// Puts something else in the place of every ring of this process.
fn break_rings() -> usize {
    let other = std::fs::File::open("/dev/null").unwrap();
    let mut broken = 0;
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let is_ring =
            std::fs::read_link(entry.path()).is_ok_and(|to| to.to_string_lossy().contains("io_uring"));
        let number: Option<i32> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some(number) = number.filter(|_| is_ring) {
            // SAFETY: both descriptors are open.
            assert!(unsafe { libc::dup2(other.as_raw_fd(), number) } >= 0);
            broken += 1;
        }
    }
    broken
}

#[test]
fn a_ring_that_fails_ends_what_uses_it_with_its_name() {
    // Not every machine has it.
    if Io::Uring.check().is_err() {
        return;
    }
    let load = json!({"concurrency": 4, "mix": {"write": 1}});
    let mut spec = spec("sim://?latency=constant(1ms)", [open_phase("all", load)]);
    (spec.io, spec.threads) = (IoChoice::Uring, 2);
    let run = Run::start(&spec).unwrap();
    let probed = json!({
        "origin_ns": run.origin(), "io": "uring", "availability": {},
        "endpoints": [{"role": "rw", "node": "rw", "url": "sim://probed?latency=constant(1ms)"}],
    });
    let probes = Probes::start(&serde_json::from_value(probed).unwrap()).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    assert_eq!(break_rings(), 3);
    let story = read_all(&run, &spec);
    let ending = story.ending.as_ref().unwrap();
    let failure = ending.failure.as_deref().unwrap();
    assert!(failure.starts_with("io_uring failed: ") && ending.complete, "{ending:?}");
    assert!(story.all().committed() > 100, "what was measured before is kept");
    let until = Instant::now() + Duration::from_mins(1);
    let failure = loop {
        match probes.next(Duration::from_millis(100)) {
            Err(error) => break error.to_string(),
            Ok(_) => assert!(Instant::now() < until, "the probes have no end"),
        }
    };
    assert!(failure.starts_with("probes: io_uring failed: "), "{failure}");
}
