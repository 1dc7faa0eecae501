//! When a worker begins to connect to an endpoint: sessions that a failure has disconnected come back one after the
//! other. All at once they would take the processors from a server that recovers, and be what is measured: of a
//! PostgreSQL with 128 sessions that each knocked for itself F was twice that with 4.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::task::{Context, Waker};

use nephoscope_runtime::clock::{MILLISECOND, Nanos};

use crate::spec::routes::{Endpoint, is_same};

/// So many connections to an endpoint are made at a time …
const TOGETHER: usize = 8;
/// … and beyond them one begins so long after another: a server far away takes its time for each, and none is to wait
/// for that.
const SPACING: Nanos = MILLISECOND;
/// As long as the endpoint takes none, an attempt begins so long after another: a share of how long that has been so,
/// but no less and no more than this. A failure's end is found that exactly, and a full server is left alone.
const REFUSED: (Nanos, Nanos) = (20 * MILLISECOND, 250 * MILLISECOND);
const SHARE: Nanos = 50;

/// The limits of a worker, by endpoint.
#[derive(Default)]
pub(crate) struct ConnectLimits(RefCell<Vec<(Endpoint, Rc<ConnectLimit>)>>);

impl ConnectLimits {
    pub(crate) fn of(&self, endpoint: &Endpoint) -> Rc<ConnectLimit> {
        let mut known = self.0.borrow_mut();
        if let Some((_, limit)) = known.iter().find(|(at, _)| is_same(at, endpoint)) {
            return Rc::clone(limit);
        }
        let limit = Rc::<ConnectLimit>::default();
        known.push((Endpoint::clone(endpoint), Rc::clone(&limit)));
        limit
    }
}

/// How one worker connects to one endpoint.
#[derive(Default)]
pub(crate) struct ConnectLimit {
    /// Who waits for its turn, with how it is woken.
    waiting: RefCell<VecDeque<(u64, Option<Waker>)>>,
    issued: Cell<u64>,
    /// Attempts under way.
    trying: Cell<usize>,
    /// When the last one began.
    began: Cell<Option<Nanos>>,
    /// When the first one was refused since the last that was not.
    refused: Cell<Option<Nanos>>,
}

/// What becomes of asking for a turn.
pub(crate) enum Turn {
    Attempt(Attempt),
    /// Ask again then, or when woken.
    At(Nanos),
    /// Others are first.
    Wait,
}

impl ConnectLimit {
    /// Takes a place in the queue.
    pub(crate) fn queue(self: &Rc<Self>) -> Ticket {
        self.issued.set(self.issued.get() + 1);
        self.waiting.borrow_mut().push_back((self.issued.get(), None));
        Ticket { limit: Rc::clone(self), number: self.issued.get() }
    }

    /// Whether it takes connections as far as is known, or an attempt could find that out now.
    pub(crate) fn may_take(&self, now: Nanos) -> bool {
        self.refused.get().is_none()
            || self.waiting.borrow().is_empty() && self.next().is_none_or(|next| next <= now)
    }

    /// When the next attempt may begin; `None` is at once.
    fn next(&self) -> Option<Nanos> {
        let began = self.began.get()?;
        match (self.refused.get(), self.trying.get()) {
            (Some(since), _) => {
                Some(began + (began.saturating_sub(since) / SHARE).clamp(REFUSED.0, REFUSED.1))
            }
            (None, TOGETHER..) => Some(began + SPACING),
            (None, _) => None,
        }
    }

    fn wake_first(&self) {
        if let Some((_, waker)) = self.waiting.borrow_mut().front_mut()
            && let Some(waker) = waker.take()
        {
            waker.wake();
        }
    }
}

/// A place in the queue.
pub(crate) struct Ticket {
    limit: Rc<ConnectLimit>,
    number: u64,
}

impl Ticket {
    /// Asks whether its turn has come.
    pub(crate) fn ask(&self, now: Nanos, cx: &Context<'_>) -> Turn {
        let mut waiting = self.limit.waiting.borrow_mut();
        let is_first = waiting.front().is_some_and(|(number, _)| *number == self.number);
        let next = if is_first { self.limit.next().filter(|next| *next > now) } else { Some(Nanos::MAX) };
        if let Some(next) = next {
            if let Some((_, waker)) = waiting.iter_mut().find(|(number, _)| *number == self.number) {
                *waker = Some(cx.waker().clone());
            }
            return if is_first { Turn::At(next) } else { Turn::Wait };
        }
        waiting.pop_front();
        drop(waiting);
        self.limit.trying.set(self.limit.trying.get() + 1);
        self.limit.began.set(Some(now));
        self.limit.wake_first();
        Turn::Attempt(Attempt(Rc::clone(&self.limit)))
    }
}

impl Drop for Ticket {
    /// Who does not wait any more makes room.
    fn drop(&mut self) {
        self.limit.waiting.borrow_mut().retain(|(number, _)| *number != self.number);
        self.limit.wake_first();
    }
}

/// An attempt under way.
pub(crate) struct Attempt(Rc<ConnectLimit>);

impl Attempt {
    /// It has ended.
    pub(crate) fn end(self, connected: bool, now: Nanos) {
        let since = self.0.refused.get().unwrap_or(now);
        self.0.refused.set((!connected).then_some(since));
    }
}

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.trying.set(self.0.trying.get() - 1);
        self.0.wake_first();
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::task::Wake;

    use proptest::prelude::*;

    use super::*;

    #[derive(Default)]
    struct Woken(AtomicBool);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }

    /// Sessions that ask as a session does: when they were woken, and at the time that they were told.
    #[derive(Default)]
    struct Sessions {
        limit: Rc<ConnectLimit>,
        waiting: HashMap<u64, (Ticket, Nanos, Arc<Woken>)>,
        trying: Vec<(u64, Attempt)>,
        /// The order in which they began.
        began: Vec<(u64, Nanos)>,
    }

    impl Sessions {
        fn come(&mut self, now: Nanos) {
            let ticket = self.limit.queue();
            self.waiting.insert(ticket.number, (ticket, now, Arc::default()));
        }

        /// Whoever is due or was woken asks, until nobody is.
        fn ask(&mut self, now: Nanos) {
            while let Some(number) = self
                .waiting
                .iter()
                .find(|(_, (_, at, woken))| *at <= now || woken.0.load(Ordering::Relaxed))
                .map(|(number, _)| *number)
            {
                let (ticket, _, _) = self.waiting.remove(&number).unwrap();
                let woken = Arc::<Woken>::default();
                let waker = Waker::from(Arc::clone(&woken));
                let at = match ticket.ask(now, &Context::from_waker(&waker)) {
                    Turn::Attempt(attempt) => {
                        self.trying.push((number, attempt));
                        self.began.push((number, now));
                        continue;
                    }
                    Turn::At(at) => at,
                    Turn::Wait => Nanos::MAX,
                };
                self.waiting.insert(number, (ticket, at, woken));
            }
        }
    }

    proptest! {
        #[test]
        fn connections_begin_in_turn_a_few_at_a_time_and_nobody_is_forgotten(
            steps in proptest::collection::vec((0..6_u8, 0..3_000_000_u64), 1..300),
        ) {
            let (mut sessions, mut now) = (Sessions::default(), SPACING);
            for (what, wait) in steps {
                now += wait;
                let (trying, refused, begun) =
                    (sessions.trying.len(), sessions.limit.refused.get(), sessions.began.len());
                match what {
                    0 | 1 => sessions.come(now),
                    2 | 3 if trying > 0 => sessions.trying.swap_remove(wait as usize % trying).1.end(what == 2, now),
                    4 => {
                        let left = sessions.waiting.keys().copied().min();
                        left.map(|left| sessions.waiting.remove(&left));
                    }
                    _ => {}
                }
                sessions.ask(now);
                prop_assert!(sessions.began.is_sorted(), "{:?}", sessions.began);
                let new = &sessions.began[begun..];
                if refused.is_some() && sessions.limit.refused.get().is_some() {
                    let before = begun.checked_sub(1).map(|last| sessions.began[last].1);
                    prop_assert!(new.len() <= 1);
                    prop_assert!(new.is_empty() || before.is_none_or(|before| now >= before + REFUSED.0));
                } else {
                    prop_assert!(sessions.trying.len() <= TOGETHER.max(trying) + 1);
                }
            }
            // None of the attempts under way ever ends, and still everybody's turn comes.
            let most = sessions.waiting.len() as u64 + 1;
            for _ in 0..most {
                now += REFUSED.1;
                sessions.ask(now);
            }
            prop_assert!(sessions.waiting.is_empty());
        }
    }

    #[test]
    fn an_endpoint_that_refuses_is_knocked_at_by_one_of_many() {
        let (mut sessions, mut now) = (Sessions::default(), SPACING);
        (0..128).for_each(|_| sessions.come(now));
        while now < 60_000 * MILLISECOND {
            sessions.ask(now);
            while let Some((_, attempt)) = sessions.trying.pop() {
                attempt.end(false, now);
                sessions.come(now);
            }
            now += MILLISECOND;
        }
        let begun = |from, to| {
            sessions.began.iter().filter(|(_, at)| (from..to).contains(&(at / MILLISECOND))).count()
        };
        assert!((50..=58).contains(&begun(0, 1000)), "{}", begun(0, 1000)); // eight before any was refused
        assert_eq!(begun(50_000, 60_000), 40);
    }
}
