//! A session: a connection to each replica.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::io::{self, ErrorKind};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use nephoscope_runtime::clock::{self, SECOND};
use nephoscope_runtime::{Address, Nanos, Runtime, Stream};

use super::Shared;
use super::tracks::Tracks;
use crate::execute::filling::randomise;
use crate::execute::layout::Layout;
use crate::execute::target::{Failure, Session};
use crate::page_store::protocol::{Frame, LONGEST_DATA, Reply, Request as Message, VERSION, frame};
use crate::requests::{Operation, Request};

/// How long a session that was dropped is still there for records on their way to slow replicas.
const FAREWELL: Nanos = 60 * SECOND;
/// How often is read until others have their turn.
const UNINTERRUPTED: u32 = 64;

/// What a replica has answered.
enum Answer {
    Done,
    Data(usize),
    Refused(String),
}

/// A connection to a replica.
pub(super) struct Link {
    stream: Stream,
    address: SocketAddr,
    last: u32,
    /// Records that the replica has not acknowledged: the message, the segment's place, the LSN.
    unacknowledged: VecDeque<(u32, usize, u64)>,
}

impl Link {
    /// Connects and greets.
    pub(super) async fn connect(
        runtime: &Runtime,
        address: SocketAddr,
        deadline: Nanos,
    ) -> Result<Self, Failure> {
        let broken = |error: io::Error| Failure::Broken(format!("{address}: {error}"));
        let stream = Stream::connect(runtime, &Address::Tcp(address), deadline).await.map_err(broken)?;
        let mut link = Self { stream, address, last: 0, unacknowledged: VecDeque::new() };
        let id = link.send(&Message::Hello { version: VERSION });
        match link.answer(id).await? {
            Answer::Refused(why) => Err(Failure::Broken(format!("{address}: {why}"))),
            Answer::Done | Answer::Data(_) => Ok(link),
        }
    }

    /// Makes a segment, empty.
    pub(super) async fn create(&mut self, segment: u32) -> Result<(), Failure> {
        let id = self.send(&Message::Create { segment });
        match self.answer(id).await? {
            Answer::Refused(why) => Err(Failure::Refused(format!("{}: {why}", self.address))),
            Answer::Done | Answer::Data(_) => Ok(()),
        }
    }

    /// Queues a message; gives its number.
    fn send(&mut self, message: &Message<'_>) -> u32 {
        self.last = self.last.wrapping_add(1);
        message.write(self.last, &mut self.stream.out);
        self.last
    }

    async fn answer(&mut self, id: u32) -> Result<Answer, Failure> {
        poll_fn(|cx| {
            loop {
                match self.poll_any(cx) {
                    Poll::Ready(Ok((found, answer))) if found == id => return Poll::Ready(Ok(answer)),
                    // 0 is the answer to what was no message.
                    Poll::Ready(Ok((0, answer @ Answer::Refused(_)))) => return Poll::Ready(Ok(answer)),
                    Poll::Ready(Ok(_)) => {}
                    Poll::Ready(Err(error)) => return Poll::Ready(Err(self.failure(&error))),
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    fn failure(&self, error: &io::Error) -> Failure {
        match error.kind() {
            ErrorKind::TimedOut => Failure::Timeout(format!("{} did not answer in time", self.address)),
            _ => Failure::Broken(format!("{}: {error}", self.address)),
        }
    }

    /// Sends what is queued, and gives the next answer.
    fn poll_any(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<(u32, Answer)>> {
        loop {
            // What has been answered is read even if not all could be sent: a server whose answers nobody takes reads
            // no more.
            if let Poll::Ready(Err(error)) = self.stream.poll_flush(cx) {
                return Poll::Ready(Err(error));
            }
            if let Some(found) = self.take()? {
                return Poll::Ready(Ok(found));
            }
            match self.stream.poll_fill(cx) {
                Poll::Ready(Ok(0)) => {
                    let closed =
                        io::Error::new(ErrorKind::UnexpectedEof, "the replica closed the connection");
                    return Poll::Ready(Err(closed));
                }
                Poll::Ready(Ok(_)) => {}
                Poll::Ready(Err(error)) => return Poll::Ready(Err(error)),
                Poll::Pending => return Poll::Pending,
            }
        }
    }

    /// Takes a whole answer from what has arrived.
    fn take(&mut self) -> io::Result<Option<(u32, Answer)>> {
        let garbage = |what| io::Error::new(ErrorKind::InvalidData, what);
        let (id, answer, size) = match frame(self.stream.inbox.bytes()).map_err(garbage)? {
            Frame::Partial(size) => {
                self.stream.inbox.expect(size);
                return Ok(None);
            }
            Frame::Whole { kind, id, fields, size } => match Reply::read(kind, fields).map_err(garbage)? {
                Reply::Data(data) => (id, Answer::Data(data.len()), size),
                Reply::Refused { text, .. } => {
                    (id, Answer::Refused(String::from_utf8_lossy(text).into_owned()), size)
                }
                Reply::Done | Reply::Welcome { .. } | Reply::Counters(_) => (id, Answer::Done, size),
            },
        };
        self.stream.inbox.consume(size);
        Ok(Some((id, answer)))
    }

    /// The record that a message carried, if it is not acknowledged yet.
    fn record(&mut self, id: u32) -> Option<(usize, u64)> {
        let at = self.unacknowledged.iter().position(|(known, ..)| *known == id)?;
        self.unacknowledged.remove(at).map(|(_, place, lsn)| (place, lsn))
    }
}

/// A session of a page store.
pub struct PageStoreSession {
    runtime: Runtime,
    /// `None` is a replica that is out.
    links: Vec<Option<Link>>,
    tracks: Arc<Tracks>,
    shared: Arc<Shared>,
    layout: Rc<Layout>,
    quorum: usize,
    /// The replica that is asked first.
    first: usize,
    /// What is written: bytes that no storage can make smaller.
    filling: Vec<u8>,
}

/// How far an append has come.
#[derive(Default)]
struct Progress {
    acknowledged: usize,
    refused: usize,
    why: Option<Failure>,
}

impl PageStoreSession {
    pub(super) fn new(
        runtime: &Runtime,
        links: Vec<Option<Link>>,
        (tracks, shared): (Arc<Tracks>, Arc<Shared>),
        layout: Rc<Layout>,
        (quorum, first): (usize, usize),
    ) -> Self {
        let runtime = runtime.clone();
        Self { runtime, links, tracks, shared, layout, quorum, first, filling: Vec::new() }
    }

    async fn append(&mut self, place: usize, request: &Request) -> Result<(), Failure> {
        let bytes = request.bytes as usize;
        if request.operation == Operation::Write && self.filling.len() < bytes {
            self.filling.resize(bytes, 0);
            randomise(&mut self.filling);
        }
        let lsn = self.tracks.next(place);
        let (segment, offset) = (request.segment, request.offset);
        let message = match request.operation {
            Operation::Write => Message::Append { segment, lsn, offset, data: &self.filling[..bytes] },
            _ => Message::Erase { segment, lsn, offset, bytes: request.bytes },
        };
        for link in self.links.iter_mut().flatten() {
            let id = link.send(&message);
            link.unacknowledged.push_back((id, place, lsn));
        }
        let mut progress = Progress::default();
        poll_fn(|cx| self.poll_append(cx, (place, lsn), &mut progress)).await
    }

    fn poll_append(
        &mut self,
        cx: &mut Context<'_>,
        record: (usize, u64),
        progress: &mut Progress,
    ) -> Poll<Result<(), Failure>> {
        for replica in 0..self.links.len() {
            if let Err(failure) = self.advance(cx, replica, record, progress) {
                return Poll::Ready(Err(failure));
            }
        }
        if progress.acknowledged >= self.quorum {
            return Poll::Ready(Ok(()));
        }
        if self.links.iter().flatten().count() - progress.refused < self.quorum {
            let none = || Failure::Broken("there is no quorum of replicas any more".to_owned());
            return Poll::Ready(Err(progress.why.take().unwrap_or_else(none)));
        }
        Poll::Pending
    }

    /// Takes what a replica has answered. Only a time limit is a failure: the others may suffice.
    fn advance(
        &mut self,
        cx: &mut Context<'_>,
        replica: usize,
        record: (usize, u64),
        progress: &mut Progress,
    ) -> Result<(), Failure> {
        for _ in 0..UNINTERRUPTED {
            let Some(link) = &mut self.links[replica] else { return Ok(()) };
            match link.poll_any(cx) {
                Poll::Pending => return Ok(()),
                Poll::Ready(Ok((id, answer))) => {
                    let Some(found) = link.record(id) else { continue };
                    match answer {
                        Answer::Refused(why) if found == record => {
                            progress.refused += 1;
                            progress.why = Some(Failure::Refused(format!("{}: {why}", link.address)));
                        }
                        Answer::Refused(_) => {}
                        Answer::Done | Answer::Data(_) => {
                            progress.acknowledged += usize::from(found == record);
                            self.tracks.acknowledge(found.0, replica, found.1);
                        }
                    }
                }
                Poll::Ready(Err(error)) => match link.failure(&error) {
                    failure @ Failure::Timeout(_) => return Err(failure),
                    failure => {
                        progress.why = Some(failure);
                        self.links[replica] = None;
                        self.shared.lose(replica);
                    }
                },
            }
        }
        cx.waker().wake_by_ref();
        Ok(())
    }

    async fn read(&mut self, place: usize, request: &Request) -> Result<(), Failure> {
        let (lsn, known) = self.tracks.read_point(place);
        let Some(replica) = self.nearest(lsn, known) else {
            return Err(Failure::Broken("no replica is left".to_owned()));
        };
        let Some(link) = &mut self.links[replica] else { return Ok(()) };
        let (segment, offset, bytes) = (request.segment, request.offset, request.bytes);
        let id = link.send(&Message::Read { segment, lsn, offset, bytes });
        let answer = self.await_read(replica, id).await?;
        match answer {
            Answer::Data(found) if found == bytes as usize => Ok(()),
            Answer::Refused(why) => Err(Failure::Refused(why)),
            Answer::Data(_) | Answer::Done => {
                Err(Failure::Broken(format!("the answer is not the {bytes} bytes that were asked for")))
            }
        }
    }

    /// Waits for a read's answer. Records that the replica acknowledges meanwhile are noted.
    async fn await_read(&mut self, replica: usize, id: u32) -> Result<Answer, Failure> {
        poll_fn(|cx| {
            loop {
                let Some(link) = &mut self.links[replica] else {
                    return Poll::Ready(Err(Failure::Broken("the replica is out".to_owned())));
                };
                match link.poll_any(cx) {
                    Poll::Ready(Ok((found, answer))) if found == id => return Poll::Ready(Ok(answer)),
                    Poll::Ready(Ok((found, answer))) => {
                        if let Some((place, lsn)) = link.record(found)
                            && !matches!(answer, Answer::Refused(_))
                        {
                            self.tracks.acknowledge(place, replica, lsn);
                        }
                    }
                    Poll::Ready(Err(error)) => {
                        let failure = link.failure(&error);
                        if matches!(failure, Failure::Broken(_)) {
                            self.links[replica] = None;
                            self.shared.lose(replica);
                        }
                        return Poll::Ready(Err(failure));
                    }
                    Poll::Pending => return Poll::Pending,
                }
            }
        })
        .await
    }

    /// The replica to read from: the first, from one of our own on, that has every record; else the one that lacks the
    /// fewest, which will answer when it has them.
    fn nearest(&self, lsn: u64, known: [u64; 3]) -> Option<usize> {
        let count = self.links.len();
        let there = |replica: &usize| self.links[*replica].is_some() && !self.shared.is_lost(*replica);
        let order = (0..count).map(|at| (self.first + at) % count).filter(there);
        let complete = order.clone().find(|replica| known[*replica] >= lsn);
        complete.or_else(|| order.max_by_key(|replica| known[*replica]))
    }
}

impl Session for PageStoreSession {
    async fn execute(&mut self, request: &Request, deadline: Nanos) -> Result<(), Failure> {
        let Some(place) = self.layout.place(request.segment) else {
            return Err(Failure::Refused(format!("there is no segment {}", request.segment)));
        };
        if request.bytes as usize > LONGEST_DATA && request.operation != Operation::Discard {
            let (bytes, most) = (request.bytes, LONGEST_DATA);
            return Err(Failure::Refused(format!("a request of {bytes} bytes; a page store takes {most}")));
        }
        for link in self.links.iter_mut().flatten() {
            link.stream.set_deadline(deadline);
        }
        match request.operation {
            Operation::Read => self.read(place, request).await,
            Operation::Write | Operation::Discard => self.append(place, request).await,
            // An append is durable when it is complete.
            Operation::Sync => Ok(()),
        }
    }
}

impl Drop for PageStoreSession {
    /// What was sent is not taken back: a replica that never gets a record could give no later page.
    fn drop(&mut self) {
        let tracks = Arc::clone(&self.tracks);
        for (replica, link) in self.links.iter_mut().enumerate() {
            let Some(mut link) = link.take().filter(|link| !link.unacknowledged.is_empty()) else { continue };
            link.stream.set_deadline(clock::now() + FAREWELL);
            let tracks = Arc::clone(&tracks);
            self.runtime.spawn(async move {
                while !link.unacknowledged.is_empty() {
                    let Ok((id, answer)) = poll_fn(|cx| link.poll_any(cx)).await else { return };
                    if let Some((place, lsn)) = link.record(id)
                        && !matches!(answer, Answer::Refused(_))
                    {
                        tracks.acknowledge(place, replica, lsn);
                    }
                }
            });
        }
    }
}
