//! What URLs, option files and the environment come to.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;

use super::*;
use crate::contract::driver::Settings;
use crate::mysql::Mysql;
use crate::net::settings::{HostAddress, RootCertificates, SslMode};

fn parse(url: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let lookup = |name: &str| {
        environment.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
    };
    build::config(url, &lookup, &[])
}

fn told(url: &str) -> String {
    parse(url, &[("USER", "me")]).err().unwrap_or_else(|| panic!("{url} is taken")).0
}

fn password(config: &Config) -> Option<String> {
    let password = config.hosts[0].password.as_ref()?;
    Some(String::from_utf8_lossy(password.expose()).into_owned())
}

#[test]
fn a_url_says_it_all() {
    for scheme in ["mysql", "mariadb"] {
        let url = format!(
            "{scheme}://joe:p%40ss@a,b:3307/shop?ssl-mode=verify_ca&ssl-ca=/ca.pem&connect-timeout=5&get-server-public-key=true"
        );
        let config = parse(&url, &[]).unwrap();
        assert_eq!((config.user.as_str(), config.database.as_str()), ("joe", "shop"));
        let hosts: Vec<String> = config.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["a:3306", "b:3307"]);
        assert_eq!(password(&config).as_deref(), Some("p@ss"));
        assert_eq!(config.tls.mode, SslMode::VerifyCa);
        assert!(matches!(config.tls.roots, RootCertificates::File(Some(_))));
        assert!(config.get_server_public_key);
        assert_eq!(config.connect_timeout.unwrap().as_secs(), 5);
        let shown = config.redacted();
        assert!(!shown.contains("p@ss") && !shown.contains("p%40ss"), "{shown}");
        assert!(!format!("{config:?}").contains("p@ss"));
        assert_eq!(parse(&shown, &[]).unwrap().redacted(), shown);
    }
}

#[test]
fn what_a_url_leaves_out_the_environment_says() {
    let environment =
        [("MYSQL_PWD", "secret"), ("MYSQL_HOST", "db"), ("MYSQL_TCP_PORT", "4000"), ("USER", "me")];
    let config = parse("mysql://", &environment).unwrap();
    assert_eq!((config.hosts[0].to_string().as_str(), config.user.as_str()), ("db:4000", "me"));
    assert_eq!(password(&config).as_deref(), Some("secret"));
    let config = parse("mysql://joe:own@other:1/d", &environment).unwrap();
    assert_eq!(
        (config.hosts[0].to_string(), password(&config)),
        ("other:1".to_owned(), Some("own".to_owned()))
    );
}

#[test]
fn a_socket_is_used_where_it_is_named() {
    let config = parse("mysql://u@/d?socket=/run/x.sock", &[]).unwrap();
    assert_eq!(config.hosts[0].address, HostAddress::Unix(PathBuf::from("/run/x.sock")));
    let shown = config.redacted();
    assert_eq!(parse(&shown, &[]).unwrap().hosts, config.hosts, "{shown}");
    assert!(told("mysql://u@db/d?socket=/x").contains("cannot be used with a host"));
}

#[test]
fn what_is_wrong_is_named() {
    for (url, expected) in [
        ("mysql://u@h/d?ssl-mode=on", "\"ON\" is not known; allowed are DISABLED"),
        ("mysql://u@h/d?sslmode=require", "parameter \"sslmode\" is not known; allowed are host"),
        ("mysql://u@h/d?ssl-cert=/c", "ssl-cert and ssl-key go together"),
        ("mysql://u@h/d?connect-timeout=soon", "whole number of seconds"),
        ("mysql://u@h/d?get-server-public-key=maybe", "allowed are false, true"),
        ("postgresql://u@h/d", "must begin with mysql:// or mariadb://"),
    ] {
        let message = told(url);
        assert!(message.contains(expected), "{url}: {message}");
    }
}

#[test]
fn the_option_file_is_read_unless_others_may_read_it() {
    let home = std::env::temp_dir().join(format!("nephoscope-my-cnf-{}", std::process::id()));
    fs::create_dir_all(&home).unwrap();
    let file = home.join(".my.cnf");
    fs::write(&file, "[client]\nuser=filed\npassword=\"from file\"\nhost=fh\n").unwrap();
    let environment = [("HOME", home.to_str().unwrap()), ("MYSQL_PWD", "env"), ("USER", "me")];
    let mut found = Vec::new();
    for mode in [0o600, 0o644] {
        fs::set_permissions(&file, fs::Permissions::from_mode(mode)).unwrap();
        let config = parse("mysql:///d", &environment).unwrap();
        found.push((config.user.clone(), config.hosts[0].name.clone(), password(&config).unwrap()));
    }
    fs::remove_dir_all(&home).unwrap();
    let three = |a: &str, b: &str, c: &str| (a.to_owned(), b.to_owned(), c.to_owned());
    assert_eq!(found, [three("filed", "fh", "from file"), three("me", "localhost", "env")]);
}

#[test]
fn tls_has_the_words_of_mysql() {
    let told = |parameters: &str| {
        let url = format!("mysql://u@h/d?{parameters}");
        Mysql::new(&url, &Settings::default()).err().unwrap().to_string()
    };
    assert_eq!(
        told("ssl-mode=VERIFY_CA&ssl-ca=/nowhere/ca.pem"),
        "ssl-ca: /nowhere/ca.pem does not exist, and ssl-mode=VERIFY_CA needs root certificates; name a file, leave \
         ssl-ca out to trust the system's store, or allow any certificate with ssl-mode=REQUIRED"
    );
    assert_eq!(
        told("ssl-mode=REQUIRED&ssl-cert=/nowhere/c.pem&ssl-key=/nowhere/k.pem"),
        "ssl-cert: /nowhere/c.pem does not exist"
    );
}
