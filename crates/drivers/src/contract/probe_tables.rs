//! The tables of probes: their names, and all the SQL that is said of them.
//!
//! Two small tables beside the data. One takes the numbers of probes that write, so that acknowledged ones can be
//! looked for afterwards; the other takes the markers whose arrival on replicas is watched for.

/// The table of numbers written by probes.
pub const WRITES: &str = "nephoscope_probe_write";
/// The table of markers. Its row with the id 0 stands for as long as the table does.
pub const MARKERS: &str = "nephoscope_probe_marker";

/// Makes the tables where they are missing.
pub const CREATE: &str = "CREATE TABLE IF NOT EXISTS nephoscope_probe_write (
  probe integer NOT NULL, number bigint NOT NULL, PRIMARY KEY (probe, number));
CREATE TABLE IF NOT EXISTS nephoscope_probe_marker (id bigint PRIMARY KEY, number bigint NOT NULL)";
/// Empties them.
pub const EMPTY: &str = "TRUNCATE nephoscope_probe_write, nephoscope_probe_marker";
/// Puts the standing row there; its number goes between this and a closing bracket.
pub const STAND: &str = "INSERT INTO nephoscope_probe_marker (id, number) VALUES (0, ";
/// Drops them.
pub const DROP: &str = "DROP TABLE IF EXISTS nephoscope_probe_write, nephoscope_probe_marker";
/// Reads which numbers were written.
pub const WRITTEN: &str = "SELECT probe, number FROM nephoscope_probe_write";

/// A probe that writes.
pub const WRITE: &str = "INSERT INTO nephoscope_probe_write (probe, number) VALUES (:probe, :number)";
/// A probe that reads: the standing row.
pub const READ: &str = "SELECT number FROM nephoscope_probe_marker WHERE id = 0";
/// A marker that is inserted,
pub const INSERT: &str = "INSERT INTO nephoscope_probe_marker (id, number) VALUES (:id, :number)";
/// updated,
pub const UPDATE: &str = "UPDATE nephoscope_probe_marker SET number = :number WHERE id = :id";
/// and deleted.
pub const DELETE: &str = "DELETE FROM nephoscope_probe_marker WHERE id = :id";
/// Inserts rows for markers to be made of, all in one commit.
pub const STOCK: &str = "INSERT INTO nephoscope_probe_marker (id, number)
  SELECT id, 0 FROM generate_series(CAST(:first AS bigint), CAST(:last AS bigint)) AS stock (id)";
/// Reads which of some rows are to be seen, and their numbers. No more than [`POLL_ROWS`] of them, so that a poll costs
/// the same however many markers are on their way.
pub const POLL: &str = "SELECT id, number FROM nephoscope_probe_marker
  WHERE id BETWEEN :first AND :last ORDER BY id LIMIT 100";
/// How many rows a poll reads at most.
pub const POLL_ROWS: usize = 100;

/// All of the above that is said while tables are made, read and dropped, by name: for those who do that.
pub const SET_UP: [(&str, &str); 6] = [
    ("create", CREATE),
    ("empty", EMPTY),
    ("stand", STAND),
    ("read", READ),
    ("written", WRITTEN),
    ("drop", DROP),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_statement_is_about_these_tables_alone() {
        let all = [CREATE, EMPTY, STAND, DROP, WRITTEN, WRITE, READ, INSERT, UPDATE, DELETE, STOCK, POLL];
        for sql in all {
            let tables = sql.split(|next: char| !next.is_alphanumeric() && next != '_');
            let named: Vec<&str> = tables.filter(|word| word.starts_with("nephoscope")).collect();
            assert!(!named.is_empty() && named.iter().all(|name| [WRITES, MARKERS].contains(name)), "{sql}");
        }
        assert!(POLL.ends_with(&format!(" LIMIT {POLL_ROWS}")));
    }
}
