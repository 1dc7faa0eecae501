//! Anomalies as they are planted: transactions in a short notation, and what is to be found of them.
#![allow(clippy::enum_glob_use, clippy::unwrap_used)]

use nephoscope_histories::Anomaly::{self, *};
use nephoscope_histories::{Operation, Order, Outcome, Transaction};

use super::Simulator;

/// Planted transactions run in sessions of their own, one for each of a plant.
const FIRST_SESSION: u32 = 1_000;
/// And have numbers and keys of their own.
const FIRST_NUMBER: u64 = 1 << 50;
const FIRST_KEY: u64 = 1 << 50;
const MOST: u64 = 16;

/// A plant's transactions in words. `x+1` appends 1 to the list x, `x=12` reads it as 1, 2; `x:1` writes the register x,
/// `x?1` reads it, and `x?` reads it as not written; `x#1` adds 1 to the counter x, `x~5` reads it as 5. `bank+` reads
/// balances whose sum is wrong, `bank-` those of one account less. A transaction aborts with `!`; with `>` it follows the
/// one before it in its session, with `>>` in another.
pub(crate) struct Plant {
    transactions: &'static [&'static str],
    pub(crate) found: &'static [(Anomaly, Order)],
}

const fn plant(transactions: &'static [&'static str], found: &'static [(Anomaly, Order)]) -> Plant {
    Plant { transactions, found }
}

const ANY: Order = Order::None;

pub(crate) const PLANTS: &[Plant] = &[
    plant(&["x+1 y+1", "x+2 y+2", "x=12 y=21"], &[(G0, ANY)]),
    plant(&["!x+1", "x=1"], &[(G1a, ANY)]),
    plant(&["x=1", "!x+1"], &[(G1a, ANY)]),
    plant(&["!x:1", "x?1"], &[(G1a, ANY)]),
    plant(&["x?1", "!x:1"], &[(G1a, ANY)]),
    plant(&["x+1 x+2", "x=1"], &[(G1b, ANY), (GSingle, ANY)]),
    plant(&["x=1", "x+1 x+2"], &[(G1b, ANY), (GSingle, ANY)]),
    plant(&["x:1 x:2", "x?1"], &[(G1b, ANY)]),
    plant(&["x?1", "x:1 x:2"], &[(G1b, ANY)]),
    plant(&["x+1 y=1", "y+1 x=1"], &[(G1c, ANY)]),
    plant(&["x:1 y?1", "y:1 x?1"], &[(G1c, ANY)]),
    plant(&["x= x+1", "x= x+2", "x=12"], &[(LostUpdate, ANY)]),
    plant(&["x=1", "x+1", "x=1 x+2", "x=1 x+3"], &[(LostUpdate, ANY)]),
    plant(&["x? x:1", "x? x:2"], &[(LostUpdate, ANY)]),
    plant(&["x= x+1", "x=1 y=", "x= x+2", "x=12"], &[(LostUpdate, ANY)]),
    plant(&["x= x+1 y= z+1", "x= x+2", "z= y+1", "x=12"], &[(LostUpdate, ANY), (G2Item, ANY)]),
    plant(&["x+1 y+1", "x= y=1"], &[(GSingle, ANY)]),
    plant(&["x:1 y:1", "x? y?1"], &[(GSingle, ANY)]),
    plant(&["x+1", "> x="], &[(GSingle, Order::Session)]),
    plant(&["x+1", ">> x="], &[(GSingle, Order::RealTime)]),
    plant(&["x:1", ">> x?"], &[(GSingle, Order::RealTime)]),
    plant(&["x=1", ">> x+1"], &[(G1c, Order::RealTime)]),
    plant(&["x+1", "> x+2", ">> x=21"], &[(G0, Order::Session)]),
    plant(&["x+1", "y+1", "x=1 y=", "x= y=1"], &[(LongFork, ANY)]),
    plant(&["x:1", "y:1", "x?1 y?", "x? y?1"], &[(LongFork, ANY)]),
    plant(&["a= d+2", "a+1 b+1", "b+2 c=", "c+1 d+1", "b=12 d=12"], &[(GNonadjacent, ANY)]),
    plant(&["x= y+1", "y= x+1"], &[(G2Item, ANY)]),
    plant(&["x? y:1", "y? x:1"], &[(G2Item, ANY)]),
    plant(&["x= y+1", "y= z+1", "z= x+1"], &[(G2Item, ANY)]),
    plant(&["x+1", "x= x=1"], &[(GSingle, ANY), (Internal, ANY)]),
    plant(&["x+1 x="], &[(Internal, ANY)]),
    plant(&["x=1 x+1"], &[(Internal, ANY)]),
    plant(&["x:1 x?"], &[(Internal, ANY)]),
    plant(&["x+1", "x=11"], &[(Duplicate, ANY)]),
    plant(&["x+1", "x+2", "x=12", "x=2"], &[(Missing, ANY)]),
    plant(&["x+1", "x+2", "x=2", "x=12"], &[(Missing, ANY)]),
    plant(&["x+1", "x+2", "x=12", "x=21"], &[(IncompatibleOrder, ANY)]),
    plant(&["x=9"], &[(Unwritten, ANY)]),
    plant(&["x?9"], &[(Unwritten, ANY)]),
    plant(&["c#1", "c~5"], &[(Counter, Order::RealTime)]),
    plant(&["c#-1", "c#1", "c~-2"], &[(Counter, Order::RealTime)]),
    plant(&["c#3", ">> c~0"], &[(Counter, Order::RealTime)]),
    plant(&["bank+"], &[(Total, ANY)]),
    plant(&["bank-"], &[(Total, ANY)]),
];

/// The plant whose transaction has this number, as the how manieth it was planted; none of one that was executed.
pub(crate) fn of_number(number: u64) -> Option<u64> {
    number.checked_sub(FIRST_NUMBER).map(|it| it / MOST)
}

impl Plant {
    fn ordered(&self) -> bool {
        self.transactions.iter().any(|it| it.starts_with('>'))
    }

    /// Plants it now. Its transactions overlap unless it says otherwise, and all saw one list of the others as it is now:
    /// so the cycle lies amid the graph.
    pub(crate) fn put(&self, to: &mut Simulator, which: u64) {
        let live = to.live[(which % 50) as usize].0;
        let list = to.lists.get(&live).cloned().unwrap_or_default();
        let (now, mut session) = (to.now, FIRST_SESSION);
        for (at, words) in self.transactions.iter().enumerate() {
            let at = at as u64;
            let mut made = Transaction::default();
            session += u32::from(at > 0 && !words.starts_with("> "));
            let began = if words.starts_with('>') { now + 100 * at + 10 } else { now };
            made.restart(FIRST_NUMBER + which * MOST + at, session, began);
            made.end = now + 100 * (at + 1);
            if words.starts_with('!') {
                made.outcome = Outcome::Aborted;
            }
            for word in words.trim_start_matches(['!', '>', ' ']).split(' ') {
                done(&mut made, word, which, &to.accounts);
            }
            if !self.ordered() && made.outcome == Outcome::Committed {
                made.list(live, &list);
            }
            to.plant(made);
        }
    }
}

fn done(made: &mut Transaction, word: &str, which: u64, accounts: &[i64]) {
    match word {
        "bank+" => {
            let mut wrong = accounts.to_vec();
            wrong[0] += 1;
            return made.balances(&wrong);
        }
        "bank-" => return made.balances(&accounts[1..]),
        _ => (),
    }
    let (key, what, rest) = (u64::from(word.as_bytes()[0]), word.as_bytes()[1], &word[2..]);
    let key = FIRST_KEY + which * 256 + key;
    let number = || rest.parse().unwrap();
    match what {
        b'+' => made.operations.push(Operation::Append { key, value: number() as u64 }),
        b'=' => {
            let values: Vec<u64> = rest.bytes().map(|digit| u64::from(digit - b'0')).collect();
            made.list(key, &values);
        }
        b':' => made.operations.push(Operation::Write { key, value: number() as u64 }),
        b'?' => made.operations.push(Operation::Read { key, value: rest.parse().ok() }),
        b'#' => made.operations.push(Operation::Add { key, amount: number() }),
        b'~' => made.operations.push(Operation::Count { key, value: number() }),
        _ => panic!("no word of a plant: {word}"),
    }
}
