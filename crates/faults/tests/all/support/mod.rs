//! Both ends of a proxied connection, as plain sockets of the standard library.
#![allow(dead_code, unreachable_pub, reason = "each test program uses its part")]

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

use nephoscope_faults::{Channel, Faults, Proxy};
use nephoscope_runtime::Address;

/// Longer than anything here takes on a machine that is busy.
pub const LONG: Duration = Duration::from_secs(30);
/// Long enough for what should not happen to happen.
pub const WHILE: Duration = Duration::from_millis(60);

/// A target whose connections the test holds itself.
pub struct Target(TcpListener);

impl Target {
    pub fn new() -> Self {
        Self(TcpListener::bind("127.0.0.1:0").unwrap())
    }

    pub fn address(&self) -> Address {
        Address::Tcp(self.0.local_addr().unwrap())
    }

    /// The next connection that comes.
    pub fn next(&self) -> TcpStream {
        limited(self.0.accept().unwrap().0)
    }

    /// Whether a connection waits.
    pub fn is_called(&self) -> bool {
        self.0.set_nonblocking(true).unwrap();
        let called = self.0.accept().is_ok();
        self.0.set_nonblocking(false).unwrap();
        called
    }
}

/// A socket whose waits have an end.
fn limited(socket: TcpStream) -> TcpStream {
    socket.set_nodelay(true).unwrap();
    socket.set_read_timeout(Some(LONG)).unwrap();
    socket.set_write_timeout(Some(LONG)).unwrap();
    socket
}

pub fn connect(proxy: &Proxy) -> TcpStream {
    limited(TcpStream::connect(proxy.address()).unwrap())
}

/// A proxy before a target, with a connection through it: the client's end and the server's.
pub fn through() -> (Proxy, Target, TcpStream, TcpStream) {
    let target = Target::new();
    let proxy = Proxy::start(None, target.address()).unwrap();
    let client = connect(&proxy);
    let server = target.next();
    (proxy, target, client, server)
}

/// Faults of what clients send.
pub fn to_server(channel: Channel) -> Faults {
    Faults { to_server: channel, ..Faults::default() }
}

/// Faults of what the server sends.
pub fn to_client(channel: Channel) -> Faults {
    Faults { to_client: channel, ..Faults::default() }
}

/// Reads so many bytes.
pub fn read(mut from: &TcpStream, count: usize) -> Vec<u8> {
    let mut bytes = vec![0; count];
    from.read_exact(&mut bytes).unwrap();
    bytes
}

pub fn write(mut to: &TcpStream, bytes: &[u8]) {
    to.write_all(bytes).unwrap();
}

/// Everything up to the end of the stream.
pub fn read_to_end(mut from: &TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    from.read_to_end(&mut bytes).unwrap();
    bytes
}

/// Asserts that nothing arrives for a while, no end either.
#[track_caller]
pub fn assert_silent(mut socket: &TcpStream) {
    socket.set_read_timeout(Some(WHILE)).unwrap();
    let read = socket.read(&mut [0; 100]);
    assert!(read.as_ref().is_err_and(|error| error.kind() == ErrorKind::WouldBlock), "{read:?}");
    socket.set_read_timeout(Some(LONG)).unwrap();
}

/// Asserts that the connection is reset: at once, or when it is next written to.
#[track_caller]
pub fn assert_reset(mut socket: &TcpStream) {
    let error = socket.read(&mut [0; 100]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
}

/// Asserts that the two ends hear each other.
#[track_caller]
pub fn assert_connected(client: &TcpStream, server: &TcpStream) {
    write(client, b"question");
    assert_eq!(read(server, 8), b"question");
    write(server, b"answer");
    assert_eq!(read(client, 6), b"answer");
}

/// Waits until something holds.
#[track_caller]
pub fn eventually(what: &str, holds: impl Fn() -> bool) {
    let limit = Instant::now() + LONG;
    while !holds() {
        assert!(Instant::now() < limit, "not in time: {what}");
        thread::sleep(Duration::from_millis(1));
    }
}

/// A server that sends back what it gets, to as many as come.
pub fn echo() -> Address {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = Address::Tcp(listener.local_addr().unwrap());
    thread::spawn(move || {
        for socket in listener.incoming() {
            let mut socket = socket.unwrap();
            thread::Builder::new()
                .stack_size(64 * 1024)
                .spawn(move || {
                    let mut bytes = [0; 1024];
                    while let Ok(count @ 1..) = socket.read(&mut bytes) {
                        if socket.write_all(&bytes[..count]).is_err() {
                            return;
                        }
                    }
                })
                .unwrap();
        }
    });
    address
}
