//! The tables of probes: their names, and all the SQL that is said of them.
//!
//! Two small tables beside the data. One takes the numbers of probes that write, so that acknowledged ones can be
//! looked for afterwards; the other takes the markers whose arrival on replicas is watched for.

/// The table of numbers written by probes.
pub const WRITES: &str = "nephoscope_probe_write";
/// The table of markers. Its row with the id 0 stands for as long as the table does.
pub const MARKERS: &str = "nephoscope_probe_marker";
/// How many rows a poll reads at most.
pub const POLL_ROWS: usize = 100;

/// What is said of the tables in a dialect. What makes, empties and drops them may be several statements, with
/// semicolons between them.
#[derive(Clone, Copy, Debug)]
pub struct ProbeStatements {
    /// Makes the tables where they are missing.
    pub create: &'static str,
    /// Empties them.
    pub empty: &'static str,
    /// Puts the standing row there; its number goes between this and a closing bracket.
    pub stand: &'static str,
    /// Drops them.
    pub drop: &'static str,
    /// Reads which numbers were written.
    pub written: &'static str,
    /// A probe that writes: `:probe`, `:number`.
    pub write: &'static str,
    /// A probe that reads: the standing row.
    pub read: &'static str,
    /// A marker that is inserted: `:id`, `:number`;
    pub insert: &'static str,
    /// updated,
    pub update: &'static str,
    /// and deleted: `:id`.
    pub delete: &'static str,
    /// Inserts rows for markers to be made of, from `:first` to `:last`, all in one commit.
    pub stock: &'static str,
    /// Reads which of the rows from `:first` to `:last` are to be seen, and their numbers. No more than [`POLL_ROWS`] of
    /// them, so that a poll costs the same however many markers are on their way.
    pub poll: &'static str,
}

impl ProbeStatements {
    /// In the SQL that every product understands; at most 100,000 rows are stocked.
    pub const STANDARD: Self = Self {
        create: "CREATE TABLE IF NOT EXISTS nephoscope_probe_write (
  probe integer NOT NULL, number bigint NOT NULL, PRIMARY KEY (probe, number));
CREATE TABLE IF NOT EXISTS nephoscope_probe_marker (id bigint PRIMARY KEY, number bigint NOT NULL)",
        empty: "DELETE FROM nephoscope_probe_write; DELETE FROM nephoscope_probe_marker",
        stand: "INSERT INTO nephoscope_probe_marker (id, number) VALUES (0, ",
        drop: "DROP TABLE IF EXISTS nephoscope_probe_write; DROP TABLE IF EXISTS nephoscope_probe_marker",
        written: "SELECT probe, number FROM nephoscope_probe_write",
        write: "INSERT INTO nephoscope_probe_write (probe, number) VALUES (:probe, :number)",
        read: "SELECT number FROM nephoscope_probe_marker WHERE id = 0",
        insert: "INSERT INTO nephoscope_probe_marker (id, number) VALUES (:id, :number)",
        update: "UPDATE nephoscope_probe_marker SET number = :number WHERE id = :id",
        delete: "DELETE FROM nephoscope_probe_marker WHERE id = :id",
        stock: "WITH digit (d) AS (SELECT 0 UNION ALL SELECT 1 UNION ALL SELECT 2 UNION ALL SELECT 3 UNION ALL SELECT 4
    UNION ALL SELECT 5 UNION ALL SELECT 6 UNION ALL SELECT 7 UNION ALL SELECT 8 UNION ALL SELECT 9),
  stock (id) AS (SELECT :first + a.d + 10 * b.d + 100 * c.d + 1000 * e.d + 10000 * f.d
    FROM digit AS a CROSS JOIN digit AS b CROSS JOIN digit AS c CROSS JOIN digit AS e CROSS JOIN digit AS f)
  INSERT INTO nephoscope_probe_marker (id, number) SELECT id, 0 FROM stock WHERE id <= :last",
        poll: "SELECT id, number FROM nephoscope_probe_marker
  WHERE id BETWEEN :first AND :last ORDER BY id LIMIT 100",
    };

    /// What is said while tables are made, read and dropped, by name: for those who do that.
    #[must_use]
    pub fn set_up(&self) -> [(&'static str, &'static str); 6] {
        [
            ("create", self.create),
            ("empty", self.empty),
            ("stand", self.stand),
            ("read", self.read),
            ("written", self.written),
            ("drop", self.drop),
        ]
    }

    /// All of the statements.
    #[must_use]
    pub fn all(&self) -> [&'static str; 12] {
        [
            self.create,
            self.empty,
            self.stand,
            self.drop,
            self.written,
            self.write,
            self.read,
            self.insert,
            self.update,
            self.delete,
            self.stock,
            self.poll,
        ]
    }
}
