//! Where a tenant's transactions run at the moment.

use nephoscope_runtime::Nanos;

use super::{State, Tenant};
use crate::routes::{Endpoint, Routes, is_same};
use crate::spec::Role;

impl Tenant {
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
        if let Some(place) = state.awaited.iter().position(|awaited| is_same(awaited, endpoint)) {
            state.awaited.swap_remove(place);
            state.gauges.reached.get_or_insert(at);
        }
    }

    /// Whether an endpoint has come, and nothing was committed at it since.
    pub(crate) fn awaits(&self, endpoint: &Endpoint) -> bool {
        self.state.borrow().awaited.iter().any(|awaited| is_same(awaited, endpoint))
    }

    /// Whether transactions of the present mix run in a role, of a session that reads in the role `own` where reads are
    /// spread over all endpoints.
    pub(crate) fn uses(&self, role: Role, own: Role) -> bool {
        let state = self.state.borrow();
        let mut before = 0.0;
        state.mix.iter().zip(&self.plan.read_only).any(|(bound, read_only)| {
            let weight = bound - before;
            before = *bound;
            weight > 0.0 && state.routes.role(*read_only, own) == role
        })
    }

    /// A session that was withdrawn has its connection, or needs it no more.
    pub(crate) fn come_back(&self, session: usize) {
        self.state.borrow_mut().slots[session].disconnected = false;
    }
}

impl State {
    /// How many of so many wanted sessions lack a connection; one that is not there yet lacks it too.
    pub(super) fn disconnected(&self, wanted: usize) -> usize {
        let there = &self.slots[..wanted.min(self.slots.len())];
        wanted - there.iter().filter(|slot| !slot.disconnected).count()
    }
}
