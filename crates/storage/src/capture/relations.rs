//! What a server's file is a part of: a relation, the log, a file of its own.

use std::collections::HashMap;

/// `PostgreSQL` cuts a relation into files of this size.
const RELATION_FILE: u64 = 1 << 30;
/// `PostgreSQL` cuts its tables of transactions' states into files of this size: 32 pages of 8 KiB.
const STATES_FILE: u64 = 32 * 8192;
/// Folders of such files.
const STATES: [&str; 8] = [
    "pg_xact",
    "pg_subtrans",
    "pg_commit_ts",
    "pg_multixact/offsets",
    "pg_multixact/members",
    "pg_notify",
    "pg_serial",
    "pg_clog",
];
/// The forks of a relation of `PostgreSQL`, as file names have them.
const FORKS: [&str; 3] = ["fsm", "vm", "init"];

/// The names of relations, by the paths of their first files, as the server tells them.
#[derive(Clone, Debug, Default)]
pub struct Relations {
    names: HashMap<String, String>,
}

impl FromIterator<(String, String)> for Relations {
    fn from_iter<T: IntoIterator<Item = (String, String)>>(pairs: T) -> Self {
        Self { names: pairs.into_iter().collect() }
    }
}

impl Relations {
    /// What a file is a part of, and where in that it begins, in bytes. What is not known keeps its path's name.
    #[must_use]
    pub fn of_file(&self, path: &str) -> (String, u64) {
        if let Some(name) = self.names.get(path) {
            return (name.clone(), 0);
        }
        let (folder, file) = path.rsplit_once('/').unwrap_or(("", path));
        if folder == "pg_wal" || folder == "pg_xlog" {
            // Its files are used again under other names: a ring, of which each file is a whole.
            return (folder.to_owned(), 0);
        }
        if let (Some(folder), Ok(number)) =
            (STATES.iter().find(|known| **known == folder), u64::from_str_radix(file, 16))
        {
            return ((*folder).to_owned(), number.saturating_mul(STATES_FILE));
        }
        self.of_relation(folder, file)
            .or_else(|| of_temporary(folder, file))
            .or_else(|| of_innodb(folder, file))
            .unwrap_or_else(|| (path.to_owned(), 0))
    }

    /// A relation of `PostgreSQL`: `base/5/16384`, `base/5/16384.1`, `base/5/16384_fsm`, `base/5/16384_fsm.1`.
    fn of_relation(&self, folder: &str, file: &str) -> Option<(String, u64)> {
        if folder != "global" && !folder.starts_with("base/") && !folder.starts_with("pg_tblspc/") {
            return None;
        }
        let (stem, piece) = match file.split_once('.') {
            Some((stem, piece)) => (stem, piece.parse().ok()?),
            None => (file, 0_u64),
        };
        let (number, fork) = match stem.split_once('_') {
            Some((number, fork)) if FORKS.contains(&fork) => (number, Some(fork)),
            Some(_) => return None,
            None => (stem, None),
        };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let first = format!("{folder}/{number}");
        let name = self.names.get(&first).cloned().unwrap_or(first);
        let name = fork.map_or_else(|| name.clone(), |fork| format!("{name}:{fork}"));
        Some((name, piece.saturating_mul(RELATION_FILE)))
    }
}

/// Temporary files and tables of `PostgreSQL`, whose names hold the numbers of processes.
fn of_temporary(folder: &str, file: &str) -> Option<(String, u64)> {
    if folder.split('/').any(|part| part.starts_with("pgsql_tmp")) || file.starts_with("pgsql_tmp") {
        return Some(("temporary files".to_owned(), 0));
    }
    let rest = file.strip_prefix('t')?;
    let (process, relation) = rest.split_once('_')?;
    let digits = |text: &str| text.bytes().next().is_some_and(|byte| byte.is_ascii_digit());
    (folder.starts_with("base/") && digits(process) && digits(relation))
        .then(|| ("temporary tables".to_owned(), 0))
}

/// Tables of `InnoDB` (`shop/orders.ibd`), and the binary and relay logs of `MariaDB`, which go on in other files.
fn of_innodb(folder: &str, file: &str) -> Option<(String, u64)> {
    if let Some(table) = file.strip_suffix(".ibd") {
        return Some((if folder.is_empty() { table.to_owned() } else { format!("{folder}.{table}") }, 0));
    }
    let (stem, number) = file.rsplit_once('.')?;
    let is_log = folder.is_empty()
        && (stem.ends_with("binlog") || stem.ends_with("-bin") || stem.starts_with("relay"));
    (is_log && number.len() >= 6 && number.bytes().all(|byte| byte.is_ascii_digit()))
        .then(|| (stem.to_owned(), 0))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(path: &str) -> (String, u64) {
        let known = [("base/5/16384".to_owned(), "public.orders".to_owned())];
        Relations::from_iter(known).of_file(path)
    }

    #[test]
    fn pieces_and_forks_of_a_relation_have_its_name() {
        assert_eq!(of("base/5/16384"), ("public.orders".into(), 0));
        assert_eq!(of("base/5/16384.2"), ("public.orders".into(), 2 << 30));
        assert_eq!(of("base/5/16384_fsm"), ("public.orders:fsm".into(), 0));
        assert_eq!(of("base/5/16384_vm.1"), ("public.orders:vm".into(), 1 << 30));
        assert_eq!(of("base/5/16400.1"), ("base/5/16400".into(), 1 << 30));
    }

    #[test]
    fn the_log_is_a_ring_and_states_of_transactions_count_through() {
        assert_eq!(of("pg_wal/000000010000000000000003"), ("pg_wal".into(), 0));
        assert_eq!(of("pg_xact/0002"), ("pg_xact".into(), 2 * 32 * 8192));
        assert_eq!(of("pg_multixact/members/0001"), ("pg_multixact/members".into(), 32 * 8192));
    }

    #[test]
    fn what_holds_a_process_number_has_a_name_without() {
        assert_eq!(of("base/5/t17_16390"), ("temporary tables".into(), 0));
        assert_eq!(of("base/pgsql_tmp/pgsql_tmp912.0"), ("temporary files".into(), 0));
    }

    #[test]
    fn innodb_tables_and_the_binary_log_have_their_names() {
        assert_eq!(of("shop/orders.ibd"), ("shop.orders".into(), 0));
        assert_eq!(of("binlog.000017"), ("binlog".into(), 0));
        assert_eq!(of("ibdata1"), ("ibdata1".into(), 0));
        assert_eq!(of("ib_logfile0"), ("ib_logfile0".into(), 0));
    }

    #[test]
    fn anything_else_keeps_its_path() {
        for path in
            ["global/pg_control", "base/5/PG_VERSION", "base/5/16384.x", "a", "", "x/t_1", "base/5/t1_"]
        {
            assert_eq!(of(path), (path.to_owned(), 0));
        }
    }
}
