//! How a connection is made: addresses, TLS, authentication, the right kind of server (manual, sections 53.2.1
//! "Start-up" and 53.2.10 "SSL Session Encryption"; libpq's rules for several hosts).

use std::sync::Arc;

use nephoscope_runtime::clock::{self, Nanos, SECOND};
use nephoscope_runtime::{Address, Runtime, Stream};

use crate::contract::error::{Error, ErrorClass};
use crate::net::channel::Channel;
use crate::net::frame::make_room;
use crate::net::reach::{self, refused, share, shuffle, timed_out};
use crate::net::resolve::Resolver;
use crate::net::session::Cancel;
use crate::net::settings::{Host, SslMode};
use crate::net::tls::TlsConnector;
use crate::postgres::auth::{Authentication, Progress, Transport};
use crate::postgres::config::{Config, LoadBalance, SslNegotiation, TargetSessionAttrs};
use crate::postgres::wire::{self, Frame};

/// Protocol version 3.0.
const VERSION: u32 = 196_608;
const SSL_REQUEST: u32 = 80_877_103;
const CANCEL_REQUEST: u32 = 80_877_102;
/// How many bytes a server may send before it is ready for queries.
const MOST_GREETINGS: usize = 1 << 20;
/// How long a request to cancel may take to deliver.
const CANCEL_TIMEOUT: Nanos = SECOND;

/// A server, or several of which one will do, and how to reach it.
pub(crate) struct Endpoint {
    pub(crate) config: Config,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) timeout: Nanos,
    pub(crate) resolver: Resolver,
}

/// A connection that is ready for queries.
pub(crate) struct Established {
    pub(crate) channel: Channel,
    pub(crate) cancel_key: CancelKey,
    /// What the server reports of itself: `server_version`, `in_hot_standby` …
    pub(crate) parameters: Vec<(String, String)>,
    /// The transaction status with which it was last ready.
    pub(crate) status: u8,
    /// How many bytes the server has sent before it was ready.
    greeting: usize,
}

/// What it takes to cancel a statement of a connection, from another one.
pub(crate) struct CancelKey {
    endpoint: Arc<Endpoint>,
    host: Host,
    address: Address,
    encrypted: bool,
    process: u32,
    secret: Vec<u8>,
}

impl Cancel for CancelKey {
    /// Says nothing of the outcome, for the server does not.
    async fn cancel(&self, runtime: &Runtime) {
        if let Err(error) = self.deliver(runtime).await {
            tracing::debug!(%error, "a request to cancel could not be delivered");
        }
    }
}

impl CancelKey {
    async fn deliver(&self, runtime: &Runtime) -> Result<(), Error> {
        let deadline = clock::now() + CANCEL_TIMEOUT;
        let stream = Stream::connect(runtime, &self.address, deadline).await?;
        let mut channel = self.endpoint.secure(stream, &self.host, self.encrypted).await?;
        let out = channel.out();
        out.extend_from_slice(&(12 + self.secret.len() as u32).to_be_bytes());
        out.extend_from_slice(&CANCEL_REQUEST.to_be_bytes());
        out.extend_from_slice(&self.process.to_be_bytes());
        out.extend_from_slice(&self.secret);
        channel.flush().await?;
        // The server closes the connection when it has passed the request on.
        let _ = channel.fill().await;
        Ok(())
    }
}

impl Endpoint {
    /// When a connection that is begun now has to be there.
    pub(crate) fn deadline(&self) -> Nanos {
        clock::now().saturating_add(self.timeout)
    }

    /// Connects to the first host that will do. The hosts share the time that is left.
    pub(crate) async fn establish(
        self: &Arc<Self>,
        runtime: &Runtime,
        deadline: Nanos,
    ) -> Result<Established, Error> {
        let mut hosts: Vec<&Host> = self.config.hosts.iter().collect();
        if self.config.load_balance == LoadBalance::Random {
            shuffle(&mut hosts);
        }
        // With prefer-standby a second round takes what there is.
        let rounds: &[TargetSessionAttrs] = match self.config.target_session_attrs {
            TargetSessionAttrs::PreferStandby => &[TargetSessionAttrs::Standby, TargetSessionAttrs::Any],
            ref one => std::slice::from_ref(one),
        };
        let mut last = None;
        let mut left = rounds.len() * hosts.len();
        for wanted in rounds {
            for host in &hosts {
                match self.try_host(runtime, host, *wanted, share(deadline, left)).await {
                    Ok(established) => return Ok(established),
                    // As with libpq: a user whom one server has refused is not tried at another.
                    Err(error) if error.code().starts_with("28") => return Err(error),
                    Err(error) => last = Some(error),
                }
                left -= 1;
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost("there is no host to connect to")))
    }

    async fn try_host(
        self: &Arc<Self>,
        runtime: &Runtime,
        host: &Host,
        wanted: TargetSessionAttrs,
        deadline: Nanos,
    ) -> Result<Established, Error> {
        let own = self.config.connect_timeout.map_or(Nanos::MAX, |time| time.as_nanos() as Nanos);
        let deadline = deadline.min(clock::now().saturating_add(own));
        let mut last = None;
        let addresses = reach::addresses(&self.resolver, runtime, host, deadline).await?;
        for (tried, address) in addresses.iter().enumerate() {
            let deadline = share(deadline, addresses.len() - tried);
            match self.try_address(runtime, host, address, deadline).await {
                Ok(mut established) => match check_server(&mut established, host, wanted).await {
                    Ok(()) => return Ok(established),
                    Err(error) => last = Some(error),
                },
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost(format!("{host} has no address"))))
    }

    /// Connects with TLS or without, and the other way where the mode allows and the first was refused.
    async fn try_address(
        self: &Arc<Self>,
        runtime: &Runtime,
        host: &Host,
        address: &Address,
        deadline: Nanos,
    ) -> Result<Established, Error> {
        let mode = if host.is_unix() { SslMode::Disable } else { self.config.tls.mode };
        let ways: &[bool] = match mode {
            SslMode::Disable => &[false],
            SslMode::Allow => &[false, true],
            SslMode::Prefer => &[true, false],
            SslMode::Require | SslMode::VerifyCa | SslMode::VerifyFull => &[true],
        };
        let mut last = None;
        for encrypted in ways {
            let stream = match Stream::connect(runtime, address, deadline).await {
                Ok(stream) => stream,
                Err(error) => return Err(last.unwrap_or_else(|| refused(&error, host, deadline))),
            };
            match self.log_in(stream, host, address, *encrypted).await {
                Ok(established) => return Ok(established),
                // A password is not tried twice; TLS, or its lack, may be what the server minds.
                Err(error) if error.class() == ErrorClass::Other && !matches!(error.code(), "28000" | "") => {
                    return Err(error);
                }
                Err(error) => {
                    last.get_or_insert(timed_out(error, host));
                }
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost(format!("{host}: no way to connect"))))
    }

    /// Puts a stream under TLS, or leaves it as it is. With `sslmode=prefer` a server may decline.
    async fn secure(&self, stream: Stream, host: &Host, encrypted: bool) -> Result<Channel, Error> {
        let Some(connector) = self.tls.as_ref().filter(|_| encrypted) else {
            return Ok(Channel::Plain(stream));
        };
        let mut plain = Channel::Plain(stream);
        if self.config.negotiation == SslNegotiation::Postgres {
            plain.out().extend_from_slice(&8_u32.to_be_bytes());
            plain.out().extend_from_slice(&SSL_REQUEST.to_be_bytes());
            plain.flush().await?;
            plain.fill().await?;
            let answer = plain.inbox().bytes().first().copied().unwrap_or_default();
            // Nothing may follow the answer before TLS begins: it could have been slipped in.
            if plain.inbox().bytes().len() > 1 {
                return Err(Error::other(format!("{host}: the server sent data before the TLS handshake")));
            }
            plain.inbox().clear();
            match answer {
                b'S' => {}
                b'N' if matches!(self.config.tls.mode, SslMode::Allow | SslMode::Prefer) => return Ok(plain),
                b'N' => {
                    let mode = self.config.tls.mode.name();
                    return Err(Error::other(format!(
                        "{host}: the server does not offer TLS, and sslmode is {mode}"
                    )));
                }
                _ => return Err(wire::garbage("the answer to the request for TLS")),
            }
        }
        let Channel::Plain(stream) = plain else { return Ok(plain) };
        reach::encrypt(stream, connector, host).await
    }

    async fn log_in(
        self: &Arc<Self>,
        stream: Stream,
        host: &Host,
        address: &Address,
        encrypted: bool,
    ) -> Result<Established, Error> {
        let mut channel = self.secure(stream, host, encrypted).await?;
        let transport = match channel.session() {
            Some(session) => Transport::encrypted(&self.config, session, host)?,
            _ if host.is_unix() => Transport::Unix,
            _ => Transport::Plain,
        };
        let (password, binding) = (host.password.as_ref(), self.config.channel_binding);
        let mut authentication = Authentication::new(&self.config.user, password, binding, transport);
        write_startup(channel.out(), &self.config.startup);
        channel.flush().await?;
        let mut established = Established {
            cancel_key: CancelKey {
                endpoint: Arc::clone(self),
                host: host.clone(),
                address: address.clone(),
                encrypted: channel.is_encrypted(),
                process: 0,
                secret: Vec::new(),
            },
            channel,
            parameters: Vec::new(),
            status: b'I',
            greeting: 0,
        };
        while !established.greet(&mut authentication).await? {}
        Ok(established)
    }
}

impl Established {
    /// Handles one message of the start-up; says whether the server is ready.
    async fn greet(&mut self, authentication: &mut Authentication) -> Result<bool, Error> {
        let (tag, body) = next_within(&mut self.channel, wire::LONGEST_GREETING).await?;
        self.greeting += body.len();
        if self.greeting > MOST_GREETINGS {
            return Err(Error::connection_lost(format!(
                "the server sent more than {MOST_GREETINGS} bytes before it was ready"
            )));
        }
        match tag {
            b'R' => {
                let progress = authentication.receive(&body, self.channel.out())?;
                if progress == Progress::Pending {
                    self.channel.flush().await?;
                }
            }
            b'K' => {
                let (process, secret) =
                    body.split_first_chunk::<4>().ok_or_else(|| wire::garbage("BackendKeyData"))?;
                self.cancel_key.process = u32::from_be_bytes(*process);
                self.cancel_key.secret = secret.to_vec();
            }
            b'S' => {
                let mut fields = wire::Fields(&body);
                self.parameters.push((fields.text()?.to_owned(), fields.text()?.to_owned()));
            }
            b'E' => return Err(wire::error(&body)),
            b'Z' => {
                self.status = wire::status(&body);
                return Ok(true);
            }
            // NoticeResponse, NegotiateProtocolVersion.
            b'N' | b'v' => {}
            tag => return Err(wire::garbage(&format!("the message {:?} at start-up", char::from(tag)))),
        }
        Ok(false)
    }

    pub(crate) fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().rev().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// The next message, whole.
pub(crate) async fn next_message(channel: &mut Channel) -> Result<(u8, Vec<u8>), Error> {
    next_within(channel, wire::LONGEST).await
}

/// The next message, if it is not longer than `longest`.
async fn next_within(channel: &mut Channel, longest: usize) -> Result<(u8, Vec<u8>), Error> {
    loop {
        let inbox = channel.inbox();
        match wire::frame_within(inbox.bytes(), longest)? {
            Frame::Message(message, size) => {
                let whole = (message.tag, message.body.to_vec());
                inbox.consume(size);
                return Ok(whole);
            }
            Frame::Partial(size) => make_room(inbox, size),
        }
        channel.fill().await?;
    }
}

fn write_startup(out: &mut Vec<u8>, parameters: &[(String, String)]) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    out.extend_from_slice(&VERSION.to_be_bytes());
    for (name, value) in parameters {
        wire::put_text(out, name);
        wire::put_text(out, value);
    }
    out.push(0);
    wire::end_message(out, start);
}

/// Checks that the server is of the wanted kind (`target_session_attrs`).
async fn check_server(
    established: &mut Established,
    host: &Host,
    wanted: TargetSessionAttrs,
) -> Result<(), Error> {
    let (question, fits): (&str, fn(&str) -> bool) = match wanted {
        TargetSessionAttrs::Any | TargetSessionAttrs::PreferStandby => return Ok(()),
        TargetSessionAttrs::ReadWrite => ("SHOW transaction_read_only", |answer| answer == "off"),
        TargetSessionAttrs::ReadOnly => ("SHOW transaction_read_only", |answer| answer == "on"),
        TargetSessionAttrs::Primary => ("SELECT pg_catalog.pg_is_in_recovery()", |answer| answer == "f"),
        TargetSessionAttrs::Standby => ("SELECT pg_catalog.pg_is_in_recovery()", |answer| answer == "t"),
    };
    // Servers from version 14 on have told already whether they are in recovery.
    let known =
        established.parameter("in_hot_standby").map(|on| if on == "on" { "t" } else { "f" }.to_owned());
    let answer = match known.filter(|_| question.contains("recovery")) {
        Some(known) => known,
        None => ask(&mut established.channel, question).await?,
    };
    if fits(&answer) {
        return Ok(());
    }
    Err(Error::new(ErrorClass::ReadOnly, "", format!("{host}: the server is not {}", wanted.name())))
}

/// Runs a query that gives one value.
async fn ask(channel: &mut Channel, sql: &str) -> Result<String, Error> {
    let table = crate::postgres::admin::simple_query(channel, sql).await?;
    let cell = table.rows.into_iter().next().and_then(|row| row.into_iter().next().flatten());
    cell.ok_or_else(|| Error::other(format!("the server gave no answer to {sql}")))
}
