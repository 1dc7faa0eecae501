//! The password file, by libpq's rules.
//!
//! <https://www.postgresql.org/docs/current/libpq-pgpass.html>

use std::path::Path;

use crate::net::private_file;
use crate::net::secret::Password;

/// The socket directories that a build of `PostgreSQL` has as its default; in the file they are `localhost`.
pub(super) const SOCKET_DIRECTORIES: [&str; 2] = ["/var/run/postgresql", "/tmp"];

/// The lines of a password file.
#[derive(Default)]
pub(super) struct PasswordFile {
    lines: Vec<Vec<u8>>,
}

impl PasswordFile {
    /// Reads a file. One that does not exist is empty; one that others could read is left alone, with a
    /// warning.
    pub(super) fn open(path: &Path) -> Self {
        private_file::read("password file", path).map_or_else(Self::default, |text| Self::of(&text))
    }

    /// The lines of a file's content.
    pub(super) fn of(text: &[u8]) -> Self {
        Self { lines: text.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect() }
    }

    /// The password of the first line that matches. `host` is a name, an address or a socket directory.
    pub(super) fn password(&self, host: &str, port: u16, database: &str, user: &str) -> Option<Password> {
        let host = if SOCKET_DIRECTORIES.contains(&host) { "localhost" } else { host };
        let port = port.to_string();
        self.lines.iter().find_map(|line| {
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            if line.starts_with(b"#") {
                return None;
            }
            let mut rest = line;
            for field in [host, &port, database, user] {
                rest = after_field(rest, field.as_bytes())?;
            }
            Some(Password::new(first_field(rest)))
        })
    }
}

/// What follows the line's first field, if that field is `*` or, unescaped, the value.
fn after_field<'a>(line: &'a [u8], value: &[u8]) -> Option<&'a [u8]> {
    if let Some(rest) = line.strip_prefix(b"*:") {
        return Some(rest);
    }
    let end = field_end(line);
    (end < line.len() && unescape(&line[..end]) == value).then(|| &line[end + 1..])
}

fn first_field(line: &[u8]) -> Vec<u8> {
    unescape(&line[..field_end(line)])
}

/// The index of the first ':' without a backslash before it, or the length.
fn field_end(line: &[u8]) -> usize {
    let mut escaped = false;
    line.iter()
        .position(|&b| {
            let ends = b == b':' && !escaped;
            escaped = b == b'\\' && !escaped;
            ends
        })
        .unwrap_or(line.len())
}

/// The field without the backslashes that escape; one at the very end stands for itself.
fn unescape(field: &[u8]) -> Vec<u8> {
    let mut bytes = field.iter().copied();
    let mut plain = Vec::with_capacity(field.len());
    while let Some(byte) = bytes.next() {
        plain.push(if byte == b'\\' { bytes.next().unwrap_or(byte) } else { byte });
    }
    plain
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> PasswordFile {
        PasswordFile::of(text.as_bytes())
    }

    fn found(file: &PasswordFile, host: &str, port: u16, database: &str, user: &str) -> Option<String> {
        let password = file.password(host, port, database, user)?;
        Some(String::from_utf8(password.expose().to_vec()).unwrap())
    }

    #[test]
    fn the_first_matching_line_wins() {
        let file = file("# h:5432:d:u:comment\nh:5432:d:other:no\nh:5432:d:u:first\nh:5432:d:u:second");
        assert_eq!(found(&file, "h", 5432, "d", "u").as_deref(), Some("first"));
        assert_eq!(found(&file, "h", 5433, "d", "u"), None);
        assert_eq!(found(&file, "H", 5432, "d", "u"), None);
    }

    #[test]
    fn a_star_matches_anything_but_only_alone() {
        let file = file("*:*:*:u:any\nh*:*:*:v:no\n*:*:*:*");
        assert_eq!(found(&file, "host", 1, "d", "u").as_deref(), Some("any"));
        assert_eq!(found(&file, "host", 1, "d", "v"), None);
    }

    #[test]
    fn a_backslash_escapes_colons_and_itself() {
        let file = file(r"\:\:1:*:a\\b:u:p\:w\\d:rest");
        assert_eq!(found(&file, "::1", 1, r"a\b", "u").as_deref(), Some(r"p:w\d"));
        assert_eq!(found(&super::tests::file(r"h:1:d:u:end\"), "h", 1, "d", "u").as_deref(), Some(r"end\"));
    }

    #[test]
    fn a_default_socket_directory_is_localhost_and_another_is_itself() {
        let file = file("localhost:5432:d:u:local\r\n/run/other:5432:d:u:other");
        assert_eq!(found(&file, "/tmp", 5432, "d", "u").as_deref(), Some("local"));
        assert_eq!(found(&file, "/var/run/postgresql", 5432, "d", "u").as_deref(), Some("local"));
        assert_eq!(found(&file, "/run/other", 5432, "d", "u").as_deref(), Some("other"));
    }

    #[test]
    fn a_line_with_too_few_fields_never_matches() {
        for line in ["", ":", "h", "h:5432", "h:5432:d:u", "*", "*:*:*:"] {
            assert_eq!(found(&file(line), "h", 5432, "d", "u"), None, "{line}");
        }
    }
}
