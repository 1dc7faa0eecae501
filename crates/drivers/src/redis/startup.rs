//! Making a connection: TCP or a Unix socket, TLS, HELLO, AUTH, SELECT.

use std::sync::Arc;

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos};

use super::config::Config;
use super::wire::{self, Items, Value, put_command};
use crate::contract::error::Error;
use crate::net::channel::Channel;
use crate::net::frame::{Part, make_room};
use crate::net::reach::Way;
use crate::net::resolve::Resolver;
use crate::net::secret::Password;
use crate::net::session::Cancel;
use crate::net::settings::Host;
use crate::net::tls::TlsConnector;

/// A server, or several of which one will do, and how to reach it.
pub(super) struct Endpoint {
    pub(super) config: Config,
    pub(super) tls: Option<TlsConnector>,
    pub(super) timeout: Nanos,
    pub(super) resolver: Resolver,
}

/// No command can be given up: each takes microseconds, and a wait for replicas has a limit.
pub(super) struct NoCancel;

impl Cancel for NoCancel {
    async fn cancel(&self, _runtime: &Runtime) {}
}

/// A connection on which commands are answered one by one.
pub(super) struct Link {
    pub(super) channel: Channel,
}

impl Link {
    /// Sends what has been written, and gives the next answer, as the bytes that it is.
    pub(super) async fn answer(&mut self) -> Result<Vec<u8>, Error> {
        self.channel.flush().await?;
        loop {
            match wire::end(self.channel.inbox().bytes(), 0)? {
                Part::Whole(size) => {
                    let answer = self.channel.inbox().bytes()[..size].to_vec();
                    self.channel.inbox().consume(size);
                    if !answer.starts_with(b">") {
                        return Ok(answer);
                    }
                }
                Part::Partial(size) => {
                    make_room(self.channel.inbox(), size);
                    self.channel.fill().await?;
                }
            }
        }
    }

    /// Runs a command; an error is the server's.
    pub(super) async fn command(&mut self, words: &[&[u8]]) -> Result<Vec<u8>, Error> {
        put_command(self.channel.out(), words);
        let answer = self.answer().await?;
        match Items::new(&answer).next()? {
            Value::Error(text) => Err(wire::refusal(text)),
            _ => Ok(answer),
        }
    }
}

impl Endpoint {
    /// When a connection that is begun now has to be there.
    pub(super) fn deadline(&self) -> Nanos {
        clock::now().saturating_add(self.timeout)
    }

    /// Connects to the first host that will do. The hosts share the time that is left.
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
        let greet = async |channel, host: &Host| {
            let mut link = Link { channel };
            self.log_in(&mut link, host).await?;
            Ok(link)
        };
        // A user whom one server has refused is not tried at another.
        let is_final = |error: &Error| matches!(error.code(), "WRONGPASS" | "NOAUTH" | "NOPERM");
        way.first(self.config.hosts.iter(), deadline, greet, is_final).await
    }

    /// Version 3 of the protocol where the server has it, since 6.0; else version 2, which needs no greeting.
    async fn log_in(&self, link: &mut Link, host: &Host) -> Result<(), Error> {
        let (user, password) = (self.config.user.as_bytes(), host.password.as_ref().map(Password::expose));
        let mut hello: Vec<&[u8]> = vec![b"HELLO", b"3"];
        if let Some(password) = password {
            let user = if user.is_empty() { b"default".as_slice() } else { user };
            hello.extend([b"AUTH".as_slice(), user, password]);
        }
        let greeted = link.command(&hello).await;
        if let Err(error) = greeted {
            if !matches!(error.code(), "ERR" | "NOPROTO") {
                return Err(error);
            }
            let mut auth: Vec<&[u8]> = vec![b"AUTH"];
            auth.extend([user].into_iter().filter(|user| !user.is_empty()).chain(password));
            if password.is_some() {
                link.command(&auth).await?;
            }
        }
        if self.config.database != 0 {
            link.command(&[b"SELECT", self.config.database.to_string().as_bytes()]).await?;
        }
        Ok(())
    }
}
