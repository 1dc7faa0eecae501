//! What a script of sysbench draws by, and how it looks at rows: C functions for `sysbench/api.lua`.

use std::ffi::{CStr, c_int};
use std::sync::atomic::Ordering;

use mlua::ffi::{self, lua_State};

use super::{Function, Message, Results, context, finish, number, set, shared, sheltered, text, type_name};
use crate::sysbench::{Law, write_template};
use crate::vm::{RowObject, Shared, wall_seconds};

/// A number by a law, from the first argument to the second, both included; fractions are cut off.
unsafe fn drawn(l: *mut lua_State, law: Option<Law>) -> Results {
    unsafe fn body(l: *mut lua_State, law: Option<Law>) -> Result<c_int, Message> {
        // SAFETY: called by Lua, as all functions here.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let drawn = sheltered(shared, || {
                let (low, high) = (number(l, 1, "the least number")?, number(l, 2, "the greatest number")?);
                let laws = &shared.laws;
                Ok(laws.draw(law.unwrap_or(laws.default), low as i64, high as i64, &mut context.random))
            })?;
            ffi::lua_pushnumber(l, drawn as f64);
            Ok(1)
        }
    }
    // SAFETY: as above.
    unsafe { finish(l, body(l, law)) }
}

unsafe extern "C-unwind" fn default(l: *mut lua_State) -> Results {
    // SAFETY: called by Lua, as all functions here.
    unsafe { drawn(l, None) }
}

unsafe extern "C-unwind" fn uniform(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { drawn(l, Some(Law::Uniform)) }
}

unsafe extern "C-unwind" fn gaussian(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { drawn(l, Some(Law::Gaussian)) }
}

unsafe extern "C-unwind" fn special(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { drawn(l, Some(Law::Special)) }
}

unsafe extern "C-unwind" fn pareto(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { drawn(l, Some(Law::Pareto)) }
}

unsafe extern "C-unwind" fn zipfian(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { drawn(l, Some(Law::Zipfian)) }
}

/// Pushes the number that a function makes, in the session that runs.
unsafe fn pushed(l: *mut lua_State, make: unsafe fn(&Shared, &mut crate::vm::Context) -> f64) -> Results {
    // SAFETY: see `default`.
    unsafe {
        let shared = shared(l);
        let made = context(shared).map(|context| {
            ffi::lua_pushnumber(l, make(shared, context));
            1
        });
        finish(l, made)
    }
}

unsafe extern "C-unwind" fn uniform_double(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { pushed(l, |_, context| context.random.uniform()) }
}

/// Of 53 bits, as a number of Lua holds no more.
unsafe extern "C-unwind" fn uniform_uint64(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { pushed(l, |_, context| context.random.below(1 << 53) as f64) }
}

/// A number from 0 to 2³² - 1 that nobody is given again before all were, in an order that looks random.
unsafe extern "C-unwind" fn unique(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe {
        pushed(l, |shared, _| {
            let turn = shared.unique.fetch_add(1, Ordering::Relaxed) as u32;
            // An odd factor takes each number to another one.
            f64::from(turn.wrapping_mul(0x9e37_79b1))
        })
    }
}

/// Seconds since 1970, which do not change within an event.
unsafe extern "C-unwind" fn time(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { pushed(l, |_, context| context.now.get_or_insert_with(wall_seconds).floor()) }
}

unsafe extern "C-unwind" fn string(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `default`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let Some(template) = text(l, 1) else {
                return Err(format!("a template is expected, such as \"###-@@@\", not {}", type_name(l, 1)));
            };
            let mut out = Vec::with_capacity(template.len());
            write_template(template, &mut context.random, &mut out);
            ffi::lua_pushlstring(l, out.as_ptr().cast(), out.len());
            Ok(1)
        }
    }
    // SAFETY: see `default`.
    unsafe { finish(l, body(l)) }
}

/// The row that `api.lua` passes, which is always one that `tx` has given.
unsafe fn row<'a>(l: *mut lua_State) -> &'a mut RowObject {
    // SAFETY: see above; the object is Lua's and stays where it is while it is on the stack.
    unsafe { &mut *ffi::lua_touserdata(l, 1).cast::<RowObject>() }
}

/// How many rows and columns the result of a row has.
unsafe extern "C-unwind" fn size(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `default`.
        unsafe {
            let row = row(l);
            let context = shared(l).context_of(row).ok_or("a result ends with its event")?;
            let columns = context.rows.columns(row.result.into()).map_or(0, |known| known.columns.len());
            ffi::lua_pushnumber(l, context.rows.count(row.result.into()) as f64);
            ffi::lua_pushnumber(l, columns as f64);
            Ok(2)
        }
    }
    // SAFETY: see `default`.
    unsafe { finish(l, body(l)) }
}

/// Makes a row another one of its result, by its number from 0.
unsafe extern "C-unwind" fn seek(l: *mut lua_State) -> Results {
    // SAFETY: see `default`.
    unsafe { row(l).row = ffi::lua_tonumber(l, 2) as u32 };
    0
}

/// Puts the functions into the table on top of the stack.
pub(crate) unsafe fn set_sysbench(l: *mut lua_State, shared: *const Shared) {
    let functions: [(&CStr, Function); 13] = [
        (c"default", default),
        (c"uniform", uniform),
        (c"gaussian", gaussian),
        (c"special", special),
        (c"pareto", pareto),
        (c"zipfian", zipfian),
        (c"uniform_double", uniform_double),
        (c"uniform_uint64", uniform_uint64),
        (c"unique", unique),
        (c"time", time),
        (c"string", string),
        (c"size", size),
        (c"seek", seek),
    ];
    for (name, function) in functions {
        // SAFETY: the caller has room on the stack.
        unsafe { set(l, shared, name, function) };
    }
}
