//! What holds for `MongoDB` besides: types, errors, users, the roles of replica sets.

use std::io::{Read, Write};
use std::net::TcpListener;
use std::thread;

use nephoscope_drivers::{Command, ConnectionState, ErrorClass, Settings, Value, Want, open};

use crate::client::Client;
use crate::fixtures::{Fixture, mongodb, unique};
use crate::keyed::{rows, statements, text};

fn client(url: &str, table: &str) -> Client {
    Client::with(&*open(url, &Settings::default()).unwrap(), &statements(table)).unwrap()
}

pub(crate) fn values_of_every_type_come_back(fixture: &dyn Fixture) {
    let mut client = client(&fixture.url(), &unique("t"));
    for (key, (value, back)) in [
        (Value::Null, Value::Null),
        (Value::Bool(true), Value::Bool(true)),
        (Value::Int(-7), Value::Int(-7)),
        (Value::Int(i64::MAX), Value::Int(i64::MAX)),
        (Value::Float(0.1), Value::Float(0.1)),
        (text("é\0x"), text("é\0x")),
        (Value::Bytes(&[0, 255]), Value::Bytes(&[0, 255])),
        (Value::Uuid([7; 16]), Value::Uuid([7; 16])),
        (Value::Date(1), Value::Timestamp(86_400_000_000)),
        (Value::Timestamp(1_234_567), Value::Timestamp(1_234_000)),
        (Value::Time(5), Value::Int(5)),
        (Value::Json(br#"{"x":[1,null]}"#), Value::Json(br#"{"x":[1,null]}"#)),
    ]
    .into_iter()
    .enumerate()
    {
        let key = Value::Int(key as i64);
        client.count("insert", &[key, value, text("-")]).unwrap();
        client.rows.clear();
        let found = client.call("read", &[key]).unwrap().result.unwrap();
        assert_eq!(client.rows.named(found, 0, "a"), Some(back));
    }
    // A number is the same key however it is written.
    assert_eq!(client.count("read", &[Value::Float(2.0)]).unwrap().affected, 1);
}

pub(crate) fn errors_have_their_class_and_leave_a_usable_connection(fixture: &dyn Fixture) {
    let table = unique("t");
    let mut client = client(&fixture.url(), &table);
    client.count("insert", &[text("x"), text("1"), text("2")]).unwrap();
    // The command that is behind the wrong one is run.
    client.queue("insert", &[text("x"), text("3"), text("4")], Want::Count).unwrap();
    client.queue("insert", &[text("y"), text("5"), text("6")], Want::Count).unwrap();
    let error = client.flush().unwrap_err();
    assert_eq!((error.class(), error.code()), (ErrorClass::Constraint, "11000"), "{error}");
    assert!(!error.outcome_unknown() && client.state() == ConnectionState::Idle);
    assert_eq!(rows(&mut client, "scan", &[text(""), Value::Int(5)]), ["1 2", "5 6"]);
    assert_eq!(client.count("update", &[text("1"), text("2"), text("nobody")]).unwrap().affected, 0);
    for (name, values, message) in [
        (
            "insert",
            &[text("z"), Value::Bytes(b"x"), Value::Text(b"\xff")][..],
            "insert, parameter :b: MongoDB keeps UTF-8 here",
        ),
        ("read", &[][..], "read takes 1 parameters and was given 0"),
        ("scan", &[text(""), text("2")][..], "scan, parameter :count: it is no whole number of rows"),
    ] {
        assert_eq!(client.queue(name, values, Want::Count).unwrap_err().message(), message);
    }
    let begin = client.queue_command(Command::Begin, &[], Want::Count).unwrap_err();
    assert!(begin.message().starts_with("MongoDB has no transactions of several statements"), "{begin}");
    assert!(rows(&mut client, "read", &[text("z")]).is_empty(), "nothing was queued");
    let driver = open(&fixture.url(), &Settings::default()).unwrap();
    let mut admin = driver.admin().unwrap();
    let told = admin.query("{\"nonsense\": 1}").unwrap_err();
    assert_eq!((told.class(), told.code()), (ErrorClass::Other, "59"), "{told}");
    let told = admin.query("ping").unwrap_err();
    assert_eq!(told.message(), "a command of MongoDB is JSON, {\"ping\": 1}: it is no JSON object");
    let found = admin.query(&format!("{{\"find\": \"{table}\", \"filter\": {{\"_id\": \"y\"}}}}")).unwrap();
    assert_eq!(found.rows, [[Some(r#"{"_id":"y","a":"5","b":"6"}"#.to_owned())]]);
}

/// `FerretDB` ends a cursor's batch where it was asked to; `MongoDB` at 16 MiB, too.
pub(crate) fn a_cursor_is_read_to_its_end(fixture: &dyn Fixture) {
    let table = unique("t");
    let mut client = client(&fixture.url(), &table);
    for key in 0..250 {
        client.queue("insert", &[Value::Int(key), Value::Int(key), text("-")], Want::Count).unwrap();
    }
    client.flush().unwrap();
    let mut admin = open(&fixture.url(), &Settings::default()).unwrap().admin().unwrap();
    let found = admin.query(&format!("{{\"find\": \"{table}\", \"batchSize\": 7}}")).unwrap();
    assert_eq!((found.rows.len(), found.columns), (250, vec!["document".to_owned()]));
}

pub(crate) fn what_a_level_asks_for_is_taken(fixture: &dyn Fixture) {
    for level in ["local", "majority", "linearizable", "read available write 1"] {
        let settings = Settings { consistency: Some(level.to_owned()), ..fixture.settings() };
        let driver = open(&fixture.url(), &settings).unwrap();
        let mut client = Client::with(&*driver, &statements(&unique("t"))).unwrap();
        client.count("insert", &[text("x"), text("1"), text("2")]).unwrap();
        assert_eq!(rows(&mut client, "read", &[text("x")]), ["1 2"], "{level}");
    }
}

#[test]
fn a_connection_that_is_cut_is_lost_and_leaves_the_outcome_open() {
    let Some((proxy, url)) = mongodb::proxied() else { return };
    let mut client = client(&url, &unique("t"));
    client.count("insert", &[text("x"), text("1"), text("2")]).unwrap();
    proxy.cut();
    let error = client.call("read", &[text("x")]).unwrap_err();
    assert_eq!((error.class(), client.state()), (ErrorClass::ConnectionLost, ConnectionState::Lost));
    assert!(error.outcome_unknown());
}

#[test]
fn a_user_is_let_in_by_the_password_alone() {
    if mongodb::tls().is_none() {
        return;
    }
    let told = |user: &str, options: &str| {
        let driver = mongodb::as_user(user, options).unwrap();
        driver.admin().map(|_| ()).map_err(|error| (error.code().to_owned(), error.to_string()))
    };
    for mechanism in ["", "&authMechanism=SCRAM-SHA-1", "&authMechanism=SCRAM-SHA-256"] {
        assert_eq!(told("tester:s3cret", mechanism), Ok(()), "{mechanism}");
        let (code, message) = told("tester:wr0ng", mechanism).unwrap_err();
        assert_eq!(code, "18", "{message}");
        assert!(!message.contains("wr0ng"), "{message}");
    }
    assert_eq!(told("nobody:s3cret", "").unwrap_err().0, "18");
    // A user of another database, and of the older mechanism alone.
    let mut admin = mongodb::as_user("tester:s3cret", "").unwrap().admin().unwrap();
    let create = r#"{"createUser": "old", "pwd": "wörd", "roles": [], "mechanisms": ["SCRAM-SHA-1"]}"#;
    admin.query(create).unwrap();
    assert_eq!(told("old:w%C3%B6rd", "&authSource=tests"), Ok(()));
}

#[test]
fn the_certificate_is_verified_unless_the_url_says_otherwise() {
    let Some(fixture) = mongodb::tls() else { return };
    let told = |url: &str| {
        open(url, &Settings::default()).unwrap().admin().map(|_| ()).map_err(|error| error.to_string())
    };
    let (before, after) =
        fixture.url().split_once("&tlsCAFile=").map(|(a, b)| (a.to_owned(), b.to_owned())).unwrap();
    let rest = after.split_once('&').unwrap().1.to_owned();
    let unknown = told(&format!("{before}&{rest}")).unwrap_err();
    assert!(unknown.contains("tlsCAFile"), "the message says what to set: {unknown}");
    assert_eq!(told(&format!("{before}&tlsInsecure=true&{rest}")), Ok(()));
    // The certificate is of the address, and not of the name.
    let named = fixture.url().replace("127.0.0.1", "localhost");
    assert!(told(&named).is_err());
    assert_eq!(told(&format!("{named}&tlsAllowInvalidHostnames=true")), Ok(()));
}

/// A member of a replica set that answers the first command, `hello`, with these elements, each time.
fn member(elements: &'static [(u8, &'static str, &'static [u8])]) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut header = [0; 16];
            if stream.read_exact(&mut header).is_err() {
                continue;
            }
            let size = u32::from_le_bytes(header[..4].try_into().unwrap()) as usize;
            stream.read_exact(&mut vec![0; size - 16]).unwrap();
            let mut document = Vec::new();
            for (kind, name, body) in elements {
                document.push(*kind);
                document.extend_from_slice(name.as_bytes());
                document.push(0);
                document.extend_from_slice(body);
            }
            let length = document.len() as u32 + 5;
            let message = [
                &(length + 21).to_le_bytes()[..],
                &[0; 4],
                &header[4..8],
                &2013_u32.to_le_bytes(),
                &[0; 5],
                &length.to_le_bytes(),
                &document,
                &[0],
            ];
            let _ = stream.write_all(&message.concat());
            // The client closes.
            let _ = stream.read(&mut [0; 64]);
        }
    });
    port
}

const OK: (u8, &str, &[u8]) = (1, "ok", &[0, 0, 0, 0, 0, 0, 0xF0, 0x3F]);
const PROTOCOL: (u8, &str, &[u8]) = (16, "maxWireVersion", &[21, 0, 0, 0]);
const SET: (u8, &str, &[u8]) = (2, "setName", b"\x04\0\0\0rs0\0");
const WRITABLE: (u8, &str, &[u8]) = (8, "isWritablePrimary", &[1]);
const SECONDARY: (u8, &str, &[u8]) = (8, "secondary", &[1]);
const OLD: (u8, &str, &[u8]) = (16, "maxWireVersion", &[5, 0, 0, 0]);

/// No replica set can be had here: its members are planted.
#[test]
fn the_member_is_taken_that_the_read_preference_wants() {
    let primary = member(&[WRITABLE, SET, PROTOCOL, OK]);
    let secondary = member(&[SECONDARY, SET, PROTOCOL, OK]);
    let starting = member(&[SET, PROTOCOL, OK]);
    let told = |hosts: &[u16], options: &str| {
        let hosts: Vec<String> = hosts.iter().map(|port| format!("127.0.0.1:{port}")).collect();
        let url = format!("mongodb://{}/tests?{options}", hosts.join(","));
        let made = open(&url, &Settings::default()).unwrap().admin();
        made.map(|_| ()).map_err(|error| (error.class(), error.message().to_owned()))
    };
    for options in ["", "readPreference=primary", "readPreference=primaryPreferred", "replicaSet=rs0"] {
        assert_eq!(told(&[starting, secondary, primary], options), Ok(()), "{options}");
    }
    let (class, message) = told(&[secondary], "").unwrap_err();
    assert_eq!(class, ErrorClass::ReadOnly);
    assert!(
        message.ends_with("the server is not the primary, which readPreference=primary wants"),
        "{message}"
    );
    assert_eq!(told(&[secondary], "readPreference=primaryPreferred"), Ok(()));
    assert_eq!(told(&[primary, secondary], "readPreference=secondary"), Ok(()));
    assert!(told(&[primary], "readPreference=secondary").is_err());
    assert_eq!(told(&[primary], "readPreference=secondaryPreferred"), Ok(()));
    assert_eq!(told(&[starting, secondary], "readPreference=nearest"), Ok(()));
    assert_eq!(told(&[secondary], "directConnection=true"), Ok(()));
    let (class, message) = told(&[starting], "readPreference=nearest").unwrap_err();
    assert_eq!(
        (class, message.ends_with("neither primary nor secondary now")),
        (ErrorClass::ShuttingDown, true)
    );
    let (_, message) = told(&[primary], "replicaSet=other").unwrap_err();
    assert!(message.ends_with("the server's replica set is \"rs0\", and replicaSet=\"other\""), "{message}");
    let (_, message) = told(&[member(&[WRITABLE, OLD, OK])], "").unwrap_err();
    assert!(message.ends_with("it is older than MongoDB 3.6"), "{message}");
}
