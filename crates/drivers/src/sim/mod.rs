//! A simulated database whose answer is known because it is planted: latency law, capacity, stalls, outages,
//! failure windows, error rates. Evaluators and the engine itself are calibrated against it.

mod plan;
mod server;

use std::collections::BTreeMap;
use std::future::Future as _;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use nephoscope_runtime::{Nanos, Runtime, Sleep, clock};

pub use plan::{Law, Plan, Window};

use crate::bulk::{Admin, RowSource, Table};
use crate::driver::{
    Command, Connection, ConnectionState, Dialect, Driver, LocalFuture, Reply, Settings, Want,
};
use crate::echo::Echo;
use crate::error::{ConfigError, Error, ErrorClass};
use crate::noop::NoAdmin;
use crate::rows::Rows;
use crate::statement::Statement;
use crate::value::Params;
use server::{Outcome, Server};

/// The driver of `sim://`; see [`Plan::parse`] for what its URL may say.
pub struct Sim {
    url: String,
    server: Arc<Server>,
}

impl Sim {
    /// Reads the plan. A URL with a name (`sim://name?…`) stands for one database: whoever opens it in this process
    /// reaches the same one, for as long as anybody does. Without a name each driver has one of its own.
    pub fn new(url: &str, _settings: &Settings) -> Result<Self, ConfigError> {
        let plan = Plan::parse(url)?;
        let server = if has_name(url) { shared(url, plan) } else { Arc::new(Server::new(plan)) };
        Ok(Self { url: url.to_owned(), server })
    }
}

fn has_name(url: &str) -> bool {
    let name = url.split_once("://").map_or("", |(_, rest)| rest);
    !name.is_empty() && !name.starts_with('?')
}

/// The server of a URL, made now if there is none.
fn shared(url: &str, plan: Plan) -> Arc<Server> {
    static SERVERS: Mutex<BTreeMap<String, Weak<Server>>> = Mutex::new(BTreeMap::new());
    let mut servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    servers.retain(|_, server| server.strong_count() > 0);
    if let Some(server) = servers.get(url).and_then(Weak::upgrade) {
        return server;
    }
    let server = Arc::new(Server::new(plan));
    servers.insert(url.to_owned(), Arc::downgrade(&server));
    server
}

impl Driver for Sim {
    fn name(&self) -> &'static str {
        "sim"
    }

    fn dialect(&self) -> Dialect {
        Dialect::None
    }

    fn redacted_url(&self) -> String {
        self.url.clone()
    }

    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            if let Some(why) = self.server.refuses(clock::now()) {
                return Err(Error::connection_lost(why));
            }
            self.server.connected();
            Ok(Box::new(SimConnection {
                runtime: runtime.clone(),
                server: Arc::clone(&self.server),
                echo: Echo::new(statements),
                connected: clock::now(),
                state: ConnectionState::Idle,
                deadline: Nanos::MAX,
                queued: Vec::new(),
                last: None,
                echoed: Params::default(),
                flight: None,
            }) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        Ok(Box::new(SimAdmin(Arc::clone(&self.server))))
    }

    fn run_starts(&self, at: Nanos) {
        self.server.starts(at);
    }
}

/// A round trip on its way.
struct Flight {
    outcome: Outcome,
    ends: Nanos,
    sleep: Sleep,
}

struct SimConnection {
    runtime: Runtime,
    server: Arc<Server>,
    echo: Echo,
    connected: Nanos,
    state: ConnectionState,
    deadline: Nanos,
    queued: Vec<Command>,
    /// The last statement, and whether its rows are wanted.
    last: Option<(usize, Want)>,
    echoed: Params,
    flight: Option<Flight>,
}

impl SimConnection {
    fn depart(&mut self, now: Nanos) -> Flight {
        let (outcome, ends) = self.server.serve(now, self.connected);
        let wake = ends.min(self.deadline);
        Flight { outcome, ends, sleep: self.runtime.sleep_until(wake) }
    }

    fn lose(&mut self) -> Error {
        self.state = ConnectionState::Lost;
        self.queued.clear();
        Error::connection_lost("connection lost (planted)")
    }

    /// Applies the queued commands to the state, as a server would in answering them.
    fn arrive(&mut self, outcome: Outcome, rows: &mut Rows) -> Result<Reply, Error> {
        let failed = match outcome {
            Outcome::Served => None,
            Outcome::Failed(ErrorClass::ConnectionLost) => return Err(self.lose()),
            Outcome::Failed(class) => Some(class),
            Outcome::Unheard => {
                // Whether it was done or refused, nobody will know.
                let _ = self.arrive(Outcome::Served, rows);
                return Err(self.lose());
            }
        };
        let mut error =
            failed.map(|class| Error::new(class, "sim", format!("planted {} error", class.name())));
        let affected = matches!(self.queued.last(), Some(Command::Execute(_))).into();
        for command in std::mem::take(&mut self.queued) {
            match (command, &error) {
                (Command::Rollback, _) => self.state = ConnectionState::Idle,
                (Command::Begin, None) => self.state = ConnectionState::InTransaction,
                (Command::Commit, None) if self.state == ConnectionState::Failed => {
                    self.state = ConnectionState::Idle;
                    error = Some(failed_transaction(
                        "the transaction had failed, so it was rolled back and not committed",
                    ));
                }
                (Command::Commit, None) => {
                    self.state = ConnectionState::Idle;
                    self.server.committed();
                }
                (Command::Execute(_), None) if self.state == ConnectionState::Idle => self.server.committed(),
                (Command::Execute(_), None) if self.state == ConnectionState::Failed => {
                    error = Some(failed_transaction("the transaction has failed; roll it back"));
                }
                (Command::Execute(_), None) => {}
                (_, Some(_)) => {
                    if self.state == ConnectionState::InTransaction {
                        self.state = ConnectionState::Failed;
                    }
                }
            }
        }
        if let Some(error) = error {
            return Err(error);
        }
        let result = match self.last.take() {
            Some((statement, Want::Rows)) => self.echo.add(statement, &self.echoed, rows),
            _ => None,
        };
        Ok(Reply { affected, result })
    }
}

fn failed_transaction(message: &str) -> Error {
    Error::new(ErrorClass::Other, "25P02", message)
}

impl Connection for SimConnection {
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        self.queued.push(command);
        self.last = None;
        if let Command::Execute(statement) = command {
            self.last = Some((statement, want));
            self.echoed.clone_from(params);
        }
        Ok(())
    }

    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        let mut flight = match self.flight.take() {
            Some(flight) => flight,
            None => self.depart(clock::now()),
        };
        if Pin::new(&mut flight.sleep).poll(cx).is_pending() {
            self.flight = Some(flight);
            return Poll::Pending;
        }
        if flight.ends > self.deadline {
            // The answer is still to come; whoever calls again, with a new deadline, waits on.
            self.deadline = Nanos::MAX;
            flight.sleep = self.runtime.sleep_until(flight.ends);
            self.flight = Some(flight);
            let error = Error::new(ErrorClass::StatementTimeout, "", "no answer within the time limit");
            return Poll::Ready(Err(error));
        }
        Poll::Ready(self.arrive(flight.outcome, rows))
    }

    fn set_deadline(&mut self, deadline: Nanos) {
        self.deadline = deadline;
        if let Some(flight) = &mut self.flight {
            flight.sleep = self.runtime.sleep_until(flight.ends.min(deadline));
        }
    }

    fn state(&self) -> ConnectionState {
        if self.flight.is_some() || !self.queued.is_empty() { ConnectionState::Waiting } else { self.state }
    }

    fn cancel(&self) -> LocalFuture<'static, ()> {
        // The simulated server does not know how to give up; the engine drops a connection that stays silent.
        Box::pin(async {})
    }
}

/// Tells what the server has counted.
struct SimAdmin(Arc<Server>);

impl Admin for SimAdmin {
    /// Whatever the SQL, gives one row: how many transactions were committed, and how many connections were made.
    fn query(&mut self, _sql: &str) -> Result<Table, Error> {
        Ok(Table {
            columns: vec!["committed".to_owned(), "connections".to_owned()],
            rows: vec![vec![Some(self.0.commits().to_string()), Some(self.0.connections().to_string())]],
        })
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        NoAdmin.bulk_load(table, columns, rows)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![("planted".to_owned(), format!("{:?}", self.0.plan()))])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_named_url_is_one_database_and_an_unnamed_one_is_its_own() {
        let commits = |sim: &Sim| sim.admin().unwrap().query("").unwrap().rows[0][0].clone().unwrap();
        let open = |url: &str| Sim::new(url, &Settings::default()).unwrap();
        let (one, same) = (open("sim://shared?seed=1"), open("sim://shared?seed=1"));
        let (other, own) = (open("sim://shared?seed=2"), open("sim://?seed=1"));
        one.server.committed();
        assert_eq!([&one, &same, &other, &own].map(commits), ["1", "1", "0", "0"]);
        drop((one, same));
        assert_eq!(commits(&open("sim://shared?seed=1")), "0", "nobody had kept it");
    }
}
