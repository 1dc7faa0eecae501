//! Making a connection: TCP or a Unix socket, TLS, `hello`, SCRAM, and whether it is the member that is wanted.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos};

use super::bson::{self, Elements, kind, put_binary, put_bool, put_document, put_int, put_text};
use super::config::{Config, ReadPreference, User};
use super::errors::{AUTHENTICATION_FAILED, Answer};
use super::levels::{Levels, put_read_concern};
use super::wire::{self, garbage};
use crate::contract::error::{Error, ErrorClass};
use crate::net::channel::Channel;
use crate::net::frame::{Part, make_room, shown};
use crate::net::given::Choice;
use crate::net::reach::{Way, beginning_with, share, turned};
use crate::net::resolve::Resolver;
use crate::net::scram::{Binding, Exchange, Hash};
use crate::net::session::Cancel;
use crate::net::settings::Host;
use crate::net::tls::TlsConnector;

/// The oldest version of the wire protocol that has `OP_MSG`: `MongoDB` 3.6.
const OLDEST_PROTOCOL: i64 = 6;
/// What servers allow where they do not say so.
const LONGEST_MESSAGE: i64 = 48_000_000;
const MOST_DOCUMENTS: i64 = 100_000;
/// The fewest that `MongoDB`'s drivers take (specification of authentication).
const LEAST_ITERATIONS: u32 = 4096;
const ADMIN: &str = "admin";

/// A server or a replica set, and how to reach it.
pub(super) struct Endpoint {
    pub(super) config: Config,
    pub(super) tls: Option<TlsConnector>,
    pub(super) timeout: Nanos,
    pub(super) resolver: Resolver,
    /// Where the next connection begins among the hosts: at the primary that was found last, where that is wanted.
    pub(super) next: AtomicUsize,
}

/// What commands are sent with.
pub(super) struct Manner {
    pub(super) database: String,
    /// The elements of commands that read: read concern, read preference, time limit.
    pub(super) reads: Vec<u8>,
    /// Of those that write: write concern, time limit.
    pub(super) writes: Vec<u8>,
    /// Whether another member is looked for when this one's role has changed.
    pub(super) moves: bool,
}

impl Manner {
    /// Those of a connection: a member that is no primary takes reads only where the command allows it.
    pub(super) fn new(config: &Config, levels: Option<Levels>, is_primary: bool) -> Self {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        put_read_concern(&mut reads, levels.map(|levels| levels.read).or(config.read_concern.as_deref()));
        let preference = match config.read_preference {
            ReadPreference::Primary if is_primary => None,
            ReadPreference::Primary => Some(ReadPreference::PrimaryPreferred),
            other => Some(other),
        };
        if let Some(preference) = preference {
            let mode = preference.option_name();
            put_document(&mut reads, "$readPreference", |out| put_text(out, "mode", mode.as_bytes()));
        }
        config.write_concern.at(levels).put(&mut writes);
        if config.time_limit > 0 {
            for out in [&mut reads, &mut writes] {
                put_int(out, "maxTimeMS", config.time_limit.into());
            }
        }
        Self { database: config.database.clone(), reads, writes, moves: !config.is_direct }
    }
}

/// No command can be given up; the server ends each at `timeoutMS`.
pub(super) struct NoCancel;

impl Cancel for NoCancel {
    async fn cancel(&self, _runtime: &Runtime) {}
}

/// What a server says of itself.
#[derive(Clone, Debug, Default)]
pub(super) struct Hello {
    is_writable: bool,
    is_secondary: bool,
    is_router: bool,
    pub(super) replica_set: Option<String>,
    /// How many members a replica set has.
    pub(super) members: usize,
    protocol: i64,
    pub(super) longest_message: usize,
    pub(super) most_documents: usize,
    mechanisms: Vec<String>,
}

impl Hello {
    pub(super) fn read(body: &[u8]) -> Result<Self, Error> {
        let mut elements = Elements::of(body)?;
        let (mut message, mut documents) = (LONGEST_MESSAGE, MOST_DOCUMENTS);
        let mut hello = Self::default();
        while let Some(element) = elements.next()? {
            let text = || element.text().map(|text| shown(text, 200));
            match element.name {
                b"isWritablePrimary" => hello.is_writable = element.is_true(),
                b"secondary" => hello.is_secondary = element.is_true(),
                b"msg" => hello.is_router = element.text() == Some(b"isdbgrid"),
                b"setName" => hello.replica_set = text(),
                b"hosts" => hello.members = texts(element.document())?.len(),
                b"maxWireVersion" => hello.protocol = element.int().unwrap_or(0),
                b"maxMessageSizeBytes" => message = element.int().unwrap_or(message),
                b"maxWriteBatchSize" => documents = element.int().unwrap_or(documents),
                b"saslSupportedMechs" => hello.mechanisms = texts(element.document())?,
                _ => {}
            }
        }
        // A server that says otherwise is not believed.
        hello.longest_message = message.clamp(1 << 16, LONGEST_MESSAGE) as usize;
        hello.most_documents = documents.clamp(1, MOST_DOCUMENTS) as usize;
        Ok(hello)
    }

    /// Whether it takes writes, or hands them on to the member that does.
    pub(super) fn is_primary(&self) -> bool {
        self.is_writable || self.is_router
    }

    /// Says whether it is the member that is wanted. What is no member of a replica set always is.
    fn check(&self, wanted: Wanted, replica_set: Option<&str>) -> Result<(), Error> {
        if let Some(name) = replica_set.filter(|name| self.replica_set.as_deref() != Some(name)) {
            let own = self.replica_set.as_deref().unwrap_or("none");
            return Err(Error::other(format!(
                "the server's replica set is {own:?}, and replicaSet={name:?}"
            )));
        }
        let told = |class, what: &str| Err(Error::new(class, "", format!("the server is {what}")));
        match wanted {
            _ if self.is_router || self.is_writable && self.replica_set.is_none() => Ok(()),
            Wanted::Whatever => Ok(()),
            _ if !self.is_writable && !self.is_secondary => {
                told(ErrorClass::ShuttingDown, "neither primary nor secondary now")
            }
            Wanted::Primary if !self.is_writable => {
                told(ErrorClass::ReadOnly, "not the primary, which readPreference=primary wants")
            }
            Wanted::Secondary if self.is_writable => {
                told(ErrorClass::Other, "the primary, which readPreference=secondary does not want")
            }
            _ => Ok(()),
        }
    }
}

fn texts(array: Option<&[u8]>) -> Result<Vec<String>, Error> {
    let (mut all, mut elements) = (Vec::new(), Elements::of(array.unwrap_or(&[5, 0, 0, 0, 0]))?);
    while let Some(element) = elements.next()? {
        all.extend(element.text().map(|text| shown(text, 200)));
    }
    Ok(all)
}

/// Which member a connection is made to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wanted {
    Primary,
    Secondary,
    /// Either.
    Any,
    /// This server, whatever it is.
    Whatever,
}

/// A connection on which commands are answered one by one.
pub(super) struct Link {
    pub(super) channel: Channel,
    pub(super) hello: Hello,
    number: i32,
}

impl Link {
    /// The number of the next command.
    pub(super) fn next_number(&mut self) -> i32 {
        self.number = self.number.wrapping_add(1);
        self.number
    }

    /// Sends what has been written, and gives the body of the answer; the error is one of the command, too.
    pub(super) async fn answer(&mut self) -> Result<Vec<u8>, Error> {
        self.channel.flush().await?;
        loop {
            let inbox = self.channel.inbox();
            match wire::message(inbox.bytes())? {
                Part::Whole((message, size)) => {
                    let (answers, body) = (message.answers, message.body.to_vec());
                    inbox.consume(size);
                    if answers != self.number {
                        return Err(garbage("an answer to another command"));
                    }
                    return match Answer::read(&body)?.error()? {
                        Some(error) => Err(error),
                        None => Ok(body),
                    };
                }
                Part::Partial(size) => {
                    make_room(inbox, size);
                    self.channel.fill().await?;
                }
            }
        }
    }

    /// Runs a command in a database; gives the body of its answer.
    pub(super) async fn ask(
        &mut self,
        database: &str,
        write: impl FnOnce(&mut Vec<u8>),
    ) -> Result<Vec<u8>, Error> {
        let number = self.next_number();
        let out = self.channel.out();
        let places = wire::begin(out, number);
        write(out);
        put_text(out, "$db", database.as_bytes());
        wire::end(out, places);
        self.answer().await
    }

    async fn greet(&mut self, config: &Config) -> Result<(), Error> {
        let write = |out: &mut Vec<u8>| {
            put_int(out, "hello", 1);
            put_document(out, "client", |out| {
                put_document(out, "application", |out| put_text(out, "name", config.application.as_bytes()));
                put_document(out, "driver", |out| {
                    put_text(out, "name", b"nephoscope");
                    put_text(out, "version", env!("CARGO_PKG_VERSION").as_bytes());
                });
                put_document(out, "os", |out| put_text(out, "type", b"Linux"));
            });
            if let Some(User { name, source, .. }) = &config.user {
                put_text(out, "saslSupportedMechs", format!("{source}.{name}").as_bytes());
            }
        };
        let body = self.ask(ADMIN, write).await.map_err(|error| match error.code() {
            "59" => {
                Error::other("the server does not know the command hello: it is older than MongoDB 4.4.2")
            }
            _ => error,
        })?;
        self.hello = Hello::read(&body)?;
        if self.hello.protocol < OLDEST_PROTOCOL {
            return Err(Error::other("the server does not know OP_MSG: it is older than MongoDB 3.6"));
        }
        Ok(())
    }

    /// SCRAM (<https://github.com/mongodb/specifications/blob/master/source/auth/auth.md>).
    async fn authenticate(&mut self, user: &User) -> Result<(), Error> {
        let knows_256 = self.hello.mechanisms.iter().any(|name| name == Hash::Sha256.option_name());
        let hash = user.hash.unwrap_or(if knows_256 { Hash::Sha256 } else { Hash::Sha1 });
        let exchange = Exchange::new(hash, &user.name, user.password(hash), Binding::unsupported())?;
        let mut exchange = exchange.with_iterations(LEAST_ITERATIONS);
        let first = exchange.first();
        let start = |out: &mut Vec<u8>| {
            put_int(out, "saslStart", 1);
            put_text(out, "mechanism", hash.option_name().as_bytes());
            put_binary(out, "payload", first.as_bytes());
            put_document(out, "options", |out| put_bool(out, "skipEmptyExchange", true));
        };
        let step = Step::read(&self.ask(&user.source, start).await?)?;
        let proof = exchange.prove(&step.payload)?;
        let mut step = self.go_on(user, &step, proof.as_bytes()).await?;
        exchange.verify(&step.payload)?;
        // A server that does not know the option has nothing more to say.
        if !step.done {
            step = self.go_on(user, &step, b"").await?;
        }
        if step.done { Ok(()) } else { Err(garbage("authentication without an end")) }
    }

    async fn go_on(&mut self, user: &User, step: &Step, payload: &[u8]) -> Result<Step, Error> {
        let write = |out: &mut Vec<u8>| {
            put_int(out, "saslContinue", 1);
            put_int(out, "conversationId", step.conversation);
            put_binary(out, "payload", payload);
        };
        Step::read(&self.ask(&user.source, write).await?)
    }
}

/// What the server says in a conversation of authentication.
pub(super) struct Step {
    conversation: i64,
    done: bool,
    payload: Vec<u8>,
}

impl Step {
    pub(super) fn read(body: &[u8]) -> Result<Self, Error> {
        let found = |name, of| {
            let element = bson::find(body, name)?;
            element.filter(|element| of == 0 || element.kind == of).ok_or_else(|| garbage("authentication"))
        };
        let (conversation, payload) = (found("conversationId", 0)?, found("payload", kind::BINARY)?);
        Ok(Self {
            conversation: conversation.int().unwrap_or(0),
            done: found("done", 0)?.is_true(),
            payload: payload.binary().unwrap_or_default().to_vec(),
        })
    }
}

impl Endpoint {
    /// When a connection that is begun now has to be there.
    pub(super) fn deadline(&self) -> Nanos {
        clock::now().saturating_add(self.timeout)
    }

    /// Connects to the first member that is wanted. The hosts share the time that is left.
    pub(super) async fn establish(
        self: &Arc<Self>,
        runtime: &Runtime,
        deadline: Nanos,
    ) -> Result<Link, Error> {
        let way = Way {
            runtime,
            resolver: &self.resolver,
            tls: self.tls.as_ref(),
            host_timeout: self.config.connect_timeout,
        };
        let (all, preference) = (&self.config.hosts, self.config.read_preference);
        let hosts = if preference == ReadPreference::Primary {
            beginning_with(all, self.next.load(Ordering::Relaxed))
        } else {
            turned(all, &self.next)
        };
        // A second round takes what there is.
        let rounds: &[Wanted] = match preference {
            _ if self.config.is_direct => &[Wanted::Whatever],
            ReadPreference::Primary => &[Wanted::Primary],
            ReadPreference::PrimaryPreferred => &[Wanted::Primary, Wanted::Any],
            ReadPreference::Secondary => &[Wanted::Secondary],
            ReadPreference::SecondaryPreferred => &[Wanted::Secondary, Wanted::Any],
            ReadPreference::Nearest => &[Wanted::Any],
        };
        // A user whom one server has refused is not tried at another.
        let is_final = |error: &Error| error.code() == AUTHENTICATION_FAILED;
        let mut last = None;
        for (round, wanted) in rounds.iter().enumerate() {
            let greet = async |channel, host: &Host| {
                let mut link = Link { channel, hello: Hello::default(), number: 0 };
                self.log_in(&mut link, *wanted).await?;
                if preference == ReadPreference::Primary {
                    let place = all.iter().position(|one| one == host).unwrap_or(0);
                    self.next.store(place, Ordering::Relaxed);
                }
                Ok(link)
            };
            let deadline = share(deadline, rounds.len() - round);
            match way.first(hosts.iter().copied(), deadline, greet, is_final).await {
                Err(error) if !is_final(&error) => last = Some(error),
                done => return done,
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost("there is no host to connect to")))
    }

    async fn log_in(&self, link: &mut Link, wanted: Wanted) -> Result<(), Error> {
        link.greet(&self.config).await?;
        link.hello.check(wanted, self.config.replica_set.as_deref())?;
        match &self.config.user {
            Some(user) => link.authenticate(user).await,
            None => Ok(()),
        }
    }
}
