//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use super::config::Config;
use super::extended;
use super::machine::Machine;
use super::startup::{Hello, Manner, Step};
use crate::contract::driver::{Command, ConnectionState, Want};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};
use crate::net::conversation::{Conversation, Transcript};
use crate::net::session::Machine as _;

/// The statements of the verbs on a table of two fields, in the order of [`Action::ALL`].
fn statements() -> Vec<Statement> {
    let of = |action: Action| {
        let fields =
            if action == Action::Delete { Vec::new() } else { ["a", "b"].map(str::to_owned).to_vec() };
        Statement::of_verb(action.name(), Verb { action, table: "t".to_owned(), key: "k".to_owned(), fields })
    };
    Action::ALL.map(of).into()
}

/// What is sent together: places of [`statements`] with the values of their parameters.
const FLUSHES: [&[(usize, usize)]; 4] =
    [&[(0, 1)], &[(2, 3), (3, 3), (4, 1)], &[(1, 2)], &[(0, 1), (1, 2), (0, 1), (1, 2), (3, 3)]];

/// What a server sends; the first byte says how the bytes are cut. They are read as what a server says of itself, and as
/// a command in JSON, too.
///
/// # Panics
/// If the outcome depends on how the bytes are cut, or if a claimed length costs memory.
pub fn protocol(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let whole = converse("mongodb://", bytes, bytes.len().max(1));
    assert_eq!(whole, converse("mongodb://", bytes, usize::from(*choice) + 1));
    if let Ok(hello) = Hello::read(bytes) {
        assert!(hello.longest_message <= 48_000_000 && hello.most_documents <= 100_000);
    }
    let _ = Step::read(bytes);
    if let Ok(elements) = extended::elements(&String::from_utf8_lossy(bytes)) {
        let mut document = (elements.len() as u32 + 5).to_le_bytes().to_vec();
        document.extend_from_slice(&elements);
        document.push(0);
        let mut shown = Vec::new();
        assert!(extended::write_document(&document, &mut shown).is_ok(), "what was written is read");
        let again = extended::elements(&String::from_utf8_lossy(&shown));
        assert!(again.is_ok(), "what is shown is JSON");
    }
}

pub(super) fn converse(url: &str, bytes: &[u8], cut: usize) -> Transcript {
    let Ok(config) = Config::parse_with(url, &|_| None) else { panic!("{url} is a URL") };
    let manner = Manner::new(&config, None, true);
    let Ok(mut machine) = Machine::new(&statements(), manner) else { panic!("the statements are verbs") };
    let mut conversation = Conversation::new(bytes, cut);
    for flush in FLUSHES.iter().cycle() {
        for (place, values) in *flush {
            let params: Params =
                [Value::Int(7), Value::Int(2), Value::Text(b"x")].into_iter().take(*values).collect();
            let want = if *place < 2 { Want::Rows } else { Want::Count };
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
    use super::super::bson;
    use super::super::wire::{self, Message};
    use super::*;
    use crate::contract::error::ErrorClass;
    use crate::net::frame::Part;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_of_the_protocol_are_kept() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/mongodb_protocol");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(seeds.len() >= 4, "{folder} has {} seeds", seeds.len());
        for seed in seeds {
            protocol(&std::fs::read(seed.unwrap().path()).unwrap());
        }
    }

    /// The answer to a command by its number, in JSON.
    fn answer(number: i32, json: &str) -> Vec<u8> {
        let mut out = Vec::new();
        let places = wire::begin(&mut out, 1000 + number);
        out.extend_from_slice(&extended::elements(json).unwrap());
        wire::end(&mut out, places);
        out[8..12].copy_from_slice(&number.to_le_bytes());
        out
    }

    fn batch(number: i32, cursor: i64, of: &str, documents: &str) -> Vec<u8> {
        answer(
            number,
            &format!(r#"{{"cursor":{{"id":{cursor},"ns":"test.t","{of}":[{documents}]}},"ok":1.0}}"#),
        )
    }

    /// The commands that were sent, in JSON.
    fn commands(sent: &[u8]) -> Vec<String> {
        let (mut all, mut rest) = (Vec::new(), sent);
        while !rest.is_empty() {
            let Part::Whole((Message { body, .. }, size)) = wire::message(rest).unwrap() else { panic!() };
            let mut shown = Vec::new();
            extended::write_document(body, &mut shown).unwrap();
            all.push(String::from_utf8(shown).unwrap());
            rest = &rest[size..];
        }
        all
    }

    /// A read; an insert, an update and a delete; a scan in two batches.
    fn recorded() -> Vec<u8> {
        [
            batch(1, 0, "firstBatch", r#"{"b":2,"a":"x"}"#),
            answer(2, r#"{"n":1,"ok":1}"#),
            answer(3, r#"{"n":1,"nModified":0,"ok":1.0}"#),
            answer(4, r#"{"n":0,"ok":true}"#),
            batch(5, 9_000_000_000, "firstBatch", r#"{"a":null}"#),
            batch(6, 0, "nextBatch", r#"{"c":1},{"d":1}"#),
        ]
        .concat()
    }

    const READ: &str = r#"{"find":"t","projection":{"_id":0,"a":1,"b":1},"limit":1,"singleBatch":true,"#;
    const SCAN: &str = r#"{"find":"t","projection":{"_id":0,"a":1,"b":1},"sort":{"_id":1},"#;

    #[test]
    fn verbs_are_commands_and_their_answers_rows() {
        let bytes = recorded();
        let (outcomes, sent, counts) = converse("mongodb://", &bytes, bytes.len());
        let affected: Vec<u64> = outcomes.iter().map(|(reply, _)| reply.as_ref().unwrap().affected).collect();
        assert_eq!((affected, counts), (vec![1, 0, 2], vec![1, 2]));
        let scan = format!(
            "{SCAN}\"$db\":\"test\",\"filter\":{{\"_id\":{{\"$gte\":7}}}},\"limit\":2,\"batchSize\":2}}"
        );
        let read = format!("{READ}\"$db\":\"test\",\"filter\":{{\"_id\":7}}}}");
        let expected = [
            read.as_str(),
            r#"{"insert":"t","$db":"test","documents":[{"_id":7,"a":2,"b":"x"}]}"#,
            r#"{"update":"t","$db":"test","updates":[{"q":{"_id":"x"},"u":{"$set":{"a":7,"b":2}}}]}"#,
            r#"{"delete":"t","$db":"test","deletes":[{"limit":1,"q":{"_id":7}}]}"#,
            &scan,
            r#"{"getMore":9000000000,"collection":"t","batchSize":1,"$db":"test"}"#,
            // Behind a scan nothing is sent before its rows are there.
            &read,
            &scan,
        ];
        assert_eq!(commands(&sent), expected);
    }

    #[test]
    fn commands_say_what_the_url_asks_for() {
        let url =
            "mongodb://h/db?readConcernLevel=majority&readPreference=nearest&w=2&wtimeoutMS=9&timeoutMS=50";
        let bytes = batch(1, 0, "firstBatch", "");
        let (_, sent, _) = converse(url, &bytes, bytes.len());
        let commands = commands(&sent);
        let reads = r#""readConcern":{"level":"majority"},"$readPreference":{"mode":"nearest"},"maxTimeMS":50,"$db":"db""#;
        assert!(commands[0].starts_with(&format!("{READ}{reads}")), "{}", commands[0]);
        let writes =
            r#"{"insert":"t","writeConcern":{"w":2,"wtimeout":9},"maxTimeMS":50,"$db":"db","documents":"#;
        assert!(commands[1].starts_with(writes), "{}", commands[1]);
    }

    #[test]
    fn an_error_of_one_command_leaves_the_others() {
        let refused =
            r#"{"n":0,"writeErrors":[{"index":0,"code":11000,"errmsg":"E11000 duplicate key"}],"ok":1.0}"#;
        let bytes = [
            answer(1, r#"{"ok":0.0,"errmsg":"not primary","code":10107,"codeName":"NotWritablePrimary"}"#),
            answer(2, refused),
            answer(3, r#"{"n":1,"ok":1}"#),
            answer(4, r#"{"n":1,"ok":1}"#),
            // A cursor that is lost in mid scan; what follows the scan is done.
            batch(5, 7, "firstBatch", r#"{"a":1}"#),
            answer(6, r#"{"ok":0.0,"errmsg":"cursor id 7 not found","code":43,"codeName":"CursorNotFound"}"#),
            batch(7, 0, "firstBatch", ""),
        ]
        .concat();
        let (outcomes, sent, _) = converse("mongodb://h/?directConnection=true", &bytes, 7);
        let told: Vec<_> = outcomes.iter().map(|(reply, _)| reply.as_ref().err().cloned()).collect();
        let error = |class, code: &str| Some((class, code.to_owned()));
        assert_eq!(
            told,
            [
                error(ErrorClass::ReadOnly, "10107"),
                error(ErrorClass::Constraint, "11000"),
                error(ErrorClass::Other, "43")
            ]
        );
        assert_eq!(commands(&sent).len(), 8);
    }

    /// As after a step-down: whoever connects anew finds the member that is primary then.
    #[test]
    fn a_member_whose_role_has_changed_is_left() {
        let stepped_down =
            r#"{"ok":0.0,"errmsg":"not primary","code":10107,"codeName":"NotWritablePrimary"}"#;
        let done = r#"{"n":1,"ok":1}"#;
        let bytes = [
            batch(1, 0, "firstBatch", ""),
            answer(2, stepped_down),
            answer(3, stepped_down),
            answer(4, done),
        ]
        .concat();
        let (outcomes, _, _) = converse("mongodb://", &bytes, 9);
        assert_eq!((outcomes.len(), outcomes[1].1), (2, ConnectionState::Lost));
        assert_eq!(outcomes[1].0.as_ref().unwrap_err(), &(ErrorClass::ReadOnly, "10107".to_owned()));
    }

    #[test]
    fn an_answer_to_another_command_ends_the_connection() {
        for bytes in [answer(2, r#"{"ok":1}"#), batch(0, 0, "firstBatch", ""), answer(1, r#"{"ok":1}"#)] {
            assert_eq!(converse("mongodb://", &bytes, 3).0[0].1, ConnectionState::Lost);
        }
    }

    #[test]
    fn values_of_workloads_and_bson_agree() {
        let mut document = Vec::new();
        let start = bson::begin(&mut document);
        for value in [
            Value::Null,
            Value::Bool(true),
            Value::Int(-7),
            Value::Int(i64::MAX),
            Value::Float(0.5),
            Value::Decimal { units: -1250, scale: 2 },
            Value::Numeric("123456789012345678901234567890.5"),
            Value::Unsigned(u64::MAX),
            Value::Text("é".as_bytes()),
            Value::Json(br#"{"x":[1]}"#),
            Value::Bytes(b"\0\xff"),
            Value::Uuid([7; 16]),
            Value::Date(1),
            Value::Timestamp(1_234_567),
        ] {
            bson::put_value(&mut document, "v", value).unwrap();
        }
        bson::end(&mut document, start);
        let mut shown = Vec::new();
        extended::write_document(&document, &mut shown).unwrap();
        let expected = r#"{"v":null,"v":true,"v":-7,"v":9223372036854775807,"v":0.5,"v":{"$numberDecimal":"-12.50"},"v":{"$numberDecimal":"123456789012345678901234567890.5"},"v":{"$numberDecimal":"18446744073709551615"},"v":"é","v":{"x":[1]},"v":{"$binary":{"base64":"AP8=","subType":"00"}},"v":{"$binary":{"base64":"BwcHBwcHBwcHBwcHBwcHBw==","subType":"04"}},"v":{"$date":{"$numberLong":"86400000"}},"v":{"$date":{"$numberLong":"1234"}}}"#;
        assert_eq!(String::from_utf8(shown).unwrap(), expected);
        for (value, why) in [
            (Value::Text(b"\xff"), "MongoDB keeps UTF-8 here"),
            (Value::Numeric("1e9999"), "it is no decimal number of at most 34 digits"),
            (Value::Json(b"{"), "it is no JSON that MongoDB keeps"),
        ] {
            assert_eq!(bson::put_value(&mut document, "v", value).unwrap_err(), why);
        }
    }

    proptest! {
        /// Whatever comes, and however it is cut, the outcome is the same.
        #[test]
        fn cuts_make_no_difference(answers in prop::collection::vec((0..7_usize, 0..3_i32), 0..20), choice in any::<u8>()) {
            let mut bytes = vec![choice];
            for (number, (what, jump)) in answers.into_iter().enumerate() {
                let number = number as i32 + 1 + i32::from(jump == 2 && what == 6);
                bytes.extend(match what {
                    0 => answer(number, r#"{"n":1,"ok":1}"#),
                    1 => batch(number, 0, "firstBatch", r#"{"a":1,"b":[{"c":2}]},{"b":{}}"#),
                    2 => batch(number, 0, "firstBatch", ""),
                    3 => batch(number, 77, "firstBatch", r#"{"a":1}"#),
                    4 => answer(number, r#"{"ok":0,"code":91,"errmsg":"shutdown"}"#),
                    5 => answer(number, r#"{"n":1,"ok":1,"writeConcernError":{"code":64,"errmsg":"late"}}"#),
                    _ => batch(number, 0, "nextBatch", "1"),
                });
            }
            protocol(&bytes);
        }

        /// Whatever a byte of an answer becomes, nothing breaks.
        #[test]
        fn no_change_breaks_it(at in 0..400_usize, byte in any::<u8>(), cut in any::<u8>()) {
            let mut bytes = [vec![cut], recorded()].concat();
            if let Some(changed) = bytes.get_mut(at + 1) {
                *changed = byte;
            }
            protocol(&bytes);
        }
    }
}
