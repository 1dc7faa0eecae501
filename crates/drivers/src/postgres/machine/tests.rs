//! A server that answers by a script: however its bytes are cut, the outcome is the same, and it is the script's.

mod added;
mod script;

use nephoscope_runtime::Inbox;
use proptest::prelude::*;

use super::*;
use crate::contract::error::ErrorClass;
use crate::contract::value::Value;
use script::{Flush, Script, cells, conversation};

/// What a conversation has come to.
#[derive(Debug, Default, PartialEq)]
struct Transcript {
    /// What was sent in each flush.
    sent: Vec<Vec<u8>>,
    /// How each flush has ended: the reply, or the error's class and code.
    outcomes: Vec<Result<Reply, (ErrorClass, String)>>,
    states: Vec<ConnectionState>,
    /// The rows of each result, as text.
    results: Vec<Vec<Vec<Option<String>>>>,
}

/// A machine, and the buffers around it.
struct Side {
    machine: Machine,
    inbox: Inbox,
    rows: Rows,
    received: usize,
}

impl Side {
    fn new(mode: StatementMode) -> Self {
        let machine = Machine::new(mode, script::statements(mode, Parsed::Yes), b'I');
        Self { machine, inbox: Inbox::default(), rows: Rows::default(), received: 0 }
    }

    /// Queues the commands of a flush and gives what is sent.
    fn ask(&mut self, flush: &Flush) -> Vec<u8> {
        let mut out = Vec::new();
        for step in &flush.steps {
            let (params, want) = (step.params(), step.want);
            self.machine.queue(step.command, &params, want, &mut out).unwrap();
        }
        self.machine.end_batch(&mut out);
        out
    }

    /// Feeds bytes, cut into pieces whose lengths come from `cuts` in turn; stops where the flush has ended.
    fn answer(&mut self, bytes: &[u8], cuts: &[usize]) -> Option<Result<Reply, Error>> {
        let (mut rest, mut cuts) = (bytes, cuts.iter().cycle());
        while !rest.is_empty() {
            let (piece, left) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
            rest = left;
            self.received += piece.len();
            self.inbox.extend(piece);
            let progress = self.machine.feed(&mut self.inbox, &mut self.rows);
            let room = self.inbox.room().len();
            assert!(room <= 4 * self.received + (1 << 18), "{room} bytes of room for {}", self.received);
            match progress {
                Ok(Progress::More) => {}
                Ok(Progress::Done(reply)) => return Some(Ok(reply)),
                Err(error) => return Some(Err(error)),
            }
        }
        None
    }

    /// Every cell that was kept; none of them may break the decoder.
    fn results(&self) -> Vec<Vec<Vec<Option<String>>>> {
        let indices = (0..).map(ResultIndex::from).take_while(|index| self.rows.columns(*index).is_some());
        let result = |index| (0..self.rows.count(index)).map(|row| cells(&self.rows, index, row)).collect();
        indices.map(result).collect()
    }
}

/// Runs a conversation whose server bytes are cut; a flush that does not end has lost its connection.
fn run(script: &Script, cuts: &[usize]) -> Transcript {
    let mut side = Side::new(script.mode);
    let mut transcript = Transcript::default();
    for flush in &script.flushes {
        transcript.sent.push(side.ask(flush));
        let bytes = flush.bytes(script.mode);
        let ended = side.answer(&bytes, cuts);
        let outcome = ended.unwrap_or_else(|| Err(side.machine.lose(Error::connection_lost("closed"))));
        transcript.outcomes.push(outcome.map_err(|error| (error.class(), error.code().to_owned())));
        transcript.states.push(side.machine.state());
        if side.machine.state() == ConnectionState::Lost {
            break;
        }
        assert!(side.inbox.bytes().is_empty(), "a flush has ended before its answer");
    }
    transcript.results = side.results();
    transcript
}

const AT_ONCE: [usize; 1] = [usize::MAX];

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_outcome_is_the_scripts_however_the_bytes_are_cut(
        script in conversation(), cuts in prop::collection::vec(1_usize..40, 1..20)
    ) {
        let at_once = run(&script, &AT_ONCE);
        prop_assert_eq!(&at_once.outcomes, &script.outcomes());
        prop_assert_eq!(&at_once.results, &script.results());
        prop_assert_eq!(&run(&script, &cuts), &at_once);
        prop_assert_eq!(&run(&script, &[1]), &at_once);
    }

    #[test]
    fn a_stream_that_ends_early_is_a_lost_connection_however_it_is_cut(
        script in conversation(), end in any::<prop::sample::Index>(), cuts in prop::collection::vec(1_usize..40, 1..20)
    ) {
        let last = script.flushes.len() - 1;
        let bytes = script.flushes[last].bytes(script.mode);
        let bytes = &bytes[..end.index(bytes.len())];
        let outcomes = [&cuts[..], &AT_ONCE].map(|cuts| {
            let mut side = Side::new(script.mode);
            side.ask(&script.flushes[last]);
            assert!(side.answer(bytes, cuts).is_none());
            assert_eq!(side.machine.state(), ConnectionState::Waiting);
            let error = side.machine.lose(Error::connection_lost("closed"));
            assert_eq!(side.machine.state(), ConnectionState::Lost);
            (error.class(), error.code().to_owned(), side.results())
        });
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
    }

    #[test]
    fn damaged_streams_end_and_break_nothing(
        script in conversation(),
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cuts in prop::collection::vec(1_usize..200, 1..10),
    ) {
        let mut side = Side::new(script.mode);
        for flush in &script.flushes {
            side.ask(flush);
            let mut bytes = flush.bytes(script.mode);
            for (place, byte) in &damage {
                let place = place.index(bytes.len());
                bytes[place] = *byte;
            }
            if side.answer(&bytes, &cuts).is_none() || side.machine.state() == ConnectionState::Lost {
                break;
            }
        }
        side.machine.lose(Error::connection_lost("closed"));
        prop_assert!(side.machine.feed(&mut side.inbox, &mut side.rows).is_err());
        side.results();
    }

    #[test]
    fn foreign_messages_end_and_break_nothing(
        script in conversation(),
        messages in prop::collection::vec(("[12CDEGHINRSTWZAnstKcd]", prop::collection::vec(any::<u8>(), 0..30)), 1..30),
        cuts in prop::collection::vec(1_usize..200, 1..10),
    ) {
        let mut bytes = Vec::new();
        for (tag, body) in &messages {
            wire::message(&mut bytes, tag.as_bytes()[0], |out| out.extend_from_slice(body));
        }
        let outcomes = [&cuts[..], &AT_ONCE].map(|cuts| {
            let mut side = Side::new(script.mode);
            side.ask(&script.flushes[0]);
            let outcome = side.answer(&bytes, cuts).map(|ended| ended.map_err(|error| error.to_string()));
            (outcome, side.machine.state(), side.results())
        });
        prop_assert_eq!(&outcomes[0], &outcomes[1]);
    }

    #[test]
    fn any_bytes_end_and_break_nothing(
        bytes in prop::collection::vec(any::<u8>(), 1..400), cuts in prop::collection::vec(1_usize..50, 1..10),
        simple in any::<bool>(),
    ) {
        let mut side = Side::new(if simple { StatementMode::Simple } else { StatementMode::Prepared });
        side.ask(&script::one_query());
        side.answer(&bytes, &cuts);
        side.results();
    }
}

/// A server that knows what it was asked to parse, and fails at planted commands.
#[derive(Default)]
struct Parser {
    known: Vec<String>,
    fails: Vec<bool>,
    commands: usize,
}

impl Parser {
    /// Answers a batch.
    fn answer(&mut self, mut asked: &[u8]) -> Vec<u8> {
        let (mut answer, mut skips) = (Vec::new(), false);
        let error = |code: &str| format!("SERROR\0C{code}\0Mplanted\0\0").into_bytes();
        while let Ok(wire::Frame::Message(message, size)) = wire::frame(asked) {
            asked = &asked[size..];
            let mut fields = wire::Fields(message.body);
            let (tag, body) = match message.tag {
                b'S' => {
                    skips = false;
                    (b'Z', b"I".to_vec())
                }
                _ if skips => continue,
                b'P' => {
                    let name = fields.text().unwrap().to_owned();
                    if self.known.contains(&name) {
                        (b'E', error("42P05"))
                    } else if self.fails() {
                        (b'E', error("42P01"))
                    } else {
                        self.known.push(name);
                        (b'1', Vec::new())
                    }
                }
                b'B' => {
                    let (_portal, name) = (fields.text().unwrap(), fields.text().unwrap());
                    if self.known.iter().any(|known| known == name) {
                        (b'2', Vec::new())
                    } else {
                        (b'E', error("26000"))
                    }
                }
                _ if self.fails() => (b'E', error("40001")),
                _ => (b'C', b"SELECT 0\0".to_vec()),
            };
            skips |= tag == b'E';
            wire::message(&mut answer, tag, |out| out.extend_from_slice(&body));
        }
        answer
    }

    fn fails(&mut self) -> bool {
        self.commands += 1;
        self.fails[self.commands % self.fails.len()]
    }
}

proptest! {
    /// Whatever fails, and whatever is skipped after it.
    #[test]
    fn a_statement_is_parsed_before_it_is_first_used_and_once(
        flushes in prop::collection::vec(prop::collection::vec(0..5_usize, 1..8), 1..12),
        fails in prop::collection::vec(prop::bool::weighted(0.2), 1..20),
    ) {
        let mut side = Side::new(StatementMode::Prepared);
        side.machine = Machine::new(StatementMode::Prepared, script::statements(StatementMode::Prepared, Parsed::No), b'I');
        let mut server = Parser { fails, ..Parser::default() };
        for flush in &flushes {
            let mut out = Vec::new();
            for choice in flush {
                let (command, values): (_, &[Value<'_>]) = match choice {
                    0 => (Command::Execute(0), &[Value::Int(1)]),
                    1 => (Command::Execute(1), &[Value::Text(b"a"), Value::Int(1)]),
                    2 => (Command::Begin, &[]),
                    3 => (Command::Commit, &[]),
                    _ => (Command::Rollback, &[]),
                };
                let params = values.iter().copied().collect();
                side.machine.queue(command, &params, Want::Count, &mut out).unwrap();
            }
            side.machine.end_batch(&mut out);
            let answer = server.answer(&out);
            if let Err(error) = side.answer(&answer, &[7]).unwrap() {
                prop_assert!(matches!(error.code(), "42P01" | "40001"), "{}", error);
                prop_assert_eq!(error.code() == "42P01", error.message().starts_with("statement "));
            }
        }
    }
}

#[test]
fn a_header_alone_costs_no_memory() {
    let mut side = Side::new(StatementMode::Prepared);
    side.ask(&script::one_query());
    assert!(side.answer(&[b'D', 0x03, 0xff, 0xff, 0xff], &AT_ONCE).is_none());
    assert!(side.answer(&[b'D', 0x40, 0, 0, 4], &[5]).is_none(), "bytes of the body are no header");
    let mut side = Side::new(StatementMode::Prepared);
    side.ask(&script::one_query());
    let error = side.answer(&[b'D', 0x40, 0, 0, 4], &AT_ONCE).unwrap().unwrap_err();
    assert_eq!((error.class(), side.machine.state()), (ErrorClass::ConnectionLost, ConnectionState::Lost));
}

#[test]
fn copy_within_a_transaction_is_refused() {
    for tag in [b'G', b'H', b'W'] {
        let mut side = Side::new(StatementMode::Prepared);
        side.ask(&script::one_query());
        let error = side.answer(&[tag, 0, 0, 0, 7, 0, 0, 0], &[1]).unwrap().unwrap_err();
        assert_eq!(error.message(), "COPY cannot be run as a statement of a transaction");
        assert_eq!(side.machine.state(), ConnectionState::Lost);
    }
}

#[test]
fn the_reason_of_a_server_that_ends_the_connection_is_told() {
    for tag in *b"EN" {
        let mut side = Side::new(StatementMode::Extended);
        side.ask(&script::one_query());
        let mut bytes = Vec::new();
        wire::message(&mut bytes, tag, |out| out.extend_from_slice(b"SFATAL\0C57P01\0Mgoing down\0\0"));
        assert!(side.answer(&bytes, &[3]).is_none());
        let error = side.machine.lose(Error::connection_lost("closed"));
        assert_eq!((error.class(), error.message()), (ErrorClass::ShuttingDown, "going down"));
    }
    // A notice that ends nothing is forgotten with its flush.
    let mut side = Side::new(StatementMode::Extended);
    side.ask(&script::one_query());
    let mut bytes = Vec::new();
    wire::message(&mut bytes, b'N', |out| out.extend_from_slice(b"C57P01\0Mjust so\0\0"));
    bytes.extend_from_slice(b"C\0\0\0\x0dSELECT 0\0Z\0\0\0\x05I");
    side.answer(&bytes, &[1]).unwrap().unwrap();
    assert_eq!(side.machine.lose(Error::connection_lost("closed")).class(), ErrorClass::ConnectionLost);
}
