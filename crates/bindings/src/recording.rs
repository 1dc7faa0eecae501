//! A trace of what passes through a proxy, recorded as it passes.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use nephoscope_faults::{Copied, Direction, Proxy, copies};
use nephoscope_runtime::{Nanos, clock};
use nephoscope_traces::wire::{Protocol, Recorder, Side, Target, target};
use nephoscope_traces::{Batch, Options};
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::signals::{LOOK, look};
use crate::traces::{Progress, to_python};
use crate::{errors, faults};

/// What passes in this time is taken together: to wake up for every piece costs more than to read it.
const TOGETHER: Duration = Duration::from_millis(2);
const REFUSED: &str = "connections that the server did not take";

/// Adds everything of recordings to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SqlTraceRecorder>()
}

/// Statements, or the end of the recording; and how far it has come.
struct Given {
    batch: Option<Batch>,
    connections: u64,
    left_out: BTreeMap<&'static str, u64>,
}

/// Records what passes through a proxy of its own before a database server, until it is stopped or some seconds are over.
#[pyclass]
pub(crate) struct SqlTraceRecorder {
    address: SocketAddr,
    server: String,
    protocol: &'static Protocol,
    until: Option<Nanos>,
    /// `None` behind the last; given up before the proxy, which may wait for it.
    given: Mutex<Option<Receiver<Given>>>,
    proxy: Mutex<Option<Proxy>>,
    /// Connections that the server did not take.
    refused: u64,
    progress: Progress,
}

#[pymethods]
impl SqlTraceRecorder {
    /// Listens on an address, or else on a free port of 127.0.0.1, and leads to the server of a URL. With `mask` every
    /// value is replaced, with a `database` only its statements are taken. Raises `InputError`.
    #[new]
    fn new(
        py: Python<'_>,
        url: &str,
        listen: Option<&str>,
        mask: bool,
        database: Option<String>,
        seconds: Option<f64>,
    ) -> PyResult<Self> {
        let Target { address: server, protocol } =
            target(url).map_err(|why| errors::input(py, &format!("--from: {why}")))?;
        let (begin, wall) = (clock::now(), clock::wall());
        let options = Options { mask, database };
        let recorder = Recorder::new(protocol, &options, begin, (wall / 1000) as i64)
            .map_err(|why| errors::failed(py, &why))?;
        let (tap, copied) = copies();
        let proxy = faults::start(py, &server, listen, Some(tap))?.map_err(|error| {
            let listen = listen.unwrap_or("127.0.0.1");
            errors::input(py, &format!("listen {listen}: {error}; allowed is a free port of this machine"))
        })?;
        let (give, given) = sync_channel(1);
        thread::Builder::new().name("recorder".to_owned()).spawn(move || record(recorder, &copied, &give))?;
        Ok(Self {
            address: proxy.address(),
            server,
            protocol,
            until: seconds.map(|seconds| clock::now().saturating_add((seconds * 1e9) as Nanos)),
            given: Mutex::new(Some(given)),
            proxy: Mutex::new(Some(proxy)),
            refused: 0,
            progress: Progress { zone: "UTC".to_owned(), ..Progress::default() },
        })
    }

    /// Where clients connect to: `127.0.0.1:port`.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// The server: `host:port`.
    #[getter]
    fn server(&self) -> &str {
        &self.server
    }

    /// What the trace says of itself: its format, the dialect of its statements, how fine its times are (µs).
    #[getter]
    fn kind(&self) -> (&'static str, &'static str, u64) {
        self.protocol.kind
    }

    /// The command of a client that connects to it.
    #[getter]
    fn connect(&self) -> String {
        self.protocol.connect(&self.address())
    }

    /// The next statements as columns, or `None` behind the last, when the recording has ended. What a signal's handler
    /// raises costs no statement: the next call goes on.
    fn next<'py>(&mut self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyDict>>> {
        loop {
            if self.until.is_some_and(|until| until <= clock::now()) {
                self.stop()?;
            }
            let place = self.given.get_mut().unwrap_or_else(PoisonError::into_inner);
            let Some(from) = place.take() else { return Ok(None) };
            let left = self.until.map_or(LOOK, |until| {
                Duration::from_nanos(until.saturating_sub(clock::now())).clamp(Duration::from_millis(1), LOOK)
            });
            let (from, came) = py.detach(move || {
                let came = from.recv_timeout(left);
                (from, came)
            });
            *place = Some(from);
            match came {
                Ok(Given { batch, connections, mut left_out }) => {
                    if self.refused > 0 {
                        left_out.insert(REFUSED, self.refused);
                    }
                    (self.progress.records, self.progress.left_out) = (connections, left_out);
                    match batch {
                        Some(batch) => return to_python(py, &batch).map(Some),
                        None => *place = None,
                    }
                }
                Err(RecvTimeoutError::Timeout) => look(py)?,
                Err(RecvTimeoutError::Disconnected) => {
                    *place = None;
                    return Err(errors::failed(py, "the recorder's thread died; standard error says why"));
                }
            }
        }
    }

    /// Ends the recording, and with it every connection; what was recorded is still to be taken.
    fn stop(&mut self) -> PyResult<()> {
        self.until = None;
        if let Some(proxy) = self.proxy.get_mut().unwrap_or_else(PoisonError::into_inner).take() {
            self.refused = proxy.counters().refused;
            // Its end may wait until somebody has taken what was recorded.
            thread::Builder::new().name("recorder-stop".to_owned()).spawn(move || drop(proxy))?;
        }
        Ok(())
    }

    /// How many connections there were.
    #[getter]
    fn records(&self) -> u64 {
        self.progress.records
    }

    /// The time zone of the recorder's clock.
    #[getter]
    fn zone(&self) -> &str {
        &self.progress.zone
    }

    /// What is not in the trace: why, and how often.
    #[getter]
    fn left_out(&self) -> BTreeMap<&'static str, u64> {
        self.progress.left_out.clone()
    }
}

/// Records until the proxy has ended, or nobody takes statements any more.
fn record(mut recorder: Recorder, from: &Receiver<Copied>, to: &SyncSender<Given>) {
    while let Ok(first) = from.recv() {
        take(&mut recorder, first);
        thread::sleep(TOGETHER);
        while let Ok(next) = from.try_recv() {
            take(&mut recorder, next);
            if !give(&mut recorder, to) {
                return;
            }
        }
    }
    recorder.end();
    if give(&mut recorder, to) {
        // Whoever does not wait for the end needs no word of it.
        let _ = to.send(given(&recorder, None));
    }
}

fn take(recorder: &mut Recorder, Copied { connection, at, bytes }: Copied) {
    match bytes {
        None => recorder.ended(connection),
        Some((Direction::ToServer, bytes)) => recorder.passed(connection, Side::Client, at, &bytes),
        Some((Direction::ToClient, bytes)) => recorder.passed(connection, Side::Server, at, &bytes),
    }
}

/// Gives the statements that are ready; says whether somebody takes them.
fn give(recorder: &mut Recorder, to: &SyncSender<Given>) -> bool {
    while let Some(batch) = recorder.ready() {
        if to.send(given(recorder, Some(batch))).is_err() {
            return false;
        }
    }
    true
}

fn given(recorder: &Recorder, batch: Option<Batch>) -> Given {
    Given { batch, connections: recorder.connections(), left_out: recorder.left_out().clone() }
}
