//! Draws of `pick` that have a law of their own: keys of a range, ranks, patterns.

use std::ffi::c_int;

use mlua::ffi::{self, lua_State};
use nephoscope_datagen::{Ranks, write_pattern};

use super::integer::push_integer;
use super::pick::whole_bounds;
use super::{Message, Results, at_most, context, finish, number, shared, sheltered, text, type_name};
use crate::random::Random;
use crate::vm::Way;

/// `pick.key(low, high)`: a whole number by the access distribution, both bounds included.
pub(super) unsafe extern "C-unwind" fn pick_key(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let key = sheltered(shared, || {
                at_most(l, 2, "pick.key", "two bounds")?;
                let (low, high) = whole_bounds(l, "pick.key")?;
                let keys = high.abs_diff(low).saturating_add(1);
                let draw =
                    |random: &mut Random| Some(low.wrapping_add_unsigned(shared.loaded.key(keys, random)));
                let key = context.picks.pick((0, Way::Range { low, high }), &mut context.random, draw);
                Ok(key.unwrap_or(low))
            })?;
            push_integer(l, shared, key);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.zipf(n, theta)`: a whole number from 1 to n, the i-th with a probability proportional to 1/i^theta.
pub(super) unsafe extern "C-unwind" fn pick_zipf(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let rank = sheltered(shared, || {
                at_most(l, 2, "pick.zipf", "a number of ranks and theta")?;
                let (ranks, theta) = (number(l, 1, "the number of ranks")?, number(l, 2, "theta")?);
                if !(1.0..=9e15).contains(&ranks) || ranks.fract() != 0.0 {
                    return Err(format!(
                        "pick.zipf: the number of ranks is {ranks}; it must be whole and at least 1"
                    ));
                }
                let law = Ranks::new(ranks as u64, theta).map_err(|why| format!("pick.zipf: {why}"))?;
                Ok(law.draw(context.random.source()))
            })?;
            push_integer(l, shared, rank.cast_signed() + 1);
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}

/// `pick.pattern(pattern)`: a text that follows a pattern, as the column generator of this name has it.
pub(super) unsafe extern "C-unwind" fn pick_pattern(l: *mut lua_State) -> Results {
    unsafe fn body(l: *mut lua_State) -> Result<c_int, Message> {
        // SAFETY: see `exec`.
        unsafe {
            let shared = shared(l);
            let context = context(shared)?;
            let written = sheltered(shared, || {
                at_most(l, 1, "pick.pattern", "a text")?;
                let Some(pattern) = text(l, 1) else {
                    return Err(format!("pick.pattern takes a text, not {}", type_name(l, 1)));
                };
                let mut out = Vec::with_capacity(pattern.len());
                write_pattern(pattern, |most| context.random.below(most), &mut out)
                    .map_err(|why| format!("pick.pattern: {why}"))?;
                Ok(out)
            })?;
            ffi::lua_pushlstring(l, written.as_ptr().cast(), written.len());
            Ok(1)
        }
    }
    // SAFETY: see `exec`.
    unsafe { finish(l, body(l)) }
}
