//! A session's connections: to which endpoints, and what is done where one breaks, or where the endpoints change.

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Poll, ready};

use nephoscope_drivers::{Added, Error};
use nephoscope_runtime::clock::{self, Nanos, SECOND};

use super::{Session, Trouble};
use crate::spec::routes::{Endpoint, deal, is_same};
use crate::spec::{Balance, Role};
use crate::worker::connecting::{self, Attempt, ConnectLimit};
use crate::worker::recorder::Outcome;
use crate::worker::turn::Turn;

impl Session {
    /// Makes a connection in a role, to the session's own endpoint or else to the next that takes it; `false` where
    /// none is wanted any more before it is the session's turn.
    pub(super) async fn connect(&mut self, role: Role) -> Result<bool, Error> {
        let (tenant, routes) = (Rc::clone(&self.tenant), self.tenant.routes());
        let endpoints = routes.of(role);
        let own = self.own[role as usize].take().unwrap_or_else(|| self.draw_own(role, endpoints.len()));
        let mut last = Error::connection_lost(format!("the tenant has no {} endpoint", role.name()));
        for driver in self.candidates(endpoints, own) {
            let Some(attempt) = self.await_turn(&self.tenant.limits.of(driver)).await else {
                return Ok(false);
            };
            let connected = driver.connect(&self.course.runtime, &tenant.plan.statements).await;
            attempt.end(connected.is_ok(), clock::now());
            match connected {
                Ok(connection) => {
                    self.connections[role as usize] = Some(connection);
                    self.endpoints[role as usize] = Some(Arc::clone(driver));
                    self.tenant.gauge(|gauges| gauges.connected += 1);
                    if !self.script.is_to_set_up() {
                        return Ok(true);
                    }
                    match Box::pin(self.set_up(role)).await {
                        Ok(()) => return Ok(true),
                        Err(Trouble::Database(error)) => last = error.context(&driver.redacted_url()),
                        Err(Trouble::Script(error)) => return Err(Error::other(error.to_string())),
                    }
                    self.close(role);
                }
                Err(error) => last = error.context(&driver.redacted_url()),
            }
        }
        Err(last)
    }

    /// The endpoints to try, from its own on: of several none that takes no connections and that others try already.
    fn candidates<'a>(&self, endpoints: &'a [Endpoint], own: usize) -> Vec<&'a Endpoint> {
        let turned = || (0..endpoints.len()).map(|step| &endpoints[(own + step) % endpoints.len()]);
        let open: Vec<_> = turned().filter(|at| self.tenant.limits.of(at).may_take(clock::now())).collect();
        if open.is_empty() { turned().take(1).collect() } else { open }
    }

    /// Whether somebody waits for its connection: who is not wanted does not knock at a server that is full.
    fn is_wanted(&self) -> bool {
        self.running.is_some() || self.tenant.takes_part(self.number, clock::now)
    }

    /// Waits until it may begin to connect; `None` where it is not wanted any more, or the run stops.
    async fn await_turn(&self, limit: &Rc<ConnectLimit>) -> Option<Attempt> {
        let ticket = limit.queue();
        let mut sleep = pin!(self.course.runtime.sleep_until(Nanos::MAX));
        poll_fn(|cx| {
            if self.tenant.poll_stopped(self.number, cx).is_ready() || !self.is_wanted() {
                return Poll::Ready(None);
            }
            loop {
                match ticket.ask(clock::now(), cx) {
                    connecting::Turn::Attempt(attempt) => return Poll::Ready(Some(attempt)),
                    connecting::Turn::Wait => return Poll::Pending,
                    connecting::Turn::At(next) => {
                        sleep.set(self.course.runtime.sleep_until(next));
                        ready!(sleep.as_mut().poll(cx));
                    }
                }
            }
        })
        .await
    }

    /// Which of so many endpoints of a role is the session's own.
    fn draw_own(&mut self, role: Role, of: usize) -> usize {
        match (self.tenant.plan.balance, role) {
            // Of the sessions that read on ro, who read on rw are left out.
            (Balance::RoundRobin, Role::Ro) => deal(self.tenant.global(self.number), self.writers_share()).1,
            (Balance::RoundRobin, Role::Rw) => self.tenant.global(self.number),
            (Balance::Random, _) => self.random.below(of as u64) as usize,
            (Balance::First, _) => 0,
        }
    }

    /// In which role the session reads, where reads are spread over all endpoints; rw as long as there is no choice.
    pub(super) fn draw_reads(&mut self) -> Role {
        let share = self.writers_share();
        let is_writers = share <= 0.0
            || match self.tenant.plan.balance {
                Balance::RoundRobin => deal(self.tenant.global(self.number), share).0,
                Balance::Random => self.random.uniform() < share,
                Balance::First => true,
            };
        if is_writers { Role::Rw } else { Role::Ro }
    }

    fn writers_share(&self) -> f64 {
        self.tenant.routes().writers_share(self.tenant.plan.writer_weight)
    }

    /// The endpoints have changed: closes the connections that lead elsewhere than to the session's own by now, makes
    /// those that it needs, and gives the turn that it has not followed. What it commits first at an endpoint that has
    /// come is told.
    pub(super) async fn relocate(&mut self) -> Turn {
        let routes = self.tenant.routes();
        self.reads = self.draw_reads();
        for role in Role::ALL {
            let endpoints = routes.of(role);
            let own = self.draw_own(role, endpoints.len());
            let at = &self.endpoints[role as usize];
            let is_own = |at: &Endpoint| {
                endpoints.get(own % endpoints.len().max(1)).is_some_and(|own| is_same(own, at))
            };
            if !self.tenant.uses(role, self.reads) || !at.as_ref().is_some_and(is_own) {
                self.close(role);
                self.own[role as usize] = Some(own);
            }
        }
        while self.reconnect_all().await && self.is_awaited() {
            match self.turn().await {
                Turn::Work(job) => {
                    let (role, outcome, end) = self.execute(job).await;
                    let at = self.endpoints[role as usize].as_ref();
                    if let Some(at) = at.filter(|_| outcome == Outcome::Committed) {
                        self.tenant.reached(at, end.saturating_sub(self.course.origin.get()));
                    }
                }
                Turn::Pause(until) => self.pause(until).await,
                turn => return turn,
            }
        }
        Turn::Connect
    }

    /// Whether the session is connected to an endpoint that has come, and of which nothing has been told yet.
    fn is_awaited(&self) -> bool {
        self.endpoints.iter().flatten().any(|at| self.tenant.awaits(at))
    }

    /// Whether it lacks the connection in a role.
    #[inline]
    fn lacks(&self, role: Role) -> bool {
        self.connections[role as usize].is_none() && self.tenant.uses(role, self.reads)
    }

    #[inline]
    pub(super) fn lacks_any(&self) -> bool {
        Role::ALL.into_iter().any(|role| self.lacks(role))
    }

    /// Makes what connections are missing, with patience; `false` if they are not wanted any more, or the run stopped.
    pub(super) async fn reconnect_all(&mut self) -> bool {
        for role in Role::ALL {
            if self.lacks(role) && !self.reconnect(role).await {
                return false;
            }
        }
        true
    }

    pub(super) async fn reconnect(&mut self, role: Role) -> bool {
        self.tenant.withdraw(self.number);
        let connected = self.connect_with_patience(role).await;
        self.tenant.come_back(self.number);
        connected
    }

    async fn connect_with_patience(&mut self, role: Role) -> bool {
        // An endpoint that is gone for good is not waited for.
        while !self.tenant.stopped() && !self.tenant.rests(self.number, clock::now) && self.tenant.has(role) {
            if !self.is_wanted() {
                self.pause(clock::now() + SECOND).await;
                continue;
            }
            match self.connect_while_running(role).await {
                Ok(true) => return true,
                Ok(false) => {}
                Err(error) => self.course.note_refusal(&self.tenant, role, &error),
            }
        }
        false
    }

    /// Tries once to make a connection, and counts what comes of it.
    pub(super) async fn connect_while_running(&mut self, role: Role) -> Result<bool, Error> {
        let connected = self.connect(role).await;
        match &connected {
            Ok(true) => {
                let restored = std::mem::take(&mut self.lost[role as usize]);
                self.tenant.gauge(|gauges| gauges.restored += u64::from(restored));
            }
            Ok(false) => {}
            Err(_) => self.tenant.gauge(|gauges| gauges.refused += 1),
        }
        connected
    }

    /// Closes the connection in a role: it is not needed any more.
    pub(super) fn close(&mut self, role: Role) {
        self.endpoints[role as usize] = None;
        if self.connections[role as usize].take().is_some() {
            self.tenant.gauge(|gauges| gauges.connected -= 1);
        }
    }

    pub(super) fn drop_connection(&mut self, role: Role) {
        self.endpoints[role as usize] = None;
        if self.connections[role as usize].take().is_some() {
            self.lost[role as usize] = true;
            self.tenant.gauge(|gauges| {
                gauges.connected -= 1;
                gauges.lost += 1;
            });
        }
    }

    /// Makes the statement known that the script has made.
    pub(super) fn add(&mut self, role: Role, alone: bool) -> Result<Added, Error> {
        let connection = self.connections[role as usize].as_mut();
        let connection = connection.ok_or_else(|| Error::connection_lost("there is no connection"))?;
        connection.add(self.script.query()?, alone)
    }

    /// Gives the place of the statement that the script has made, once the server knows it.
    #[cold]
    pub(super) async fn place(&mut self, role: Role, alone: bool, mut added: Added) -> Result<usize, Error> {
        loop {
            match added {
                Added::Ready(place) => return Ok(place),
                Added::Asked(place) => return self.flush(role).await.map(|_| place),
                Added::Full => self.flush(role).await?,
            };
            added = self.add(role, alone)?;
        }
    }
}
