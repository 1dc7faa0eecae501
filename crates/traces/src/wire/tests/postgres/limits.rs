//! What is too long, and what is too much.

use super::talk::*;
use crate::logs::TOO_LONG;
use crate::reader::LONGEST;
use crate::wire::postgres::PROTOCOL;
use crate::wire::tests::{Found, Talk, play};
use crate::wire::{FOREIGN, TOO_MUCH};

/// In large pieces: byte by byte these take minutes.
fn found(talk: &Talk) -> Found {
    play(&PROTOCOL, &[talk], 1 << 20)
}

#[test]
fn a_text_that_is_too_long_leaves_no_older_one_under_its_name() {
    let long = format!("SELECT '{}'", "x".repeat(LONGEST));
    let run = [bind("", "", &[], &[]), execute("", 0), SYNC.to_vec()].concat();
    let ran = [BOUND, ROW, &done("SELECT 1"), &ready(b'I')].concat();
    let talk = Talk::begun()
        .asks(&[&parse("", "SELECT 1", &[]), &run], &[PARSED, &ran])
        .asks(&[&parse("", &long, &[]), &run], &[PARSED, &ran])
        .asks(&[&query(&long)], &[ROW, &done("SELECT 1"), &ready(b'I')])
        .asks(&[&query("SELECT 2")], &[ROW, &done("SELECT 1"), &ready(b'I')]);
    let (statements, left_out) = found(&talk);
    assert_eq!(statements, ["40 s0 t0 10 select $1|n|1||d|1", "100 s0 t1 10 select $1|n|2||d|1"]);
    assert_eq!(left_out, [(TOO_LONG, 2)].into());
}

#[test]
fn values_that_are_too_long_are_left_out_alone() {
    let long = vec![b'x'; LONGEST];
    let ran = [PARSED, BOUND, &done("INSERT 0 1"), &ready(b'I')].concat();
    let bound = |value: &[u8]| {
        let step =
            [parse("", "INSERT INTO t VALUES ($1)", &[]), bind("", "", &[], &[Some(value)]), execute("", 0)];
        [step.concat(), SYNC.to_vec()].concat()
    };
    let talk = Talk::begun().asks(&[&bound(&long)], &[&ran]).asks(&[&bound(b"1")], &[&ran]);
    let (statements, left_out) = found(&talk);
    assert_eq!(statements, ["60 s0 t0 10 insert into t values ($1), …|[p]|1||d|1"]);
    assert_eq!(left_out, [(TOO_LONG, 1)].into());
}

/// Ten bytes of a numeric may stand for 131,072 digits.
#[test]
fn values_that_grow_too_long_are_left_out() {
    let value: &[u8] = &[0, 1, 0x7f, 0xff, 0, 0, 0, 0, 0, 1];
    let values = vec![Some(value); 100];
    let step =
        [parse("", "SELECT 1", &[1700; 100]), bind("", "", &[1], &values), execute("", 0), SYNC.to_vec()];
    let talk = Talk::begun().asks(&[&step.concat()], &[PARSED, BOUND, &done("SELECT 1"), &ready(b'I')]);
    assert_eq!(found(&talk), (vec![], [(TOO_LONG, 1)].into()));
}

#[test]
fn rows_of_any_size_are_passed_over() {
    let row = message(b'D', &vec![0; 3 * LONGEST]);
    let talk = Talk::begun().asks(&[&query("SELECT 1")], &[&row, &done("SELECT 1"), &ready(b'I')]);
    assert_eq!(found(&talk).0, ["40 s0 t0 10 select $1|n|1||d|1"]);
}

#[test]
fn a_connection_that_asks_to_remember_too_much_is_followed_no_more() {
    let text = format!("SELECT '{}'", "x".repeat(LONGEST / 2));
    let mut talk = Talk::begun();
    for name in ["a", "b", "c", "d", "e", "f", "g", "h", "i"] {
        talk = talk.asks(&[&parse(name, &text, &[]), SYNC], &[PARSED, &ready(b'I')]);
    }
    talk = talk.asks(&[&query("SELECT 1")], &[ROW, &done("SELECT 1"), &ready(b'I')]);
    assert_eq!(found(&talk), (vec![], [(TOO_MUCH, 1)].into()));
}

#[test]
fn what_is_not_the_protocol_is_followed_no_more() {
    for bytes in [b"?????".to_vec(), b"Q\0\0\0\x03".to_vec(), message(b'Q', b"no end"), message(b'D', b"X\0")]
    {
        let talk = Talk::begun().client(&bytes).client(&query("SELECT 1"));
        assert_eq!(found(&talk), (vec![], [(FOREIGN, 1)].into()), "{bytes:?}");
    }
    for bytes in [vec![0, 0, 0, 7], vec![0, 0, 0xff, 0xff], opening(2 << 16, &["u"])] {
        let talk = Talk::default().client(&[bytes.clone(), vec![0; 8]].concat());
        assert_eq!(found(&talk), (vec![], [(FOREIGN, 1)].into()), "{bytes:?}");
    }
}
