//! What a scripted server answers, as bytes, and what has to come of it.

use proptest::prelude::*;
use proptest::sample::select;

use super::super::{Parsed, Prepared};
use crate::contract::driver::{Command, Reply, StatementMode, Want};
use crate::contract::error::ErrorClass;
use crate::contract::rows::{ResultIndex, Rows};
use crate::contract::value::{Params, Value};
use crate::postgres::fuzzing;
use crate::postgres::types::Type;
use crate::postgres::wire;

/// A row of the scripted table: a number, a text, bytes.
type Row = (Option<i64>, Option<String>, Option<Vec<u8>>);

/// How the server ends a command.
#[derive(Clone, Debug)]
enum End {
    Complete,
    /// COMMIT of a failed transaction; for any other command the same as `Complete`.
    RolledBack,
    Error(&'static str),
}

/// A command and its answer.
#[derive(Clone, Debug)]
pub(super) struct Step {
    pub(super) command: Command,
    pub(super) want: Want,
    rows: Vec<Row>,
    end: End,
}

/// Commands that are sent together.
#[derive(Clone, Debug)]
pub(super) struct Flush {
    pub(super) steps: Vec<Step>,
    status: u8,
    /// What the server says unasked, between the messages in turn: nothing, a notice, a parameter, a notification.
    noise: Vec<u8>,
    /// An error when all commands are complete, as a deferred constraint gives; only outside the simple mode.
    fails_at_sync: bool,
}

/// A whole conversation.
#[derive(Clone, Debug)]
pub(super) struct Script {
    pub(super) mode: StatementMode,
    pub(super) flushes: Vec<Flush>,
}

const COLUMNS: [(&str, Type); 3] = [("id", Type::Int8), ("name", Type::Text), ("body", Type::Bytea)];

/// What [`fuzzing::conversation::statements`] are with the columns of these tests.
pub(super) fn statements(mode: StatementMode, parsed: Parsed) -> Vec<Prepared> {
    fuzzing::conversation::statements(mode, &COLUMNS, parsed)
}

/// A flush of one query, whose answer is left to the test.
pub(super) fn one_query() -> Flush {
    let step = Step { command: Command::Execute(0), want: Want::Rows, rows: Vec::new(), end: End::Complete };
    Flush { steps: vec![step], status: b'I', noise: vec![0], fails_at_sync: false }
}

/// Any conversation of a few flushes.
pub(super) fn conversation() -> impl Strategy<Value = Script> {
    let modes = [StatementMode::Simple, StatementMode::Extended, StatementMode::Prepared];
    let flush = (
        prop::collection::vec(step(), 1..6),
        select(b"ITE".to_vec()),
        prop::collection::vec(0_u8..8, 1..9),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(steps, status, noise, fails_at_sync)| Flush { steps, status, noise, fails_at_sync });
    (select(modes.to_vec()), prop::collection::vec(flush, 1..4))
        .prop_map(|(mode, flushes)| Script { mode, flushes })
}

fn step() -> impl Strategy<Value = Step> {
    let commands = [0, 0, 1, 2, 3, 4].map(|choice| match choice {
        0 => Command::Execute(0),
        1 => Command::Execute(1),
        2 => Command::Begin,
        3 => Command::Commit,
        _ => Command::Rollback,
    });
    let row = (any::<Option<i64>>(), any::<Option<String>>(), any::<Option<Vec<u8>>>());
    let end = prop_oneof![
        8 => Just(End::Complete),
        1 => Just(End::RolledBack),
        1 => select(vec!["40001", "40P01", "23505", "57014", "XX000"]).prop_map(End::Error),
    ];
    let want = prop::bool::ANY.prop_map(|rows| if rows { Want::Rows } else { Want::Count });
    (select(commands.to_vec()), want, prop::collection::vec(row, 0..5), end).prop_map(
        |(command, want, rows, end)| {
            let rows = if command == Command::Execute(0) { rows } else { Vec::new() };
            Step { command, want, rows, end }
        },
    )
}

impl Step {
    pub(super) fn params(&self) -> Params {
        let values: &[Value<'_>] = match self.command {
            Command::Execute(0) => &[Value::Int(7)],
            Command::Execute(_) => &[Value::Text(b"o'clock"), Value::Int(8)],
            _ => &[],
        };
        values.iter().copied().collect()
    }

    fn keeps_rows(&self) -> bool {
        self.command == Command::Execute(0) && self.want == Want::Rows
    }

    fn tag(&self) -> String {
        match (self.command, &self.end) {
            (Command::Begin | Command::BeginIn(_), _) => "BEGIN".to_owned(),
            (Command::Commit, End::RolledBack) | (Command::Rollback, _) => "ROLLBACK".to_owned(),
            (Command::Commit, _) => "COMMIT".to_owned(),
            (Command::Execute(0), _) => format!("SELECT {}", self.rows.len()),
            (Command::Execute(_), _) => "UPDATE 3".to_owned(),
        }
    }

    fn affected(&self) -> u64 {
        match self.command {
            Command::Execute(0) => self.rows.len() as u64,
            Command::Execute(_) => 3,
            _ => 0,
        }
    }

    /// The error that the command has ended in.
    fn error(&self) -> Option<&'static str> {
        match self.end {
            End::Error(code) => Some(code),
            End::RolledBack if self.command == Command::Commit => Some("25P02"),
            _ => None,
        }
    }

    /// The messages that answer the command.
    fn answer(&self, mode: StatementMode, out: &mut Vec<Vec<u8>>) {
        let mut put = |tag: u8, body: &[u8]| out.push(message(tag, body));
        if mode == StatementMode::Extended {
            put(b'1', b"");
        }
        match (mode, self.command) {
            // What the columns are is known already, so that nobody reads the body.
            (StatementMode::Simple, Command::Execute(0)) => put(b'T', b"\0\0"),
            (StatementMode::Simple, _) => {}
            _ => put(b'2', b""),
        }
        for row in &self.rows {
            put(b'D', &data_row(row, mode));
        }
        match self.end {
            End::Error(code) => put(b'E', format!("SERROR\0C{code}\0Mit failed\0\0").as_bytes()),
            _ => put(b'C', format!("{}\0", self.tag()).as_bytes()),
        }
    }
}

fn message(tag: u8, body: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    wire::message(&mut bytes, tag, |out| out.extend_from_slice(body));
    bytes
}

fn data_row((id, name, body): &Row, mode: StatementMode) -> Vec<u8> {
    let simple = mode == StatementMode::Simple;
    let id = id.map(|id| if simple { id.to_string().into_bytes() } else { id.to_be_bytes().to_vec() });
    let body = body
        .as_ref()
        .map(|body| if simple { format!("\\x{}", hex(body)).into_bytes() } else { body.clone() });
    let mut out = 3_i16.to_be_bytes().to_vec();
    for cell in [id, name.clone().map(String::into_bytes), body] {
        out.extend_from_slice(&cell.as_ref().map_or(-1, |cell| cell.len() as i32).to_be_bytes());
        out.extend_from_slice(&cell.unwrap_or_default());
    }
    out
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"))
}

impl Flush {
    /// Everything that the server sends.
    pub(super) fn bytes(&self, mode: StatementMode) -> Vec<u8> {
        let mut messages = Vec::new();
        let ready = message(b'Z', &[self.status]);
        for step in &self.steps {
            step.answer(mode, &mut messages);
            if mode == StatementMode::Simple {
                messages.push(ready.clone());
            } else if matches!(step.end, End::Error(_)) {
                break;
            }
        }
        if mode != StatementMode::Simple {
            if self.fails_at_sync && self.first_failure().is_none() {
                messages.push(message(b'E', b"SERROR\0C23503\0\0"));
            }
            messages.push(ready);
        }
        let noise = [
            Vec::new(),
            message(b'N', b"C01000\0Mnote\0\0"),
            message(b'S', b"name\0value\0"),
            message(b'A', b"\0\0\0\x07channel\0payload\0"),
        ];
        let said = self.noise.iter().map(|choice| noise.get(usize::from(*choice)).unwrap_or(&noise[0]));
        messages
            .iter()
            .zip(said.cycle())
            .flat_map(|(message, said)| [said.as_slice(), message].concat())
            .collect()
    }

    /// The first command that the server has not run to its end.
    fn first_failure(&self) -> Option<usize> {
        self.steps.iter().position(|step| matches!(step.end, End::Error(_)))
    }

    /// The commands that the server has run: outside the simple mode an error ends a flush.
    fn run(&self, mode: StatementMode) -> &[Step] {
        match self.first_failure() {
            Some(last) if mode != StatementMode::Simple => &self.steps[..=last],
            _ => &self.steps,
        }
    }

    /// How the flush has to end; `results` is how many results there were before.
    fn outcome(&self, mode: StatementMode, results: usize) -> Result<Reply, (ErrorClass, String)> {
        let run = self.run(mode);
        let at_sync = (self.fails_at_sync && mode != StatementMode::Simple).then_some("23503");
        if let Some(code) = run.iter().find_map(Step::error).or(at_sync) {
            let class = match code {
                "40001" => ErrorClass::Serialization,
                "40P01" => ErrorClass::Deadlock,
                "57014" => ErrorClass::StatementTimeout,
                "23503" | "23505" => ErrorClass::Constraint,
                _ => ErrorClass::Other,
            };
            return Err((class, code.to_owned()));
        }
        let last = &run[run.len() - 1];
        let index = results + run.iter().filter(|step| step.keeps_rows()).count();
        let result = last.keeps_rows().then(|| ResultIndex::from(index as u32 - 1));
        Ok(Reply { affected: last.affected(), result, ..Reply::default() })
    }
}

impl Script {
    pub(super) fn outcomes(&self) -> Vec<Result<Reply, (ErrorClass, String)>> {
        let mut results = 0;
        let mut outcomes = Vec::new();
        for flush in &self.flushes {
            outcomes.push(flush.outcome(self.mode, results));
            results += flush.run(self.mode).iter().filter(|step| step.keeps_rows()).count();
        }
        outcomes
    }

    /// The rows of each result.
    pub(super) fn results(&self) -> Vec<Vec<Vec<Option<String>>>> {
        let steps = self.flushes.iter().flat_map(|flush| flush.run(self.mode));
        let row = |(id, name, body): &Row| {
            vec![
                id.map(|id| format!("{:?}", Value::Int(id))),
                name.as_ref().map(|name| format!("{:?}", Value::Text(name.as_bytes()))),
                body.as_ref().map(|body| format!("{:?}", Value::Bytes(body))),
            ]
        };
        steps.filter(|step| step.keeps_rows()).map(|step| step.rows.iter().map(row).collect()).collect()
    }
}

/// The cells of a row as text; `None` is null.
pub(super) fn cells(rows: &Rows, index: ResultIndex, row: usize) -> Vec<Option<String>> {
    let cell = |column| match rows.value(index, row, column) {
        None => Some("missing".to_owned()),
        Some(Value::Null) => None,
        Some(value) => Some(format!("{value:?}")),
    };
    (0..COLUMNS.len()).map(cell).collect()
}
