//! `tx:query(text)`: a statement whose SQL is made while the workload runs, in the place of a name.
//!
//! Such a statement is an object. The same text is the same object as long as anybody has it, so that it is read once.

use std::cell::Cell;
use std::ffi::{CStr, c_int, c_void};
use std::ptr;
use std::rc::Rc;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Command, Statement, Want};

use super::lists;
use super::names::{SEEN, place};
use super::tx::{border, by_index, yield_call};
use super::values::values;
use super::{Message, Results, at_most, context, finish, set, shared, sheltered, surplus, text, type_name};
use crate::vm::{Call, Context, MADE, Shape, Shared};

/// References into the registry: the metatable of such objects, and the objects that there are, by their texts.
#[derive(Clone, Copy)]
pub(crate) struct Queries {
    metatable: c_int,
    known: c_int,
}

impl Queries {
    pub(crate) const NONE: Self = Self { metatable: ffi::LUA_NOREF, known: ffi::LUA_NOREF };
}

/// The objects that were called last, by their addresses: to look at a metatable takes longer. An address is forgotten
/// when its object goes.
pub(crate) struct Seen([Cell<*const c_void>; SEEN]);

impl Default for Seen {
    fn default() -> Self {
        Self([const { Cell::new(ptr::null()) }; SEEN])
    }
}

impl Seen {
    #[inline]
    fn of(&self, object: *const c_void) -> &Cell<*const c_void> {
        &self.0[place(object)]
    }
}

/// What an object holds.
enum Query {
    Statement(Rc<Statement>),
    /// The text begins or ends a transaction.
    Border(Command),
}

/// How much of its text a statement is called by.
const NAME: usize = 40;

impl Query {
    fn read(text: &[u8], shared: &Shared) -> Result<Self, Message> {
        let sql = std::str::from_utf8(text).map_err(|_| "tx:query: the SQL is not UTF-8".to_owned())?;
        let sql = sql.trim_matches(|next: char| next == ';' || next.is_whitespace());
        if sql.is_empty() {
            return Err("tx:query: the text has no SQL".to_owned());
        }
        if sql.contains('\0') {
            return Err("tx:query: the SQL has a zero byte, which no server takes".to_owned());
        }
        if let Some(command) = border_of(sql) {
            return Ok(Self::Border(command));
        }
        let mut name: String = sql.chars().take(NAME).collect();
        if name.len() < sql.len() {
            name.push('…');
        }
        Ok(Self::Statement(Rc::new(Statement::read(&name, sql, shared.lexer))))
    }
}

/// The command that a text is in other words: the engine has to know where a transaction begins and ends.
fn border_of(sql: &str) -> Option<Command> {
    const LONGEST: usize = 32;
    if sql.len() > LONGEST {
        return None;
    }
    let sql = sql.to_ascii_uppercase();
    let mut words = sql.split_whitespace();
    let first = words.next()?;
    let command = match first {
        "BEGIN" | "START" => Command::Begin,
        "COMMIT" | "END" => Command::Commit,
        "ROLLBACK" | "ABORT" => Command::Rollback,
        _ => return None,
    };
    let rest = words.next();
    let is_whole = match rest {
        Some("TRANSACTION") => true,
        Some("WORK") | None => first != "START",
        Some(_) => false,
    };
    (is_whole && words.next().is_none()).then_some(command)
}

/// The object at an index of the stack, and at an address.
#[inline]
unsafe fn at<'a>(l: *mut lua_State, shared: &Shared, at: c_int, object: *const c_void) -> Option<&'a Query> {
    // SAFETY: reading the stack, with room for two values; only objects made here have the metatable, and they live
    // while they are on the stack. Nothing else is where one was seen before that has gone; null is no object.
    unsafe {
        let seen = shared.seen.of(object);
        if seen.get() != object || object.is_null() {
            if !has_metatable(l, shared, at) {
                return None;
            }
            seen.set(object);
        }
        Some(&*object.cast::<Query>())
    }
}

/// Whether the value at an index of the stack has the metatable of the objects.
unsafe fn has_metatable(l: *mut lua_State, shared: &Shared, at: c_int) -> bool {
    // SAFETY: reading the stack, with room for two values.
    unsafe {
        if ffi::lua_type(l, at) != ffi::LUA_TUSERDATA || ffi::lua_getmetatable(l, at) == 0 {
            return false;
        }
        ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, shared.queries.get().metatable.into());
        let is_one = ffi::lua_rawequal(l, -1, -2) != 0;
        ffi::lua_pop(l, 2);
        is_one
    }
}

#[cold]
unsafe fn no_statement(l: *mut lua_State) -> Message {
    // SAFETY: reading the stack.
    let kind = unsafe { type_name(l, 2) };
    format!(
        "the name of a statement is expected, or what tx:query gives, not {kind}; write tx:exec(\"name\", …), with a colon"
    )
}

/// A call of a word of `tx` by what is not known as a name: `called` is where it is.
pub(super) unsafe fn call(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    shape: Shape,
    called: *const c_void,
) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        match at(l, shared, 2, called) {
            Some(Query::Statement(statement)) => ask(l, shared, context, shape, statement),
            Some(Query::Border(command)) => {
                if shape == Shape::Kept {
                    return Err(
                        "tx:send is for statements; tx:begin(), tx:commit() and tx:rollback() have no answer"
                            .to_owned(),
                    );
                }
                let top = ffi::lua_gettop(l);
                if top > 2 {
                    return Err(surplus(top - 2, "BEGIN, COMMIT and ROLLBACK", "no parameters"));
                }
                border(context, *command, 1)?;
                context.params.clear();
                let waits = *command != Command::Begin && shape != Shape::Nothing;
                let flush = waits || !context.pipelines;
                Ok(yield_call(l, context, Call { command: *command, want: Want::Count, flush, shape }))
            }
            None => by_name(l, shared, context, shape, called),
        }
    }
}

/// A call by a name for the first time, by one of a statement with lists, or by mistake.
#[cold]
unsafe fn by_name(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    shape: Shape,
    called: *const c_void,
) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        let name = text(l, 2).ok_or_else(|| no_statement(l))?;
        match sheltered(shared, || shared.statements.borrow_mut().find(name, called)) {
            Ok(index) => by_index(l, shared, context, shape, index),
            Err(message) => {
                let template = shared.lists.borrow().find(name).ok_or(message)?;
                ask(l, shared, context, shape, &template)
            }
        }
    }
}

/// Takes the values of a statement from the stack and leaves the call for the engine.
#[inline]
unsafe fn ask(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    shape: Shape,
    statement: &Rc<Statement>,
) -> Result<c_int, Message> {
    // SAFETY: as the helpers say.
    unsafe {
        let asked = sheltered(shared, || {
            if statement.has_lists() {
                return lists::take(l, shared, context, statement);
            }
            values(l, shared, context, statement.params(), statement.name().as_bytes())?;
            Ok(Rc::clone(statement))
        })?;
        context.query = Some(asked);
        Ok(yield_call(l, context, Call::new(MADE, shape, context.pipelines)))
    }
}

/// `tx:query(text)`.
pub(super) unsafe extern "C-unwind" fn query(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: called by Lua with room for six values. The object is one of ours from the moment on at which it has
        // the metatable, and holds a query from then on.
        unsafe {
            let shared = shared(l);
            context(shared)?;
            at_most(l, 2, "tx:query", "one text")?;
            let Some(sql) = text(l, 2) else {
                let kind = type_name(l, 2);
                return Err(format!(
                    "tx:query takes SQL as a text, not {kind}; write tx:query(\"SELECT …\"), with a colon"
                ));
            };
            let Queries { metatable, known } = shared.queries.get();
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, known.into());
            ffi::lua_pushvalue(l, 2);
            ffi::lua_rawget(l, -2);
            if ffi::lua_type(l, -1) != ffi::LUA_TNIL {
                return Ok(1);
            }
            ffi::lua_pop(l, 1);
            let object = ffi::lua_newuserdata(l, size_of::<Query>()).cast::<Query>();
            object.write(sheltered(shared, || Query::read(sql, shared))?);
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, metatable.into());
            ffi::lua_setmetatable(l, -2);
            ffi::lua_pushvalue(l, 2);
            ffi::lua_pushvalue(l, -2);
            ffi::lua_rawset(l, -4);
            Ok(1)
        }
    }
    // SAFETY: called by Lua.
    unsafe { finish(l, body(l)) }
}

/// Lua has done with an object.
unsafe extern "C-unwind" fn drop_query(l: *mut lua_State) -> Results {
    // SAFETY: called by Lua, once, with an object of this metatable, which nobody else reaches.
    unsafe {
        let object = ffi::lua_touserdata(l, 1);
        let seen = shared(l).seen.of(object);
        if ptr::eq(seen.get(), object) {
            seen.set(ptr::null());
        }
        object.cast::<Query>().drop_in_place();
    }
    0
}

unsafe extern "C-unwind" fn shown(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: called by Lua; the text is copied to its stack.
        unsafe {
            let words = match at(l, shared(l), 1, ffi::lua_touserdata(l, 1)) {
                Some(Query::Statement(statement)) => statement.name(),
                Some(Query::Border(Command::Begin)) => "BEGIN",
                Some(Query::Border(Command::Commit)) => "COMMIT",
                Some(Query::Border(_)) => "ROLLBACK",
                None => return Err("this is no statement".to_owned()),
            };
            ffi::lua_pushlstring(l, words.as_ptr().cast(), words.len());
            Ok(1)
        }
    }
    // SAFETY: called by Lua.
    unsafe { finish(l, body(l)) }
}

/// Makes the metatable of the objects, and the weak table of those that there are.
pub(crate) unsafe fn make_queries(l: *mut lua_State, shared: *const Shared) {
    const WEAK: &CStr = c"v";
    // SAFETY: the caller has room on the stack, and the pointer is valid.
    unsafe {
        ffi::lua_createtable(l, 0, 3);
        set(l, shared, c"__gc", drop_query);
        set(l, shared, c"__tostring", shown);
        ffi::lua_pushboolean(l, 0);
        ffi::lua_setfield(l, -2, c"__metatable".as_ptr());
        let metatable = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        ffi::lua_createtable(l, 0, 0);
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_pushstring(l, WEAK.as_ptr());
        ffi::lua_setfield(l, -2, c"__mode".as_ptr());
        ffi::lua_setmetatable(l, -2);
        let known = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        (*shared).queries.set(Queries { metatable, known });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_begins_or_ends_a_transaction_is_known_in_any_words() {
        for (sql, command) in [
            ("begin", Some(Command::Begin)),
            ("START  transaction", Some(Command::Begin)),
            ("BEGIN WORK", Some(Command::Begin)),
            ("End", Some(Command::Commit)),
            ("COMMIT TRANSACTION", Some(Command::Commit)),
            ("rollback\nwork", Some(Command::Rollback)),
            ("ABORT", Some(Command::Rollback)),
            ("START", None),
            ("START WORK", None),
            ("BEGIN ISOLATION LEVEL SERIALIZABLE", None),
            ("ROLLBACK TO SAVEPOINT a", None),
            ("COMMIT PREPARED 'a'", None),
            ("SELECT 1", None),
        ] {
            assert_eq!(border_of(sql), command, "{sql}");
        }
    }
}
