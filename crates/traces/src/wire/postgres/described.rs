//! Which types servers have found for the parameters of a text. A client may ask on one of its connections, and use the
//! answer on all of them.

use std::collections::HashMap;
use std::sync::Arc;

use super::statement::Statement;

/// What may be remembered, in bytes; beyond that, nothing new is.
const MOST: usize = 8 << 20;

#[derive(Debug, Default)]
pub(in crate::wire) struct Described {
    /// By database and text; nothing where the answers differ, as they may where tables of one name do.
    of: HashMap<Box<str>, Option<Arc<[u32]>>>,
    bytes: usize,
}

impl Described {
    /// Takes an answer for a statement whose client has given no type.
    pub(super) fn learn(&mut self, database: &str, statement: &Statement, types: &Arc<[u32]>) {
        let Some(key) = key(database, statement) else { return };
        if let Some(known) = self.of.get_mut(&key) {
            if known.as_ref().is_some_and(|known| known != types) {
                *known = None;
            }
            return;
        }
        let size = key.len() + size_of_val(&**types);
        if self.bytes + size <= MOST {
            self.bytes += size;
            self.of.insert(key, Some(Arc::clone(types)));
        }
    }

    /// The types of a statement's parameters, if they are certain.
    pub(super) fn types(&self, database: &str, statement: &Statement) -> Option<&Arc<[u32]>> {
        self.of.get(&key(database, statement)?)?.as_ref()
    }
}

fn key(database: &str, statement: &Statement) -> Option<Box<str>> {
    let text = statement.text.as_ref().ok().filter(|_| statement.given.iter().all(|oid| *oid == 0))?;
    Some(format!("{database}\0{text}").into())
}
