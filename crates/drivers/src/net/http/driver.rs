//! The driver of a system behind HTTP: what is the same for all of them.

use std::sync::Arc;

use nephoscope_runtime::Runtime;

use crate::contract::bulk::Admin;
use crate::contract::dialect::Dialect;
use crate::contract::driver::{Connection, Driver, LocalFuture, Settings};
use crate::contract::error::{ConfigError, Error};
use crate::contract::statement::Statement;
use crate::net::entry::Opened;
use crate::net::given::{Lookup, process_environment};
use crate::net::http::endpoint::Endpoint;
use crate::net::http::service::Service;
use crate::net::http::session::HttpSession;

/// A system as a URL and the environment say, read once.
pub(crate) trait System: Sized + Send + Sync + 'static {
    /// A session's side of its protocol.
    type Service: Service + 'static;

    /// What its workloads say.
    const DIALECT: &'static Dialect;

    /// Reads a URL, with the environment for what the URL leaves out.
    fn read(url: &str, environment: Lookup<'_>) -> Result<Self, ConfigError>;

    /// The URL that means the same, without the credentials: for logs and manifests.
    fn redacted(&self) -> String;

    /// Where it is.
    fn endpoint(&self) -> &Arc<Endpoint>;

    /// Begins a session.
    fn service(self: &Arc<Self>, settings: &Settings) -> Self::Service;

    /// Makes the connection for set-up, loading and checks.
    fn admin(self: &Arc<Self>, settings: &Settings) -> Result<Box<dyn Admin>, Error>;
}

struct HttpDriver<S> {
    system: Arc<S>,
    settings: Settings,
}

/// Reads a URL of a system, and with it the environment.
pub(crate) fn open<S: System>(url: &str, settings: &Settings) -> Opened {
    settings.refuse_on_connect(S::Service::NAME)?;
    let system = Arc::new(S::read(url, &process_environment)?);
    Ok(Arc::new(HttpDriver { system, settings: settings.clone() }))
}

impl<S: System> Driver for HttpDriver<S> {
    fn name(&self) -> &'static str {
        S::DIALECT.name
    }

    fn dialect(&self) -> &'static Dialect {
        S::DIALECT
    }

    fn redacted_url(&self) -> String {
        self.system.redacted()
    }

    fn connect<'a>(
        &'a self,
        runtime: &'a Runtime,
        statements: &'a Arc<[Statement]>,
    ) -> LocalFuture<'a, Result<Box<dyn Connection>, Error>> {
        Box::pin(async move {
            let (service, timeout) = (self.system.service(&self.settings), self.settings.connect_timeout);
            let session =
                HttpSession::connect(runtime, service, self.system.endpoint(), statements, timeout).await?;
            Ok(Box::new(session) as Box<dyn Connection>)
        })
    }

    fn admin(&self) -> Result<Box<dyn Admin>, Error> {
        self.system.admin(&self.settings)
    }
}
