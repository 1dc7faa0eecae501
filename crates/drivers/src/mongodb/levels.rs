//! Read and write concern (<https://www.mongodb.com/docs/manual/reference/read-concern/>,
//! <https://www.mongodb.com/docs/manual/reference/write-concern/>): what a read may see, and who has to have a write.

use super::bson::{put_bool, put_document, put_int, put_text};

/// The levels that set both: reads `linearizable` go with writes `majority`, and `local` with `1`.
pub(super) const LEVELS: &[&str] = &["local", "majority", "linearizable"];
/// Those of reads.
pub(super) const READS: &[&str] = &["local", "available", "majority", "linearizable"];
/// Those of writes: so many members, or most of those that vote.
pub(super) const WRITES: &[&str] = &["1", "2", "3", "majority"];

/// What `load.consistency` asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) read: &'static str,
    pub(super) write: &'static str,
}

impl Levels {
    /// Those of `majority`, or of `read local write majority`.
    pub(super) fn named(text: &str) -> Option<Self> {
        let one_of = |all: &[&'static str], name: &str| all.iter().copied().find(|known| *known == name);
        if let Some(read) = one_of(LEVELS, text) {
            return Some(Self { read, write: if read == "local" { "1" } else { "majority" } });
        }
        let (read, write) = text.strip_prefix("read ")?.split_once(" write ")?;
        Some(Self { read: one_of(READS, read)?, write: one_of(WRITES, write)? })
    }
}

/// Who has to have a write, and how long that is waited for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WriteConcern {
    /// A number of members, `majority`, or a name of the replica set's own; the server's default where there is none.
    pub w: Option<String>,
    /// Whether they have to have it in their journals.
    pub journal: Option<bool>,
    /// In milliseconds; 0 is without an end.
    pub timeout: Option<u32>,
}

impl WriteConcern {
    /// The same with the level of a run.
    pub(super) fn at(&self, levels: Option<Levels>) -> Self {
        let w = levels.map(|levels| levels.write.to_owned()).or_else(|| self.w.clone());
        Self { w, ..self.clone() }
    }

    /// Writes it as an element of a command, unless the server's default is meant.
    pub(super) fn put(&self, out: &mut Vec<u8>) {
        if *self == Self::default() {
            return;
        }
        put_document(out, "writeConcern", |out| {
            match self.w.as_deref().map(|w| (w, w.parse::<u32>())) {
                Some((_, Ok(members))) => put_int(out, "w", members.into()),
                Some((name, Err(_))) => put_text(out, "w", name.as_bytes()),
                None => {}
            }
            if let Some(journal) = self.journal {
                put_bool(out, "j", journal);
            }
            if let Some(timeout) = self.timeout {
                put_int(out, "wtimeout", timeout.into());
            }
        });
    }
}

/// Writes a read concern as an element of a command, unless the server's default is meant.
pub(super) fn put_read_concern(out: &mut Vec<u8>, level: Option<&str>) {
    if let Some(level) = level {
        put_document(out, "readConcern", |out| put_text(out, "level", level.as_bytes()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_for_both_or_one_for_each() {
        let of = |text: &str| Levels::named(text).map(|levels| (levels.read, levels.write));
        assert_eq!(of("local"), Some(("local", "1")));
        assert_eq!(of("majority"), Some(("majority", "majority")));
        assert_eq!(of("linearizable"), Some(("linearizable", "majority")));
        assert_eq!(of("read available write 2"), Some(("available", "2")));
        assert!(
            READS
                .iter()
                .all(|read| WRITES.iter().all(|write| of(&format!("read {read} write {write}")).is_some()))
        );
        for wrong in
            ["", "1", "available", "read local", "write 1", "read 1 write 1", "read local write local"]
        {
            assert_eq!(of(wrong), None, "{wrong}");
        }
    }
}
