//! The target on a small object store that runs beside it; `tests/storage/test_s3.py` has a larger one.

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::{Mutex, PoisonError};

use super::*;
use crate::execute::target::Session as _;
use crate::requests::{Columns, Operation, Process, Request};

/// Objects by their paths, every request's line, and what is planted.
#[derive(Default)]
struct Store {
    objects: Mutex<BTreeMap<String, Vec<u8>>>,
    requests: Mutex<Vec<String>>,
    /// A connection is closed, and nothing said of it, after so many requests; 0 is never.
    closes_after: usize,
    /// The status of every PUT, with a body; 0 is success.
    refuses: u16,
}

impl Store {
    fn start(self) -> (Arc<Self>, String) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("bucket/a?endpoint=http://{}&object=1000", listener.local_addr().unwrap());
        let store = Arc::new(self);
        let serving = Arc::clone(&store);
        std::thread::spawn(move || {
            for socket in listener.incoming() {
                let (store, socket) = (Arc::clone(&serving), socket.unwrap());
                std::thread::spawn(move || store.serve(socket));
            }
        });
        (store, url)
    }

    fn serve(&self, mut socket: TcpStream) {
        let mut received = Vec::new();
        for served in 1.. {
            let Some((head, body)) = receive(&mut socket, &mut received) else { return };
            let answer = self.answer(&head, body);
            if socket.write_all(&answer).is_err() || served == self.closes_after {
                return;
            }
        }
    }

    fn answer(&self, head: &str, body: Vec<u8>) -> Vec<u8> {
        let line = head.lines().next().unwrap();
        let (method, path) = line.strip_suffix(" HTTP/1.1").unwrap().split_once(' ').unwrap();
        assert!(head.contains("Authorization: AWS4-HMAC-SHA256 Credential=ID/"), "{head}");
        let range = head.lines().find_map(|line| line.strip_prefix("Range: bytes="));
        self.requests.lock().unwrap().push(format!("{method} {path} {}", range.unwrap_or("all")));
        let mut objects = self.objects.lock().unwrap_or_else(PoisonError::into_inner);
        let (status, body) = match (method, objects.get(path)) {
            ("HEAD", _) if path == "/bucket" => (200, vec![]),
            ("PUT", _) if self.refuses > 0 => (self.refuses, b"<Code>SlowDown</Code>".to_vec()),
            ("PUT", _) => {
                objects.insert(path.to_owned(), body);
                (200, vec![])
            }
            ("DELETE", _) => (objects.remove(path).map_or(404, |_| 204), vec![]),
            ("GET", Some(object)) => match range.map(|range| range.split_once('-').unwrap()) {
                Some((from, to)) => {
                    let to: usize = to.parse().unwrap();
                    (206, object[from.parse().unwrap()..=to].to_vec())
                }
                None => (200, object.clone()),
            },
            _ => (404, b"<Code>NoSuchKey</Code>".to_vec()),
        };
        let length =
            if status == 204 { String::new() } else { format!("Content-Length: {}\r\n", body.len()) };
        [format!("HTTP/1.1 {status} X\r\n{length}\r\n").as_bytes(), &body].concat()
    }

    /// What was asked for since the last time.
    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.requests.lock().unwrap())
    }
}

/// The next request's head and body; `None` at the end.
fn receive(socket: &mut TcpStream, received: &mut Vec<u8>) -> Option<(String, Vec<u8>)> {
    loop {
        let end = received.windows(4).position(|four| four == b"\r\n\r\n").map(|at| at + 4);
        if let Some(end) = end {
            let head = String::from_utf8(received[..end].to_vec()).unwrap();
            let length = head.lines().find_map(|line| line.strip_prefix("Content-Length: "));
            let whole = end + length.map_or(0, |length| length.parse::<usize>().unwrap());
            if received.len() >= whole {
                let body = received[end..whole].to_vec();
                received.drain(..whole);
                return Some((head, body));
            }
        }
        let mut piece = [0; 4096];
        match socket.read(&mut piece) {
            Ok(count @ 1..) => received.extend_from_slice(&piece[..count]),
            _ => return None,
        }
    }
}

fn environment(name: &str) -> Option<String> {
    let values = [("AWS_ACCESS_KEY_ID", "ID"), ("AWS_SECRET_ACCESS_KEY", "hidden")];
    values.into_iter().find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
}

fn request(operation: Operation, offset: u64, bytes: u32) -> Request {
    let (segment, process, latency_us) = (3, Process::Backend, f32::NAN);
    Request { time_us: 0, segment, offset, bytes, operation, process, latency_us }
}

fn layout(bytes: u32) -> Layout {
    let mut columns = Columns::default();
    columns.push(&request(Operation::Write, 0, bytes));
    Layout::of([&columns])
}

/// Executes requests one after the other.
fn execute(target: &S3Target, requests: &[Request]) -> Result<(), Failure> {
    let runtime = Runtime::new().unwrap();
    runtime.block_on(async {
        let deadline = clock::now() + PATIENCE;
        let mut session = target.connect(&runtime, &Rc::new(layout(1)), deadline).await?;
        for request in requests {
            session.execute(request, deadline).await?;
        }
        Ok(())
    })
}

const KEY: &str = "/bucket/a/0000000003/";

fn object(number: u64) -> String {
    format!("{KEY}{number:012}")
}

#[test]
fn a_request_becomes_requests_for_objects() {
    let (store, url) = Store::default().start();
    let target = S3Target::parse(&url, &environment).unwrap();
    target.prepare(&layout(2500)).unwrap();
    let mut filled = store.take();
    filled[1..].sort();
    let of = |what: &str, number| format!("{what} {} all", object(number));
    assert_eq!(filled, [&["HEAD /bucket all".to_owned()][..], &[0, 1, 2].map(|at| of("PUT", at))].concat());
    let one = |operation, offset, bytes| {
        execute(&target, &[request(operation, offset, bytes)]).unwrap();
        store.take()
    };
    assert_eq!(one(Operation::Read, 100, 50), [format!("GET {} 100-149", object(0))]);
    assert_eq!(one(Operation::Read, 950, 1050), [format!("GET {} 950-999", object(0)), of("GET", 1)]);
    assert_eq!(one(Operation::Write, 1000, 1000), [of("PUT", 1)]);
    assert_eq!(one(Operation::Write, 2100, 10), [of("GET", 2), of("PUT", 2)]);
    assert_eq!(one(Operation::Sync, 0, 0), Vec::<String>::new());
    assert_eq!(one(Operation::Discard, 500, 1600), [of("DELETE", 1)]);
    // It is gone, and reads as nothing; a part that is written is the rest of zeros.
    assert_eq!(one(Operation::Read, 1000, 1000), [of("GET", 1)]);
    assert_eq!(one(Operation::Write, 1001, 2), [of("GET", 1), of("PUT", 1)]);
    let objects = store.objects.lock().unwrap();
    let found = &objects[&object(1)];
    let filling = session::filling(1000);
    assert_eq!((found.len(), found[0], &found[1..3], &found[3..]), (1000, 0, &filling[1..3], &[0; 997][..]));
    assert!(target.facts().contains(&("objects that were absent", "2".to_owned())), "{:?}", target.facts());
    assert!(!format!("{:?}", target.facts()).contains("hidden"));
}

#[test]
fn a_connection_that_the_server_closes_is_made_anew() {
    let (store, url) = Store { closes_after: 2, ..Store::default() }.start();
    let target = S3Target::parse(&url, &environment).unwrap();
    target.prepare(&layout(5000)).unwrap();
    store.take();
    let reads: Vec<Request> = (0..9).map(|number| request(Operation::Read, number * 10, 10)).collect();
    assert_eq!(execute(&target, &reads), Ok(()));
    assert_eq!(store.take().len(), 9);
}

#[test]
fn what_the_store_refuses_is_a_failure_with_its_code() {
    let (_store, url) = Store { refuses: 503, ..Store::default() }.start();
    let target = S3Target::parse(&url, &environment).unwrap();
    let said = target.prepare(&layout(5000)).unwrap_err().to_string();
    assert!(said.contains("status 503 (SlowDown)"), "{said}");
    let said = execute(&target, &[request(Operation::Write, 0, 1000)]).unwrap_err();
    assert!(matches!(&said, Failure::Refused(text) if text.contains("SlowDown")), "{said}");
}

#[test]
fn a_target_needs_a_bucket_and_credentials() {
    let (_store, url) = Store::default().start();
    let target = S3Target::parse(&url.replace("bucket/", "another/"), &environment).unwrap();
    assert!(target.prepare(&layout(1)).unwrap_err().to_string().contains("there is no such bucket"));
    let said = S3Target::parse(&url, &|_| None).err().unwrap();
    assert!(said.contains("AWS_ACCESS_KEY_ID"), "{said}");
    assert!(S3Target::parse("bucket?endpoint=ftp://x", &environment).err().unwrap().contains("http"));
}
