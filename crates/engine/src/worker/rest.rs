//! Idle times of a tenant: sessions that the load does not want may close their connections, so that a system may
//! pause, and it is measured how long the load waits when it comes back.

use nephoscope_runtime::Nanos;

use crate::worker::turn::{Standing, Turn};

/// What a tenant knows of its idle times on one worker.
#[derive(Default)]
pub(crate) struct Rest {
    /// Whether sessions that are not wanted close their connections.
    pub(crate) release: bool,
    /// When the load came back after an idle time, as long as nothing has been committed since.
    waking: Option<Nanos>,
}

impl Rest {
    /// The load changes at a time, from so many sessions that are wanted to so many.
    pub(crate) fn change(&mut self, release: Option<bool>, before: usize, after: usize, at: Nanos) {
        self.release = release.unwrap_or(self.release);
        if after == 0 {
            self.waking = None;
        } else if before == 0 {
            self.waking = Some(at);
        }
    }

    /// A transaction was committed: how long the load has waited for it, if it is the first after an idle time.
    #[inline]
    pub(crate) fn committed(&mut self, end: Nanos) -> Option<Nanos> {
        self.waking.take().map(|since| end.saturating_sub(since))
    }

    /// What a session has to do before it asks for work.
    #[inline]
    pub(crate) fn turn(&self, standing: &mut Standing, wanted: bool) -> Option<Turn> {
        let (now, turn) = match *standing {
            Standing::Settled if wanted || !self.release => return None,
            Standing::Released if !wanted => return None,
            Standing::Released => (Standing::Settled, Turn::Connect),
            Standing::Unsettled if wanted => (Standing::Settled, Turn::Move),
            Standing::Settled | Standing::Unsettled => (Standing::Released, Turn::Release),
        };
        *standing = now;
        Some(turn)
    }
}

/// The shorter of two waits, or the earlier of two times, of workers that had one.
pub(crate) fn shorter(one: Option<Nanos>, other: Option<Nanos>) -> Option<Nanos> {
    one.into_iter().chain(other).min()
}
