//! What a workload's files say.

use std::collections::HashMap;

use nephoscope_datagen::TablePlan;
use nephoscope_drivers::{Capabilities, Dialect, Isolation, Statement};
use nephoscope_engine::read_source;
use nephoscope_engine::spec::WorkloadSpec;
use nephoscope_script::{OptionKind, OptionValue, Source, When, Workload};
use pyo3::prelude::*;
use serde_json::{Value, json};

use crate::errors;
use crate::signals::{Signals, beside};

/// Reads the workload that a JSON object names (the engine's `WorkloadSpec`), in the dialect of a URL's driver, and
/// gives what it says as a JSON object. Raises `InputError` with file and line.
#[pyfunction]
pub(crate) fn workload(py: Python<'_>, spec: &str, url: &str) -> PyResult<String> {
    let spec: WorkloadSpec = errors::parse(py, spec)?;
    let driver = nephoscope_drivers::open(url, &nephoscope_drivers::Settings::default())
        .map_err(|error| errors::input(py, &error.0))?;
    let (source, workload) = read(py, spec, driver.dialect())?;
    let mut description = describe(&workload);
    description["files"] = source.files().iter().map(|file| file.display().to_string()).collect();
    description["dialect"] = driver.dialect().name.into();
    description["capabilities"] = capabilities(&driver.dialect().capabilities);
    Ok(description.to_string())
}

/// Reads a workload's files and runs its Lua file; a signal ends the wait.
pub(crate) fn read(
    py: Python<'_>,
    spec: WorkloadSpec,
    dialect: &'static Dialect,
) -> PyResult<(Source, Workload)> {
    let source = beside(py, "workload-files", move || read_source(&spec, dialect))?;
    let source = source.map_err(|error| errors::engine(py, &error))?;
    let mut signals = Signals::default();
    let workload = py.detach(|| source.workload_unless(&mut || signals.look()));
    let workload = signals.or(workload.map_err(|error| errors::input(py, &error.to_string())))?;
    Ok((source, workload))
}

/// SQL with its parameters `:name` written as numbers. Raises `ValueError` for a parameter without a value.
#[pyfunction]
pub(crate) fn render(sql: &str, values: HashMap<String, f64>) -> PyResult<String> {
    let statement = Statement::new("", sql);
    let mut out = Vec::new();
    statement.render(&mut out, |index, out| {
        let name = &statement.params()[index];
        let value = *values.get(name).ok_or_else(|| {
            pyo3::exceptions::PyValueError::new_err(format!("the parameter :{name} has no value"))
        })?;
        // In parentheses, so that a sign cannot meet an operator.
        let value = value.clamp(f64::MIN, f64::MAX);
        out.extend_from_slice(format!("({value:.6})").as_bytes());
        Ok::<(), PyErr>(())
    })?;
    Ok(String::from_utf8_lossy(&out).into_owned())
}

fn capabilities(of: &Capabilities) -> Value {
    json!({"stores": of.stores, "blocking": of.blocking, "isolation": of.isolation, "sql": of.sql,
        "own_statements": of.own_statements, "consistency": of.consistency,
        "consistency_apart": of.consistency_apart, "consistency_levels": of.consistency_levels()})
}

fn describe(workload: &Workload) -> Value {
    let statement = |statement: &Statement| json!({"name": statement.name(), "sql": statement.text(), "params": statement.params()});
    json!({
        "name": workload.name,
        "description": workload.description,
        "options": workload.options.iter().map(|option| json!({
            "name": option.name, "kind": option.kind.to_string(), "choices": choices(&option.kind),
            "default": value(&option.default), "value": value(&option.value), "help": option.help,
            "data": option.data,
        })).collect::<Vec<_>>(),
        "tables": workload.tables.iter().zip(workload.dataset.tables()).map(|(table, plan)| json!({
            "name": table.name, "rows": table.rows,
            "columns": table.columns.iter().zip(kinds(plan)).map(|((name, word), kind)| json!({
                "name": name, "generator": word, "kind": kind,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "transactions": workload.transactions.iter().map(|transaction| json!({
            "name": transaction.name, "read_only": transaction.read_only, "help": transaction.help,
            "isolation": transaction.isolation.map(Isolation::name),
            "limits": transaction.limits.iter().map(|limit| json!({
                "percentile": limit.percentile, "seconds": limit.seconds,
            })).collect::<Vec<_>>(),
        })).collect::<Vec<_>>(),
        "mixes": workload.mixes.iter().map(|mix| json!({
            "name": mix.name, "weights": mix.weights.iter().cloned().collect::<HashMap<String, f64>>(),
            "at_least": mix.at_least.iter().cloned().collect::<HashMap<String, f64>>(),
            "rate": mix.rate.as_ref().map(|rate| json!({
                "name": rate.name, "transaction": rate.transaction, "per": rate.per, "pauses": rate.pauses,
            })),
            "access": mix.access,
        })).collect::<Vec<_>>(),
        "invariants": workload.invariants.iter().map(|invariant| json!({
            "statement": invariant.statement, "help": invariant.help,
            "when": match invariant.when { When::Always => "always", When::Loaded => "loaded" },
        })).collect::<Vec<_>>(),
        "statements": workload.statements.iter().chain(&workload.with_lists).map(statement).collect::<Vec<_>>(),
        "checks": workload.checks.iter().map(statement).collect::<Vec<_>>(),
        "schema": {
            "create": workload.schema.create, "keys": workload.schema.keys, "drop": workload.schema.drop,
            "prewarm": workload.schema.prewarm,
        },
    })
}

/// What the stored columns of a table hold, each in a word.
fn kinds(plan: &TablePlan) -> impl Iterator<Item = &'static str> {
    plan.columns().iter().filter(|column| column.stored()).map(|column| column.kind().word())
}

fn choices(kind: &OptionKind) -> Value {
    match kind {
        OptionKind::Choice(texts) => texts.clone().into(),
        _ => Value::Null,
    }
}

fn value(of: &OptionValue) -> Value {
    match of {
        OptionValue::Text(text) => text.clone().into(),
        OptionValue::Number(number) => (*number).into(),
        OptionValue::Boolean(value) => (*value).into(),
    }
}
