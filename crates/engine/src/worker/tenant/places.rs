//! Which transaction a session runs, and where a tenant's transactions run at the moment.

use nephoscope_runtime::Nanos;
use nephoscope_script::Random;

use super::{State, Tenant, drawn};
use crate::spec::Role;
use crate::spec::load::Model;
use crate::spec::routes::{Endpoint, Routes, is_same};

impl Tenant {
    /// Draws a transaction from the mix, unless it is known, and tells where it runs, and its series there; `own` is
    /// where the session reads if reads are spread.
    #[inline]
    pub(crate) fn choose(
        &self,
        known: Option<usize>,
        random: &mut Random,
        own: Role,
    ) -> (usize, Role, usize) {
        let state = self.state.borrow();
        let transaction = known.unwrap_or_else(|| drawn(&state.mix, random.uniform()));
        let role = state.routes.role(self.plan.read_only[transaction], own);
        (transaction, role, self.plan.series[transaction][role as usize])
    }

    /// The endpoints as they are now.
    pub(crate) fn routes(&self) -> Routes {
        self.state.borrow().routes.clone()
    }

    /// Whether it has endpoints of a role.
    pub(crate) fn has(&self, role: Role) -> bool {
        !self.state.borrow().routes.of(role).is_empty()
    }

    /// The series of the first transaction that runs in a role.
    pub(crate) fn series_of(&self, role: Role) -> usize {
        let state = self.state.borrow();
        let of_role =
            self.plan.read_only.iter().position(|read_only| state.routes.role(*read_only, role) == role);
        self.plan.series[of_role.unwrap_or(0)][role as usize]
    }

    /// A transaction was committed at an endpoint that came while the load runs.
    pub(crate) fn reached(&self, endpoint: &Endpoint, at: Nanos) {
        let state = &mut *self.state.borrow_mut();
        if let Some(index) = state.awaited.iter().position(|awaited| is_same(awaited, endpoint)) {
            state.awaited.swap_remove(index);
            state.gauges.reached.get_or_insert(at);
        }
    }

    /// Whether an endpoint has come, and nothing was committed at it since.
    pub(crate) fn awaits(&self, endpoint: &Endpoint) -> bool {
        self.state.borrow().awaited.iter().any(|awaited| is_same(awaited, endpoint))
    }

    /// Whether transactions of the present mix run in a role, of a session that reads in the role `own` where reads are
    /// spread over all endpoints.
    #[inline]
    pub(crate) fn uses(&self, role: Role, own: Role) -> bool {
        self.state.borrow().roles[own as usize][role as usize]
    }

    /// Whether a session has work to expect, so that it should hold its connections.
    #[inline]
    pub(crate) fn takes_part(&self, session: usize, now: impl Fn() -> Nanos) -> bool {
        let state = self.state.borrow();
        let time = if state.has_ramp() { now() } else { Nanos::MAX };
        self.global(session) < self.level(&state, time)
    }

    /// Whether a session should have no connections for now.
    pub(crate) fn rests(&self, session: usize, now: impl Fn() -> Nanos) -> bool {
        self.state.borrow().rest.release && !self.takes_part(session, now)
    }

    /// A session that was withdrawn has its connection, or needs it no more.
    pub(crate) fn come_back(&self, session: usize) {
        self.state.borrow_mut().slots[session].disconnected = false;
    }
}

impl State {
    /// Whether the level of a closed loop is another at another time.
    pub(super) fn has_ramp(&self) -> bool {
        matches!(self.model, Model::Closed(concurrency) if concurrency.over > 0)
    }

    /// Finds out in which roles transactions of the mix run; `read_only` says which of them only read.
    pub(super) fn find_roles(&mut self, read_only: &[bool]) {
        self.roles = [[false; 2]; 2];
        let mut before = 0.0;
        for (bound, read_only) in self.mix.iter().zip(read_only) {
            for own in Role::ALL.into_iter().filter(|_| *bound > before) {
                let role = self.routes.role(*read_only, own);
                self.roles[own as usize][role as usize] = true;
            }
            before = *bound;
        }
    }

    /// How many of so many wanted sessions lack a connection; one that is not there yet lacks it too.
    pub(super) fn disconnected(&self, wanted: usize) -> usize {
        let there = &self.slots[..wanted.min(self.slots.len())];
        wanted - there.iter().filter(|slot| !slot.disconnected).count()
    }
}
