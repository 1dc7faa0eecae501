//! Histories that a versioned store has executed one transaction after the other, and anomalies planted in them.

pub(crate) mod plants;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};

use nephoscope_histories::{Operation, Outcome, Transaction};
use rand_core::{Rng as _, SeedableRng as _};
use rand_xoshiro::Xoshiro256PlusPlus;

const SESSIONS: u32 = 32;
const LISTS: usize = 50;
const APPENDS_OF_A_LIST: u32 = 64;
const REGISTERS: u64 = 50;
const COUNTERS: u64 = 5;
const ACCOUNTS: usize = 8;
/// Registers and counters have keys from here on.
const FIRST_REGISTER: u64 = 1 << 40;
const FIRST_COUNTER: u64 = 1 << 41;
/// No step of a transaction takes longer, in nanoseconds.
const LONGEST_STEP: u64 = 2_000;
/// Longer than any transaction of a history takes, and than any of its lists is left alone.
pub(crate) const WINDOW: u64 = 200_000;

/// What a session does next.
#[derive(Clone, Copy, Default)]
enum Next {
    #[default]
    Begin,
    Execute,
    End,
}

#[derive(Default)]
struct Session {
    transaction: Transaction,
    next: Next,
}

/// Sessions that run transactions on one store. A transaction happens at one instant between its begin and its end, so
/// the history is strictly serializable.
pub(crate) struct Simulator {
    random: Xoshiro256PlusPlus,
    sessions: Vec<Session>,
    /// When a session goes on.
    events: BinaryHeap<Reverse<(u64, u32)>>,
    lists: HashMap<u64, Vec<u64>>,
    registers: HashMap<u64, u64>,
    counters: HashMap<u64, i64>,
    accounts: Vec<i64>,
    live: Vec<(u64, u32)>,
    operations: u64,
    next_list: u64,
    next_value: u64,
    next_number: u64,
    pub(crate) now: u64,
    planted: VecDeque<Transaction>,
    closed: bool,
}

impl Simulator {
    pub(crate) fn new(seed: u64, operations: u64) -> Self {
        Self {
            random: Xoshiro256PlusPlus::seed_from_u64(seed),
            sessions: (0..SESSIONS).map(|_| Session::default()).collect(),
            events: (0..SESSIONS).map(|session| Reverse((u64::from(session) + 1, session))).collect(),
            lists: HashMap::new(),
            registers: HashMap::new(),
            counters: HashMap::new(),
            accounts: vec![100; ACCOUNTS],
            live: (0..LISTS as u64).map(|key| (key, 0)).collect(),
            operations,
            next_list: LISTS as u64,
            next_value: 0,
            next_number: 0,
            now: 0,
            planted: VecDeque::new(),
            closed: false,
        }
    }

    fn below(&mut self, most: u64) -> u64 {
        self.random.next_u64() % most
    }

    /// Adds a planted transaction, which ends after every one that was planted before.
    fn plant(&mut self, transaction: Transaction) {
        self.planted.push_back(transaction);
    }

    /// Lets no transaction begin any more.
    pub(crate) fn close(&mut self) {
        self.closed = true;
    }

    /// Gives the next transaction that ends; false when there is none.
    pub(crate) fn next(&mut self, into: &mut Transaction) -> bool {
        loop {
            let time = self.events.peek().map_or(u64::MAX, |event| event.0.0);
            if self.planted.front().is_some_and(|planted| planted.end <= time) {
                *into = self.planted.pop_front().unwrap_or_default();
                return true;
            }
            let Some(Reverse((time, session))) = self.events.pop() else { return false };
            self.now = time;
            if self.closed && matches!(self.sessions[session as usize].next, Next::Begin) {
                continue;
            }
            let later = time + 1 + self.below(LONGEST_STEP);
            self.events.push(Reverse((later, session)));
            let at = session as usize;
            self.sessions[at].next = match self.sessions[at].next {
                Next::Begin => {
                    let number = self.next_number;
                    self.next_number += 1;
                    self.sessions[at].transaction.restart(number, session, time);
                    Next::Execute
                }
                Next::Execute => {
                    self.execute(at);
                    Next::End
                }
                Next::End => Next::Begin,
            };
            if matches!(self.sessions[at].next, Next::Begin) {
                self.sessions[at].transaction.end = time;
                std::mem::swap(into, &mut self.sessions[at].transaction);
                return true;
            }
        }
    }

    /// Runs a transaction, all of it now: it began before, and ends later.
    fn execute(&mut self, at: usize) {
        let mut transaction = std::mem::take(&mut self.sessions[at].transaction);
        let fate = self.below(100);
        let happens = fate < 96;
        transaction.outcome = match fate {
            97.. => Outcome::Aborted,
            95..=96 => Outcome::Unknown,
            _ => Outcome::Committed,
        };
        let mut undo: Vec<Operation> = Vec::new();
        for _ in 0..self.operations {
            let operation = self.operation(&mut transaction);
            undo.extend(operation);
        }
        if !happens {
            self.undo(undo);
        }
        self.forget();
        self.sessions[at].transaction = transaction;
    }

    /// Does one thing, and gives what takes it back.
    fn operation(&mut self, to: &mut Transaction) -> Option<Operation> {
        match self.below(100) {
            0..30 => {
                let at = self.below(LISTS as u64) as usize;
                let key = self.live[at].0;
                to.list(key, self.lists.get(&key).map_or(&[][..], Vec::as_slice));
                None
            }
            30..60 => Some(self.append(to)),
            60..75 => {
                let key = FIRST_REGISTER + self.below(REGISTERS);
                to.operations.push(Operation::Read { key, value: self.registers.get(&key).copied() });
                None
            }
            75..90 => {
                let (key, value) = (FIRST_REGISTER + self.below(REGISTERS), self.value());
                to.operations.push(Operation::Write { key, value });
                let before = self.registers.insert(key, value);
                Some(Operation::Read { key, value: before })
            }
            90..93 => {
                let (key, amount) = (FIRST_COUNTER + self.below(COUNTERS), self.below(9) as i64 - 4);
                to.operations.push(Operation::Add { key, amount });
                *self.counters.entry(key).or_default() += amount;
                Some(Operation::Add { key, amount: -amount })
            }
            93..96 => {
                let key = FIRST_COUNTER + self.below(COUNTERS);
                let value = self.counters.get(&key).copied().unwrap_or_default();
                to.operations.push(Operation::Count { key, value });
                None
            }
            96..98 => {
                to.balances(&self.accounts);
                None
            }
            _ => {
                let (from, to_account) = (self.below(ACCOUNTS as u64), self.below(ACCOUNTS as u64));
                let amount = self.below(50) as i64;
                to.operations.push(Operation::Transfer { from, to: to_account, amount });
                self.transfer(from, to_account, amount);
                Some(Operation::Transfer { from: to_account, to: from, amount })
            }
        }
    }

    fn value(&mut self) -> u64 {
        self.next_value += 1;
        self.next_value
    }

    fn append(&mut self, to: &mut Transaction) -> Operation {
        let (at, value) = (self.below(LISTS as u64) as usize, self.value());
        let (key, appends) = self.live[at];
        to.operations.push(Operation::Append { key, value });
        self.lists.entry(key).or_default().push(value);
        self.live[at].1 += 1;
        if appends + 1 == APPENDS_OF_A_LIST {
            self.live[at] = (self.next_list, 0);
            self.next_list += 1;
        }
        Operation::Append { key, value }
    }

    fn transfer(&mut self, from: u64, to: u64, amount: i64) {
        self.accounts[from as usize] -= amount;
        self.accounts[to as usize] += amount;
    }

    fn undo(&mut self, done: Vec<Operation>) {
        for operation in done.into_iter().rev() {
            match operation {
                Operation::Append { key, .. } => _ = self.lists.get_mut(&key).and_then(Vec::pop),
                Operation::Read { key, value: Some(value) } => _ = self.registers.insert(key, value),
                Operation::Read { key, value: None } => _ = self.registers.remove(&key),
                Operation::Add { key, amount } => *self.counters.entry(key).or_default() += amount,
                Operation::Transfer { from, to, amount } => self.transfer(from, to, amount),
                _ => (),
            }
        }
    }

    /// Forgets lists that nobody uses any more.
    fn forget(&mut self) {
        if self.lists.len() > 4 * LISTS {
            let live: Vec<u64> = self.live.iter().map(|it| it.0).collect();
            self.lists.retain(|key, _| live.contains(key));
        }
    }
}
