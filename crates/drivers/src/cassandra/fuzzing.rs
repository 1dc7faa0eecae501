//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use super::levels::Levels;
use super::machine::{Clock, Machine};
use super::prepared::Prepared;
use super::ring::Ring;
use super::segments::{self, Speech};
use super::wire::{Fields, Form};
use crate::contract::driver::{Command, ConnectionState, Want};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};
use crate::net::conversation::{Conversation, Transcript};
use crate::net::session::Machine as _;

/// The answer to the preparation of each statement, behind its kind: `(text, text, int)` or as many of these as it has
/// parameters, and columns `(text, decimal)` where it reads.
fn preparation(form: Form, params: usize, reads: bool) -> Vec<u8> {
    const TYPES: [u8; 3] = [0x0D, 0x0D, 0x09];
    let mut out = b"\0\x02id".to_vec();
    if form.is_five() {
        out.extend_from_slice(b"\0\x07columns");
    }
    out.extend_from_slice(b"\0\0\0\x01\0\0\0");
    out.extend_from_slice(&[params as u8, 0, 0, 0, 0]);
    if params > 0 {
        out.extend_from_slice(b"\0\x01k\0\x01t");
    }
    for of in &TYPES[..params] {
        out.extend_from_slice(&[0, 1, b'p', 0, *of]);
    }
    let columns: &[u8] = if reads {
        b"\0\0\0\x01\0\0\0\x02\0\x01k\0\x01t\0\x01a\0\x0D\0\x01b\0\x06"
    } else {
        b"\0\0\0\x04\0\0\0\0"
    };
    out.extend_from_slice(columns);
    out
}

/// The verbs on a table of two fields, in the order of [`Action::ALL`], then CQL that reads, and CQL that is sent alone.
fn statements(form: Form) -> Vec<Prepared> {
    let verb = |action: Action| {
        let fields =
            if action == Action::Delete { Vec::new() } else { ["a", "b"].map(str::to_owned).to_vec() };
        Statement::of_verb(action.name(), Verb { action, table: "t".to_owned(), key: "k".to_owned(), fields })
    };
    let own = [("cql", "SELECT * FROM t"), ("if", "DELETE FROM t WHERE k = 'x' IF EXISTS")];
    let own = own.map(|(name, cql)| Statement::new(name, cql));
    let of = |statement: Statement| {
        let mut one = Prepared::new(&statement, Levels::SESSION, form);
        let reads = one.cql.starts_with("SELECT");
        let taken = one.prepared(Fields(&preparation(form, statement.params().len(), reads)));
        assert!(taken.is_ok(), "{taken:?}");
        one
    };
    Action::ALL.map(verb).into_iter().chain(own).map(of).collect()
}

/// What is sent together: places of [`statements`].
const FLUSHES: [&[usize]; 4] = [&[0], &[2, 3, 4], &[1, 5], &[0, 1, 2, 2, 6, 0]];

/// The first byte of what is read as rows about a ring.
const RING: u8 = 0x7f;

/// What a node tells of its ring, as lines with tabs between cells: of itself, of others, and behind an empty line of
/// keyspaces.
///
/// # Panics
/// If a row would be looked for at a node that is not there, or at one of them twice.
fn ring(text: &str) {
    let row = |line: &str| line.split('\t').map(|cell| (cell != "-").then(|| cell.to_owned())).collect();
    let mut lines = text.lines();
    let own = row(lines.next().unwrap_or_default());
    let peers: Vec<_> = lines.by_ref().take_while(|line| !line.is_empty()).map(row).collect();
    let keyspaces: Vec<_> = lines.map(row).collect();
    let Ok(ring) = Ring::of(&own, &peers, &keyspaces) else { return };
    for name in keyspaces.iter().filter_map(|row| row.first()?.as_deref()) {
        let Some(keyspace) = ring.keyspace(name) else { continue };
        for token in [i64::MIN, -1, 0, i64::MAX] {
            let nodes = ring.replicas(keyspace, token);
            assert!(nodes.iter().all(|node| usize::from(*node) < ring.members.len()));
            assert!((1..nodes.len()).all(|place| !nodes[..place].contains(&nodes[place])));
        }
    }
}

/// What a server sends; the first byte says how the bytes are cut, whether they are version 5, and whether segments with
/// right checksums are made of them, so long each.
///
/// # Panics
/// If the outcome depends on how the bytes are cut, or if a claimed length costs memory.
pub fn protocol(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    if *choice == RING {
        return ring(&String::from_utf8_lossy(bytes));
    }
    let (form, cut) = match choice {
        0x80.. => (Form::FIVE, usize::from(choice & 0x3f) + 1),
        _ => (Form::FOUR, usize::from(*choice) + 1),
    };
    let mut made = Vec::new();
    if *choice >= 0xc0 {
        for contents in bytes.chunks(3 * cut) {
            let start = made.len();
            made.resize(start + segments::BEFORE, 0);
            made.extend_from_slice(contents);
            segments::close(&mut made, start);
        }
    }
    let bytes = if made.is_empty() { bytes } else { &made };
    let whole = converse(form, bytes, bytes.len().max(1));
    assert_eq!(without_times(whole), without_times(converse(form, bytes, cut)));
}

/// The times of writes differ; how much was sent does not.
fn without_times((outcomes, sent, counts): Transcript) -> (Transcript, usize) {
    let size = sent.len();
    ((outcomes, Vec::new(), counts), size)
}

fn converse(form: Form, bytes: &[u8], cut: usize) -> Transcript {
    let mut machine = Machine::new(statements(form), Levels::SESSION, Speech::new(form), Clock::default());
    let mut conversation = Conversation::new(bytes, cut);
    for flush in FLUSHES.iter().cycle() {
        for place in *flush {
            let values: &[Value<'_>] = match place {
                0 | 4 => &[Value::Text(b"x")],
                // The third parameter of an insert is a number, and the second of a scan a text.
                1 => &[Value::Text(b"x"), Value::Int(2)],
                2 | 3 => &[Value::Text(b"x"), Value::Text(b"y"), Value::Int(7)],
                _ => &[],
            };
            let params: Params = values.iter().copied().collect();
            let want = if matches!(place, 0 | 1 | 5) { Want::Rows } else { Want::Count };
            let queued = machine.queue(Command::Execute(*place), &params, want, &mut conversation.sent);
            assert!(queued.is_ok());
        }
        match conversation.hear(&mut machine) {
            None | Some(ConnectionState::Lost) => break,
            Some(state) => assert_eq!(state, ConnectionState::Idle, "every answer is in"),
        }
    }
    conversation.end()
}

#[cfg(test)]
mod tests {
    use super::super::wire::HEADER;
    use super::*;
    use crate::contract::error::ErrorClass;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_of_the_protocol_are_kept() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/cassandra_protocol");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(seeds.len() >= 4, "{folder} has {} seeds", seeds.len());
        for seed in seeds {
            protocol(&std::fs::read(seed.unwrap().path()).unwrap());
        }
    }

    fn frame(stream: u8, opcode: u8, body: &[u8]) -> Vec<u8> {
        [&[0x84, 0, 0, stream, opcode, 0, 0, 0, body.len() as u8], body].concat()
    }

    fn void(stream: u8) -> Vec<u8> {
        frame(stream, 8, b"\0\0\0\x01")
    }

    fn error(stream: u8, code: u16) -> Vec<u8> {
        frame(stream, 0, &[&[0, 0][..], &code.to_be_bytes(), b"\0\x02no"].concat())
    }

    /// Rows of a verb, without a description of their columns.
    fn rows(stream: u8, rows: &[(&[u8], &[u8])]) -> Vec<u8> {
        let mut body = b"\0\0\0\x02\0\0\0\x04\0\0\0\x02\0\0\0".to_vec();
        body.push(rows.len() as u8);
        for cell in rows.iter().flat_map(|(a, b)| [a, b]) {
            body.extend_from_slice(&[0, 0, 0, cell.len() as u8]);
            body.extend_from_slice(cell);
        }
        frame(stream, 8, &body)
    }

    /// The rows of CQL, with the description of one column.
    fn told(stream: u8) -> Vec<u8> {
        frame(
            stream,
            8,
            b"\0\0\0\x02\0\0\0\x01\0\0\0\x01\0\x01k\0\x01t\0\x01c\0\x09\0\0\0\x01\0\0\0\x04\0\0\0\x07",
        )
    }

    fn streams(sent: &[u8]) -> Vec<(u8, u8)> {
        let (mut found, mut rest) = (Vec::new(), sent);
        while let Some((header, after)) = rest.split_at_checked(HEADER) {
            found.push((header[3], header[4]));
            rest = &after[usize::from(header[7]) * 256 + usize::from(header[8])..];
        }
        found
    }

    #[test]
    fn answers_come_in_any_order_and_are_taken_in_that_of_the_requests() {
        let first = rows(0, &[(b"x", b"\0\0\0\0\x01")]);
        let writes = [void(3), void(1), void(2)].concat();
        let reads =
            [told(5), frame(0xff, 0x0C, b""), rows(4, &[(b"", b""), (b"z", b"\0\0\0\x01\x05")])].concat();
        // An event has stream -1.
        let reads = {
            let mut reads = reads;
            let at = told(5).len();
            reads[at + 2] = 0xff;
            reads
        };
        let (outcomes, sent, counts) = converse(Form::FOUR, &[first, writes, reads].concat(), 7);
        let affected: Vec<u64> = outcomes.iter().map(|(reply, _)| reply.as_ref().unwrap().affected).collect();
        assert_eq!((affected, counts), (vec![1, 1, 1], vec![1, 2, 1]));
        // The last flush has two reads; the writes behind them wait.
        let sent = streams(&sent);
        assert_eq!(sent.iter().map(|(stream, _)| *stream).collect::<Vec<_>>(), [0, 1, 2, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn what_only_reads_waits_for_writes_and_what_is_conditional_goes_alone() {
        let before = [rows(0, &[]), void(1), void(2), void(3), rows(4, &[]), told(5)].concat();
        let waves = [
            [rows(6, &[]), rows(7, &[])].concat(),
            [void(9), void(8)].concat(),
            void(10),
            rows(11, &[(b"a", b"\0\0\0\x02\x07")]),
        ];
        for (answered, expected) in [8, 10, 11, 12, 13].into_iter().enumerate() {
            let bytes = [before.clone(), waves[..answered].concat()].concat();
            assert_eq!(
                streams(&converse(Form::FOUR, &bytes, 11).1).len(),
                expected,
                "{answered} waves are answered"
            );
        }
    }

    #[test]
    fn an_error_leaves_the_others_and_what_is_forgotten_is_prepared_anew() {
        let bytes =
            [error(0, 0x2500), frame(1, 8, &[b"\0\0\0\x04", &preparation(Form::FOUR, 1, true)[..]].concat())]
                .concat();
        let (outcomes, sent, _) = converse(Form::FOUR, &bytes, 5);
        assert_eq!(outcomes[0].0.as_ref().unwrap_err(), &(ErrorClass::ShuttingDown, "0x2500".to_owned()));
        assert_eq!((outcomes.len(), streams(&sent)[1]), (1, (1, 9)), "PREPARE, then the next flush");
        let bytes = [rows(0, &[]), void(1), error(2, 0x1100), void(3), rows(4, &[]), told(5)].concat();
        let (outcomes, _, _) = converse(Form::FOUR, &bytes, 64);
        assert_eq!(outcomes[1].0.as_ref().unwrap_err(), &(ErrorClass::StatementTimeout, "0x1100".to_owned()));
        assert!(outcomes[2].0.is_ok());
    }

    #[test]
    fn an_answer_to_nothing_ends_the_connection() {
        for bytes in [void(1), rows(0, &[]).repeat(2), error(9, 0x2200), frame(0, 2, b""), void(0).repeat(1)]
        {
            let (outcomes, _, _) = converse(Form::FOUR, &bytes, 3);
            if let Some((_, state)) = outcomes.last() {
                assert!(matches!(state, ConnectionState::Lost | ConnectionState::Idle));
            }
        }
        assert_eq!(converse(Form::FOUR, &void(1), 3).0[0].1, ConnectionState::Lost);
    }

    /// What version 4 sends, in segments of version 5 of which some hold a part of an answer.
    fn in_segments(answers: &[u8], size: usize) -> Vec<u8> {
        let mut five = answers.to_vec();
        let mut at = 0;
        while at < five.len() {
            five[at] = 0x85;
            at += HEADER + usize::from(five[at + 7]) * 256 + usize::from(five[at + 8]);
        }
        let mut out = Vec::new();
        for contents in five.chunks(size) {
            let start = out.len();
            out.resize(start + segments::BEFORE, 0);
            out.extend_from_slice(contents);
            segments::close(&mut out, start);
        }
        out
    }

    #[test]
    fn version_5_says_the_same_in_segments_and_damage_ends_the_connection() {
        let bytes = [rows(0, &[]), void(1), void(2), void(3), rows(4, &[]), told(5)].concat();
        let four = converse(Form::FOUR, &bytes, 5);
        for size in [1, 10, 1000] {
            let five = converse(Form::FIVE, &in_segments(&bytes, size), 5);
            assert_eq!((&five.0, &five.2), (&four.0, &four.2));
        }
        let mut damaged = in_segments(&bytes, 1000);
        *damaged.last_mut().unwrap() ^= 1;
        let (outcomes, _, _) = converse(Form::FIVE, &damaged, 5);
        assert_eq!(outcomes[0].1, ConnectionState::Lost);
        assert_eq!(outcomes[0].0.as_ref().unwrap_err().0, ErrorClass::ConnectionLost);
    }

    #[test]
    fn columns_that_have_changed_are_asked_for_by_their_new_name() {
        // A column more than was prepared, with the name that the columns have now.
        let changed = frame(
            0,
            8,
            b"\0\0\0\x02\0\0\0\x09\0\0\0\x01\0\x03new\0\x01k\0\x01t\0\x01c\0\x09\0\0\0\x01\0\0\0\x04\0\0\0\x07",
        );
        let bytes = [changed, void(1), void(2), void(3), rows(4, &[]), told(5)].concat();
        let (outcomes, sent, counts) = converse(Form::FIVE, &in_segments(&bytes, 1000), 64);
        assert!(outcomes.iter().all(|(reply, _)| reply.is_ok()), "{outcomes:?}");
        assert_eq!(counts, [1, 0, 1]);
        let named = |name: &[u8]| sent.windows(name.len()).filter(|bytes| *bytes == name).count();
        assert_eq!((named(b"\0\x02id\0\x03new"), named(b"\0\x07columns") > 0), (1, true));
    }

    proptest! {
        /// Whatever comes, and however it is cut, the outcome is the same.
        #[test]
        fn cuts_make_no_difference(
            answers in prop::collection::vec((0..7_usize, 0..12_u8), 0..30),
            choice in any::<u8>(),
        ) {
            let mut bytes = vec![choice];
            for (what, stream) in answers {
                bytes.extend(match what {
                    0 => void(stream),
                    1 => rows(stream, &[]),
                    2 => rows(stream, &[(b"x", b"\0\0\0\0\x01"), (b"y", b"")]),
                    3 => told(stream),
                    4 => error(stream, 0x1100),
                    5 => error(stream, 0x2500),
                    _ => frame(stream, 8, b"\0\0\0\x05"),
                });
            }
            protocol(&bytes);
        }
    }
}
