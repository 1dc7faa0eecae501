//! A page store over loopback, spoken to by the protocol alone.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use super::protocol::{Frame, Reason, Reply, Request, VERSION, frame};
use super::*;

/// What a reply was, without its bytes' owner.
#[derive(Debug, PartialEq, Eq)]
enum Said {
    Welcome(u16, u32),
    Done,
    Data(Vec<u8>),
    Counters(Statistics),
    Refused(Reason),
}

struct Client {
    socket: TcpStream,
    received: Vec<u8>,
    last: u32,
}

impl Client {
    fn silent(address: SocketAddr) -> Self {
        let socket = TcpStream::connect(address).unwrap();
        socket.set_read_timeout(Some(Duration::from_mins(1))).unwrap();
        Self { socket, received: Vec::new(), last: 0 }
    }

    fn new(address: SocketAddr) -> Self {
        let mut client = Self::silent(address);
        assert_eq!(client.ask(&Request::Hello { version: VERSION }), Said::Welcome(VERSION, 512));
        client
    }

    fn send(&mut self, request: &Request<'_>) -> u32 {
        self.last += 1;
        let mut out = Vec::new();
        request.write(self.last, &mut out);
        self.socket.write_all(&out).unwrap();
        self.last
    }

    /// The next reply; `None` at the end.
    fn next(&mut self) -> Option<(u32, Said)> {
        loop {
            if let Frame::Whole { kind, id, fields, size } = frame(&self.received).unwrap() {
                let said = match Reply::read(kind, fields).unwrap() {
                    Reply::Welcome { version, page_size } => Said::Welcome(version, page_size),
                    Reply::Done => Said::Done,
                    Reply::Data(data) => Said::Data(data.to_vec()),
                    Reply::Counters(counters) => Said::Counters(Statistics::of(counters)),
                    Reply::Refused { reason, .. } => Said::Refused(reason),
                };
                self.received.drain(..size);
                return Some((id, said));
            }
            let mut piece = [0; 4096];
            match self.socket.read(&mut piece).unwrap() {
                0 => return None,
                count => self.received.extend_from_slice(&piece[..count]),
            }
        }
    }

    fn ask(&mut self, request: &Request<'_>) -> Said {
        let id = self.send(request);
        let (answered, said) = self.next().unwrap();
        assert_eq!(answered, id);
        said
    }
}

fn settings(replicas: usize) -> Settings {
    Settings { page_size: 512, ..Settings::of(replicas) }
}

const fn append(lsn: u64, offset: u64, data: &[u8]) -> Request<'_> {
    Request::Append { segment: 7, lsn, offset, data }
}

const fn read(lsn: u64, offset: u64, bytes: u32) -> Request<'static> {
    Request::Read { segment: 7, lsn, offset, bytes }
}

#[test]
fn a_read_waits_for_the_records_that_it_is_to_see() {
    let store = PageStore::start(&settings(1)).unwrap();
    let (mut writer, mut reader) = (Client::new(store.addresses()[0]), Client::new(store.addresses()[0]));
    assert_eq!(writer.ask(&read(0, 0, 1)), Said::Refused(Reason::NoSegment));
    assert_eq!(writer.ask(&Request::Create { segment: 7 }), Said::Done);
    assert_eq!(writer.ask(&append(2, 510, b"later")), Said::Done);
    let waiting = reader.send(&read(2, 508, 8));
    // Answered although the other one waits, and without the record that came too early.
    let at_once = reader.send(&read(0, 508, 8));
    assert_eq!(reader.next(), Some((at_once, Said::Data(vec![0; 8]))));
    assert_eq!(writer.ask(&append(1, 509, b"first")), Said::Done);
    assert_eq!(reader.next(), Some((waiting, Said::Data(b"\0flater\0".to_vec()))));
    assert_eq!(reader.ask(&read(1, 508, 8)), Said::Data(b"\0first\0\0".to_vec()));
    assert_eq!(writer.ask(&Request::Erase { segment: 7, lsn: 3, offset: 0, bytes: 511 }), Said::Done);
    assert_eq!(reader.ask(&read(3, 508, 8)), Said::Data(b"\0\0\0ater\0".to_vec()));
    let Said::Counters(counters) = reader.ask(&Request::Statistics) else { panic!("these are no counters") };
    let expected = Statistics {
        appends: 3,
        appended_bytes: 10,
        reads: 4,
        read_bytes: 32,
        waited: 1,
        // Of two pages: at LSN 2, at LSN 1, and at LSN 3, whose record is on the first page alone.
        applied: (2 + 2) + (1 + 1) + (3 + 2),
        longest_chain: 5,
        refused: 1,
        connections: 2,
        held: counters.held,
        ..Statistics::default()
    };
    assert_eq!((counters, store.statistics()), (expected, vec![expected]));
}

#[test]
fn images_are_made_of_long_chains_in_the_background() {
    let settings = Settings { consolidate: Some(10), retain: 5, ..settings(1) };
    let store = PageStore::start(&settings).unwrap();
    let mut client = Client::new(store.addresses()[0]);
    client.ask(&Request::Create { segment: 7 });
    for lsn in 1..=40 {
        assert_eq!(client.ask(&append(lsn, lsn % 3, &[lsn as u8])), Said::Done);
    }
    // How far an image reaches goes by when it was made: the newest 5 are retained, and a chain of 10 is too long.
    let begun = Instant::now();
    let image = loop {
        let image = store.statistics()[0].consolidated;
        if image > 30 {
            break image;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "{:?}", store.statistics());
        std::thread::sleep(Duration::from_millis(5));
    };
    assert!(image <= 35, "{image}");
    let at = |lsn: u64| {
        (0..3).map(|place| ((lsn - 2)..=lsn).find(|lsn| lsn % 3 == place).unwrap() as u8).collect()
    };
    assert_eq!(client.ask(&read(20, 0, 3)), Said::Refused(Reason::Gone));
    assert_eq!(client.ask(&read(image, 0, 3)), Said::Data(at(image)));
    assert_eq!(client.ask(&read(40, 0, 3)), Said::Data(at(40)));
    assert_eq!(store.statistics()[0].longest_chain, 40 - image);
}

#[test]
fn a_replica_that_is_started_again_has_what_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = Settings { sync: true, ..settings(1) };
    settings.replicas[0].file = Some(folder.path().join("replica-1"));
    for round in 0..3_u64 {
        let store = PageStore::start(&settings).unwrap();
        let mut client = Client::new(store.addresses()[0]);
        if round == 0 {
            client.ask(&Request::Create { segment: 7 });
        }
        for lsn in 1..=round {
            assert_eq!(client.ask(&read(lsn, 100, 1)), Said::Data(vec![lsn as u8]));
        }
        assert_eq!(client.ask(&append(round + 1, 100, &[round as u8 + 1])), Said::Done);
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let settings = Settings { memory: 2000, ..settings(1) };
    let store = PageStore::start(&settings).unwrap();
    let mut client = Client::new(store.addresses()[0]);
    client.ask(&Request::Create { segment: 7 });
    assert_eq!(client.ask(&append(1, 0, &[1; 2000])), Said::Done);
    assert_eq!(client.ask(&append(2, 0, &[1])), Said::Refused(Reason::Full));
    assert_eq!(client.ask(&read(1, 1990, 20)), Said::Data([[1; 10], [0; 10]].concat()));
    assert_eq!(client.ask(&read(1, 0, u32::MAX)), Said::Refused(Reason::Invalid));
    // A segment that is made anew is empty.
    assert_eq!(client.ask(&Request::Create { segment: 7 }), Said::Done);
    assert_eq!(client.ask(&append(1, 0, &[2])), Said::Done);
}

#[test]
fn who_does_not_speak_the_protocol_is_told_so_and_left() {
    let store = PageStore::start(&settings(1)).unwrap();
    let address = store.addresses()[0];
    assert_eq!(Client::silent(address).ask(&Request::Hello { version: 9 }), Said::Refused(Reason::Invalid));
    for bytes in [b"GET / HTTP/1.1\r\n\r\n".to_vec(), vec![5, 0, 0, 0, 6, 1, 0, 0, 0], vec![0; 20]] {
        let mut client = Client::silent(address);
        client.socket.write_all(&bytes).unwrap();
        assert_eq!(client.next(), Some((0, Said::Refused(Reason::Invalid))));
        assert_eq!(client.next(), None);
    }
}

#[test]
fn settings_that_cannot_be_are_refused() {
    let refused = |settings: Settings| PageStore::start(&settings).err().unwrap().to_string();
    assert!(refused(settings(0)).contains("1 to 3"));
    assert!(refused(settings(4)).contains("1 to 3"));
    assert!(refused(Settings { page_size: 1000, ..settings(1) }).contains("powers of two"));
    assert!(refused(Settings { parallel: 0, ..settings(1) }).contains("1 to 1024"));
    assert!(refused(Settings { consolidate: Some(0), ..settings(1) }).contains("chains of 0"));
    let costs = Costs { byte: -1.0, ..Costs::default() };
    assert!(refused(Settings { costs, ..settings(1) }).contains("per byte"));
    let store = PageStore::start(&settings(1)).unwrap();
    let mut taken = settings(1);
    taken.replicas[0].address = store.addresses()[0];
    assert!(refused(taken).contains(&store.addresses()[0].to_string()));
}
