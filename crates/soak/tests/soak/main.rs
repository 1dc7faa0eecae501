//! A deterministic soak: for each of many seeds a load and faults are drawn, run in simulated time, and everything that
//! the run says is added up and compared with what must be so.
//!
//! `NEPHOSCOPE_SOAK_SEED=17` runs one seed alone, and `NEPHOSCOPE_SOAK_TRANSACTIONS=1000000` has each run last for so
//! many transactions (by default 5,000).
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, unreachable_pub)]

mod arrivals;
mod course;
mod draw;
mod ledger;
mod overload;
mod planned;
mod support;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use course::Outcome;

const SEEDS: u64 = 200;
/// Transactions of each.
const TRANSACTIONS: u64 = 5_000;
/// Of runs that are no longer than that, every so many are run twice.
const TWICE: u64 = 4;

fn setting(name: &str) -> Option<u64> {
    std::env::var(name).ok().map(|text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}

/// Runs seeds on all cores; gives the seeds that failed.
fn on_all_cores(seeds: std::ops::Range<u64>, run: impl Fn(u64) + Sync) -> Vec<u64> {
    let next = AtomicU64::new(seeds.start);
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            let seed = next.fetch_add(1, Ordering::Relaxed);
            if seed >= seeds.end {
                break;
            }
            if catch_unwind(AssertUnwindSafe(|| run(seed))).is_err() {
                failed.lock().unwrap().push(seed);
            }
        }
    };
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from) {
            scope.spawn(work);
        }
    });
    failed.into_inner().unwrap()
}

#[test]
fn whatever_a_seed_draws_the_account_is_right() {
    let transactions = setting("NEPHOSCOPE_SOAK_TRANSACTIONS").unwrap_or(TRANSACTIONS);
    let seeds = setting("NEPHOSCOPE_SOAK_SEED").map_or(0..SEEDS, |seed| seed..seed + 1);
    let (begun, all) = (Instant::now(), Mutex::new(Outcome::default()));
    let failed = on_all_cores(seeds.clone(), |seed| {
        let outcome = course::run(seed, transactions);
        all.lock().unwrap().add(&outcome);
        if transactions <= TRANSACTIONS && seed % TWICE == 0 {
            assert_eq!(course::run(seed, transactions), outcome, "a seed has one course");
        }
    });
    let sum = all.into_inner().unwrap();
    println!("{} seeds in {:.1?}: {sum:?}", seeds.end - seeds.start, begun.elapsed());
    assert!(
        failed.is_empty(),
        "seeds {failed:?} failed; one alone: NEPHOSCOPE_SOAK_SEED={} cargo test -p nephoscope-soak",
        failed[0]
    );
    let met = [sum.uncertain, sum.in_flight, sum.failed, sum.arrivals];
    assert!(seeds.end - seeds.start < SEEDS || met.iter().all(|count| *count > 0), "not all is met: {sum:?}");
}
