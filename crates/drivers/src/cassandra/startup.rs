//! Making a connection: TCP, TLS, STARTUP, AUTHENTICATE, USE; then statements are prepared.

use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicUsize, Ordering};

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos, SECOND};

use super::config::Config;
use super::levels::{Level, Levels};
use super::prepared::Prepared;
use super::ring::Shared;
use super::segments::Speech;
use super::tables::table;
use super::wire::{self, Fields, Form, begin, code, end, garbage, kind, opcode, put_long, put_string};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::statement::Statement;
use crate::net::channel::Channel;
use crate::net::frame::{Part, make_room, shown};
use crate::net::reach::{Way, turned};
use crate::net::resolve::Resolver;
use crate::net::secret::Password;
use crate::net::session::Cancel;
use crate::net::settings::Host;
use crate::net::tls::TlsConnector;

/// How long nodes are waited for to agree on a schema, as other drivers of Cassandra do.
const AGREED_WITHIN: Nanos = 10 * SECOND;
const LOOK_AGAIN: Nanos = SECOND / 20;
/// The versions that are spoken.
pub(super) const NEWEST: u8 = 5;
const OLDEST: u8 = 4;

/// A cluster, and how to reach it.
pub(super) struct Endpoint {
    pub(super) config: Config,
    pub(super) tls: Option<TlsConnector>,
    pub(super) timeout: Nanos,
    pub(super) resolver: Resolver,
    /// How many connections were asked for: each begins with another host.
    pub(super) asked: AtomicUsize,
    /// The version of the protocol that is spoken, as far as it is known.
    pub(super) version: AtomicU8,
    /// What token-aware sessions know of the ring.
    pub(super) shared: Shared,
}

/// The protocol has no way to give a request up; servers end each at time limits of their own.
pub(super) struct NoCancel;

impl Cancel for NoCancel {
    async fn cancel(&self, _runtime: &Runtime) {}
}

/// An answer: its stream, its kind, its body.
pub(super) type Answer = (i16, u8, Vec<u8>);

/// A connection on which requests are answered one by one.
pub(super) struct Link {
    pub(super) channel: Channel,
    /// Where it leads.
    pub(super) host: Host,
    pub(super) speech: Speech,
}

impl Link {
    /// Sends what has been written, and gives the next answer, of any request.
    pub(super) async fn answer(&mut self) -> Result<Answer, Error> {
        self.channel.flush().await?;
        loop {
            let Speech { form, segments } = &mut self.speech;
            let inbox = match segments {
                Some(segments) => {
                    segments.take(self.channel.inbox());
                    &mut segments.contents
                }
                None => self.channel.inbox(),
            };
            match wire::frame(form.version, inbox.bytes())? {
                Part::Whole((frame, size)) => {
                    let answer = (frame.stream, frame.opcode, frame.body.to_vec());
                    inbox.consume(size);
                    match answer.1 {
                        opcode::EVENT => {}
                        opcode::ERROR => return Err(wire::error(&answer.2)),
                        _ => return Ok(answer),
                    }
                }
                Part::Partial(size) => {
                    make_room(inbox, size);
                    self.speech.segments.as_ref().map_or(Ok(()), |segments| segments.check())?;
                    self.channel.fill().await?;
                }
            }
        }
    }

    /// Sends one request and gives its answer.
    async fn request(&mut self, of: u8, write: impl FnOnce(&mut Vec<u8>)) -> Result<(u8, Vec<u8>), Error> {
        let (form, out) = (self.speech.form, self.channel.out());
        let start = begin(out, form, of, 0);
        write(out);
        end(out, form, start);
        self.answer().await.map(|(_, opcode, body)| (opcode, body))
    }

    /// Runs a statement that is text; gives the body of its result.
    pub(super) async fn query(&mut self, cql: &str, level: Level) -> Result<Vec<u8>, Error> {
        let form = self.speech.form;
        let write = |out: &mut Vec<u8>| {
            put_long(out, cql.as_bytes());
            out.extend_from_slice(&level.0.to_be_bytes());
            form.put_flags(0, out);
        };
        match self.request(opcode::QUERY, write).await? {
            (opcode::RESULT, body) => Ok(body),
            _ => Err(garbage("the answer to a query")),
        }
    }

    /// The same; where it has defined data, it waits until the nodes agree on what there is, as far as they do so soon:
    /// one that is down never does.
    pub(super) async fn run(&mut self, cql: &str, level: Level) -> Result<Vec<u8>, Error> {
        let body = self.query(cql, level).await?;
        if Fields(&body).i32()? != kind::SCHEMA_CHANGE {
            return Ok(body);
        }
        let end = clock::now().saturating_add(AGREED_WITHIN);
        while !self.agree().await? && clock::now() < end {
            let runtime = self.channel.runtime().clone();
            runtime.sleep_until(clock::now().saturating_add(LOOK_AGAIN)).await;
        }
        Ok(body)
    }

    /// Whether this node and those that it knows have one version of the schema.
    async fn agree(&mut self) -> Result<bool, Error> {
        const VERSION: &str = "SELECT schema_version FROM system.";
        let own = table(&self.query(&format!("{VERSION}local"), Levels::SET_UP.read).await?)?.rows;
        let others = table(&self.query(&format!("{VERSION}peers"), Levels::SET_UP.read).await?)?.rows;
        Ok(others.iter().all(|row| Some(row) == own.first()))
    }

    /// Has statements prepared in one round trip. The first that is wrong is told by its name.
    pub(super) async fn prepare(
        &mut self,
        statements: &[Statement],
        levels: Levels,
    ) -> Result<Vec<Prepared>, Error> {
        let form = self.speech.form;
        let mut all: Vec<Prepared> =
            statements.iter().map(|statement| Prepared::new(statement, levels, form)).collect();
        for (stream, one) in all.iter().enumerate() {
            one.write_prepare(stream as i16, self.channel.out());
        }
        let mut failed = None;
        for _ in 0..all.len() {
            let (stream, body) = match self.answer().await {
                Ok((stream, opcode::RESULT, body)) => (stream, body),
                Ok(_) => return Err(garbage("the answer to a preparation")),
                // What has no number of the server's is no answer, and nothing more can be read.
                Err(error) if error.code().is_empty() => return Err(error),
                Err(error) => {
                    failed.get_or_insert(error);
                    continue;
                }
            };
            let mut fields = Fields(&body);
            let one = usize::try_from(stream).ok().and_then(|stream| all.get_mut(stream));
            let Some(one) = one.filter(|_| fields.i32().is_ok_and(|of| of == kind::PREPARED)) else {
                return Err(garbage("the answer to a preparation"));
            };
            let name = one.statement.name().to_owned();
            one.prepared(fields).map_err(|error| error.context(&format!("statement {name}")))?;
        }
        failed.map_or(Ok(all), Err)
    }

    /// Runs the statements that every connection begins with.
    pub(super) async fn set_up(&mut self, on_connect: &[String]) -> Result<(), Error> {
        for cql in on_connect {
            let done = self.run(cql, Levels::SET_UP.write).await;
            done.map_err(|error| error.context(&format!("on_connect {cql:?}")))?;
        }
        Ok(())
    }
}

impl Endpoint {
    /// When a connection that is begun now has to be there.
    pub(super) fn deadline(&self) -> Nanos {
        clock::now().saturating_add(self.timeout)
    }

    /// Connects to the next host, or to the first after it that will do. The hosts share the time that is left.
    pub(super) async fn establish(
        self: &Arc<Self>,
        runtime: &Runtime,
        deadline: Nanos,
    ) -> Result<Link, Error> {
        self.reach(runtime, &turned(&self.config.hosts, &self.asked), deadline).await
    }

    /// Connects to the first of some hosts that will do, and logs in. Where one refuses the version, an older one is
    /// spoken from then on.
    pub(super) async fn reach(
        &self,
        runtime: &Runtime,
        hosts: &[&Host],
        deadline: Nanos,
    ) -> Result<Link, Error> {
        let way = Way {
            runtime,
            resolver: &self.resolver,
            tls: self.tls.as_ref(),
            host_timeout: self.config.connect_timeout,
        };
        // What one node has refused is not tried at another: a role, a version.
        let is_final = |error: &Error| matches!(error.code(), code::CREDENTIALS | code::PROTOCOL);
        loop {
            let version = self.version.load(Ordering::Relaxed);
            let greet = async |channel, host: &Host| {
                let speech = Speech::new(Form::begins(version));
                let mut link = Link { channel, host: host.clone(), speech };
                self.log_in(&mut link).await?;
                Ok(link)
            };
            match way.first(hosts.iter().copied(), deadline, greet, is_final).await {
                Err(error)
                    if error.code() == code::PROTOCOL
                        && version > OLDEST
                        && self.config.protocol_version.is_none() =>
                {
                    tracing::debug!(%error, version, "the server refuses a version of the protocol");
                    self.version.store(OLDEST, Ordering::Relaxed);
                }
                reached => return reached,
            }
        }
    }

    async fn log_in(&self, link: &mut Link) -> Result<(), Error> {
        let options = [("CQL_VERSION", "3.0.0"), ("DRIVER_NAME", "nephoscope")];
        let write = |out: &mut Vec<u8>| {
            out.extend_from_slice(&(options.len() as u16).to_be_bytes());
            for text in options.iter().flat_map(|(name, value)| [name, value]) {
                put_string(out, text.as_bytes());
            }
        };
        let answer = link.request(opcode::STARTUP, write).await?;
        if link.speech.form.is_five() {
            link.speech = Speech::new(Form::FIVE);
        }
        match answer {
            (opcode::READY, _) => {}
            (opcode::AUTHENTICATE, body) => {
                let by = shown(Fields(&body).string()?, 200);
                self.authenticate(link, &by).await?;
            }
            _ => return Err(garbage("the answer to STARTUP")),
        }
        if !self.config.keyspace.is_empty() {
            let name = self.config.keyspace.replace('"', "\"\"");
            link.query(&format!("USE \"{name}\""), Levels::SET_UP.read).await?;
        }
        Ok(())
    }

    /// SASL's PLAIN (RFC 4616), which `PasswordAuthenticator` takes.
    async fn authenticate(&self, link: &mut Link, by: &str) -> Result<(), Error> {
        let user = self.config.user.as_bytes();
        let refused = |why: String| Error::new(ErrorClass::Other, code::CREDENTIALS, why);
        if user.is_empty() {
            return Err(refused(format!(
                "the server asks for a user and a password ({by}), and the URL has no user"
            )));
        }
        let password = link.host.password.as_ref().map_or(&[][..], Password::expose);
        let token = [&b"\0"[..], user, b"\0", password].concat();
        match link.request(opcode::AUTH_RESPONSE, |out| put_long(out, &token)).await? {
            (opcode::AUTH_SUCCESS, _) => Ok(()),
            _ => Err(refused(format!(
                "the server asks for more than a password ({by}), which is not supported"
            ))),
        }
    }
}
