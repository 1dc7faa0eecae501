//! `pick`: keys as the access distribution has them, and other random choices of a session; `math.random` too.

use std::ffi::{c_int, c_void};

use mlua::ffi::{self, lua_State};

use super::integer::push_integer;
use super::laws;
use super::loaded::push_row_picker;
use super::{
    Function, Message, Results, at_most, context, finish, not_while_loading, number, set, set_index, shared,
    sheltered, table, text, type_name,
};
use crate::access::KeySpace;
use crate::random::Random;
use crate::vm::{Shared, Way};

/// `pick.orders()`: a key of the table whose index is the second upvalue, as the access distribution has it.
unsafe extern "C-unwind" fn pick_of_table(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`; the second upvalue was set with the function.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            // The upvalue is an index of a table, as `push_pick` has set it.
            let index: usize = ffi::lua_tonumber(l, ffi::lua_upvalueindex(2)).to_int_unchecked();
            let (name, keys) = &shared.tables[index];
            if ffi::lua_gettop(l) > 0 {
                return Err(format!("pick.{name}() takes no values"));
            }
            let key = sheltered(shared, || {
                let picker = |random: &mut Random| shared.pickers.borrow_mut()[index].pick(keys, random);
                let key = context.picks.pick((index, Way::Access), &mut context.random, picker);
                key.ok_or_else(|| format!("the table {name} is empty"))
            })?;
            push_integer(l, shared, key);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// A key of the table that is named, or nil: one that no session is given again.
unsafe fn given_out(
    l: *mut lua_State,
    word: &str,
    way: Way,
    draw: fn(&KeySpace) -> Option<i64>,
) -> Result<c_int, Message> {
    // SAFETY: see `exec`.
    unsafe {
        let shared = shared(l);
        let context = context(shared)?;
        let key = sheltered(shared, || {
            at_most(l, 1, word, "a table")?;
            not_while_loading(context, word)?;
            let index = table(l, 1, shared)?;
            let keys = &shared.tables[index].1;
            Ok(context.picks.pick((index, way), &mut context.random, |_| draw(keys)))
        })?;
        match key {
            Some(key) => push_integer(l, shared, key),
            None => ffi::lua_pushnil(l),
        }
        Ok(1)
    }
}

/// `pick.once(table)`: a key that was never handed out before, or nil.
unsafe extern "C-unwind" fn pick_once(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, given_out(l, "pick.once", Way::Once, KeySpace::once)) }
}

/// `pick.new(table)`: the key of a row that is not there yet.
unsafe extern "C-unwind" fn pick_new(l: *mut lua_State) -> Results {
    // SAFETY: see `exec`.
    unsafe { finish(l, given_out(l, "pick.new", Way::New, |keys| Some(keys.new_key()))) }
}

/// Reads two bounds, the first not above the second.
pub(super) unsafe fn bounds(l: *mut lua_State, what: &str) -> Result<(f64, f64), Message> {
    // SAFETY: see `exec`.
    let (low, high) = unsafe { (number(l, 1, "the lower bound")?, number(l, 2, "the upper bound")?) };
    if low <= high {
        Ok((low, high))
    } else {
        Err(format!("{what}: the lower bound {low} is above the upper, {high}"))
    }
}

/// As [`bounds`], of whole numbers.
pub(super) unsafe fn whole_bounds(l: *mut lua_State, what: &str) -> Result<(i64, i64), Message> {
    // SAFETY: see `exec`.
    let (low, high) = unsafe { bounds(l, what)? };
    let (from, to) = (low as i64, high as i64);
    if from as f64 != low || to as f64 != high {
        return Err(format!("{what}: the bounds {low} and {high} must be whole numbers"));
    }
    Ok((from, to))
}

/// `pick.integer(low, high)`: a whole number, both bounds included.
unsafe extern "C-unwind" fn pick_integer(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            at_most(l, 2, "pick.integer", "two bounds")?;
            let (from, to) = whole_bounds(l, "pick.integer")?;
            push_integer(l, shared, context.random.between(from, to));
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.number(low, high)`: a number, the upper bound excluded; `pick.number(low, high, digits)`: rounded to a
/// number of digits behind the point.
unsafe extern "C-unwind" fn pick_number(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 3, "pick.number", "two bounds and a number of digits")?;
            let (low, high) = bounds(l, "pick.number")?;
            let mut value = low + context.random.uniform() * (high - low);
            if ffi::lua_gettop(l) > 2 {
                let digits = number(l, 3, "the number of digits")?;
                if !(0.0..=15.0).contains(&digits) {
                    return Err(format!("pick.number: the number of digits is {digits}; it must be 0 to 15"));
                }
                let power = 10_f64.powi(digits as i32);
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
unsafe extern "C-unwind" fn pick_chance(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 1, "pick.chance", "a probability")?;
            let probability = number(l, 1, "a probability")?;
            if !(0.0..=1.0).contains(&probability) {
                return Err(format!("pick.chance: the probability is {probability}; it must be 0 to 1"));
            }
            ffi::lua_pushboolean(l, c_int::from(context.random.uniform() < probability));
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.choice(list)`: one of the list's values.
unsafe extern "C-unwind" fn pick_choice(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 1, "pick.choice", "a list")?;
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
unsafe extern "C-unwind" fn pick_letters(l: *mut lua_State) -> Results {
    const LONGEST: f64 = 65_536.0;
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 2, "pick.letters", "two bounds")?;
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
pub(crate) const PICK_HELPERS: [&str; 11] =
    ["once", "new", "row", "key", "integer", "number", "chance", "choice", "zipf", "letters", "pattern"];

unsafe extern "C-unwind" fn pick_field(l: *mut lua_State) -> Results {
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
            (c"new", pick_new),
            (c"key", laws::pick_key),
            (c"zipf", laws::pick_zipf),
            (c"pattern", laws::pick_pattern),
        ] {
            set(l, shared, name, function);
        }
        push_row_picker(l, shared);
        ffi::lua_setfield(l, -2, c"row".as_ptr());
        for (index, (name, _)) in tables.iter().enumerate() {
            ffi::lua_pushlstring(l, name.as_ptr().cast(), name.len());
            ffi::lua_pushlightuserdata(l, shared.cast_mut().cast::<c_void>());
            ffi::lua_pushnumber(l, index as f64);
            ffi::lua_pushcclosure(l, pick_of_table, 2);
            ffi::lua_rawset(l, -3);
        }
        set_index(l, shared, pick_field);
    }
}

/// `math.random`, drawn from the session's generator so that a run can be repeated.
unsafe extern "C-unwind" fn math_random(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let context = context(shared(l))?;
            at_most(l, 2, "math.random", "two bounds")?;
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
