//! Conversations, and the statements that they come to.

mod mysql;
mod postgres;

use std::collections::BTreeMap;

use super::{PROTOCOLS, Protocol, Recorder, Side};
use crate::tests::told;
use crate::{Batch, Options};

/// Bytes that somebody has sent, in the order in which they passed.
#[derive(Clone, Debug, Default)]
pub(crate) struct Talk(pub(crate) Vec<(Side, Vec<u8>)>);

impl Talk {
    fn client(mut self, bytes: &[u8]) -> Self {
        self.0.push((Side::Client, bytes.to_vec()));
        self
    }

    fn server(mut self, bytes: &[u8]) -> Self {
        self.0.push((Side::Server, bytes.to_vec()));
        self
    }

    /// A request and its whole reply.
    fn asks(self, request: &[&[u8]], reply: &[&[u8]]) -> Self {
        self.client(&request.concat()).server(&reply.concat())
    }

    fn then(mut self, other: &Self) -> Self {
        self.0.extend(other.0.iter().cloned());
        self
    }
}

/// A name, a conversation, its statements, and what of it is left out.
pub(crate) type Example = (&'static str, Talk, &'static [&'static str], &'static [(&'static str, u64)]);

/// The examples of each protocol, in the order of [`PROTOCOLS`].
pub(crate) fn examples() -> [Vec<Example>; 2] {
    [postgres::examples(), mysql::examples()]
}

/// The time at which the first bytes pass.
const BEGIN: (u64, i64) = (5_000_000_000, 1_769_904_000_000_000);

type Found = (Vec<String>, BTreeMap<&'static str, u64>);

/// Plays conversations, each on a connection of its own, in pieces of so many bytes; every piece of the script takes 10 µs.
/// Gives its statements as `time session transaction duration text|kinds|values|error|database|rows`, and what was left out.
fn play(protocol: &'static Protocol, talks: &[&Talk], cut: usize) -> Found {
    let (batches, left_out) = recorded(protocol, talks, cut);
    let rows = |batch: &Batch| {
        (0..batch.len()).map(|at| format!("{}|{}", told(batch, at), batch.rows[at])).collect::<Vec<_>>()
    };
    (batches.iter().flat_map(rows).collect(), left_out)
}

fn recorded(
    protocol: &'static Protocol,
    talks: &[&Talk],
    cut: usize,
) -> (Vec<Batch>, BTreeMap<&'static str, u64>) {
    let mut recorder = Recorder::new(protocol, &Options::default(), BEGIN.0, BEGIN.1).unwrap();
    let mut at = BEGIN.0;
    for (connection, talk) in talks.iter().enumerate() {
        for (side, bytes) in &talk.0 {
            bytes.chunks(cut).for_each(|piece| recorder.passed(connection as u64, *side, at, piece));
            at += 10_000;
        }
        recorder.ended(connection as u64);
    }
    recorder.end();
    (std::iter::from_fn(|| recorder.ready()).collect(), recorder.left_out().clone())
}

fn check(protocol: &'static Protocol, talk: &Talk, expected: &[&str], left_out: &[(&'static str, u64)]) {
    let whole = play(protocol, &[talk], usize::MAX);
    assert_eq!(whole.0, expected);
    assert_eq!(whole.1, left_out.iter().copied().collect());
    for cut in 1..8 {
        assert_eq!(play(protocol, &[talk], cut), whole, "in pieces of {cut} bytes");
    }
}

#[test]
fn each_example_comes_to_its_statements() {
    for (protocol, examples) in PROTOCOLS.into_iter().zip(examples()) {
        for (name, talk, expected, left_out) in examples {
            println!("{name}");
            check(protocol, &talk, expected, left_out);
        }
    }
}
