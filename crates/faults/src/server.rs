//! The proxy's thread: it takes connections, does what it is told, and keeps to its schedule.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::{Future as _, poll_fn};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::Sender;
use std::task::{Context, Poll};

use nephoscope_runtime::clock::{self, MILLISECOND};
use nephoscope_runtime::mailbox::Receiver;
use nephoscope_runtime::{Address, Listener, Nanos, Runtime, Sleep};
use slab::Slab;

use crate::faults::{Accept, Direction, Faults, Planned};
use crate::link::{Handle, Order, serve};
use crate::port::Port;
use crate::record::{Event, Record, What};
use crate::tap::Tap;

/// So many connections are taken in a row; then those that stand have their turn.
const TAKEN_AT_ONCE: usize = 64;
/// How long nothing is taken after that has failed: the process has no descriptor left.
const PAUSE: Nanos = 10 * MILLISECOND;

/// What the proxy is told to do.
pub(crate) enum Action {
    Set(Faults),
    Change(Box<dyn FnOnce(&mut Faults) + Send>),
    Schedule(Vec<Planned>),
    Target { address: Address, cut: bool },
    Hold(bool),
    Cut,
    Reset,
    HalfClose(Direction),
    Inject(Direction, Vec<u8>),
}

/// An action, and where the time goes at which it took effect.
pub(crate) struct Command {
    pub(crate) action: Action,
    pub(crate) done: Sender<io::Result<Nanos>>,
}

/// What the connections know of the proxy.
pub(crate) struct Shared {
    pub(crate) runtime: Runtime,
    pub(crate) faults: RefCell<Rc<Faults>>,
    /// How often the faults have changed.
    pub(crate) changes: Cell<u64>,
    pub(crate) target: RefCell<Address>,
    /// Whether connections that would be passed on have to wait.
    pub(crate) holds: Cell<bool>,
    pub(crate) handles: RefCell<Slab<Rc<Handle>>>,
    pub(crate) record: Arc<Record>,
    pub(crate) tap: Option<Rc<RefCell<Box<dyn Tap>>>>,
}

pub(crate) struct Server {
    shared: Rc<Shared>,
    port: Port,
    listener: Option<Listener>,
    commands: Receiver<Command>,
    schedule: VecDeque<Planned>,
    /// Until the next of the schedule, and until connections are taken again.
    sleep: Option<(Nanos, Sleep)>,
    pause: Option<Sleep>,
    taken: u64,
}

impl Server {
    pub(crate) fn new(
        runtime: &Runtime,
        port: Port,
        target: Address,
        commands: Receiver<Command>,
        record: Arc<Record>,
        tap: Option<Box<dyn Tap>>,
    ) -> io::Result<Self> {
        let listener = Some(Listener::bind(runtime, port.address)?);
        let shared = Rc::new(Shared {
            runtime: runtime.clone(),
            faults: RefCell::default(),
            changes: Cell::new(0),
            target: RefCell::new(target),
            holds: Cell::new(false),
            handles: RefCell::default(),
            record,
            tap: tap.map(|tap| Rc::new(RefCell::new(tap))),
        });
        let schedule = VecDeque::new();
        Ok(Self { shared, port, listener, commands, schedule, sleep: None, pause: None, taken: 0 })
    }

    /// Works until nobody is left who could tell it anything.
    pub(crate) async fn run(mut self) {
        poll_fn(|cx| self.poll(cx)).await;
    }

    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        loop {
            match self.commands.poll_receive(cx) {
                Poll::Ready(Some(Command { action, done })) => {
                    // Nobody has to wait for the answer.
                    let _ = done.send(self.act(action));
                }
                Poll::Ready(None) => return Poll::Ready(()),
                Poll::Pending => break,
            }
        }
        self.keep_to_schedule(cx);
        self.take_connections(cx);
        Poll::Pending
    }

    // ---- actions ---------------------------------------------------------------------------------------------

    fn act(&mut self, action: Action) -> io::Result<Nanos> {
        match action {
            Action::Set(faults) => return self.apply(faults, None),
            Action::Change(change) => {
                let mut faults = Faults::clone(&self.shared.faults.borrow());
                change(&mut faults);
                return self.apply(faults, None);
            }
            Action::Schedule(mut plan) => {
                for planned in &plan {
                    check(&planned.faults)?;
                }
                plan.sort_by_key(|planned| planned.at);
                self.schedule = plan.into();
                return Ok(clock::now());
            }
            Action::Target { address, cut } => {
                let name = match &address {
                    Address::Tcp(address) => address.to_string(),
                    Address::Unix(path) => path.display().to_string(),
                };
                self.shared.target.replace(address);
                let at = self.note(What::Target { address: name });
                if cut {
                    self.order(&Order::Cut);
                    self.note(What::Cut);
                }
                return Ok(at);
            }
            Action::Hold(holds) => {
                self.shared.holds.set(holds);
                self.wake_all();
                return Ok(self.note(What::Hold { holds }));
            }
            Action::Cut => self.order(&Order::Cut),
            Action::Reset => self.order(&Order::Reset),
            Action::HalfClose(direction) => self.order(&Order::HalfClose(direction)),
            Action::Inject(direction, ref bytes) => {
                self.order(&Order::Inject(direction, bytes.as_slice().into()));
            }
        }
        Ok(self.note(match action {
            Action::Reset => What::Reset,
            Action::HalfClose(direction) => What::HalfClose { direction },
            Action::Inject(direction, bytes) => What::Inject { direction, bytes: bytes.len() },
            _ => What::Cut,
        }))
    }

    fn order(&self, order: &Order) {
        for (_, handle) in &*self.shared.handles.borrow() {
            handle.give(order.clone());
        }
    }

    fn wake_all(&self) {
        for (_, handle) in &*self.shared.handles.borrow() {
            handle.wake();
        }
    }

    fn note(&self, what: What) -> Nanos {
        let at = clock::now();
        self.shared.record.note(Event { at, planned: None, what, error: None });
        at
    }

    /// Lets faults take effect, on the listening socket at once and on what connections read from now on.
    fn apply(&mut self, faults: Faults, planned: Option<Nanos>) -> io::Result<Nanos> {
        check(&faults)?;
        let listening = self.listen(faults.accept != Accept::Refuse);
        self.shared.changes.set(self.shared.changes.get() + 1);
        self.shared.faults.replace(Rc::new(faults.clone()));
        let at = clock::now();
        self.wake_all();
        let error = listening.as_ref().err().map(|error| format!("cannot listen again: {error}"));
        self.shared.record.note(Event { at, planned, what: What::Faults { faults }, error });
        listening.map(|()| at)
    }

    fn listen(&mut self, wanted: bool) -> io::Result<()> {
        if !wanted {
            self.listener = None;
        } else if self.listener.is_none() {
            self.listener = Some(Listener::bind(&self.shared.runtime, self.port.address)?);
        }
        Ok(())
    }

    // ---- schedule --------------------------------------------------------------------------------------------

    fn keep_to_schedule(&mut self, cx: &mut Context<'_>) {
        while let Some(planned) = self.schedule.pop_front_if(|planned| planned.at <= clock::now()) {
            // The event says what went wrong.
            let _ = self.apply(planned.faults, Some(planned.at));
        }
        let Some(next) = self.schedule.front().map(|planned| planned.at) else {
            self.sleep = None;
            return;
        };
        if self.sleep.as_ref().is_none_or(|(until, _)| *until != next) {
            self.sleep = Some((next, self.shared.runtime.sleep_until(next)));
        }
        if let Some((_, sleep)) = &mut self.sleep
            && Pin::new(sleep).poll(cx).is_ready()
        {
            self.sleep = None;
            cx.waker().wake_by_ref();
        }
    }

    // ---- connections -----------------------------------------------------------------------------------------

    fn take_connections(&mut self, cx: &mut Context<'_>) {
        if let Some(pause) = &mut self.pause {
            if Pin::new(pause).poll(cx).is_pending() {
                return;
            }
            self.pause = None;
        }
        let Some(listener) = &mut self.listener else { return };
        for _ in 0..TAKEN_AT_ONCE {
            match listener.poll_accept(cx) {
                Poll::Ready(Ok(client)) => {
                    let accept = self.shared.faults.borrow().accept;
                    self.shared.record.accepted.fetch_add(1, Ordering::Relaxed);
                    self.taken += 1;
                    self.shared.runtime.spawn(serve(&self.shared, accept, self.taken, client));
                }
                Poll::Ready(Err(_)) => {
                    self.pause = Some(self.shared.runtime.sleep_until(clock::now() + PAUSE));
                    break;
                }
                Poll::Pending => return,
            }
        }
        cx.waker().wake_by_ref();
    }
}

fn check(faults: &Faults) -> io::Result<()> {
    faults.check().map_err(|message| io::Error::new(io::ErrorKind::InvalidInput, message))
}
