//! Conversations, and the statements that they come to.

mod examples;
mod limits;
mod talk;

use std::collections::BTreeMap;

use super::Recorder;
use crate::tests::told;
use crate::{Batch, Options};

pub(crate) use examples::examples;
pub(crate) use talk::Talk;
use talk::*;

/// The time at which the first bytes pass.
const BEGIN: (u64, i64) = (5_000_000_000, 1_769_904_000_000_000);

type Found = (Vec<String>, BTreeMap<&'static str, u64>);

/// Plays conversations, each on a connection of its own, in pieces of so many bytes; every piece of the script takes 10 µs.
/// Gives its statements as `time session transaction duration text|kinds|values|error|database|rows`, and what was left out.
fn play(talks: &[&Talk], cut: usize) -> Found {
    let (batches, left_out) = recorded(talks, cut);
    let rows = |batch: &Batch| {
        (0..batch.len()).map(|at| format!("{}|{}", told(batch, at), batch.rows[at])).collect::<Vec<_>>()
    };
    (batches.iter().flat_map(rows).collect(), left_out)
}

fn recorded(talks: &[&Talk], cut: usize) -> (Vec<Batch>, BTreeMap<&'static str, u64>) {
    let mut recorder = Recorder::new(&Options::default(), BEGIN.0, BEGIN.1).unwrap();
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

fn check(talk: &Talk, expected: &[&str], left_out: &[(&str, u64)]) {
    let whole = play(&[talk], usize::MAX);
    assert_eq!(whole.0, expected);
    assert_eq!(whole.1.iter().map(|(why, count)| (*why, *count)).collect::<Vec<_>>(), left_out);
    for cut in 1..8 {
        assert_eq!(play(&[talk], cut), whole, "in pieces of {cut} bytes");
    }
}

#[test]
fn each_example_comes_to_its_statements() {
    for (name, talk, expected, left_out) in examples() {
        println!("{name}");
        check(&talk, expected, left_out);
    }
}

#[test]
fn each_connection_is_a_session() {
    let talk = Talk::begun().asks(&[&query("SELECT 1")], &[ROW, &done("SELECT 1"), &ready(b'I')]);
    let (found, _) = play(&[&talk, &talk], usize::MAX);
    assert_eq!(found, ["40 s0 t0 10 select $1|n|1||d|1", "100 s1 t1 10 select $1|n|1||d|1"]);
}

#[test]
fn a_statement_that_is_left_out_leaves_its_place_empty() {
    let (_, types, ..) = examples().into_iter().find(|(name, ..)| *name == "types").unwrap();
    let (batches, _) = recorded(&[&types], usize::MAX);
    assert_eq!(batches[0].place, [0, 1, 5]);
}
