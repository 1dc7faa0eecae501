//! Conversations as clients and servers have them.

use super::talk::*;
use crate::wire::mysql::{BULK, COMPRESSED, ENCRYPTED};
use crate::wire::tests::{Example, Talk};
use crate::wire::{FETCHES, FOREIGN, NOT_READ, NOT_UTF8, REPLICATION, TYPES, UNKNOWN};

pub(in crate::wire::tests) fn examples() -> Vec<Example> {
    let greeted = Talk::default().server(&greeting(MODERN | 1 << 11 | 1 << 5, 0));
    let settings = [&(MODERN | 1 << 11).to_le_bytes()[..], &[0; 28]].concat();
    vec![
        ("simple", simple(), SIMPLE, &[]),
        ("older", older(), OLDER, &[]),
        ("prepared", prepared_statements(), PREPARED, &[(NOT_READ, 1), (TYPES, 2), (UNKNOWN, 2)]),
        ("long-data", long_data(), LONG_DATA, &[]),
        ("cached", cached(), CACHED, &[]),
        ("optional", optional(), OPTIONAL, &[]),
        ("attributes", attributes(), ATTRIBUTES, &[]),
        ("cursors", cursors(), CURSORS, &[(FETCHES, 3)]),
        ("sessions", sessions(), SESSIONS, &[]),
        ("files", files(), FILES, &[]),
        ("commands", commands(), COMMANDS, &[(BULK, 1), (NOT_UTF8, 1)]),
        ("lost", lost(), LOST, &[]),
        ("refused", Talk::default().server(&packet(0, b"\xff\x10\x04Too many connections")), &[], &[]),
        ("encrypted", greeted.clone().client(&packet(1, &settings)), &[], &[(ENCRYPTED, 1)]),
        ("compressed", greeted.client(&answer(MODERN | 1 << 5, 0)), &[], &[(COMPRESSED, 1)]),
        ("replication", Talk::modern().client(&command(0x1e, b"x")), &[], &[(REPLICATION, 1)]),
        ("unasked", Talk::modern().server(&done(0)), &[], &[(FOREIGN, 1)]),
        ("killed", Talk::modern().server(&failed(1927)), &[], &[]),
        ("postgresql", Talk::default().client(b"\0\0\0\x08\0\x03\0\0"), &[], &[(FOREIGN, 1)]),
        ("unknown", Talk::modern().client(&command(0x77, b"x")), &[], &[(FOREIGN, 1)]),
    ]
}

/// The first example is the conversation that others are damaged beside.
fn simple() -> Talk {
    Talk::modern()
        .asks(&[&query("BEGIN")], &[&done(0)])
        .asks(&[&query("UPDATE T SET a = 'x'")], &[&told(2, "\x28Rows matched: 3  Changed: 2  Warnings: 0")])
        .asks(&[&query("SELECT nothing")], &[&failed(1054)])
        .asks(&[&query("ROLLBACK")], &[&done(0)])
        .asks(
            &[&query("SELECT 1; SELECT 2")],
            &[ONE, DEFINITION, ROW, &end(8), ONE, DEFINITION, ROW, &end(2)],
        )
        .asks(&[&query("use `other`;")], &[&done(0)])
        // One behind the other, before the first is answered.
        .asks(
            &[&query("SELECT a FROM T"), &query("DELETE FROM T WHERE a = 5")],
            &[ONE, DEFINITION, ROW, ROW, &end(2), &done(7)],
        )
}
const SIMPLE: &[&str] = &[
    "60 s0 t0 10 begin||||d|0",
    "80 s0 t0 10 update T set a = $1|t|x||d|3",
    "100 s0 t0 10 select nothing|||1054|d|-1",
    "120 s0 t0 10 rollback||||d|0",
    "140 s0 t1 10 select $1; select $2|nn|1,2||d|-1",
    "160 s0 t2 10 use `other`||||d|0",
    "180 s0 t3 10 select a from T||||other|2",
    "180 s0 t4 10 delete from T where a = $1|n|5||other|7",
];

/// Columns and rows end with an `EOF_Packet`; a row may begin like one.
fn older() -> Talk {
    let long = packet(4, &[&[0xfe][..], &[0; 12]].concat());
    Talk::logged_in(PLAIN, 0)
        .asks(&[&query("SELECT a FROM t")], &[ONE, DEFINITION, &eof(2), ROW, &long, &eof(2)])
        .asks(
            &[&prepare("SELECT a FROM t WHERE b = ?")],
            &[&prepared(1, 1, 1), DEFINITION, &eof(2), DEFINITION, &eof(2)],
        )
        .asks(&[&execute(1, 0, Some(&[3, 0]), &[5, 0, 0, 0])], &[ONE, DEFINITION, &eof(2), BINARY, &eof(2)])
        // An error ends rows.
        .asks(&[&execute(1, 0, None, &[6, 0, 0, 0])], &[ONE, DEFINITION, &eof(2), BINARY, &failed(1317)])
}
const OLDER: &[&str] = &[
    "60 s0 t0 10 select a from t||||d|2",
    "100 s0 t1 10 select a from t where b = $1|n|5||d|1",
    "120 s0 t2 10 select a from t where b = $1|n|6|1317|d|-1",
];

fn prepared_statements() -> Talk {
    let insert = "INSERT INTO t VALUES (?, ?, '?')";
    let types: &[u8] = &[8, 0x80, 0xfd, 0];
    let numbers: &[u8] = &[0xff; 8];
    Talk::modern()
        // Its number is not known when it is executed and closed.
        .asks(
            &[
                &prepare(insert),
                &execute(u32::MAX, 0, Some(types), &[numbers, b"\x04it's"].concat()),
                &of(0x19, 7),
            ],
            &[&prepared(7, 0, 2), DEFINITION, DEFINITION, &done(1)],
        )
        .asks(&[&prepare(insert)], &[&prepared(8, 0, 2), DEFINITION, DEFINITION])
        // Types that were never sent.
        .asks(&[&execute(8, 0, None, &[0; 9])], &[&failed(1210)])
        .asks(&[&execute(8, 2, Some(types), numbers)], &[&done(1)])
        .asks(&[&execute(8, 1, None, b"\x02so")], &[&done(1)])
        // Neither a number of its length, nor an execution.
        .asks(&[&execute(8, 0, None, &[1])], &[&failed(1210)])
        .asks(&[&command(0x17, &[8, 0, 0, 0, 0])], &[&failed(1210)])
        .asks(&[&execute(7, 0, None, &[])], &[&failed(1243)])
        .asks(&[&prepare("SELECT wrong")], &[&failed(1054)])
        .asks(&[&of(0x19, 8), &run(8, 0)], &[&failed(1243)])
}
const PREPARED: &[&str] = &[
    "60 s0 t0 10 insert into t values ($1, $2, $3), …|[ntt]|18446744073709551615,it's,?||d|1",
    "120 s0 t1 10 insert into t values ($1, $2, $3), …|[nct]|18446744073709551615,NULL,?||d|1",
    "140 s0 t2 10 insert into t values ($1, $2, $3), …|[ctt]|NULL,so,?||d|1",
    "220 s0 t3 10 select wrong|||1054|d|-1",
];

/// A value in pieces of its own; it is of one execution alone.
fn long_data() -> Talk {
    let piece = |text: &[u8]| command(0x18, &[&[1, 0, 0, 0, 1, 0], text].concat());
    let types: &[u8] = &[3, 0, 0xfc, 0];
    Talk::modern()
        .asks(
            &[&prepare("UPDATE t SET b = ? WHERE a = ?"), &piece(b"lo"), &piece(b"ng\xff")],
            &[&prepared(1, 0, 2), DEFINITION, DEFINITION],
        )
        .asks(&[&execute(1, 0, Some(types), &[5, 0, 0, 0])], &[&done(1)])
        .asks(&[&piece(b"forgotten"), &of(0x1a, 1)], &[&done(0)])
        .asks(&[&execute(1, 0, None, b"\x05\0\0\0\x01x")], &[&done(1)])
}
const LONG_DATA: &[&str] = &[
    "80 s0 t0 10 update t set b = $1 where a = $2|nx|5,6c6f6e67ff||d|1",
    "120 s0 t1 10 update t set b = $1 where a = $2|nt|5,x||d|1",
];

/// `MariaDB` says whether columns are described, behind their count.
fn cached() -> Talk {
    Talk::logged_in(MODERN & !1, 16)
        .asks(&[&prepare("SELECT a FROM t")], &[&prepared(1, 1, 0), DEFINITION])
        .asks(&[&run(1, 0)], &[b"\x02\0\0\x01\x01\x01", DEFINITION, BINARY, BINARY, &end(2)])
        .asks(&[&run(1, 0)], &[b"\x02\0\0\x01\x01\x00", BINARY, &end(2)])
}
const CACHED: &[&str] = &["80 s0 t0 10 select a from t||||d|2", "100 s0 t1 10 select a from t||||d|1"];

/// `MySQL` says so before it.
fn optional() -> Talk {
    let bare = [&prepared(1, 1, 1)[..16], &[0]].concat();
    Talk::logged_in(MODERN | 1 << 25, 0)
        .asks(&[&prepare("SELECT ?")], &[&bare])
        .asks(&[&execute(1, 0, Some(&[1, 0]), &[0xff])], &[b"\x02\0\0\x01\x00\x01", BINARY, &end(2)])
        .asks(&[&query("SELECT 1")], &[b"\x02\0\0\x01\x01\x01", DEFINITION, ROW, ROW, &end(2)])
}
const OPTIONAL: &[&str] = &["80 s0 t0 10 select $1|n|-1||d|1", "100 s0 t1 10 select $1|n|1||d|2"];

/// A query has parameters before its text, and an execution may say how many it has, and their names.
fn attributes() -> Talk {
    let with = |head: &[u8]| command(3, &[head, b"SELECT 1"].concat());
    let executed =
        [&[1, 0, 0, 0, 8, 1, 0, 0, 0, 2, 0, 1, 1, 0, 1][..], b"n", &[1, 0, 1], b"m", &[7, 8]].concat();
    Talk::logged_in(MODERN | 1 << 27, 0)
        .asks(&[&with(&[0, 1])], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&with(b"\x02\x01\x02\x01\xfd\0\x01n\xfd\0\x01m\x03abc")], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&prepare("SELECT ?")], &[&prepared(1, 1, 1), DEFINITION, DEFINITION])
        .asks(&[&command(0x17, &executed)], &[ONE, DEFINITION, BINARY, &end(2)])
}
const ATTRIBUTES: &[&str] =
    &["60 s0 t0 10 select $1|n|1||d|1", "80 s0 t1 10 select $1|n|1||d|1", "120 s0 t2 10 select $1|n|7||d|1"];

fn cursors() -> Talk {
    let fetch = command(0x1c, &[1, 0, 0, 0, 2, 0, 0, 0]);
    let select = |talk: Talk, described: &[u8]| {
        talk.asks(&[&prepare("SELECT a FROM t")], &[&prepared(1, 1, 0), DEFINITION, described])
    };
    let modern = select(Talk::modern(), b"")
        .asks(&[&run(1, 1)], &[ONE, DEFINITION, &end(66)])
        .asks(&[&fetch], &[BINARY, BINARY, &end(66)])
        .asks(&[&fetch], &[&end(130)]);
    let older = select(Talk::default().asks(&[&command(0x11, b"you\0\x01xd\0")], &[&done(0)]), b"");
    modern.then(&older).asks(&[&run(1, 1)], &[ONE, DEFINITION, &end(66)]).asks(&[&fetch], &[&failed(1421)])
}
const CURSORS: &[&str] = &["80 s0 t0 10 select a from t||||d|-1", "180 s1 t1 10 select a from t||||d|-1"];

/// Another user is another session; a connection that is reset has no statements.
fn sessions() -> Talk {
    Talk::modern()
        .asks(&[&prepare("SELECT 1")], &[&prepared(1, 0, 0)])
        .asks(&[&query("BEGIN")], &[&done(0)])
        .client(&command(0x11, b"you\0\x01xe\0plugin\0"))
        .server(&packet(1, b"\xfeplugin\0nonce"))
        .client(&packet(2, b"proof"))
        .server(&packet(3, &[0, 0, 0, 2, 0, 0, 0]))
        .asks(&[&query("SELECT 2")], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&command(2, b"f")], &[&done(0)])
        .asks(&[&command(2, b"none")], &[&failed(1049)])
        .asks(&[&prepare("SELECT 3")], &[&prepared(1, 0, 0)])
        .asks(&[&run(1, 0)], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&command(0x1f, b"")], &[&done(0)])
        .asks(&[&query("SELECT 4")], &[ONE, DEFINITION, ROW, &end(2)])
}
const SESSIONS: &[&str] = &[
    "80 s0 t0 10 begin||||d|0",
    "140 s1 t1 10 select $1|n|2||e|1",
    "220 s1 t2 10 select $1|n|3||f|1",
    "260 s1 t3 10 select $1|n|4||f|1",
];

/// The client's next bytes are the file, whatever they look like, up to an empty message.
fn files() -> Talk {
    Talk::modern()
        .client(&query("LOAD DATA LOCAL INFILE 'x' INTO TABLE t"))
        .server(&packet(1, b"\xfbx"))
        .client(&[packet(2, b"1\n2\n"), packet(0, b"\x03SELECT 1"), packet(3, b"")].concat())
        .server(&packet(4, &[0, 2, 0, 2, 0, 0, 0]))
        .asks(&[&query("SELECT 2")], &[ONE, DEFINITION, ROW, &end(2)])
}
const FILES: &[&str] =
    &["60 s0 t0 30 LOAD DATA LOCAL INFILE $1 into table t|t|x||d|2", "100 s0 t1 10 select $1|n|2||d|1"];

/// Commands that run no statement, and what a long one says of itself.
fn commands() -> Talk {
    let progress = packet(1, &[&[0xff, 0xff, 0xff][..], b"\x01\x01\x02"].concat());
    Talk::modern()
        .asks(&[&command(0x0e, b"")], &[&done(0)])
        .asks(&[&command(0x09, b"")], &[&packet(1, b"Uptime: 1")])
        .asks(&[&command(0x1b, &[0, 0])], &[&eof(2)])
        .asks(&[&command(0x04, b"t\0%")], &[DEFINITION, DEFINITION, &end(2)])
        .asks(&[&command(0x0a, b"")], &[ONE, DEFINITION, ROW, &end(2)])
        .asks(&[&command(0xfa, b"\x01\0\0\0\x80\0")], &[&done(3)])
        .asks(&[&query("ALTER TABLE t ADD a INT")], &[&progress, &progress, &done(0)])
        .asks(&[&command(3, b"SELECT '\xff'")], &[ONE, DEFINITION, ROW, &end(2)])
        .client(&command(1, b""))
}
const COMMANDS: &[&str] = &["180 s0 t0 10 alter table t add a INT||||d|0"];

fn lost() -> Talk {
    Talk::modern()
        .asks(&[&prepare("UPDATE t SET a = ?")], &[&prepared(1, 0, 1), DEFINITION])
        .client(&execute(1, 0, Some(&[1, 0]), &[5]))
        .client(&[prepare("SELECT 9"), query("SELECT 1")].concat())
}
const LOST: &[&str] = &["80 s0 t0 -1 update t set a = $1|n|5||d|-1", "90 s0 t1 -1 select $1|n|1||d|-1"];
