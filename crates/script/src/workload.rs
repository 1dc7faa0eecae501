//! A workload: what its files have said.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use nephoscope_datagen::Dataset;
use nephoscope_drivers::{ErrorClasses, Isolation, Statement};

use crate::access::KeySpace;

/// A value of a workload's option.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionValue {
    /// A text.
    Text(String),
    /// A number.
    Number(f64),
    /// A truth value.
    Boolean(bool),
}

impl fmt::Display for OptionValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => write!(f, "{text:?}"),
            Self::Number(number) => write!(f, "{number}"),
            Self::Boolean(value) => write!(f, "{value}"),
        }
    }
}

/// What an option may be.
#[derive(Clone, Debug, PartialEq)]
pub enum OptionKind {
    /// One of these texts.
    Choice(Vec<String>),
    /// Any text.
    Text,
    /// Any number.
    Number,
    /// A whole number.
    Integer,
    /// True or false.
    Boolean,
}

impl OptionKind {
    pub(crate) fn holds(&self, value: &OptionValue) -> bool {
        match (self, value) {
            (Self::Choice(texts), OptionValue::Text(text)) => texts.contains(text),
            (Self::Text, OptionValue::Text(_))
            | (Self::Number, OptionValue::Number(_))
            | (Self::Boolean, OptionValue::Boolean(_)) => true,
            (Self::Integer, OptionValue::Number(number)) => number.fract() == 0.0,
            _ => false,
        }
    }
}

impl fmt::Display for OptionKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Choice(texts) => {
                let texts: Vec<String> = texts.iter().map(|text| format!("{text:?}")).collect();
                write!(f, "one of {}", texts.join(", "))
            }
            Self::Text => f.write_str("a text"),
            Self::Number => f.write_str("a number"),
            Self::Integer => f.write_str("a whole number"),
            Self::Boolean => f.write_str("true or false"),
        }
    }
}

/// An option that a study can set under `[workload.options]`.
#[derive(Clone, Debug)]
pub struct OptionSpec {
    /// Its name.
    pub name: String,
    /// What it may be.
    pub kind: OptionKind,
    /// What it is if the study says nothing.
    pub default: OptionValue,
    /// What it is in this run.
    pub value: OptionValue,
    /// What it does.
    pub help: String,
    /// Whether the data depends on it. Other options can change without loading the data anew.
    pub data: bool,
}

/// A pause of a session beside a transaction.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Pause {
    /// None.
    #[default]
    None,
    /// Always the same.
    Constant {
        /// Its length.
        seconds: f64,
    },
    /// With an exponential law.
    Exponential {
        /// Its mean.
        seconds: f64,
    },
}

/// A transaction of the workload.
#[derive(Clone, Debug, PartialEq)]
pub struct Transaction {
    /// Its name.
    pub name: String,
    /// It only reads, so it may run on a read-only endpoint.
    pub read_only: bool,
    /// What it does.
    pub help: String,
    /// Errors that it expects: they roll it back and count as its own decision.
    pub aborts_on: ErrorClasses,
    /// What it queues and sends rides with the next statement that is waited for, whatever the load says.
    pub pipeline: bool,
    /// The isolation level in which it begins; the session's where it says none.
    pub isolation: Option<Isolation>,
    /// How long a session pauses before it, where the load asks for the workload's own pauses.
    pub keying: Pause,
    /// How long a session pauses after it, likewise.
    pub think: Pause,
    /// What its response time may be, by ascending percentile.
    pub limits: Vec<Limit>,
}

/// A bound on a percentile of a response time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// The percentile, above 0 and below 100.
    pub percentile: f64,
    /// The longest that it may be.
    pub seconds: f64,
}

/// The workload's own rate: how many of one transaction are committed in a unit of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rate {
    /// Its name, such as tpmC.
    pub name: String,
    /// The transaction.
    pub transaction: String,
    /// The unit of time: `second`, `minute` or `hour`.
    pub per: String,
    /// It has this name only where the load keeps the transactions' own pauses.
    pub pauses: bool,
}

/// Shares of transactions under a name.
#[derive(Clone, Debug, PartialEq)]
pub struct Mix {
    /// Its name.
    pub name: String,
    /// Transactions and their weights, in the order in which the transactions were declared; weights of 0 are
    /// left out.
    pub weights: Vec<(String, f64)>,
    /// Transactions that are to be a share of what has ended, at least: in percent, in the same order.
    pub at_least: Vec<(String, f64)>,
    /// The rate that the workload is known by.
    pub rate: Option<Rate>,
    /// Which keys its transactions touch unless a study says otherwise, as a study writes it.
    pub access: Option<String>,
}

/// When an invariant holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum When {
    /// Always, also after a run.
    Always,
    /// As long as no run has changed the data.
    Loaded,
}

/// A condition on the data: a statement that returns the rows which break it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Invariant {
    /// The statement's name.
    pub statement: String,
    /// What must hold.
    pub help: String,
    /// When it holds.
    pub when: When,
}

/// The SQL that makes and removes the tables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Schema {
    /// Makes the tables, without keys and indexes.
    pub create: String,
    /// Adds keys and indexes once the rows are there.
    pub keys: String,
    /// Removes the tables, whether they are there or not.
    pub drop: String,
    /// Reads the tables and their indexes whole.
    pub prewarm: String,
}

impl Schema {
    /// A section by its name.
    pub(crate) fn section(&mut self, name: &str) -> Option<&mut String> {
        match name {
            "create" => Some(&mut self.create),
            "keys" => Some(&mut self.keys),
            "drop" => Some(&mut self.drop),
            "prewarm" => Some(&mut self.prewarm),
            _ => None,
        }
    }

    /// This schema on top of another: made after it, and removed before it.
    pub(crate) fn upon(self, base: &Self) -> Self {
        Self {
            create: joined(&base.create, &self.create),
            keys: joined(&base.keys, &self.keys),
            drop: joined(&self.drop, &base.drop),
            prewarm: joined(&base.prewarm, &self.prewarm),
        }
    }
}

/// One piece of SQL after another.
pub(crate) fn joined(first: &str, second: &str) -> String {
    if first.is_empty() || second.is_empty() {
        return format!("{first}{second}");
    }
    // A comment at the end of the last line would take the semicolon in.
    let last = first.lines().last().unwrap_or_default();
    let end = if last.contains("--") || last.contains('#') { "\n;" } else { ";" };
    format!("{first}{end}\n{second}")
}

/// A table as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// Its rows at the workload's scale.
    pub rows: u64,
    /// Its stored columns, each with the word of its generator.
    pub columns: Vec<(String, &'static str)>,
    /// Where its keys begin, if its first column is a serial number.
    pub first_key: Option<i64>,
}

/// What a workload's files say.
#[derive(Debug)]
pub struct Workload {
    /// Its name.
    pub name: String,
    /// One sentence.
    pub description: String,
    /// Its options, with the values of this run.
    pub options: Vec<OptionSpec>,
    /// How its rows are made.
    pub dataset: Arc<Dataset>,
    /// Its tables as people see them, in the same order.
    pub tables: Vec<TableInfo>,
    /// Its transactions, in the order of the functions.
    pub transactions: Vec<Transaction>,
    /// In how many parts its `w:load` loads, if it has one.
    pub load_parts: Option<u32>,
    /// Its mixes.
    pub mixes: Vec<Mix>,
    /// Its invariants.
    pub invariants: Vec<Invariant>,
    /// The statements that transactions call: all but the invariants'.
    pub statements: Vec<Statement>,
    /// Those of them with parameters that are lists: a statement for each length that transactions give.
    pub with_lists: Vec<Statement>,
    /// The invariants' statements.
    pub checks: Vec<Statement>,
    /// Its schema.
    pub schema: Schema,
}

impl Workload {
    /// The key spaces of the tables whose first column is a serial number; `handed_out` is what [`used_keys`] said
    /// after earlier runs.
    #[must_use]
    pub fn key_spaces(&self, handed_out: &BTreeMap<String, u64>) -> Vec<(String, Arc<KeySpace>)> {
        let spaces = self.tables.iter().filter_map(|table| {
            let used = |name: &str| handed_out.get(name).copied().unwrap_or(0);
            let (once, made) = (used(&table.name), used(&made_name(&table.name)));
            Some((table.name.clone(), Arc::new(KeySpace::new(table.first_key?, table.rows, once, made))))
        });
        spaces.collect()
    }

    /// The mix of a name, as weights in the order of the transactions.
    #[must_use]
    pub fn mix(&self, name: &str) -> Option<&Mix> {
        self.mixes.iter().find(|mix| mix.name == name)
    }
}

/// How many keys of each table were used up by [`KeySpace::once`], under the table's name, and made by
/// [`KeySpace::new_key`], under `NAME new`, which is no table's name: what the next run is to know. Tables of which none
/// was are left out.
#[must_use]
pub fn used_keys(spaces: &[(String, Arc<KeySpace>)]) -> BTreeMap<String, u64> {
    let used = spaces
        .iter()
        .flat_map(|(table, keys)| [(table.clone(), keys.handed_out()), (made_name(table), keys.made())]);
    used.filter(|(_, count)| *count > 0).collect()
}

fn made_name(table: &str) -> String {
    format!("{table} new")
}
