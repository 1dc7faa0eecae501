//! A worker: a thread's share of the requests, started when they are due whether or not earlier ones have ended.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::task::Poll;

use nephoscope_runtime::clock::{self, MILLISECOND};
use nephoscope_runtime::mailbox::Receiver;
use nephoscope_runtime::{Nanos, Runtime};

use crate::execute::layout::Layout;
use crate::execute::queue::{Job, Queue};
use crate::execute::recorder::{Recorder, Shard, Times};
use crate::execute::run::Options;
use crate::execute::schedule::Schedule;
use crate::execute::target::{Failure, Session, Target};
use crate::requests::Operation;

/// What a worker is told.
pub(crate) enum Order {
    /// Begins at a point in time.
    Begin(Nanos),
    /// Ends now.
    Stop,
}

/// What a worker tells.
pub(crate) enum Report {
    /// Its sessions are connected, or one of them could not be.
    Ready(Result<(), Failure>),
    /// An interval has ended.
    Shard(Box<Shard>),
    /// It has ended: nothing more comes from it.
    Ended(usize),
}

/// What a worker is made with.
pub(crate) struct Setup<T> {
    pub(crate) number: usize,
    pub(crate) target: Arc<T>,
    pub(crate) layout: Arc<Layout>,
    pub(crate) schedule: Arc<Schedule>,
    pub(crate) options: Options,
    pub(crate) reports: Sender<Report>,
}

/// A worker's tasks share it.
struct Worker<T> {
    setup: Setup<T>,
    runtime: Runtime,
    layout: Rc<Layout>,
    queue: RefCell<Queue>,
    recorder: RefCell<Recorder>,
    /// The failure of a connect before the beginning.
    refused: RefCell<Option<Failure>>,
}

/// How long a session waits before it connects once more.
const PAUSE: Nanos = 100 * MILLISECOND;

/// Works until everything has ended, or an order says so. Tells its reader of all that happens, its end included.
pub(crate) fn work<T: Target>(setup: Setup<T>, runtime: &Runtime, mut orders: Receiver<Order>) {
    let (number, reports) = (setup.number, setup.reports.clone());
    runtime.block_on(live(setup, runtime.clone(), &mut orders));
    // What is still going on is dropped; files keep their buffers until the kernel has let go of them.
    runtime.shut_down();
    // Nobody listens any more if the execution was dropped.
    let _ = reports.send(Report::Ended(number));
}

/// What a worker does from its sessions' connecting to the last of its requests.
pub(crate) async fn live<T: Target>(setup: Setup<T>, runtime: Runtime, orders: &mut Receiver<Order>) {
    let sessions = setup.options.sessions_of(setup.number);
    let worker = Rc::new(Worker {
        layout: Rc::new((*setup.layout).clone()),
        queue: RefCell::new(Queue::new(sessions)),
        recorder: RefCell::new(Recorder::new(setup.number, 0, setup.options.interval)),
        refused: RefCell::default(),
        runtime,
        setup,
    });
    for number in 0..sessions {
        worker.runtime.spawn(Rc::clone(&worker).session(number));
    }
    let ready = worker.connected().await;
    let failed = ready.is_err();
    let _ = worker.setup.reports.send(Report::Ready(ready));
    if failed {
        return;
    }
    let Some(Order::Begin(start)) = poll_fn(|cx| orders.poll_receive(cx)).await else { return };
    let connected = worker.recorder.borrow().connected;
    *worker.recorder.borrow_mut() = Recorder::new(worker.setup.number, start, worker.setup.options.interval);
    worker.recorder.borrow_mut().connected = connected;
    worker.runtime.spawn(Rc::clone(&worker).tick());
    let at = worker.execute(start, orders).await;
    worker.finish(start, at);
}

impl<T: Target> Worker<T> {
    /// Waits for all sessions to be connected.
    async fn connected(&self) -> Result<(), Failure> {
        poll_fn(|cx| {
            if let Some(failure) = self.refused.borrow_mut().take() {
                return Poll::Ready(Err(failure));
            }
            self.queue.borrow_mut().poll_ready(cx).map(Ok)
        })
        .await
    }

    /// The life of a session.
    async fn session(self: Rc<Self>, number: usize) {
        let limit = self.setup.options.connect;
        let mut session = None;
        loop {
            let mut connected = match session.take() {
                Some(session) => session,
                None => {
                    let deadline = clock::now() + limit;
                    match self.setup.target.connect(&self.runtime, &self.layout, deadline).await {
                        Ok(session) => {
                            self.recorder.borrow_mut().connected += 1;
                            session
                        }
                        Err(failure) => {
                            self.recorder.borrow_mut().shard.refused += 1;
                            *self.refused.borrow_mut() = Some(failure);
                            self.queue.borrow_mut().leave(number);
                            self.runtime.sleep_until(clock::now() + PAUSE).await;
                            continue;
                        }
                    }
                }
            };
            self.queue.borrow_mut().rest(number);
            let job = poll_fn(|cx| self.queue.borrow_mut().poll_given(number, cx)).await;
            if self.one(&mut connected, job).await {
                session = Some(connected);
            } else {
                let mut recorder = self.recorder.borrow_mut();
                recorder.connected -= 1;
                recorder.shard.lost += 1;
                self.queue.borrow_mut().leave(number);
            }
        }
    }

    /// Executes a request; `false` if the session can be used no more.
    async fn one(&self, session: &mut T::Session, job: Job) -> bool {
        let start = clock::now();
        let outcome = session.execute(&job.request, start + self.setup.options.timeout).await;
        let end = clock::now();
        let usable = !matches!(outcome, Err(Failure::Broken(_) | Failure::Timeout(_)));
        self.roll(end);
        let times = Times { intended: job.intended, start, end };
        self.recorder.borrow_mut().ended(job.request.operation, times, outcome);
        usable
    }

    /// Ends the intervals that have passed, also while nothing happens.
    async fn tick(self: Rc<Self>) {
        loop {
            let until = self.recorder.borrow().until();
            self.runtime.sleep_until(until).await;
            self.roll(clock::now());
        }
    }

    fn roll(&self, now: Nanos) {
        let mut recorder = self.recorder.borrow_mut();
        while now >= recorder.until() {
            let until = recorder.until();
            let shard = recorder.roll(until);
            let _ = self.setup.reports.send(Report::Shard(Box::new(shard)));
        }
    }

    /// Starts the requests and waits for their ends, until an order or the last moment. Gives the number of the first
    /// request that was not started.
    async fn execute(&self, start: Nanos, orders: &mut Receiver<Order>) -> usize {
        let next = Cell::new(self.setup.number);
        let latest = start + self.setup.schedule.last() + self.setup.options.drain;
        let mut over = pin!(self.runtime.sleep_until(latest));
        let mut dispatched = pin!(self.dispatch(start, &next));
        let mut all_due = false;
        poll_fn(|cx| {
            if over.as_mut().poll(cx).is_ready() || orders.poll_receive(cx).is_ready() {
                return Poll::Ready(());
            }
            all_due = all_due || dispatched.as_mut().poll(cx).is_ready();
            if all_due { self.queue.borrow_mut().poll_drained(cx) } else { Poll::Pending }
        })
        .await;
        next.get()
    }

    /// Gives each request to a session when it is due, and later if none is idle.
    async fn dispatch(&self, start: Nanos, next: &Cell<usize>) {
        let (schedule, options) = (&self.setup.schedule, &self.setup.options);
        // Until when the last wait for a session lasted.
        let mut held_until = 0;
        let mut now = clock::now();
        loop {
            let at = next.get();
            if at >= schedule.len() {
                return;
            }
            let intended = start + schedule.intended(at);
            if intended > now {
                self.runtime.sleep_until(intended).await;
                now = clock::now();
            }
            let mut idle = false;
            poll_fn(|cx| {
                let polled = self.queue.borrow_mut().poll_idle(cx);
                idle = idle || polled.is_pending();
                polled
            })
            .await;
            if idle {
                now = clock::now();
                held_until = now;
            }
            next.set(at + options.workers);
            let request = schedule.requests().get(at);
            let mut recorder = self.recorder.borrow_mut();
            recorder.shard.arrivals += 1;
            recorder.shard.waited += u64::from(intended < held_until);
            let late = now.saturating_sub(intended);
            if late > options.give_up {
                recorder.shard.dropped += 1;
                recorder.censored(request.operation, late, false);
            } else {
                recorder.shard.started += 1;
                drop(recorder);
                self.queue.borrow_mut().give(Job { request, intended });
            }
        }
    }

    /// Counts what has not started, though due, and what has not ended.
    fn finish(&self, start: Nanos, first_unstarted: usize) {
        let now = clock::now().max(start);
        self.roll(now);
        let schedule = &self.setup.schedule;
        let mut recorder = self.recorder.borrow_mut();
        for at in (first_unstarted..schedule.len()).step_by(self.setup.options.workers) {
            let intended = start + schedule.intended(at);
            if intended > now {
                break;
            }
            recorder.shard.arrivals += 1;
            let operation = Operation::ALL[usize::from(schedule.requests().operation[at])];
            recorder.censored(operation, now - intended, false);
        }
        for job in self.queue.borrow().in_flight() {
            recorder.shard.in_flight += 1;
            recorder.censored(job.request.operation, now.saturating_sub(job.intended), true);
        }
        let shard = recorder.roll(now);
        let _ = self.setup.reports.send(Report::Shard(Box::new(shard)));
    }
}
