//! One connection through the proxy: the client's socket, the server's, and the two directions between them.

use std::cell::RefCell;
use std::future::{Future as _, poll_fn};
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::{Context, Poll, Waker};

use nephoscope_runtime::clock::{self, SECOND};
use nephoscope_runtime::{Nanos, Sleep, Stream};

use crate::faults::{Accept, Direction};
use crate::law::Random;
use crate::pump::{Pump, Verdict};
use crate::server::Shared;
use crate::tap::Tapped;

/// The longest that the target may take to accept a connection.
const CONNECT: Nanos = 10 * SECOND;
/// The most reads that empty a socket before it is closed.
const LAST_READS: usize = 64;
/// So many bytes of a client whose connection is held are taken, and a few more.
const HELD: usize = 64 * 1024;

/// What one connection is told to do.
#[derive(Clone)]
pub(crate) enum Order {
    Cut,
    Reset,
    HalfClose(Direction),
    Inject(Direction, Rc<[u8]>),
}

/// How the proxy reaches a connection.
#[derive(Default)]
pub(crate) struct Handle {
    orders: RefCell<Vec<Order>>,
    waker: RefCell<Option<Waker>>,
}

impl Handle {
    pub(crate) fn give(&self, order: Order) {
        self.orders.borrow_mut().push(order);
        self.wake();
    }

    pub(crate) fn wake(&self) {
        if let Some(waker) = &*self.waker.borrow() {
            waker.wake_by_ref();
        }
    }

    fn listen(&self, cx: &Context<'_>) {
        let mut waker = self.waker.borrow_mut();
        if !waker.as_ref().is_some_and(|old| old.will_wake(cx.waker())) {
            *waker = Some(cx.waker().clone());
        }
    }

    /// The first order that ends the connection.
    fn ending(&self) -> Option<Ending> {
        self.orders.borrow().iter().find_map(|order| match order {
            Order::Cut => Some(Ending::Cut),
            Order::Reset => Some(Ending::Reset),
            Order::HalfClose(_) | Order::Inject(..) => None,
        })
    }
}

/// How a connection ends.
enum Ending {
    /// Both sides have ended it.
    Over,
    /// By an orderly end to both sides.
    Cut,
    /// By a reset of both sides. One that is gone already does not notice.
    Reset,
}

/// A place in the proxy's list, given back when the connection has ended, however it has.
struct Place {
    shared: Rc<Shared>,
    slot: usize,
    handle: Rc<Handle>,
}

impl Place {
    fn take(shared: &Rc<Shared>) -> Self {
        let handle = Rc::new(Handle::default());
        let slot = shared.handles.borrow_mut().insert(Rc::clone(&handle));
        shared.record.open.fetch_add(1, Ordering::Relaxed);
        Self { shared: Rc::clone(shared), slot, handle }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.shared.handles.borrow_mut().remove(self.slot);
        self.shared.record.open.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Serves a client that was taken, to its end.
pub(crate) fn serve(
    shared: &Rc<Shared>,
    accept: Accept,
    number: u64,
    mut client: Stream,
) -> impl Future<Output = ()> + 'static {
    let place = Place::take(shared);
    async move {
        match accept {
            Accept::Silent => silence(&place.handle, client).await,
            Accept::Reset | Accept::Refuse => refuse(&place.shared, client),
            Accept::Pass => match wait(&place, &mut client).await {
                Ok(()) => match connect(&place).await {
                    Ok(server) => join(&place, number, client, server).await,
                    Err(Ending::Cut) => part(client).await,
                    Err(Ending::Over | Ending::Reset) => refuse(&place.shared, client),
                },
                Err(Ending::Reset) => client.reset(),
                Err(Ending::Cut | Ending::Over) => part(client).await,
            },
        }
    }
}

fn refuse(shared: &Shared, client: Stream) {
    shared.record.refused.fetch_add(1, Ordering::Relaxed);
    client.reset();
}

/// Takes what the client says, and says nothing.
async fn silence(handle: &Handle, mut client: Stream) {
    let ending = poll_fn(|cx| {
        handle.listen(cx);
        if let Some(ending) = handle.ending() {
            return Poll::Ready(ending);
        }
        loop {
            match client.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => client.inbox.clear(),
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Ending::Over),
                Poll::Pending => return Poll::Pending,
            }
        }
    })
    .await;
    match ending {
        Ending::Reset => client.reset(),
        Ending::Cut | Ending::Over => part(client).await,
    }
}

/// Counts a connection that waits, for as long as it does.
struct Waiting<'a>(&'a AtomicU64);

impl<'a> Waiting<'a> {
    fn count(counter: &'a AtomicU64) -> Self {
        counter.fetch_add(1, Ordering::Relaxed);
        Self(counter)
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Waits as long as connections are held. What the client says meanwhile is kept; one that leaves is not waited with.
async fn wait(place: &Place, client: &mut Stream) -> Result<(), Ending> {
    let shared = &place.shared;
    if !shared.holds.get() {
        return Ok(());
    }
    let _waiting = Waiting::count(&shared.record.waiting);
    poll_fn(|cx| {
        place.handle.listen(cx);
        if let Some(ending) = place.handle.ending() {
            return Poll::Ready(Err(ending));
        }
        if !shared.holds.get() {
            return Poll::Ready(Ok(()));
        }
        while client.inbox.bytes().len() < HELD {
            match client.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => {}
                Poll::Ready(Ok(0) | Err(_)) => return Poll::Ready(Err(Ending::Over)),
                Poll::Pending => break,
            }
        }
        Poll::Pending
    })
    .await
}

/// Connects to the target, unless the connection is ended before.
async fn connect(place: &Place) -> Result<Stream, Ending> {
    let target = place.shared.target.borrow().clone();
    let mut connecting = pin!(Stream::connect(&place.shared.runtime, &target, clock::now() + CONNECT));
    poll_fn(|cx| {
        place.handle.listen(cx);
        match place.handle.ending() {
            Some(ending) => Poll::Ready(Err(ending)),
            None => connecting.as_mut().poll(cx).map(|connected| connected.map_err(|_| Ending::Over)),
        }
    })
    .await
}

/// Passes bytes between the two until the connection ends.
async fn join(place: &Place, number: u64, client: Stream, mut server: Stream) {
    server.set_deadline(Nanos::MAX);
    let seed = place.shared.faults.borrow().seed;
    let tapped = place.shared.tap.as_ref().map(|tap| Tapped::new(tap, number));
    let pump = |direction: Direction| Pump::new(direction, Random::new(seed, number, direction as u64));
    let mut link = Link {
        place,
        client,
        server,
        to_server: pump(Direction::ToServer),
        to_client: pump(Direction::ToClient),
        tapped,
        seen: None,
        sleep: None,
    };
    let ending = poll_fn(|cx| link.poll(cx)).await;
    let Link { client, server, .. } = link;
    match ending {
        Ending::Over => {}
        Ending::Cut => {
            part(client).await;
            part(server).await;
        }
        Ending::Reset => {
            client.reset();
            server.reset();
        }
    }
}

/// Closes a socket so that the peer reads the end of the stream. Were there bytes unread, it would be a reset.
async fn part(mut stream: Stream) {
    poll_fn(|cx| {
        let _ = stream.poll_shutdown(cx);
        for _ in 0..LAST_READS {
            match stream.poll_fill(cx) {
                Poll::Ready(Ok(1..)) => stream.inbox.clear(),
                _ => break,
            }
        }
        Poll::Ready(())
    })
    .await;
}

struct Link<'a> {
    place: &'a Place,
    client: Stream,
    server: Stream,
    to_server: Pump,
    to_client: Pump,
    tapped: Option<Tapped>,
    /// The number of the faults that it has seen.
    seen: Option<u64>,
    sleep: Option<(Nanos, Sleep)>,
}

impl Link<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Ending> {
        self.place.handle.listen(cx);
        self.look_at_faults();
        if let Some(ending) = self.obey(cx) {
            return Poll::Ready(ending);
        }
        let shared = &self.place.shared;
        let faults = Rc::clone(&shared.faults.borrow());
        let (client, server, record) = (&mut self.client, &mut self.server, &shared.record);
        let tapped = self.tapped.as_ref();
        let up = self.to_server.poll(cx, &faults.to_server, client, server, record, tapped);
        if matches!(up, Verdict::Broken) {
            self.to_client.source_is_broken();
        }
        let down = self.to_client.poll(cx, &faults.to_client, server, client, record, tapped);
        if matches!(down, Verdict::Broken) {
            self.to_server.source_is_broken();
        }
        let mut wake: Option<Nanos> = None;
        for verdict in [up, down] {
            match verdict {
                Verdict::Stands(at) => wake = wake.into_iter().chain(at).min(),
                // The other direction has news.
                Verdict::Broken => cx.waker().wake_by_ref(),
                Verdict::Reset => return Poll::Ready(Ending::Reset),
                Verdict::Cut => return Poll::Ready(Ending::Cut),
            }
        }
        if self.to_server.is_over() && self.to_client.is_over() {
            return Poll::Ready(Ending::Over);
        }
        self.sleep_until(wake, cx);
        Poll::Pending
    }

    fn look_at_faults(&mut self) {
        let shared = &self.place.shared;
        let number = Some(shared.changes.get());
        if self.seen != number {
            self.seen = number;
            let faults = shared.faults.borrow();
            self.to_server.observe(&faults.to_server);
            self.to_client.observe(&faults.to_client);
        }
    }

    fn obey(&mut self, cx: &mut Context<'_>) -> Option<Ending> {
        for order in self.place.handle.orders.take() {
            match order {
                Order::Cut => return Some(Ending::Cut),
                Order::Reset => return Some(Ending::Reset),
                Order::HalfClose(Direction::ToServer) => self.to_server.close(cx, &mut self.server),
                Order::HalfClose(Direction::ToClient) => self.to_client.close(cx, &mut self.client),
                Order::Inject(Direction::ToServer, bytes) => self.to_server.inject(&bytes),
                Order::Inject(Direction::ToClient, bytes) => self.to_client.inject(&bytes),
            }
        }
        None
    }

    fn sleep_until(&mut self, wake: Option<Nanos>, cx: &mut Context<'_>) {
        let Some(at) = wake else {
            self.sleep = None;
            return;
        };
        if self.sleep.as_ref().is_none_or(|(until, _)| *until != at) {
            self.sleep = Some((at, self.place.shared.runtime.sleep_until(at)));
        }
        if let Some((_, sleep)) = &mut self.sleep
            && Pin::new(sleep).poll(cx).is_ready()
        {
            self.sleep = None;
            cx.waker().wake_by_ref();
        }
    }
}
