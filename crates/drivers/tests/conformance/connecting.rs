//! How a connection is made: which of several hosts, what is run first, what is refused.

use std::sync::OnceLock;

use nephoscope_drivers::{Command, ConnectionState, ErrorClass, Settings, StatementMode, open};
use nephoscope_runtime::clock::SECOND;

use crate::client::Client;
use crate::fixtures::Fixture;
use crate::fixtures::postgres::{self, Postgres, refused};
use crate::support::postgres::Server;

pub(crate) fn a_missing_database_and_a_wrong_statement_are_named(postgres: &Postgres) {
    let url = postgres.url_at(postgres.server().port, "dbname=nowhere");
    let error = refused(&url);
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, "3D000"));
    assert_eq!(error.message(), "database \"nowhere\" does not exist");
    let statements = [("fine", "SELECT :a::int8"), ("slip", "SELEC :a"), ("also_fine", "SELECT 2")];
    let error = Client::try_new(&*postgres.driver(&[]), &statements).err().unwrap();
    assert_eq!(error.code(), "42601");
    assert_eq!(error.message(), "statement slip: syntax error at or near \"SELEC\"");
}

pub(crate) fn statements_that_run_first_are_run_in_order(postgres: &Postgres) {
    let driver = postgres.driver(&["SET application_name = 'one'", "SET application_name = 'two'; SELECT 1"]);
    let show = [("show", "SELECT current_setting('application_name')")];
    assert_eq!(Client::new(&*driver, &show).text("show", &[]), "two");
    assert_eq!(
        driver.admin().unwrap().query("SHOW application_name").unwrap().rows,
        [[Some("two".to_owned())]]
    );
    let wrong = postgres.driver(&["SET nothing = 1"]);
    let error = Client::try_new(&*wrong, &show).err().unwrap();
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, "42704"));
    assert!(error.message().starts_with("on_connect \"SET nothing = 1\": unrecognized"), "{error}");
    let error = wrong.admin().err().unwrap();
    assert!(error.message().starts_with("on_connect \"SET nothing = 1\": unrecognized"), "{error}");
    // Whatever they leave behind, the state is the server's.
    let mut client = Client::new(&*postgres.driver(&["BEGIN"]), &show);
    assert_eq!(client.state(), ConnectionState::InTransaction);
    client.control(Command::Commit).unwrap();
    assert_eq!(client.state(), ConnectionState::Idle);
}

pub(crate) fn the_time_limit_holds_for_what_is_run_first(postgres: &Postgres) {
    let on_connect = vec!["SELECT pg_sleep(60)".to_owned()];
    // On a busy machine the connection itself may take half a second.
    let settings = Settings { connect_timeout: 2 * SECOND, on_connect, ..postgres.settings() };
    let driver = open(&postgres.url(), &settings).unwrap();
    let errors = [Client::try_new(&*driver, &[]).err().unwrap(), driver.admin().err().unwrap()];
    for error in errors {
        assert_eq!(error.class(), ErrorClass::ConnectionLost);
        let expected = "on_connect \"SELECT pg_sleep(60)\": no answer within the time limit";
        assert_eq!(error.message(), expected);
    }
}

pub(crate) fn a_unix_socket_is_as_good_as_tcp(postgres: &Postgres) {
    let server = postgres.server();
    let (directory, port) = (server.socket_directory(), server.port);
    let url = format!("postgresql://postgres@/postgres?host={directory}&port={port}&sslmode=require");
    let settings = Settings { statement_mode: postgres.mode(), ..Settings::default() };
    let driver = open(&url, &settings).unwrap();
    let statements =
        [("address", "SELECT coalesce(host(inet_client_addr()), 'local')"), ("sleep", "SELECT pg_sleep(10)")];
    let mut client = Client::new(&*driver, &statements);
    assert_eq!(client.text("address", &[]), "local");
    client.queue("sleep", &[], nephoscope_drivers::Want::Rows).unwrap();
    client.flush_within(SECOND / 50).unwrap_err();
    client.cancel();
    assert_eq!(client.flush().unwrap_err().code(), "57014");
    let nowhere = format!("postgresql://postgres@/postgres?host={directory}&port=1");
    let error = refused(&nowhere);
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    let expected = format!("{directory}/.s.PGSQL.1: No such file or directory (os error 2)");
    assert_eq!(error.message(), expected);
}

#[test]
fn a_wrong_password_is_the_servers_error_and_is_not_shown() {
    let Some(member) = postgres::prepared() else { return };
    let port = member.server().port;
    let url = |password: &str| {
        format!("postgresql://scram:{password}@127.0.0.1:{port},127.0.0.1:1/postgres?sslmode=disable")
    };
    Client::new(&*open(&url("correct"), &Settings::default()).unwrap(), &[]);
    let error = refused(&url("swordfish"));
    // As with libpq, no other host is tried with a password that one has refused.
    assert_eq!((error.class(), error.code()), (ErrorClass::Other, "28P01"), "{error}");
    assert!(!error.to_string().contains("swordfish"));
    assert!(!open(&url("swordfish"), &Settings::default()).unwrap().redacted_url().contains("swordfish"));
}

#[test]
fn a_greeting_may_come_in_pieces() {
    let (Some(pieces), Some(member)) = (postgres::pieces(), postgres::tls()) else { return };
    let root = member.server().root_certificate();
    for mode in ["disable".to_owned(), format!("verify-full&sslrootcert={root}&channel_binding=require")] {
        for statement_mode in [StatementMode::Simple, StatementMode::Prepared] {
            let url =
                format!("postgresql://scram:correct@127.0.0.1:{}/postgres?sslmode={mode}", pieces.port());
            let driver = open(&url, &Settings { statement_mode, ..Settings::default() }).unwrap();
            let mut client = Client::new(&*driver, &[("who", "SELECT current_user::text")]);
            assert_eq!(client.text("who", &[]), "scram");
        }
    }
}

#[test]
fn an_unknown_host_is_named() {
    let error = refused("postgresql://postgres@no-such-host.invalid/postgres");
    assert_eq!(error.class(), ErrorClass::ConnectionLost);
    assert!(error.message().starts_with("host \"no-such-host.invalid\": "), "{error}");
}

#[test]
fn a_name_leads_to_its_address() {
    let Some(member) = postgres::prepared() else { return };
    let port = member.server().port;
    let url = format!("postgresql://postgres@localhost:{port}/postgres?sslmode=disable");
    let driver = open(&url, &Settings::default()).unwrap();
    let mut client = Client::new(&*driver, &[("address", "SELECT host(inet_server_addr())")]);
    assert_eq!(client.text("address", &[]), "127.0.0.1");
}

/// A primary and its hot standby, for as long as the tests run.
fn pair() -> Option<&'static (&'static Server, Server)> {
    static STANDBY: OnceLock<Option<(&'static Server, Server)>> = OnceLock::new();
    let start = || {
        let primary = postgres::shared()?;
        Some((primary, postgres::start_standby(primary)))
    };
    STANDBY.get_or_init(start).as_ref()
}

const RECOVERY: [(&str, &str); 1] = [("recovery", "SELECT pg_is_in_recovery()::text")];

/// Which server a list of hosts leads to.
fn leads_to(hosts: &[&Server], parameters: &str) -> Result<&'static str, String> {
    let hosts: Vec<String> = hosts.iter().map(|host| format!("127.0.0.1:{}", host.port)).collect();
    let url = format!("postgresql://postgres@{}/postgres?sslmode=disable&{parameters}", hosts.join(","));
    let driver = open(&url, &Settings::default()).unwrap();
    let mut client = Client::try_new(&*driver, &RECOVERY).map_err(|error| error.to_string())?;
    Ok(if client.text("recovery", &[]) == "true" { "standby" } else { "primary" })
}

#[test]
fn the_kind_of_server_decides_among_several_hosts() {
    let Some((primary, standby)) = pair() else { return };
    for (wanted, primary_first, standby_first) in [
        ("any", "primary", "standby"),
        ("read-write", "primary", "primary"),
        ("primary", "primary", "primary"),
        ("read-only", "standby", "standby"),
        ("standby", "standby", "standby"),
        ("prefer-standby", "standby", "standby"),
    ] {
        let wanted = format!("target_session_attrs={wanted}");
        assert_eq!(leads_to(&[primary, standby], &wanted).as_deref(), Ok(primary_first), "{wanted}");
        assert_eq!(leads_to(&[standby, primary], &wanted).as_deref(), Ok(standby_first), "{wanted}");
    }
    let only = |host: &Server, wanted: &str| leads_to(&[host], &format!("target_session_attrs={wanted}"));
    assert_eq!(only(primary, "prefer-standby").as_deref(), Ok("primary"));
    for (host, wanted) in
        [(*primary, "standby"), (primary, "read-only"), (standby, "primary"), (standby, "read-write")]
    {
        let expected = format!("127.0.0.1:{}: the server is not {wanted}", host.port);
        assert_eq!(only(host, wanted), Err(expected));
    }
}

#[test]
fn a_host_that_is_down_is_passed_over() {
    let Some((primary, standby)) = pair() else { return };
    let hosts = format!("127.0.0.1:1,127.0.0.1:{},127.0.0.1:{}", standby.port, primary.port);
    let url = format!("postgresql://postgres@{hosts}/postgres?target_session_attrs=read-write");
    let driver = open(&url, &Settings::default()).unwrap();
    assert_eq!(Client::new(&*driver, &RECOVERY).text("recovery", &[]), "false");
    let table = driver.admin().unwrap().query("SELECT pg_is_in_recovery()").unwrap();
    assert_eq!(table.rows, [[Some("f".to_owned())]]);
}

#[test]
fn a_standby_takes_no_writes() {
    let Some((_, standby)) = pair() else { return };
    let driver = open(&postgres::url(standby.port, ""), &Settings::default()).unwrap();
    let mut client = Client::new(&*driver, &[("write", "CREATE TABLE nothing ()")]);
    let error = client.count("write", &[]).unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::ReadOnly, "25006"));
}

#[test]
fn random_balance_spreads_connections_over_all_hosts() {
    let Some((primary, standby)) = pair() else { return };
    let mut found: Vec<_> =
        (0..40).map(|_| leads_to(&[primary, standby], "load_balance_hosts=random")).collect();
    found.sort_unstable();
    found.dedup();
    assert_eq!(found, [Ok("primary"), Ok("standby")]);
    let fixed = (0..10).all(|_| leads_to(&[primary, standby], "").as_deref() == Ok("primary"));
    assert!(fixed, "without balance the first host is taken");
}

#[test]
fn tls_is_explained_in_the_words_of_the_product() {
    let Some(mysql) = crate::fixtures::mysql::tls() else { return };
    let server = mysql.server();
    let told = |parameters: &str| {
        refused(&format!("mysql://tester@localhost:{}/test?{parameters}", server.port)).message().to_owned()
    };
    let message = told(&format!("ssl-mode=VERIFY_IDENTITY&ssl-ca={}", server.root_certificate()));
    assert!(
        message.contains("not for localhost, the host in the URL (ssl-mode=VERIFY_CA does not"),
        "{message}"
    );
}
