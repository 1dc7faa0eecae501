//! The statements of a workload by name, found in a few nanoseconds.

use std::ffi::c_void;

use mlua::ffi::{self, lua_State};
use nephoscope_drivers::Statement;

use super::Message;
use crate::vm::Shared;

/// The statements of a workload by name.
///
/// Lua keeps one copy of each text, and the state keeps those of the names for good: where a name was found once, its
/// address tells which it is.
pub(crate) struct Names {
    known: Vec<String>,
    others: Vec<String>,
    /// The names of each statement's parameters.
    params: Vec<Vec<String>>,
    seen: [(*const c_void, usize); SEEN],
}

impl Names {
    /// `others` are known elsewhere, and only told.
    pub(crate) fn new(statements: &[Statement], others: &[Statement]) -> Self {
        let known = statements.iter().map(|statement| statement.name().to_owned()).collect();
        let params = statements.iter().map(|statement| statement.params().to_vec()).collect();
        let others = others.iter().map(|statement| statement.name().to_owned()).collect();
        // Of what has no address it is null.
        Self { known, others, params, seen: [(std::ptr::dangling(), 0); SEEN] }
    }

    /// The name of a statement.
    pub(crate) fn name(&self, statement: usize) -> &str {
        &self.known[statement]
    }

    /// The names of a statement's parameters.
    #[inline]
    pub(super) fn params(&self, statement: usize) -> &[String] {
        &self.params[statement]
    }

    /// The index of a statement by the address of its name, if that was found before.
    #[inline]
    pub(super) fn at(&self, address: *const c_void) -> Option<usize> {
        let (seen, index) = self.seen[place(address)];
        (seen == address).then_some(index)
    }

    /// The index of a statement by its name, which is the object at an address.
    #[cold]
    pub(super) fn find(&mut self, name: &[u8], address: *const c_void) -> Result<usize, Message> {
        let index = self.known.iter().position(|known| known.as_bytes() == name).ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            let known = self.known.iter().chain(&self.others).map(String::as_str);
            let known = known.collect::<Vec<_>>().join(", ");
            format!("no statement is called {name:?}; the statements are {known}")
        })?;
        self.seen[place(address)] = (address, index);
        Ok(index)
    }
}

/// Has the state keep the names for good.
pub(crate) unsafe fn make_names(l: *mut lua_State, shared: *const Shared) {
    // SAFETY: the caller has room on the stack, and the pointer is valid.
    unsafe {
        for name in &(*shared).statements.borrow().known {
            ffi::lua_pushlstring(l, name.as_ptr().cast(), name.len());
            ffi::luaL_ref(l, ffi::LUA_REGISTRYINDEX);
        }
    }
}

/// So many addresses are remembered.
pub(super) const SEEN: usize = 64;

/// Where an address is remembered; objects begin at multiples of 16.
#[inline]
pub(super) fn place(address: *const c_void) -> usize {
    (address as usize >> 4) % SEEN
}

/// The names of parameters as a message shows them.
pub(super) fn listed(params: &[String]) -> String {
    let params: Vec<_> = params.iter().map(|param| format!(":{param}")).collect();
    if params.is_empty() { "no parameters".to_owned() } else { params.join(", ") }
}
