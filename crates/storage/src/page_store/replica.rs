//! A replica: what it holds, what it does with a request, and when it answers.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use nephoscope_runtime::clock;

use crate::page_store::costs::Queue;
use crate::page_store::log::Log;
use crate::page_store::outgoing::{AT_ONCE, Outgoing};
use crate::page_store::protocol::{LONGEST_DATA, Reason, Reply, Request, VERSION};
use crate::page_store::segment::{Change, Segment};
use crate::page_store::settings::{ReplicaSettings, Settings};
use crate::page_store::statistics::{Counters, add};

/// The most reads of a segment that wait for records.
const MOST_WAITING: usize = 4096;
/// The most pages that one round of consolidation takes on.
const CONSOLIDATED_AT_ONCE: usize = 256;

/// A read that waits for a record, and where its answer goes.
struct Waiting {
    id: u32,
    lsn: u64,
    offset: u64,
    bytes: u32,
    to: Rc<RefCell<Outgoing>>,
}

/// A replica's state.
pub(crate) struct Replica {
    settings: Settings,
    queue: Queue,
    segments: BTreeMap<u32, Segment>,
    waiting: BTreeMap<u32, Vec<Waiting>>,
    /// Pages whose chains are long.
    long: Vec<(u32, u64)>,
    log: Option<Log>,
    /// Why the log can be written no more.
    broken: Option<String>,
    counters: Arc<Counters>,
    /// The bytes of all images and records.
    held: u64,
    answer: Vec<u8>,
}

impl Replica {
    /// A replica, with what its file holds.
    pub(crate) fn open(
        settings: &Settings,
        own: &ReplicaSettings,
        counters: Arc<Counters>,
    ) -> io::Result<Self> {
        let mut replica = Self {
            queue: Queue::new(settings.parallel, clock::now(), &own.stalls),
            settings: settings.clone(),
            segments: BTreeMap::new(),
            waiting: BTreeMap::new(),
            long: Vec::new(),
            log: None,
            broken: None,
            counters,
            held: 0,
            answer: Vec::new(),
        };
        if let Some(path) = &own.file {
            // What was accepted once is accepted again.
            let log = Log::open(path, settings.sync, &mut |request| {
                let _ = replica.change(request);
            })?;
            replica.log = Some(log);
        }
        replica.show_held();
        Ok(replica)
    }

    /// Does what a request asks; the answer goes to `to` when its time has come.
    pub(crate) fn handle(&mut self, id: u32, request: &Request<'_>, to: &Rc<RefCell<Outgoing>>) {
        match *request {
            Request::Hello { version: VERSION } => {
                let page_size = self.settings.page_size;
                to.borrow_mut().push(AT_ONCE, id, &Reply::Welcome { version: VERSION, page_size });
            }
            Request::Hello { version } => {
                let text = format!("version {version} is not spoken here, version {VERSION} is");
                self.refuse(id, Reason::Invalid, &text, to);
            }
            Request::Read { segment, lsn, offset, bytes } => {
                self.read(segment, Waiting { id, lsn, offset, bytes, to: Rc::clone(to) });
            }
            Request::Statistics => {
                let mut counters = Vec::new();
                self.counters.read().write(&mut counters);
                to.borrow_mut().push(AT_ONCE, id, &Reply::Counters(&counters));
            }
            Request::Create { .. } | Request::Append { .. } | Request::Erase { .. } => {
                match self.write(request) {
                    Ok(bytes) => {
                        let due = match request {
                            // Making a segment is no part of what is measured.
                            Request::Create { .. } => AT_ONCE,
                            _ => self.queue.admit(clock::now(), self.settings.costs.of_append(bytes)),
                        };
                        to.borrow_mut().push(due, id, &Reply::Done);
                    }
                    Err(reason) => self.refuse(id, reason, "", to),
                }
            }
        }
    }

    /// Changes what is held, and logs that.
    fn write(&mut self, request: &Request<'_>) -> Result<u64, Reason> {
        if self.broken.is_some() {
            return Err(Reason::Broken);
        }
        if !matches!(request, Request::Create { .. }) && self.held >= self.settings.memory {
            return Err(Reason::Full);
        }
        let (segment, bytes) = self.change(request)?;
        if let Some(log) = &mut self.log {
            log.add(request);
        }
        add(&self.counters.appends, u64::from(!matches!(request, Request::Create { .. })));
        add(&self.counters.appended_bytes, bytes);
        self.show_held();
        self.answer_waiting(segment);
        Ok(bytes)
    }

    /// Gives the request's segment, and how many bytes it carries.
    fn change(&mut self, request: &Request<'_>) -> Result<(u32, u64), Reason> {
        let page_size = self.settings.page_size;
        let (number, lsn, offset, change, bytes) = match *request {
            Request::Create { segment } => {
                let former = self.segments.insert(segment, Segment::new(page_size));
                self.held -= former.map_or(0, |former| former.held());
                return Ok((segment, 0));
            }
            Request::Append { segment, lsn, offset, data } => {
                (segment, lsn, offset, Change::Bytes(data.into()), data.len() as u64)
            }
            Request::Erase { segment, lsn, offset, bytes } => (segment, lsn, offset, Change::Zeros(bytes), 0),
            _ => return Err(Reason::Invalid),
        };
        let segment = self.segments.get_mut(&number).ok_or(Reason::NoSegment)?;
        let long = self.settings.consolidate.unwrap_or(usize::MAX);
        let (before, mut list) = (segment.held(), Vec::new());
        segment.append(lsn, offset, change, (long, &mut list))?;
        self.held = self.held - before + segment.held();
        self.long.extend(list.into_iter().map(|page| (number, page)));
        Ok((number, bytes))
    }

    fn read(&mut self, number: u32, read: Waiting) {
        let Some(segment) = self.segments.get(&number) else {
            return self.refuse(read.id, Reason::NoSegment, "", &read.to);
        };
        if read.bytes as usize > LONGEST_DATA {
            return self.refuse(read.id, Reason::Invalid, "", &read.to);
        }
        self.answer.clear();
        match segment.read(read.lsn, read.offset, read.bytes, &mut self.answer) {
            Ok(Some(applied)) => {
                let counters = &self.counters;
                add(&counters.reads, 1);
                add(&counters.read_bytes, u64::from(read.bytes));
                add(&counters.applied, applied);
                counters.longest_chain.fetch_max(applied, Ordering::Relaxed);
                let service = self.settings.costs.of_read(u64::from(read.bytes), applied);
                let due = self.queue.admit(clock::now(), service);
                read.to.borrow_mut().push(due, read.id, &Reply::Data(&self.answer));
            }
            Ok(None) => {
                let waiting = self.waiting.entry(number).or_default();
                if waiting.len() >= MOST_WAITING {
                    return self.refuse(read.id, Reason::Full, "", &read.to);
                }
                add(&self.counters.waited, 1);
                waiting.push(read);
            }
            Err(reason) => self.refuse(read.id, reason, "", &read.to),
        }
    }

    /// Reads that waited for what is there now.
    fn answer_waiting(&mut self, number: u32) {
        let complete = self.segments.get(&number).map_or(0, Segment::complete);
        let Some(waiting) = self.waiting.get_mut(&number) else { return };
        let ready: Vec<Waiting> = waiting.extract_if(.., |read| read.lsn <= complete).collect();
        if waiting.is_empty() {
            self.waiting.remove(&number);
        }
        for read in ready {
            self.read(number, read);
        }
    }

    fn refuse(&mut self, id: u32, reason: Reason, text: &str, to: &Rc<RefCell<Outgoing>>) {
        add(&self.counters.refused, 1);
        let text = match (reason, &self.broken) {
            (Reason::Broken, Some(why)) => why.as_str(),
            _ if !text.is_empty() => text,
            (Reason::NoSegment, _) => "there is no such segment",
            (Reason::Gone, _) => "a page is newer than that: the log is kept no longer",
            (Reason::Full, _) => "there is no room",
            _ => "it means nothing",
        };
        to.borrow_mut().push(AT_ONCE, id, &Reply::Refused { reason, text: text.as_bytes() });
    }

    /// Has what was logged in the file. Nothing is acknowledged before.
    pub(crate) fn persist(&mut self) -> io::Result<()> {
        let Some(log) = &mut self.log else { return Ok(()) };
        let persisted = log.persist();
        if let Err(error) = &persisted {
            self.broken = Some(format!("the log cannot be written: {error}"));
        }
        persisted
    }

    /// Makes images of pages whose chains are long; each takes its time in the queue.
    pub(crate) fn consolidate(&mut self) {
        let now = clock::now();
        let count = self.long.len().min(CONSOLIDATED_AT_ONCE);
        let pages: Vec<(u32, u64)> = self.long.drain(..count).collect();
        for (number, page) in pages {
            let Some(segment) = self.segments.get_mut(&number) else { continue };
            let before = segment.held();
            let records = segment.consolidate(page, self.settings.retain);
            self.held = self.held - before + segment.held();
            if records > 0 {
                self.queue.admit(now, self.settings.costs.record * records);
                add(&self.counters.consolidations, 1);
                add(&self.counters.consolidated, records);
            }
            // Where too many records are retained still it is looked at again.
            if segment.chain_length(page) >= self.settings.consolidate.unwrap_or(usize::MAX) {
                self.long.push((number, page));
            }
        }
        self.show_held();
    }

    fn show_held(&self) {
        self.counters.held.store(self.held, Ordering::Relaxed);
    }

    /// A connection was taken.
    pub(crate) fn count_connection(&self) {
        add(&self.counters.connections, 1);
    }
}
