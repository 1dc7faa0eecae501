//! Traces that are sent to a server again. Columns come in as bytes of native numbers, and go out so.

use std::collections::HashMap;
use std::time::Duration;

use nephoscope_drivers::Lexer;
use nephoscope_engine::replay::{Fate, Planned, Replay, ReplaySpec, Replayed};
use nephoscope_traces::keys::Keys;
use nephoscope_traces::order::{Order, Step};
use nephoscope_traces::{normal, transactions};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::owned::Owned;
use crate::signals::{LOOK, Signals};
use crate::storage::native;
use crate::traces::lexer_of;
use crate::{errors, logging};

/// Adds the replay of SQL traces to the module.
pub(crate) fn add_to(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_class::<SqlReplay>()?;
    module.add_class::<SqlTraceOrder>()?;
    module.add_function(wrap_pyfunction!(transaction_bounds, module)?)
}

/// What each of some statements (normalised) is to its transaction: 1 its beginning, 2 its end, 0 neither, or both.
/// Raises `InputError` for a dialect that no trace has.
#[pyfunction]
fn transaction_bounds(py: Python<'_>, texts: Vec<String>, dialect: &str) -> PyResult<Vec<u8>> {
    let mysql = lexer_of(py, dialect)?.backslash_escapes;
    let of = |text: &String| match transactions::part(text, mysql) {
        transactions::Part::Within => 0,
        transactions::Part::Begin => 1,
        transactions::Part::End => 2,
    };
    Ok(texts.iter().map(of).collect())
}

/// Numbers of their bytes.
fn numbers<T, const N: usize>(bytes: &[u8], of: fn([u8; N]) -> T) -> Vec<T> {
    bytes.as_chunks::<N>().0.iter().map(|chunk| of(*chunk)).collect()
}

/// The texts of some statements, and their values.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Statements {
    /// The number of each one's text.
    statement: Vec<u8>,
    texts: Vec<String>,
    /// The number of each one's kinds.
    kinds: Vec<u8>,
    letters: Vec<String>,
    parameters: Vec<Option<String>>,
    /// Where each one's parameters end.
    parameter_ends: Vec<u8>,
}

impl Statements {
    /// Each one's number, the number of its text, its kinds and its values. Raises `InputError` where they do not fit.
    fn each(
        &self,
        mut of: impl FnMut(usize, usize, &str, &[Option<&str>]) -> Result<(), String>,
    ) -> Result<(), String> {
        let (codes, kinds) =
            (numbers(&self.statement, i32::from_ne_bytes), numbers(&self.kinds, i32::from_ne_bytes));
        let ends = numbers(&self.parameter_ends, i64::from_ne_bytes);
        let mut from = 0;
        for (at, code) in codes.into_iter().enumerate() {
            let end = ends.get(at).map_or(from, |end| *end as usize);
            let letters = kinds.get(at).and_then(|kind| self.letters.get(*kind as usize));
            let (Some(letters), Some(given)) = (letters, self.parameters.get(from..end)) else {
                return Err("the columns have different lengths".to_owned());
            };
            let values: Vec<Option<&str>> = given.iter().map(Option::as_deref).collect();
            of(at, code as usize, letters, &values)?;
            from = end;
        }
        Ok(())
    }
}

/// Which commits each statement of a trace came after.
#[pyclass]
pub(crate) struct SqlTraceOrder {
    keys: Keys,
    numbers: HashMap<String, usize>,
    order: Order,
}

#[pymethods]
impl SqlTraceOrder {
    /// Takes every text of the trace. Raises `InputError` for a dialect that no trace has.
    #[new]
    fn new(py: Python<'_>, texts: Vec<String>, dialect: &str) -> PyResult<Self> {
        let keys = Keys::new(&texts, lexer_of(py, dialect)?);
        let numbers = texts.into_iter().enumerate().map(|(number, text)| (text, number)).collect();
        Ok(Self { keys, numbers, order: Order::default() })
    }

    /// Takes the next statements of the trace. Raises `InputError` where their columns do not fit.
    fn push(&mut self, py: Python<'_>, statements: Statements) -> PyResult<()> {
        let Self { keys, numbers, order } = self;
        let pushed = py.detach(|| {
            let of: Vec<Option<usize>> =
                statements.texts.iter().map(|text| numbers.get(text).copied()).collect();
            statements.each(|_, code, letters, values| {
                let number = of.get(code).copied().flatten();
                order.push(number.map(|number| keys.of(number, letters, values)).unwrap_or_default());
                Ok(())
            })
        });
        pushed.map_err(|why| errors::input(py, &why))
    }

    /// Gives where each statement's transactions that it comes after end (i64), and these (u32), by row. `rows` (i64) has
    /// the statements in the order of their ends; transactions and sessions (u32) and whether a statement is its
    /// transaction's last (u8) are by row.
    fn edges<'py>(
        &self,
        py: Python<'py>,
        rows: &[u8],
        transactions: &[u8],
        sessions: &[u8],
        last: &[u8],
    ) -> PyResult<(Bound<'py, PyBytes>, Bound<'py, PyBytes>)> {
        let order = &self.order;
        let rows = numbers(rows, i64::from_ne_bytes);
        let (transactions, sessions) =
            (numbers(transactions, u32::from_ne_bytes), numbers(sessions, u32::from_ne_bytes));
        let count = order.len();
        let is_fitting = [transactions.len(), sessions.len(), last.len()].iter().all(|found| *found == count)
            && rows.iter().all(|row| usize::try_from(*row).is_ok_and(|row| row < count));
        if !is_fitting {
            return Err(errors::input(py, "the columns have different lengths"));
        }
        let (ends, after) = py.detach(|| {
            let mut found = vec![Vec::new(); count];
            let steps: Vec<Step> = rows
                .iter()
                .map(|row| *row as usize)
                .map(|row| Step {
                    row,
                    transaction: transactions[row],
                    session: sessions[row],
                    ends_transaction: last[row] != 0,
                })
                .collect();
            for (step, after) in steps.iter().zip(order.after(&steps)) {
                found[step.row] = after;
            }
            let mut ends = Vec::with_capacity(count);
            let mut after: Vec<u32> = Vec::new();
            for of in found {
                after.extend(of);
                ends.push(after.len() as i64);
            }
            (ends, after)
        });
        Ok((native(py, &ends, i64::to_ne_bytes), native(py, &after, u32::to_ne_bytes)))
    }
}

/// What else is told of statements to be replayed.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Plan {
    row: Vec<u8>,
    session: Vec<u8>,
    transaction: Vec<u8>,
    at_ns: Vec<u8>,
    /// 1 where it ends its transaction, 2 where it ends its session.
    ends: Vec<u8>,
    after_ends: Vec<u8>,
    after: Vec<u8>,
}

/// Statements that are sent to a server again.
#[pyclass(frozen)]
pub(crate) struct SqlReplay {
    replay: Owned<Replay>,
    lexer: Lexer,
}

#[pymethods]
impl SqlReplay {
    /// Checks what is asked for (a JSON object: see the engine's `ReplaySpec`). Raises `InputError`.
    #[new]
    fn new(py: Python<'_>, spec: &str) -> PyResult<Self> {
        let spec: ReplaySpec = errors::parse(py, spec)?;
        let lexer = lexer_of(py, &spec.dialect)?;
        let replay = py.detach(|| Replay::new(spec));
        logging::attend_later(py);
        let replay = replay.map_err(|error| errors::engine(py, &error))?;
        Ok(Self { replay: Owned::new("replay", replay), lexer })
    }

    /// Whether more statements may be fed.
    fn has_room(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.replay.get(py)?.has_room())
    }

    /// Takes statements, those of each session in their order. Raises `InputError` where a text and its values do not fit.
    fn feed(&self, py: Python<'_>, statements: Statements, plan: Plan) -> PyResult<()> {
        let replay = self.replay.get(py)?;
        let fed = py.detach(|| planned(&statements, &plan, self.lexer).map(|planned| replay.feed(planned)));
        fed.map_err(|why| errors::input(py, &why))
    }

    /// Sets time 0, a little ahead of now.
    fn begin(&self, py: Python<'_>) -> PyResult<()> {
        self.replay.get(py)?.begin().map_err(|error| errors::engine(py, &error))
    }

    /// Says that nothing more is fed.
    fn end(&self, py: Python<'_>) -> PyResult<()> {
        self.replay.get(py)?.end();
        Ok(())
    }

    /// What became of some statements as columns, of none where that takes longer than the time in seconds; `None` behind
    /// the last.
    fn next<'py>(&self, py: Python<'py>, timeout: f64) -> PyResult<Option<Bound<'py, PyDict>>> {
        let (replay, mut left) = (self.replay.get(py)?, Duration::from_secs_f64(timeout.clamp(0.0, 3600.0)));
        loop {
            logging::attend(py)?;
            let wait = left.min(LOOK);
            let found = py.detach(|| replay.next(wait));
            logging::attend_later(py);
            let found = found.map_err(|error| errors::engine(py, &error))?;
            left -= wait;
            match found {
                None => return Ok(None),
                Some(found) if !found.is_empty() || left.is_zero() => return to_python(py, &found).map(Some),
                Some(_) => py.check_signals()?,
            }
        }
    }

    /// Standstills of the tool itself that are not told yet: when, and how long, in nanoseconds.
    fn gaps(&self, py: Python<'_>) -> PyResult<Vec<(u64, u64)>> {
        let replay = self.replay.get(py)?;
        Ok(std::iter::from_fn(|| replay.gap()).map(|gap| (gap.at, gap.stopped + gap.suspended)).collect())
    }

    /// Ends it: what is under way is given up. `next` goes on to give what there is.
    fn stop(&self, py: Python<'_>) -> PyResult<()> {
        let (replay, mut signals) = (self.replay.get(py)?, Signals::default());
        py.detach(|| replay.stop_unless(&mut || signals.look()));
        signals.or(Ok(()))
    }
}

fn planned(statements: &Statements, plan: &Plan, lexer: Lexer) -> Result<Vec<Planned>, String> {
    let rows = numbers(&plan.row, i64::from_ne_bytes);
    let (sessions, transactions) =
        (numbers(&plan.session, u32::from_ne_bytes), numbers(&plan.transaction, u32::from_ne_bytes));
    let (at, after_ends) =
        (numbers(&plan.at_ns, i64::from_ne_bytes), numbers(&plan.after_ends, i64::from_ne_bytes));
    let after = numbers(&plan.after, u32::from_ne_bytes);
    let (mut found, mut from) = (Vec::with_capacity(rows.len()), 0);
    statements.each(|place, code, letters, values| {
        let told = || {
            let end = *after_ends.get(place)? as usize;
            let ends = plan.ends.get(place)?;
            let planned = Planned {
                row: *rows.get(place)? as u64,
                session: *sessions.get(place)?,
                transaction: *transactions.get(place)?,
                at: *at.get(place)? as u64,
                sql: String::new(),
                after: after.get(from..end)?.to_vec(),
                ends_transaction: ends & 1 != 0,
                ends_session: ends & 2 != 0,
            };
            Some((planned, end, statements.texts.get(code)?))
        };
        let (mut planned, end, text) = told().ok_or("the columns have different lengths")?;
        planned.sql = normal::filled(text, letters, values, lexer)
            .map_err(|why| format!("row {} (from 0): {why}: {text}", planned.row))?;
        from = end;
        found.push(planned);
        Ok(())
    })?;
    Ok(found)
}

/// A figure of what became of a statement.
type Figure = fn(&Replayed) -> u64;

fn to_python<'py>(py: Python<'py>, found: &[Replayed]) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    let times: [(&str, Figure); 4] = [
        ("row", |of| of.row),
        ("ready_ns", |of| of.ready),
        ("sent_ns", |of| of.sent),
        ("answered_ns", |of| of.answered),
    ];
    for (name, of) in times {
        let column: Vec<u64> = found.iter().map(of).collect();
        dict.set_item(name, native(py, &column, u64::to_ne_bytes))?;
    }
    let rows: Vec<i64> = found
        .iter()
        .map(|of| match of.fate {
            Fate::Done(rows) => rows as i64,
            Fate::Failed(_) | Fate::LeftOut => -1,
        })
        .collect();
    dict.set_item("rows", native(py, &rows, i64::to_ne_bytes))?;
    let out_of_order: Vec<u8> = found.iter().map(|of| u8::from(of.out_of_order)).collect();
    dict.set_item("out_of_order", PyBytes::new(py, &out_of_order))?;
    let fates: Vec<u8> = found
        .iter()
        .map(|of| match of.fate {
            Fate::Done(_) => 0,
            Fate::Failed(_) => 1,
            Fate::LeftOut => 2,
        })
        .collect();
    dict.set_item("fate", PyBytes::new(py, &fates))?;
    let errors = found.iter().enumerate().filter_map(|(at, of)| match &of.fate {
        Fate::Failed(code) => Some((at, code.to_string())),
        Fate::Done(_) | Fate::LeftOut => None,
    });
    dict.set_item("errors", errors.collect::<Vec<_>>())?;
    Ok(dict)
}
