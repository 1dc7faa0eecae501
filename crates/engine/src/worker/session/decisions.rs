//! What a workload decides: which errors it expects, when it has nothing to do, and what a session keeps for itself.

use nephoscope_drivers::Error;
use nephoscope_histories::Outcome as Observed;
use nephoscope_runtime::Yield;
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos};

use super::{End, Session, Trouble, UNINTERRUPTED};
use crate::spec::Role;
use crate::worker::recorder::Outcome;
use crate::worker::report::SET_UP;
use crate::worker::turn::Job;

/// So many transactions may have nothing to do in a row: a mix of which one in a thousand has work comes to that in one
/// of 20,000 cases.
pub(super) const MOST_SKIPS: u32 = 10_000;

impl Session {
    /// Whether the workload expects the error, and nothing beside what has met it is unanswered. What the attempt has
    /// committed before stays, and the outcome is known all the same.
    pub(super) fn is_expected(&self, transaction: usize, role: Role, error: &Error) -> bool {
        self.tenant.plan.aborts_on[transaction].contains(error.class())
            && !error.outcome_unknown()
            && !self.is_waiting(role)
            && self.commits_unanswered <= 1
    }

    /// An attempt has come to nothing. Tells what becomes of its transaction, or waits until it may be run again.
    pub(super) async fn fail_attempt(
        &mut self,
        transaction: usize,
        role: Role,
        series: usize,
        attempts: u32,
        trouble: Trouble,
    ) -> Option<Outcome> {
        let retry = self.course.retry.get();
        let error = match trouble {
            Trouble::Script(error) => {
                self.course.fail(&format!("{}: {error}", self.course.transaction_name(series)));
                self.recover(role).await;
                return Some(Outcome::Failed);
            }
            Trouble::Database(error) if self.is_expected(transaction, role, &error) => {
                if self.may_have_committed(transaction, false) {
                    self.course.tally(&self.tenant, self.script.take_tallies(), false);
                }
                self.forget_attempt(role).await;
                return Some(Outcome::Aborted);
            }
            Trouble::Database(error) => error,
        };
        self.course.add_error(series, &error);
        let unknown = error.outcome_unknown() || self.is_waiting(role);
        let uncertain = self.may_have_committed(transaction, unknown);
        if uncertain {
            self.count_uncertain();
        }
        self.affected = 0;
        self.forget_attempt(role).await;
        // What may have been committed is never run again: it could be there twice.
        let again = retry.classes.contains(error.class()) && !uncertain && attempts < retry.attempts;
        if !again || self.tenant.stopped() {
            return Some(if uncertain { Outcome::Uncertain } else { Outcome::Failed });
        }
        self.back_off(attempts).await;
        let is_connected = self.connections[role as usize].is_some() || self.reconnect(role).await;
        (!is_connected).then_some(Outcome::Failed)
    }

    /// Draws a transaction in the place of one that had nothing to do, the `skips`-th in a row. The run ends where there
    /// are too many of them.
    pub(super) async fn instead(&mut self, job: &Job, skipped: usize, skips: u32) -> (usize, Role, usize) {
        self.uninterrupted += 1;
        if self.uninterrupted >= UNINTERRUPTED {
            self.uninterrupted = 0;
            Yield::default().await;
        }
        if skips > MOST_SKIPS {
            let name = self.course.transaction_name(skipped);
            self.course.fail(&format!(
                "{name}: tx:skip() has ended {skips} transactions of session {} in a row; the mix needs one that has \
                 something to do",
                self.script_session()
            ));
        }
        let chosen @ (transaction, _, series) = self.tenant.choose(None, &mut self.random, self.reads);
        if let Some(due) = job.waited_since() {
            self.tenant.starts_late(self.number, due, series);
        }
        self.course.starts_instead(skipped, series);
        self.running = Some(transaction);
        chosen
    }

    /// What an attempt has observed goes into the history, with how it ended.
    #[cold]
    pub(super) fn observe(&mut self, transaction: usize, role: Role, attempt: &Result<End, Trouble>) {
        let outcome = match attempt {
            Ok(End::Committed) => Observed::Committed,
            Ok(End::Aborted | End::Skipped) => self.aborted(transaction, false),
            Err(Trouble::Script(_)) => self.aborted(transaction, true),
            Err(Trouble::Database(error)) => {
                self.aborted(transaction, error.outcome_unknown() || self.is_waiting(role))
            }
        };
        self.record_observed(outcome);
    }

    /// The run's patience is over, and a transaction has not ended.
    pub(super) fn observe_unended(&mut self) {
        if let Some(transaction) = self.running {
            let outcome = self.aborted(transaction, true);
            self.record_observed(outcome);
        }
    }

    /// The outcome of what has not committed as a whole: where a part of it has, or may have, nobody knows which.
    fn aborted(&self, transaction: usize, unknown: bool) -> Observed {
        if self.may_have_committed(transaction, unknown) { Observed::Unknown } else { Observed::Aborted }
    }

    fn record_observed(&mut self, outcome: Observed) {
        let Self { script, course, tenant, .. } = self;
        if let Some(observed) = script.observed() {
            (observed.begin, observed.end, observed.outcome) = (self.began, clock::now(), outcome);
            course.observed(tenant, tenant.global(self.number) + 1, observed);
        }
    }

    /// Its number as the workload knows it.
    fn script_session(&self) -> usize {
        self.tenant.global(self.number) + 1
    }

    /// Runs the session's own function on a new connection, with the retries of a transaction.
    pub(super) async fn set_up(&mut self, role: Role) -> Result<(), Trouble> {
        let mut attempts = 1;
        loop {
            let step = self.script.set_up();
            let ended = self.steps(role, step).await;
            (self.in_transaction, self.commits_unanswered, self.has_committed) = (false, 0, false);
            self.affected = 0;
            let Err(trouble) = ended else {
                self.course.tally(&self.tenant, self.script.take_tallies(), true);
                return Ok(());
            };
            self.forget_attempt(role).await;
            match trouble {
                Trouble::Database(error) if self.may_set_up_again(role, attempts, &error) => {}
                Trouble::Database(error) => return Err(Trouble::Database(error.context(SET_UP))),
                Trouble::Script(error) => {
                    self.course.fail(&format!("{SET_UP}: {error}"));
                    return Err(Trouble::Script(error));
                }
            }
            self.back_off(attempts).await;
            attempts += 1;
        }
    }

    /// Says that the session has something to do at the end of the run, if it has.
    pub(super) fn awaits_end(&self) {
        if self.script.has_end() {
            self.course.awaits_end();
        }
    }

    /// Does what the session has to do at the end of the run, where it is connected.
    pub(super) async fn wind_up(&mut self) {
        if !self.script.has_end() {
            return;
        }
        let connected = Role::ALL.into_iter().find(|role| self.connections[*role as usize].is_some());
        if let Some(role) = connected.filter(|_| !self.script.is_to_set_up()) {
            self.end(role).await;
        }
        self.course.has_ended();
    }

    /// An error ends what is done at the end, and nothing more.
    async fn end(&mut self, role: Role) {
        let step = self.script.wind_up();
        (self.in_transaction, self.commits_unanswered, self.has_committed) = (false, 0, false);
        match self.steps(role, step).await {
            Ok(_) => self.course.tally(&self.tenant, self.script.take_tallies(), true),
            Err(Trouble::Database(error)) => tracing::warn!("at the end of a session: {error}"),
            Err(Trouble::Script(error)) => self.course.fail(&format!("at the end of a session: {error}")),
        }
    }

    pub(super) async fn back_off(&mut self, attempts: u32) {
        let retry = self.course.retry.get();
        let mean = (retry.backoff_ms * 2_f64.powi(attempts as i32 - 1)).min(retry.backoff_max_ms);
        let wait = mean * (0.5 + self.random.uniform()) * MILLISECOND as f64;
        self.sleep(clock::now() + wait as Nanos).await;
    }

    fn may_set_up_again(&self, role: Role, attempts: u32, error: &Error) -> bool {
        let retry = self.course.retry.get();
        let again = retry.classes.contains(error.class()) && attempts < retry.attempts;
        again && self.connections[role as usize].is_some() && !self.tenant.stopped()
    }
}
