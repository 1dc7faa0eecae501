//! Whole numbers beyond 2⁵³, which a number of Lua's would round: CockroachDB's `unique_rowid()`, snowflake ids.
//!
//! Numbers from -2⁶³ to 2⁶⁴ - 1 are known: every integer that a database has, with a sign or without one.
//!
//! Such a number is an object. The same number is the same object as long as anybody has it, so that `==` holds and it
//! can be the key of a table. Arithmetic with whole numbers is exact, and an error where it cannot be.

use std::ffi::{CStr, c_int};

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::Value;

use super::{Function, Message, Results, finish, set, shared, text, type_name};
use crate::vm::Shared;

/// Up to here every whole number is a number of Lua's.
const EXACT: u64 = 1 << 53;

/// References into the registry: the metatable of such objects, and the objects that there are.
#[derive(Clone, Copy)]
pub(crate) struct Integers {
    metatable: c_int,
    known: c_int,
}

impl Integers {
    pub(crate) const NONE: Self = Self { metatable: ffi::LUA_NOREF, known: ffi::LUA_NOREF };
}

/// Pushes a whole number: as a number where that is exact, else as an object.
#[inline]
pub(super) unsafe fn push_integer(l: *mut lua_State, shared: &Shared, value: i64) {
    // SAFETY: a C function has room for a few values.
    unsafe {
        if value.unsigned_abs() <= EXACT {
            ffi::lua_pushnumber(l, value as f64);
        } else {
            push_object(l, shared.integers.get(), value.into());
        }
    }
}

/// As [`push_integer`], of one that may need all 64 bits without a sign.
pub(crate) unsafe fn push_whole(l: *mut lua_State, shared: &Shared, value: i128) {
    // SAFETY: as above.
    unsafe {
        match i64::try_from(value) {
            Ok(value) => push_integer(l, shared, value),
            Err(_) => push_object(l, shared.integers.get(), value),
        }
    }
}

/// The number, if it is one of 64 bits, with a sign or without.
pub(super) fn within_64_bits(number: i128) -> Option<i128> {
    (i128::from(i64::MIN)..=u64::MAX.into()).contains(&number).then_some(number)
}

/// The number as a parameter takes it.
pub(super) fn as_value<'a>(number: i128) -> Option<Value<'a>> {
    i64::try_from(number).map(Value::Int).or_else(|_| u64::try_from(number).map(Value::Unsigned)).ok()
}

unsafe fn push_object(l: *mut lua_State, integers: Integers, value: i128) {
    let key = value.to_ne_bytes();
    // SAFETY: there is room for six values; the object has the size of the number, and any alignment.
    unsafe {
        ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, integers.known.into());
        ffi::lua_pushlstring(l, key.as_ptr().cast(), key.len());
        ffi::lua_pushvalue(l, -1);
        ffi::lua_rawget(l, -3);
        if ffi::lua_type(l, -1) == ffi::LUA_TNIL {
            ffi::lua_pop(l, 1);
            ffi::lua_newuserdata(l, size_of::<i128>()).cast::<i128>().write_unaligned(value);
            ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, integers.metatable.into());
            ffi::lua_setmetatable(l, -2);
            ffi::lua_pushvalue(l, -2);
            ffi::lua_pushvalue(l, -2);
            ffi::lua_rawset(l, -5);
        }
        // The list of objects, the key, the object: only the last stays.
        ffi::lua_replace(l, -3);
        ffi::lua_pop(l, 1);
    }
}

/// The whole number that an object at an index of the stack stands for.
pub(super) unsafe fn object(l: *mut lua_State, shared: &Shared, at: c_int) -> Option<i128> {
    // SAFETY: reading the stack, with room for two values; only objects made here have the metatable.
    unsafe {
        if ffi::lua_type(l, at) != ffi::LUA_TUSERDATA || ffi::lua_getmetatable(l, at) == 0 {
            return None;
        }
        ffi::lua_rawgeti(l, ffi::LUA_REGISTRYINDEX, shared.integers.get().metatable.into());
        let is_one = ffi::lua_rawequal(l, -1, -2) != 0;
        ffi::lua_pop(l, 2);
        is_one.then(|| ffi::lua_touserdata(l, at).cast::<i128>().read_unaligned())
    }
}

/// The whole number at an index of the stack, object or number; `None` where a number may have been rounded.
pub(super) unsafe fn whole(l: *mut lua_State, shared: &Shared, at: c_int) -> Option<i128> {
    // SAFETY: reading the stack.
    unsafe {
        if ffi::lua_type(l, at) != ffi::LUA_TNUMBER {
            return object(l, shared, at);
        }
        let number = ffi::lua_tonumber(l, at);
        let whole = number as i64;
        (whole as f64 == number && whole.unsigned_abs() <= EXACT).then_some(whole.into())
    }
}

/// Both operands, widened so that no operation on them overflows.
unsafe fn operands(l: *mut lua_State, shared: &Shared) -> Result<(i128, i128), Message> {
    let operand = |at| {
        // SAFETY: reading the stack.
        unsafe {
            whole(l, shared, at).ok_or_else(|| {
                let kind = type_name(l, at);
                format!("a whole number beyond 2^53 goes only with whole numbers, not with this {kind}")
            })
        }
    };
    Ok((operand(1)?, operand(2)?))
}

unsafe fn compute(l: *mut lua_State, of: fn(i128, i128) -> Option<i128>) -> Result<c_int, Message> {
    // SAFETY: called by Lua with two operands.
    unsafe {
        let shared = shared(l);
        let (one, other) = operands(l, shared)?;
        let result = of(one, other).and_then(within_64_bits);
        push_whole(l, shared, result.ok_or("the result is no whole number of 64 bits")?);
        Ok(1)
    }
}

unsafe extern "C-unwind" fn add(l: *mut lua_State) -> Results {
    // SAFETY: called by Lua, as all functions below.
    unsafe { finish(l, compute(l, i128::checked_add)) }
}

unsafe extern "C-unwind" fn subtract(l: *mut lua_State) -> Results {
    // SAFETY: see `add`.
    unsafe { finish(l, compute(l, i128::checked_sub)) }
}

unsafe extern "C-unwind" fn multiply(l: *mut lua_State) -> Results {
    // SAFETY: see `add`.
    unsafe { finish(l, compute(l, i128::checked_mul)) }
}

/// The remainder with the sign of the divisor, as Lua has it.
unsafe extern "C-unwind" fn remainder(l: *mut lua_State) -> Results {
    fn floored(one: i128, other: i128) -> Option<i128> {
        one.checked_rem(other)
            .map(|rest| if rest != 0 && (rest < 0) != (other < 0) { rest + other } else { rest })
    }
    // SAFETY: see `add`.
    unsafe { finish(l, compute(l, floored)) }
}

unsafe extern "C-unwind" fn negate(l: *mut lua_State) -> Results {
    // SAFETY: see `add`.
    unsafe { finish(l, compute(l, |one, _| one.checked_neg())) }
}

unsafe extern "C-unwind" fn divide(l: *mut lua_State) -> Results {
    let message = "a whole number beyond 2^53 can be added to, subtracted from and multiplied, and has a remainder; \
                   other arithmetic would round it";
    // SAFETY: see `add`.
    unsafe { finish(l, Err(message.to_owned())) }
}

unsafe fn compare(l: *mut lua_State, of: fn(&i128, &i128) -> bool) -> Result<c_int, Message> {
    // SAFETY: see `add`.
    unsafe {
        let (one, other) = operands(l, shared(l))?;
        ffi::lua_pushboolean(l, of(&one, &other).into());
        Ok(1)
    }
}

unsafe extern "C-unwind" fn is_less(l: *mut lua_State) -> Results {
    // SAFETY: see `add`.
    unsafe { finish(l, compare(l, PartialOrd::lt)) }
}

unsafe extern "C-unwind" fn is_not_more(l: *mut lua_State) -> Results {
    // SAFETY: see `add`.
    unsafe { finish(l, compare(l, PartialOrd::le)) }
}

unsafe extern "C-unwind" fn digits(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `add`.
        unsafe {
            let number = object(l, shared(l), 1).ok_or("this is no whole number")?;
            push_text(l, number.to_string().as_bytes());
            Ok(1)
        }
    }
    // SAFETY: see `add`.
    unsafe { finish(l, body(l)) }
}

unsafe extern "C-unwind" fn join(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `add`; what is no object is left to Lua, which knows texts and numbers.
        unsafe {
            let mut joined = Vec::new();
            for at in 1..=2 {
                if let Some(number) = object(l, shared(l), at) {
                    joined.extend_from_slice(number.to_string().as_bytes());
                    continue;
                }
                if ffi::lua_type(l, at) == ffi::LUA_TNUMBER {
                    ffi::lua_tolstring(l, at, std::ptr::null_mut());
                }
                let word = text(l, at)
                    .ok_or_else(|| format!("a {} cannot be joined to a text", type_name(l, at)))?;
                joined.extend_from_slice(word);
            }
            push_text(l, &joined);
            Ok(1)
        }
    }
    // SAFETY: see `add`.
    unsafe { finish(l, body(l)) }
}

unsafe fn push_text(l: *mut lua_State, text: &[u8]) {
    // SAFETY: a C function has room for a result.
    unsafe { ffi::lua_pushlstring(l, text.as_ptr().cast(), text.len()) };
}

const METHODS: [(&CStr, Function); 11] = [
    (c"__add", add),
    (c"__sub", subtract),
    (c"__mul", multiply),
    (c"__mod", remainder),
    (c"__unm", negate),
    (c"__div", divide),
    (c"__pow", divide),
    (c"__lt", is_less),
    (c"__le", is_not_more),
    (c"__tostring", digits),
    (c"__concat", join),
];

/// Makes the metatable of the objects, and the weak table of those that there are.
pub(crate) unsafe fn make_integers(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack, and the pointer is valid.
    unsafe {
        ffi::lua_createtable(l, 0, METHODS.len() as c_int + 1);
        for (name, method) in METHODS {
            set(l, shared, name, method);
        }
        ffi::lua_pushboolean(l, 0);
        ffi::lua_setfield(l, -2, c"__metatable".as_ptr());
        let metatable = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        ffi::lua_createtable(l, 0, 0);
        ffi::lua_createtable(l, 0, 1);
        ffi::lua_pushstring(l, c"v".as_ptr());
        ffi::lua_setfield(l, -2, c"__mode".as_ptr());
        ffi::lua_setmetatable(l, -2);
        let known = ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        (*shared).integers.set(Integers { metatable, known });
    }
}
