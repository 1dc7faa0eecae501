//! Requests outside the measured load.

use std::sync::Arc;

use nephoscope_runtime::clock;
use nephoscope_runtime::{Nanos, Runtime};

use crate::contract::driver::Settings;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::interrupt::Interrupt;
use crate::net::http::client::Client;
use crate::net::http::endpoint::Endpoint;
use crate::net::http::request::Method;
use crate::net::http::response::{Limits, Response};

/// Makes requests over one connection at a time, which is kept.
pub struct Caller {
    runtime: Runtime,
    endpoint: Arc<Endpoint>,
    client: Option<Client>,
}

impl Caller {
    /// A caller of a service, which connects when it is first used.
    #[must_use]
    pub fn new(runtime: &Runtime, endpoint: &Arc<Endpoint>) -> Self {
        Self { runtime: runtime.clone(), endpoint: Arc::clone(endpoint), client: None }
    }

    /// What the header `Host` says.
    #[must_use]
    pub fn authority(&self) -> &str {
        self.endpoint.authority()
    }

    /// Connects anew, within the deadline.
    pub async fn connect(&mut self, deadline: Nanos) -> Result<(), Error> {
        let limits = Limits::default();
        self.client = Some(Client::connect(&self.runtime, &self.endpoint, limits, deadline).await?);
        Ok(())
    }

    /// Makes a request of a method, which `write` writes; one whose connection the server has closed meanwhile is made
    /// once more, on a new one. So only what may be done twice is to be asked for. A status of failure is a response.
    pub async fn call(
        &mut self,
        method: Method,
        write: impl Fn(&mut Vec<u8>) -> Result<(), Error>,
        deadline: Nanos,
    ) -> Result<Response, Error> {
        for last in [false, true] {
            let reused = match self.client.as_mut().map(Client::is_usable) {
                Some(true) => true,
                _ => {
                    self.connect(deadline).await?;
                    false
                }
            };
            match self.exchange(method, &write, deadline).await {
                Err(error) if reused && !last && error.class() == ErrorClass::ConnectionLost => {
                    self.client = None;
                }
                other => return other,
            }
        }
        Err(Error::connection_lost("the server closes every connection"))
    }

    async fn exchange(
        &mut self,
        method: Method,
        write: impl Fn(&mut Vec<u8>) -> Result<(), Error>,
        deadline: Nanos,
    ) -> Result<Response, Error> {
        let Some(client) = &mut self.client else { return Err(Error::connection_lost("there is none")) };
        write(client.out())?;
        client.wait(method, deadline).await
    }
}

impl AsMut<Caller> for Caller {
    fn as_mut(&mut self) -> &mut Self {
        self
    }
}

/// A caller that blocks, on a runtime of its own: what set-up connections are made of.
pub(crate) struct Blocking<C = Caller> {
    runtime: Runtime,
    caller: C,
    interrupt: Interrupt,
    pub(crate) answer_timeout: Nanos,
}

impl<C: AsMut<Caller>> Blocking<C> {
    /// Connects; `made_of` makes the system's own caller of a plain one.
    pub(crate) fn connect(
        endpoint: &Arc<Endpoint>,
        settings: &Settings,
        made_of: impl FnOnce(Caller) -> C,
    ) -> Result<Self, Error> {
        let (runtime, interrupt) = (Runtime::new()?, settings.interrupt.clone());
        let mut caller = made_of(Caller::new(&runtime, endpoint));
        let deadline = clock::now().saturating_add(settings.connect_timeout);
        runtime.block_on(interrupt.or(caller.as_mut().connect(deadline)))?;
        Ok(Self { runtime, caller, interrupt, answer_timeout: settings.answer_timeout })
    }

    /// Does something with the caller, within the time of an answer, until it is done or interrupted.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut C, &Runtime, Nanos) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = clock::now().saturating_add(self.answer_timeout);
        let Self { runtime, caller, interrupt, .. } = self;
        runtime.block_on(interrupt.or(work(caller, runtime, deadline)))
    }
}
