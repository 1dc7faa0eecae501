//! What a session does between two transactions of a closed loop: it thinks.

use nephoscope_runtime::Nanos;
use nephoscope_script::Random;

use super::Tenant;
use crate::spec::Think;
use crate::spec::load::pause;
use crate::worker::recorder::Outcome;

/// A pause as the workload has it: think time of the transaction that has ended, then keying of the next one, which is
/// known beforehand.
#[derive(Clone, Copy)]
pub(super) struct OwnPause {
    /// The transaction that has ended.
    ended: usize,
    /// Numbers in [0, 1) that say which transaction is next, by the mix of the moment, and how long its keying takes.
    pub(super) next: f64,
    keying: f64,
}

impl OwnPause {
    /// How long both pauses take; `thinks` in [0, 1) says how long the first is.
    pub(super) fn pauses(&self, thinks: f64, of: &[[Think; 2]], next: usize) -> Nanos {
        pause(of[self.ended][1], thinks).saturating_add(pause(of[next][0], self.keying))
    }
}

impl Tenant {
    /// A session has ended a transaction and begins to think, if the load has it think.
    #[inline]
    pub(crate) fn ended(
        &self,
        session: usize,
        transaction: usize,
        end: Nanos,
        outcome: Outcome,
        random: &mut Random,
    ) {
        let state = &mut *self.state.borrow_mut();
        if outcome == Outcome::Committed
            && let woken @ Some(_) = state.rest.committed(end)
        {
            state.gauges.woken = woken;
        }
        let slot = &mut state.slots[session];
        slot.late = None;
        if state.think != Think::None {
            slot.thinks_since = Some(end);
            slot.thinks = random.uniform();
            if state.think == Think::Workload {
                let (next, keying) = (random.uniform(), random.uniform());
                slot.own = Some(OwnPause { ended: transaction, next, keying });
            }
        }
    }
}
