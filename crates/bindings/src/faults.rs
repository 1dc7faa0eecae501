//! The fault proxy.

use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use nephoscope_faults::{Direction, Faults, Proxy, Tap, parse_schedule, target};
use pyo3::prelude::*;
use serde::Serialize;

use crate::errors;
use crate::signals::beside;

/// A TCP proxy before a database server, whose faults are planned and changed while it runs. It listens on a port of
/// 127.0.0.1 that is free, or on the address given, and leads to the target: `host:port`, or the path of a Unix
/// socket.
///
/// What it does takes effect before the call returns, and the call gives the time at which it did, on the monotonic
/// clock in nanoseconds. `InputError` is raised for what cannot be used, `MeasurementError` for what the system does
/// not allow, or after `close`.
#[pyclass(frozen)]
pub(crate) struct FaultProxy {
    address: SocketAddr,
    proxy: Mutex<Option<Arc<Proxy>>>,
}

#[pymethods]
impl FaultProxy {
    #[new]
    #[pyo3(signature = (target, listen = None))]
    fn new(py: Python<'_>, target: &str, listen: Option<&str>) -> PyResult<Self> {
        let proxy = start(py, target, listen, None)?.map_err(|error| failed(py, &error))?;
        Ok(Self { address: proxy.address(), proxy: Mutex::new(Some(Arc::new(proxy))) })
    }

    /// Where clients connect to: `127.0.0.1:port`. It stays the same.
    #[getter]
    fn address(&self) -> String {
        self.address.to_string()
    }

    /// Replaces the faults by those of a JSON object: see `Faults` of the crate nephoscope-faults.
    fn set(&self, py: Python<'_>, faults: &str) -> PyResult<u64> {
        let faults = Faults::from_json(faults).map_err(|message| errors::input(py, &message))?;
        self.act(py, |proxy| proxy.set(faults))
    }

    /// Plans the faults of the time to come, in place of what was planned before: a JSON list of
    /// `{"at_ns": …, "faults": {…}}`, with times of `monotonic_ns`.
    fn schedule(&self, py: Python<'_>, plan: &str) -> PyResult<()> {
        let plan = parse_schedule(plan).map_err(|message| errors::input(py, &message))?;
        self.act(py, |proxy| proxy.schedule(plan))
    }

    /// Ends every connection, orderly: both sides read the end of the stream.
    fn cut(&self, py: Python<'_>) -> PyResult<u64> {
        self.act(py, Proxy::cut_all)
    }

    /// Resets every connection.
    fn reset(&self, py: Python<'_>) -> PyResult<u64> {
        self.act(py, Proxy::reset_all)
    }

    /// Ends one direction of every connection, `to_server` or `to_client`.
    fn half_close(&self, py: Python<'_>, direction: &str) -> PyResult<u64> {
        let direction = parse_direction(py, direction)?;
        self.act(py, |proxy| proxy.half_close_all(direction))
    }

    /// Puts bytes into every connection, in the direction `to_server` or `to_client`.
    fn inject(&self, py: Python<'_>, direction: &str, data: Vec<u8>) -> PyResult<u64> {
        let direction = parse_direction(py, direction)?;
        self.act(py, |proxy| proxy.inject(direction, data))
    }

    /// Sends new connections to another target; with `cut` those that stand are cut.
    #[pyo3(signature = (target, cut = false))]
    fn set_target(&self, py: Python<'_>, target: &str, cut: bool) -> PyResult<u64> {
        let target = parse_target(py, target)?;
        self.act(py, |proxy| proxy.set_target(target, cut))
    }

    /// Has new connections wait, from then on or no longer; they are counted as `waiting`. Those that wait are connected
    /// to the target of the time at which they need not wait any more.
    fn hold(&self, py: Python<'_>, holds: bool) -> PyResult<u64> {
        self.act(py, |proxy| proxy.hold(holds))
    }

    /// What was done and when it took effect: a JSON list.
    fn events(&self, py: Python<'_>) -> PyResult<String> {
        self.act(py, |proxy| json(&proxy.events()))
    }

    /// How many connections and bytes there were: a JSON object.
    fn counters(&self, py: Python<'_>) -> PyResult<String> {
        self.act(py, |proxy| json(&proxy.counters()))
    }

    /// Closes every connection and gives the port back; harmless if that is done.
    fn close(&self, py: Python<'_>) {
        let proxy = self.proxy.lock().unwrap_or_else(PoisonError::into_inner).take();
        py.detach(|| drop(proxy));
    }
}

impl FaultProxy {
    fn act<T: Send>(&self, py: Python<'_>, act: impl FnOnce(&Proxy) -> io::Result<T> + Send) -> PyResult<T> {
        let proxy = self.proxy.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let proxy = proxy.ok_or_else(|| errors::failed(py, "the proxy is closed"))?;
        let done = py.detach(|| {
            let done = act(&proxy);
            drop(proxy);
            done
        });
        done.map_err(|error| failed(py, &error))
    }
}

/// Starts a proxy; raises what is wrong with its addresses, and gives what the system does not allow.
pub(crate) fn start(
    py: Python<'_>,
    target: &str,
    listen: Option<&str>,
    tap: Option<Box<dyn Tap>>,
) -> PyResult<io::Result<Proxy>> {
    let address = |text: &str| {
        let wrong =
            |why| format!("listen {text:?}: {why}; allowed is an address with a port, as 127.0.0.1:5433");
        text.parse::<SocketAddr>().map_err(|why| errors::input(py, &wrong(why)))
    };
    let listen = listen.map(address).transpose()?;
    let target = parse_target(py, target)?;
    beside(py, "fault-proxy-start", move || Proxy::start_tapped(listen, target, tap))
}

fn parse_target(py: Python<'_>, text: &str) -> PyResult<nephoscope_runtime::Address> {
    let text = text.to_owned();
    // The system's resolver may take its time.
    beside(py, "resolve", move || target(&text))?.map_err(|error| failed(py, &error))
}

fn parse_direction(py: Python<'_>, name: &str) -> PyResult<Direction> {
    Direction::from_name(name).map_err(|message| errors::input(py, &message))
}

fn json(value: &impl Serialize) -> io::Result<String> {
    Ok(serde_json::to_string(value)?)
}

fn failed(py: Python<'_>, error: &io::Error) -> PyErr {
    match error.kind() {
        io::ErrorKind::InvalidInput => errors::input(py, &error.to_string()),
        _ => errors::failed(py, &format!("the fault proxy: {error}")),
    }
}
