//! Key-value verbs: what a workload says of the rows of a table by their key, in any product's words.

/// What is done with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Action {
    /// Reads the row of a key.
    Read,
    /// Reads rows in the order of their keys, from a key on.
    Scan,
    /// Stores a new row.
    Insert,
    /// Changes some fields of the row of a key.
    Update,
    /// Removes the row of a key.
    Delete,
}

impl Action {
    /// Every action.
    pub const ALL: [Self; 5] = [Self::Read, Self::Scan, Self::Insert, Self::Update, Self::Delete];

    /// Its word in `tx`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Scan => "scan",
            Self::Insert => "insert",
            Self::Update => "update",
            Self::Delete => "delete",
        }
    }
}

/// A verb: an action on the rows of a table, and the fields that it reads or writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verb {
    /// What is done.
    pub action: Action,
    /// The table's name.
    pub table: String,
    /// The column that rows are known by.
    pub key: String,
    /// The columns that are read or written, without the key; none for [`Action::Delete`].
    pub fields: Vec<String>,
}

impl Verb {
    /// The verb as SQL that every product understands. The parameters of what reads and deletes are `:key` and, for a
    /// scan, `:count`; those of an insert are the key's column and the fields, those of an update the fields and the
    /// key's column.
    #[must_use]
    pub fn sql(&self) -> String {
        let Self { table, key, fields, .. } = self;
        let names = fields.join(", ");
        match self.action {
            Action::Read => format!("SELECT {names} FROM {table} WHERE {key} = :key"),
            Action::Scan => {
                format!("SELECT {names} FROM {table} WHERE {key} >= :key ORDER BY {key} LIMIT :count")
            }
            Action::Insert => {
                let columns: Vec<&str> = [key].into_iter().chain(fields).map(String::as_str).collect();
                format!("INSERT INTO {table} ({}) VALUES (:{})", columns.join(", "), columns.join(", :"))
            }
            Action::Update => {
                let set: Vec<String> = fields.iter().map(|field| format!("{field} = :{field}")).collect();
                format!("UPDATE {table} SET {} WHERE {key} = :{key}", set.join(", "))
            }
            Action::Delete => format!("DELETE FROM {table} WHERE {key} = :key"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::statement::Statement;

    #[test]
    fn a_verb_is_a_statement_of_sql() {
        let of = |action| {
            let fields = ["a", "b"].map(str::to_owned).to_vec();
            let verb = Verb { action, table: "t".to_owned(), key: "k".to_owned(), fields };
            let statement = Statement::of_verb("v", verb.clone());
            assert_eq!((statement.verb(), statement.text()), (Some(&verb), verb.sql()));
            (statement.text(), statement.params().join(" "))
        };
        for (action, sql, params) in [
            (Action::Read, "SELECT a, b FROM t WHERE k = :key", "key"),
            (Action::Scan, "SELECT a, b FROM t WHERE k >= :key ORDER BY k LIMIT :count", "key count"),
            (Action::Insert, "INSERT INTO t (k, a, b) VALUES (:k, :a, :b)", "k a b"),
            (Action::Update, "UPDATE t SET a = :a, b = :b WHERE k = :k", "a b k"),
            (Action::Delete, "DELETE FROM t WHERE k = :key", "key"),
        ] {
            assert_eq!(of(action), (sql.to_owned(), params.to_owned()), "{}", action.name());
        }
    }
}
