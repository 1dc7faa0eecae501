//! A worker's sessions, and what they are to execute next.

use std::task::{Context, Poll, Waker};

use nephoscope_runtime::Nanos;

use crate::requests::Request;

/// A request with the point in time at which it is to start.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Job {
    pub(crate) request: Request,
    pub(crate) intended: Nanos,
}

#[derive(Clone, Copy, Debug)]
enum Seat {
    /// Connecting.
    Away,
    Idle,
    /// A request is to be executed.
    Given(Job),
    /// A request is executed.
    Busy(Job),
}

/// The sessions of a worker: each executes one request at a time.
pub(crate) struct Queue {
    seats: Vec<(Seat, Option<Waker>)>,
    idle: Vec<usize>,
    /// Who waits for a session to be idle, or for all to be.
    waiting: Option<Waker>,
}

impl Queue {
    /// So many sessions, all of which have yet to connect.
    pub(crate) fn new(sessions: usize) -> Self {
        let seats = (0..sessions).map(|_| (Seat::Away, None)).collect();
        Self { seats, idle: Vec::with_capacity(sessions), waiting: None }
    }

    /// A session waits for work.
    pub(crate) fn rest(&mut self, number: usize) {
        self.seats[number].0 = Seat::Idle;
        self.idle.push(number);
        self.wake();
    }

    /// A session has to connect anew.
    pub(crate) fn leave(&mut self, number: usize) {
        self.seats[number].0 = Seat::Away;
        self.wake();
    }

    fn wake(&mut self) {
        if let Some(waker) = self.waiting.take() {
            waker.wake();
        }
    }

    /// Gives an idle session a request, if there is one.
    pub(crate) fn give(&mut self, job: Job) -> bool {
        let Some(number) = self.idle.pop() else { return false };
        let (seat, waker) = &mut self.seats[number];
        *seat = Seat::Given(job);
        if let Some(waker) = waker.take() {
            waker.wake();
        }
        true
    }

    /// What a session is to execute.
    pub(crate) fn poll_given(&mut self, number: usize, cx: &Context<'_>) -> Poll<Job> {
        let (seat, waker) = &mut self.seats[number];
        if let Seat::Given(job) = *seat {
            *seat = Seat::Busy(job);
            return Poll::Ready(job);
        }
        *waker = Some(cx.waker().clone());
        Poll::Pending
    }

    /// Completes when a session is idle.
    pub(crate) fn poll_idle(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.poll(cx, !self.idle.is_empty())
    }

    /// Completes when no request is executed.
    pub(crate) fn poll_drained(&mut self, cx: &Context<'_>) -> Poll<()> {
        let drained = self.in_flight().next().is_none();
        self.poll(cx, drained)
    }

    /// Completes when every session is idle.
    pub(crate) fn poll_ready(&mut self, cx: &Context<'_>) -> Poll<()> {
        self.poll(cx, self.idle.len() == self.seats.len())
    }

    fn poll(&mut self, cx: &Context<'_>, ready: bool) -> Poll<()> {
        if ready {
            return Poll::Ready(());
        }
        self.waiting = Some(cx.waker().clone());
        Poll::Pending
    }

    /// What is executed at present.
    pub(crate) fn in_flight(&self) -> impl Iterator<Item = Job> {
        self.seats.iter().filter_map(|(seat, _)| match seat {
            Seat::Given(job) | Seat::Busy(job) => Some(*job),
            Seat::Away | Seat::Idle => None,
        })
    }
}
