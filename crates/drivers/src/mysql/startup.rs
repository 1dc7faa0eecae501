//! How a connection is made: addresses, the greeting, TLS, authentication ("Connection Phase").

use std::sync::Arc;

use nephoscope_runtime::clock::{self, Nanos, SECOND};
use nephoscope_runtime::{Address, Runtime, Stream};

use crate::contract::error::{Error, ErrorClass};
use crate::mysql::auth::{Authentication, Progress, Transport};
use crate::mysql::config::Config;
use crate::mysql::replies::{Link, query};
use crate::mysql::wire::{self, Fields, capability, status};
use crate::net::channel::Channel;
use crate::net::reach::{self, refused, share, timed_out};
use crate::net::resolve::Resolver;
use crate::net::session::Cancel;
use crate::net::settings::{Host, SslMode};
use crate::net::tls::TlsConnector;

/// `utf8mb4_general_ci`, which every server knows.
const CHARSET: u8 = 45;
/// The longest packet that a client says it takes.
const LONGEST_PACKET: u32 = 1 << 30;
/// How long a request to cancel may take to deliver.
const CANCEL_TIMEOUT: Nanos = SECOND;
/// What every client here asks for.
const WANTED: u32 = capability::MYSQL
    // An UPDATE counts the rows that it found, as with other products, and not those that it changed.
    | capability::FOUND_ROWS
    | capability::LONG_FLAG
    | capability::PROTOCOL_41
    | capability::TRANSACTIONS
    | capability::SECURE_CONNECTION
    | capability::MULTI_RESULTS
    | capability::PS_MULTI_RESULTS
    | capability::PLUGIN_AUTH
    | capability::CONNECT_ATTRS
    | capability::PLUGIN_AUTH_LENENC_DATA
    | capability::DEPRECATE_EOF;

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Purpose {
    /// The statements of a session.
    Session,
    /// Set-up, loading and checks: several statements in one text, and local files.
    Admin,
}

/// A server, or several of which one will do, and how to reach it.
pub(crate) struct Endpoint {
    pub(crate) config: Config,
    pub(crate) tls: Option<TlsConnector>,
    pub(crate) timeout: Nanos,
    pub(crate) resolver: Resolver,
}

/// A connection that is ready for commands.
pub(crate) struct Established {
    pub(crate) link: Link,
    pub(crate) cancel_key: CancelKey,
}

/// What it takes to cancel a statement of a connection, from another one.
pub(crate) struct CancelKey {
    endpoint: Arc<Endpoint>,
    host: Host,
    address: Address,
    thread: u32,
}

impl Cancel for CancelKey {
    async fn cancel(&self, runtime: &Runtime) {
        if let Err(error) = self.deliver(runtime).await {
            tracing::debug!(%error, "a request to cancel could not be delivered");
        }
    }
}

impl CancelKey {
    async fn deliver(&self, runtime: &Runtime) -> Result<(), Error> {
        let deadline = clock::now() + CANCEL_TIMEOUT;
        let Self { endpoint, host, address, thread } = self;
        let mut other = endpoint.try_address(runtime, host, address, deadline, Purpose::Session).await?;
        query(&mut other.link, &format!("KILL QUERY {thread}")).await?;
        other.link.channel.out().extend_from_slice(&wire::GOODBYE);
        Ok(other.link.channel.flush().await?)
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
        purpose: Purpose,
    ) -> Result<Established, Error> {
        let mut last = None;
        let hosts = &self.config.hosts;
        for (tried, host) in hosts.iter().enumerate() {
            let deadline = share(deadline, hosts.len() - tried);
            match self.try_host(runtime, host, deadline, purpose).await {
                Ok(established) => return Ok(established),
                // A user whom one server has refused is not tried at another: 1044, 1045, 1698 are access denied.
                Err(error) if matches!(error.code(), "1044" | "1045" | "1698") => return Err(error),
                Err(error) => last = Some(error),
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost("there is no host to connect to")))
    }

    async fn try_host(
        self: &Arc<Self>,
        runtime: &Runtime,
        host: &Host,
        deadline: Nanos,
        purpose: Purpose,
    ) -> Result<Established, Error> {
        let own = self.config.connect_timeout.map_or(Nanos::MAX, |time| time.as_nanos() as Nanos);
        let deadline = deadline.min(clock::now().saturating_add(own));
        let mut last = None;
        let addresses = reach::addresses(&self.resolver, runtime, host, deadline).await?;
        for (tried, address) in addresses.iter().enumerate() {
            let deadline = share(deadline, addresses.len() - tried);
            match self.try_address(runtime, host, address, deadline, purpose).await {
                Ok(established) => return Ok(established),
                Err(error) => last = Some(timed_out(error, host)),
            }
        }
        Err(last.unwrap_or_else(|| Error::connection_lost(format!("{host} has no address"))))
    }

    async fn try_address(
        self: &Arc<Self>,
        runtime: &Runtime,
        host: &Host,
        address: &Address,
        deadline: Nanos,
        purpose: Purpose,
    ) -> Result<Established, Error> {
        let stream = Stream::connect(runtime, address, deadline).await;
        let stream = stream.map_err(|error| refused(&error, host, deadline))?;
        let mut link = Link::new(Channel::Plain(stream));
        let greeting = Greeting::read(&link.next_within(wire::LONGEST_GREETING).await?)?;
        link.sequence = 1;
        link.agree(agreed(&greeting, purpose, &self.config), agreed_more(&greeting));
        link = self.secure(link, host, &greeting).await?;
        self.log_in(&mut link, host, &greeting).await?;
        let cancel_key = CancelKey {
            endpoint: Arc::clone(self),
            host: host.clone(),
            address: address.clone(),
            thread: greeting.thread,
        };
        Ok(Established { link, cancel_key })
    }

    /// Puts the connection under TLS, or leaves it as it is: with `ssl-mode=PREFERRED` a server may have none.
    async fn secure(&self, mut link: Link, host: &Host, greeting: &Greeting) -> Result<Link, Error> {
        let Some(connector) = self.tls.as_ref().filter(|_| !host.is_unix()) else { return Ok(link) };
        if greeting.capabilities & capability::SSL == 0 {
            if self.config.tls.mode <= SslMode::Prefer {
                return Ok(link);
            }
            return Err(Error::new(
                ErrorClass::Other,
                "",
                format!("{host}: the server does not offer TLS, and ssl-mode asks for it"),
            ));
        }
        // Nothing may follow the greeting before TLS begins: it could have been slipped in.
        if !link.channel.inbox().bytes().is_empty() {
            return Err(Error::other(format!("{host}: the server sent data before the TLS handshake")));
        }
        link.capabilities |= capability::SSL;
        let settings = settings(&link);
        link.packet(|out| out.extend_from_slice(&settings));
        link.channel.flush().await?;
        let Link { channel: Channel::Plain(stream), .. } = link else { return Ok(link) };
        link.channel = reach::encrypt(stream, connector, host).await?;
        Ok(link)
    }

    async fn log_in(&self, link: &mut Link, host: &Host, greeting: &Greeting) -> Result<(), Error> {
        let transport = match link.channel.is_encrypted() {
            true => Transport::Tls,
            false if host.is_unix() => Transport::Unix,
            false => Transport::Plain,
        };
        let (password, may_ask) = (host.password.as_ref(), self.config.get_server_public_key);
        let mut authentication =
            Authentication::new(password, transport, may_ask, &greeting.plugin, &greeting.nonce);
        let response = self.response(link, &authentication)?;
        link.packet(|out| out.extend_from_slice(&response));
        link.channel.flush().await?;
        loop {
            let payload = link.next_within(wire::LONGEST_GREETING).await?;
            match authentication.receive(&payload)? {
                Progress::Answer(answer) => {
                    link.packet(|out| out.extend_from_slice(&answer));
                    link.channel.flush().await?;
                }
                Progress::Pending => {}
                Progress::Done => {
                    link.status = wire::ok(&payload)?.status;
                    return Ok(());
                }
            }
        }
    }

    /// `HandshakeResponse41`.
    fn response(&self, link: &Link, authentication: &Authentication<'_>) -> Result<Vec<u8>, Error> {
        let mut out = settings(link);
        out.extend_from_slice(self.config.user.as_bytes());
        out.push(0);
        let answer = authentication.first_answer()?;
        // Without the capability the length has one byte: an answer has fewer than 251.
        wire::put_string(&mut out, &answer);
        if link.capabilities & capability::CONNECT_WITH_DB != 0 {
            out.extend_from_slice(self.config.database.as_bytes());
            out.push(0);
        }
        out.extend_from_slice(authentication.plugin().as_bytes());
        out.push(0);
        if link.capabilities & capability::CONNECT_ATTRS != 0 {
            let mut attributes = Vec::new();
            for text in ["_client_name", "nephoscope", "program_name", "nephoscope"] {
                wire::put_string(&mut attributes, text.as_bytes());
            }
            wire::put_string(&mut out, &attributes);
        }
        Ok(out)
    }
}

/// What a `HandshakeResponse41` and an `SSLRequest` begin with.
fn settings(link: &Link) -> Vec<u8> {
    let mut out = link.capabilities.to_le_bytes().to_vec();
    out.extend_from_slice(&LONGEST_PACKET.to_le_bytes());
    out.push(CHARSET);
    out.extend_from_slice(&[0; 19]);
    out.extend_from_slice(&link.more_capabilities.to_le_bytes());
    out
}

fn agreed(greeting: &Greeting, purpose: Purpose, config: &Config) -> u32 {
    let mut wanted = WANTED;
    if purpose == Purpose::Admin {
        wanted |= capability::MULTI_STATEMENTS | capability::LOCAL_FILES;
    }
    if !config.database.is_empty() {
        wanted |= capability::CONNECT_WITH_DB;
    }
    // A server of MariaDB's reads the second set of flags only where this one says that the client is not MySQL's.
    if agreed_more(greeting) != 0 {
        wanted &= !capability::MYSQL;
    }
    wanted & (greeting.capabilities | capability::MYSQL)
}

fn agreed_more(greeting: &Greeting) -> u32 {
    // Without the older end of columns there would be two forms of a result whose columns are left out.
    if greeting.capabilities & capability::DEPRECATE_EOF == 0 {
        return 0;
    }
    greeting.more_capabilities & capability::CACHE_METADATA
}

/// A server's first packet ("`HandshakeV10`").
#[derive(Debug, PartialEq, Eq)]
pub struct Greeting {
    pub(crate) version: String,
    pub(crate) thread: u32,
    /// What the server can do.
    pub capabilities: u32,
    /// MariaDB's second set.
    pub more_capabilities: u32,
    pub(crate) nonce: Vec<u8>,
    pub(crate) plugin: String,
}

impl Greeting {
    /// Reads the greeting; a server that has no place for a connection sends an error in its stead.
    ///
    /// # Errors
    ///
    /// That one, or what makes it no greeting of version 10.
    pub fn read(payload: &[u8]) -> Result<Self, Error> {
        let mut fields = Fields(payload);
        match fields.u8()? {
            10 => {}
            0xff => return Err(wire::error(payload)),
            version => {
                return Err(wire::garbage(&format!("the greeting of protocol version {version}")));
            }
        }
        let version = String::from_utf8_lossy(fields.until_zero()).into_owned();
        let thread = fields.u32()?;
        let mut nonce = fields.bytes(8)?.to_vec();
        let _filler = fields.u8()?;
        let low = fields.u16()?;
        let _charset = fields.u8()?;
        let _status = fields.u16()?;
        let high = fields.u16()?;
        let capabilities = u32::from(high) << 16 | u32::from(low);
        let nonce_length = usize::from(fields.u8()?);
        let _reserved = fields.take::<6>()?;
        let more = fields.u32()?;
        if capabilities & capability::PROTOCOL_41 == 0 || capabilities & capability::SECURE_CONNECTION == 0 {
            return Err(Error::other("the server is older than MySQL 4.1"));
        }
        // The rest of the nonce has 13 bytes at least, the last of which is zero.
        let rest = fields.bytes(nonce_length.saturating_sub(8).max(13).min(fields.0.len()))?;
        nonce.extend_from_slice(rest.strip_suffix(&[0]).unwrap_or(rest));
        let plugin = String::from_utf8_lossy(fields.until_zero()).chars().take(64).collect();
        let more_capabilities = if capabilities & capability::MYSQL == 0 { more } else { 0 };
        Ok(Self { version, thread, capabilities, more_capabilities, nonce, plugin })
    }
}

/// Whether the server is within a transaction, by its status.
pub(crate) fn in_transaction(flags: u16) -> bool {
    flags & status::IN_TRANSACTION != 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn greeting(version: &str, low: u16, high: u16, more: u32) -> Vec<u8> {
        let mut out = vec![10];
        out.extend_from_slice(version.as_bytes());
        out.extend_from_slice(&[0, 7, 0, 0, 0]);
        out.extend_from_slice(b"abcdefgh\0");
        out.extend_from_slice(&low.to_le_bytes());
        out.extend_from_slice(&[45, 2, 0]);
        out.extend_from_slice(&high.to_le_bytes());
        out.extend_from_slice(&[21, 0, 0, 0, 0, 0, 0]);
        out.extend_from_slice(&more.to_le_bytes());
        out.extend_from_slice(b"ijklmnopqrst\0caching_sha2_password\0");
        out
    }

    #[test]
    fn a_greeting_is_read() {
        let read = Greeting::read(&greeting("8.4.0", 0xffff, 0xdfff, 16)).unwrap();
        assert_eq!((read.version.as_str(), read.thread), ("8.4.0", 7));
        assert_eq!(
            (read.nonce.as_slice(), read.plugin.as_str()),
            (&b"abcdefghijklmnopqrst"[..], "caching_sha2_password")
        );
        assert_eq!(read.more_capabilities, 0, "the bytes are no flags of a server of MySQL's");
        let read = Greeting::read(&greeting("10.11.8-MariaDB", 0xfffe, 0x81ff, 16)).unwrap();
        assert_eq!(read.more_capabilities, capability::CACHE_METADATA);
        assert_eq!(agreed_more(&read), capability::CACHE_METADATA);
    }

    #[test]
    fn what_is_no_greeting_is_refused() {
        let told = |payload: &[u8]| Greeting::read(payload).unwrap_err();
        assert_eq!(told(b"\xff\x10\x04Too many connections").code(), "1040");
        assert!(told(b"\x09old").message().contains("protocol version 9"));
        assert!(told(&greeting("3.23", 0, 0, 0)).message().contains("older than MySQL 4.1"));
        let whole = greeting("8.4.0", 0xffff, 0xdfff, 0);
        for end in 0..38 {
            assert!(Greeting::read(&whole[..end]).is_err(), "{end}");
        }
    }

    proptest! {
        #[test]
        fn no_greeting_breaks_it(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let _ = Greeting::read(&[&[10][..], &bytes].concat());
        }
    }
}
