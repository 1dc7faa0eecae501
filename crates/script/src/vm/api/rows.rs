//! The rows that a transaction has read: a cell is decoded when the workload looks at it.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::{ResultIndex, Value, calendar};

use super::integer::{push_integer, push_whole, within_64_bits};
use super::{Message, Results, finish, number, push_metatable, shared, sheltered, text};
use crate::vm::{Context, RowObject, Shared};

/// `row.column`, `row[1]`.
unsafe extern "C-unwind" fn row_field(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: only rows have this metatable, and it is hidden; for the rest see `exec`.
        unsafe {
            let row = &*ffi::lua_touserdata(l, 1).cast::<RowObject>();
            let shared = shared(l);
            let Some(context) = shared.context_of(row) else {
                return Err("a row can be used only within the transaction that read it".to_owned());
            };
            let (result, at) = (row.result.into(), row.row as usize);
            let value = sheltered(shared, || {
                let value = match text(l, 2) {
                    Some(name) => context.rows.named(result, at, name),
                    None => {
                        let index = number(l, 2, "the place of a column")?;
                        context.rows.value(result, at, (index as usize).wrapping_sub(1))
                    }
                };
                value.ok_or_else(|| no_column(l, context, result))
            })?;
            push_value(l, shared, value);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

unsafe fn no_column(l: *mut lua_State, context: &Context, result: ResultIndex) -> Message {
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
pub(crate) unsafe fn push_value(l: *mut lua_State, shared: &Shared, value: Value<'_>) {
    // SAFETY: a C function has room for a result.
    unsafe {
        let push_text = |text: &[u8]| {
            ffi::lua_pushlstring(l, text.as_ptr().cast(), text.len());
        };
        match value {
            Value::Null => ffi::lua_pushnil(l),
            Value::Bool(value) => ffi::lua_pushboolean(l, c_int::from(value)),
            Value::Int(value) | Value::Decimal { units: value, scale: 0 } => push_integer(l, shared, value),
            Value::Float(value) => ffi::lua_pushnumber(l, value),
            Value::Decimal { units, scale } => {
                ffi::lua_pushnumber(l, units as f64 / 10_f64.powi(scale.into()));
            }
            // The sum of a column of keys is a numeric, too.
            Value::Numeric(text) => match text.parse().ok().and_then(within_64_bits) {
                Some(whole) => push_whole(l, shared, whole),
                None => ffi::lua_pushnumber(l, text.parse().unwrap_or(f64::NAN)),
            },
            Value::Unsigned(value) => push_whole(l, shared, value.into()),
            Value::Time(micros) => {
                let mut text = Vec::new();
                // Writing into a vector cannot fail.
                let _ = calendar::write_time(micros, &mut text);
                push_text(&text);
            }
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
    unsafe { push_metatable(l, shared, row_field) }
}
