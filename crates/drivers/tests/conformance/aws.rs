//! What holds for a system behind HTTP: requests are independent, and a connection is no more than a way to make them.

use std::io::Read;
use std::net::TcpListener;
use std::thread;

use nephoscope_drivers::{Command, ConnectionState, ErrorClass, Settings, Value, Want, open};

use crate::client::Client;
use crate::fixtures::proxy::Proxy;
use crate::fixtures::{Fixture, unique};
use crate::keyed::{rows, statements, text};

/// The URL with another port of 127.0.0.1.
fn at_port(fixture: &dyn Fixture, port: u16) -> String {
    let url = fixture.url();
    format!("{}:{port}", url.rsplit_once(':').unwrap().0)
}

fn port(fixture: &dyn Fixture) -> u16 {
    fixture.url().rsplit_once(':').unwrap().1.parse().unwrap()
}

pub(crate) fn errors_leave_a_usable_connection(fixture: &dyn Fixture) {
    let table = unique("t");
    fixture.make_table(&table);
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    let all = [&*statements(&table), &*statements("no_such_table")].concat();
    let renamed = all.into_iter().enumerate().map(|(place, statement)| {
        let name = format!("{}{}", statement.name(), if place < all_of_one() { "" } else { "_amiss" });
        nephoscope_drivers::Statement::of_verb(&name, statement.verb().unwrap().clone())
    });
    let mut client = Client::with(&*driver, &renamed.collect()).unwrap();
    let name = driver.name();
    let amiss = match name {
        "dynamodb" => Some(("read_amiss", "ResourceNotFoundException")),
        "simpledb" => Some(("read_amiss", "NoSuchDomain")),
        "hbase" => Some(("delete_amiss", "TableNotFoundException")),
        _ => None,
    };
    if let Some((statement, code)) = amiss {
        client.queue(statement, &[text("x")], Want::Rows).unwrap();
        client.queue("insert", &[text("y"), text("1"), text("2")], Want::Count).unwrap();
        let error = client.flush().unwrap_err();
        assert_eq!((error.class(), error.code()), (ErrorClass::Other, code));
        assert!(!error.outcome_unknown() && client.state() == ConnectionState::Idle);
        assert_eq!(rows(&mut client, "read", &[text("y")]), ["1 2"], "what is behind an error is done");
    }
    for (statement, values, message) in [
        ("insert", &[text("z"), Value::Null, text("2")][..], "keeps no NULL"),
        ("update_b", &[Value::Bytes(b"\xff"), text("z")][..], "keeps UTF-8 here"),
        ("read", &[][..], "read takes 1 parameters and was given 0"),
        ("scan", &[text(""), text("2")][..], "scan, parameter :count: it is no whole number of rows"),
    ] {
        let error = client.queue(statement, values, Want::Count).unwrap_err();
        assert!(error.message().contains(message), "{error}");
    }
    let long = "x".repeat(1025);
    if name == "simpledb" {
        let error = client.queue("insert", &[text("z"), text("1"), text(&long)], Want::Count).unwrap_err();
        let what = "parameter :b: SimpleDB keeps texts of 1024 bytes at most, and this one has 1025";
        assert!(error.message().ends_with(what), "{error}");
    }
    if name == "hbase" {
        for key in ["", "a*", "schema"] {
            let error = client.queue("delete", &[text(key)], Want::Count).unwrap_err();
            assert!(error.message().contains("table t_"), "{error}");
        }
    }
    let begin = client.queue_command(Command::Begin, &[], Want::Count).unwrap_err();
    assert!(begin.message().contains("has no transactions of several statements"), "{begin}");
    assert_eq!(rows(&mut client, "read", &[text("z")]).len(), 0, "nothing was queued");
    let told = open(&fixture.url(), &Settings { on_connect: vec!["x".to_owned()], ..Settings::default() });
    assert!(told.map(|_| ()).unwrap_err().0.contains("load.on_connect"));
}

/// How many statements a table has in this suite.
fn all_of_one() -> usize {
    statements("t").len()
}

pub(crate) fn a_connection_that_the_server_has_closed_is_made_anew(fixture: &dyn Fixture) {
    let (table, proxy) = (unique("t"), Proxy::new(port(fixture)));
    fixture.make_table(&table);
    let driver = open(&at_port(fixture, proxy.port), &Settings::default()).unwrap();
    let mut client = Client::with(&*driver, &statements(&table)).unwrap();
    for key in ["x", "y"] {
        client.count("insert", &[text(key), text("1"), text("2")]).unwrap();
        proxy.cut();
        // The end of the connection has to have arrived, as it has where a server closes what rests.
        client.rest(nephoscope_runtime::clock::SECOND / 5);
        assert_eq!(client.state(), ConnectionState::Idle);
        assert_eq!(rows(&mut client, "read", &[text(key)]), ["1 2"]);
    }
}

pub(crate) fn what_was_sent_and_not_answered_may_have_been_done(fixture: &dyn Fixture) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let driver =
        open(&at_port(fixture, listener.local_addr().unwrap().port()), &Settings::default()).unwrap();
    let server = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        assert!(stream.read(&mut [0; 4096]).unwrap() > 0);
    });
    let mut client = Client::with(&*driver, &statements("t")).unwrap();
    let error = client.count("insert", &[text("x"), text("1"), text("2")]).unwrap_err();
    assert_eq!((error.class(), error.outcome_unknown()), (ErrorClass::ConnectionLost, true), "{error}");
    assert_eq!(client.state(), ConnectionState::Lost);
    server.join().unwrap();
    // Nobody listens any more: nothing can have been done.
    let refused = Client::with(&*driver, &statements("t")).map(|_| ()).unwrap_err();
    assert_eq!(refused.class(), ErrorClass::ConnectionLost);
}
