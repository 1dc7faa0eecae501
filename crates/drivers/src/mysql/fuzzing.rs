//! What the fuzz targets in `fuzz/` call, here because they need what is private; the crate's tests replay the seeds.
//!
//! A target takes any bytes and panics where a promise is broken.

use crate::contract::added::Added;
use crate::contract::driver::{Command, ConnectionState, StatementMode, Want};
use crate::contract::lexer::Lexer;
use crate::contract::rows::Rows;
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::mysql::auth::{Authentication, Transport};
use crate::mysql::machine::prepared::Prepared;
use crate::mysql::machine::{Agreed, Machine};
use crate::mysql::startup::Greeting;
use crate::mysql::{types, wire};
use crate::net::conversation::{Conversation, Transcript};
use crate::net::secret::Password;
use crate::net::session::Machine as _;

/// A cell: the first byte is the type, the second one its flags, the rest is the cell of a binary row.
///
/// # Panics
/// If a value is another one after it was written and read again.
pub fn values(data: &[u8]) {
    let Some(([kind, flags], cell)) = data.split_first_chunk::<2>() else { return };
    let charset = if flags & 1 == 1 { 63 } else { 45 };
    let definition = wire::Definition { name: b"c", charset, kind: *kind, flags: u16::from(*flags) << 4 };
    let value_of = |definition: wire::Definition<'_>, cell: &[u8], check: &dyn Fn(Value<'_>)| {
        let columns = std::rc::Rc::new(types::columns([definition].into_iter(), false));
        let mut rows = Rows::default();
        let result = rows.begin(&columns);
        if types::push_binary_row(&columns, &[&[0, 0], cell].concat(), &mut rows).is_ok()
            && let Some(value) = rows.value(result, 0, 0)
        {
            check(value);
        }
    };
    value_of(definition, cell, &|value| {
        let mut again = Vec::new();
        // What no parameter can be, a server does not send.
        let Ok([kind, flag]) = types::encode(value, &mut again) else { return };
        let charset = if matches!(value, Value::Bytes(_)) { 63 } else { 45 };
        let sent = wire::Definition { name: b"c", charset, kind, flags: u16::from(flag) >> 2 };
        value_of(sent, &again, &|read| match (read, value) {
            (Value::Text(read), Value::Json(json)) => assert_eq!(read, json),
            (read, value) => assert_eq!(read, value),
        });
        let mut literal = Vec::new();
        assert!(types::write_literal(value, &mut literal).is_ok(), "{value:?} has no literal");
    });
}

/// What a server sends: in the query phase (`S`, `E`, `P`: the statement mode; then a byte that says what was agreed on
/// and how the bytes are cut) or before it (`L`).
///
/// # Panics
/// If the outcome depends on how the bytes are cut, if a claimed length costs memory, or if a password is given away.
pub fn protocol(data: &[u8]) {
    let Some(([phase, choice], bytes)) = data.split_first_chunk::<2>() else { return };
    let mode = match phase {
        b'S' => StatementMode::Simple,
        b'E' => StatementMode::Extended,
        b'P' => StatementMode::Prepared,
        b'L' => return log_in(*choice, bytes),
        _ => return,
    };
    let agreed = Agreed { deprecates_eof: choice & 1 == 1, caches_metadata: choice & 3 == 3 };
    let whole = converse(mode, agreed, bytes, bytes.len().max(1));
    assert_eq!(whole, converse(mode, agreed, bytes, usize::from(choice >> 2) + 1));
}

const PASSWORD: &str = "correct horse battery";

/// The greeting, then packets of the authentication with their length before them.
fn log_in(choice: u8, mut bytes: &[u8]) {
    let mut next = || {
        let (length, rest) = bytes.split_first()?;
        let (packet, rest) = rest.split_at(usize::from(*length).min(rest.len()));
        bytes = rest;
        Some(packet)
    };
    let Some(Ok(greeting)) = next().map(Greeting::read) else { return };
    let password = Password::new(PASSWORD);
    let transport = if choice & 1 == 1 { Transport::Tls } else { Transport::Plain };
    let ask = choice & 2 == 2;
    let mut authentication =
        Authentication::new(Some(&password), transport, ask, &greeting.plugin, &greeting.nonce);
    let gives_away = |bytes: &[u8]| bytes.windows(PASSWORD.len()).any(|part| part == PASSWORD.as_bytes());
    while let Some(packet) = next() {
        match authentication.receive(packet) {
            Ok(crate::mysql::auth::Progress::Answer(answer)) => {
                assert!(transport == Transport::Tls || !gives_away(&answer), "the password leaves in clear");
            }
            Ok(_) => {}
            Err(error) => {
                assert!(gives_away(packet) || !gives_away(error.to_string().as_bytes()));
                return;
            }
        }
    }
}

const FLUSHES: [&[(Command, Want)]; 3] = [
    &[(Command::Begin, Want::Count), (Command::Execute(0), Want::Rows)],
    &[(Command::Execute(1), Want::Count), (Command::Execute(0), Want::Rows), (Command::Commit, Want::Count)],
    &[(Command::Execute(0), Want::Count), (Command::Rollback, Want::Count)],
];

fn converse(mode: StatementMode, agreed: Agreed, bytes: &[u8], cut: usize) -> Transcript {
    let statements = [("read", "SELECT :v"), ("write", "INSERT INTO t VALUES (:v)")].map(|(name, sql)| {
        let mut one = Prepared::new(Statement::read(name, sql, Lexer::MYSQL), mode);
        one.id = (mode == StatementMode::Prepared).then_some(1);
        one
    });
    let mut machine = Machine::new(mode, agreed, statements.into(), 2);
    let mut conversation = Conversation::new(bytes, cut);
    for (number, flush) in FLUSHES.iter().cycle().enumerate() {
        // The connection comes to know a statement, or runs a text.
        let sql = if number % 4 == 3 { format!("SELECT {number} + :v") } else { format!("SELECT {number}") };
        let added = std::rc::Rc::new(Statement::read("added", &sql, Lexer::MYSQL));
        if number % 4 > 1
            && let Ok(Added::Ready(place)) = machine.add(&added, false, &mut conversation.sent)
        {
            let params = added.params().iter().map(|_| Value::Int(7)).collect();
            assert!(
                machine.queue(Command::Execute(place), &params, Want::Rows, &mut conversation.sent).is_ok()
            );
        }
        for (command, want) in *flush {
            let params = match command {
                Command::Execute(_) => [Value::Int(7)].into_iter().collect(),
                _ => Params::default(),
            };
            let queued = machine.queue(*command, &params, *want, &mut conversation.sent);
            assert!(queued.is_ok(), "a command is not queued");
        }
        match conversation.hear(&mut machine) {
            None | Some(ConnectionState::Lost | ConnectionState::Waiting) => break,
            Some(_) => {}
        }
    }
    conversation.end()
}

#[cfg(test)]
mod tests {
    use super::{protocol, values};

    /// Runs a target over its seeds.
    fn replay(target: &str, check: fn(&[u8])) {
        let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
        let mut count = 0;
        for entry in std::fs::read_dir(&folder).unwrap() {
            check(&std::fs::read(entry.unwrap().path()).unwrap());
            count += 1;
        }
        assert!(count >= 4, "{folder} has {count} seeds");
    }

    #[test]
    fn the_seeds_of_values_are_kept() {
        replay("mysql_values", values);
    }

    #[test]
    fn the_seeds_of_the_protocol_are_kept() {
        replay("mysql_protocol", protocol);
    }
}
