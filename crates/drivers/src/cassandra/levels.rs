//! Consistency levels (<https://cassandra.apache.org/doc/latest/cassandra/architecture/dynamo.html>).

/// The levels that reads and writes have in common.
pub(super) const LEVELS: &[&str] =
    &["ONE", "TWO", "THREE", "QUORUM", "ALL", "LOCAL_ONE", "LOCAL_QUORUM", "EACH_QUORUM"];

/// A level as the protocol has it (section 3, `[consistency]`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Level(pub(super) u16);

/// How many replicas have to answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Levels {
    pub(super) read: Level,
    pub(super) write: Level,
}

impl Level {
    fn of(name: &str) -> Option<Self> {
        Some(Self(match name {
            "ONE" => 1,
            "TWO" => 2,
            "THREE" => 3,
            "QUORUM" => 4,
            "ALL" => 5,
            "LOCAL_QUORUM" => 6,
            "EACH_QUORUM" => 7,
            "LOCAL_ONE" => 10,
            _ => return None,
        }))
    }
}

impl Levels {
    /// What drivers of Cassandra take where nothing is said.
    pub(super) const SESSION: Self = Self { read: Level(10), write: Level(10) };
    /// For loading, and for the record of what is loaded: who comes next has to see it.
    pub(super) const SET_UP: Self = Self { read: Level(6), write: Level(6) };

    /// Those of `QUORUM`, or of `read ONE write QUORUM`.
    pub(super) fn named(text: &str) -> Option<Self> {
        if let Some(level) = Level::of(text) {
            return Some(Self { read: level, write: level });
        }
        let (read, write) = text.strip_prefix("read ")?.split_once(" write ")?;
        Some(Self { read: Level::of(read)?, write: Level::of(write)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_level_is_for_both_or_one_for_each() {
        for level in LEVELS {
            assert!(Levels::named(level).is_some(), "{level}");
        }
        let mixed = Levels::named("read ONE write QUORUM").unwrap();
        assert_eq!(mixed, Levels { read: Level(1), write: Level(4) });
        for wrong in
            ["", "one", "read ONE", "write ONE", "read ONE write", "read ONE write ANY", "ONE QUORUM"]
        {
            assert_eq!(Levels::named(wrong), None, "{wrong}");
        }
    }
}
