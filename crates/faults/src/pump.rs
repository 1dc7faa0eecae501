//! One direction of one connection: what is read, when it is due, and how it leaves.

use std::collections::VecDeque;
use std::task::{Context, Poll};

use nephoscope_runtime::clock::{self, SECOND};
use nephoscope_runtime::{Nanos, Stream};

use crate::faults::{Channel, Direction, Garbage};
use crate::law::Random;
use crate::record::Record;
use crate::tap::Tapped;

/// How many bytes may wait in one direction of one connection, give or take one read; then nothing more is read, and
/// the sender has to wait.
pub const BUFFER: usize = 1 << 20;

/// So often is a direction served in a row; then the other connections have their turn.
const ROUNDS: usize = 16;
/// A limited rate delivers so many pieces a second, if they are of a byte or more.
const PIECES: u64 = 100;

/// Bytes, and when they may leave.
struct Piece {
    due: Nanos,
    bytes: Vec<u8>,
}

/// What comes after the last byte.
#[derive(Clone, Copy)]
enum End {
    /// The sender has ended its direction.
    Fin,
    /// The sender has reset the connection, or is gone.
    Reset,
    /// The proxy cuts the connection here.
    Cut,
}

/// The sender.
#[derive(Clone, Copy, PartialEq)]
enum Source {
    Open,
    /// It is known to be gone, whatever can still be read.
    Broken,
    /// There is nothing more to be read.
    Ended,
}

/// What a direction means for its connection.
pub(crate) enum Verdict {
    /// It goes on, and wants to be called again at this time at the latest.
    Stands(Option<Nanos>),
    /// The receiver is gone: what the other direction reads from it next is its last.
    Broken,
    /// The receiver is to be reset.
    Reset,
    /// Both sides are to be cut.
    Cut,
}

pub(crate) struct Pump {
    direction: Direction,
    random: Random,
    queue: VecDeque<Piece>,
    /// Bytes in `queue`.
    queued: usize,
    /// When the last in the queue is due: what comes later is due no earlier.
    last_due: Nanos,
    /// When the line of a limited rate has sent what was given to it.
    line_free: Nanos,
    /// The receiver takes no more for now.
    blocked: bool,
    /// Bytes that went into the queue, and at how many the stream is to be cut or to get its garbage.
    passed: u64,
    cut_at: Option<u64>,
    garbage_at: Option<u64>,
    /// What these were made from.
    cut_after: Option<u64>,
    garbage: Option<Garbage>,
    source: Source,
    end: Option<(Nanos, End)>,
    /// The receiver was told the end, or is gone: what is still read is thrown away.
    over: bool,
}

impl Pump {
    pub(crate) fn new(direction: Direction, random: Random) -> Self {
        Self {
            direction,
            random,
            queue: VecDeque::new(),
            queued: 0,
            last_due: 0,
            line_free: 0,
            blocked: false,
            passed: 0,
            cut_at: None,
            garbage_at: None,
            cut_after: None,
            garbage: None,
            source: Source::Open,
            end: None,
            over: false,
        }
    }

    pub(crate) fn is_over(&self) -> bool {
        self.over
    }

    /// The sender is gone: if it seems to have ended its direction, it has not.
    pub(crate) fn source_is_broken(&mut self) {
        if self.source == Source::Open {
            self.source = Source::Broken;
        }
    }

    /// The faults have changed: bytes are counted anew where a count has, and what time was lost is not made up for.
    pub(crate) fn observe(&mut self, channel: &Channel) {
        self.line_free = clock::now();
        if self.cut_after != channel.cut_after {
            self.cut_after = channel.cut_after;
            self.cut_at = channel.cut_after.map(|count| self.passed.saturating_add(count));
        }
        if self.garbage != channel.garbage_after {
            self.garbage.clone_from(&channel.garbage_after);
            self.garbage_at = self.garbage.as_ref().map(|garbage| self.passed.saturating_add(garbage.after));
        }
        if self.end.is_none() {
            self.pass(&[], clock::now().max(self.last_due));
        }
    }

    /// Puts bytes of the proxy's own behind those that wait.
    pub(crate) fn inject(&mut self, bytes: &[u8]) {
        if self.end.is_none() && !self.over {
            self.push(bytes, self.last_due);
        }
    }

    /// Ends the direction where it is: the receiver is told, and what waits is lost.
    pub(crate) fn close(&mut self, cx: &mut Context<'_>, to: &mut Stream) {
        to.out.clear();
        // An error is that the receiver is gone, which is an end as well.
        let _ = to.poll_shutdown(cx);
        self.give_up();
    }

    /// Reads and delivers what can be.
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        channel: &Channel,
        from: &mut Stream,
        to: &mut Stream,
        record: &Record,
        tapped: Option<&Tapped>,
    ) -> Verdict {
        for _ in 0..ROUNDS {
            let full = self.queued >= BUFFER;
            let read = !full && self.read(cx, channel, from, record, tapped);
            let verdict =
                if self.over { Verdict::Stands(None) } else { self.deliver(cx, channel, to, record) };
            let more = read || full && self.queued < BUFFER;
            if !more || !matches!(verdict, Verdict::Stands(_)) {
                return verdict;
            }
        }
        cx.waker().wake_by_ref();
        Verdict::Stands(None)
    }

    /// Reads once; says whether there may be more.
    fn read(
        &mut self,
        cx: &mut Context<'_>,
        channel: &Channel,
        from: &mut Stream,
        record: &Record,
        tapped: Option<&Tapped>,
    ) -> bool {
        let cut_is_near = matches!(self.end, Some((_, End::Cut)));
        if self.source == Source::Ended || cut_is_near {
            return false;
        }
        // What the client said while its connection was held is there already.
        let read = match from.inbox.bytes().len() {
            0 => match from.poll_fill(cx) {
                Poll::Ready(read) => read,
                Poll::Pending => return false,
            },
            held => Ok(held),
        };
        let delay = channel.delay.map_or(0, |law| law.draw(&mut self.random));
        let due = self.last_due.max(clock::now() + delay);
        match read {
            Ok(0) | Err(_) => {
                let reset = read.is_err() || self.source == Source::Broken;
                self.source = Source::Ended;
                self.end = Some((due, if reset { End::Reset } else { End::Fin }));
                false
            }
            Ok(count) => {
                record.add_received(self.direction, count);
                if let Some(tapped) = tapped {
                    tapped.passed(self.direction, clock::now(), from.inbox.bytes());
                }
                if !self.over && !channel.black_hole {
                    self.pass(from.inbox.bytes(), due);
                }
                from.inbox.clear();
                true
            }
        }
    }

    /// Queues bytes, with garbage between them and up to the cut, where these are due.
    fn pass(&mut self, mut bytes: &[u8], due: Nanos) {
        loop {
            let next = self.cut_at.unwrap_or(u64::MAX).min(self.garbage_at.unwrap_or(u64::MAX));
            let (now, later) = bytes
                .split_at(bytes.len().min(next.saturating_sub(self.passed).try_into().unwrap_or(usize::MAX)));
            self.push(now, due);
            self.passed += now.len() as u64;
            if self.garbage_at.is_some_and(|at| at <= self.passed) {
                self.garbage_at = None;
                let garbage = self.garbage.as_ref().map_or_else(Vec::new, |garbage| garbage.bytes.clone());
                self.push(&garbage, due);
            }
            if self.cut_at.is_some_and(|at| at <= self.passed) {
                self.end = Some((due, End::Cut));
                return;
            }
            if later.is_empty() {
                return;
            }
            bytes = later;
        }
    }

    fn push(&mut self, bytes: &[u8], due: Nanos) {
        if !bytes.is_empty() {
            self.last_due = due;
            self.queued += bytes.len();
            self.queue.push_back(Piece { due, bytes: bytes.to_vec() });
        }
    }

    /// Delivers what is due, and the end behind it.
    fn deliver(
        &mut self,
        cx: &mut Context<'_>,
        channel: &Channel,
        to: &mut Stream,
        record: &Record,
    ) -> Verdict {
        loop {
            let waiting = to.out.len();
            let flushed = to.poll_flush(cx);
            record.add_delivered(self.direction, waiting - to.out.len());
            match flushed {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(_)) => {
                    self.give_up();
                    return Verdict::Broken;
                }
                Poll::Pending => {
                    self.blocked = true;
                    return Verdict::Stands(None);
                }
            }
            let now = clock::now();
            if std::mem::take(&mut self.blocked) {
                // A receiver that is slow itself is not made up for.
                self.line_free = now;
            }
            if channel.hold {
                return Verdict::Stands(None);
            }
            match self.hand_over(channel, to, now) {
                Some(0) => {}
                Some(later) => return Verdict::Stands(Some(later)),
                None => return self.deliver_end(cx, channel, to, now),
            }
        }
    }

    /// Hands the next bytes to the receiver's socket: 0 if it could, else the time at which it can; nothing if there
    /// are none.
    fn hand_over(&mut self, channel: &Channel, to: &mut Stream, now: Nanos) -> Option<Nanos> {
        let piece = self.queue.front_mut()?;
        if piece.due > now {
            return Some(piece.due);
        }
        let Some(rate) = channel.rate else {
            self.queued -= piece.bytes.len();
            to.out = self.queue.pop_front()?.bytes;
            return Some(0);
        };
        // Bytes arrive when the line has sent the last of them, and it begins when it is free and they are there.
        let count = usize::try_from((rate.get() / PIECES).max(1))
            .map_or(piece.bytes.len(), |most| most.min(piece.bytes.len()));
        let length = (u128::from(SECOND) * count as u128).div_ceil(u128::from(rate.get())) as Nanos;
        let arrival = self.line_free.max(piece.due) + length;
        if arrival > now {
            return Some(arrival);
        }
        self.line_free = arrival;
        self.queued -= count;
        to.out.extend(piece.bytes.drain(..count));
        if piece.bytes.is_empty() {
            self.queue.pop_front();
        }
        Some(0)
    }

    fn deliver_end(
        &mut self,
        cx: &mut Context<'_>,
        channel: &Channel,
        to: &mut Stream,
        now: Nanos,
    ) -> Verdict {
        match self.end {
            Some((_, End::Cut)) => Verdict::Cut,
            None => Verdict::Stands(None),
            Some(_) if channel.black_hole => Verdict::Stands(None),
            Some((due, _)) if due > now => Verdict::Stands(Some(due)),
            Some((_, End::Reset)) => Verdict::Reset,
            Some((_, End::Fin)) => {
                self.close(cx, to);
                Verdict::Stands(None)
            }
        }
    }

    fn give_up(&mut self) {
        self.over = true;
        self.queue.clear();
        self.queued = 0;
    }
}
