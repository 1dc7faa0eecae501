//! Global variables: a word that nobody knows is an error at once, and so is a `local` that was forgotten.
//!
//! All sessions of a thread share the globals, and a transaction gives way to others at each statement; a variable
//! that one of them sets by mistake would change under the others' hands.

use std::ffi::c_int;
use std::fmt::Write as _;

use mlua::ffi::{self, lua_State};

use super::{Message, Results, finish, text};

/// Makes it an error to use a global variable that does not exist.
pub(crate) unsafe fn refuse_unknown_globals(l: *mut lua_State) {
    // SAFETY: the caller has room on the stack for three values.
    unsafe {
        ffi::lua_createtable(l, 0, 3);
        ffi::lua_pushcclosure(l, unknown, 0);
        ffi::lua_setfield(l, -2, c"__index".as_ptr());
        ffi::lua_pushboolean(l, 0);
        ffi::lua_setfield(l, -2, c"__metatable".as_ptr());
        ffi::lua_setmetatable(l, ffi::LUA_GLOBALSINDEX);
    }
}

/// Makes it an error to make a new global variable, once the workload file has run.
pub(crate) unsafe fn forbid_new_globals(l: *mut lua_State) {
    // SAFETY: the caller has room on the stack for two values.
    unsafe {
        if ffi::lua_getmetatable(l, ffi::LUA_GLOBALSINDEX) != 0 {
            ffi::lua_pushcclosure(l, new, 0);
            ffi::lua_setfield(l, -2, c"__newindex".as_ptr());
            ffi::lua_pop(l, 1);
        }
    }
}

unsafe extern "C-unwind" fn unknown(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: called by Lua with the table of globals and a key.
        let name = unsafe { text(l, 2) }.map(String::from_utf8_lossy).unwrap_or_default().into_owned();
        let mut message = format!("nothing is called {name} here");
        if name == "tx" || name == "pick" {
            message += ": a transaction is given it, as function(tx, pick)";
        // SAFETY: as above.
        } else if let Some(near) = unsafe { nearest(l, &name) } {
            let _ = write!(message, "; is it {near}?");
        }
        Err(message)
    }
    // SAFETY: called by Lua; nothing is left to drop.
    unsafe { finish(l, body(l)) }
}

unsafe extern "C-unwind" fn new(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: called by Lua with the table of globals, a key and a value.
        let name = unsafe { text(l, 2) }.map(String::from_utf8_lossy).unwrap_or_default();
        Err(format!("all sessions would share the variable {name}; write local {name} = …"))
    }
    // SAFETY: called by Lua; nothing is left to drop.
    unsafe { finish(l, body(l)) }
}

/// The global whose name is most like a name, if one is.
unsafe fn nearest(l: *mut lua_State, name: &str) -> Option<String> {
    let mut best: Option<(usize, String)> = None;
    // SAFETY: walking the globals; each key is left on the stack for the next step, as lua_next wants it.
    unsafe {
        ffi::lua_settop(l, 2);
        ffi::lua_pushnil(l);
        while ffi::lua_next(l, ffi::LUA_GLOBALSINDEX) != 0 {
            ffi::lua_settop(l, 3);
            let known = text(l, 3).map(String::from_utf8_lossy).unwrap_or_default().into_owned();
            let found = (edits(name, &known), known);
            if found.0 <= 1 + name.len() / 5 && best.as_ref().is_none_or(|best| found < *best) {
                best = Some(found);
            }
        }
        ffi::lua_settop(l, 2);
    }
    best.map(|(_, known)| known)
}

/// How many letters have to be put in, taken out or changed, or neighbours swapped, to make one word of the other.
fn edits(one: &str, other: &str) -> usize {
    let (one, other) = (one.as_bytes(), other.as_bytes());
    let mut rows = vec![vec![0; other.len() + 1]; one.len() + 1];
    for i in 0..=one.len() {
        for j in 0..=other.len() {
            rows[i][j] = if i == 0 || j == 0 {
                i + j
            } else {
                let changed = rows[i - 1][j - 1] + usize::from(one[i - 1] != other[j - 1]);
                let swapped = i > 1 && j > 1 && one[i - 1] == other[j - 2] && one[i - 2] == other[j - 1];
                let swapped = if swapped { rows[i - 2][j - 2] + 1 } else { usize::MAX };
                changed.min(rows[i - 1][j] + 1).min(rows[i][j - 1] + 1).min(swapped)
            };
        }
    }
    rows[one.len()][other.len()]
}

#[cfg(test)]
mod tests {
    use super::edits;

    #[test]
    fn slips_of_the_pen_count_one() {
        for slip in ["serail", "seral", "seriall", "seriel", "Serial"] {
            assert_eq!(edits(slip, "serial"), 1, "{slip}");
        }
        assert_eq!(edits("serial", "serial"), 0);
        assert_eq!(edits("", "abc"), 3);
    }
}
