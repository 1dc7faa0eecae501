//! What an endpoint has said of a workload's statements. Asked once: after a fail-over every session connects anew, and
//! a server that has just come up would parse all statements for each of them before it runs any.

use std::sync::{Arc, Mutex, PoisonError};

use crate::contract::statement::Statement;
use crate::postgres::machine::Description;

/// A list of statements, and their descriptions.
type Described = (Arc<[Statement]>, Arc<[Description]>);

/// Descriptions by the list of statements that they are of.
#[derive(Default)]
pub(super) struct Descriptions(Mutex<Vec<Described>>);

impl Descriptions {
    /// Those of a list, if they are known.
    pub(super) fn of(&self, statements: &Arc<[Statement]>) -> Option<Arc<[Description]>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.iter().find(|(list, _)| Arc::ptr_eq(list, statements));
        found.map(|(_, described)| Arc::clone(described))
    }

    /// Keeps those of a list, in the place of earlier ones.
    pub(super) fn keep(
        &self,
        statements: &Arc<[Statement]>,
        described: Vec<Description>,
    ) -> Arc<[Description]> {
        let described: Arc<[Description]> = described.into();
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(list, _)| !Arc::ptr_eq(list, statements));
        known.push((Arc::clone(statements), Arc::clone(&described)));
        described
    }
}
