//! Runs a load described in JSON (a [`nephoscope_engine::LoadSpec`]) and prints its intervals: for profiling the
//! engine without anything around it.
#![allow(clippy::print_stdout)]

use std::time::Duration;

use nephoscope_engine::{LoadSpec, Record, Run};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let path = std::env::args().nth(1).ok_or("usage: drive LOAD.json")?;
    let spec: LoadSpec = serde_json::from_str(&std::fs::read_to_string(path)?)?;
    let run = Run::start(&spec)?;
    let (mut committed, mut cpu) = (0, 0);
    loop {
        match run.next(Duration::from_secs(1)) {
            Some(Record::Interval(interval)) => {
                let seconds = (interval.end - interval.start) as f64 / 1e9;
                let count: u64 = interval.series.iter().map(|series| series.committed).sum();
                let failed: u64 = interval.series.iter().map(|series| series.failed).sum();
                let p99 = interval.series.iter().map(|series| series.latency.value_at_quantile(0.99)).max();
                let lag = interval
                    .lag
                    .as_ref()
                    .map(|lag| (lag.value_at_quantile(0.5), lag.value_at_quantile(0.99), lag.max()));
                committed += count;
                cpu += interval.cpu;
                println!(
                    "phase {} {:7.3}–{:7.3} s  {:9.0} tps  p99 {:?} ns  failed {failed}  busy {:.2}  cpu/tx {:.2} µs lag {lag:?} arrivals {:?}",
                    interval.phase,
                    interval.start as f64 / 1e9,
                    interval.end as f64 / 1e9,
                    count as f64 / seconds,
                    p99.unwrap_or(0),
                    interval.busiest,
                    interval.cpu as f64 / 1e3 / count.max(1) as f64,
                    interval.tenants.iter().map(|tenant| tenant.arrivals).collect::<Vec<_>>(),
                );
            }
            Some(Record::End(ending)) => {
                println!(
                    "{:?}\ncommitted {committed}, {:.3} µs of processor time each",
                    ending,
                    cpu as f64 / 1e3 / committed as f64
                );
                return Ok(());
            }
            Some(Record::Phase { at, number, spec }) => println!("phase {number} {:?} at {at}", spec.name),
            Some(Record::Gap(gap)) => println!("{gap:?}"),
            Some(Record::History(history)) => println!("{history:?}"),
            Some(Record::Error(error)) => println!("{error:?}"),
            None => {}
        }
    }
}
