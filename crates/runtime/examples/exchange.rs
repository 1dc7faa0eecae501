//! The bare exchange of bytes over sockets that are connected: what any client by epoll has to pay. A question goes out
//! on each, and the next when the answer is in; there are no transactions, no times and no errors.
//!
//! `exchange SECONDS QUESTION END OFFSET big|little KEYS SOCKET…`: `QUESTION` and the `END` of an answer are in
//! hexadecimal, at `OFFSET` of the question a number of four bytes in this order from 1 to `KEYS` is drawn, and the
//! sockets are inherited descriptors.
#![allow(clippy::print_stdout)]

use std::error::Error;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{FromRawFd, RawFd};
use std::time::{Duration, Instant};

use rustix::buffer::spare_capacity;
use rustix::event::epoll;

type Failure = Box<dyn Error>;

struct Client {
    question: Vec<u8>,
    end: Vec<u8>,
    offset: usize,
    encode: fn(u32) -> [u8; 4],
    keys: u64,
    drawn: u64,
    sockets: Vec<File>,
}

fn bytes(digits: &str) -> Result<Vec<u8>, Failure> {
    let pairs = (0..digits.len()).step_by(2);
    Ok(pairs.map(|at| u8::from_str_radix(&digits[at..at + 2], 16)).collect::<Result<_, _>>()?)
}

impl Client {
    fn new(arguments: &[String]) -> Result<Self, Failure> {
        let [question, end, offset, order, keys, sockets @ ..] = arguments else {
            return Err("usage: exchange SECONDS QUESTION END OFFSET big|little KEYS SOCKET…".into());
        };
        let socket = |number: &String| -> Result<File, Failure> {
            let number: RawFd = number.parse()?;
            // SAFETY: the descriptor was inherited for this program alone; a wrong one fails when it is used.
            Ok(unsafe { File::from_raw_fd(number) })
        };
        Ok(Self {
            question: bytes(question)?,
            end: bytes(end)?,
            offset: offset.parse()?,
            encode: match order.as_str() {
                "big" => u32::to_be_bytes,
                "little" => u32::to_le_bytes,
                other => return Err(format!("the order is {other:?}; allowed are big and little").into()),
            },
            keys: keys.parse()?,
            drawn: 1,
            sockets: sockets.iter().map(socket).collect::<Result<_, _>>()?,
        })
    }

    fn ask(&mut self, socket: usize) -> Result<(), Failure> {
        self.drawn =
            self.drawn.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let key = ((self.drawn >> 33) % self.keys) as u32 + 1;
        self.question[self.offset..self.offset + 4].copy_from_slice(&(self.encode)(key));
        Ok(self.sockets[socket].write_all(&self.question)?)
    }

    /// Exchanges for a time; gives the number of answers, and of waits for them.
    fn exchange(&mut self, time: Duration) -> Result<(u64, u64), Failure> {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        for (number, socket) in self.sockets.iter().enumerate() {
            epoll::add(&set, socket, epoll::EventData::new_u64(number as u64), epoll::EventFlags::IN)?;
        }
        (0..self.sockets.len()).try_for_each(|socket| self.ask(socket))?;
        let (mut answers, mut waits) = (0, 0);
        let (begun, mut events, mut answer) = (Instant::now(), Vec::with_capacity(256), [0; 8192]);
        while begun.elapsed() < time {
            events.clear();
            epoll::wait(&set, spare_capacity(&mut events), None)?;
            waits += 1;
            for event in &events {
                let socket = event.data.u64() as usize;
                let count = self.sockets[socket].read(&mut answer)?;
                if count == 0 {
                    return Err("the server has closed a connection".into());
                }
                // An answer as short as these comes in one piece, or its end comes with the last.
                if answer[..count].ends_with(&self.end) {
                    answers += 1;
                    self.ask(socket)?;
                }
            }
        }
        Ok((answers, waits))
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let seconds: f64 = arguments.first().ok_or("SECONDS is missing")?.parse()?;
    let mut client = Client::new(&arguments[1..])?;
    let (answers, waits) = client.exchange(Duration::from_secs_f64(seconds))?;
    println!("{answers} {waits}");
    Ok(())
}
