//! The thread beside a run that takes its history: each transaction is written into the run directory and checked.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread::JoinHandle;

use nephoscope_histories::{Checker, Options, Order, Summary, Transaction, forms};
use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::{MILLISECOND, SECOND};

use crate::error::EngineError;
use crate::spec::{HistorySpec, LoadSpec};
use crate::worker::history::{Batch, Cut, HistoryRecorder, Parcel, SESSION_BITS};

/// Transactions are held for so long at least, in case others that ended before them come later.
const LEAST_WINDOW: Nanos = 10 * SECOND;

/// What was found in a history.
#[derive(Clone, Debug)]
pub struct History {
    /// Whose.
    pub tenant: String,
    /// When its first transaction began, and its last ended, since the start of the load.
    pub from: Nanos,
    /// See `from`.
    pub to: Nanos,
    /// Transactions and anomalies.
    pub summary: Summary,
    /// The order that was looked for.
    pub looked: Order,
    /// Why the history is not whole, or could not be checked to its end.
    pub broken: Option<String>,
    /// Its file in the run directory's folder of histories.
    pub file: String,
    /// Why the file is not whole.
    pub unwritten: Option<String>,
}

/// The reader's side of the thread.
pub(crate) struct Histories {
    pub(crate) found: Receiver<History>,
    pub(crate) parcels: Sender<Parcel>,
    pub(crate) thread: JoinHandle<()>,
    /// The thread was told that the run is over.
    pub(crate) told: bool,
}

/// Starts the thread; gives the workers' sides, one for each.
pub(crate) fn start(
    spec: &LoadSpec,
) -> Result<(Option<Histories>, std::vec::IntoIter<HistoryRecorder>), EngineError> {
    let Some(history) = &spec.history else { return Ok((None, Vec::new().into_iter())) };
    let ((parcels, came), (finds, found), cut) = (channel(), channel(), Cut::default());
    let (mut recorders, mut back) = (Vec::new(), Vec::new());
    for worker in 0..spec.threads {
        let (give_back, used) = channel();
        recorders.push(HistoryRecorder::new(worker, parcels.clone(), used, cut.clone()));
        back.push(give_back);
    }
    let owner = |tenant: &crate::spec::TenantSpec| tenant.stream_of.clone().unwrap_or(tenant.name.clone());
    let mut historian = Historian {
        spec: history.clone(),
        window: LEAST_WINDOW.max((spec.statement_timeout_ms + 2 * spec.interval_ms) * MILLISECOND),
        owners: spec.tenants.iter().map(owner).collect(),
        marks: Vec::new(),
        open: BTreeMap::new(),
        finished: 0,
        strays: 0,
        files: 0,
        bytes: 0,
        cut,
        finds,
        back,
    };
    let work = move || historian.run(&came);
    let thread = std::thread::Builder::new()
        .name("histories".to_owned())
        .spawn(work)
        .map_err(|error| EngineError::Failed(format!("no thread for histories: {error}")))?;
    Ok((Some(Histories { found, parcels, thread, told: false }), recorders.into_iter()))
}

/// A history that goes on.
struct Open {
    checker: Option<Checker>,
    from: Nanos,
    to: Nanos,
    number: u64,
    name: String,
    file: Option<BufWriter<File>>,
    /// What was found until the history was broken.
    summary: Summary,
    broken: Option<String>,
    unwritten: Option<String>,
}

struct Historian {
    spec: HistorySpec,
    window: Nanos,
    /// Whose history a tenant's sessions belong to, by the tenant's place.
    owners: Vec<String>,
    /// When histories begin, and which workers have passed that.
    marks: Vec<(Nanos, Vec<bool>)>,
    /// By the number of marks before it, and its owner.
    open: BTreeMap<(usize, String), Open>,
    /// So many marks have been passed by all workers: what began before is over.
    finished: usize,
    /// Transactions of histories that were over.
    strays: u64,
    files: u64,
    bytes: u64,
    cut: Cut,
    finds: Sender<History>,
    back: Vec<Sender<Box<Batch>>>,
}

impl Historian {
    fn run(&mut self, came: &Receiver<Parcel>) {
        let mut lines = String::new();
        while let Ok(parcel) = came.recv() {
            match parcel {
                Parcel::Box(worker, mut batch) => {
                    self.take(batch.transactions(), &mut lines);
                    // A worker that has finished takes nothing back.
                    let _ = self.back[worker].send(batch);
                }
                Parcel::Mark(worker, at) => self.mark(worker, at),
                Parcel::End => break,
            }
        }
        self.finish(usize::MAX);
    }

    fn mark(&mut self, worker: usize, at: Nanos) {
        let place = self.marks.iter().position(|(of, _)| *of == at).unwrap_or_else(|| {
            self.marks.push((at, vec![false; self.back.len()]));
            self.marks.len() - 1
        });
        self.marks[place].1[worker] = true;
        if self.marks[place].1.iter().all(|passed| *passed) {
            self.finished = place + 1;
            self.finish(place + 1);
        }
    }

    fn take(&mut self, transactions: &mut [Transaction], lines: &mut String) {
        for transaction in transactions {
            let marks = self.marks.partition_point(|(at, _)| *at <= transaction.begin);
            if marks < self.finished {
                self.strays += 1;
                continue;
            }
            let owner = self.owners.get((transaction.session >> SESSION_BITS) as usize);
            let key = (marks, owner.cloned().unwrap_or_default());
            if !self.open.contains_key(&key) {
                self.begin(key.clone(), transaction.begin);
            }
            let Some(open) = self.open.get_mut(&key) else { continue };
            (open.from, open.to) = (open.from.min(transaction.begin), open.to.max(transaction.end));
            open.number += 1;
            transaction.number = open.number;
            lines.clear();
            forms::write_line(transaction, lines);
            self.bytes += open.write(lines, self.spec.most_bytes.saturating_sub(self.bytes));
            open.check(transaction);
        }
    }

    fn begin(&mut self, (marks, tenant): (usize, String), from: Nanos) {
        self.files += 1;
        let (name, folder) = (format!("{}.history", self.files), &self.spec.folder);
        let made = std::fs::create_dir_all(folder).and_then(|()| create(folder, &name, &tenant));
        let (file, unwritten) = match made {
            Ok(file) => (Some(file), None),
            Err(error) => (None, Some(error.to_string())),
        };
        let options = Options {
            order: self.spec.order.into(),
            window: self.window,
            reads_before_writes: true,
            witnesses: self.spec.witnesses,
            ..Options::default()
        };
        let checker = Some(Checker::new(options));
        let summary = Summary::default();
        let open = Open { checker, from, to: from, number: 0, name, file, summary, broken: None, unwritten };
        self.open.insert((marks, tenant), open);
    }

    /// Ends the histories that began before so many marks.
    fn finish(&mut self, marks: usize) {
        let later = self.open.split_off(&(marks, String::new()));
        for ((_, tenant), mut open) in std::mem::replace(&mut self.open, later) {
            let cut = self.cut.at().map(|at| {
                format!(
                    "the checker could not keep up at {:.1} s: later transactions are in no history",
                    at as f64 / 1e9
                )
            });
            if let Some(error) = open.file.as_mut().and_then(|file| file.flush().err()) {
                open.unwritten = Some(error.to_string());
            }
            let mut summary = std::mem::take(&mut open.summary);
            match open.checker.take().map(Checker::finish) {
                Some(Ok(found)) => summary = found,
                Some(Err(message)) => open.broken = Some(message),
                None => {}
            }
            summary.late += std::mem::take(&mut self.strays);
            let Open { from, to, name, unwritten, broken, .. } = open;
            let history = History {
                tenant,
                from,
                to,
                summary,
                looked: self.spec.order.into(),
                broken: broken.or(cut),
                file: name,
                unwritten,
            };
            // The reader is gone only with the run.
            let _ = self.finds.send(history);
        }
    }
}

impl Open {
    fn check(&mut self, transaction: &Transaction) {
        if let Some(checker) = &mut self.checker
            && let Err(message) = checker.push(transaction)
        {
            self.broken = Some(message);
            self.summary = self.checker.take().map(|checker| checker.summary()).unwrap_or_default();
        }
    }

    /// Writes a line, if there is room for it; gives how long it is.
    fn write(&mut self, line: &str, room: u64) -> u64 {
        let Some(file) = &mut self.file else { return 0 };
        let (text, is_cut) = if line.len() as u64 > room { ("# cut\n", true) } else { (line, false) };
        let written = file.write_all(text.as_bytes());
        if is_cut || written.is_err() {
            let why =
                written.err().map_or("the run's limit was reached".to_owned(), |error| error.to_string());
            if is_cut {
                let _ = file.flush();
            }
            (self.unwritten, self.file) = (Some(why), None);
        }
        text.len() as u64
    }
}

fn create(folder: &Path, name: &str, tenant: &str) -> std::io::Result<BufWriter<File>> {
    let mut file = BufWriter::new(File::create(folder.join(name))?);
    writeln!(file, "{}\n# tenant: {tenant}", forms::HEADER)?;
    Ok(file)
}
