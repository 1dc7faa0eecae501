//! Checks a history of executed transactions while it is made, on one thread, and prints what was found and the processor
//! time that it took: `check TRANSACTIONS [BETWEEN [ORDER]]`. With BETWEEN something is planted after each so many
//! transactions. ORDER is none, session, or real-time, which counters need; with real-time it fails if something else is
//! found than was planted.

#[allow(dead_code)] // The tests use the rest.
#[path = "../tests/planting/mod.rs"]
mod planting;

use std::collections::BTreeMap;
use std::time::Duration;

use nephoscope_histories::{Anomaly, Checker, Options, Order, Summary, Transaction};
use planting::plants::PLANTS;
use planting::{Simulator, WINDOW};

/// So many transactions are made before they are checked: making them is not measured.
const BATCH: usize = 4_096;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let given: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize, otherwise| given.get(at).map_or(Ok(otherwise), |word| word.parse::<u64>());
    let (transactions, between) = (number(0, 1_000_000)?, number(1, u64::MAX)?);
    let order = match given.get(2).map(String::as_str) {
        None | Some("real-time") => Order::RealTime,
        Some("session") => Order::Session,
        Some("none") => Order::None,
        Some(other) => return Err(format!("no order: {other}").into()),
    };
    let options =
        Options { order, window: WINDOW, reads_before_writes: true, witnesses: 1, ..Options::default() };
    let mut simulator = Simulator::new(1, 5);
    let mut checker = Checker::new(options);
    let mut batch = vec![Transaction::default(); BATCH];
    let (mut took, mut longest, mut planted) = (Duration::ZERO, Duration::ZERO, 0);
    for at in 1.. {
        if at == transactions {
            simulator.close();
        }
        let place = at as usize % BATCH;
        let more = simulator.next(&mut batch[place]);
        if more && place + 1 < BATCH {
            if at % between == 0 && at < transactions {
                PLANTS[planted as usize % PLANTS.len()].put(&mut simulator, planted);
                planted += 1;
            }
            continue;
        }
        let first = usize::from(at as usize <= BATCH);
        let begin = processor_time()?;
        for transaction in &batch[first..place + usize::from(more)] {
            checker.push(transaction)?;
        }
        let elapsed = processor_time()?.saturating_sub(begin);
        (longest, took) = (longest.max(elapsed), took + elapsed);
        if !more {
            break;
        }
    }
    let begin = processor_time()?;
    let summary = checker.finish()?;
    took += processor_time()?.saturating_sub(begin);
    let memory = std::fs::read_to_string("/proc/self/status")?;
    let memory = memory.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default().to_owned();
    report(&summary, took, longest, planted, &memory);
    let found: BTreeMap<_, _> = summary.counts.iter().map(|it| ((it.anomaly, it.order), it.times)).collect();
    if order == Order::RealTime && found != expected(planted) {
        return Err("something else was found than was planted".into());
    }
    Ok(())
}

/// What this thread has had of a processor.
fn processor_time() -> Result<Duration, Box<dyn std::error::Error>> {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat")?;
    Ok(Duration::from_nanos(told.split(' ').next().unwrap_or_default().parse()?))
}

fn expected(planted: u64) -> BTreeMap<(Anomaly, Order), u64> {
    let mut expected = BTreeMap::new();
    for plant in (0..planted as usize).map(|at| &PLANTS[at % PLANTS.len()]) {
        for found in plant.found {
            *expected.entry(*found).or_default() += 1;
        }
    }
    expected
}

#[allow(clippy::print_stdout)] // It is what the benchmark reads.
fn report(summary: &Summary, took: Duration, longest: Duration, planted: u64, memory: &str) {
    let all = summary.committed + summary.aborted + summary.unknown;
    println!(
        "{all} transactions, {} operations, {:.2} s of a processor",
        summary.operations,
        took.as_secs_f64()
    );
    println!(
        "{:.0} transactions a second; {BATCH} took {:?} at most",
        all as f64 / took.as_secs_f64(),
        longest
    );
    println!("held at most {} transactions, {} keys; {memory}", summary.most_held, summary.most_keys);
    println!(
        "{planted} planted; late {}, forced {}, left out {}",
        summary.late, summary.forced, summary.unordered
    );
    for count in &summary.counts {
        println!("{} ({}): {}", count.anomaly.name(), count.order.name(), count.times);
    }
}
