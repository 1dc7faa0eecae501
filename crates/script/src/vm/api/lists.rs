//! Parameters that are lists: a statement for each length, kept for the next call.

use std::ffi::c_int;
use std::rc::Rc;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{ListShape, Statement};

use super::values::{find_field, lacking, nothing_else, parameter, unfit, wrong_count};
use super::{Message, type_name};
use crate::vm::{Context, Shared};

/// The most statements that are kept, of all lengths.
const MOST: usize = 256;

/// The most values that a statement may have: PostgreSQL and MySQL count them in 16 bits.
const MOST_VALUES: usize = 65_535;

/// The statements with lists, and what was made of them.
pub(crate) struct Lists {
    declared: Vec<Rc<Statement>>,
    made: Vec<Made>,
    /// How often one was asked for.
    clock: u64,
}

struct Made {
    of: Rc<Statement>,
    shapes: Vec<ListShape>,
    statement: Rc<Statement>,
    last: u64,
}

impl Lists {
    pub(crate) fn new(declared: &[Statement]) -> Self {
        Self { declared: declared.iter().cloned().map(Rc::new).collect(), made: Vec::new(), clock: 0 }
    }

    /// The declared statement of a name.
    pub(super) fn find(&self, name: &[u8]) -> Option<Rc<Statement>> {
        self.declared.iter().find(|statement| statement.name().as_bytes() == name).map(Rc::clone)
    }

    /// The statement for lists of these shapes: the same for the same ones, as long as it is kept.
    fn expanded(&mut self, of: &Rc<Statement>, shapes: Vec<ListShape>) -> Rc<Statement> {
        self.clock += 1;
        let last = self.clock;
        if let Some(made) =
            self.made.iter_mut().find(|made| Rc::ptr_eq(&made.of, of) && made.shapes == shapes)
        {
            made.last = last;
            return Rc::clone(&made.statement);
        }
        let statement = Rc::new(of.expanded(&shapes));
        let made = Made { of: Rc::clone(of), shapes, statement: Rc::clone(&statement), last };
        if self.made.len() < MOST {
            self.made.push(made);
        } else if let Some(oldest) = self.made.iter_mut().min_by_key(|made| made.last) {
            *oldest = made;
        }
        statement
    }
}

/// Takes the values of a statement with lists from the stack, from the third value on, and gives the statement for their
/// lengths.
pub(super) unsafe fn take(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    of: &Rc<Statement>,
) -> Result<Rc<Statement>, Message> {
    context.params.clear();
    let (params, name) = (of.params(), of.name().as_bytes());
    let mut shapes = Vec::new();
    // SAFETY: reading the stack, which is left as it was.
    unsafe {
        let given = ffi::lua_gettop(l) - 2;
        let by_name = is_by_name(l, params);
        if !by_name && given as usize != params.len() {
            return Err(wrong_count(params, name, given as usize));
        }
        for (place, param) in params.iter().enumerate() {
            if by_name && !find_field(l, param.as_bytes()) {
                return Err(lacking(l, name, param));
            }
            let at = if by_name { 5 } else { 3 + place as c_int };
            if of.is_list(place) {
                shapes.push(list(l, shared, context, at, &format!("the list :{param} of {}", of.name()))?);
            } else {
                let value =
                    parameter(l, shared, at).map_err(|kind| unfit(format_args!(":{param}"), name, &kind))?;
                context.params.push(value);
            }
            ffi::lua_settop(l, 2 + given);
        }
        if by_name {
            nothing_else(l, params, name)?;
        }
    }
    let count = context.params.len();
    if count > MOST_VALUES {
        let name = of.name();
        return Err(format!("{name} has {count} values; a statement has {MOST_VALUES} at most"));
    }
    Ok(shared.lists.borrow_mut().expanded(of, shapes))
}

/// Whether the values come by their names: in one table, which is not the list itself.
unsafe fn is_by_name(l: *mut lua_State, params: &[String]) -> bool {
    // SAFETY: reading the stack, which is left as it was.
    unsafe {
        if ffi::lua_gettop(l) != 3 || ffi::lua_type(l, 3) != ffi::LUA_TTABLE {
            return false;
        }
        let found = params.len() != 1 || find_field(l, params[0].as_bytes());
        ffi::lua_settop(l, 3);
        found
    }
}

/// Takes the values of the list at an index of the stack.
unsafe fn list(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    at: c_int,
    what: &str,
) -> Result<ListShape, Message> {
    // SAFETY: reading the table without its metatable; there is room for an item and a value, which are taken off.
    unsafe {
        if ffi::lua_type(l, at) != ffi::LUA_TTABLE {
            return Err(format!("{what} is given as a {}; a list is written {{ 1, 2 }}", type_name(l, at)));
        }
        let items = length(l, at).ok_or_else(|| gap(what))?;
        let mut columns = None;
        for item in 1..=items {
            ffi::lua_rawgeti(l, at, item as ffi::lua_Integer);
            let row = match ffi::lua_type(l, -1) {
                ffi::LUA_TTABLE => {
                    let row = length(l, ffi::lua_gettop(l));
                    Some(row.ok_or_else(|| gap(&format!("row {item} of {what}")))?)
                }
                _ => None,
            };
            for column in 1..=row.unwrap_or_default() {
                ffi::lua_rawgeti(l, -1, column as ffi::lua_Integer);
                item_value(l, shared, context, &format_args!("value {column} of row {item} of {what}"))?;
                ffi::lua_pop(l, 1);
            }
            if row.is_none() {
                item_value(l, shared, context, &format_args!("value {item} of {what}"))?;
            }
            ffi::lua_pop(l, 1);
            if item == 1 {
                columns = row;
            }
            if row != columns {
                return Err(unequal(what, item, row, columns));
            }
        }
        if items == 0 || columns == Some(0) {
            let lacks = if items == 0 { "is empty" } else { "has empty rows" };
            return Err(format!("{what} {lacks}; SQL has no empty list, so ask before the call"));
        }
        Ok(ListShape { items, columns })
    }
}

/// How many items the table at an index of the stack has; `None` where it has others than those from 1 on.
unsafe fn length(l: *mut lua_State, at: c_int) -> Option<usize> {
    let mut count = 0;
    // SAFETY: walking the table; each key is left on the stack for the next step, as lua_next wants it.
    unsafe {
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, at) != 0 {
            ffi::lua_pop(l, 1);
            count += 1;
        }
        (ffi::lua_objlen(l, at) == count).then_some(count)
    }
}

#[cold]
fn gap(what: &str) -> Message {
    format!("{what} has a gap, or a key that is no place; NULL is written tx.null")
}

#[cold]
fn unequal(what: &str, item: usize, row: Option<usize>, first: Option<usize>) -> Message {
    match (row, first) {
        (Some(row), Some(first)) => {
            format!("row {item} of {what} has {row} values, and the first row has {first}")
        }
        (Some(_), None) => {
            format!("{what} has values and rows: its first item is a value, item {item} is a row")
        }
        (None, _) => format!("{what} has values and rows: its first item is a row, item {item} is a value"),
    }
}

/// Takes the value on top of the stack.
unsafe fn item_value(
    l: *mut lua_State,
    shared: &Shared,
    context: &mut Context,
    what: &std::fmt::Arguments<'_>,
) -> Result<(), Message> {
    // SAFETY: reading the stack.
    unsafe {
        let value = parameter(l, shared, ffi::lua_gettop(l));
        let value = value.map_err(|kind| {
            format!("{what} is a {kind}; allowed are numbers, texts, booleans and tx.null")
        })?;
        context.params.push(value);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_many_lengths_the_last_are_kept() {
        let mut lists = Lists::new(&[Statement::new("find", "SELECT 1 WHERE 1 IN (:ids…)")]);
        let of = lists.find(b"find").unwrap();
        assert!(lists.find(b"other").is_none());
        let shape = |items| vec![ListShape { items, columns: None }];
        let first = lists.expanded(&of, shape(1));
        for items in 2..=MOST + 1 {
            lists.expanded(&of, shape(items));
            assert!(Rc::ptr_eq(&first, &lists.expanded(&of, shape(1))), "it is always in use");
        }
        assert_eq!(lists.made.len(), MOST);
        assert!(lists.made.iter().all(|made| made.shapes != shape(2)), "the one used longest ago has gone");
    }
}
