//! The fuzz target of URLs, of the environment and of the password file.

use percent_encoding::percent_decode_str;

use super::pgpass::PasswordFile;
use super::{Config, build};
use crate::redact;

/// What marks a password in a seed, so that it is known where it shows up.
const CANARY: &str = "Kq7Zx9";

/// A URL on the first line, `NAME=value` of the environment on the lines after it, and after an empty line the
/// password file.
///
/// # Panics
/// If a password shows, if the redacted URL means something else, or if a line of the password file does not give
/// the password that was written into it.
pub fn settings(data: &[u8]) {
    let split = data.windows(2).position(|window| window == b"\n\n");
    let (head, file) = split.map_or((data, &b""[..]), |at| (&data[..at], &data[at + 2..]));
    let Ok(head) = std::str::from_utf8(head) else { return };
    let mut lines = head.split('\n');
    let url = lines.next().unwrap_or_default();
    // No environment holds a zero byte.
    let variables = lines.filter(|line| !line.contains('\0')).filter_map(|line| line.split_once('='));
    let variables: Vec<(&str, &str)> = variables.collect();
    let environment = |name: &str| {
        let found = variables.iter().find(|(variable, _)| *variable == name);
        // Files of this machine are not looked at.
        found.filter(|_| name != "PGPASSFILE").map(|(_, value)| (*value).to_owned())
    };
    check_redaction(url);
    if url.contains("pass") && url.contains("file") {
        return;
    }
    match build::config(url, &environment, &[]) {
        Ok(config) => {
            check_config(url, &config, &variables);
            check_password_file(&config, file);
        }
        Err(error) => {
            let elsewhere =
                variables.iter().any(|(name, value)| *name != "PGPASSWORD" && value.contains(CANARY));
            assert!(elsewhere || times_shown(url) > 0 || times_shown(&error.0) == 0, "{error}");
        }
    }
}

/// How often the marked password stands in a text, plainly or percent-encoded.
fn times_shown(text: &str) -> usize {
    let decoded = percent_decode_str(text).collect::<Vec<u8>>();
    decoded.windows(CANARY.len()).filter(|window| *window == CANARY.as_bytes()).count()
}

/// Whatever the text is: what stands between `user:` and the last `@` is hidden.
fn check_redaction(url: &str) {
    let shown = redact(url);
    let start = url.find("://").map_or(0, |at| at + 3);
    let colon = url[start..].find(':').map(|at| start + at);
    if let (Some(colon), Some(at)) = (colon, url.rfind('@'))
        && colon < at
        && times_shown(&url[colon + 1..at]) > 0
        && times_shown(&url[..=colon]) + times_shown(&url[at..]) == 0
    {
        assert_eq!(times_shown(&shown), 0, "{shown}");
    }
}

fn check_config(url: &str, config: &Config, variables: &[(&str, &str)]) {
    let password =
        config.hosts[0].password.as_ref().map(crate::net::secret::Password::expose).unwrap_or_default();
    let is_marked = password.windows(CANARY.len()).any(|window| window == CANARY.as_bytes());
    let shows = |variable: &&(&str, &str)| times_shown(variable.1) > 0;
    let elsewhere = variables.iter().any(|variable| variable.0 != "PGPASSWORD" && shows(&variable));
    let given = times_shown(url) + variables.iter().filter(shows).count();
    if is_marked && !elsewhere && given == 1 {
        assert_eq!(times_shown(&redact(url)), 0, "{}", redact(url));
        assert_eq!(times_shown(&config.redacted()), 0, "{}", config.redacted());
        assert_eq!(times_shown(&format!("{config:?}")), 0, "{config:?}");
    }
    let shown = config.redacted();
    let again = match build::config(&shown, &|_| None, &[]) {
        Ok(again) => again,
        Err(error) => panic!("{shown}: {error}"),
    };
    assert_eq!(again.redacted(), shown);
    assert_eq!((&again.user, &again.database), (&config.user, &config.database));
    let addresses = |config: &Config| -> Vec<_> {
        config.hosts.iter().map(|host| (host.name.clone(), host.address.clone(), host.port)).collect()
    };
    assert_eq!(addresses(&again), addresses(config));
    assert_eq!(again.tls.mode, config.tls.mode);
}

/// Looks the hosts up in the file, and again with a line of their own before it.
fn check_password_file(config: &Config, file: &[u8]) {
    for host in &config.hosts {
        let look_up =
            |file: &PasswordFile| file.password(&host.name, host.port, &config.database, &config.user);
        look_up(&PasswordFile::of(file));
        let password = &b"Kq7\\:*"[..];
        let fields = [
            host.name.as_bytes(),
            host.port.to_string().as_bytes(),
            config.database.as_bytes(),
            config.user.as_bytes(),
            password,
        ]
        .map(escaped);
        if fields.iter().flatten().any(|byte| *byte == b'\n') || host.is_unix() {
            continue;
        }
        let line = fields.join(&b':');
        let found = look_up(&PasswordFile::of(&[&line[..], b"\n", file].concat()));
        assert!(found.is_some_and(|found| found.expose() == password), "{}", String::from_utf8_lossy(&line));
    }
}

/// A field with a backslash before everything that could mean something.
fn escaped(field: &[u8]) -> Vec<u8> {
    let escape = |byte: &u8| if byte.is_ascii_alphanumeric() { vec![*byte] } else { vec![b'\\', *byte] };
    field.iter().flat_map(escape).collect()
}
