//! The executor: tasks on one thread, run in the order in which they were woken.

use std::cell::{Cell, RefCell, RefMut};
use std::collections::VecDeque;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::OwnedFd;
use slab::Slab;

use crate::clock::{self, Nanos};
use crate::punctual::{Punctual, Wait};
use crate::reactor::{Io, Reactor};
use crate::timer::{Sleep, Timers};

thread_local! {
    /// Which runtime this thread is running (0: none) and which of its tasks are to be polled. The queue lies
    /// here so that a [`Waker`], which must be `Send`, can reach it without a lock when it wakes from the
    /// runtime's own thread, as it almost always does.
    static RUNNING: Cell<u64> = const { Cell::new(0) };
    static READY: RefCell<VecDeque<usize>> = const { RefCell::new(VecDeque::new()) };
}

/// The index of the future given to [`Runtime::block_on`].
const MAIN: usize = usize::MAX;

/// What other threads can reach.
struct Remote {
    woken: Mutex<Vec<usize>>,
    eventfd: OwnedFd,
    /// When the present turn of the loop began.
    turn: AtomicU64,
}

/// What another thread sees of a runtime's progress.
#[derive(Clone)]
pub struct Turns(Arc<Remote>);

impl Turns {
    /// When the present turn of the loop began. A turn ends with the wait for sockets and timers.
    #[must_use]
    pub fn began(&self) -> Nanos {
        self.0.turn.load(Ordering::Relaxed)
    }
}

struct TaskWaker {
    runtime: u64,
    index: usize,
    /// Set from the wake to the poll, so that a task is queued once however often it is woken.
    queued: Cell<bool>,
    remote: Arc<Remote>,
}

// SAFETY: `queued` is the only field that is not `Sync`, and it is touched only on the thread that runs the
// runtime (`wake_by_ref` compares the thread's running runtime first). A runtime's number is never used twice.
unsafe impl Sync for TaskWaker {}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        if RUNNING.get() == self.runtime {
            if !self.queued.replace(true) {
                READY.with_borrow_mut(|ready| ready.push_back(self.index));
            }
        } else {
            self.remote.woken.lock().unwrap_or_else(PoisonError::into_inner).push(self.index);
            // A write fails only where the counter is full, and then the eventfd is readable already.
            let _ = rustix::io::write(&self.remote.eventfd, &1u64.to_ne_bytes());
        }
    }
}

struct Body {
    future: Pin<Box<dyn Future<Output = ()>>>,
    waker: Waker,
}

struct Task {
    /// `None` while it is being polled.
    body: Option<Body>,
    header: Arc<TaskWaker>,
}

struct Inner {
    number: u64,
    tasks: RefCell<Slab<Task>>,
    /// What `READY` held when this runtime last ran.
    ready: RefCell<VecDeque<usize>>,
    timers: RefCell<Timers>,
    punctual: RefCell<Punctual>,
    io: Io,
    reactor: RefCell<Reactor>,
    remote: Arc<Remote>,
}

/// A handle to one thread's runtime. Clones are the same runtime; it cannot leave its thread.
#[derive(Clone)]
pub struct Runtime(Rc<Inner>);

impl Runtime {
    /// A runtime that waits by epoll and timerfd.
    pub fn new() -> io::Result<Self> {
        Self::with_io(Io::Epoll)
    }

    /// A runtime that waits as asked for. Fails where the kernel does not know or allow that.
    pub fn with_io(io: Io) -> io::Result<Self> {
        static NUMBERS: AtomicU64 = AtomicU64::new(1);
        let eventfd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
        let reactor = Reactor::new(io, &eventfd)?;
        let now = clock::now();
        Ok(Self(Rc::new(Inner {
            number: NUMBERS.fetch_add(1, Ordering::Relaxed),
            tasks: RefCell::default(),
            ready: RefCell::default(),
            timers: RefCell::default(),
            punctual: RefCell::new(Punctual::new(now)),
            io,
            reactor: RefCell::new(reactor),
            remote: Arc::new(Remote { woken: Mutex::default(), eventfd, turn: AtomicU64::new(now) }),
        })))
    }

    fn header(&self, index: usize) -> Arc<TaskWaker> {
        Arc::new(TaskWaker {
            runtime: self.0.number,
            index,
            queued: Cell::new(false),
            remote: Arc::clone(&self.0.remote),
        })
    }

    /// Adds a task. It runs within [`Runtime::block_on`], after the tasks that are already to be polled.
    pub fn spawn(&self, future: impl Future<Output = ()> + 'static) {
        let waker = {
            let mut tasks = self.0.tasks.borrow_mut();
            let entry = tasks.vacant_entry();
            let header = self.header(entry.key());
            let waker = Waker::from(Arc::clone(&header));
            entry
                .insert(Task { body: Some(Body { future: Box::pin(future), waker: waker.clone() }), header });
            waker
        };
        waker.wake();
    }

    /// Runs the tasks, and `future` beside them, until `future` is complete. Unfinished tasks go on in the next
    /// call.
    ///
    /// # Panics
    /// If called from within a task.
    pub fn block_on<F: Future>(&self, future: F) -> F::Output {
        let _running = Running::enter(&self.0);
        let future = pin!(future);
        let mut main = Main::new(self, future);
        loop {
            self.collect_remote(&main.header);
            if let Poll::Ready(output) = self.poll_ready(&mut main) {
                // What was sent leaves, even if nobody turns this runtime for a while.
                self.reactor().hand_over();
                return output;
            }
            self.turn();
        }
    }

    /// Polls only what is ready now, so that tasks which wake each other leave room for sockets and timers.
    #[inline]
    fn poll_ready<F: Future + ?Sized>(&self, main: &mut Main<'_, F>) -> Poll<F::Output> {
        let batch = READY.with_borrow(VecDeque::len);
        for _ in 0..batch {
            match READY.with_borrow_mut(VecDeque::pop_front) {
                Some(MAIN) => {
                    main.header.queued.set(false);
                    let polled = main.future.as_mut().poll(&mut Context::from_waker(&main.waker));
                    if polled.is_ready() {
                        return polled;
                    }
                }
                Some(index) => self.poll_task(index),
                None => break,
            }
        }
        Poll::Pending
    }

    /// As [`Runtime::block_on`] up to where it would wait: pending when nothing is ready and no timer is due. Nobody
    /// looks at sockets. For a [`crate::Simulation`] of time, which is to go on to [`Runtime::next_timer`].
    ///
    /// # Panics
    /// If called from within a task, or if tasks wake each other for ever while time stands still.
    #[cfg(feature = "simulated-time")]
    pub fn run_until_idle<F: Future + ?Sized>(&self, future: Pin<&mut F>) -> Poll<F::Output> {
        const ENDLESS: u32 = 1_000_000;
        let _running = Running::enter(&self.0);
        let mut main = Main::new(self, future);
        for _ in 0..ENDLESS {
            self.queue_woken(&main.header);
            let now = clock::now();
            self.0.remote.turn.store(now, Ordering::Relaxed);
            self.timers().fire(now);
            if READY.with_borrow(VecDeque::is_empty) {
                return Poll::Pending;
            }
            if let Poll::Ready(output) = self.poll_ready(&mut main) {
                return Poll::Ready(output);
            }
        }
        panic!("tasks wake each other for ever, and time stands still");
    }

    /// The next deadline that a task waits for.
    #[cfg(feature = "simulated-time")]
    #[must_use]
    pub fn next_timer(&self) -> Option<Nanos> {
        self.timers().next()
    }

    fn poll_task(&self, index: usize) {
        let Some(mut body) = self.0.tasks.borrow_mut().get_mut(index).and_then(|task| {
            task.header.queued.set(false);
            task.body.take()
        }) else {
            return;
        };
        let finished = body.future.as_mut().poll(&mut Context::from_waker(&body.waker)).is_ready();
        let mut tasks = self.0.tasks.borrow_mut();
        if finished {
            tasks.remove(index);
            drop(tasks);
            // Dropped outside the borrow: what it owns may well reach for the runtime.
            drop(body);
        } else if let Some(task) = tasks.get_mut(index) {
            task.body = Some(body);
        }
    }

    /// Fires the timers that are due and waits for sockets: not at all while tasks are ready, else until shortly before
    /// the next timer.
    fn turn(&self) {
        let now = clock::now();
        self.0.remote.turn.store(now, Ordering::Relaxed);
        let mut punctual = self.0.punctual.borrow_mut();
        punctual.begin(now);
        let next = {
            let mut timers = self.timers();
            timers.fire(now);
            timers.next()
        };
        let idle = READY.with_borrow(VecDeque::is_empty);
        let (idle, until) = match next {
            Some(next) if idle => match punctual.wait(now, next) {
                Wait::Awake => (false, None),
                Wait::Until(until) => (true, Some(until)),
            },
            _ => (idle, None),
        };
        self.0.reactor.borrow_mut().turn(now, idle, until);
    }

    fn collect_remote(&self, main: &TaskWaker) {
        if !self.0.reactor.borrow_mut().take_signal() {
            return;
        }
        let _ = rustix::io::read(&self.0.remote.eventfd, &mut [0; 8]);
        self.queue_woken(main);
    }

    /// Queues what others than this runtime's own tasks have woken.
    fn queue_woken(&self, main: &TaskWaker) {
        let woken = std::mem::take(&mut *self.0.remote.woken.lock().unwrap_or_else(PoisonError::into_inner));
        let tasks = self.0.tasks.borrow();
        READY.with_borrow_mut(|ready| {
            for index in woken {
                let header =
                    if index == MAIN { Some(main) } else { tasks.get(index).map(|task| &*task.header) };
                if let Some(header) = header
                    && !header.queued.replace(true)
                {
                    ready.push_back(index);
                }
            }
        });
    }

    /// Completes at `deadline` on the monotonic clock, at once if that has passed. As precise as the kernel's
    /// high-resolution timers.
    #[must_use]
    pub fn sleep_until(&self, deadline: Nanos) -> Sleep {
        Sleep::new(self.clone(), deadline)
    }

    /// Spends no time awake on timers that are nearly due: they fire some tens of microseconds late, and cost nothing.
    pub fn let_timers_be_late(&self) {
        self.0.punctual.borrow_mut().wanted = false;
    }

    /// Why nothing can be sent or received any more, if io_uring has failed for good; timers and messages still come.
    #[must_use]
    pub fn failure(&self) -> Option<std::io::Error> {
        self.reactor().failure()
    }

    /// When the present turn of the loop began. Costs nothing to read; good enough for deadlines.
    #[must_use]
    pub fn turn_began(&self) -> Nanos {
        self.0.remote.turn.load(Ordering::Relaxed)
    }

    /// The runtime's progress, for another thread to see.
    #[must_use]
    pub fn turns(&self) -> Turns {
        Turns(Arc::clone(&self.0.remote))
    }

    /// Drops every task that has not finished. To be called outside [`Runtime::block_on`]; without it tasks that
    /// hold the runtime would keep it, and it them.
    pub fn shut_down(&self) {
        loop {
            let tasks = std::mem::take(&mut *self.0.tasks.borrow_mut());
            if tasks.is_empty() {
                return;
            }
            // Dropped outside the borrow: what a task owns may well reach for the runtime.
            drop(tasks);
        }
    }

    /// How many tasks have not finished.
    #[must_use]
    pub fn tasks(&self) -> usize {
        self.0.tasks.borrow().len()
    }

    pub(crate) fn timers(&self) -> RefMut<'_, Timers> {
        self.0.timers.borrow_mut()
    }

    /// How it waits.
    #[must_use]
    pub fn io(&self) -> Io {
        self.0.io
    }

    pub(crate) fn reactor(&self) -> RefMut<'_, Reactor> {
        self.0.reactor.borrow_mut()
    }
}

/// The future that a runtime is run for.
struct Main<'a, F: ?Sized> {
    future: Pin<&'a mut F>,
    header: Arc<TaskWaker>,
    waker: Waker,
}

impl<'a, F: Future + ?Sized> Main<'a, F> {
    /// It is to be polled.
    fn new(runtime: &Runtime, future: Pin<&'a mut F>) -> Self {
        let header = runtime.header(MAIN);
        let waker = Waker::from(Arc::clone(&header));
        waker.wake_by_ref();
        Self { future, header, waker }
    }
}

/// Marks the thread as running a runtime, for as long as it lives.
struct Running<'a>(&'a Inner);

impl<'a> Running<'a> {
    fn enter(runtime: &'a Inner) -> Self {
        assert_eq!(RUNNING.get(), 0, "a runtime cannot be started from within a task");
        RUNNING.set(runtime.number);
        READY.with_borrow_mut(|ready| ready.append(&mut runtime.ready.borrow_mut()));
        Self(runtime)
    }
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        RUNNING.set(0);
        READY.with_borrow_mut(|ready| {
            ready.retain(|index| *index != MAIN);
            self.0.ready.borrow_mut().append(ready);
        });
    }
}

/// Lets the other tasks, the sockets and the timers have their turn, once.
#[derive(Default)]
pub struct Yield(bool);

impl Future for Yield {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        if std::mem::replace(&mut self.0, true) {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}
