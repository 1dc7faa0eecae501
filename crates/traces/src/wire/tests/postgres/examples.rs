//! Conversations as clients and servers have them.

use super::talk::*;
use crate::wire::postgres::{ENCRYPTED, FUNCTIONS};
use crate::wire::tests::{Example, Talk};
use crate::wire::{FETCHES, FOREIGN, NOT_UTF8, REPLICATION, TYPES, UNKNOWN};

pub(in crate::wire::tests) fn examples() -> Vec<Example> {
    vec![
        ("simple", simple(), SIMPLE, &[]),
        ("extended", extended(), EXTENDED, &[]),
        ("pipelined", pipelined(), PIPELINED, &[]),
        ("skipping", skipping(), SKIPPING, &[]),
        ("portals", portals(), PORTALS, &[(FETCHES, 2)]),
        ("described-elsewhere", described_elsewhere(), DESCRIBED_ELSEWHERE, &[(TYPES, 1)]),
        ("names", names(), NAMES, &[(UNKNOWN, 2)]),
        ("types", types(), TYPED, &[(NOT_UTF8, 1), (TYPES, 2)]),
        ("copied", copied(), COPIED, &[]),
        ("copy-failed", copy_failed(), COPY_FAILED, &[]),
        ("lost", lost(), LOST, &[]),
        ("functions", functions(), &[], &[(FUNCTIONS, 1), ("statements without a word", 2)]),
        ("encrypted", encrypted(b'S'), &[], &[(ENCRYPTED, 1)]),
        ("gss", Talk::default().client(&opening(80_877_104, &[])).server(b"G"), &[], &[(ENCRYPTED, 1)]),
        ("refused-encryption", encrypted(b'N').then(&simple()), SIMPLE_LATER, &[]),
        ("direct-tls", Talk::default().client(&[22, 3, 1, 0, 200]), &[], &[(ENCRYPTED, 1)]),
        ("cancel", Talk::default().client(&opening(80_877_102, &["12345678"])), &[], &[]),
        ("replication", replication(), &[], &[(REPLICATION, 1)]),
        ("mysql", Talk::default().server(b"J\0\0\0\x0a8.0.36\0"), &[], &[(FOREIGN, 1)]),
        ("unasked", Talk::begun().server(&done("SELECT 1")), &[], &[(FOREIGN, 1)]),
    ]
}

fn simple() -> Talk {
    Talk::begun()
        .asks(&[&query("BEGIN")], &[&done("BEGIN"), &ready(b'T')])
        .asks(&[&query("UPDATE t SET a = 'x'")], &[&done("UPDATE 3"), &ready(b'T')])
        .asks(&[&query("SELECT nothing")], &[&failed("42703"), &ready(b'E')])
        .asks(&[&query("ROLLBACK")], &[&done("ROLLBACK"), &ready(b'I')])
        .asks(
            &[&query("SELECT 1; SELECT 2")],
            &[ROW, &done("SELECT 1"), ROW, &done("SELECT 1"), &ready(b'I')],
        )
}
const SIMPLE: &[&str] = &[
    "40 s0 t0 10 begin||||d|-1",
    "60 s0 t0 10 update t set a = $1|t|x||d|3",
    "80 s0 t0 10 select nothing|||42703|d|-1",
    "100 s0 t0 10 rollback||||d|-1",
    "120 s0 t1 10 select $1; select $2|nn|1,2||d|-1",
];
const SIMPLE_LATER: &[&str] = &[
    "60 s0 t0 10 begin||||d|-1",
    "80 s0 t0 10 update t set a = $1|t|x||d|3",
    "100 s0 t0 10 select nothing|||42703|d|-1",
    "120 s0 t0 10 rollback||||d|-1",
    "140 s0 t1 10 select $1; select $2|nn|1,2||d|-1",
];

fn extended() -> Talk {
    let seven: &[u8] = &7_i32.to_be_bytes();
    let bound =
        [bind("", "s", &[1, 0], &[Some(seven), Some(b"it's")]), bind("", "s", &[1], &[None, Some(b"")])];
    Talk::begun()
        .asks(
            &[&parse("s", "SELECT a FROM t WHERE b = $1 AND c = $2", &[]), &describe("S", "s"), SYNC],
            &[PARSED, &described(&[23, 25]), &message(b'T', &[0, 0]), &ready(b'I')],
        )
        .asks(
            &[&bound[0], &describe("P", ""), &execute("", 0), SYNC],
            &[BOUND, &message(b'T', &[0, 0]), ROW, ROW, &done("SELECT 2"), &ready(b'I')],
        )
        .asks(&[&bound[1], &execute("", 0), SYNC], &[BOUND, &done("SELECT 0"), &ready(b'I')])
        .asks(&[&close("S", "s"), SYNC], &[CLOSED, &ready(b'I')])
}
const EXTENDED: &[&str] = &[
    "60 s0 t0 10 select a from t where b = $1 and c = $2|pp|7,it's||d|2",
    "80 s0 t1 10 select a from t where b = $1 and c = $2|pp|NULL,||d|0",
];

/// A client that asks for types once, and remembers them: here under another name, as on another connection. Answers that
/// differ are of no use.
fn described_elsewhere() -> Talk {
    let sql = "SELECT a FROM t WHERE b = $1";
    let value: &[u8] = &7_i64.to_be_bytes();
    let asked = |name: &str| [parse(name, sql, &[]), describe("S", name), SYNC.to_vec()].concat();
    let answered = |oid: u32| [PARSED, &described(&[oid]), NO_DATA, &ready(b'I')].concat();
    let run =
        [parse("o", sql, &[0]), bind("", "o", &[1], &[Some(value)]), execute("", 0), SYNC.to_vec()].concat();
    let ran = [PARSED, BOUND, &done("SELECT 0"), &ready(b'I')].concat();
    let again = [close("S", "o"), SYNC.to_vec()].concat();
    Talk::begun()
        .asks(&[&asked("s")], &[&answered(20)])
        .asks(&[&run], &[&ran])
        .asks(&[&again, &asked("u")], &[CLOSED, &ready(b'I'), &answered(701)])
        .asks(&[&run], &[&ran])
}
const DESCRIBED_ELSEWHERE: &[&str] = &["60 s0 t0 10 select a from t where b = $1|p|7||d|0"];

/// A batch of which the second statement fails, and the third was never executed.
fn pipelined() -> Talk {
    let step = |sql: &str, value: &[u8]| {
        [parse("", sql, &[25]), bind("", "", &[], &[Some(value)]), execute("", 0)].concat()
    };
    Talk::begun()
        .asks(
            &[
                &step("INSERT INTO t VALUES ($1)", b"1"),
                &step("SELECT $1 / 0", b"2"),
                &step("SELECT $1", b"3"),
                SYNC,
            ],
            &[PARSED, BOUND, &done("INSERT 0 1"), PARSED, BOUND, &failed("22012"), &ready(b'I')],
        )
        .asks(
            &[
                &parse("", "SELECT wrong", &[]),
                &bind("", "", &[], &[]),
                &execute("", 0),
                SYNC,
                &query("SELECT 4"),
            ],
            &[&failed("42703"), &ready(b'I'), ROW, &done("SELECT 1"), &ready(b'I')],
        )
        .asks(
            &[&parse("n", "SELECT $1::int", &[]), &bind("", "n", &[], &[Some(b"x")]), &execute("", 0), SYNC],
            &[PARSED, &failed("22P02"), &ready(b'I')],
        )
}
const PIPELINED: &[&str] = &[
    "40 s0 t0 10 insert into t values ($1), …|[p]|1||d|1",
    "40 s0 t1 10 select $1 / $2|pn|2,0|22012|d|-1",
    "60 s0 t2 10 select wrong|||42703|d|-1",
    "60 s0 t3 10 select $1|n|4||d|1",
    "80 s0 t4 10 select $1::int|p|x|22P02|d|-1",
];

/// The client goes on sending before it has read the error.
fn skipping() -> Talk {
    Talk::begun()
        .asks(&[&parse("", "SELECT wrong", &[])], &[&failed("42703")])
        .client(
            &[parse("", "SELECT 1", &[]), bind("", "", &[], &[]), execute("", 0), query("SELECT 2")].concat(),
        )
        .asks(&[SYNC], &[&ready(b'I')])
        .asks(&[&query("SELECT 3")], &[ROW, &done("SELECT 1"), &ready(b'I')])
}
const SKIPPING: &[&str] = &["40 s0 t0 10 select wrong|||42703|d|-1", "90 s0 t1 10 select $1|n|3||d|1"];

fn portals() -> Talk {
    Talk::begun()
        .asks(&[&query("BEGIN")], &[&done("BEGIN"), &ready(b'T')])
        .asks(
            &[&parse("", "SELECT a FROM t", &[]), &bind("p", "", &[], &[]), &execute("p", 1), SYNC],
            &[PARSED, BOUND, ROW, SUSPENDED, &ready(b'T')],
        )
        .asks(&[&execute("p", 1), SYNC], &[ROW, SUSPENDED, &ready(b'T')])
        .asks(&[&execute("p", 0), SYNC], &[ROW, &done("SELECT 1"), &ready(b'T')])
        .asks(&[&close("P", "p"), SYNC], &[CLOSED, &ready(b'T')])
        .asks(&[&query("COMMIT")], &[&done("COMMIT"), &ready(b'I')])
}
const PORTALS: &[&str] =
    &["40 s0 t0 10 begin||||d|-1", "60 s0 t0 10 select a from t||||d|-1", "140 s0 t0 10 commit||||d|-1"];

/// Names mean what they last meant; the unnamed ones end with a simple query, portals with their transaction.
fn names() -> Talk {
    let run = [bind("", "s", &[], &[]), execute("", 0), SYNC.to_vec()].concat();
    let ran = [BOUND, ROW, &done("SELECT 1"), &ready(b'I')].concat();
    Talk::begun()
        .asks(&[&parse("s", "SELECT 1", &[]), &run], &[PARSED, &ran])
        .asks(&[&query("DEALLOCATE s;")], &[&done("DEALLOCATE"), &ready(b'I')])
        .asks(&[&parse("s", "SELECT 'a'", &[]), &run], &[PARSED, &ran])
        .asks(&[&parse("s", "SELECT 1.5", &[]), SYNC], &[&failed("42P05"), &ready(b'I')])
        .asks(&[&run], &[&ran])
        .asks(&[&query("DISCARD ALL")], &[&done("DISCARD ALL"), &ready(b'I')])
        .asks(&[&query("PREPARE s AS SELECT 9")], &[&done("PREPARE"), &ready(b'I')])
        .asks(&[&run], &[&ran])
        .asks(&[&execute("", 0), SYNC], &[&failed("34000"), &ready(b'I')])
}
const NAMES: &[&str] = &[
    "40 s0 t0 10 select $1|n|1||d|1",
    "60 s0 t1 10 deallocate s||||d|-1",
    "80 s0 t2 10 select $1|t|a||d|1",
    "100 s0 t3 10 select $1|n|1.5|42P05|d|-1",
    "120 s0 t4 10 select $1|t|a||d|1",
    "140 s0 t5 10 discard all||||d|-1",
    "160 s0 t6 10 prepare s as select $1|n|9||d|-1",
];

fn types() -> Talk {
    let run = |oid: u32, format: u16, value: &[u8]| {
        [
            parse("", "SELECT $1", &[oid]),
            bind("", "", &[format], &[Some(value)]),
            execute("", 0),
            SYNC.to_vec(),
        ]
        .concat()
    };
    let ran: &[&[u8]] = &[PARSED, BOUND, ROW, &done("SELECT 1"), &ready(b'I')];
    Talk::begun()
        .asks(&[&run(16, 1, &[1])], ran)
        .asks(&[&run(600, 0, b"(1,2)")], ran)
        .asks(&[&run(600, 1, &[0; 16])], ran)
        .asks(&[&run(0, 1, &[0; 4])], ran)
        .asks(&[&run(25, 0, &[0xff])], ran)
        .asks(&[&run(1184, 1, &0_i64.to_be_bytes())], ran)
}
const TYPED: &[&str] = &[
    "40 s0 t0 10 select $1|p|t||d|1",
    "60 s0 t1 10 select $1|p|(1,2)||d|1",
    "140 s0 t2 10 select $1|p|2000-01-01 00:00:00+00||d|1",
];

/// The server passes over the first Sync, which comes while it takes data.
fn copied() -> Talk {
    let begin = [parse("", "COPY t FROM STDIN", &[]), bind("", "", &[], &[]), execute("", 0), SYNC.to_vec()];
    Talk::begun()
        .asks(&[&begin.concat()], &[PARSED, BOUND, COPY_IN])
        .asks(&[COPY_DATA, COPY_DATA, COPY_DONE, SYNC], &[&done("COPY 2"), &ready(b'I')])
        .asks(&[&query("COPY t FROM STDIN")], &[COPY_IN])
        .asks(&[COPY_DATA, COPY_DONE], &[&done("COPY 1"), &ready(b'I')])
        .asks(
            &[&query("COPY t TO STDOUT")],
            &[b"H\0\0\0\x07\0\0\0", COPY_DATA, COPY_DONE, &done("COPY 1"), &ready(b'I')],
        )
}
const COPIED: &[&str] = &[
    "40 s0 t0 30 copy t from stdin||||d|2",
    "80 s0 t1 30 copy t from stdin||||d|1",
    "120 s0 t2 10 copy t to stdout||||d|1",
];

fn copy_failed() -> Talk {
    let begin = [parse("", "COPY t FROM STDIN", &[]), bind("", "", &[], &[]), execute("", 0), SYNC.to_vec()];
    Talk::begun()
        .asks(&[&begin.concat()], &[PARSED, BOUND, COPY_IN])
        .asks(&[COPY_DATA], &[&failed("22P02")])
        .asks(&[COPY_DATA, COPY_DONE, SYNC], &[&ready(b'I')])
        .asks(&[&query("SELECT 1")], &[ROW, &done("SELECT 1"), &ready(b'I')])
}
const COPY_FAILED: &[&str] =
    &["40 s0 t0 30 copy t from stdin|||22P02|d|-1", "100 s0 t1 10 select $1|n|1||d|1"];

fn lost() -> Talk {
    Talk::begun()
        .client(
            &[parse("", "UPDATE t SET a = $1", &[]), bind("", "", &[], &[Some(b"5")]), execute("", 0)]
                .concat(),
        )
        .client(&[SYNC.to_vec(), query("SELECT 1")].concat())
}
const LOST: &[&str] = &["40 s0 t0 -1 update t set a = $1|p|5||d|-1", "50 s0 t1 -1 select $1|n|1||d|-1"];

fn functions() -> Talk {
    Talk::begun()
        .asks(&[&message(b'F', &[0; 10])], &[&message(b'V', &[255; 4]), &ready(b'I')])
        .asks(&[&query("")], &[EMPTY, &ready(b'I')])
        .asks(
            &[&parse("", "", &[]), &bind("", "", &[], &[]), &describe("P", ""), &execute("", 0), SYNC],
            &[PARSED, BOUND, NO_DATA, EMPTY, &ready(b'I')],
        )
}

fn encrypted(answer: u8) -> Talk {
    Talk::default().client(&opening(80_877_103, &[])).server(&[answer])
}

fn replication() -> Talk {
    Talk::default()
        .client(&opening(3 << 16, &["user", "u", "replication", "database"]))
        .asks(&[&query("IDENTIFY_SYSTEM")], &[&done("IDENTIFY_SYSTEM"), &ready(b'I')])
}
