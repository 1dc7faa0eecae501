//! No password is ever shown, wherever in a URL it stands.

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::{parsed, with};
use crate::redact;

#[test]
fn a_redacted_url_means_the_same_without_the_password() {
    let url = "postgresql://u%40x:secret@h:1,[::1]:2,%2Frun%2Fpg:3/d%2Fb?sslrootcert=/a%20b&hostaddr=,::1,\
               &options=-c%20my.password%3Dhidden&connect_timeout=5&password=secret";
    let redacted = parsed(url).redacted();
    assert_eq!(
        redacted,
        "postgresql://u%40x@h:1,[::1]:2,%2Frun%2Fpg:3/d%2Fb?sslmode=prefer&hostaddr=,::1,&sslrootcert=/a%20b\
         &connect_timeout=5&options=-c%20my.password%3D%2A%2A%2A"
    );
    assert_eq!(parsed(&redacted).redacted(), redacted);
    assert_eq!(redact(&redacted), redacted);
    let odd = with("postgresql://u@", &[("PGHOST", "fe80::1%eth0,a:b]?")]).unwrap().redacted();
    assert_eq!(odd, "postgresql://u@[fe80::1%25eth0]:5432,[a:b%5D%3F]:5432/u?sslmode=prefer");
    assert_eq!(parsed(&odd).redacted(), odd);
    assert_eq!(parsed("postgresql://h").redacted(), "postgresql://os@h:5432/os?sslmode=prefer");
}

#[test]
fn redact_hides_passwords_in_urls_of_any_scheme() {
    for (url, expected) in [
        ("postgresql://u:p@h/db", "postgresql://u:***@h/db"),
        ("postgresql://u:p@ss@h/db", "postgresql://u:***@h/db"),
        ("POSTGRESQL://U:P@H/DB", "POSTGRESQL://U:***@H/DB"),
        ("postgresql://u:p/w?x#y@h/db?a=b", "postgresql://u:***@h/db?a=b"),
        (
            "postgresql://h:5432/db?password=p&sslmode=require",
            "postgresql://h:5432/db?password=***&sslmode=require",
        ),
        (
            "postgresql://h/db?sslmode=require&sslpassword=p&q",
            "postgresql://h/db?sslmode=require&sslpassword=***",
        ),
        ("postgresql://h/db?PassWord=p", "postgresql://h/db?PassWord=***"),
        ("postgresql://h/db?p%61ssword=p", "postgresql://h/db?p%61ssword=***"),
        ("postgresql://h/db?passfile=/home/u/.pgpass", "postgresql://h/db?passfile=/home/u/.pgpass"),
        ("postgresql://h:5432/db?password=p@ss", "postgresql://h:***"),
        ("postgresql://u%3Ap@h", "postgresql://u%3A***@h"),
        ("postgresql://u@[::1]:5432,h:1/db", "postgresql://u@[::1]:5432,h:1/db"),
        ("postgresql://%2Frun%2Fpg:5432/db", "postgresql://%2Frun%2Fpg:5432/db"),
        ("postgresql://u:password", "postgresql://u:***"),
        ("postgresql://u:/word/db", "postgresql://u:***"),
        ("postgresql://h:1,u:password/db", "postgresql://h:1,u:***"),
        ("postgresql:u:p@h", "postgresql:***@h"),
        ("u:p://x@h", "u:***@h"),
        ("mysql://root:p@h:3306/db", "mysql://root:***@h:3306/db"),
        ("redis://:p@h", "redis://:***@h"),
        ("jdbc:postgresql://u:p@h/db", "jdbc:***@h/db"),
        ("sqlserver://h;user=sa;password=p;x=y", "sqlserver://h;user=sa;password=***"),
        ("host=h password = p w", "host=h password =***"),
        ("cannot reach postgresql://u:p@h/db", "cannot reach postgresql:***@h/db"),
        ("", ""),
        ("plain text", "plain text"),
    ] {
        assert_eq!(redact(url), expected, "{url}");
        assert_eq!(redact(expected), expected, "not stable");
    }
}

/// Where a password may stand in what a user types, encoded or not, with and without mistakes.
const TEMPLATES: [&str; 16] = [
    "postgresql://user:{}@host/db",
    "postgresql://user:{}@host:5432,other/db?sslmode=requrie",
    "postgresql://user:{}@/db?sslmod=require",
    "postgresql://user:{}@host:port/db",
    "postgresql://user:{}@[::1/db",
    "postgresql://user:{}@host/%zz",
    "postgresql://user:{}",
    "postgresql://:{}@host",
    "postgresql://user:{}host",
    "POSTGRES://user:{}@host?connect_timeout=soon",
    "postgresql:user:{}@host",
    "mysql://user:{}@host",
    "postgresql://host?password={}",
    "postgresql://host:5432/db?password={}&sslmode=requrie",
    "postgresql://host/db?user=u&sslpassword={}",
    "postgresql://user@host/db?x=1&password={}&port=0",
];

fn encoded(text: &str) -> String {
    utf8_percent_encode(text, NON_ALPHANUMERIC).to_string()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4000))]

    #[test]
    fn no_output_shows_the_password(
        password in "[a-zA-Z0-9@:/?#&=%,;+*. \\[\\]\\\\\"'üß\u{1F600}-]{6,24}",
        template in prop::sample::select(&TEMPLATES[..]),
        encode in any::<bool>(),
    ) {
        // Without an '@' after it, `user:1/x` is a host, a port and a database: let a letter come first.
        let needs_letter = ["user:{}", "user:{}host"].iter().any(|end| template.ends_with(end));
        let password = if needs_letter { format!("x{password}") } else { password };
        // No password is a word of a template or of a message by chance.
        prop_assume!(password.chars().any(|c| !c.is_ascii_lowercase()));
        let written = if encode { encoded(&password) } else { password.clone() };
        let url = template.replace("{}", &written);
        let mut outputs = vec![redact(&url)];
        match with(&url, &[("USER", "os")]) {
            Ok(config) => {
                outputs.push(config.redacted());
                outputs.push(format!("{config:?}"));
                for host in &config.hosts {
                    outputs.push(format!("{:?} {:#?}", host.password, host.password));
                }
            }
            Err(error) => outputs.extend([error.to_string(), format!("{error:?}")]),
        }
        for output in outputs {
            prop_assert!(!output.contains(&password), "{url} shows it: {output}");
            prop_assert!(!output.contains(&written), "{url} shows it encoded: {output}");
        }
    }

    #[test]
    fn an_encoded_password_arrives_as_it_is(password in "\\PC{1,24}") {
        let config = parsed(&format!("postgresql://u:{}@h", encoded(&password)));
        prop_assert_eq!(super::password(&config), Some(password.as_str()));
        let config = parsed(&format!("postgresql://h?password={}", encoded(&password)));
        prop_assert_eq!(super::password(&config), Some(password.as_str()));
    }

    #[test]
    fn any_text_is_read_or_refused(text in "\\PC*", tail in "[:/?@%&=,\\[\\]a0é]{0,24}") {
        let _ = redact(&text);
        let _ = redact(&tail);
        let _ = with(&format!("postgresql://{tail}"), &[("USER", "os")]);
        let _ = with(&format!("postgresql://{text}"), &[("USER", "os")]);
        let _ = with(&text, &[("USER", "os")]);
    }

    #[test]
    fn a_redacted_url_reads_the_same(
        user in "\\PC{1,8}",
        database in "\\PC{1,8}",
        host in "[a-z]{1,8}",
        port in 1u16..,
        options in "[a-e =/,:&?@-]{1,12}",
    ) {
        let url = format!(
            "postgresql://{}@{host}:{port},[::1]/{}?options={}",
            encoded(&user), encoded(&database), encoded(&options)
        );
        let first = parsed(&url);
        let second = parsed(&first.redacted());
        prop_assert_eq!(first.redacted(), second.redacted());
        prop_assert_eq!(first.hosts, second.hosts);
        prop_assert_eq!(first.startup, second.startup);
    }
}
