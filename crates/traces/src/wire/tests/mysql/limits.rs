//! What is too long, and what is too much.

use super::talk::*;
use crate::logs::TOO_LONG;
use crate::reader::LONGEST;
use crate::wire::TOO_MUCH;
use crate::wire::mysql::PROTOCOL;
use crate::wire::tests::{Found, Talk, play};

/// In large pieces: byte by byte these take minutes.
fn found(talk: &Talk) -> Found {
    play(&PROTOCOL, &[talk], 1 << 20)
}

/// A message of several packets, each but the last of the longest size.
fn packets(body: &[u8]) -> Vec<u8> {
    const FULL: usize = 0xff_ffff;
    let mut out: Vec<u8> =
        body.chunks_exact(FULL).zip(0..).flat_map(|(piece, at)| packet(at, piece)).collect();
    out.extend(packet((body.len() / FULL) as u8, body.chunks_exact(FULL).remainder()));
    out
}

#[test]
fn a_text_that_is_too_long_is_left_out_alone() {
    let long = format!("SELECT '{}'", "x".repeat(2 * LONGEST + 10));
    let asked = |kind: u8| packets(&[&[kind], long.as_bytes()].concat());
    let talk = Talk::modern()
        .asks(&[&asked(3)], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&asked(0x16)], &[&prepared(1, 1, 0), DEFINITION])
        .asks(&[&run(1, 0)], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&query("SELECT 2")], &[ONE, DEFINITION, ROW, &end(2)]);
    let (statements, left_out) = found(&talk);
    assert_eq!(statements, ["120 s0 t0 10 select $1|n|2||d|1"]);
    assert_eq!(left_out, [(TOO_LONG, 2)].into());
}

#[test]
fn values_that_are_too_long_are_left_out_alone() {
    let long = "x".repeat(LONGEST - 20);
    let value = [&[0xfd][..], &(long.len() as u32).to_le_bytes()[..3], long.as_bytes()].concat();
    let talk = Talk::modern()
        .asks(&[&prepare("INSERT INTO t VALUES (?)")], &[&prepared(1, 0, 1), DEFINITION])
        .asks(&[&execute(1, 0, Some(&[0xfd, 0]), &value)], &[&done(1)])
        .asks(&[&execute(1, 0, None, b"\x01y")], &[&done(1)]);
    let (statements, left_out) = found(&talk);
    assert_eq!(statements, ["100 s0 t0 10 insert into t values ($1), …|[t]|y||d|1"]);
    assert_eq!(left_out, [(TOO_LONG, 1)].into());
}

/// A row of more than 16 MiB begins like the end of rows.
#[test]
fn rows_of_any_size_are_passed_over() {
    let row = packets(&[&[0xfe][..], &vec![0; 0xff_ffff]].concat());
    let talk = Talk::modern().asks(&[&query("SELECT 1")], &[ONE, DEFINITION, &row, ROW, &end(2)]);
    assert_eq!(found(&talk).0, ["60 s0 t0 10 select $1|n|1||d|2"]);
}

#[test]
fn a_connection_that_asks_to_remember_too_much_is_followed_no_more() {
    let piece = command(0x18, &[&[1, 0, 0, 0, 0, 0][..], &vec![b'x'; LONGEST / 2]].concat());
    let mut talk = Talk::modern().asks(&[&prepare("SELECT ?")], &[&prepared(1, 0, 1), DEFINITION]);
    for _ in 0..9 {
        talk = talk.client(&piece);
    }
    talk = talk.asks(&[&query("SELECT 1")], &[ONE, DEFINITION, ROW, &end(2)]);
    assert_eq!(found(&talk), (vec![], [(TOO_MUCH, 1)].into()));
}
