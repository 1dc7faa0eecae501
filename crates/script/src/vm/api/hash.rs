//! `bit.fnv1a(number)`: the hash that spreads YCSB's keys. It has 64 bits, more than Lua's numbers hold.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::fnv1a;

use super::{Message, Results, at_most, finish, number};

/// 2^53: Lua's numbers hold every whole number up to here.
const LARGEST: f64 = (1_u64 << 53) as f64;

unsafe extern "C-unwind" fn of_number(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: called by Lua, with room for a result; the digits are copied.
        unsafe {
            at_most(l, 1, "bit.fnv1a", "a number")?;
            let given = number(l, 1, "what bit.fnv1a takes")?;
            if given.fract() != 0.0 || !(0.0..=LARGEST).contains(&given) {
                return Err(format!("bit.fnv1a takes a whole number from 0 to 2^53, not {given}"));
            }
            let hash = fnv1a(&(given as u64).to_le_bytes());
            let digits: [u8; 16] =
                std::array::from_fn(|at| b"0123456789abcdef"[(hash >> (60 - 4 * at)) as usize & 15]);
            ffi::lua_pushlstring(l, digits.as_ptr().cast(), digits.len());
            Ok(1)
        }
    }
    // SAFETY: called by Lua; nothing is left to drop.
    unsafe { finish(l, body(l)) }
}

/// Adds it to the library `bit`.
pub(crate) unsafe fn add_hash(l: *mut lua_State) {
    // SAFETY: the caller has room on the stack for two values.
    unsafe {
        ffi::lua_getfield(l, ffi::LUA_GLOBALSINDEX, c"bit".as_ptr());
        ffi::lua_pushcclosure(l, of_number, 0);
        ffi::lua_setfield(l, -2, c"fnv1a".as_ptr());
        ffi::lua_pop(l, 1);
    }
}

#[cfg(test)]
mod tests {
    use nephoscope_drivers::fnv1a;

    use crate::vm::sandbox;

    #[test]
    fn a_number_is_its_eight_octets_and_a_hash_sixteen_digits() {
        let lua = sandbox::state().unwrap();
        let told = |call: &str| lua.load(format!("return bit.fnv1a({call})")).eval::<String>();
        for number in [0, 1, 255, 256, 1 << 53] {
            let octets = u64::to_le_bytes(number);
            assert_eq!(told(&number.to_string()).unwrap(), format!("{:016x}", fnv1a(&octets)));
        }
        for (call, expected) in [
            ("-1", "bit.fnv1a takes a whole number from 0 to 2^53, not -1"),
            ("0.5", "not 0.5"),
            ("0/0", "not NaN"),
            ("2^54", "not 18014398509481984"),
            ("'1'", "what bit.fnv1a takes must be a number, not string"),
            ("1, 2", "bit.fnv1a takes a number; one value too many"),
        ] {
            let message = told(call).unwrap_err().to_string();
            assert!(message.contains(expected), "{call}: {message}");
        }
    }
}
