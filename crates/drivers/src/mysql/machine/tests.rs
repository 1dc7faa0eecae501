//! A server that follows the protocol's rules and fails at planted commands: nothing that was queued behind a failure
//! is ever committed, and however the server's bytes are cut, the outcome is the same.

mod server;

use nephoscope_runtime::Inbox;
use proptest::prelude::*;

use super::*;
use crate::contract::error::ErrorClass;
use crate::contract::lexer::Lexer;
use crate::contract::rows::ResultIndex;
use crate::contract::statement::Statement;
use crate::contract::value::Value;
use crate::net::session::Machine as _;
use server::Server;

const WRITE: Command = Command::Execute(0);
const READ: Command = Command::Execute(1);

fn statements(mode: StatementMode) -> Vec<Prepared> {
    let all = [("write", "INSERT INTO t VALUES (:v)"), ("read", "SELECT :v")];
    let mut prepared = all
        .map(|(name, sql)| Prepared::new(Statement::read(name, sql, Lexer::MYSQL), mode))
        .into_iter()
        .collect::<Vec<_>>();
    if mode == StatementMode::Prepared {
        for (statement, id) in prepared.iter_mut().zip(1..) {
            statement.id = Some(id);
        }
    }
    prepared
}

/// What is queued in each flush, and at which of the commands that reach the server it fails, and how.
#[derive(Clone, Debug)]
struct Plan {
    mode: StatementMode,
    deprecates_eof: bool,
    flushes: Vec<Vec<Command>>,
    failures: Vec<(usize, u16)>,
}

fn plan() -> impl Strategy<Value = Plan> {
    let command = prop_oneof![
        2 => Just(Command::Begin),
        5 => Just(WRITE),
        2 => Just(READ),
        2 => Just(Command::Commit),
        1 => Just(Command::Rollback),
    ];
    let modes = [StatementMode::Simple, StatementMode::Extended, StatementMode::Prepared];
    (
        prop::sample::select(modes.to_vec()),
        any::<bool>(),
        prop::collection::vec(prop::collection::vec(command, 1..7), 1..6),
        prop::collection::vec((0_usize..25, prop::sample::select(vec![1062_u16, 1213, 1205, 1317])), 0..5),
    )
        .prop_map(|(mode, deprecates_eof, flushes, failures)| Plan {
            mode,
            deprecates_eof,
            flushes,
            failures,
        })
}

/// What a conversation has come to.
#[derive(Debug, PartialEq)]
struct Transcript {
    outcomes: Vec<Result<Reply, (ErrorClass, String, bool)>>,
    states: Vec<ConnectionState>,
    rows: Vec<Option<i64>>,
    committed: Vec<i64>,
}

struct Side {
    machine: Machine,
    server: Server,
    inbox: Inbox,
    rows: Rows,
    next: i64,
}

impl Side {
    fn new(plan: &Plan) -> Self {
        let agreed = Agreed { deprecates_eof: plan.deprecates_eof, caches_metadata: false };
        let machine = Machine::new(plan.mode, agreed, statements(plan.mode), 2);
        let server = Server::new(plan.mode, plan.deprecates_eof, &plan.failures);
        Self { machine, server, inbox: Inbox::default(), rows: Rows::default(), next: 1 }
    }

    /// Runs a flush to its end; the server's bytes arrive in pieces whose lengths come from `cuts` in turn.
    fn flush(&mut self, commands: &[Command], cuts: &[usize]) -> Result<Reply, Error> {
        let (mut out, mut cuts) = (Vec::new(), cuts.iter().cycle());
        for command in commands {
            let params = match command {
                Command::Execute(_) => [Value::Int(self.next)].into_iter().collect(),
                _ => Params::default(),
            };
            self.next += 1;
            self.machine.queue(*command, &params, Want::Rows, &mut out).unwrap();
            assert_eq!(self.machine.state(), ConnectionState::Waiting);
        }
        self.server.erred = false;
        loop {
            let bytes = self.server.answer(&std::mem::take(&mut out));
            assert!(!bytes.is_empty(), "both sides wait");
            let mut rest = bytes.as_slice();
            while !rest.is_empty() {
                let (piece, left) = rest.split_at(rest.len().min(*cuts.next().unwrap()));
                rest = left;
                self.inbox.extend(piece);
                match self.machine.feed(&mut self.inbox, &mut out, &mut self.rows) {
                    Ok(Progress::More) => {}
                    ended => {
                        let is_lost = self.machine.state() == ConnectionState::Lost;
                        assert!(
                            is_lost || (rest.is_empty() && self.inbox.bytes().is_empty()),
                            "answers are left"
                        );
                        // What closes statements has no answer.
                        self.server.answer(&out);
                        return ended.map(|progress| match progress {
                            Progress::Done(reply) => reply,
                            Progress::More => unreachable!(),
                        });
                    }
                }
            }
        }
    }
}

/// Runs a plan as the engine does: a transaction whose statement failed is rolled back.
fn converse(plan: &Plan, cuts: &[usize]) -> Transcript {
    let mut side = Side::new(plan);
    let (mut outcomes, mut states) = (Vec::new(), Vec::new());
    for commands in &plan.flushes {
        let outcome = side.flush(commands, cuts);
        assert_eq!(outcome.is_err(), side.server.erred, "a failure is told, and nothing else is");
        let is_open = outcome.as_ref().is_err_and(Error::outcome_unknown);
        let behind = std::mem::take(&mut side.server.committed_behind_failure);
        assert!(behind.is_empty() || is_open, "{behind:?} were committed behind a failure");
        let state = side.machine.state();
        let expected =
            if side.server.in_transaction { ConnectionState::InTransaction } else { ConnectionState::Idle };
        assert_eq!(state, expected);
        let failed = outcome.is_err();
        outcomes.push(outcome.map_err(|error| (error.class(), error.code().to_owned(), is_open)));
        states.push(state);
        while failed && side.machine.state() == ConnectionState::InTransaction {
            let _ = side.flush(&[Command::Rollback], cuts);
        }
    }
    assert!(side.server.open_statements() <= 2, "statements are left open");
    let results =
        (0..u32::MAX).map(ResultIndex::from).take_while(|result| side.rows.columns(*result).is_some());
    let rows = results
        .map(|result| match side.rows.value(result, 0, 0) {
            Some(Value::Int(number)) => Some(number),
            _ => None,
        })
        .collect();
    Transcript { outcomes, states, rows, committed: side.server.committed }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn nothing_behind_a_failure_is_committed_however_the_bytes_are_cut(
        plan in plan(), cuts in prop::collection::vec(1_usize..40, 1..6),
    ) {
        let whole = converse(&plan, &[1 << 20]);
        prop_assert_eq!(&whole, &converse(&plan, &cuts));
        prop_assert_eq!(&whole, &converse(&plan, &[1]));
    }
}

fn planned(mode: StatementMode, failures: &[(usize, u16)]) -> Side {
    Side::new(&Plan { mode, deprecates_eof: true, flushes: Vec::new(), failures: failures.to_vec() })
}

#[test]
fn begin_and_its_first_statement_leave_together_and_commit_waits() {
    let mut side = planned(StatementMode::Prepared, &[]);
    side.flush(&[Command::Begin, WRITE, Command::Commit], &[99]).unwrap();
    assert_eq!((side.server.flushes, side.server.committed.as_slice()), (2, &[2][..]));
    side.flush(&[READ, READ, READ], &[99]).unwrap();
    assert_eq!(side.server.flushes, 3);
}

#[test]
fn a_statement_behind_a_begin_that_failed_leaves_the_outcome_open() {
    let mut side = planned(StatementMode::Prepared, &[(0, 1317)]);
    let error = side.flush(&[Command::Begin, WRITE, Command::Commit], &[99]).unwrap_err();
    assert!(error.outcome_unknown());
    assert_eq!(side.server.committed, [2], "the server ran it by itself");
    let mut side = planned(StatementMode::Prepared, &[(0, 1062)]);
    let error = side.flush(&[Command::Begin, READ, Command::Commit], &[99]).unwrap_err();
    assert!(!error.outcome_unknown());
}

#[test]
fn a_lost_connection_is_lost_for_good_and_says_why() {
    for (failure, class) in [(1927, ErrorClass::ConnectionLost), (1053, ErrorClass::ShuttingDown)] {
        let mut side = planned(StatementMode::Prepared, &[(0, failure)]);
        let error = side.flush(&[WRITE], &[99]).unwrap_err();
        assert_eq!((error.class(), side.machine.state()), (class, ConnectionState::Lost));
        let (inbox, rows) = (&mut side.inbox, &mut side.rows);
        assert!(side.machine.feed(inbox, &mut Vec::new(), rows).is_err());
    }
}

#[test]
fn packets_out_of_order_are_no_answer() {
    let mut side = planned(StatementMode::Prepared, &[]);
    side.machine.queue(Command::Begin, &Params::default(), Want::Count, &mut Vec::new()).unwrap();
    side.inbox.extend(&[7, 0, 0, 2, 0, 0, 0, 2, 0, 0, 0]);
    let error = side.machine.feed(&mut side.inbox, &mut Vec::new(), &mut side.rows).unwrap_err();
    assert!(error.message().contains("the order of its packets"), "{error}");
}
