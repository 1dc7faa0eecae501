//! A server as the protocol has it, with one table of numbers. It goes on after an error.

use std::collections::HashMap;

use crate::contract::driver::StatementMode;
use crate::mysql::wire;

/// A statement that was prepared.
#[derive(Clone, Copy, PartialEq)]
enum Kind {
    Write,
    Read,
}

#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(super) struct Server {
    as_text: bool,
    deprecates_eof: bool,
    failures: HashMap<usize, u16>,
    /// How many commands have come that are answered and can fail.
    commands: usize,
    prepared: HashMap<u32, Kind>,
    pub(super) in_transaction: bool,
    pending: Vec<i64>,
    pub(super) committed: Vec<i64>,
    /// A command of the present flush has failed.
    pub(super) erred: bool,
    pub(super) committed_behind_failure: Vec<i64>,
    /// How often bytes have come.
    pub(super) flushes: usize,
}

impl Server {
    pub(super) fn new(mode: StatementMode, deprecates_eof: bool, failures: &[(usize, u16)]) -> Self {
        let prepared = if mode == StatementMode::Prepared {
            [(1, Kind::Write), (2, Kind::Read)].into()
        } else {
            HashMap::new()
        };
        Self {
            as_text: mode == StatementMode::Simple,
            deprecates_eof,
            failures: failures.iter().copied().collect(),
            commands: 0,
            prepared,
            in_transaction: false,
            pending: Vec::new(),
            committed: Vec::new(),
            erred: false,
            committed_behind_failure: Vec::new(),
            flushes: 0,
        }
    }

    pub(super) fn open_statements(&self) -> usize {
        self.prepared.len()
    }

    /// Runs the commands and gives the answers.
    pub(super) fn answer(&mut self, mut sent: &[u8]) -> Vec<u8> {
        self.flushes += usize::from(!sent.is_empty());
        let mut out = Vec::new();
        while let Some((header, rest)) = sent.split_first_chunk::<4>() {
            assert_eq!(header[3], 0, "each command is an exchange of its own");
            let length = usize::from(header[0]) | usize::from(header[1]) << 8;
            let (body, rest) = rest.split_at(length);
            sent = rest;
            for (payload, sequence) in self.run(body).into_iter().zip(1..) {
                let start = wire::begin_packet(&mut out);
                out.extend_from_slice(&payload);
                wire::end_packet(&mut out, start, sequence);
            }
        }
        out
    }

    fn run(&mut self, body: &[u8]) -> Vec<Vec<u8>> {
        let (command, body) = body.split_first().unwrap();
        let number = |at: usize| u32::from_le_bytes(body[at..at + 4].try_into().unwrap());
        match *command {
            wire::command::CLOSE => {
                assert!(self.prepared.remove(&number(0)).is_some(), "the statement is open");
                return Vec::new();
            }
            wire::command::PING => return vec![self.ok()],
            _ => {}
        }
        self.commands += 1;
        if let Some(failure) = self.failures.get(&(self.commands - 1)).copied() {
            return vec![self.fail(failure)];
        }
        match *command {
            wire::command::PREPARE => self.prepare(body),
            wire::command::EXECUTE => {
                let kind = self.prepared[&number(0)];
                // Flags, a count, the nulls, a mark, the type.
                let value = i64::from_le_bytes(body[13..21].try_into().unwrap());
                self.statement(kind, value)
            }
            wire::command::QUERY => self.query(std::str::from_utf8(body).unwrap()),
            other => panic!("command {other}"),
        }
    }

    fn fail(&mut self, code: u16) -> Vec<u8> {
        self.erred = true;
        if code == 1213 {
            self.in_transaction = false;
            self.pending.clear();
        }
        let [low, high] = code.to_le_bytes();
        [&[0xff, low, high], &b"#HY000planted"[..]].concat()
    }

    fn query(&mut self, sql: &str) -> Vec<Vec<u8>> {
        let value = |sql: &str| {
            let digits: String = sql.chars().filter(char::is_ascii_digit).collect();
            digits.parse().unwrap()
        };
        match sql {
            "BEGIN" => {
                self.commit();
                self.in_transaction = true;
            }
            "COMMIT" => self.commit(),
            "ROLLBACK" => {
                self.in_transaction = false;
                self.pending.clear();
            }
            sql if sql.starts_with("SELECT") => return self.statement(Kind::Read, value(sql)),
            sql => return self.statement(Kind::Write, value(sql)),
        }
        vec![self.ok()]
    }

    fn commit(&mut self) {
        self.in_transaction = false;
        if self.erred {
            self.committed_behind_failure.extend(&self.pending);
        }
        self.committed.append(&mut self.pending);
    }

    fn prepare(&mut self, sql: &[u8]) -> Vec<Vec<u8>> {
        let kind = if sql.starts_with(b"SELECT") { Kind::Read } else { Kind::Write };
        let id = 100 + self.commands as u32;
        self.prepared.insert(id, kind);
        let columns = u8::from(kind == Kind::Read);
        let mut packets = vec![[&[0], &id.to_le_bytes()[..], &[columns, 0, 1, 0, 0, 0, 0]].concat()];
        for _ in 0..=columns {
            packets.push(definition());
            packets.extend((!self.deprecates_eof).then(|| self.eof()));
        }
        packets
    }

    fn statement(&mut self, kind: Kind, value: i64) -> Vec<Vec<u8>> {
        if kind == Kind::Write {
            self.pending.push(value);
            if !self.in_transaction {
                self.commit();
            }
            return vec![self.ok()];
        }
        let mut packets = vec![vec![1], definition()];
        packets.extend((!self.deprecates_eof).then(|| self.eof()));
        packets.push(if self.as_text {
            let digits = value.to_string();
            [&[digits.len() as u8], digits.as_bytes()].concat()
        } else {
            [&[0, 0], &value.to_le_bytes()[..]].concat()
        });
        packets.push(if self.deprecates_eof { [&[0xfe], &self.ok()[1..]].concat() } else { self.eof() });
        packets
    }

    fn status(&self) -> u8 {
        2 | u8::from(self.in_transaction)
    }

    fn ok(&self) -> Vec<u8> {
        vec![0, 1, 0, self.status(), 0, 0, 0]
    }

    fn eof(&self) -> Vec<u8> {
        vec![0xfe, 0, 0, self.status(), 0]
    }
}

/// A column of whole numbers.
fn definition() -> Vec<u8> {
    let mut out = b"\x03def\0\0\0\x01v\0\x0c".to_vec();
    out.extend_from_slice(&[63, 0, 20, 0, 0, 0, 8, 0, 0, 0, 0, 0]);
    out
}
