//! What a transaction function can call: the C functions behind `tx`, `pick` and the fields of a row.
//!
//! See [`crate::vm`] for what keeps the pointers here valid. Every function follows one pattern: the work is done
//! in a function that returns a `Result`, so that nothing is left to drop when [`raise`] leaves by a Lua error.

use std::ffi::{CStr, CString, c_int, c_void};
use std::slice;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Command, Statement, Value, Want, calendar};

use crate::vm::{Call, Context, RowObject, Shape, Shared, wall_seconds};

/// An error for the workload's author, without its place in the file.
type Message = String;

/// The statements of a workload by name.
///
/// Lua keeps one copy of each text, so a name is first looked up by its address. An address may be used again for
/// another text once the first is collected, so the text is compared as well: names are short.
pub(crate) struct Names {
    known: Vec<String>,
    /// The names of each statement's parameters.
    params: Vec<Vec<CString>>,
    seen: [(*const u8, usize); 64],
}

impl Names {
    pub(crate) fn new(statements: &[Statement]) -> Self {
        let known = statements.iter().map(|statement| statement.name().to_owned()).collect();
        let params = statements.iter().map(|statement| {
            // A name in SQL is a word; it has no zero byte.
            statement.params().iter().map(|name| CString::new(name.as_str()).unwrap_or_default()).collect()
        });
        Self { known, params: params.collect(), seen: [(std::ptr::null(), 0); 64] }
    }

    #[inline]
    fn find(&mut self, name: &[u8]) -> Result<usize, Message> {
        let seen = &mut self.seen[(name.as_ptr() as usize >> 4) % 64];
        if seen.0 == name.as_ptr() && self.known[seen.1].as_bytes() == name {
            return Ok(seen.1);
        }
        let place = self.known.iter().position(|known| known.as_bytes() == name).ok_or_else(|| {
            let (name, known) = (String::from_utf8_lossy(name), self.known.join(", "));
            format!("no statement is called {name:?}; the statements are {known}")
        })?;
        *seen = (name.as_ptr(), place);
        Ok(place)
    }
}

/// Ends a C function: with its number of results, or by a Lua error that says where the workload called it.
unsafe fn finish(l: *mut lua_State, outcome: Result<c_int, Message>) -> c_int {
    match outcome {
        Ok(results) => results,
        Err(message) => {
            // SAFETY: `l` is running a C function, which has room for these values. The message is copied and
            // dropped before the error leaves this function.
            unsafe {
                ffi::luaL_where(l, 1);
                ffi::lua_pushlstring(l, message.as_ptr().cast(), message.len());
                drop(message);
                ffi::lua_concat(l, 2);
                raise(l)
            }
        }
    }
}

/// Raises the error on top of the stack.
unsafe fn raise(l: *mut lua_State) -> ! {
    // SAFETY: the caller has nothing left to drop.
    unsafe { ffi::lua_error(l) }
}

/// The message of a failed coroutine, with its traceback.
pub(crate) unsafe fn error_message(l: *mut lua_State) -> String {
    // SAFETY: the error lies on top of the stack of a dead coroutine, which still has room.
    unsafe {
        let message = text(l, -1).map_or_else(
            || "an error that is no text".to_owned(),
            |text| String::from_utf8_lossy(text).into_owned(),
        );
        ffi::luaL_traceback(l, l, std::ptr::null(), 0);
        let trace = text(l, -1).map(|text| String::from_utf8_lossy(text).into_owned()).unwrap_or_default();
        let trace = trace.replace("stack traceback:", "").replace("\n\t[C]: in ?", "");
        let calls: Vec<&str> = trace.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if calls.is_empty() { message } else { format!("{message}\n  in {}", calls.join("\n  in ")) }
    }
}

/// The text at a place of the stack; `None` where there is none. Numbers are left alone.
unsafe fn text<'a>(l: *mut lua_State, at: c_int) -> Option<&'a [u8]> {
    let mut length = 0;
    // SAFETY: Lua keeps the text while it is on the stack, and no caller keeps it longer.
    unsafe {
        if ffi::lua_type(l, at) != ffi::LUA_TSTRING {
            return None;
        }
        let start = ffi::lua_tolstring(l, at, &raw mut length);
        (!start.is_null()).then(|| slice::from_raw_parts(start.cast(), length))
    }
}

unsafe fn shared<'a>(l: *mut lua_State) -> &'a Shared {
    // SAFETY: the first upvalue of every function made here is the pointer to `Shared`, which outlives the state.
    unsafe { &*ffi::lua_touserdata(l, ffi::lua_upvalueindex(1)).cast::<Shared>() }
}

/// The session that runs.
unsafe fn context<'a>(shared: &Shared) -> Result<&'a mut Context, Message> {
    let context = shared.current.get();
    if context.is_null() {
        return Err("this can be called only from within a transaction".to_owned());
    }
    // SAFETY: it points at the context of the script that is resuming this coroutine, and nobody else uses that
    // until the coroutine yields or ends.
    Ok(unsafe { &mut *context })
}

unsafe fn number(l: *mut lua_State, at: c_int, what: &str) -> Result<f64, Message> {
    // SAFETY: reading the stack.
    unsafe {
        if ffi::lua_type(l, at) == ffi::LUA_TNUMBER {
            Ok(ffi::lua_tonumber(l, at))
        } else {
            Err(format!("{what} must be a number, not {}", type_name(l, at)))
        }
    }
}

unsafe fn type_name(l: *mut lua_State, at: c_int) -> String {
    // SAFETY: Lua's type names are static texts.
    unsafe { CStr::from_ptr(ffi::lua_typename(l, ffi::lua_type(l, at))).to_string_lossy().into_owned() }
}

// ---- tx --------------------------------------------------------------------------------------------------------

/// Leaves a call for the engine and yields.
unsafe fn yield_call(l: *mut lua_State, context: &mut Context, call: Call) -> c_int {
    context.call = Some(call);
    // SAFETY: a C function may return what lua_yield returns; nothing is passed.
    unsafe { ffi::lua_yield(l, 0) }
}

/// `tx:exec(name, …)` and its kin: reads the statement's name and parameters.
#[inline]
unsafe fn statement(l: *mut lua_State, shape: Shape) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        let Some(name) = text(l, 2) else {
            return Err(format!(
                "the name of a statement is expected, not {}; write tx:exec(…), with a colon",
                type_name(l, 2)
            ));
        };
        let place = shared.statements.borrow_mut().find(name)?;
        context.params.clear();
        let top = ffi::lua_gettop(l);
        if top == 3 && ffi::lua_type(l, 3) == ffi::LUA_TTABLE {
            named_parameters(l, shared, context, place, name)?;
        } else {
            for at in 3..=top {
                context.params.push(parameter(l, at, name)?);
            }
        }
        let want = if matches!(shape, Shape::One | Shape::List) { Want::Rows } else { Want::Count };
        let flush = shape != Shape::Nothing || !shared.pipeline;
        Ok(yield_call(l, context, Call { command: Command::Execute(place), want, flush, shape }))
    }
}

/// Takes a statement's parameters by their names from the table at place 3.
unsafe fn named_parameters(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    statement: usize,
    name: &[u8],
) -> Result<(), Message> {
    let names = shared.statements.borrow();
    for param in &names.params[statement] {
        // SAFETY: reading the table; the value is copied before it leaves the stack.
        unsafe {
            ffi::lua_getfield(l, 3, param.as_ptr());
            context.params.push(parameter(l, 4, name)?);
            ffi::lua_settop(l, 3);
        }
    }
    // What the statement does not know is a slip of the pen.
    // SAFETY: walking the table; each key is left on the stack for the next step, as lua_next wants it.
    unsafe {
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, 3) != 0 {
            ffi::lua_settop(l, 4);
            let key = text(l, 4).unwrap_or(b"?");
            if !names.params[statement].iter().any(|param| param.as_bytes() == key) {
                let known: Vec<_> =
                    names.params[statement].iter().map(|param| param.to_string_lossy()).collect();
                let (name, key, known) =
                    (String::from_utf8_lossy(name), String::from_utf8_lossy(key), known.join(", "));
                return Err(format!("{name} has no parameter :{key}; it has {known}"));
            }
        }
    }
    Ok(())
}

#[inline]
unsafe fn parameter<'a>(l: *mut lua_State, at: c_int, statement: &[u8]) -> Result<Value<'a>, Message> {
    // SAFETY: reading the stack; a text is copied by the caller before the stack changes.
    unsafe {
        Ok(match ffi::lua_type(l, at) {
            ffi::LUA_TNUMBER => {
                let number = ffi::lua_tonumber(l, at);
                let whole = number as i64;
                // Whole numbers up to 2^53 are exact in Lua, and are meant as whole numbers.
                if whole as f64 == number && whole.unsigned_abs() <= 1 << 53 {
                    Value::Int(whole)
                } else {
                    Value::Float(number)
                }
            }
            ffi::LUA_TSTRING => Value::Text(text(l, at).unwrap_or_default()),
            ffi::LUA_TNIL => Value::Null,
            ffi::LUA_TBOOLEAN => Value::Bool(ffi::lua_toboolean(l, at) != 0),
            _ => {
                let (statement, kind) = (String::from_utf8_lossy(statement), type_name(l, at));
                return Err(format!(
                    "parameter {} of {statement} is a {kind}; allowed are nil, numbers, texts and booleans",
                    at - 2
                ));
            }
        })
    }
}

unsafe extern "C-unwind" fn exec(l: *mut lua_State) -> c_int {
    // SAFETY: called by Lua, as all functions of this kind below.
    unsafe { finish(l, statement(l, Shape::Affected)) }
}

unsafe extern "C-unwind" fn queue(l: *mut lua_State) -> c_int {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::Nothing)) }
}

unsafe extern "C-unwind" fn one(l: *mut lua_State) -> c_int {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::One)) }
}

unsafe extern "C-unwind" fn rows(l: *mut lua_State) -> c_int {
    // SAFETY: see `exec`.
    unsafe { finish(l, statement(l, Shape::List)) }
}

unsafe fn control(l: *mut lua_State, command: Command) -> Result<c_int, Message> {
    // SAFETY: see `exec`.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        context.params.clear();
        context.aborted = command == Command::Rollback;
        let flush = command != Command::Begin || !shared.pipeline;
        Ok(yield_call(l, context, Call { command, want: Want::Count, flush, shape: Shape::Nothing }))
    }
}

unsafe extern "C-unwind" fn begin(l: *mut lua_State) -> c_int {
    // SAFETY: see `exec`.
    unsafe { finish(l, control(l, Command::Begin)) }
}

unsafe extern "C-unwind" fn commit(l: *mut lua_State) -> c_int {
    // SAFETY: see `exec`.
    unsafe { finish(l, control(l, Command::Commit)) }
}

unsafe extern "C-unwind" fn rollback(l: *mut lua_State) -> c_int {
    // SAFETY: see `exec`.
    unsafe { finish(l, control(l, Command::Rollback)) }
}

/// `tx:tally(name, amount)`.
unsafe extern "C-unwind" fn tally(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let name = text(l, 2)
                .ok_or_else(|| format!("a tally's name must be a text, not {}", type_name(l, 2)))?;
            let amount = number(l, 3, "the amount of a tally")?;
            let mut names = shared.tally_names.borrow_mut();
            let place = names.iter().position(|known| known.as_bytes() == name).unwrap_or_else(|| {
                names.push(String::from_utf8_lossy(name).into_owned());
                names.len() - 1
            });
            context.tallies.push((place, amount));
            Ok(0)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `tx:inserted(table, key)`.
unsafe extern "C-unwind" fn inserted(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let table = table(l, 2, shared)?;
            let key = number(l, 3, "a key")?;
            context.arrivals.push((table, key as i64));
            Ok(0)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `tx.now`, `tx.session`, `tx.attempt`: what `tx` holds beside its functions.
unsafe extern "C-unwind" fn tx_field(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let value = match text(l, 2) {
                Some(b"now") => *context.now.get_or_insert_with(wall_seconds),
                Some(b"session") => context.session as f64,
                Some(b"attempt") => f64::from(context.attempt),
                name => {
                    let name = String::from_utf8_lossy(name.unwrap_or(b"?")).into_owned();
                    return Err(format!(
                        "tx has no {name:?}; it has begin, commit, rollback, exec, queue, one, rows, tally, inserted, \
                         now, session, attempt"
                    ));
                }
            };
            ffi::lua_pushnumber(l, value);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

type Function = unsafe extern "C-unwind" fn(*mut lua_State) -> c_int;

/// Puts a function into the table on top of the stack.
unsafe fn set(l: *mut lua_State, shared: *const Shared, name: &CStr, function: Function) {
    // SAFETY: a table is on top, and there is room for two values.
    unsafe {
        push_function(l, shared, function);
        ffi::lua_setfield(l, -2, name.as_ptr());
    }
}

unsafe fn push_function(l: *mut lua_State, shared: *const Shared, function: Function) {
    // SAFETY: there is room for two values.
    unsafe {
        ffi::lua_pushlightuserdata(l, shared.cast_mut().cast::<c_void>());
        ffi::lua_pushcclosure(l, function, 1);
    }
}

/// Gives the table on top of the stack a metatable whose `__index` is a function, hidden from the workload.
unsafe fn set_index(l: *mut lua_State, shared: *const Shared, index: Function) {
    // SAFETY: a table is on top, and there is room for three values.
    unsafe {
        ffi::lua_createtable(l, 0, 2);
        set(l, shared, c"__index", index);
        ffi::lua_pushboolean(l, 0);
        ffi::lua_setfield(l, -2, c"__metatable".as_ptr());
        ffi::lua_setmetatable(l, -2);
    }
}

/// Pushes `tx`.
pub(crate) unsafe fn push_tx(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        ffi::lua_createtable(l, 0, 10);
        for (name, function) in [
            (c"begin", begin as Function),
            (c"commit", commit),
            (c"rollback", rollback),
            (c"exec", exec),
            (c"queue", queue),
            (c"one", one),
            (c"rows", rows),
            (c"tally", tally),
            (c"inserted", inserted),
        ] {
            set(l, shared, name, function);
        }
        set_index(l, shared, tx_field);
    }
}

// ---- pick ------------------------------------------------------------------------------------------------------

/// The table named at a place of the stack.
unsafe fn table(l: *mut lua_State, at: c_int, shared: &Shared) -> Result<usize, Message> {
    // SAFETY: see `exec`.
    let name = unsafe { text(l, at) }.unwrap_or_default();
    shared.tables.iter().position(|(known, _)| known.as_bytes() == name).ok_or_else(|| {
        let known: Vec<&str> = shared.tables.iter().map(|(name, _)| name.as_str()).collect();
        let (name, known) = (String::from_utf8_lossy(name), known.join(", "));
        format!("no table with a serial key is called {name:?}; such tables are {known}")
    })
}

/// `pick.orders()`: a key of the table whose place is the second upvalue, as the access distribution has it.
unsafe extern "C-unwind" fn pick_key(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`; the second upvalue was set with the function.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let place = ffi::lua_tonumber(l, ffi::lua_upvalueindex(2)) as usize;
            let (name, keys) = &shared.tables[place];
            let key = shared.pickers.borrow_mut()[place].pick(keys, &mut context.random);
            ffi::lua_pushnumber(l, key.ok_or_else(|| format!("the table {name} is empty"))? as f64);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.once(table)`: a key that was never handed out before, or nil.
unsafe extern "C-unwind" fn pick_once(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            context(shared)?;
            let place = table(l, 1, shared)?;
            match shared.tables[place].1.once() {
                Some(key) => ffi::lua_pushnumber(l, key as f64),
                None => ffi::lua_pushnil(l),
            }
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// Reads two bounds, the first not above the second.
unsafe fn bounds(l: *mut lua_State, what: &str) -> Result<(f64, f64), Message> {
    // SAFETY: see `exec`.
    let (low, high) = unsafe { (number(l, 1, "the lower bound")?, number(l, 2, "the upper bound")?) };
    if low <= high {
        Ok((low, high))
    } else {
        Err(format!("{what}: the lower bound {low} is above the upper, {high}"))
    }
}

/// `pick.integer(low, high)`: a whole number, both bounds included.
unsafe extern "C-unwind" fn pick_integer(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let (low, high) = bounds(l, "pick.integer")?;
            ffi::lua_pushnumber(l, context.random.between(low as i64, high as i64) as f64);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.number(low, high)`: a number, the upper bound excluded; `pick.number(low, high, digits)`: rounded to a
/// number of digits behind the point.
unsafe extern "C-unwind" fn pick_number(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let (low, high) = bounds(l, "pick.number")?;
            let mut value = low + context.random.uniform() * (high - low);
            if ffi::lua_gettop(l) > 2 {
                let power = 10_f64.powi(number(l, 3, "the number of digits")? as i32);
                value = (value * power).round() / power;
            }
            ffi::lua_pushnumber(l, value);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.chance(p)`: true with the probability p.
unsafe extern "C-unwind" fn pick_chance(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let probability = number(l, 1, "a probability")?;
            ffi::lua_pushboolean(l, c_int::from(context.random.uniform() < probability));
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.choice(list)`: one of the list's values.
unsafe extern "C-unwind" fn pick_choice(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            if ffi::lua_type(l, 1) != ffi::LUA_TTABLE {
                return Err(format!("pick.choice takes a list, not {}", type_name(l, 1)));
            }
            let count = ffi::lua_objlen(l, 1) as u64;
            if count == 0 {
                return Err("pick.choice was given an empty list".to_owned());
            }
            ffi::lua_rawgeti(l, 1, context.random.below(count) as ffi::lua_Integer + 1);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.letters(low, high)`: random small letters, their number between two bounds.
unsafe extern "C-unwind" fn pick_letters(l: *mut lua_State) -> c_int {
    const LONGEST: f64 = 65_536.0;
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let (low, high) = bounds(l, "pick.letters")?;
            if low < 0.0 || high > LONGEST {
                return Err(format!("pick.letters makes texts of 0 to {LONGEST} letters"));
            }
            let length = context.random.between(low as i64, high as i64);
            let letters: Vec<u8> = (0..length).map(|_| b'a' + context.random.below(26) as u8).collect();
            ffi::lua_pushlstring(l, letters.as_ptr().cast(), letters.len());
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// The helpers of `pick`, which no table may be called.
pub(crate) const PICK_HELPERS: [&str; 6] = ["once", "integer", "number", "chance", "choice", "letters"];

unsafe extern "C-unwind" fn pick_field(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let known: Vec<&str> = shared(l).tables.iter().map(|(name, _)| name.as_str()).collect();
            let name = String::from_utf8_lossy(text(l, 2).unwrap_or(b"?"));
            let (tables, helpers) = (known.join(", "), PICK_HELPERS.join(", "));
            Err(format!("pick has no {name:?}; it has the tables with a serial key ({tables}) and {helpers}"))
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// Pushes `pick`.
pub(crate) unsafe fn push_pick(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack, and the pointer is valid.
    unsafe {
        let tables = &(*shared).tables;
        ffi::lua_createtable(l, 0, (tables.len() + PICK_HELPERS.len()) as c_int);
        for (name, function) in [
            (c"once", pick_once as Function),
            (c"integer", pick_integer),
            (c"number", pick_number),
            (c"chance", pick_chance),
            (c"choice", pick_choice),
            (c"letters", pick_letters),
        ] {
            set(l, shared, name, function);
        }
        for (place, (name, _)) in tables.iter().enumerate() {
            ffi::lua_pushlstring(l, name.as_ptr().cast(), name.len());
            ffi::lua_pushlightuserdata(l, shared.cast_mut().cast::<c_void>());
            ffi::lua_pushnumber(l, place as f64);
            ffi::lua_pushcclosure(l, pick_key, 2);
            ffi::lua_rawset(l, -3);
        }
        set_index(l, shared, pick_field);
    }
}

/// `math.random`, drawn from the session's generator so that a run can be repeated.
unsafe extern "C-unwind" fn math_random(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            let (low, high) = match ffi::lua_gettop(l) {
                0 => {
                    ffi::lua_pushnumber(l, context.random.uniform());
                    return Ok(1);
                }
                1 => (1.0, number(l, 1, "the upper bound")?),
                _ => bounds(l, "math.random")?,
            };
            if low > high {
                return Err(format!("math.random: the interval up to {high} is empty"));
            }
            ffi::lua_pushnumber(l, context.random.between(low as i64, high as i64) as f64);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// Puts the session's generator in the place of Lua's, whose seed the process shares.
pub(crate) unsafe fn replace_math_random(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        ffi::lua_getglobal(l, c"math".as_ptr());
        set(l, shared, c"random", math_random);
        ffi::lua_pop(l, 1);
    }
}

// ---- rows ------------------------------------------------------------------------------------------------------

/// `row.column`, `row[1]`.
unsafe extern "C-unwind" fn row_field(l: *mut lua_State) -> c_int {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: only rows have this metatable, and it is hidden; for the rest see `exec`.
        unsafe {
            let row = &*ffi::lua_touserdata(l, 1).cast::<RowObject>();
            let Some(context) = shared(l).context_of(row) else {
                return Err("a row can be used only within the transaction that read it".to_owned());
            };
            let (result, at) = (row.result.into(), row.row as usize);
            let value = match text(l, 2) {
                Some(name) => {
                    let name = std::str::from_utf8(name).unwrap_or_default();
                    context.rows.named(result, at, name)
                }
                None => {
                    let place = number(l, 2, "the place of a column")?;
                    context.rows.value(result, at, (place as usize).wrapping_sub(1))
                }
            };
            push_value(l, value.ok_or_else(|| no_column(l, context, result))?);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

unsafe fn no_column(
    l: *mut lua_State,
    context: &Context,
    result: nephoscope_drivers::ResultIndex,
) -> Message {
    // SAFETY: reading the stack.
    let name = unsafe {
        text(l, 2).map_or_else(
            || ffi::lua_tonumber(l, 2).to_string(),
            |name| String::from_utf8_lossy(name).into_owned(),
        )
    };
    let columns = context.rows.columns(result).map(|columns| columns.columns.as_slice()).unwrap_or_default();
    let names: Vec<&str> = columns.iter().map(|column| &*column.name).collect();
    format!("the row has no column {name}; its columns are {}", names.join(", "))
}

#[inline]
unsafe fn push_value(l: *mut lua_State, value: Value<'_>) {
    // SAFETY: a C function has room for a result.
    unsafe {
        let push_text = |text: &[u8]| {
            ffi::lua_pushlstring(l, text.as_ptr().cast(), text.len());
        };
        match value {
            Value::Null => ffi::lua_pushnil(l),
            Value::Bool(value) => ffi::lua_pushboolean(l, c_int::from(value)),
            Value::Int(value) => ffi::lua_pushnumber(l, value as f64),
            Value::Float(value) => ffi::lua_pushnumber(l, value),
            Value::Decimal { units, scale } => {
                ffi::lua_pushnumber(l, units as f64 / 10_f64.powi(scale.into()));
            }
            Value::Numeric(text) => ffi::lua_pushnumber(l, text.parse().unwrap_or(f64::NAN)),
            Value::Timestamp(micros) => ffi::lua_pushnumber(l, micros as f64 / 1e6),
            Value::Text(bytes) | Value::Json(bytes) | Value::Bytes(bytes) => push_text(bytes),
            Value::Date(days) => push_text(calendar::format_date(days.into()).as_bytes()),
            Value::Uuid(uuid) => push_text(uuid_text(uuid).as_bytes()),
        }
    }
}

fn uuid_text(uuid: [u8; 16]) -> String {
    let mut text = String::with_capacity(36);
    for (at, byte) in uuid.iter().enumerate() {
        if matches!(at, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.extend([byte >> 4, byte & 15].map(|digit| char::from_digit(digit.into(), 16).unwrap_or('0')));
    }
    text
}

/// Pushes the metatable of rows.
pub(crate) unsafe fn push_row_metatable(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        ffi::lua_createtable(l, 0, 2);
        set(l, shared, c"__index", row_field);
        ffi::lua_pushboolean(l, 0);
        ffi::lua_setfield(l, -2, c"__metatable".as_ptr());
    }
}
