//! The statements of a workload by name, found in a few nanoseconds.

use std::ffi::CString;

use nephoscope_drivers::Statement;

use super::Message;

/// The statements of a workload by name.
///
/// Lua keeps one copy of each text, so a name is first looked up by its address. An address may be used again for
/// another text once the first is collected, so the text is compared as well: names are short.
pub(crate) struct Names {
    known: Vec<String>,
    /// The names of each statement's parameters.
    params: Vec<Vec<CString>>,
    seen: [(*const u8, usize); 64],
}

impl Names {
    pub(crate) fn new(statements: &[Statement]) -> Self {
        let known = statements.iter().map(|statement| statement.name().to_owned()).collect();
        let params = statements.iter().map(|statement| {
            // A name in SQL is a word; it has no zero byte.
            statement.params().iter().map(|name| CString::new(name.as_str()).unwrap_or_default()).collect()
        });
        Self { known, params: params.collect(), seen: [(std::ptr::null(), 0); 64] }
    }

    /// The name of a statement.
    pub(crate) fn name(&self, statement: usize) -> &str {
        &self.known[statement]
    }

    /// The names of a statement's parameters.
    #[inline]
    pub(super) fn params(&self, statement: usize) -> &[CString] {
        &self.params[statement]
    }

    /// The index of a statement.
    #[inline]
    pub(super) fn find(&mut self, name: &[u8]) -> Result<usize, Message> {
        let seen = &mut self.seen[(name.as_ptr() as usize >> 4) % 64];
        if seen.0 == name.as_ptr() && self.known[seen.1].as_bytes() == name {
            return Ok(seen.1);
        }
        let index = self.known.iter().position(|known| known.as_bytes() == name).ok_or_else(|| {
            let (name, known) = (String::from_utf8_lossy(name), self.known.join(", "));
            format!("no statement is called {name:?}; the statements are {known}")
        })?;
        *seen = (name.as_ptr(), index);
        Ok(index)
    }
}

/// The names of parameters as a message shows them.
pub(super) fn listed(params: &[CString]) -> String {
    let params: Vec<_> = params.iter().map(|param| format!(":{}", param.to_string_lossy())).collect();
    if params.is_empty() { "no parameters".to_owned() } else { params.join(", ") }
}
