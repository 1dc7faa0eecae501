//! What comes in from the workers: their shards, their reports, and the end that follows from both.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::thread::JoinHandle;

use nephoscope_runtime::Nanos;
use nephoscope_script::{KeySpace, used_keys};

use crate::run::collect::{Collector, Record};
use crate::run::history::{Histories, History};
use crate::run::interval::SeriesName;
use crate::spec::PhaseSpec;
use crate::worker::history::Parcel;
use crate::worker::recorder::{SeriesData, Shard};
use crate::worker::report::{Report, WorkerTotals, add};
use crate::worker::watchdog::Watchdog;

/// What the whole run has done.
#[derive(Clone, Debug, Default)]
pub struct Totals {
    /// Transactions that were started.
    pub started: u64,
    /// Of these, the ones in flight when the run ended.
    pub in_flight: u64,
    /// The same two of each series.
    pub by_series: Vec<(SeriesName, u64, u64)>,
    /// Transactions of which nobody knows whether they were committed.
    pub uncertain: u64,
    /// By tenant and tally: what committed transactions have added, and the size of what uncertain ones would have.
    pub tallies: BTreeMap<String, BTreeMap<String, (f64, f64)>>,
    /// By tenant and table: how many keys were used up, earlier runs included; see `nephoscope_script::used_keys`.
    pub handed_out: BTreeMap<String, BTreeMap<String, u64>>,
    /// Memory that the workloads' Lua states held at the end, in bytes.
    pub script_memory: u64,
}

/// How a run has ended.
#[derive(Clone, Debug)]
pub struct Ending {
    /// What it has done.
    pub totals: Totals,
    /// Whether every worker came to its end; otherwise the totals lack the part of those that did not.
    pub complete: bool,
    /// Why it ended before its time: an error of the workload.
    pub failure: Option<String>,
}

/// A phase that the control side lets begin. It is announced before the workers hear of it, so the collector knows
/// of a phase before the first shard of it; and by a channel, so that nobody who reads holds up a change.
pub(crate) struct Announcement {
    pub(crate) at: Nanos,
    pub(crate) phase: Arc<PhaseSpec>,
    /// It is the last: phases that were to begin after it will not.
    pub(crate) end: bool,
}

/// The reader's side of a run.
pub(crate) struct Intake {
    pub(crate) shards: Receiver<Shard>,
    pub(crate) reports: Receiver<(usize, Report)>,
    pub(crate) announced: Receiver<Announcement>,
    pub(crate) collector: Collector,
    pub(crate) finished: Vec<WorkerTotals>,
    pub(crate) workers: usize,
    /// Workers that have ended or were given up.
    pub(crate) gone: usize,
    pub(crate) threads: Vec<JoinHandle<()>>,
    pub(crate) watchdog: Watchdog,
    pub(crate) failure: Option<String>,
    /// Of each tenant: in whose name its tallies are added up and its keys handed out.
    pub(crate) keys: Vec<(String, TenantKeys)>,
    /// Whoever checks the run's histories, until it has ended.
    pub(crate) histories: Option<Histories>,
}

/// The key spaces of a tenant, by table.
pub(crate) type TenantKeys = Vec<(String, Arc<KeySpace>)>;

impl Intake {
    pub(crate) fn add(&mut self, shard: Shard) {
        // What was announced before the shard was made is here by now.
        while let Ok(Announcement { at, phase, end }) = self.announced.try_recv() {
            if end {
                self.collector.end_at(at);
            }
            self.collector.announce(at, phase);
        }
        self.collector.add(shard);
    }

    /// Reads what the workers report; says whether the run has to be stopped.
    pub(crate) fn take_reports(&mut self) -> bool {
        let mut fatal = self.watch();
        // Counted before reports are read: whoever is gone by now has sent all that it had to say.
        let is_gone = |(number, thread): &(usize, &JoinHandle<()>)| {
            thread.is_finished() || self.watchdog.has_given_up(*number)
        };
        self.gone = self.threads.iter().enumerate().filter(is_gone).count();
        while let Ok((number, report)) = self.reports.try_recv() {
            match report {
                Report::Finished(totals) => {
                    self.finished.push(*totals);
                    self.take_shards();
                    self.collector.finished(number);
                }
                Report::Fatal(message) => {
                    self.failure.get_or_insert(message);
                    fatal = true;
                }
                Report::NotReady(error) => {
                    self.failure.get_or_insert(error.to_string());
                    fatal = true;
                }
                Report::Begun(_) | Report::Ready => {}
            }
        }
        if self.gone > self.finished.len() && self.failure.is_none() {
            self.failure = Some("a worker died; standard error says why".to_owned());
            fatal = true;
        }
        fatal
    }

    /// Looks after transactions without an end; says whether the run has to be stopped because a worker is given up.
    pub(crate) fn watch(&mut self) -> bool {
        if self.failure.is_some() {
            self.watchdog.hurry();
        }
        let Some((number, message)) = self.watchdog.look() else { return false };
        self.failure.get_or_insert(message);
        self.collector.finished(number);
        true
    }

    /// Whatever a worker has sent, it has sent before it said that it is finished.
    pub(crate) fn take_shards(&mut self) {
        while let Ok(shard) = self.shards.try_recv() {
            self.add(shard);
        }
    }

    /// A history that has ended.
    pub(crate) fn take_history(&mut self) -> Option<History> {
        self.histories.as_ref().and_then(|histories| histories.found.try_recv().ok())
    }

    /// Whether histories are checked still, now that no transaction comes any more.
    fn awaits_histories(&mut self) -> bool {
        let Some(histories) = &mut self.histories else { return false };
        if !std::mem::replace(&mut histories.told, true) {
            let _ = histories.parcels.send(Parcel::End);
        }
        if histories.thread.is_finished() {
            // What it found last comes before the end.
            let Ok(history) = histories.found.try_recv() else {
                let died = self.histories.take().is_some_and(|histories| histories.thread.join().is_err());
                if died {
                    self.failure.get_or_insert("the thread that checks histories died".to_owned());
                }
                return false;
            };
            self.collector.tell(Record::History(Box::new(history)));
        }
        true
    }

    pub(crate) fn end_if_finished(&mut self) -> Option<Record> {
        if self.finished.len() < self.workers {
            if self.gone < self.workers {
                return None;
            }
            self.take_shards();
            (0..self.workers).for_each(|worker| self.collector.finished(worker));
        }
        if let Some(record) = self.collector.take() {
            return Some(record);
        }
        if self.awaits_histories() {
            return None;
        }
        if std::mem::replace(&mut self.collector.ended, true) {
            return None;
        }
        let by_series = self.collector.names().iter().map(|name| (name.clone(), 0, 0)).collect();
        let mut totals = Totals { by_series, ..Totals::default() };
        for worker in &self.finished {
            for (index, (started, ended)) in worker.started.iter().zip(&worker.ended).enumerate() {
                let in_flight = started - ended;
                totals.started += started;
                totals.in_flight += in_flight;
                totals.by_series[index].1 += started;
                totals.by_series[index].2 += in_flight;
            }
            totals.uncertain += worker.uncertain;
            totals.script_memory += worker.script_memory as u64;
            for ((tenant, _), tallies) in self.keys.iter().zip(&worker.tallies) {
                let of_tenant = totals.tallies.entry(tenant.clone()).or_default();
                for (name, sure, uncertain) in tallies {
                    let tally = of_tenant.entry(name.clone()).or_default();
                    add(&mut tally.0, *sure);
                    add(&mut tally.1, *uncertain);
                }
            }
        }
        for (tenant, keys) in &self.keys {
            totals.handed_out.insert(tenant.clone(), used_keys(keys));
        }
        let complete = self.finished.len() == self.workers;
        Some(Record::End(Box::new(Ending { totals, complete, failure: self.failure.take() })))
    }
}

/// The channel by which used boxes go back to their worker.
pub(crate) type Recycle = Sender<Box<SeriesData>>;
