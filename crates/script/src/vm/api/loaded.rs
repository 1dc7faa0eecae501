//! `pick.row`: a row that was loaded, whose cells are made again when the workload looks at them.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};

use super::rows::push_value;
use super::{Message, Results, at_most, context, finish, push_metatable, shared, sheltered, text, type_name};
use crate::random::Random;
use crate::vm::{Shared, Way};

/// What such a row in Lua points at. It holds nothing of the database's, so it may be kept.
struct LoadedRow {
    table: usize,
    row: u64,
}

/// `pick.row(table)`.
unsafe extern "C-unwind" fn pick_row(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`; the second upvalue is the metatable of such rows.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let row = sheltered(shared, || {
                at_most(l, 1, "pick.row", "the name of a table")?;
                let Some(name) = text(l, 1) else {
                    return Err(format!("pick.row takes the name of a table, not {}", type_name(l, 1)));
                };
                let table = shared.loaded.find(name)?;
                let draw = |random: &mut Random| shared.loaded.row(table, random).map(u64::cast_signed);
                let row = context.picks.pick((table, Way::Row), &mut context.random, draw);
                let row =
                    row.ok_or_else(|| format!("the table {} is empty", String::from_utf8_lossy(name)))?;
                Ok(LoadedRow { table, row: row.cast_unsigned() })
            })?;
            ffi::lua_newuserdata(l, size_of::<LoadedRow>()).cast::<LoadedRow>().write(row);
            ffi::lua_pushvalue(l, ffi::lua_upvalueindex(2));
            ffi::lua_setmetatable(l, -2);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `row.column`.
unsafe extern "C-unwind" fn loaded_field(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: only such rows have this metatable, and it is hidden; for the rest see `exec`. The value is pushed
        // before another cell is made.
        unsafe {
            let row = &*ffi::lua_touserdata(l, 1).cast::<LoadedRow>();
            let shared = shared(l);
            let value = sheltered(shared, || {
                let Some(name) = text(l, 2) else {
                    return Err(format!(
                        "a column of such a row is read by its name, not by a {}",
                        type_name(l, 2)
                    ));
                };
                shared.loaded.cell(row.table, row.row, name)
            })?;
            push_value(l, shared, value);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// Pushes `pick.row`.
pub(super) unsafe fn push_row_picker(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack.
    unsafe {
        ffi::lua_pushlightuserdata(l, shared.cast_mut().cast());
        push_metatable(l, shared, loaded_field);
        ffi::lua_pushcclosure(l, pick_row, 2);
    }
}
