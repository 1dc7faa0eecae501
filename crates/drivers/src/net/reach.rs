//! How a connection to one of several hosts is tried: addresses, shares of the time limit, TLS, and what a failure
//! comes to.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use nephoscope_runtime::clock::{self, Nanos};
use nephoscope_runtime::{Address, Runtime, Stream};

use crate::contract::error::{Error, ErrorClass};
use crate::net::channel::Channel;
use crate::net::resolve::Resolver;
use crate::net::settings::{Host, HostAddress};
use crate::net::tls::TlsConnector;

/// Every address of a host, in the order in which they are tried.
pub(crate) async fn addresses(
    resolver: &Resolver,
    runtime: &Runtime,
    host: &Host,
    deadline: Nanos,
) -> Result<Vec<Address>, Error> {
    Ok(match &host.address {
        HostAddress::Unix(path) => vec![Address::Unix(path.clone())],
        HostAddress::Ip(ip) => vec![Address::Tcp((*ip, host.port).into())],
        HostAddress::Name(name) => {
            let found = resolver.resolve(runtime, name, deadline).await;
            let found = found.map_err(|why| Error::connection_lost(format!("host {name:?}: {why}")))?;
            found.into_iter().map(|ip| Address::Tcp((ip, host.port).into())).collect()
        }
    })
}

/// Performs the TLS handshake with a host. An error says why in the words of an administrator.
pub(crate) async fn encrypt(stream: Stream, connector: &TlsConnector, host: &Host) -> Result<Channel, Error> {
    let session = connector.start(host)?;
    Channel::encrypt(stream, session).await.map_err(|error| {
        match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
            Some(tls) => connector.explain(tls, host),
            None => Error::from(error).context(&format!("TLS with {host}")),
        }
    })
}

/// A TCP connection that did not come about.
pub(crate) fn refused(error: &io::Error, host: &Host, deadline: Nanos) -> Error {
    if error.kind() == io::ErrorKind::TimedOut || clock::now() >= deadline {
        return Error::connection_lost(format!("{host} did not answer within the time limit"));
    }
    Error::connection_lost(format!("{host}: {error}"))
}

/// While a connection is made, a time-out means that there is none.
pub(crate) fn timed_out(error: Error, host: &Host) -> Error {
    if is_time_out(&error) {
        return Error::connection_lost(format!(
            "{host} accepted the connection and did not answer within the time limit"
        ));
    }
    error
}

/// The same for what is run first on a connection.
pub(crate) fn not_in_time(error: Error) -> Error {
    if is_time_out(&error) { Error::connection_lost(error.message()) } else { error }
}

/// Whether it is the driver's own limit that was reached, and not one of the server's.
pub(crate) fn is_time_out(error: &Error) -> bool {
    error.class() == ErrorClass::StatementTimeout && error.code().is_empty()
}

/// The time limit of the next of several attempts that have to be over by a deadline.
pub(crate) fn share(deadline: Nanos, attempts: usize) -> Nanos {
    let now = clock::now();
    now.saturating_add(deadline.saturating_sub(now) / attempts.max(1) as Nanos)
}

/// The hosts in their order, beginning with another one each time: connections are spread over them.
pub(crate) fn turned<'h>(hosts: &'h [Host], asked: &AtomicUsize) -> Vec<&'h Host> {
    beginning_with(hosts, asked.fetch_add(1, Ordering::Relaxed) % hosts.len().max(1))
}

/// The hosts in their order, beginning with the one at a place.
pub(crate) fn beginning_with(hosts: &[Host], place: usize) -> Vec<&Host> {
    let (before, after) = hosts.split_at(place.min(hosts.len()));
    after.iter().chain(before).collect()
}

pub(crate) fn shuffle(hosts: &mut [&Host]) {
    // Connections should differ; the run's own repeatability does not depend on it.
    let mut state = clock::now();
    for last in (1..hosts.len()).rev() {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        hosts.swap(last, (state >> 33) as usize % (last + 1));
    }
}

/// How the hosts of an endpoint are tried, one after the other.
pub(crate) struct Way<'a> {
    pub(crate) runtime: &'a Runtime,
    pub(crate) resolver: &'a Resolver,
    pub(crate) tls: Option<&'a TlsConnector>,
    /// The longest that one host may take; `None` is without a limit of its own.
    pub(crate) host_timeout: Option<Duration>,
}

impl Way<'_> {
    /// Connects to the first host at which `greet` succeeds. The hosts share the time that is left. An error that
    /// `is_final` is not tried at another host: a user whom one server has refused.
    pub(crate) async fn first<'h, L>(
        &self,
        hosts: impl ExactSizeIterator<Item = &'h Host>,
        deadline: Nanos,
        greet: impl AsyncFn(Channel, &Host) -> Result<L, Error>,
        is_final: impl Fn(&Error) -> bool,
    ) -> Result<L, Error> {
        let (count, mut last) = (hosts.len(), None);
        for (tried, host) in hosts.enumerate() {
            match self.host(host, share(deadline, count - tried), &greet).await {
                Ok(link) => return Ok(link),
                Err(error) if is_final(&error) => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost("there is no host to connect to")))
    }

    async fn host<L>(
        &self,
        host: &Host,
        deadline: Nanos,
        greet: &impl AsyncFn(Channel, &Host) -> Result<L, Error>,
    ) -> Result<L, Error> {
        let own = self.host_timeout.map_or(Nanos::MAX, |time| time.as_nanos() as Nanos);
        let deadline = deadline.min(clock::now().saturating_add(own));
        let (addresses, mut last) =
            (self::addresses(self.resolver, self.runtime, host, deadline).await?, None);
        for (tried, address) in addresses.iter().enumerate() {
            let deadline = share(deadline, addresses.len() - tried);
            let greeted = async {
                let stream = Stream::connect(self.runtime, address, deadline).await;
                let stream = stream.map_err(|error| refused(&error, host, deadline))?;
                let channel = match self.tls.filter(|_| !host.is_unix()) {
                    Some(connector) => encrypt(stream, connector, host).await?,
                    None => Channel::Plain(stream),
                };
                greet(channel, host).await.map_err(|error| error.context(&host.to_string()))
            };
            match greeted.await {
                Ok(link) => return Ok(link),
                Err(error) => last = Some(timed_out(error, host)),
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost(format!("{host} has no address"))))
    }
}
