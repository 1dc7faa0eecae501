//! The settings of a transaction, which stand between its name and its function.

use mlua::{Lua, Table, Value};
use nephoscope_drivers::{ErrorClass, ErrorClasses, Isolation};

use super::{Keys, at, flag, number, text};
use crate::workload::{Limit, Pause, Transaction};

/// The classes of errors that a workload may expect. The others tell of the system, not of the data.
const EXPECTED: [ErrorClass; 2] = [ErrorClass::Constraint, ErrorClass::LockTimeout];

/// What a transaction of a name says of itself.
pub(super) fn transaction(lua: &Lua, name: String, settings: Option<Table>) -> mlua::Result<Transaction> {
    let mut of = Transaction {
        name,
        read_only: false,
        pipeline: false,
        help: String::new(),
        aborts_on: ErrorClasses::NONE,
        isolation: None,
        keying: Pause::None,
        think: Pause::None,
        limits: Vec::new(),
    };
    let Some(table) = settings else { return Ok(of) };
    let what = format!("transaction {}", of.name);
    Keys {
        lua,
        table: table.clone(),
        what: what.clone(),
        unnamed: 0,
        allowed: &["read_only", "help", "aborts_on", "isolation", "pipeline", "keying", "think", "limit"],
    }
    .check()?;
    of.read_only = flag(lua, &table.get::<Value>("read_only")?, &format!("{what}: read_only"), false)?;
    of.pipeline = flag(lua, &table.get::<Value>("pipeline")?, &format!("{what}: pipeline"), false)?;
    of.help = text(lua, &table.get::<Value>("help")?, &format!("{what}: help"))?;
    of.aborts_on = aborts_on(lua, &what, &table.get::<Value>("aborts_on")?)?;
    of.isolation = isolation(lua, &what, &table.get::<Value>("isolation")?)?;
    of.keying = pause(lua, &format!("{what}: keying"), &table.get::<Value>("keying")?)?;
    of.think = pause(lua, &format!("{what}: think"), &table.get::<Value>("think")?)?;
    of.limits = limits(lua, &format!("{what}: limit"), &table.get::<Value>("limit")?)?;
    Ok(of)
}

/// `limit = { p90 = 5 }`: the percentiles of the response time that are bounded, ascending, in seconds.
fn limits(lua: &Lua, what: &str, value: &Value) -> mlua::Result<Vec<Limit>> {
    let table = match value {
        Value::Nil => return Ok(Vec::new()),
        Value::Table(table) => table,
        other => {
            let kind = other.type_name();
            return Err(at(
                lua,
                &format!("{what}: percentiles such as {{ p90 = 5 }} are expected, not {kind}"),
            ));
        }
    };
    let mut limits = Vec::new();
    for pair in table.pairs::<Value, Value>() {
        let (key, seconds) = pair?;
        let key = key.to_string().unwrap_or_default();
        let percentile = key.strip_prefix('p').and_then(|text| text.parse::<f64>().ok());
        let Some(percentile) = percentile.filter(|percentile| 0.0 < *percentile && *percentile < 100.0)
        else {
            let message =
                format!("{what}: {key:?} is no percentile; write p50, p90 or [\"p99.9\"], for example");
            return Err(at(lua, &message));
        };
        let seconds = number(&seconds).filter(|seconds| (0.0..LONGEST_PAUSE).contains(seconds));
        let seconds = seconds.filter(|seconds| *seconds > 0.0).ok_or_else(|| {
            at(lua, &format!("{what}: {key} must be a number of seconds above 0 and below {LONGEST_PAUSE}"))
        })?;
        limits.push(Limit { percentile, seconds });
    }
    limits.sort_by(|one, other| one.percentile.total_cmp(&other.percentile));
    Ok(limits)
}

/// The longest pause, and the longest limit, in seconds.
const LONGEST_PAUSE: f64 = 1e6;

/// `think = 12`, in seconds, or `think = { law = "exponential", seconds = 12 }`.
fn pause(lua: &Lua, what: &str, value: &Value) -> mlua::Result<Pause> {
    let (law, seconds) = match value {
        Value::Nil => return Ok(Pause::None),
        Value::Table(table) => {
            Keys {
                lua,
                table: table.clone(),
                what: what.to_owned(),
                unnamed: 0,
                allowed: &["law", "seconds"],
            }
            .check()?;
            (text(lua, &table.get::<Value>("law")?, &format!("{what}: law"))?, table.get::<Value>("seconds")?)
        }
        number => (String::new(), number.clone()),
    };
    let kind = seconds.type_name();
    let seconds = number(&seconds)
        .ok_or_else(|| at(lua, &format!("{what}: a number of seconds is expected, not {kind}")))?;
    if !(0.0..LONGEST_PAUSE).contains(&seconds) {
        let message = format!("{what} is {seconds} s; it must be from 0 to less than {LONGEST_PAUSE} s");
        return Err(at(lua, &message));
    }
    match &*law {
        "" | "constant" => Ok(Pause::Constant { seconds }),
        "exponential" => Ok(Pause::Exponential { seconds }),
        other => {
            let message = format!("{what}: law is {other:?}; allowed are \"constant\" and \"exponential\"");
            Err(at(lua, &message))
        }
    }
}

/// `isolation = "serializable"`.
fn isolation(lua: &Lua, what: &str, value: &Value) -> mlua::Result<Option<Isolation>> {
    let shown = match value {
        Value::Nil => return Ok(None),
        Value::String(name) => match Isolation::from_name(&name.to_string_lossy()) {
            Some(level) => return Ok(Some(level)),
            None => format!("{:?}", name.to_string_lossy()),
        },
        other => other.type_name().to_owned(),
    };
    let allowed = Isolation::ALL.map(|level| format!("{:?}", level.name())).join(", ");
    Err(at(lua, &format!("{what}: isolation is {shown}; allowed are {allowed}")))
}

/// `aborts_on = "constraint"`, or a list of classes.
fn aborts_on(lua: &Lua, what: &str, value: &Value) -> mlua::Result<ErrorClasses> {
    let allowed = EXPECTED.map(|class| format!("{:?}", class.name())).join(", ");
    let class = |name: &Value| {
        let text = name.as_string().map(mlua::LuaString::to_string_lossy);
        let known = text.as_deref().and_then(ErrorClass::from_name);
        known.filter(|class| EXPECTED.contains(class)).ok_or_else(|| {
            let shown = text.map_or_else(|| name.type_name().to_owned(), |text| format!("{text:?}"));
            at(lua, &format!("{what}: aborts_on is {shown}; allowed are {allowed}, or a list of these"))
        })
    };
    let classes = match value {
        Value::Nil => Vec::new(),
        Value::Table(list) => {
            list.sequence_values::<Value>().map(|name| class(&name?)).collect::<mlua::Result<Vec<_>>>()?
        }
        name => vec![class(name)?],
    };
    Ok(ErrorClasses::of(&classes))
}
