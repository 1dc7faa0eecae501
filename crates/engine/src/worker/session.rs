//! A session: its connections, and the life of each of its transactions.
//!
//! The engine alone decides what happens after an error: the transaction is rolled back, run again where its class
//! allows, and otherwise counted as failed; a broken connection is made anew. No wait is without a limit.

mod connections;
mod decisions;

use std::future::{Future, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use nephoscope_drivers::{Added, Command, Connection, ConnectionState, Error, Params, Reply, Want};
use nephoscope_runtime::Yield;
use nephoscope_runtime::clock::{self, Nanos, SECOND};
use nephoscope_script::{Random, Script, ScriptError, Step};

use crate::spec::Role;
use crate::spec::routes::Endpoint;
use crate::waits::cancelled;
use crate::worker::course::Course;
use crate::worker::recorder::{Outcome, Sample};
use crate::worker::tenant::Tenant;
use crate::worker::turn::{Job, Turn};

use decisions::MOST_SKIPS;

/// How a function has ended.
enum End {
    Committed,
    /// The workload rolled back by its own decision.
    Aborted,
    /// It had nothing to do.
    Skipped,
}

/// Why an attempt at a transaction came to nothing.
enum Trouble {
    Database(Error),
    Script(ScriptError),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Database(error)
    }
}

/// What is said of a function that has returned and left a transaction open.
#[cold]
fn unended() -> ScriptError {
    ScriptError::plain("the function returned within a transaction: tx:commit() or tx:rollback() is missing")
}

/// How long a server is waited for that was asked to cancel a statement.
const CANCEL_GRACE: Nanos = 2 * SECOND;
/// After so many transactions without a wait (only drivers without a database do that) the others have their turn.
const UNINTERRUPTED: u32 = 64;

pub(crate) struct Session {
    course: Rc<Course>,
    tenant: Rc<Tenant>,
    /// Its number on this worker.
    number: usize,
    script: Script,
    connections: [Option<Box<dyn Connection>>; 2],
    /// The endpoints that these lead to.
    endpoints: [Option<Endpoint>; 2],
    /// Which endpoints it takes next, where that has been drawn already.
    own: [Option<usize>; 2],
    /// In which role it reads, where reads are spread over all endpoints.
    reads: Role,
    /// The connection in a role broke and was not made anew.
    lost: [bool; 2],
    random: Random,
    /// The transaction that runs.
    running: Option<usize>,
    /// When its present attempt began, or before.
    began: Nanos,
    /// The commands of the present attempt so far leave a transaction open.
    in_transaction: bool,
    /// How many of those that were not answered commit.
    commits_unanswered: u32,
    /// Commits of the present attempt were answered: run again, it would do their part twice.
    has_committed: bool,
    affected: u64,
    uninterrupted: u32,
}

impl Session {
    pub(crate) fn new(course: &Rc<Course>, tenant: &Rc<Tenant>) -> Result<Self, ScriptError> {
        let number = tenant.add_session();
        let global = tenant.global(number) as u64 + 1;
        let mut session = Self {
            course: Rc::clone(course),
            tenant: Rc::clone(tenant),
            number,
            script: tenant.vm.script(tenant.plan.seed, global)?,
            connections: [None, None],
            endpoints: [None, None],
            own: [None, None],
            reads: Role::Rw,
            lost: [false; 2],
            random: Random::new(!tenant.plan.seed, global),
            running: None,
            began: 0,
            in_transaction: false,
            commits_unanswered: 0,
            has_committed: false,
            affected: 0,
            uninterrupted: 0,
        };
        session.reads = session.draw_reads();
        Ok(session)
    }

    /// Makes the connections that the first phase needs. An error ends the run before it has begun.
    pub(crate) async fn prepare(&mut self) -> Result<(), Error> {
        for role in Role::ALL {
            if self.tenant.uses(role, self.reads) && self.tenant.takes_part(self.number, clock::now) {
                self.connect(role).await?;
            }
        }
        Ok(())
    }

    /// Runs transactions until the run stops.
    pub(crate) async fn run(mut self) {
        self.awaits_end();
        loop {
            let takes_part = self.tenant.takes_part(self.number, clock::now);
            if takes_part && self.lacks_any() && !self.reconnect_all().await && self.tenant.stopped() {
                break;
            }
            let mut turn = self.turn().await;
            while turn == Turn::Move {
                turn = self.relocate().await;
            }
            match turn {
                Turn::Work(job) => drop(self.execute(job).await),
                Turn::Pause(until) => self.pause(until).await,
                Turn::Release => Role::ALL.into_iter().for_each(|role| self.close(role)),
                Turn::Connect | Turn::Move => {}
                Turn::Stop => break,
            }
            if self.uninterrupted >= UNINTERRUPTED {
                self.uninterrupted = 0;
                Yield::default().await;
            }
        }
        self.wind_up().await;
        let stood = self.connections.iter().flatten().count() as u64;
        self.tenant.gauge(|gauges| gauges.connected -= stood);
    }

    /// Asks for work.
    fn turn(&self) -> impl Future<Output = Turn> {
        poll_fn(move |cx| self.tenant.poll_turn(self.number, clock::now, cx))
    }

    /// Waits, but not beyond the next change of the load.
    async fn pause(&self, until: Nanos) {
        let seen = self.tenant.changes();
        let mut sleep = pin!(self.course.runtime.sleep_until(until));
        poll_fn(|cx| {
            if self.tenant.poll_changed(self.number, seen, cx).is_ready() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(cx)
        })
        .await;
    }

    /// Waits, but not beyond the end of the run.
    async fn sleep(&self, until: Nanos) {
        let mut sleep = pin!(self.course.runtime.sleep_until(until));
        poll_fn(|cx| {
            if self.tenant.poll_stopped(self.number, cx).is_ready() {
                return Poll::Ready(());
            }
            sleep.as_mut().poll(cx)
        })
        .await;
    }

    // ---- transactions ----------------------------------------------------------------------------------------

    /// Runs a transaction; tells in which role, what became of it, and when it ended.
    async fn execute(&mut self, job: Job) -> (Role, Outcome, Nanos) {
        let (mut transaction, mut role, mut series) =
            self.tenant.choose(job.transaction, &mut self.random, self.reads);
        let mut start = clock::now();
        if job.session_was_free {
            self.course.add_lag(start.saturating_sub(job.intended.unwrap_or(start)));
        }
        if let Some(due) = job.waited_since() {
            self.tenant.starts_late(self.number, due, series);
        }
        self.course.started(series);
        self.running = Some(transaction);
        self.began = start;
        // A transaction may well ask nothing of a database.
        self.uninterrupted += 1;
        let mut skips = 0;
        let (outcome, attempts) = loop {
            if let Some(ended) = self.transact(transaction, role, series).await {
                break ended;
            }
            skips += 1;
            (transaction, role, series) = self.instead(&job, series, skips).await;
            start = clock::now();
            if skips > MOST_SKIPS {
                break (Outcome::Failed, 1);
            }
        };
        self.running = None;
        let end = clock::now();
        let intended = job.intended.unwrap_or(start);
        let affected = std::mem::take(&mut self.affected);
        let has_waited = job.waited_since().is_some();
        self.course.ended(series, &Sample { intended, start, end, outcome, attempts, affected, has_waited });
        self.tenant.ended(self.number, transaction, end, outcome, &mut self.random);
        (role, outcome, end)
    }

    /// Runs a transaction to its end, with its retries; `None` where it has nothing to do.
    async fn transact(&mut self, transaction: usize, role: Role, series: usize) -> Option<(Outcome, u32)> {
        let (mut attempts, mut has_begun) = (1, false);
        loop {
            let attempt = self.attempt(role, transaction, &mut has_begun).await;
            if self.script.observed().is_some() {
                self.observe(transaction, role, &attempt);
            }
            let trouble = match attempt {
                Ok(End::Committed) => {
                    if !self.script.brings_nothing() {
                        self.course.tally(&self.tenant, self.script.take_tallies(), true);
                    }
                    return Some((Outcome::Committed, attempts));
                }
                Ok(End::Aborted) => return Some((Outcome::Aborted, attempts)),
                Ok(End::Skipped) if attempts == 1 => return None,
                // The attempts before have failed, and this one is none.
                Ok(End::Skipped) => return Some((Outcome::Failed, attempts - 1)),
                Err(trouble) => trouble,
            };
            // A future has room for whatever it may wait for, and is moved twice when it is made: what is rare is boxed.
            let failed = Box::pin(self.fail_attempt(transaction, role, series, attempts, trouble));
            if let Some(outcome) = failed.await {
                return Some((outcome, attempts));
            }
            attempts += 1;
        }
    }

    /// Runs one attempt. The first that comes to its function begins the transaction.
    async fn attempt(
        &mut self,
        role: Role,
        transaction: usize,
        has_begun: &mut bool,
    ) -> Result<End, Trouble> {
        (self.in_transaction, self.commits_unanswered, self.has_committed) = (false, 0, false);
        if self.connections[role as usize].is_none() {
            // The mix has come to need a role that it did not need before.
            Box::pin(self.connect_while_running(role)).await?;
        }
        let step = if std::mem::replace(has_begun, true) {
            self.began = clock::now();
            self.script.retry(transaction)
        } else {
            self.script.begin(transaction)
        };
        self.steps(role, step).await
    }

    /// Runs the steps of a function, from its first on.
    async fn steps(&mut self, role: Role, mut step: Step) -> Result<End, Trouble> {
        loop {
            let (command, want, flush) = match step {
                Step::Call { command, want, flush } => (command, want, flush),
                Step::Query { want, flush } => {
                    let place = match self.add(role, flush)? {
                        Added::Ready(place) => place,
                        asked => Box::pin(self.place(role, flush, asked)).await?,
                    };
                    (Command::Execute(place), want, flush)
                }
                Step::Flush => {
                    let reply = self.flush(role).await?;
                    step = self.script.resume(reply);
                    continue;
                }
                Step::Done { aborted } => {
                    let mut found = self.state(role);
                    if found == Some(ConnectionState::Waiting) {
                        // What the function left queued is sent.
                        self.flush(role).await?;
                        found = self.state(role);
                    }
                    if matches!(found, Some(ConnectionState::InTransaction | ConnectionState::Failed)) {
                        return Err(Trouble::Script(unended()));
                    }
                    return Ok(if aborted { End::Aborted } else { End::Committed });
                }
                Step::Skipped => return Ok(End::Skipped),
                Step::Failed(error) => return Err(Trouble::Script(error)),
            };
            self.queue(role, command, want)?;
            let reply = if flush { self.flush(role).await? } else { Reply::default() };
            self.affected += reply.affected;
            step = self.script.resume(reply);
        }
    }

    fn queue(&mut self, role: Role, command: Command, want: Want) -> Result<(), Error> {
        let connection = self.connections[role as usize].as_mut();
        let connection = connection.ok_or_else(|| Error::connection_lost("there is no connection"))?;
        connection.queue(command, self.script.params(), want)?;
        self.commits_unanswered += u32::from(match command {
            Command::Commit => true,
            // A statement outside a transaction commits by itself.
            Command::Execute(_) => !self.in_transaction,
            Command::Begin | Command::BeginIn(_) | Command::Rollback => false,
        });
        match command {
            Command::Begin | Command::BeginIn(_) => self.in_transaction = true,
            Command::Commit | Command::Rollback => self.in_transaction = false,
            Command::Execute(_) => {}
        }
        Ok(())
    }

    /// Sends what is queued and waits for the replies, within the statement's time limit.
    fn flush(&mut self, role: Role) -> impl Future<Output = Result<Reply, Error>> {
        let mut begun = false;
        poll_fn(move |cx| self.poll_flush(role, &mut begun, cx))
    }

    fn poll_flush(
        &mut self,
        role: Role,
        begun: &mut bool,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Reply, Error>> {
        let Self { connections, script, course, uninterrupted, .. } = self;
        let Some(connection) = connections[role as usize].as_mut() else {
            return Poll::Ready(Err(Error::connection_lost("there is no connection")));
        };
        if !std::mem::replace(begun, true) {
            connection.set_deadline(course.runtime.turn_began() + course.statement_timeout);
            *uninterrupted += 1;
        }
        let Poll::Ready(reply) = connection.poll_replies(cx, script.rows())? else {
            *uninterrupted = 0;
            return Poll::Pending;
        };
        self.has_committed |= self.commits_unanswered > 0;
        self.commits_unanswered = 0;
        Poll::Ready(Ok(reply))
    }

    fn state(&self, role: Role) -> Option<ConnectionState> {
        self.connections[role as usize].as_ref().map(|connection| connection.state())
    }

    /// Whether the server has not answered everything: the error is this side's.
    fn is_waiting(&self, role: Role) -> bool {
        self.state(role) == Some(ConnectionState::Waiting)
    }

    /// Whether the attempt may have changed something for good: it has committed a part, or sent a commit whose outcome
    /// is `unknown`. An error that is known ends one commit; of several that were sent together, others may have gone
    /// before.
    fn may_have_committed(&self, transaction: usize, unknown: bool) -> bool {
        let perhaps = self.commits_unanswered > u32::from(!unknown);
        (self.has_committed || perhaps) && !self.tenant.plan.read_only[transaction]
    }

    /// Nobody knows whether the transaction was committed: neither is what it adds to the tallies known.
    fn count_uncertain(&mut self) {
        self.course.add_uncertain();
        self.course.tally(&self.tenant, self.script.take_tallies(), false);
    }

    /// The attempt has come to nothing.
    async fn forget_attempt(&mut self, role: Role) {
        (self.commits_unanswered, self.has_committed) = (0, false);
        self.script.abandon();
        self.recover(role).await;
    }

    /// Brings the connection of a failed attempt back to where a transaction can begin, or drops it.
    async fn recover(&mut self, role: Role) {
        let grace = self.course.statement_timeout.min(CANCEL_GRACE);
        let Self { connections, script, .. } = self;
        let Some(connection) = connections[role as usize].as_mut() else { return };
        if connection.state() == ConnectionState::Waiting {
            cancelled(&mut **connection, script.rows(), clock::now() + grace).await;
        }
        if matches!(connection.state(), ConnectionState::InTransaction | ConnectionState::Failed) {
            connection.set_deadline(clock::now() + grace);
            if connection.queue(Command::Rollback, &Params::default(), Want::Count).is_ok() {
                let _ = poll_fn(|cx| connection.poll_replies(cx, script.rows())).await;
            }
        }
        if connection.state() != ConnectionState::Idle {
            self.drop_connection(role);
        }
    }
}

impl Drop for Session {
    /// Whoever is in flight when the run's patience ends may yet commit.
    fn drop(&mut self) {
        if self.running.is_some_and(|transaction| self.may_have_committed(transaction, true)) {
            self.count_uncertain();
        }
        self.observe_unended();
    }
}
