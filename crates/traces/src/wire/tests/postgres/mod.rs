//! `PostgreSQL`'s conversations.

mod examples;
mod limits;
mod talk;

use super::{Talk, play, recorded};
use crate::wire::postgres::PROTOCOL;
pub(super) use examples::examples;
use talk::*;

#[test]
fn each_connection_is_a_session() {
    let talk = Talk::begun().asks(&[&query("SELECT 1")], &[ROW, &done("SELECT 1"), &ready(b'I')]);
    let (found, _) = play(&PROTOCOL, &[&talk, &talk], usize::MAX);
    assert_eq!(found, ["40 s0 t0 10 select $1|n|1||d|1", "100 s1 t1 10 select $1|n|1||d|1"]);
}

#[test]
fn a_statement_that_is_left_out_leaves_its_place_empty() {
    let (_, types, ..) = examples().into_iter().find(|(name, ..)| *name == "types").unwrap();
    let (batches, _) = recorded(&PROTOCOL, &[&types], usize::MAX);
    assert_eq!(batches[0].place, [0, 1, 5]);
}
