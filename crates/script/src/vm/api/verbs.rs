//! `tx:read`, `tx:scan`, `tx:insert`, `tx:update`, `tx:delete`: the rows of a table by their key.
//!
//! The verbs for all fields, and for one, are statements like any other; what else is asked for is made once.

use std::ffi::c_int;
use std::rc::Rc;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{Action, Command, Statement, Want};

use super::tx::yield_call;
use super::values::parameter;
use super::{Message, Results, at_most, context, finish, shared, sheltered, text, type_name};
use crate::statements::verb_statement;
use crate::vm::{Call, Context, Shape, Shared};

/// The most statements that are kept for other fields than one or all.
const MOST: usize = 256;

/// The tables with a key.
pub(crate) struct Verbs {
    tables: Vec<Keyed>,
    made: Vec<Made>,
}

/// A table with a key.
struct Keyed {
    name: String,
    key: String,
    fields: Vec<String>,
    /// The registry's reference to the list of the fields' names.
    names: c_int,
    /// The statement of each action for all fields.
    whole: [usize; Action::ALL.len()],
    /// The statements that read and that update one field, by the field.
    single: [Vec<usize>; 2],
}

/// A statement for some fields.
struct Made {
    table: usize,
    action: Action,
    fields: Vec<usize>,
    statement: Rc<Statement>,
}

/// Which fields a call is about.
enum Fields {
    All,
    One(usize),
    Some(Vec<usize>),
}

impl Verbs {
    /// The tables whose verbs are among the statements.
    pub(crate) fn new(statements: &[Statement]) -> Self {
        let inserts =
            statements.iter().filter_map(Statement::verb).filter(|verb| verb.action == Action::Insert);
        let keyed = inserts.map(|of| {
            let place = |action, fields: &[String]| {
                let is_it = |one: &Statement| {
                    one.verb().is_some_and(|verb| {
                        (verb.action, &verb.table) == (action, &of.table)
                            && (action == Action::Delete || verb.fields == fields)
                    })
                };
                statements.iter().position(is_it).unwrap_or_default()
            };
            let each =
                |action| of.fields.iter().map(|field| place(action, std::slice::from_ref(field))).collect();
            Keyed {
                name: of.table.clone(),
                key: of.key.clone(),
                fields: of.fields.clone(),
                names: ffi::LUA_NOREF,
                whole: Action::ALL.map(|action| place(action, &of.fields)),
                single: [each(Action::Read), each(Action::Update)],
            }
        });
        Self { tables: keyed.collect(), made: Vec::new() }
    }

    /// The table named at index 2 of the stack.
    unsafe fn table(&self, l: *mut lua_State) -> Result<usize, Message> {
        // SAFETY: reading the stack.
        unsafe {
            let name = text(l, 2);
            let found = self.tables.iter().position(|table| Some(table.name.as_bytes()) == name);
            found.ok_or_else(|| self.unknown(&name.map_or_else(|| type_name(l, 2), shown)))
        }
    }

    #[cold]
    fn unknown(&self, given: &str) -> Message {
        let known: Vec<&str> = self.tables.iter().map(|table| &*table.name).collect();
        if known.is_empty() {
            return "no table has a key: w:table(name, { key = \"column\", … }) says which column it is"
                .to_owned();
        }
        format!("no table with a key is called {given}; such tables are {}", known.join(", "))
    }

    /// The statement for some fields of a table: the same one as long as it is kept.
    #[cold]
    fn made(&mut self, table: usize, action: Action, fields: Vec<usize>) -> Rc<Statement> {
        let is_it = |made: &&Made| (made.table, made.action) == (table, action) && made.fields == fields;
        if let Some(made) = self.made.iter().find(is_it) {
            return Rc::clone(&made.statement);
        }
        let of = &self.tables[table];
        let names: Vec<String> = fields.iter().map(|field| of.fields[*field].clone()).collect();
        let statement = Rc::new(verb_statement(action, &of.name, &of.key, &names, false));
        if self.made.len() >= MOST {
            self.made.clear();
        }
        self.made.push(Made { table, action, fields, statement: Rc::clone(&statement) });
        statement
    }
}

fn shown(name: &[u8]) -> String {
    format!("{:?}", String::from_utf8_lossy(name))
}

impl Keyed {
    /// The field named at an index of the stack.
    unsafe fn field(&self, l: *mut lua_State, at: c_int) -> Result<usize, Message> {
        // SAFETY: reading the stack.
        unsafe {
            let name = text(l, at);
            let found = self.fields.iter().position(|field| Some(field.as_bytes()) == name);
            found.ok_or_else(|| {
                let given = name.map_or_else(|| type_name(l, at), shown);
                format!("{} has no field {given}; its fields are {}", self.name, self.fields.join(", "))
            })
        }
    }

    /// The fields that are to be read: none is said for all, or one, or a list.
    unsafe fn wanted(&self, l: *mut lua_State, at: c_int) -> Result<Fields, Message> {
        // SAFETY: reading the stack, with room for a value.
        unsafe {
            match ffi::lua_type(l, at) {
                ffi::LUA_TNONE | ffi::LUA_TNIL => return Ok(Fields::All),
                ffi::LUA_TTABLE => {}
                _ => return Ok(Fields::One(self.field(l, at)?)),
            }
            let count = ffi::lua_objlen(l, at);
            let mut fields = Vec::with_capacity(count.min(self.fields.len()));
            for place in 1..=count {
                ffi::lua_rawgeti(l, at, place as ffi::lua_Integer);
                let field = self.field(l, ffi::lua_gettop(l))?;
                ffi::lua_pop(l, 1);
                if fields.contains(&field) {
                    return Err(format!("the field {:?} is asked for twice", self.fields[field]));
                }
                fields.push(field);
            }
            match fields.as_slice() {
                [] => Err("the list of fields is empty; leave it out for all fields".to_owned()),
                [one] => Ok(Fields::One(*one)),
                _ => Ok(Fields::Some(fields)),
            }
        }
    }

    /// The fields that the table at index 4 gives values for.
    unsafe fn given(&self, l: *mut lua_State) -> Result<Fields, Message> {
        // SAFETY: walking the table; each key is left on the stack for the next step, as lua_next wants it.
        unsafe {
            if ffi::lua_type(l, 4) != ffi::LUA_TTABLE {
                let kind = type_name(l, 4);
                return Err(format!(
                    "values by their fields are expected, {{ {} = … }}, not {kind}",
                    self.fields[0]
                ));
            }
            let (mut count, mut first) = (0, 0);
            ffi::lua_pushnil(l);
            while ffi::lua_next(l, 4) != 0 {
                ffi::lua_settop(l, 5);
                let field = self.field(l, 5)?;
                first = if count == 0 { field } else { first };
                count += 1;
            }
            match count {
                0 => Err(format!("no value is given; the fields are {}", self.fields.join(", "))),
                _ if count == self.fields.len() => Ok(Fields::All),
                1 => Ok(Fields::One(first)),
                _ => {
                    let is_given = |field: &usize| {
                        ffi::lua_rawgeti(l, 5, *field as ffi::lua_Integer + 1);
                        ffi::lua_rawget(l, 4);
                        let is_given = ffi::lua_type(l, -1) != ffi::LUA_TNIL;
                        ffi::lua_settop(l, 5);
                        is_given
                    };
                    ffi::lua_settop(l, 4);
                    ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, self.names.into());
                    let fields = (0..self.fields.len()).filter(is_given).collect();
                    ffi::lua_settop(l, 4);
                    Ok(Fields::Some(fields))
                }
            }
        }
    }

    /// Takes a value of the table at index 4 as a parameter; the fields' names are at index 5.
    unsafe fn take(
        &self,
        l: *mut lua_State,
        shared: &Shared,
        context: &mut Context,
        field: usize,
    ) -> Result<(), Message> {
        // SAFETY: reading the stack, with room for a value; a text is copied before it leaves the stack.
        unsafe {
            ffi::lua_rawgeti(l, 5, field as ffi::lua_Integer + 1);
            ffi::lua_rawget(l, 4);
            let value = parameter(l, shared, 6).map_err(|kind| unfit(&self.fields[field], &kind))?;
            context.params.push(value);
            ffi::lua_settop(l, 5);
        }
        Ok(())
    }
}

#[cold]
fn unfit(what: &str, kind: &str) -> Message {
    format!("{what} is a {kind}; allowed are numbers, texts, booleans and tx.null")
}

/// Takes the key at index 3, or the count at 4, as a parameter.
unsafe fn take_plain(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    at: c_int,
) -> Result<(), Message> {
    let what = if at == 3 { "the key" } else { "the count" };
    // SAFETY: reading the stack.
    unsafe {
        if ffi::lua_type(l, at) <= ffi::LUA_TNIL {
            return Err(format!("{what} is missing"));
        }
        context.params.push(parameter(l, shared, at).map_err(|kind| unfit(what, &kind))?);
    }
    Ok(())
}

/// Takes the parameters from the stack; gives the place of the statement, or what it was made for.
unsafe fn take(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    action: Action,
) -> Result<usize, Message> {
    let mut verbs = shared.verbs.borrow_mut();
    context.params.clear();
    // SAFETY: as the helpers say.
    unsafe {
        let number = verbs.table(l)?;
        let table = &verbs.tables[number];
        let fields = match action {
            Action::Read => table.wanted(l, 4)?,
            Action::Scan => table.wanted(l, 5)?,
            Action::Delete => Fields::All,
            Action::Insert | Action::Update => table.given(l)?,
        };
        if action != Action::Update {
            take_plain(l, shared, context, 3)?;
        }
        match action {
            Action::Scan => take_plain(l, shared, context, 4)?,
            Action::Insert | Action::Update => {
                ffi::lua_settop(l, 4);
                ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, table.names.into());
                match &fields {
                    Fields::All => {
                        (0..table.fields.len())
                            .try_for_each(|field| table.take(l, shared, context, field))?;
                    }
                    Fields::One(field) => table.take(l, shared, context, *field)?,
                    Fields::Some(all) => {
                        all.iter().try_for_each(|field| table.take(l, shared, context, *field))?;
                    }
                }
            }
            Action::Read | Action::Delete => {}
        }
        if action == Action::Update {
            take_plain(l, shared, context, 3)?;
        }
        let fields = match (fields, action) {
            (Fields::All, _) => return Ok(table.whole[action as usize]),
            (Fields::One(_), _) if table.fields.len() == 1 => return Ok(table.whole[action as usize]),
            (Fields::One(field), Action::Read) => return Ok(table.single[0][field]),
            (Fields::One(field), Action::Update) => return Ok(table.single[1][field]),
            (Fields::One(field), _) => vec![field],
            (Fields::Some(fields), _) => fields,
        };
        context.query = Some(verbs.made(number, action, fields));
        Ok(usize::MAX)
    }
}

unsafe fn verb(l: *mut lua_State, action: Action) -> Result<c_int, Message> {
    let (most, takes, shape) = match action {
        Action::Read => (4, "a table, a key and fields", Shape::One),
        Action::Scan => (5, "a table, a key, a count and fields", Shape::List),
        Action::Insert | Action::Update => (4, "a table, a key and values", Shape::Affected),
        Action::Delete => (3, "a table and a key", Shape::Affected),
    };
    // SAFETY: called by Lua, as the helpers say.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        if ffi::lua_gettop(l) > most {
            at_most(l, most, &format!("tx:{}", action.name()), takes)?;
        }
        let place = sheltered(shared, || {
            take(l, shared, context, action).map_err(|message| format!("tx:{}: {message}", action.name()))
        })?;
        let want = if shape == Shape::Affected { Want::Count } else { Want::Rows };
        // Where a statement was made, this is `MADE`.
        let call = Call { command: Command::Execute(place), want, flush: true, shape };
        Ok(yield_call(l, context, call))
    }
}

macro_rules! words {
    ($($name:ident: $action:ident),*) => {$(
        pub(super) unsafe extern "C-unwind" fn $name(l: *mut lua_State) -> Results {
            // SAFETY: called by Lua.
            unsafe { finish(l, verb(l, Action::$action)) }
        }
    )*};
}

words!(read: Read, scan: Scan, insert: Insert, update: Update, delete: Delete);

/// Makes the lists of the fields' names.
pub(crate) unsafe fn make_verbs(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack, and the pointer is valid.
    unsafe {
        for table in &mut (*shared).verbs.borrow_mut().tables {
            ffi::lua_createtable(l, table.fields.len() as c_int, 0);
            for (place, field) in table.fields.iter().enumerate() {
                ffi::lua_pushlstring(l, field.as_ptr().cast(), field.len());
                ffi::lua_rawseti(l, -2, place as ffi::lua_Integer + 1);
            }
            table.names = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        }
    }
}
