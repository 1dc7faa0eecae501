//! What the coordinator and its workers tell each other.

use nephoscope_runtime::Nanos;

use crate::error::EngineError;
use crate::spec::load::Change;
use crate::worker::watchdog::Watched;

/// What messages call a session's own function, which is no transaction.
pub(crate) const SET_UP: &str = "the function of w:session";

/// What the coordinator tells a worker.
pub(crate) enum Order {
    /// The load starts at this time on the monotonic clock.
    Start(Nanos),
    /// A change of the load.
    Change(Change),
    /// The run is given up before it has started.
    Abort,
}

/// What a worker tells the coordinator.
pub(crate) enum Report {
    /// It is at work; this is how it is watched.
    Begun(Watched),
    /// Its sessions are connected.
    Ready,
    /// It could not get ready.
    NotReady(EngineError),
    /// The run has to end: an error of the workload.
    Fatal(String),
    /// It has ended.
    Finished(Box<WorkerTotals>),
}

/// What a worker has done altogether.
#[derive(Clone, Debug, Default)]
pub(crate) struct WorkerTotals {
    /// Transactions by series.
    pub(crate) started: Vec<u64>,
    pub(crate) ended: Vec<u64>,
    /// Transactions of which nobody knows whether they were committed.
    pub(crate) uncertain: u64,
    /// By tenant: a tally's name, what was added by committed transactions, and the size of what uncertain ones
    /// would have added.
    pub(crate) tallies: Vec<Vec<(String, f64, f64)>>,
    /// Memory of the Lua states, in bytes.
    pub(crate) script_memory: usize,
}

impl WorkerTotals {
    /// Those of so many series and tenants, with nothing done yet.
    pub(crate) fn of(series: usize, tenants: usize) -> Self {
        Self {
            started: vec![0; series],
            ended: vec![0; series],
            tallies: vec![Vec::new(); tenants],
            ..Self::default()
        }
    }
}

/// Adds to a tally. One that is too large stays the largest number, for no text of JSON has infinity.
pub(crate) fn add(tally: &mut f64, amount: f64) {
    *tally = (*tally + amount).clamp(f64::MIN, f64::MAX);
}

#[cfg(test)]
mod tests {
    use super::add;

    #[test]
    fn a_tally_stays_a_number() {
        let mut tally = 1.5;
        add(&mut tally, 2.0);
        assert!((tally - 3.5).abs() < 1e-9);
        for amount in [f64::MAX, f64::MAX, f64::MIN, f64::MIN, f64::MIN, f64::MAX] {
            add(&mut tally, amount);
            assert!(tally.is_finite());
        }
    }
}
