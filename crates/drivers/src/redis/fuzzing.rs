//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use super::machine::Machine;
use crate::contract::driver::{Command, ConnectionState, Want};
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};
use crate::net::conversation::{Conversation, Transcript};
use crate::net::session::Machine as _;

/// The statements of the verbs on a table of two fields, in the order of [`Action::ALL`].
pub(super) fn statements() -> Vec<Statement> {
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

/// What a server sends; the first byte says how the bytes are cut, and whether replicas are waited for.
///
/// # Panics
/// If the outcome depends on how the bytes are cut, or if a claimed length costs memory.
pub fn protocol(data: &[u8]) {
    let Some((choice, bytes)) = data.split_first() else { return };
    let replicas = choice & 1;
    let whole = converse(replicas, bytes, bytes.len().max(1));
    assert_eq!(whole, converse(replicas, bytes, usize::from(choice >> 1) + 1));
}

pub(super) fn converse(replicas: u8, bytes: &[u8], cut: usize) -> Transcript {
    let Ok(mut machine) = Machine::new(&statements(), replicas) else { panic!("the statements are verbs") };
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
    use super::{converse, protocol};
    use crate::contract::error::ErrorClass;
    use proptest::prelude::*;

    #[test]
    fn the_seeds_of_the_protocol_are_kept() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus/redis_protocol");
        let seeds: Vec<_> = std::fs::read_dir(folder).unwrap().collect();
        assert!(seeds.len() >= 4, "{folder} has {} seeds", seeds.len());
        for seed in seeds {
            protocol(&std::fs::read(seed.unwrap().path()).unwrap());
        }
    }

    /// A read; an insert, an update and a delete; a scan of two keys, one of which is gone meanwhile.
    const ANSWERS: &str = "*2\r\n$1\r\nx\r\n_\r\n\
        :2\r\n:1\r\n:0\r\n:1\r\n:1\r\n\
        >2\r\n+invalidate\r\n_\r\n*2\r\n$2\r\nk1\r\n$2\r\nk2\r\n*2\r\n_\r\n_\r\n*2\r\n$1\r\na\r\n$0\r\n\r\n";

    #[test]
    fn verbs_are_commands_and_their_answers_rows() {
        let (outcomes, sent, counts) = converse(0, ANSWERS.as_bytes(), ANSWERS.len());
        let affected: Vec<u64> = outcomes.iter().map(|(reply, _)| reply.as_ref().unwrap().affected).collect();
        assert_eq!((affected, counts), (vec![1, 1, 1], vec![1, 1]));
        let sent = String::from_utf8(sent).unwrap();
        let words: Vec<&str> = sent.split("\r\n").filter(|word| !word.starts_with(['*', '$'])).collect();
        let expected = "HMGET t:7 a b \
            HSET t:7 a 2 b x ZADD t 0 7 HSET t:x a 7 b 2 DEL t:7 ZREM t 7 \
            ZRANGEBYLEX t [7 + LIMIT 0 2 HMGET t:k1 a b HMGET t:k2 a b \
            HMGET t:7 a b ZRANGEBYLEX t [7 + LIMIT 0 2 ";
        assert_eq!(words.join(" "), expected, "behind a scan nothing is sent before its rows are there");
    }

    #[test]
    fn a_write_that_replicas_do_not_have_has_an_unknown_outcome() {
        let answers = "*2\r\n_\r\n_\r\n:2\r\n:1\r\n:1\r\n:0\r\n:1\r\n:1\r\n:1\r\n:0\r\n";
        let (outcomes, sent, _) = converse(1, answers.as_bytes(), answers.len());
        assert_eq!(outcomes[0].0.as_ref().unwrap().affected, 0, "a row without fields is none");
        assert_eq!(outcomes[1].0.as_ref().unwrap_err(), &(ErrorClass::StatementTimeout, "WAIT".to_owned()));
        assert_eq!(
            String::from_utf8(sent).unwrap().matches("$4\r\nWAIT\r\n$1\r\n1\r\n$5\r\n10000\r\n").count(),
            3
        );
    }

    #[test]
    fn an_error_of_one_command_leaves_the_others() {
        let answers = "*2\r\n$1\r\nx\r\n$1\r\ny\r\n-OOM no\r\n:1\r\n:2\r\n:1\r\n:1\r\n*0\r\n";
        let (outcomes, _, counts) = converse(0, answers.as_bytes(), answers.len());
        assert_eq!(outcomes[1].0.as_ref().unwrap_err(), &(ErrorClass::Throttled, "OOM".to_owned()));
        assert_eq!((outcomes[2].0.as_ref().unwrap().affected, counts), (0, vec![1, 0]));
    }

    proptest! {
        /// Whatever comes, and however it is cut, the outcome is the same.
        #[test]
        fn cuts_make_no_difference(
            answers in prop::collection::vec(prop::sample::select(vec![
                "*2\r\n$1\r\nx\r\n$-1\r\n", "*2\r\n_\r\n_\r\n", ":1\r\n", "-ERR no\r\n", "*0\r\n", "*1\r\n$1\r\nk\r\n",
                "*2\r\n$1\r\nk\r\n$1\r\nl\r\n", ">1\r\n+x\r\n", "|1\r\n+a\r\n+b\r\n", "+OK\r\n", "!3\r\nERR\r\n", "$9\r\n",
            ]), 0..30),
            choice in any::<u8>(),
        ) {
            protocol(&[&[choice], answers.concat().as_bytes()].concat());
        }
    }
}
