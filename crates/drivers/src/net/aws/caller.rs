//! Signed requests over one connection at a time.

use std::sync::Arc;

use nephoscope_runtime::clock::{self, SECOND};
use nephoscope_runtime::{Nanos, Runtime};

use crate::contract::driver::Settings;
use crate::contract::error::{Error, ErrorClass};
use crate::contract::interrupt::Interrupt;
use crate::net::http::{Client, Endpoint, Limits, Response};
use crate::net::sigv4::{Signer, Unsigned};

/// Makes signed requests over a connection that is kept.
pub struct Caller {
    runtime: Runtime,
    endpoint: Arc<Endpoint>,
    signer: Signer,
    client: Option<Client>,
}

impl Caller {
    /// A caller of a service, which connects when it is first used.
    #[must_use]
    pub fn new(runtime: &Runtime, endpoint: &Arc<Endpoint>, signer: Signer) -> Self {
        Self { runtime: runtime.clone(), endpoint: Arc::clone(endpoint), signer, client: None }
    }

    /// Connects anew, within the deadline.
    pub async fn connect(&mut self, deadline: Nanos) -> Result<(), Error> {
        let limits = Limits::default();
        self.client = Some(Client::connect(&self.runtime, &self.endpoint, limits, deadline).await?);
        Ok(())
    }

    /// Signs and makes a request, the header `Host` added; one whose connection the server has closed meanwhile is made
    /// once more, on a new one. So only what may be done twice is to be asked for. A status of failure is a response.
    pub async fn call(&mut self, request: &Unsigned<'_>, deadline: Nanos) -> Result<Response, Error> {
        for last in [false, true] {
            let reused = match self.client.as_mut().map(Client::is_usable) {
                Some(true) => true,
                _ => {
                    self.connect(deadline).await?;
                    false
                }
            };
            match self.exchange(request, deadline).await {
                Err(error) if reused && !last && error.class() == ErrorClass::ConnectionLost => {
                    self.client = None;
                }
                other => return other,
            }
        }
        Err(Error::connection_lost("the server closes every connection"))
    }

    async fn exchange(&mut self, request: &Unsigned<'_>, deadline: Nanos) -> Result<Response, Error> {
        let Some(client) = &mut self.client else { return Err(Error::connection_lost("there is none")) };
        let mut headers = vec![("Host", self.endpoint.authority())];
        headers.extend_from_slice(request.headers);
        let unsigned = Unsigned { headers: &headers, ..*request };
        self.signer.write(&unsigned, clock::wall() / SECOND, client.out())?;
        client.wait(request.method, deadline).await
    }
}

/// A caller that blocks, on a runtime of its own: what set-up connections are made of.
pub(crate) struct Blocking {
    pub(crate) runtime: Runtime,
    pub(crate) caller: Caller,
    interrupt: Interrupt,
    pub(crate) answer_timeout: Nanos,
}

impl Blocking {
    /// Connects.
    pub(crate) fn connect(
        endpoint: &Arc<Endpoint>,
        signer: Signer,
        settings: &Settings,
    ) -> Result<Self, Error> {
        let (runtime, interrupt) = (Runtime::new()?, settings.interrupt.clone());
        let mut caller = Caller::new(&runtime, endpoint, signer);
        let deadline = clock::now().saturating_add(settings.connect_timeout);
        runtime.block_on(interrupt.or(caller.connect(deadline)))?;
        Ok(Self { runtime, caller, interrupt, answer_timeout: settings.answer_timeout })
    }

    /// When a question that is asked now has to be answered.
    pub(crate) fn deadline(&self) -> Nanos {
        clock::now().saturating_add(self.answer_timeout)
    }

    /// Does something with the caller, until it is done or interrupted.
    pub(crate) fn run<T>(
        &mut self,
        work: impl AsyncFnOnce(&mut Caller, &Runtime, Nanos) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let deadline = self.deadline();
        let Self { runtime, caller, interrupt, .. } = self;
        runtime.block_on(interrupt.or(work(caller, runtime, deadline)))
    }
}
