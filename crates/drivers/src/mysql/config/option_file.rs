//! The user's option file, `~/.my.cnf`.
//!
//! <https://dev.mysql.com/doc/refman/8.4/en/option-files.html>

use super::KEYS;
use crate::net::given::Given;
use crate::net::secret::Password;

/// Adds what the `[client]` group says and the URL does not. Options that mean nothing here are passed over, as
/// directives are: the file is for other programs too.
pub(super) fn add(text: &[u8], given: &mut Given) {
    let text = String::from_utf8_lossy(text);
    let (mut of_client, mut found) = (false, Vec::new());
    for line in text.lines().map(str::trim) {
        if let Some(group) = line.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
            of_client = group.0.trim() == "client";
        } else if of_client
            && !line.starts_with(['#', ';', '!'])
            && let Some((name, value)) = line.split_once('=')
        {
            found.push((name.trim().replace('_', "-"), value_of(value.trim())));
        }
    }
    // The last one counts.
    for (name, value) in found.into_iter().rev() {
        match KEYS.find(&name) {
            Some("password") => {
                given.password = given.password.take().or_else(|| Some(Password::new(value)));
            }
            Some(key) => given.set_by_file(key, value),
            None => {}
        }
    }
}

/// A value without its quotes, its comment and its escapes. A backslash before any other character stands for itself.
fn value_of(text: &str) -> String {
    let quote = text.chars().next().filter(|first| matches!(first, '"' | '\''));
    let mut value = String::new();
    let mut rest = text.chars().skip(usize::from(quote.is_some())).peekable();
    while let Some(next) = rest.next() {
        let escaped = if next == '\\' { rest.peek().and_then(|escaped| unescaped(*escaped)) } else { None };
        match escaped {
            Some(plain) => {
                value.push(plain);
                rest.next();
            }
            None if Some(next) == quote => return value,
            // Unlike at a line's beginning, a comment within it begins with '#' only.
            None if next == '#' && quote.is_none() => return value.trim_end().to_owned(),
            None => value.push(next),
        }
    }
    value
}

fn unescaped(letter: char) -> Option<char> {
    Some(match letter {
        'b' => '\u{8}',
        't' => '\t',
        'n' => '\n',
        'r' => '\r',
        's' => ' ',
        '\\' | '"' | '\'' => letter,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Given {
        let mut given = Given::default();
        add(text.as_bytes(), &mut given);
        given
    }

    #[test]
    fn only_the_clients_group_counts_and_its_last_line() {
        let given = read(
            "host=none\n[mysqld]\nport=1\n[client]\n# port=2\n;port=3\nport = 4\nport=5\nssl_ca=/x\n[mysql]\nuser=no",
        );
        assert_eq!((given.text("port"), given.text("host"), given.text("user")), (Some("5"), None, None));
        assert_eq!(given.text("ssl-ca"), Some("/x"));
    }

    #[test]
    fn quotes_comments_and_escapes_are_understood() {
        for (line, password) in [
            ("password=plain", "plain"),
            ("password = \"with # and spaces \"", "with # and spaces "),
            ("password='it\\'s'", "it's"),
            ("password=a\\sb\\\\c\\d", "a b\\c\\d"),
            ("password=cut # comment", "cut"),
            ("password=a=b", "a=b"),
        ] {
            let given = read(&format!("[client]\n{line}\n!include /nowhere\nskip-column-names"));
            assert_eq!(given.password.unwrap().expose(), password.as_bytes(), "{line}");
        }
    }
}
