//! TLS handshakes in memory: the driver's client against rustls's server, with certificates made by
//! `openssl`.
#![allow(clippy::unwrap_used, clippy::print_stderr)]

mod support;

use std::fs;
use std::io::Cursor;
use std::os::unix::fs::PermissionsExt;

use nephoscope_drivers::net::tls::{TlsConnector, end_point_binding};
use nephoscope_drivers::postgres::auth::Transport;
use nephoscope_drivers::postgres::config::Config;
use nephoscope_drivers::{ConfigError, Error, ErrorClass};
use ring::digest;
use rustls::version::{TLS12, TLS13};

use support::handshake::{Server, certificates, complete};
use support::{Identity, Wanted, Workshop, has_openssl};

fn config(url: &str) -> Config {
    Config::parse_with(url, &|_| None).unwrap()
}

fn made(config: &Config) -> Result<Option<TlsConnector>, ConfigError> {
    TlsConnector::new(&config.tls, &config.hosts)
}

fn connector(url: &str) -> TlsConnector {
    made(&config(url)).unwrap().unwrap()
}

fn refused(url: &str) -> String {
    made(&config(url)).unwrap_err().0
}

/// A handshake of the URL's first host with a server; returns the channel binding.
fn handshake(url: &str, server: Server) -> Result<Option<Vec<u8>>, Error> {
    let (connector, config) = (connector(url), config(url));
    let host = &config.hosts[0];
    let mut client = connector.start(host)?;
    complete(&mut client, &mut server.start()).map_err(|error| connector.explain(&error, host))?;
    match Transport::encrypted(&config, &client, host)? {
        Transport::Tls { end_point } => Ok(end_point),
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn accepts(url: &str, server: Server) {
    let binding = handshake(url, server).unwrap_or_else(|error| panic!("{url}: {error}"));
    assert!(binding.is_some());
}

#[track_caller]
fn refuses(url: &str, server: Server, because: &str) {
    let error = handshake(url, server).err().unwrap_or_else(|| panic!("{url} is accepted"));
    assert!(error.message().contains(because), "{url}: {error}");
    assert_eq!(error.class(), ErrorClass::Other);
}

#[test]
fn require_accepts_any_certificate_whose_key_the_server_holds() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let old = Wanted { version_3: false, expired: true, ..Wanted::default() };
    let identities = [workshop.signed("old", old), workshop.self_signed("own", Wanted::default())];
    for identity in &identities {
        for version in [&TLS12, &TLS13] {
            for host_and_mode in
                ["h?sslmode=allow", "12345?sslmode=prefer", "[fe80::1%25eth0]?sslmode=require"]
            {
                accepts(&format!("postgresql://u@{host_and_mode}"), Server::new(identity).only(version));
            }
        }
    }
    for version in [&TLS12, &TLS13] {
        let mut server = Server::new(&identities[0]).only(version);
        server.certified.key = Server::new(&identities[1]).certified.key;
        refuses("postgresql://u@h?sslmode=require", server, "does not hold the key of the certificate");
    }
}

#[test]
fn an_rsa_certificate_is_verified_in_both_versions() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    workshop.openssl(
        "req -x509 -newkey rsa:2048 -noenc -keyout @rsa.key -days 30 -subj /CN=rsa -addext \
         subjectAltName=DNS:h -out @rsa.crt",
    );
    let identity = Identity { certificate: workshop.path("rsa.crt"), key: workshop.path("rsa.key") };
    let root = workshop.path("rsa.crt").display().to_string();
    for version in [&TLS12, &TLS13] {
        accepts("postgresql://u@h?sslmode=require", Server::new(&identity).only(version));
        accepts(
            &format!("postgresql://u@h?sslmode=verify-full&sslrootcert={root}"),
            Server::new(&identity).only(version),
        );
    }
}

#[test]
fn verify_ca_looks_at_the_authority_and_verify_full_at_the_name_too() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let wanted =
        Wanted { names: "DNS:db.example.com,DNS:*.pool.example.com,IP:10.0.0.1,IP:::1", ..Wanted::default() };
    let identity = workshop.signed("server", wanted);
    let url = |host: &str, mode: &str| {
        format!("postgresql://u@{host}?sslmode={mode}&sslrootcert={}", workshop.root())
    };
    for mode in ["prefer", "require", "verify-ca"] {
        accepts(&url("elsewhere", mode), Server::new(&identity));
    }
    for host in ["db.example.com", "DB.example.COM", "x.pool.example.com", "10.0.0.1", "[::1]"] {
        accepts(&url(host, "verify-full"), Server::new(&identity));
    }
    accepts(&format!("{}&hostaddr=192.0.2.1", url("db.example.com", "verify-full")), Server::new(&identity));
    let message = "it is for db.example.com, *.pool.example.com, 10.0.0.1, 0::1, and not for server, the \
                   host in the URL";
    refuses(&url("server", "verify-full"), Server::new(&identity), message);
    refuses(&url("10.0.0.2", "verify-full"), Server::new(&identity), "and not for 10.0.0.2");
    let other = workshop.self_signed("other", wanted);
    refuses(&url("db.example.com", "verify-ca"), Server::new(&other), "add it there to trust it");
    for (authority, because) in [
        ("stranger", format!("no authority in {} has signed it", workshop.root())),
        ("root", format!("not by the key of the authority of that name in {}", workshop.root())),
    ] {
        let other = Workshop::new(authority);
        let signed = other.signed("server", wanted);
        refuses(&url("db.example.com", "verify-ca"), Server::new(&signed), &because);
    }
}

#[test]
fn the_root_file_in_the_home_directory_is_used_where_there_is_one() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let home = workshop.path("home");
    fs::create_dir_all(home.join(".postgresql")).unwrap();
    let parse = |url: &str| {
        let home = home.display().to_string();
        Config::parse_with(url, &|name| (name == "HOME").then(|| home.clone())).unwrap()
    };
    let missing = made(&parse("postgresql://u@h?sslmode=verify-full")).unwrap_err();
    assert!(
        missing.0.contains(".postgresql/root.crt does not exist, and sslmode=verify-full needs"),
        "{missing}"
    );

    fs::copy(workshop.root(), home.join(".postgresql/root.crt")).unwrap();
    let config = parse("postgresql://u@h?sslmode=require");
    let connector = made(&config).unwrap().unwrap();
    let other = workshop.self_signed("other", Wanted::default());
    let mut client = connector.start(&config.hosts[0]).unwrap();
    assert!(complete(&mut client, &mut Server::new(&other).start()).is_err());
}

#[test]
fn a_certificate_in_the_root_file_is_trusted_as_it_is() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let own =
        workshop.self_signed("own", Wanted { common_name: "db.example.com", names: "", ..Wanted::default() });
    let url = |host: &str, mode: &str| {
        format!("postgresql://u@{host}?sslmode={mode}&sslrootcert={}", own.certificate.display())
    };
    accepts(&url("elsewhere", "verify-ca"), Server::new(&own));
    // Without alternative names the common name counts, as in libpq.
    accepts(&url("db.example.com", "verify-full"), Server::new(&own));
    refuses(
        &url("elsewhere", "verify-full"),
        Server::new(&own),
        "it is for CN=db.example.com, and not for elsewhere",
    );
}

#[test]
fn a_common_name_does_not_count_beside_alternative_names() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let identity =
        workshop.signed("server", Wanted { common_name: "h", names: "DNS:other", ..Wanted::default() });
    let url = format!("postgresql://u@h?sslmode=verify-full&sslrootcert={}", workshop.root());
    refuses(&url, Server::new(&identity), "other");
    let identity = workshop.signed("server", Wanted { common_name: "h", names: "", ..Wanted::default() });
    accepts(&url, Server::new(&identity));
}

#[test]
fn a_version_1_certificate_is_verified_only_as_it_is() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let identity = workshop.signed("old", Wanted { common_name: "h", version_3: false, ..Wanted::default() });
    let url = |root: &str| format!("postgresql://u@h?sslmode=verify-full&sslrootcert={root}");
    refuses(&url(&workshop.root()), Server::new(&identity), "an X.509 certificate of version 1");
    accepts(&url(&identity.certificate.display().to_string()), Server::new(&identity));
}

#[test]
fn an_expired_certificate_is_refused_with_its_date() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let wanted = Wanted { expired: true, ..Wanted::default() };
    let url = |root: &str| format!("postgresql://u@localhost?sslmode=verify-ca&sslrootcert={root}");
    let identity = workshop.signed("old", wanted);
    let message = "TLS with localhost:5432: the server's certificate is not accepted: it expired at \
                   2020-01-31 12:00:00 UTC (it is 20";
    refuses(&url(&workshop.root()), Server::new(&identity), message);
    refuses(&url(&identity.certificate.display().to_string()), Server::new(&identity), message);
}

#[test]
fn the_systems_store_is_used_by_name() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let identity = workshop.signed("server", Wanted::default());
    let parse = |variables: &'static str, value: String| {
        Config::parse_with("postgresql://u@localhost?sslrootcert=system", &move |name| {
            (name == variables).then(|| value.clone())
        })
        .unwrap()
    };
    let directory = workshop.path("store");
    fs::create_dir(&directory).unwrap();
    let empty = made(&parse("SSL_CERT_DIR", directory.display().to_string())).unwrap_err();
    assert!(empty.0.contains("holds no certificate; looked for are SSL_CERT_FILE"), "{empty}");
    fs::copy(workshop.root(), directory.join("0.pem")).unwrap();
    for config in
        [parse("SSL_CERT_FILE", workshop.root()), parse("SSL_CERT_DIR", directory.display().to_string())]
    {
        let connector = made(&config).unwrap().unwrap();
        let mut client = connector.start(&config.hosts[0]).unwrap();
        complete(&mut client, &mut Server::new(&identity).start()).unwrap();
    }
}

#[test]
fn the_client_shows_its_certificate() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let server_identity = workshop.signed("server", Wanted::default());
    let client = workshop.signed("client", Wanted { common_name: "u", names: "", ..Wanted::default() });
    let url = |certificate: &str, key: &str| {
        let (certificate, key) = (workshop.path(certificate), workshop.path(key));
        format!(
            "postgresql://u@localhost?sslmode=require&sslcert={}&sslkey={}",
            certificate.display(),
            key.display()
        )
    };
    let server = || {
        let mut server = Server::new(&server_identity);
        server.client_root = certificates(&workshop.path("root.crt")).pop();
        server
    };
    accepts(&url("client.crt", "client.key"), server());
    accepts(&url("client.crt", "client.key"), server().only(&TLS12));
    refuses("postgresql://u@localhost?sslmode=require", server(), "the server asks for a client certificate");
    // A certificate of version 1 is sent too; whether it will do is for the server to say.
    workshop.signed("old", Wanted { version_3: false, ..Wanted::default() });
    connector(&url("old.crt", "old.key"));

    assert!(refused(&url("none.crt", "client.key")).contains("none.crt does not exist"));
    assert!(refused(&url("client.key", "client.key")).contains("holds no certificate"));
    assert!(refused(&url("client.crt", "none.key")).contains("none.key does not exist, and the client's"));
    assert!(refused(&url("client.crt", "server.key")).contains("is not the key of the certificate"));
    support::protect(&client.certificate);
    assert!(refused(&url("client.crt", "client.crt")).contains("holds no private key"));
    workshop.openssl("pkey -in @client.key -aes256 -passout pass:secret -out @locked.key");
    support::protect(&workshop.path("locked.key"));
    assert!(refused(&url("client.crt", "locked.key")).contains("is encrypted"));
    fs::set_permissions(&client.key, fs::Permissions::from_mode(0o644)).unwrap();
    assert!(refused(&url("client.crt", "client.key")).contains("allowed is u=rw (0600)"));
}

#[test]
fn tls_that_begins_directly_names_the_protocol() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let identity = workshop.signed("server", Wanted::default());
    let url = "postgresql://u@localhost?sslmode=require&sslnegotiation=direct";
    let server = |protocols: &[&str]| {
        let mut server = Server::new(&identity);
        server.protocols = protocols.iter().map(|name| name.as_bytes().to_vec()).collect();
        server
    };
    accepts(url, server(&["postgresql"]));
    refuses(url, server(&[]), "does not know the protocol \"postgresql\"");
    refuses(url, server(&["h2"]), "does not speak the protocol \"postgresql\"");
    accepts("postgresql://u@localhost?sslmode=require", server(&[]));
}

#[test]
fn only_the_allowed_versions_are_spoken() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    let identity = workshop.signed("server", Wanted::default());
    let url = |limit: &str| format!("postgresql://u@localhost?sslmode=require&{limit}");
    accepts(&url("ssl_min_protocol_version=TLSv1.3"), Server::new(&identity));
    accepts(&url("ssl_max_protocol_version=TLSv1.2"), Server::new(&identity));
    for (limit, version) in
        [("ssl_min_protocol_version=TLSv1.3", &TLS12), ("ssl_max_protocol_version=TLSv1.2", &TLS13)]
    {
        refuses(&url(limit), Server::new(&identity).only(version), "TLS 1.2 or 1.3");
    }
}

#[test]
fn an_answer_that_is_not_tls_is_named() {
    let url = "postgresql://u@localhost?sslmode=require";
    let (connector, config) = (connector(url), config(url));
    let mut client = connector.start(&config.hosts[0]).unwrap();
    client.read_tls(&mut Cursor::new(b"HTTP/1.1 400 Bad Request\r\n\r\n")).unwrap();
    let error = connector.explain(&client.process_new_packets().unwrap_err(), &config.hosts[0]);
    assert!(error.message().contains("is not TLS"), "{error}");
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
}

#[test]
fn tls_is_not_prepared_where_it_is_not_used() {
    for url in ["postgresql://u@h?sslmode=disable", "postgresql://u@%2Frun?sslmode=verify-full"] {
        assert!(made(&config(url)).unwrap().is_none());
    }
    assert!(refused("postgresql://u@h?sslmode=verify-ca").contains("no home directory"));
    assert!(refused("postgresql://u@h?sslmode=verify-ca&sslrootcert=/none").contains("/none does not exist"));
    assert!(refused("postgresql://u@h?sslrootcert=/dev/null").contains("holds no certificate"));
    let strange = "postgresql://u@a..b?sslmode=verify-full&sslrootcert=/none";
    assert!(refused(strange).contains("\"a..b\" is neither a DNS name nor an IP address"));
    connector("postgresql://u@h?sslmode=require&sslrootcert=/none");
}

#[test]
fn the_channel_is_bound_by_the_hash_of_the_certificates_signature() {
    if !has_openssl() {
        return;
    }
    let workshop = Workshop::new("root");
    workshop.openssl("genpkey -algorithm RSA -pkeyopt rsa_keygen_bits:2048 -out @rsa.key");
    workshop.openssl("genpkey -algorithm ED25519 -out @ed.key");
    let binding = |key: &str, options: &str| {
        workshop.openssl(&format!("req -new -x509 -key @{key}.key -subj /CN=x {options} -out @x.crt"));
        let der = certificates(&workshop.path("x.crt")).remove(0);
        (end_point_binding(&der), der)
    };
    let pss = "-sigopt rsa_padding_mode:pss";
    for (key, options, algorithm) in [
        ("rsa", "-md5", &digest::SHA256),
        ("rsa", "-sha1", &digest::SHA256),
        ("rsa", "-sha256", &digest::SHA256),
        ("rsa", "-sha384", &digest::SHA384),
        ("rsa", "-sha512", &digest::SHA512),
        ("root", "-sha1", &digest::SHA256),
        ("root", "-sha256", &digest::SHA256),
        ("root", "-sha384", &digest::SHA384),
        ("root", "-sha512", &digest::SHA512),
        ("rsa", &format!("-sha1 {pss}"), &digest::SHA256),
        ("rsa", &format!("-sha256 {pss}"), &digest::SHA256),
        ("rsa", &format!("-sha384 {pss}"), &digest::SHA384),
        ("rsa", &format!("-sha512 {pss}"), &digest::SHA512),
    ] {
        let (binding, der) = binding(key, options);
        assert_eq!(binding.unwrap(), digest::digest(algorithm, &der).as_ref(), "{key} {options}");
    }
    assert_eq!(binding("ed", "").0, None);
    assert_eq!(binding("rsa", "-sha3-256").0, None);
}
