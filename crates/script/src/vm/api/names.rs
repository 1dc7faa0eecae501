//! The statements of a workload by name, found in a few nanoseconds.

use nephoscope_drivers::Statement;

use super::Message;

/// The statements of a workload by name.
///
/// Lua keeps one copy of each text, so a name is first looked up by its address. An address may be used again for
/// another text once the first is collected, so the text is compared as well: names are short.
pub(crate) struct Names {
    known: Vec<String>,
    others: Vec<String>,
    /// The names of each statement's parameters.
    params: Vec<Vec<String>>,
    seen: [(*const u8, usize); 64],
}

impl Names {
    /// `others` are known elsewhere, and only told.
    pub(crate) fn new(statements: &[Statement], others: &[Statement]) -> Self {
        let known = statements.iter().map(|statement| statement.name().to_owned()).collect();
        let params = statements.iter().map(|statement| statement.params().to_vec()).collect();
        let others = others.iter().map(|statement| statement.name().to_owned()).collect();
        Self { known, others, params, seen: [(std::ptr::null(), 0); 64] }
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

    /// The index of a statement.
    #[inline]
    pub(super) fn find(&mut self, name: &[u8]) -> Result<usize, Message> {
        let seen = &mut self.seen[(name.as_ptr() as usize >> 4) % 64];
        if seen.0 == name.as_ptr() && self.known[seen.1].as_bytes() == name {
            return Ok(seen.1);
        }
        let index = self.known.iter().position(|known| known.as_bytes() == name).ok_or_else(|| {
            let name = String::from_utf8_lossy(name);
            let known = self.known.iter().chain(&self.others).map(String::as_str);
            let known = known.collect::<Vec<_>>().join(", ");
            format!("no statement is called {name:?}; the statements are {known}")
        })?;
        *seen = (name.as_ptr(), index);
        Ok(index)
    }
}

/// The names of parameters as a message shows them.
pub(super) fn listed(params: &[String]) -> String {
    let params: Vec<_> = params.iter().map(|param| format!(":{param}")).collect();
    if params.is_empty() { "no parameters".to_owned() } else { params.join(", ") }
}
