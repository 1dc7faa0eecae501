//! The configuration, TLS and authentication against a real `PostgreSQL` server.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, Weak};
use std::thread;
use std::time::{Duration, Instant};

use bytes::BytesMut;
use nephoscope_drivers::net::settings::{Host, HostAddress, SslMode};
use nephoscope_drivers::net::tls::TlsConnector;
use nephoscope_drivers::postgres::auth::{Authentication, Progress, Transport};
use nephoscope_drivers::postgres::config::Config;
use nephoscope_drivers::{Error, ErrorClass};
use postgres_protocol::message::frontend;
use rustls::{ClientConnection, StreamOwned};

use support::postgres::{Plan, Server, programs};
use support::{Identity, Wanted, Workshop, has_openssl};

/// Long, and found nowhere else, so that a message that holds it is recognised.
const PASSWORD: &str = "correct horse 'battery' ürgh";
const NAMES: &str = "DNS:db.example.com,IP:127.0.0.1";

/// One statement a line, as a single-user server reads it.
const SET_UP: &str = "\
SET password_encryption = 'scram-sha-256'
CREATE ROLE scram LOGIN PASSWORD 'correct horse ''battery'' ürgh'
CREATE ROLE clear LOGIN PASSWORD 'correct horse ''battery'' ürgh'
SET password_encryption = 'md5'
CREATE ROLE hashed LOGIN PASSWORD 'correct horse ''battery'' ürgh'
CREATE ROLE open LOGIN
CREATE ROLE certified LOGIN
";

const ACCESS: &str = "\
local   all scram     scram-sha-256
local   all clear     password
local   all open      trust
host    all scram     127.0.0.1/32 scram-sha-256
host    all hashed    127.0.0.1/32 md5
host    all clear     127.0.0.1/32 password
host    all open      127.0.0.1/32 trust
hostssl all certified 127.0.0.1/32 cert
";

/// A server with the certificates around it.
struct Site {
    server: Server,
    workshop: Workshop,
}

impl Site {
    fn new(identity: impl FnOnce(&Workshop) -> Identity) -> Option<Self> {
        let programs = programs().filter(|_| has_openssl())?;
        let workshop = Workshop::new("root");
        let identity = identity(&workshop);
        let root = workshop.path("root.crt");
        let tls = Some((&identity, root.as_path()));
        let server =
            Server::start(&programs, Plan { set_up: SET_UP, access: ACCESS, tls, ..Plan::default() });
        let site = Self { server, workshop };
        site.wait();
        Some(site)
    }

    /// The server that most tests share: it runs while one of them does.
    fn shared() -> Option<Arc<Self>> {
        static SHARED: Mutex<Weak<Site>> = Mutex::new(Weak::new());
        let mut shared = SHARED.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if let Some(site) = shared.upgrade() {
            return Some(site);
        }
        let wanted = Wanted { names: NAMES, ..Wanted::default() };
        let site = Arc::new(Self::new(|workshop| workshop.signed("server", wanted))?);
        *shared = Arc::downgrade(&site);
        Some(site)
    }

    fn wait(&self) {
        let end = Instant::now() + Duration::from_mins(1);
        while let Err(error) = connect(&self.url("open", "sslmode=disable")) {
            assert!(Instant::now() < end, "the server does not start: {error}\n{}", self.server.log());
            thread::sleep(Duration::from_millis(20));
        }
    }

    /// A URL without a password.
    fn url(&self, user: &str, parameters: &str) -> String {
        format!("postgresql://{user}@127.0.0.1:{}/postgres?{parameters}", self.server.port)
    }

    /// A URL with the password.
    fn url_with_password(&self, user: &str, parameters: &str) -> String {
        let password = PASSWORD.replace(' ', "%20");
        self.url(user, parameters).replacen('@', &format!(":{password}@"), 1)
    }

    fn socket_url(&self, user: &str, parameters: &str) -> String {
        let directory = self.server.socket_directory();
        self.url_with_password(user, &format!("host={directory}&{parameters}"))
    }

    fn login(&self, user: &str, parameters: &str) -> Result<Session, Error> {
        connect(&self.url_with_password(user, parameters))
    }

    #[track_caller]
    fn accepts(&self, user: &str, parameters: &str) -> Session {
        self.login(user, parameters).unwrap_or_else(|error| panic!("{user} {parameters}: {error}"))
    }

    /// A login that this side ends: the message holds `because` and no password.
    #[track_caller]
    fn refuses(&self, user: &str, parameters: &str, because: &str) {
        let error =
            self.login(user, parameters).err().unwrap_or_else(|| panic!("{user} {parameters} is let in"));
        assert!(error.message().contains(because), "{user} {parameters}: {error}");
        assert!(!error.message().contains(PASSWORD));
        assert_eq!((error.class(), error.code()), (ErrorClass::Other, ""));
    }
}

trait Channel: Read + Write {}
impl<T: Read + Write> Channel for T {}

/// A connection that was let in.
struct Session {
    channel: Box<dyn Channel>,
}

/// Connects to the first host of a URL, by nothing but the driver's modules.
fn connect(url: &str) -> Result<Session, Error> {
    let config = Config::parse_with(url, &|_| None).map_err(|error| Error::other(error.0))?;
    let host = &config.hosts[0];
    let (channel, transport) = open(&config, host)?;
    let mut session = Session { channel };
    let mut message = BytesMut::new();
    let parameters = config.startup.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    frontend::startup_message(parameters, &mut message)?;
    session.channel.write_all(&message)?;
    let mut authentication =
        Authentication::new(&config.user, host.password.as_ref(), config.channel_binding, transport);
    let mut admitted = false;
    loop {
        let (kind, body) = session.read()?;
        match kind {
            b'R' => {
                let mut out = Vec::new();
                admitted = authentication.receive(&body, &mut out)? == Progress::Done;
                session.channel.write_all(&out)?;
            }
            b'Z' if admitted => return Ok(session),
            _ if admitted => {}
            kind => panic!("unexpected message {kind}"),
        }
    }
}

fn open(config: &Config, host: &Host) -> Result<(Box<dyn Channel>, Transport), Error> {
    let connector = TlsConnector::new(&config.tls, &config.hosts).map_err(|error| Error::other(error.0))?;
    let mut tcp = match &host.address {
        HostAddress::Unix(path) => return Ok((Box::new(UnixStream::connect(path)?), Transport::Unix)),
        HostAddress::Ip(ip) => TcpStream::connect((*ip, host.port))?,
        HostAddress::Name(name) => TcpStream::connect((name.as_str(), host.port))?,
    };
    let Some(connector) = connector.filter(|_| config.tls.mode >= SslMode::Prefer) else {
        return Ok((Box::new(tcp), Transport::Plain));
    };
    let mut message = BytesMut::new();
    frontend::ssl_request(&mut message);
    tcp.write_all(&message)?;
    let mut answer = [0];
    tcp.read_exact(&mut answer)?;
    assert_eq!(answer, *b"S", "the server has no TLS");
    let mut client: ClientConnection = connector.start(host)?;
    while client.is_handshaking() {
        client.complete_io(&mut tcp).map_err(|error| tls_error(error, &connector, host))?;
    }
    let transport = Transport::encrypted(config, &client, host)?;
    Ok((Box::new(StreamOwned::new(client, tcp)), transport))
}

fn tls_error(error: io::Error, connector: &TlsConnector, host: &Host) -> Error {
    match error.get_ref().and_then(|error| error.downcast_ref::<rustls::Error>()) {
        Some(error) => connector.explain(error, host),
        None => error.into(),
    }
}

impl Session {
    /// The next message: its type and its body. An `ErrorResponse` is an error.
    fn read(&mut self) -> Result<(u8, Vec<u8>), Error> {
        let mut header = [0; 5];
        self.channel.read_exact(&mut header)?;
        let length = u32::from_be_bytes([header[1], header[2], header[3], header[4]]);
        let mut body = vec![0; length as usize - 4];
        self.channel.read_exact(&mut body)?;
        if header[0] != b'E' {
            return Ok((header[0], body));
        }
        let text = String::from_utf8_lossy(&body).into_owned();
        let field = |kind| text.split('\0').find_map(|field| field.strip_prefix(kind)).unwrap_or_default();
        Err(Error::new(ErrorClass::Other, field('C'), field('M')))
    }

    /// The only value of a query, as text.
    fn value(&mut self, sql: &str) -> String {
        let mut message = BytesMut::new();
        frontend::query(sql, &mut message).unwrap();
        self.channel.write_all(&message).unwrap();
        let mut value = String::new();
        loop {
            match self.read().unwrap() {
                // The number of columns (2 bytes) and the length of the first (4 bytes) come before it.
                (b'D', body) => value = String::from_utf8(body[6..].to_vec()).unwrap(),
                (b'Z', _) => return value,
                _ => {}
            }
        }
    }
}

const TLS_VERSION: &str = "SELECT coalesce(version, 'none') FROM pg_stat_ssl WHERE pid = pg_backend_pid()";

#[test]
fn scram_is_bound_to_the_tls_channel() {
    let Some(site) = Site::shared() else { return };
    for version in ["TLSv1.2", "TLSv1.3"] {
        let limits = format!("ssl_min_protocol_version={version}&ssl_max_protocol_version={version}");
        let mut session = site.accepts(
            "scram",
            &format!("sslmode=require&channel_binding=require&{limits}&application_name=a%20b"),
        );
        assert_eq!(session.value(TLS_VERSION), version);
        assert_eq!(session.value("SELECT current_user"), "scram");
        assert_eq!(session.value("SHOW application_name"), "a b");
        assert_eq!(session.value("SHOW client_encoding"), "UTF8");
    }
}

#[test]
fn scram_works_without_binding() {
    let Some(site) = Site::shared() else { return };
    site.accepts("scram", "sslmode=require&channel_binding=disable");
    assert_eq!(site.accepts("scram", "sslmode=disable").value(TLS_VERSION), "none");
    connect(&site.socket_url("scram", "sslmode=verify-full")).unwrap();
    site.refuses("scram", "sslmode=allow&channel_binding=require", "the connection is not under TLS");
}

#[test]
fn md5_works_with_and_without_tls() {
    let Some(site) = Site::shared() else { return };
    for mode in ["disable", "prefer"] {
        assert_eq!(site.accepts("hashed", &format!("sslmode={mode}")).value("SELECT current_user"), "hashed");
    }
}

#[test]
fn a_clear_text_password_goes_only_where_nobody_reads_along() {
    let Some(site) = Site::shared() else { return };
    site.accepts("clear", "sslmode=require");
    connect(&site.socket_url("clear", "")).unwrap();
    site.refuses("clear", "sslmode=disable", "the connection is neither under TLS nor over a Unix socket");
}

#[test]
fn with_binding_required_other_methods_are_refused() {
    let Some(site) = Site::shared() else { return };
    let required = "sslmode=require&channel_binding=require";
    site.refuses("hashed", required, "asks for the password hashed by MD5");
    site.refuses("clear", required, "asks for the password in clear text");
    site.refuses("open", required, "let the client in without channel binding");
    site.accepts("open", "sslmode=require");
}

#[test]
fn a_wrong_password_is_the_servers_error() {
    let Some(site) = Site::shared() else { return };
    for (user, mode) in
        [("scram", "disable"), ("scram", "require"), ("hashed", "disable"), ("clear", "require")]
    {
        let url = site.url(user, &format!("sslmode={mode}&password=not-the-password"));
        let error = connect(&url).err().unwrap();
        assert_eq!(error.code(), "28P01", "{user}: {error}");
        assert!(!error.to_string().contains("not-the-password"));
    }
}

#[test]
fn a_missing_password_is_named() {
    let Some(site) = Site::shared() else { return };
    for user in ["scram", "hashed", "clear"] {
        let error = connect(&site.url(user, "sslmode=require")).err().unwrap();
        let expected = format!(
            "the server asks for a password for user \"{user}\", and none was given (URL, PGPASSWORD or \
             ~/.pgpass)"
        );
        assert_eq!(error.message(), expected);
    }
}

#[test]
fn the_servers_certificate_is_verified() {
    let Some(site) = Site::shared() else { return };
    let verified = |host: &str, mode: &str| {
        let root = site.workshop.root();
        format!("host={host}&hostaddr=127.0.0.1&sslmode={mode}&sslrootcert={root}&channel_binding=require")
    };
    site.accepts("scram", &verified("db.example.com", "verify-full"));
    site.accepts("scram", &verified("127.0.0.1", "verify-full"));
    site.accepts("scram", &verified("elsewhere.example.com", "verify-ca"));
    let message =
        "it is for db.example.com, 127.0.0.1, and not for elsewhere.example.com, the host in the URL";
    site.refuses("scram", &verified("elsewhere.example.com", "verify-full"), message);
    let stranger = Workshop::new("stranger");
    let root = stranger.root();
    let parameters = format!("sslmode=verify-ca&sslrootcert={root}");
    site.refuses("scram", &parameters, &format!("no authority in {root} has signed it"));
}

#[test]
fn a_client_certificate_stands_for_a_password() {
    let Some(site) = Site::shared() else { return };
    for (name, version_3) in [("client", true), ("old", false)] {
        let wanted = Wanted { common_name: "certified", names: "", version_3, ..Wanted::default() };
        let client = site.workshop.signed(name, wanted);
        let files = format!("sslcert={}&sslkey={}", client.certificate.display(), client.key.display());
        let mut session = connect(&site.url("certified", &format!("sslmode=require&{files}"))).unwrap();
        assert_eq!(session.value("SELECT current_user"), "certified");
    }
    let error = connect(&site.url("certified", "sslmode=require")).err().unwrap();
    assert_eq!(error.code(), "28000", "{error}");
}

#[test]
fn an_expired_certificate_is_refused_where_it_is_verified() {
    let wanted = Wanted { names: NAMES, expired: true, ..Wanted::default() };
    let Some(site) = Site::new(|workshop| workshop.signed("server", wanted)) else { return };
    let root = site.workshop.root();
    for mode in ["verify-full", "verify-ca", "require"] {
        let parameters = format!("sslmode={mode}&sslrootcert={root}");
        site.refuses("scram", &parameters, "it expired at 2020-01-31 12:00:00 UTC");
    }
    site.accepts("scram", "sslmode=require&channel_binding=require");
}

#[test]
fn a_certificate_without_a_hash_function_leaves_the_channel_unbound() {
    let ed25519 = |workshop: &Workshop| {
        workshop.openssl("genpkey -algorithm ED25519 -out @ed.key");
        workshop.openssl("req -new -x509 -days 30 -key @ed.key -subj /CN=server -out @ed.crt");
        support::protect(&workshop.path("ed.key"));
        Identity { certificate: workshop.path("ed.crt"), key: workshop.path("ed.key") }
    };
    let Some(site) = Site::new(ed25519) else { return };
    site.accepts("scram", "sslmode=require");
    site.refuses("scram", "sslmode=require&channel_binding=require", "has no hash function to bind to");
}
