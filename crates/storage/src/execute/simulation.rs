//! An execution on one thread in simulated time, for tests: the same each time, whatever the machine does.

use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::sync::mpsc::channel;

use nephoscope_runtime::clock;
use nephoscope_runtime::mailbox::mailbox;
use nephoscope_runtime::{Runtime, Simulation};
use serde_json::Value;

use crate::execute::collector::Collector;
use crate::execute::layout::Layout;
use crate::execute::run::{AHEAD, Options};
use crate::execute::schedule::Schedule;
use crate::execute::target::{Failure, Target};
use crate::execute::worker::{Order, Report, Setup, live};

/// Executes requests with one worker on a target that waits for nothing but timers, and gives all records.
///
/// # Panics
/// If this thread simulates time already.
pub fn simulate<T: Target>(
    target: &Arc<T>,
    schedule: Schedule,
    options: &Options,
) -> Result<Vec<Value>, Failure> {
    let time = Simulation::begin(Simulation::BEGINNING);
    let options = Options { workers: 1, ..options.clone() };
    options.check()?;
    let runtime = Runtime::new().map_err(|error| Failure::Refused(error.to_string()))?;
    let (reports, intake) = channel();
    let (orders, mut given) = mailbox();
    let mut collector = Collector::new(&options, 0, schedule.len() as u64);
    let setup = Setup {
        number: 0,
        target: Arc::clone(target),
        layout: Arc::new(Layout::of([schedule.requests()])),
        schedule: Arc::new(schedule),
        options,
        reports,
    };
    let mut life = pin!(live(setup, runtime.clone(), &mut given));
    loop {
        let over = runtime.run_until_idle(life.as_mut() as std::pin::Pin<&mut dyn Future<Output = ()>>);
        for report in intake.try_iter() {
            match report {
                Report::Ready(ready) => {
                    ready?;
                    orders.send(Order::Begin(clock::now() + AHEAD));
                }
                Report::Shard(shard) => collector.add(*shard),
                Report::Ended(_) => {}
            }
        }
        if over.is_ready() {
            break;
        }
        // An order wakes the worker now.
        time.advance(runtime.next_timer().unwrap_or_else(clock::now));
    }
    runtime.shut_down();
    collector.ended(0);
    let mut records = collector.records();
    records.push(collector.end());
    Ok(records)
}
