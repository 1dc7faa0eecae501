//! Statements that hold a secret, or may: they are never kept.

/// What stands, in any case, in a statement that may hold a secret.
const MARKS: &[&str] = &[
    "password",
    "passwd",
    "passphrase",
    "pwd",
    "identified",
    "secret",
    "credential",
    "api_key",
    "apikey",
    "access_key",
    "accesskey",
    "private_key",
    "authorization:",
    "bearer ",
];
/// Functions that take a key, a password or a connection string.
const FUNCTIONS: &[&str] =
    &["dblink", "pgp_", "crypt", "encrypt", "decrypt", "aes_", "des_", "hmac", "gen_salt", "password_hash"];
/// What begins a statement that may hold a connection string, and the words that say so.
const OBJECTS: &[&str] = &["mapping", "subscription", "server", "connection", "wrapper", "user", "role"];
const PLAIN: &[&str] = &["select", "insert", "update", "delete", "with", "values", "merge", "replace"];

/// Whether a statement may hold a secret; `is_bare` says that it has neither literals nor parameters nor names in quotes.
pub(crate) fn has_secret(sql: &str, is_bare: bool) -> bool {
    let text = sql.to_ascii_lowercase();
    if names_credentials(&text) {
        return true;
    }
    let first = text.trim_start_matches(|next: char| !next.is_ascii_alphabetic());
    let first = first.split(|next: char| !next.is_ascii_alphabetic()).next().unwrap_or_default();
    // A query that only names such a column holds none.
    MARKS.iter().any(|mark| text.contains(mark)) && !(is_bare && PLAIN.contains(&first))
}

fn names_credentials(text: &str) -> bool {
    let words = || text.split(|next: char| !next.is_ascii_alphanumeric() && next != '_');
    let has = |word: &str| text.contains(word) && words().any(|found| found == word);
    let defines =
        || (has("create") || has("alter") || has("grant")) && words().any(|word| OBJECTS.contains(&word));
    FUNCTIONS.iter().any(|name| text.contains(name) && words().any(|word| word.starts_with(name)))
        || (text.contains("copy") && has("program"))
        || (text.contains("change") && has("master"))
        || defines()
        || has_url(text)
}

/// Whether there is a URL with a user's part: `scheme://user:password@host`.
fn has_url(text: &str) -> bool {
    text.match_indices("://").any(|(at, _)| {
        let rest = &text[at + 3..];
        let end = rest
            .find(|next: char| next.is_whitespace() || matches!(next, '/' | '\'' | '"'))
            .unwrap_or(rest.len());
        rest[..end].contains('@')
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_may_hold_a_secret_is_seen() {
        for sql in [
            "ALTER ROLE bob PASSWORD 'hunter2'",
            "create user bob identified by 'hunter2'",
            "SET PASSWORD FOR bob = PASSWORD('x')",
            "CREATE USER MAPPING FOR bob SERVER far OPTIONS (user 'a')",
            "ALTER SUBSCRIPTION s CONNECTION 'host=x'",
            "CREATE SERVER far FOREIGN DATA WRAPPER w OPTIONS (host 'x')",
            "SELECT * FROM dblink('host=x', 'SELECT 1')",
            "SELECT pgp_sym_encrypt(a, 'k')",
            "SELECT crypt($1, gen_salt('bf'))",
            "INSERT INTO t VALUES (AES_ENCRYPT('a', 'k'))",
            "COPY t FROM PROGRAM 'curl https://example.com/x'",
            "SELECT 'postgresql://a:b@host/x'",
            "DO $$ BEGIN EXECUTE 'ALTER ROLE bob PASSWORD ''x'''; END $$",
            "UPDATE users SET password_hash = $1",
            "CHANGE MASTER TO MASTER_HOST = 'x'",
            "GRANT ALL ON *.* TO 'user'@'%'",
            "GRANT x TO user",
        ] {
            assert!(has_secret(sql, false), "{sql}");
        }
        assert!(has_secret("ALTER ROLE bob PASSWORD \"x\"", true));
    }

    #[test]
    fn what_holds_none_is_kept() {
        for sql in
            ["SELECT 1", "SELECT 'https://example.com/a@b'", "CREATE TABLE t (a int)", "COPY t FROM STDIN"]
        {
            assert!(!has_secret(sql, false), "{sql}");
        }
        assert!(!has_secret("SELECT password FROM t", true));
        assert!(has_secret("SELECT password FROM t WHERE a = 'b'", false));
    }
}
