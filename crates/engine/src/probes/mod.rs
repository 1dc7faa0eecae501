//! Probes: light, timed measurements beside the load, on a thread and with connections of their own, so that the load
//! never waits for them nor they for the load.
//!
//! [`Probes::start`] connects and begins; [`Probes::next`] gives [`Sample`]s while they go on.
//!
//! * `availability`: whether an endpoint serves, at a fixed rate.
//! * `consistency`: how stale reads are, and which guarantees of a session they break.
//! * `lag`: how long a change takes to be seen on the replicas; `marker`: what is changed; `replica`: who looks for it.
//! * `lane`: their connections; `sample`: what they find; `spec`: what they are asked to do.

mod availability;
mod consistency;
mod lag;
mod lane;
mod marker;
mod replica;
mod sample;
#[cfg(feature = "simulated-time")]
mod simulation;
mod spec;

use std::future::{Future as _, poll_fn};
use std::pin::pin;
use std::rc::Rc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::task::Poll;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use nephoscope_drivers::{Driver, Error, Settings};
use nephoscope_runtime::clock::{self, MILLISECOND, Nanos, SECOND};
use nephoscope_runtime::mailbox::{self, mailbox};
use nephoscope_runtime::{Io, Runtime};

use crate::error::{EngineError, GiveUp};
use crate::lock::lock;
use crate::spec::Role;
use crate::waits::Event;
use availability::Prober;
use consistency::ConsistencyProbe;
use lag::LagProbe;
use lane::Endpoint;
use sample::Journal;

pub use sample::{Check, Count, Findings, Kind, Legend, Outcome, Sample};
#[cfg(feature = "simulated-time")]
pub use simulation::simulate;
pub use spec::{AvailabilitySpec, ConsistencySpec, EndpointSpec, LagSpec, ProbesSpec, ReadFrom, Routing};

/// How often whoever starts them is asked whether to give up.
const LOOK: Duration = Duration::from_millis(100);
/// How often samples are handed over.
const HAND_OVER: Nanos = 100 * MILLISECOND;
/// How much longer than a probe's limit the end may take.
const END: Nanos = 2 * SECOND;

/// Probes that are going on.
pub struct Probes {
    legend: Legend,
    samples: Mutex<Receiver<Findings>>,
    stop: mailbox::Sender<()>,
    thread: Mutex<Option<JoinHandle<()>>>,
    /// Why their thread has ended by itself.
    failure: Arc<OnceLock<String>>,
    /// How long dropping them waits for their thread.
    patience: Duration,
}

impl Probes {
    /// Starts probes: checks them, connects, and returns when they have begun.
    ///
    /// An [`EngineError::Input`] comes before any endpoint is touched; [`EngineError::Failed`] when an endpoint cannot
    /// be used.
    pub fn start(spec: &ProbesSpec) -> Result<Self, EngineError> {
        Self::start_unless(spec, &mut || false)
    }

    /// As [`Probes::start`]; where `give_up` says so before they have begun, they never do.
    pub fn start_unless(spec: &ProbesSpec, give_up: GiveUp<'_>) -> Result<Self, EngineError> {
        let (setup, samples, stop) = prepare(spec)?;
        let (legend, failure) = (setup.legend.clone(), Arc::clone(&setup.failure));
        let patience = Duration::from_nanos(spec.limit() + 2 * END);
        let (report, reports) = channel();
        let thread = std::thread::Builder::new()
            .name("probes".to_owned())
            .spawn(move || run(setup, &report))
            .map_err(|error| EngineError::Failed(format!("no thread for the probes: {error}")))?;
        let failed = |message: &str| Err(EngineError::Failed(message.to_owned()));
        loop {
            match reports.recv_timeout(LOOK) {
                Ok(report) => break report?,
                Err(RecvTimeoutError::Disconnected) => {
                    return failed("the probes' thread died before it began");
                }
                // The thread finds that nobody listens when its connections are made, within their limits.
                Err(RecvTimeoutError::Timeout) if give_up() => return failed("interrupted"),
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
        let (samples, thread) = (Mutex::new(samples), Mutex::new(Some(thread)));
        Ok(Self { legend, samples, stop, thread, failure, patience })
    }

    /// What samples are written with.
    #[must_use]
    pub fn legend(&self) -> &Legend {
        &self.legend
    }

    /// What was found next; `None` if that is nothing within the time, or nothing any more.
    pub fn next(&self, timeout: Duration) -> Result<Option<Findings>, EngineError> {
        match lock(&self.samples).recv_timeout(timeout) {
            Ok(samples) => Ok(Some(samples)),
            Err(RecvTimeoutError::Timeout) => Ok(None),
            Err(RecvTimeoutError::Disconnected) => match self.failure.get() {
                Some(why) => Err(EngineError::Failed(format!("probes: {why}"))),
                // Else the thread ends when it is told to.
                None if lock(&self.thread).is_none() => Ok(None),
                None => {
                    Err(EngineError::Failed("the probes' thread died; standard error says why".to_owned()))
                }
            },
        }
    }

    /// Ends the probes. Those on their way are waited for, within their limits; [`Probes::next`] goes on to give what
    /// there is.
    pub fn stop(&self) {
        self.stop_unless(&mut || false);
    }

    /// As [`Probes::stop`]; waits no more where `give_up` says so.
    pub fn stop_unless(&self, give_up: GiveUp<'_>) {
        // Taken first: a reader who finds that there will be no more samples is to know that this is the end.
        let Some(thread) = lock(&self.thread).take() else { return };
        self.stop.send(());
        let mut asked = Instant::now();
        while !thread.is_finished() {
            std::thread::sleep(Duration::from_millis(1));
            if asked.elapsed() >= LOOK {
                if give_up() {
                    return;
                }
                asked = Instant::now();
            }
        }
        // A thread that panicked has said so on standard error.
        let _ = thread.join();
    }
}

impl Drop for Probes {
    /// Waits for the thread, but not for ever: one that does not end is left behind.
    fn drop(&mut self) {
        let until = Instant::now() + self.patience;
        self.stop_unless(&mut || Instant::now() >= until);
    }
}

/// What the probes' thread is made with.
struct Setup {
    spec: ProbesSpec,
    drivers: Vec<Arc<dyn Driver>>,
    legend: Legend,
    io: Io,
    samples: Sender<Findings>,
    stop: mailbox::Receiver<()>,
    failure: Arc<OnceLock<String>>,
}

type Prepared = (Setup, Receiver<Findings>, mailbox::Sender<()>);

/// Checks what is asked for, and opens the endpoints.
fn prepare(spec: &ProbesSpec) -> Result<Prepared, EngineError> {
    let io = spec.check()?;
    let connect_timeout = spec.limit().max(spec::FIRST_CONNECTION);
    let (on_connect, consistency) = (spec.on_connect.clone(), spec.level.clone());
    let settings = Settings { connect_timeout, on_connect, consistency, ..Settings::default() };
    let mut drivers = Vec::new();
    for endpoint in &spec.endpoints {
        let driver = nephoscope_drivers::open(&endpoint.url, &settings)?;
        let can = &driver.dialect().capabilities;
        // Registers are rows by a key: they need no SQL.
        let has_registers = can.stores && !can.sql && spec.availability.is_none() && spec.lag.is_none();
        if !can.probes && !has_registers {
            let message = format!("probes need a database, and {} is none", driver.redacted_url());
            return Err(EngineError::Input(message));
        }
        drivers.push(driver);
    }
    let legend = Legend {
        origin: spec.origin_ns,
        endpoints: spec.endpoints.iter().map(|endpoint| (endpoint.role, endpoint.node.clone())).collect(),
    };
    let (sender, samples) = channel();
    let (stop, stopped) = mailbox();
    let (spec, failure) = (spec.clone(), Arc::default());
    let setup = Setup { spec, drivers, legend, io, samples: sender, stop: stopped, failure };
    Ok((setup, samples, stop))
}

type Report = Result<(), EngineError>;

fn run(setup: Setup, report: &Sender<Report>) {
    match Runtime::with_io(setup.io) {
        Ok(runtime) => {
            // What a probe takes is counted from when it was sent, and the load has better use for the processor.
            runtime.let_timers_be_late();
            runtime.block_on(life(&runtime, setup, report));
            runtime.shut_down();
        }
        Err(error) => {
            let message = format!("no runtime for the probes: {error}");
            // Whoever started the probes waits for this.
            let _ = report.send(Err(EngineError::Failed(message)));
        }
    }
}

/// Everything that probes do, from the first connection to the last sample.
async fn life(runtime: &Runtime, mut setup: Setup, report: &Sender<Report>) {
    let team = Team::new(runtime, &mut setup);
    if let Err(error) = team.get_ready(&setup.legend).await {
        let _ = report.send(Err(error));
        return;
    }
    if report.send(Ok(())).is_err() {
        return;
    }
    team.begin(runtime);
    match stopped(runtime, &mut setup.stop).await {
        None => team.end(runtime).await,
        // What they would tell from now on is not the system's doing.
        Some(why) => drop(setup.failure.set(why)),
    }
}

/// Waits until the probes are told to stop; gives the reason where they cannot go on.
async fn stopped(runtime: &Runtime, stop: &mut mailbox::Receiver<()>) -> Option<String> {
    loop {
        let mut sleep = pin!(runtime.sleep_until(clock::now() + HAND_OVER));
        let is_told = poll_fn(|cx| match stop.poll_receive(cx) {
            Poll::Ready(_) => Poll::Ready(true),
            Poll::Pending => sleep.as_mut().poll(cx).map(|()| false),
        });
        if is_told.await {
            return None;
        }
        if let Some(why) = runtime.failure() {
            return Some(why.to_string());
        }
    }
}

/// The probes of one thread.
struct Team {
    probers: Vec<Rc<Prober>>,
    lag: Option<Rc<LagProbe>>,
    consistency: Option<Rc<ConsistencyProbe>>,
    journal: Rc<Journal>,
    rate: f64,
    limit: Nanos,
    over: Rc<Event>,
}

impl Team {
    fn new(runtime: &Runtime, setup: &mut Setup) -> Self {
        let journal = Rc::new(Journal::new(setup.samples.clone()));
        let Setup { spec, drivers, .. } = setup;
        let endpoint = |(index, driver)| Rc::new(Endpoint { index, driver });
        let endpoints: Vec<Rc<Endpoint>> = drivers.drain(..).enumerate().map(endpoint).collect();
        let role = |endpoint: &Endpoint| spec.endpoints[endpoint.index].role;
        let prober = |spec| {
            let new = |endpoint: &Rc<Endpoint>| {
                Rc::new(Prober::new(runtime, endpoint, role(endpoint), spec, &journal))
            };
            endpoints.iter().map(new).collect()
        };
        let probers = spec.availability.map_or_else(Vec::new, prober);
        let replicas: Vec<Rc<Endpoint>> =
            endpoints.iter().filter(|endpoint| role(endpoint) == Role::Ro).cloned().collect();
        let primary = endpoints.iter().find(|endpoint| role(endpoint) == Role::Rw);
        let lag = spec.lag.zip(primary).map(|(lag, primary)| {
            Rc::new(LagProbe::new(runtime, primary, &replicas, lag, spec.seed, &journal))
        });
        let consistency = spec.consistency.zip(primary).map(|(of, primary)| {
            let read: Vec<Rc<Endpoint>> = match of.read_from {
                ReadFrom::Ro => replicas.clone(),
                ReadFrom::Rw => vec![Rc::clone(primary)],
                ReadFrom::All => [primary].into_iter().chain(&replicas).cloned().collect(),
            };
            Rc::new(ConsistencyProbe::new(runtime, primary, &read, of, spec.seed, &journal))
        });
        let availability = spec.availability.unwrap_or_default();
        Self {
            probers,
            lag,
            consistency,
            journal: Rc::clone(&journal),
            rate: availability.rate,
            limit: spec.limit(),
            over: Rc::default(),
        }
    }

    async fn get_ready(&self, legend: &Legend) -> Result<(), EngineError> {
        let failed = |node: &str, error: &Error| EngineError::Failed(format!("probes of {node}: {error}"));
        for (prober, (_, node)) in self.probers.iter().zip(&legend.endpoints) {
            prober.get_ready().await.map_err(|error| failed(node, &error))?;
        }
        if let Some(lag) = &self.lag {
            lag.get_ready().await.map_err(|error| failed("lag", &error))?;
        }
        if let Some(consistency) = &self.consistency {
            consistency.get_ready().await.map_err(|error| failed("consistency", &error))?;
        }
        Ok(())
    }

    fn begin(&self, runtime: &Runtime) {
        let period = (SECOND as f64 / self.rate) as Nanos;
        let start = clock::now() + period;
        for (index, prober) in self.probers.iter().enumerate() {
            // Side by side, so that no probe waits for another's.
            let start = start + period * index as Nanos / self.probers.len() as Nanos;
            runtime.spawn(Rc::clone(prober).pace(start));
        }
        if let Some(lag) = &self.lag {
            runtime.spawn(Rc::clone(lag).run());
        }
        if let Some(consistency) = &self.consistency {
            consistency.begin();
        }
        let (journal, over, of_task) = (Rc::clone(&self.journal), Rc::clone(&self.over), runtime.clone());
        runtime.spawn(async move {
            while !over.has_happened() {
                over.wait_until(&of_task, clock::now() + HAND_OVER).await;
                journal.hand_over();
            }
        });
    }

    /// Waits for what is on its way.
    async fn end(&self, runtime: &Runtime) {
        self.probers.iter().for_each(|prober| prober.stop());
        if let Some(lag) = &self.lag {
            lag.stop();
        }
        if let Some(consistency) = &self.consistency {
            consistency.stop();
        }
        let deadline = clock::now() + self.limit + END;
        while !self.is_idle() && clock::now() < deadline {
            runtime.sleep_until(clock::now() + MILLISECOND).await;
        }
        if let Some(consistency) = &self.consistency {
            consistency.end(deadline).await;
        }
        self.over.happen();
        self.journal.hand_over();
    }

    fn is_idle(&self) -> bool {
        self.probers.iter().all(|prober| prober.is_idle())
            && self.lag.iter().all(|lag| lag.is_idle())
            && self.consistency.iter().all(|consistency| consistency.is_idle())
    }
}
