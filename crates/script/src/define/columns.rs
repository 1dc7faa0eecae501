//! The words that make columns: `serial()`, `reference("customer")`, `choice { … }` …, each a generator of the
//! data generation crate, whose documentation says what it makes.

use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;

use mlua::{Function, LightUserData, Lua, MultiValue, Value, Variadic};
use nephoscope_datagen::{CellFunction, Draws, Generator, Kind, Literal, RowFunction, decimal_units};
use nephoscope_drivers::{Error, Params, Value as Cell};
use nephoscope_runtime::Nanos;

use crate::define::{self, Patience, Source, at, describe, laws, number};
use crate::vm::sandbox;

/// What a state keeps for its workload file. A generator is a value in Lua by its index here, as a light pointer: a
/// userdata would do, but for what [`crate::vm::api::Results`] says.
#[derive(Default)]
struct Made {
    generators: Vec<Generator>,
    /// The functions given to `derive` and `parent`, in the order of the calls, for [`LuaFunction`].
    functions: Vec<Function>,
}

/// The generator that a value stands for.
pub(crate) fn of(lua: &Lua, value: &Value) -> Option<Generator> {
    let Value::LightUserData(index) = value else { return None };
    let made = lua.app_data_ref::<RefCell<Made>>()?;
    let made = made.borrow();
    made.generators.get((index.0 as usize).checked_sub(1)?).cloned()
}

/// Keeps a generator: the value that stands for it.
fn keep(lua: &Lua, generator: Generator) -> mlua::Result<Value> {
    let made = lua.app_data_ref::<RefCell<Made>>();
    let made = made.ok_or_else(|| at(lua, "columns can be declared only in the file itself"))?;
    let mut made = made.borrow_mut();
    made.generators.push(generator);
    Ok(Value::LightUserData(LightUserData(std::ptr::without_provenance_mut(made.generators.len()))))
}

/// The arguments of a word.
pub(super) struct Arguments<'a> {
    lua: &'a Lua,
    word: &'static str,
    pub(super) values: std::collections::VecDeque<Value>,
}

impl Arguments<'_> {
    pub(super) fn wrong(&self, message: &str) -> mlua::Error {
        at(self.lua, &format!("{}: {message}", self.word))
    }

    pub(super) fn next(&mut self) -> Value {
        self.values.pop_front().unwrap_or(Value::Nil)
    }

    pub(super) fn number(&mut self, what: &str, default: Option<f64>) -> mlua::Result<f64> {
        let given = self.next();
        let given_or_default = if given.is_nil() { default } else { number(&given) };
        given_or_default
            .ok_or_else(|| self.wrong(&format!("{what} must be a number, not {}", given.type_name())))
    }

    pub(super) fn whole(&mut self, what: &str, default: Option<f64>) -> mlua::Result<i64> {
        let number = self.number(what, default)?;
        if number.fract() == 0.0 && number.abs() < 9.2e18 {
            Ok(number as i64)
        } else {
            Err(self.wrong(&format!("{what} must be a whole number, not {number}")))
        }
    }

    pub(super) fn count(&mut self, what: &str) -> mlua::Result<u32> {
        let number = self.whole(what, None)?;
        u32::try_from(number).map_err(|_| self.wrong(&format!("{what} must be 0 or more, not {number}")))
    }

    pub(super) fn text(&mut self, what: &str) -> mlua::Result<String> {
        self.optional_text(what)?.ok_or_else(|| self.wrong(&format!("{what} is missing")))
    }

    pub(super) fn optional_text(&mut self, what: &str) -> mlua::Result<Option<String>> {
        match self.next() {
            Value::Nil => Ok(None),
            Value::String(text) => Ok(Some(text.to_string_lossy())),
            other => Err(self.wrong(&format!("{what} must be a text, not {}", other.type_name()))),
        }
    }

    /// A decimal number, given as a number or, exactly, as a text.
    fn decimal(&mut self, what: &str, scale: u8) -> mlua::Result<i64> {
        let text = match self.next() {
            Value::String(text) => text.to_string_lossy(),
            Value::Integer(number) => number.to_string(),
            Value::Number(number) => number.to_string(),
            other => return Err(self.wrong(&format!("{what} must be a number, not {}", other.type_name()))),
        };
        decimal_units(&text, scale).map_err(|error| self.wrong(&format!("{what}: {error}")))
    }

    pub(super) fn literal(&self, value: Value) -> mlua::Result<Literal> {
        Ok(match value {
            Value::String(text) => Literal::Text(text.to_string_lossy()),
            Value::Integer(number) => Literal::Integer(number),
            Value::Number(number) if number.fract() == 0.0 && number.abs() < 9e15 => {
                Literal::Integer(number as i64)
            }
            Value::Number(number) => Literal::Float(number),
            Value::Boolean(value) => Literal::Boolean(value),
            other => {
                let message =
                    format!("a value must be a text, a number or a boolean, not {}", other.type_name());
                return Err(self.wrong(&message));
            }
        })
    }

    pub(super) fn list(&mut self, what: &str) -> mlua::Result<Option<Vec<Value>>> {
        match self.next() {
            Value::Nil => Ok(None),
            Value::Table(list) => list.sequence_values().collect::<mlua::Result<_>>().map(Some),
            other => Err(self.wrong(&format!("{what} must be a list, not {}", other.type_name()))),
        }
    }

    fn texts(&mut self, what: &str) -> mlua::Result<Vec<String>> {
        let list = self.list(what)?.unwrap_or_default();
        let text = |value: &Value| match value {
            Value::String(text) => Ok(text.to_string_lossy()),
            other => Err(self.wrong(&format!("{what} must hold texts, not {}", other.type_name()))),
        };
        list.iter().map(text).collect()
    }

    fn generator(&mut self) -> mlua::Result<Generator> {
        let value = self.next();
        of(self.lua, &value)
            .ok_or_else(|| self.wrong(&format!("a generator is expected, not {}", value.type_name())))
    }

    fn done(&self) -> mlua::Result<()> {
        if self.values.is_empty() { Ok(()) } else { Err(self.wrong("there are too many arguments")) }
    }
}

pub(super) type Make = fn(&mut Arguments<'_>) -> mlua::Result<Generator>;

/// Every word with what makes its generator; `derive` is apart, since it needs the source.
const WORDS: [(&str, Make); 31] = [
    ("serial", |a| Ok(Generator::Serial { start: a.whole("the first number", Some(1.0))? })),
    ("constant", |a| {
        let value = a.next();
        a.literal(value).map(Generator::Constant)
    }),
    ("null", |_| Ok(Generator::Null)),
    ("integer", |a| {
        Ok(Generator::Integer { min: a.whole("the smallest", None)?, max: a.whole("the greatest", None)? })
    }),
    ("decimal", decimal),
    ("float", |a| {
        Ok(Generator::Float { min: a.number("the smallest", None)?, max: a.number("the greatest", None)? })
    }),
    ("boolean", |a| Ok(Generator::Boolean { probability: a.number("the probability", Some(0.5))? })),
    ("count", |a| Ok(Generator::Count { table: a.text("the children's table")? })),
    ("total", |a| {
        Ok(Generator::Total { table: a.text("the children's table")?, column: a.text("the column")? })
    }),
    ("product", |a| {
        let mut columns = Vec::new();
        while !a.values.is_empty() {
            columns.push(a.text("a column")?);
        }
        Ok(Generator::Product { columns })
    }),
    ("copy", |a| Ok(Generator::Copy { column: a.text("the column")? })),
    ("lookup", |a| {
        Ok(Generator::Lookup { reference: a.text("the reference column")?, column: a.text("the column")? })
    }),
    ("name", |a| Ok(Generator::Name { gender: a.optional_text("the gender column")? })),
    ("given_name", |a| Ok(Generator::GivenName { gender: a.optional_text("the gender column")? })),
    ("family_name", |_| Ok(Generator::FamilyName)),
    ("gender", |a| {
        let female = a.optional_text("the mark for a woman")?.unwrap_or_else(|| "F".to_owned());
        let male = a.optional_text("the mark for a man")?.unwrap_or_else(|| "M".to_owned());
        Ok(Generator::Gender { female, male })
    }),
    ("company", |_| Ok(Generator::Company)),
    ("email", |a| Ok(Generator::Email { of: a.optional_text("the column")? })),
    ("phone", |_| Ok(Generator::Phone)),
    ("street", |_| Ok(Generator::Street)),
    ("postcode", |_| Ok(Generator::Postcode)),
    ("province", |_| Ok(Generator::Province)),
    ("city", |a| Ok(Generator::City { province: a.optional_text("the province column")? })),
    ("words", |a| Ok(Generator::Words { min: a.count("the shortest")?, max: a.count("the longest")? })),
    ("digits", |a| Ok(Generator::Digits { count: a.count("the number of digits")? })),
    ("bytes", |a| Ok(Generator::Bytes { min: a.count("the fewest")?, max: a.count("the most")? })),
    ("uuid", |_| Ok(Generator::Uuid)),
    ("date", |a| Ok(Generator::Date { from: a.text("the first date")?, to: a.text("the last date")? })),
    ("timestamp", |a| {
        Ok(Generator::Timestamp { from: a.text("the first time")?, to: a.text("the last time")? })
    }),
    ("after", |a| {
        Ok(Generator::After {
            column: a.text("the column")?,
            min_seconds: a.count("the least seconds")?.into(),
            max_seconds: a.count("the most seconds")?.into(),
        })
    }),
    ("optional", |a| {
        Ok(Generator::Optional {
            probability: a.number("the probability of null", None)?,
            of: Box::new(a.generator()?),
        })
    }),
];

fn decimal(a: &mut Arguments<'_>) -> mlua::Result<Generator> {
    let scale = match a.values.get(2) {
        None | Some(Value::Nil) => 2.0,
        Some(given) => number(given).unwrap_or(-1.0),
    };
    if !(0.0..=18.0).contains(&scale) || scale.fract() != 0.0 {
        return Err(a.wrong("the digits behind the point must be a whole number from 0 to 18"));
    }
    let scale = scale as u8;
    let generator = Generator::Decimal {
        min: a.decimal("the smallest", scale)?,
        max: a.decimal("the greatest", scale)?,
        scale,
    };
    a.next();
    Ok(generator)
}

/// Makes the words known to a state.
pub(crate) fn install(lua: &Lua, source: &Source) -> mlua::Result<()> {
    let globals = lua.globals();
    for (word, make) in WORDS.into_iter().chain(laws::WORDS) {
        let function = lua.create_function(move |lua, values: MultiValue| {
            let mut arguments = Arguments { lua, word, values: values.into_iter().collect() };
            let generator = make(&mut arguments)?;
            arguments.done()?;
            keep(lua, generator)
        })?;
        globals.set(word, function)?;
    }
    lua.set_app_data(RefCell::new(Made::default()));
    let source = Arc::new(source.clone());
    let of = Arc::clone(&source);
    let parent = lua.create_function(move |lua, values: MultiValue| {
        let mut arguments = Arguments { lua, word: "parent", values: values.into_iter().collect() };
        let generator = laws::parent(&mut arguments, |a, function| kept(a, &of, function, Kind::Integer))?;
        arguments.done()?;
        keep(lua, generator)
    })?;
    globals.set("parent", parent)?;
    let derive = lua.create_function(move |lua, values: MultiValue| {
        let mut arguments = Arguments { lua, word: "derive", values: values.into_iter().collect() };
        keep(lua, derive(&mut arguments, &source)?)
    })?;
    globals.set("derive", derive)
}

/// Keeps a function that computes numbers or cells, for each thread to take it from its own state.
fn kept(
    a: &Arguments<'_>,
    source: &Arc<Source>,
    function: Function,
    kind: Kind,
) -> mlua::Result<Arc<dyn RowFunction>> {
    let Some(made) = a.lua.app_data_ref::<RefCell<Made>>() else {
        return Err(a.wrong("columns can be declared only in the file itself"));
    };
    let functions = &mut made.borrow_mut().functions;
    functions.push(function);
    let (source, index, word) = (Arc::clone(source), functions.len() - 1, a.word);
    Ok(Arc::new(LuaFunction { source, index, kind, word }))
}

/// `derive(kind, { inputs }, function(row, random, inputs…) … end)`; the inputs may be left out.
fn derive(a: &mut Arguments<'_>, source: &Arc<Source>) -> mlua::Result<Generator> {
    const KINDS: &str = "boolean, integer, float, text, date or timestamp";
    let kind = match &*a.text("the kind of value")? {
        "boolean" => Kind::Boolean,
        "integer" => Kind::Integer,
        "float" => Kind::Float,
        "text" => Kind::Text,
        "date" => Kind::Date,
        "timestamp" => Kind::Timestamp,
        other => return Err(a.wrong(&format!("the kind {other:?} is not known; allowed are {KINDS}"))),
    };
    let inputs = match a.values.front() {
        Some(Value::Function(_)) => Vec::new(),
        _ => a.texts("the columns")?,
    };
    let Value::Function(function) = a.next() else {
        return Err(a.wrong("a function(row, random, …) is expected as the last argument"));
    };
    a.done()?;
    Ok(Generator::Function { inputs, kind, function: kept(a, source, function, kind)? })
}

/// A function of the workload file that computes cells. Each thread runs the file in a state of its own and takes
/// the function from the same index.
struct LuaFunction {
    source: Arc<Source>,
    index: usize,
    kind: Kind,
    /// The word that it was given to.
    word: &'static str,
}

impl fmt::Debug for LuaFunction {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, function number {} of {}", self.word, self.index + 1, self.source.lua_name)
    }
}

impl RowFunction for LuaFunction {
    fn instance(&self) -> Result<Box<dyn CellFunction>, Error> {
        let wrong = |message: String| Error::other(message);
        let lua = sandbox::state().map_err(|error| wrong(error.to_string()))?;
        let declared = laws::bar_math_random(&lua).map_err(|error| wrong(describe(&error)))?;
        let patience = Patience::of(&self.source);
        define::run(&self.source, &lua, patience).map_err(|error| wrong(error.to_string()))?;
        declared.set(true);
        let since = define::watch_calls(&lua, self.source.limit).map_err(|error| wrong(describe(&error)))?;
        let function = lua
            .app_data_ref::<RefCell<Made>>()
            .and_then(|derived| derived.borrow().functions.get(self.index).cloned())
            .ok_or_else(|| wrong(format!("{self:?} is gone: the file does not declare the same twice")))?;
        let draws: Rc<RefCell<Option<Draws>>> = Rc::default();
        let source = Rc::clone(&draws);
        let random = lua
            .create_function(move |lua, (low, high, more): (Option<f64>, Option<f64>, Variadic<Value>)| {
                if !more.is_empty() {
                    return Err(at(lua, "random takes 2 arguments at most"));
                }
                let uniform = source.borrow_mut().as_mut().map_or(0.0, Draws::unit);
                Ok(match (low, high) {
                    (Some(low), Some(high)) => (low + uniform * (high - low + 1.0)).floor().min(high),
                    (Some(high), None) => (1.0 + uniform * high).floor().min(high),
                    _ => uniform,
                })
            })
            .map_err(|error| wrong(describe(&error)))?;
        Ok(Box::new(LuaCell {
            function,
            random,
            draws,
            since,
            kind: self.kind,
            word: self.word,
            text: Vec::new(),
            lua,
        }))
    }
}

struct LuaCell {
    function: Function,
    /// The function's `random` argument, and what it draws from: the cell's own numbers.
    random: Function,
    draws: Rc<RefCell<Option<Draws>>>,
    /// Since when the present call goes on, once that was looked at.
    since: Rc<std::cell::Cell<Option<Nanos>>>,
    kind: Kind,
    word: &'static str,
    text: Vec<u8>,
    lua: Lua,
}

impl LuaCell {
    fn input(&self, value: Cell<'_>) -> mlua::Result<Value> {
        Ok(match value {
            Cell::Null => Value::Nil,
            Cell::Bool(value) => Value::Boolean(value),
            Cell::Int(value) => Value::Number(value as f64),
            Cell::Float(value) => Value::Number(value),
            Cell::Decimal { units, scale } => Value::Number(units as f64 / 10_f64.powi(scale.into())),
            Cell::Numeric(text) => Value::Number(text.parse().unwrap_or(f64::NAN)),
            Cell::Text(text) | Cell::Json(text) | Cell::Bytes(text) => {
                Value::String(self.lua.create_string(text)?)
            }
            Cell::Uuid(uuid) => Value::String(self.lua.create_string(uuid)?),
            Cell::Date(days) => Value::Number(f64::from(days) * 86_400.0),
            Cell::Timestamp(micros) | Cell::Time(micros) => Value::Number(micros as f64 / 1e6),
            Cell::Unsigned(value) => Value::Number(value as f64),
        })
    }

    fn run(&mut self, row: u64, draws: Draws, inputs: &Params) -> mlua::Result<Value> {
        self.since.set(None);
        *self.draws.borrow_mut() = Some(draws);
        let mut arguments = vec![Value::Number(row as f64), Value::Function(self.random.clone())];
        for input in inputs.iter() {
            arguments.push(self.input(input)?);
        }
        self.function.call(MultiValue::from_vec(arguments))
    }
}

impl CellFunction for LuaCell {
    fn call(&mut self, row: u64, draws: Draws, inputs: &Params) -> Result<Cell<'_>, Error> {
        let value = self.run(row, draws, inputs).map_err(|error| Error::other(describe(&error)))?;
        let number = number(&value);
        Ok(match (self.kind, value) {
            (_, Value::Nil) => Cell::Null,
            (Kind::Boolean, Value::Boolean(value)) => Cell::Bool(value),
            (Kind::Text, Value::String(text)) => {
                self.text.clear();
                self.text.extend_from_slice(&text.as_bytes());
                Cell::Text(&self.text)
            }
            (Kind::Integer, _) if let Some(number) = number.filter(|number| number.fract() == 0.0) => {
                Cell::Int(number as i64)
            }
            (Kind::Float, _) if let Some(number) = number => Cell::Float(number),
            (Kind::Date, _) if let Some(seconds) = number => Cell::Date((seconds / 86_400.0).floor() as i32),
            (Kind::Timestamp, _) if let Some(seconds) = number => {
                Cell::Timestamp((seconds * 1e6).round() as i64)
            }
            (kind, other) => return Err(Error::other(unfit(&self.function, self.word, kind, &other))),
        })
    }
}

/// What is said of a function that gave a value of another kind.
#[cold]
fn unfit(function: &Function, word: &str, kind: Kind, given: &Value) -> String {
    let info = function.info();
    let (file, line) = (info.short_src.unwrap_or_default(), info.line_defined.unwrap_or_default());
    let given = match given {
        Value::Number(number) => format!("the number {number}"),
        other => format!("a {}", other.type_name()),
    };
    let wanted = if word == "parent" {
        "a number of children is wanted".to_owned()
    } else {
        format!("the column is {kind}")
    };
    format!("{file}:{line}: {word}: the function gave {given}, where {wanted}")
}
