//! Which transaction a statement belongs to.

/// Follows the transactions of one session by its statements.
#[derive(Debug, Default)]
pub(crate) struct Transactions {
    /// The open one.
    open: Option<u64>,
    /// Whether each statement outside a transaction begins one, as `SET autocommit = 0` has it.
    chained: bool,
}

/// What a statement does to transactions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Begin,
    End,
    /// Ends one and begins the next.
    Chain,
    /// Belongs to none that is open, and ends it: what `MySQL` commits by itself.
    Apart,
    Within,
}

impl Transactions {
    /// The number of the transaction that a statement (normalised) belongs to; `number` gives new ones. A statement that
    /// failed does not end its transaction, unless it is the one that was to end it.
    pub(crate) fn of(
        &mut self,
        text: &str,
        first_value: Option<&str>,
        mysql: bool,
        number: &mut impl FnMut() -> u64,
    ) -> u64 {
        let mut own = None;
        for part in text.split("; ") {
            let step = step(part, mysql);
            if step == Step::Apart || (step == Step::Begin && mysql) {
                self.open = None;
            }
            let open = self.open.or(own);
            let current = open.unwrap_or_else(&mut *number);
            own = own.or(Some(current));
            self.open = match step {
                Step::Begin | Step::Chain => Some(current),
                Step::End | Step::Apart => None,
                Step::Within if self.chained && !is_set(part) => Some(current),
                Step::Within => self.open,
            };
            if step == Step::Chain {
                self.open = Some(number());
            }
            if mysql {
                self.autocommit(part, first_value);
            }
        }
        own.unwrap_or_else(number)
    }

    fn autocommit(&mut self, part: &str, value: Option<&str>) {
        let Some(set) = part.strip_prefix("set ") else { return };
        let set = set.strip_prefix("session ").unwrap_or(set);
        let set = set.strip_prefix("@@session.").or_else(|| set.strip_prefix("@@")).unwrap_or(set);
        if set.get(..10).is_some_and(|name| name.eq_ignore_ascii_case("autocommit")) {
            let word = set[10..].trim_start_matches([' ', '=', ':']);
            let given = if word.starts_with('$') { value.unwrap_or_default() } else { word };
            self.chained = ["0", "off", "false"].iter().any(|off| given.eq_ignore_ascii_case(off));
            // Turning it on commits.
            self.open = self.open.filter(|_| self.chained);
        }
    }
}

/// What a statement is to its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    /// Its beginning.
    Begin,
    /// Its end.
    End,
    /// Neither, or both.
    Within,
}

/// What a statement (normalised) is to its transaction.
#[must_use]
pub fn part(text: &str, mysql: bool) -> Part {
    match step(text, mysql) {
        _ if text.contains("; ") => Part::Within,
        Step::Begin => Part::Begin,
        Step::End | Step::Chain => Part::End,
        Step::Apart | Step::Within => Part::Within,
    }
}

fn is_set(part: &str) -> bool {
    part.starts_with("set ") || part.starts_with("use ")
}

fn step(part: &str, mysql: bool) -> Step {
    let mut words = part.split(' ');
    let first = words.next().unwrap_or_default();
    let second = words.next().unwrap_or_default();
    match first {
        "begin" => Step::Begin,
        "start" if second == "transaction" => Step::Begin,
        "commit" | "end" | "abort" | "rollback" if second == "prepared" => Step::Within,
        "rollback" if part.split(' ').any(|word| word == "to") => Step::Within,
        "commit" | "end" | "abort" | "rollback" if part.ends_with("and chain") => Step::Chain,
        "commit" | "end" | "abort" | "rollback" => Step::End,
        "prepare" if second == "transaction" => Step::End,
        "create" | "alter" | "drop" | "truncate" | "rename" if mysql && second != "temporary" => Step::Apart,
        _ => Step::Within,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn numbers(statements: &[&str], mysql: bool) -> Vec<u64> {
        let (mut session, mut last) = (Transactions::default(), 0);
        let mut number = || {
            last += 1;
            last
        };
        statements.iter().map(|text| session.of(text, Some("0"), mysql, &mut number)).collect()
    }

    #[test]
    fn a_statement_outside_is_a_transaction_of_its_own() {
        assert_eq!(numbers(&["select $1", "select $1"], false), [1, 2]);
        let within = [
            "begin",
            "select $1",
            "savepoint a",
            "rollback to savepoint a",
            "select $1",
            "commit",
            "select $1",
        ];
        assert_eq!(numbers(&within, false), [1, 1, 1, 1, 1, 1, 2]);
        assert_eq!(numbers(&["start transaction", "abort", "begin", "end", "begin"], false), [1, 1, 2, 2, 3]);
        assert_eq!(numbers(&["begin", "begin", "commit"], false), [1, 1, 1]);
    }

    #[test]
    fn several_statements_in_one_are_followed() {
        assert_eq!(numbers(&["begin; select $1; commit", "select $1"], false), [1, 2]);
        assert_eq!(
            numbers(&["begin; select $1", "select $1", "commit; begin", "select $1"], false),
            [1, 1, 1, 1]
        );
        assert_eq!(numbers(&["begin", "commit and chain", "select $1"], false), [1, 1, 2]);
        assert_eq!(numbers(&["begin", "prepare transaction $1", "commit prepared $1"], false), [1, 1, 2]);
    }

    #[test]
    fn mysql_commits_by_itself_where_it_does() {
        assert_eq!(
            numbers(&["begin", "create table t(a int)", "select $1", "begin", "begin"], true),
            [1, 2, 3, 4, 5]
        );
        let chained = ["set autocommit = $1", "select $1", "select $1", "commit", "select $1"];
        assert_eq!(numbers(&chained, true), [1, 2, 2, 2, 3]);
    }
}
