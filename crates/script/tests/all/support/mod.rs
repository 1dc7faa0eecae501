//! What the tests share: workloads written down in a line or two, and sessions whose statements are answered here.

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

use nephoscope_drivers::{Column, Columns, Command, Dialect, Params, Reply, Rows, Value, Want};
use nephoscope_script::{KeySpace, OptionValue, Script, Source, Step, Vm, Workload};
use tempfile::TempDir;

/// Statements that most tests do with: `note` is how a transaction shows a value.
pub(crate) const SQL: &str =
    "-- name: note\nSELECT :value\n-- name: pair\nSELECT :a, :b, :a\n-- name: none\nSELECT 1\n";

/// The beginning of a workload with a table of 1,000 rows and an empty one.
pub(crate) const HEAD: &str = r#"local w = workload "probe"
w:table("item", { rows = function(scale) return 1000 * scale end, columns = { { "i_id", serial() } } })
w:table("empty", { rows = 0, columns = { { "e_id", serial() } } })
"#;

/// A workload's folder.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new(lua: &str, statements: &str) -> Self {
        Self(TempDir::new().unwrap()).with("workload.lua", lua).with("statements.sql", statements)
    }

    /// A folder with a Lua file alone.
    pub(crate) fn of_lua(lua: &str) -> Self {
        Self(TempDir::new().unwrap()).with("workload.lua", lua)
    }

    pub(crate) fn with(self, name: &str, text: &str) -> Self {
        std::fs::write(self.0.path().join(name), text).unwrap();
        self
    }

    pub(crate) fn source(
        &self,
        options: &[(&str, OptionValue)],
        scale: f64,
        dialect: &'static Dialect,
    ) -> Result<Source, String> {
        let options = options.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect();
        Source::read(self.0.path(), options, scale, 7, dialect).map_err(|error| {
            // Only the names of files are the same on every machine.
            error.to_string().replace(&format!("{}/", self.0.path().display()), "")
        })
    }

    pub(crate) fn workload(&self, options: &[(&str, OptionValue)]) -> Result<Workload, String> {
        self.source(options, 1.0, Dialect::NONE)?.workload().map_err(|error| error.to_string())
    }
}

/// What a Lua file after [`HEAD`] declares; it is given a transaction if it has none.
pub(crate) fn declared(lua: &str) -> Result<Workload, String> {
    let transaction =
        if lua.contains("w:transaction") { "" } else { "\nw:transaction(\"t\", function() end)" };
    Folder::new(&format!("{HEAD}{lua}{transaction}"), SQL).workload(&[])
}

/// A loaded workload.
pub(crate) struct Loaded {
    pub(crate) vm: Vm,
    pub(crate) workload: Workload,
    pub(crate) keys: Vec<(String, Arc<KeySpace>)>,
}

impl Loaded {
    pub(crate) fn new(lua: &str) -> Result<Self, String> {
        Self::with(lua, SQL, false)
    }

    pub(crate) fn with(lua: &str, sql: &str, pipeline: bool) -> Result<Self, String> {
        let source = Folder::new(lua, sql).source(&[], 1.0, Dialect::NONE)?;
        let text = |error: nephoscope_script::ScriptError| error.to_string();
        let keys = source.workload().map_err(text)?.key_spaces(&BTreeMap::new());
        let (vm, workload) = Vm::new(&source, &keys, pipeline).map_err(text)?;
        Ok(Self { vm, workload, keys })
    }

    /// A session.
    pub(crate) fn session(&self, seed: u64, number: u64) -> Session<'_> {
        Session { script: self.vm.script(seed, number).unwrap(), loaded: self, rows: 2, sent: Vec::new() }
    }
}

/// A session whose statements touch 3 rows and return `rows` rows, each with every kind of value.
pub(crate) struct Session<'a> {
    pub(crate) script: Script,
    loaded: &'a Loaded,
    pub(crate) rows: u8,
    /// Replies that are kept when the next flush is answered.
    sent: Vec<Reply>,
}

impl Session<'_> {
    /// Runs a transaction: what it called, in order, or its error.
    pub(crate) fn run(&mut self, transaction: &str) -> Result<Vec<String>, String> {
        let index = self.index(transaction);
        let step = self.script.begin(index);
        self.finish(step)
    }

    pub(crate) fn index(&self, transaction: &str) -> usize {
        self.loaded.workload.transactions.iter().position(|known| known.name == transaction).unwrap()
    }

    /// Answers the calls of a transaction until it ends.
    pub(crate) fn finish(&mut self, mut step: Step) -> Result<Vec<String>, String> {
        let mut calls = Vec::new();
        loop {
            match step {
                Step::Call { command, want, flush } => {
                    calls.push(self.shown(command, want, flush));
                    step = self.reply(want, flush);
                }
                Step::Query { want, flush } => {
                    let statement = Rc::clone(self.script.query().unwrap());
                    let call = format!("{}({})", statement.text(), shown(self.script.params()));
                    calls.push(ridden(&call, want, flush));
                    step = self.reply(want, flush);
                }
                Step::Flush => {
                    calls.push("flush".to_owned());
                    step = self.reply(Want::Count, true);
                }
                Step::Done { aborted } => {
                    calls.extend(aborted.then(|| "aborted".to_owned()));
                    return Ok(calls);
                }
                Step::Skipped => {
                    calls.push("skipped".to_owned());
                    return Ok(calls);
                }
                Step::Failed(error) => return Err(error.to_string()),
            }
        }
    }

    /// Answers a call, and where it is waited for those before it.
    fn reply(&mut self, want: Want, flush: bool) -> Step {
        let rows = if want.has_rows() { self.rows } else { 0 };
        let result = want.has_rows().then(|| answer(self.script.rows(), rows));
        let reply = Reply { affected: 3, result, ..Reply::default() };
        self.sent.extend((want == Want::Kept).then_some(reply));
        if flush {
            self.sent.drain(..).for_each(|reply| self.script.rows().keep(reply));
        }
        self.script.resume(reply)
    }

    /// Runs a transaction and keeps nothing of it.
    pub(crate) fn quietly(&mut self, transaction: &str) -> Result<(), String> {
        self.calls(transaction, |_| ())
    }

    /// Runs a transaction that notes whole numbers: the last of them.
    pub(crate) fn noted(&mut self, transaction: &str) -> i64 {
        let mut last = 0;
        let done = self.calls(transaction, |params| {
            if let Some(Value::Int(value)) = params.iter().next() {
                last = value;
            }
        });
        done.unwrap();
        last
    }

    fn calls(&mut self, transaction: &str, mut see: impl FnMut(&Params)) -> Result<(), String> {
        let index = self.index(transaction);
        let mut step = self.script.begin(index);
        loop {
            match step {
                Step::Call { want, flush, .. } | Step::Query { want, flush } => {
                    see(self.script.params());
                    step = self.reply(want, flush);
                }
                Step::Flush => step = self.reply(Want::Count, true),
                Step::Done { .. } | Step::Skipped => return Ok(()),
                Step::Failed(error) => return Err(error.to_string()),
            }
        }
    }

    fn shown(&self, command: Command, want: Want, flush: bool) -> String {
        let name = match command {
            Command::Execute(index) => {
                let name = self.loaded.workload.statements[index].name();
                format!("{name}({})", shown(self.script.params()))
            }
            other => {
                assert_eq!(self.script.params().len(), 0, "{other:?} takes no parameters");
                format!("{other:?}").to_lowercase()
            }
        };
        ridden(&name, want, flush)
    }
}

fn ridden(call: &str, want: Want, flush: bool) -> String {
    let want = match want {
        Want::Count => "",
        Want::Rows => " rows",
        Want::Kept => " kept",
    };
    let flush = if flush { "" } else { " queued" };
    format!("{call}{want}{flush}")
}

/// Runs the body of one transaction in a first session.
pub(crate) fn run(body: &str) -> Result<Vec<String>, String> {
    let lua = format!("{HEAD}w:transaction(\"t\", function(tx, pick)\n{body}\nend)");
    Loaded::new(&lua)?.session(1, 1).run("t")
}

/// What a transaction's body notes of its values.
pub(crate) fn noted(body: &str) -> Vec<String> {
    let calls = run(body).unwrap();
    calls.iter().filter_map(|call| call.strip_prefix("note(")?.strip_suffix(')')).map(str::to_owned).collect()
}

fn shown(params: &Params) -> String {
    params.iter().map(text).collect::<Vec<_>>().join(", ")
}

/// A value as it would be written down.
pub(crate) fn text(value: Value<'_>) -> String {
    match value {
        Value::Null => "null".to_owned(),
        Value::Bool(value) => value.to_string(),
        Value::Int(value) => value.to_string(),
        Value::Float(value) => format!("{value:?}"),
        Value::Text(body) => format!("'{}'", String::from_utf8_lossy(body)),
        other => format!("{other:?}"),
    }
}

/// A value of each kind that a database can return, by its column's name.
pub(crate) const CELLS: [(&str, Value<'static>); 14] = [
    ("yes", Value::Bool(true)),
    ("int", Value::Int(42)),
    ("float", Value::Float(1.5)),
    ("decimal", Value::Decimal { units: 1234, scale: 2 }),
    ("numeric", Value::Numeric("99.25")),
    ("text", Value::Text(b"word")),
    ("json", Value::Json(b"{}")),
    ("bytes", Value::Bytes(b"\x00\x01")),
    ("uuid", Value::Uuid([0x1f; 16])),
    ("date", Value::Date(19_723)),
    ("stamp", Value::Timestamp(1_500_000)),
    ("nothing", Value::Null),
    ("unsigned", Value::Unsigned(u64::MAX)),
    ("time", Value::Time(-45_296_500_000)),
];

pub(crate) fn answer(rows: &mut Rows, count: u8) -> nephoscope_drivers::ResultIndex {
    let decode = |kind: u32, cell: &[u8]| -> Value<'static> {
        CELLS.get(kind as usize).map_or_else(|| Value::Int(cell[0].into()), |(_, value)| *value)
    };
    let names = CELLS.iter().map(|(name, _)| *name).chain(["row"]);
    let columns = names.enumerate().map(|(kind, name)| Column { name: name.into(), kind: kind as u32 });
    let columns = Rc::new(Columns { columns: columns.collect(), decode, any_name: false });
    let result = rows.begin(&columns);
    for row in 1..=count {
        rows.push_row();
        for (_, value) in CELLS {
            rows.push_cell((value != Value::Null).then_some(&[]));
        }
        rows.push_cell(Some(&[row]));
    }
    result
}
