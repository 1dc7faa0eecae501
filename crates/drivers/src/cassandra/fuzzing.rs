//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use super::levels::Levels;
use super::machine::{Clock, Machine};
use super::prepared::Prepared;
use super::wire::Fields;
use crate::contract::driver::{Command, ConnectionState, Want};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};
use crate::net::conversation::{Conversation, Transcript};
use crate::net::session::Machine as _;

/// The answer to the preparation of each statement, behind its kind: `(text, text, int)` or as many of these as it has
/// parameters, and columns `(text, decimal)` where it reads.
fn preparation(params: usize, reads: bool) -> Vec<u8> {
    const TYPES: [u8; 3] = [0x0D, 0x0D, 0x09];
    let mut out = b"\0\x02id\0\0\0\x01\0\0\0".to_vec();
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
fn statements() -> Vec<Prepared> {
    let verb = |action: Action| {
        let fields =
            if action == Action::Delete { Vec::new() } else { ["a", "b"].map(str::to_owned).to_vec() };
        Statement::of_verb(action.name(), Verb { action, table: "t".to_owned(), key: "k".to_owned(), fields })
    };
    let own = [("cql", "SELECT * FROM t"), ("if", "DELETE FROM t WHERE k = 'x' IF EXISTS")];
    let own = own.map(|(name, cql)| Statement::new(name, cql));
    let of = |statement: Statement| {
        let mut one = Prepared::new(&statement, Levels::SESSION);
        let reads = one.cql.starts_with("SELECT");
        let taken = one.prepared(Fields(&preparation(statement.params().len(), reads)));
        assert!(taken.is_ok(), "{taken:?}");
        one
    };
    Action::ALL.map(verb).into_iter().chain(own).map(of).collect()
}

/// What is sent together: places of [`statements`].
const FLUSHES: [&[usize]; 4] = [&[0], &[2, 3, 4], &[1, 5], &[0, 1, 2, 2, 6, 0]];

/// What a server sends; the first byte says how the bytes are cut.
///
/// # Panics
/// If the outcome depends on how the bytes are cut, or if a claimed length costs memory.
pub fn protocol(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let whole = converse(bytes, bytes.len().max(1));
    assert_eq!(without_times(whole), without_times(converse(bytes, usize::from(*choice) + 1)));
}

/// The times of writes differ; how much was sent does not.
fn without_times((outcomes, sent, counts): Transcript) -> (Transcript, usize) {
    let size = sent.len();
    ((outcomes, Vec::new(), counts), size)
}

fn converse(bytes: &[u8], cut: usize) -> Transcript {
    let mut machine = Machine::new(statements(), Levels::SESSION, Clock::default());
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
        let (outcomes, sent, counts) = converse(&[first, writes, reads].concat(), 7);
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
            assert_eq!(streams(&converse(&bytes, 11).1).len(), expected, "{answered} waves are answered");
        }
    }

    #[test]
    fn an_error_leaves_the_others_and_what_is_forgotten_is_prepared_anew() {
        let bytes =
            [error(0, 0x2500), frame(1, 8, &[b"\0\0\0\x04", &preparation(1, true)[..]].concat())].concat();
        let (outcomes, sent, _) = converse(&bytes, 5);
        assert_eq!(outcomes[0].0.as_ref().unwrap_err(), &(ErrorClass::ShuttingDown, "0x2500".to_owned()));
        assert_eq!((outcomes.len(), streams(&sent)[1]), (1, (1, 9)), "PREPARE, then the next flush");
        let bytes = [rows(0, &[]), void(1), error(2, 0x1100), void(3), rows(4, &[]), told(5)].concat();
        let (outcomes, _, _) = converse(&bytes, 64);
        assert_eq!(outcomes[1].0.as_ref().unwrap_err(), &(ErrorClass::StatementTimeout, "0x1100".to_owned()));
        assert!(outcomes[2].0.is_ok());
    }

    #[test]
    fn an_answer_to_nothing_ends_the_connection() {
        for bytes in [void(1), rows(0, &[]).repeat(2), error(9, 0x2200), frame(0, 2, b""), void(0).repeat(1)]
        {
            let (outcomes, _, _) = converse(&bytes, 3);
            if let Some((_, state)) = outcomes.last() {
                assert!(matches!(state, ConnectionState::Lost | ConnectionState::Idle));
            }
        }
        assert_eq!(converse(&void(1), 3).0[0].1, ConnectionState::Lost);
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
