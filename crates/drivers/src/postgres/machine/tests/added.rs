//! Statements that a connection comes to know while it is in use.

use proptest::prelude::*;

use super::*;
use crate::contract::statement::Statement;

/// A server of which statements come to be known while it is in use: it parses, describes, closes and runs.
#[derive(Default)]
struct Describer {
    known: std::collections::BTreeMap<String, String>,
    fails: Vec<bool>,
    commands: usize,
    /// The SQL that was run.
    ran: Vec<String>,
}

impl Describer {
    fn answer(&mut self, mut asked: &[u8]) -> Vec<u8> {
        let (mut answer, mut skips, mut bound) = (Vec::new(), false, String::new());
        while let Ok(wire::Frame::Message(message, size)) = wire::frame(asked) {
            asked = &asked[size..];
            if message.tag == b'S' {
                skips = false;
                wire::message(&mut answer, b'Z', |out| out.push(b'I'));
            } else if !skips {
                let replies = self.reply(message, &mut bound);
                skips = replies.iter().any(|(tag, _)| *tag == b'E');
                for (tag, body) in replies {
                    wire::message(&mut answer, tag, |out| out.extend_from_slice(&body));
                }
                if message.tag == b'Q' {
                    skips = false;
                    wire::message(&mut answer, b'Z', |out| out.push(b'I'));
                }
            }
        }
        answer
    }

    fn reply(&mut self, message: Message<'_>, bound: &mut String) -> Vec<(u8, Vec<u8>)> {
        self.commands += 1;
        if self.fails[self.commands % self.fails.len()] {
            return vec![(b'E', b"SERROR\0C40001\0Mplanted\0\0".to_vec())];
        }
        let mut fields = wire::Fields(message.body);
        match message.tag {
            b'P' => {
                let (name, sql) = (fields.text().unwrap(), fields.text().unwrap());
                assert!(name.is_empty() || !self.known.contains_key(name), "{name} is there");
                self.known.insert(name.to_owned(), sql.to_owned());
                vec![(b'1', Vec::new())]
            }
            b'C' => {
                self.known.remove(std::str::from_utf8(&message.body[1..message.body.len() - 1]).unwrap());
                vec![(b'3', Vec::new())]
            }
            b'D' if message.body[0] == b'P' => vec![(b'n', Vec::new())],
            b'D' => {
                let name = std::str::from_utf8(&message.body[1..message.body.len() - 1]).unwrap();
                let count = self.known[name].matches('$').count() as u16;
                let types = (0..count).flat_map(|_| 20_u32.to_be_bytes());
                vec![(b't', count.to_be_bytes().into_iter().chain(types).collect()), (b'n', Vec::new())]
            }
            b'B' => {
                fields.text().unwrap();
                bound.clone_from(&self.known[fields.text().unwrap()]);
                vec![(b'2', Vec::new())]
            }
            b'Q' => {
                self.ran.push(fields.text().unwrap().to_owned());
                vec![(b'C', b"SELECT 0\0".to_vec())]
            }
            b'E' => {
                self.ran.push(bound.clone());
                vec![(b'C', b"SELECT 0\0".to_vec())]
            }
            other => panic!("{:?} is not sent", char::from(other)),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Of more statements than are kept, whatever fails: what runs is what was asked for, and nothing is parsed twice
    /// under a name.
    #[test]
    fn an_added_statement_is_the_one_that_runs(
        asked in prop::collection::vec((0..300_usize, any::<bool>(), any::<bool>()), 1..900),
        fails in prop::collection::vec(prop::bool::weighted(0.05), 1..40),
        prepared in any::<bool>(),
    ) {
        let mode = if prepared { StatementMode::Prepared } else { StatementMode::Extended };
        let mut side = Side::new(mode);
        let mut server = Describer { fails, ..Describer::default() };
        for (number, bound, alone) in asked {
            let sql = if bound { format!("SELECT {number} + :a") } else { format!("SELECT {number}") };
            let statement = Rc::new(Statement::new("added", &sql));
            let mut out = Vec::new();
            let place = match side.machine.add(&statement, alone, &mut out) {
                Added::Ready(place) => place,
                Added::Asked(place) => {
                    side.machine.end_batch(&mut out);
                    let answer = server.answer(&out);
                    out.clear();
                    if side.answer(&answer, &[7]).unwrap().is_err() {
                        continue;
                    }
                    place
                }
                Added::Full => panic!("nothing is in use"),
            };
            let values = if bound { vec![Value::Int(1)] } else { Vec::new() };
            side.machine.queue(Command::Execute(place), &values.into_iter().collect(), Want::Count, &mut out).unwrap();
            side.machine.end_batch(&mut out);
            let answer = server.answer(&out);
            if side.answer(&answer, &[5]).unwrap().is_ok() {
                prop_assert_eq!(server.ran.last().unwrap(), &sql.replace(":a", "$1"));
            }
        }
    }
}
