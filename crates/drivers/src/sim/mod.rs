//! A simulated database whose answer is known because it is planted: latency law, capacity, stalls, outages,
//! failure windows, error rates, replication lag, reads that go back. Evaluators and the engine itself are calibrated against it.

mod data;
mod plan;
mod server;

use std::collections::BTreeMap;
use std::future::Future as _;
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::task::{Context, Poll};

use nephoscope_runtime::{Nanos, Runtime, Sleep, clock};

pub use plan::{Law, Plan, Window};

use crate::contract::added::Added;
use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::dialect::Dialect;
use crate::contract::driver::{
    Command, Connection, ConnectionState, Driver, LocalFuture, Reply, Settings, Want,
};
use crate::contract::error::{ConfigError, Error, ErrorClass};
use crate::contract::probe_tables::ProbeStatements;
use crate::contract::rows::{ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::echo::Echo;
use crate::net::entry::Entry;
use crate::noop::NoAdmin;
use data::{Data, Understood, parameter};
use server::{Outcome, Server};

/// What the rest of the crate knows of this driver.
pub(crate) const ENTRY: Entry = Entry {
    schemes: &["sim"],
    about: "a simulated database with planted latency, capacity, stalls, outages and errors: known truth",
    open: |url, settings| Ok(Arc::new(Sim::new(url, settings)?)),
    open_as: None,
    keys: None,
    dialect: Dialect::NONE,
};

/// The driver of `sim://`; see [`Plan::parse`] for what its URL may say.
pub struct Sim {
    url: String,
    server: Arc<Server>,
    data: Arc<Data>,
}

impl Sim {
    /// Reads the plan. A URL with a name (`sim://name?…`) stands for one database: whoever opens it in this process
    /// reaches the same one, for as long as anybody does. Without a name each driver has one of its own. What probes
    /// store is the same for all URLs of a name: those with a lag are replicas of the one without.
    pub fn new(url: &str, _settings: &Settings) -> Result<Self, ConfigError> {
        let plan = Plan::parse(url)?;
        let name = name(url);
        if plan.lag.is_some() && name.is_empty() {
            let message = "url: sim's lag needs the name of what it lags behind, as in sim://name?lag=…";
            return Err(ConfigError(message.to_owned()));
        }
        let server = if name.is_empty() { Arc::new(Server::new(plan)) } else { shared(url, plan) };
        Ok(Self { url: url.to_owned(), server, data: Data::of(name) })
    }
}

fn name(url: &str) -> &str {
    let rest = url.split_once("://").map_or("", |(_, rest)| rest);
    rest.split('?').next().unwrap_or_default()
}

/// The servers whose URL has a name.
static SERVERS: Mutex<BTreeMap<String, Weak<Server>>> = Mutex::new(BTreeMap::new());

/// Plants something in the server of a URL that has a name, while it runs: `capacity=8`, `stall=0s+2s`,
/// `outage=0s+500ms`, or several joined by `&`. Times count from now, which is returned.
pub fn plant(url: &str, planted: &str) -> Result<Nanos, ConfigError> {
    for key in planted.split('&').map(|pair| pair.split('=').next().unwrap_or_default()) {
        if !["capacity", "stall", "outage"].contains(&key) {
            let allowed = "allowed are capacity, stall and outage";
            return Err(ConfigError(format!("sim's {key:?} cannot be planted while it runs; {allowed}")));
        }
    }
    let plan = Plan::parse(&format!("sim://?{planted}"))?;
    let servers = SERVERS.lock().unwrap_or_else(PoisonError::into_inner);
    let server = servers.get(url).and_then(Weak::upgrade);
    let server = server.ok_or_else(|| ConfigError("nobody has opened this simulated database".to_owned()))?;
    let now = clock::now();
    server.plant(&plan, now);
    Ok(now)
}

/// The server of a URL, made now if there is none.
fn shared(url: &str, plan: Plan) -> Arc<Server> {
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

    fn dialect(&self) -> &'static Dialect {
        Dialect::NONE
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
            self.server.enter(clock::now()).map_err(Error::connection_lost)?;
            Ok(Box::new(SimConnection {
                runtime: runtime.clone(),
                server: Arc::clone(&self.server),
                data: Arc::clone(&self.data),
                statements: Arc::clone(statements),
                understood: statements.iter().map(Understood::of).collect(),
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
        Ok(Box::new(SimAdmin { server: Arc::clone(&self.server), data: Arc::clone(&self.data) }))
    }

    fn run_starts(&self, at: Nanos) {
        self.server.starts(at);
    }
}

/// A round trip on its way.
struct Flight {
    outcome: Outcome,
    departed: Nanos,
    ends: Nanos,
    sleep: Sleep,
}

struct SimConnection {
    runtime: Runtime,
    server: Arc<Server>,
    data: Arc<Data>,
    statements: Arc<[Statement]>,
    /// What each of the statements is to the simulated database.
    understood: Vec<Option<Understood>>,
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
        if matches!(outcome, Outcome::Served | Outcome::Unheard | Outcome::Late(_)) {
            self.store(ends);
        }
        let wake = ends.min(self.deadline);
        Flight { outcome, departed: now, ends, sleep: self.runtime.sleep_until(wake) }
    }

    /// Stores what a statement of a probe changes, as of the moment at which its reply leaves: whoever gives up
    /// waiting has changed it nevertheless.
    fn store(&self, at: Nanos) {
        let Some((place, _)) = self.last.filter(|_| self.state == ConnectionState::Idle) else { return };
        let (Some(understood), Some(statement)) =
            (self.understood.get(place).copied().flatten(), self.statements.get(place))
        else {
            return;
        };
        let value = |name: &str| parameter(statement, &self.echoed, name);
        match understood {
            Understood::Write => self.data.write(value("probe"), value("number")),
            Understood::Insert | Understood::Update => {
                self.data.mark(value("id"), Some(value("number")), at);
            }
            Understood::Delete => self.data.mark(value("id"), None, at),
            Understood::Stock => {
                (value("first")..=value("last")).for_each(|id| self.data.mark(id, Some(0), at));
            }
            Understood::Poll => {}
        }
    }

    /// The rows of a statement that was answered from the state at a time.
    fn result(&self, place: usize, at: Nanos, rows: &mut Rows) -> Option<ResultIndex> {
        let understood = self.understood.get(place).copied().flatten();
        let statement = self.statements.get(place).filter(|_| understood == Some(Understood::Poll));
        let Some(statement) = statement else { return self.echo.add(place, &self.echoed, rows) };
        let [first, last] = ["first", "last"].map(|name| parameter(statement, &self.echoed, name));
        let is_old = || self.server.is_old_read();
        let seen = self.data.markers(first..=last, at, &self.server.view(), is_old);
        let cells = |(id, number): (i64, i64)| [id, number].map(Value::Int).into_iter().collect::<Params>();
        let found: Vec<Params> = seen.into_iter().map(cells).collect();
        self.echo.add_rows(place, &found, rows)
    }

    fn lose(&mut self) -> Error {
        self.state = ConnectionState::Lost;
        self.queued.clear();
        Error::connection_lost("connection lost (planted)")
    }

    /// Applies the queued commands to the state, as a server would in answering them.
    fn arrive(&mut self, flight: &Flight, rows: &mut Rows) -> Result<Reply, Error> {
        let failed = match flight.outcome {
            Outcome::Served => None,
            Outcome::Failed(ErrorClass::ConnectionLost) => return Err(self.lose()),
            Outcome::Failed(class) => Some(class),
            Outcome::Unheard => {
                // Whether it was done or refused, nobody will know.
                let _ = self.answer(None);
                return Err(self.lose());
            }
            Outcome::Late(class) => {
                let _ = self.answer(None);
                self.lose();
                return Err(planted(class));
            }
        };
        let affected = self.answer(failed).inspect_err(|_| self.echo.forget())?;
        self.echo.answer(rows);
        let result = match self.last.take() {
            // A server reads between the question and the answer.
            Some((place, Want::Rows)) => self.result(place, flight.departed.midpoint(flight.ends), rows),
            _ => None,
        };
        Ok(Reply { affected, result, ..Reply::default() })
    }

    /// Lets the queued commands succeed, or fail with an error of a class; tells how many rows the last one touched.
    fn answer(&mut self, failed: Option<ErrorClass>) -> Result<u64, Error> {
        let mut error = failed.map(planted);
        let affected = matches!(self.queued.last(), Some(Command::Execute(_))).into();
        for command in std::mem::take(&mut self.queued) {
            match (command, &error) {
                (Command::Rollback, _) => self.state = ConnectionState::Idle,
                (Command::Begin | Command::BeginIn(_), None) => self.state = ConnectionState::InTransaction,
                (Command::Commit, None) if self.state == ConnectionState::Failed => {
                    self.state = ConnectionState::Idle;
                    error = Some(Error::not_committed());
                }
                (Command::Commit, None) => {
                    self.state = ConnectionState::Idle;
                    self.server.committed();
                }
                (Command::Execute(_), None) if self.state == ConnectionState::Idle => self.server.committed(),
                (Command::Execute(_), None) if self.state == ConnectionState::Failed => {
                    error = Some(Error::in_failed_transaction());
                }
                (Command::Execute(_), None) => {}
                (_, Some(_)) => {
                    if self.state == ConnectionState::InTransaction {
                        self.state = ConnectionState::Failed;
                    }
                }
            }
        }
        error.map_or(Ok(affected), Err)
    }
}

fn planted(class: ErrorClass) -> Error {
    Error::new(class, "sim", format!("planted {} error", class.name()))
}

impl Drop for SimConnection {
    fn drop(&mut self) {
        self.server.leave();
    }
}

impl Connection for SimConnection {
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        self.queued.push(command);
        self.last = None;
        if let Command::Execute(statement) = command {
            self.last = Some((statement, want));
            self.echoed.clone_from(params);
            if want == Want::Kept {
                self.echo.send(statement, params);
            }
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
        Poll::Ready(self.arrive(&flight, rows))
    }

    fn add(&mut self, statement: &Rc<Statement>, _alone: bool) -> Result<Added, Error> {
        let idle = self.state() != ConnectionState::Waiting;
        Ok(self.echo.learn(statement, idle))
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

/// Tells what the server has counted, and what probes have stored.
struct SimAdmin {
    server: Arc<Server>,
    data: Arc<Data>,
}

impl SimAdmin {
    /// The number of the standing marker, as this endpoint sees it.
    fn standing(&self) -> Table {
        let number = self.data.marker(0, clock::now(), &self.server.view());
        let rows = number.map(|number| vec![Some(number.to_string())]).into_iter().collect();
        Table { columns: vec!["number".to_owned()], rows }
    }

    fn written(&self) -> Table {
        let cells = |(probe, number): (i64, i64)| vec![Some(probe.to_string()), Some(number.to_string())];
        let rows = self.data.written().into_iter().map(cells).collect();
        Table { columns: vec!["probe".to_owned(), "number".to_owned()], rows }
    }
}

impl Admin for SimAdmin {
    /// Understands what is said of the tables of probes. Whatever other SQL it is, gives one row: how many transactions
    /// were committed, how many connections were made, and when the run started, in nanoseconds on the monotonic clock.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        const PROBES: ProbeStatements = Dialect::NONE.probes;
        match sql {
            _ if sql == PROBES.read => return Ok(self.standing()),
            _ if sql == PROBES.written => return Ok(self.written()),
            _ if sql == PROBES.empty || sql == PROBES.drop => self.data.empty(),
            _ => {
                let number = sql.strip_prefix(PROBES.stand).and_then(|rest| rest.strip_suffix(')'));
                if let Some(number) = number.and_then(|number| number.parse().ok()) {
                    self.data.mark(0, Some(number), clock::now());
                }
            }
        }
        let figures = [self.server.commits(), self.server.connections(), self.server.started()];
        Ok(Table {
            columns: ["committed", "connections", "started_ns"].map(str::to_owned).into(),
            rows: vec![figures.map(|figure| Some(figure.to_string())).into()],
        })
    }

    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        NoAdmin.bulk_load(table, columns, rows)
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(vec![("planted".to_owned(), format!("{:?}", self.server.plan()))])
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
        plant("sim://shared?seed=1", "capacity=3&outage=1h+1s").unwrap_err();
        plant("sim://shared?seed=1", "capacity=3&outage=3600s+1s").unwrap();
        let refused = |url: &str, planted: &str| plant(url, planted).unwrap_err().to_string();
        assert!(
            refused("sim://shared?seed=1", "latency=constant(1ms)").contains("capacity, stall and outage")
        );
        assert!(refused("sim://nobody?seed=1", "capacity=3").contains("nobody has opened"));
        drop((one, same));
        assert_eq!(commits(&open("sim://shared?seed=1")), "0", "nobody had kept it");
    }

    #[test]
    fn a_replica_has_the_data_of_its_name() {
        let open = |url: &str| Sim::new(url, &Settings::default()).unwrap();
        let (rw, ro, far) =
            (open("sim://data"), open("sim://data?lag=constant(0s)"), open("sim://data?lag=constant(9s)"));
        let (unnamed, other) = (open("sim://"), open("sim://other"));
        rw.admin().unwrap().query(&format!("{}7)", Dialect::NONE.probes.stand)).unwrap();
        let standing = |sim: &Sim| sim.admin().unwrap().query(Dialect::NONE.probes.read).unwrap().rows;
        let seven = vec![vec![Some("7".to_owned())]];
        assert_eq!((standing(&rw), standing(&ro)), (seven.clone(), seven));
        assert!([&far, &unnamed, &other].iter().all(|sim| standing(sim).is_empty()));
        let wrong = Sim::new("sim://?lag=constant(1ms)", &Settings::default());
        assert!(wrong.is_err_and(|error| error.0.contains("sim://name?lag=")));
    }
}
