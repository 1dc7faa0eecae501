//! URLs, the environment and the password file: what is read, and what is refused with which words.

mod redaction;

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use std::path::PathBuf;

use super::*;
use crate::net::secret::Password;
use crate::net::settings::*;

/// Reads a URL with this environment, and with no local server.
fn with(url: &str, environment: &[(&str, &str)]) -> Result<Config, ConfigError> {
    let variables: HashMap<&str, &str> = environment.iter().copied().collect();
    build::config(url, &|name| variables.get(name).map(ToString::to_string), &[])
}

fn parsed(url: &str) -> Config {
    with(url, &[("USER", "os")]).unwrap_or_else(|error| panic!("{url}: {error}"))
}

fn refused(url: &str) -> String {
    with(url, &[("USER", "os")]).map(|config| config.redacted()).unwrap_err().0
}

fn hosts(url: &str) -> Vec<String> {
    parsed(url).hosts.iter().map(ToString::to_string).collect()
}

fn password(config: &Config) -> Option<&str> {
    config.hosts[0].password.as_ref().map(|password| std::str::from_utf8(password.expose()).unwrap())
}

fn startup<'a>(config: &'a Config, name: &str) -> Option<&'a str> {
    config.startup.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
}

/// A folder that is removed with its files.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("nephoscope-config-{}-{name}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    fn write(&self, name: &str, text: &str, mode: u32) -> String {
        let path = self.0.join(name);
        fs::write(&path, text).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        path.display().to_string()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_full_url_is_read() {
    let config = parsed("postgresql://us%65r:p%40%3A%2F@db.example.com:6432/data%20base?sslmode=verify-full");
    assert_eq!(config.user, "user");
    assert_eq!(password(&config), Some("p@:/"));
    assert_eq!(config.database, "data base");
    assert_eq!(config.tls.mode, SslMode::VerifyFull);
    assert_eq!(config.hosts[0].address, HostAddress::Name("db.example.com".into()));
    assert_eq!(config.hosts[0].to_string(), "db.example.com:6432");
}

#[test]
fn the_forms_of_libpqs_manual_are_read() {
    assert_eq!(hosts("postgresql://"), ["localhost:5432"]);
    assert_eq!(hosts("postgresql://localhost"), ["localhost:5432"]);
    assert_eq!(hosts("postgresql://localhost:5433"), ["localhost:5433"]);
    assert_eq!(parsed("postgresql://localhost/mydb").database, "mydb");
    assert_eq!(parsed("postgresql://user@localhost").user, "user");
    assert_eq!(password(&parsed("postgresql://user:secret@localhost")), Some("secret"));
    let config = parsed("postgresql://other@localhost/otherdb?connect_timeout=10&application_name=myapp");
    assert_eq!(config.connect_timeout, Some(Duration::from_secs(10)));
    assert_eq!(startup(&config, "application_name"), Some("myapp"));
    assert_eq!(
        hosts("postgresql://host1:123,host2:456/somedb?target_session_attrs=any"),
        ["host1:123", "host2:456"]
    );
    assert_eq!(hosts("postgresql://user@localhost:5433/mydb?options=-c%20geqo%3Doff"), ["localhost:5433"]);
    assert_eq!(hosts("postgresql:///mydb?host=localhost&port=5433"), ["localhost:5433"]);
    assert_eq!(hosts("postgresql://[2001:db8::1234]/database"), ["[2001:db8::1234]:5432"]);
    assert_eq!(hosts("postgresql:///dbname?host=/var/lib/postgresql"), ["/var/lib/postgresql/.s.PGSQL.5432"]);
    assert_eq!(hosts("postgresql://%2Fvar%2Flib%2Fpostgresql/dbname"), ["/var/lib/postgresql/.s.PGSQL.5432"]);
}

#[test]
fn empty_parts_take_their_defaults() {
    for url in [
        "postgres://",
        "POSTGRES://",
        "postgresql:///",
        "postgresql://:@/",
        "postgresql://@:/?",
        "postgres://?&",
    ] {
        let config = parsed(url);
        assert_eq!((config.user.as_str(), config.database.as_str()), ("os", "os"), "{url}");
        assert_eq!(config.hosts[0].to_string(), "localhost:5432", "{url}");
        assert_eq!(password(&config), None, "{url}");
        assert_eq!(config.tls.mode, SslMode::Prefer);
        assert_eq!(config.channel_binding, ChannelBinding::Prefer);
        assert_eq!(config.connect_timeout, None);
    }
    assert_eq!(parsed("postgresql://u@h").database, "u");
}

#[test]
fn several_hosts_share_a_port_or_have_one_each() {
    assert_eq!(hosts("postgresql://a,b,[::1]:7/"), ["a:5432", "b:5432", "[::1]:7"]);
    assert_eq!(hosts("postgresql://a:1,b:2"), ["a:1", "b:2"]);
    assert_eq!(hosts("postgresql://?host=a,b&port=7"), ["a:7", "b:7"]);
    assert_eq!(hosts("postgresql://?host=a,/run/x,&port=1,2,3"), ["a:1", "/run/x/.s.PGSQL.2", "localhost:3"]);
    assert_eq!(
        refused("postgresql://?host=a,b,c&port=1,2"),
        "url: port has 2 elements, and there are 3 hosts"
    );
    assert_eq!(
        refused("postgresql://a,b?hostaddr=::1"),
        "url: hostaddr has 1 elements, and there are 2 hosts"
    );
    assert!(refused("postgresql://h?port=0").starts_with("url: port \"0\" is not a port; allowed are"));
    assert!(refused("postgresql://h:65536").contains("from 1 to 65535"));
}

#[test]
fn an_address_is_connected_to_and_the_name_is_kept() {
    let config = parsed("postgresql://db.example.com,?hostaddr=10.0.0.1,fe80::1");
    assert_eq!(config.hosts[0].name, "db.example.com");
    assert_eq!(config.hosts[0].address, HostAddress::Ip("10.0.0.1".parse().unwrap()));
    assert_eq!(config.hosts[1].to_string(), "[fe80::1]:5432");
    assert!(
        parsed("postgresql://127.0.0.1").hosts[0].address == HostAddress::Ip("127.0.0.1".parse().unwrap())
    );
    assert!(refused("postgresql://h?hostaddr=name").contains("hostaddr is not an IP address"));
}

#[test]
fn without_a_host_a_local_socket_is_used_where_there_is_one() {
    let folder = Folder::new("socket");
    folder.write(".s.PGSQL.5432", "", 0o600);
    let missing = folder.0.join("missing");
    let directories = [missing.as_path(), &folder.0];
    let read = |url| build::config(url, &|_| None, &directories).unwrap();
    let config = read("postgresql://u@");
    assert_eq!(config.hosts[0].address, HostAddress::Unix(folder.0.join(".s.PGSQL.5432")));
    assert_eq!(read("postgresql://u@:5433").hosts[0].to_string(), "localhost:5433");
    assert_eq!(read("postgresql://u@localhost").hosts[0].to_string(), "localhost:5432");
}

#[test]
fn the_environment_stands_behind_the_url() {
    let environment = [
        ("PGHOST", "env.host"),
        ("PGPORT", "99"),
        ("PGUSER", "env_user"),
        ("PGPASSWORD", "env password"),
        ("PGDATABASE", "env_db"),
        ("PGSSLMODE", "require"),
        ("PGAPPNAME", "env_app"),
        ("PGOPTIONS", "-c x=y"),
        ("PGCHANNELBINDING", "require"),
        ("PGTARGETSESSIONATTRS", "primary"),
        ("PGCONNECT_TIMEOUT", "3"),
        ("PGLOADBALANCEHOSTS", "random"),
        ("PGSSLNEGOTIATION", "direct"),
        ("PGSSLCERT", "/c"),
    ];
    let config = with("postgresql://", &environment).unwrap();
    assert_eq!(config.hosts[0].to_string(), "env.host:99");
    assert_eq!((config.user.as_str(), config.database.as_str()), ("env_user", "env_db"));
    assert_eq!(password(&config), Some("env password"));
    assert_eq!(config.tls.mode, SslMode::Require);
    assert_eq!(config.negotiation, SslNegotiation::Direct);
    assert_eq!(config.tls.certificate, Some(FileSetting { path: "/c".into(), given: true }));
    assert_eq!(config.channel_binding, ChannelBinding::Require);
    assert_eq!(config.target_session_attrs, TargetSessionAttrs::Primary);
    assert_eq!(config.load_balance, LoadBalance::Random);
    assert_eq!(config.connect_timeout, Some(Duration::from_secs(3)));
    assert_eq!(startup(&config, "options"), Some("-c x=y"));

    let config = with("postgresql://u:p@h:1/d?sslmode=verify-ca&application_name=a", &environment).unwrap();
    assert_eq!(config.hosts[0].to_string(), "h:1");
    assert_eq!((config.user.as_str(), config.database.as_str()), ("u", "d"));
    assert_eq!(password(&config), Some("p"));
    assert_eq!(startup(&config, "application_name"), Some("a"));
    assert_eq!(
        with("postgresql://h", &[("USER", "u"), ("PGSSLMODE", "requrie")]).unwrap_err().0,
        "environment: PGSSLMODE \"requrie\" is not known; allowed are disable, allow, prefer, require, \
         verify-ca, verify-full"
    );
}

#[test]
fn the_start_up_parameters_are_listed_in_order() {
    let config =
        parsed("postgresql://u@h/d?options=-c%20geqo%3Doff&fallback_application_name=f&client_encoding=UTF8");
    let expected = [
        ("user", "u"),
        ("database", "d"),
        ("options", "-c geqo=off"),
        ("application_name", "f"),
        ("client_encoding", "UTF8"),
    ];
    assert_eq!(config.startup, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    assert_eq!(startup(&parsed("postgresql://h"), "application_name"), Some("nephoscope"));
}

#[test]
fn errors_say_what_where_and_what_is_allowed() {
    assert_eq!(
        refused("postgresql://h?sslmode=requrie"),
        "url: sslmode \"requrie\" is not known; allowed are disable, allow, prefer, require, verify-ca, \
         verify-full"
    );
    let message = refused("postgresql://h?sslmod=require");
    assert!(
        message.starts_with("url: parameter \"sslmod\" is not known; allowed are host, hostaddr, port,"),
        "{message}"
    );
    assert_eq!(refused("mysql://h"), "url: it must begin with postgresql:// or postgres://");
    assert_eq!(refused("postgresql://[::1/d"), "url: the '[' of host 1 has no ']'");
    assert!(refused("postgresql://h,[]").contains("host 2"));
    assert!(refused("postgresql://[::1]x").contains("only ':' may follow"));
    assert!(refused("postgresql://u:p%4@h").contains("the password holds a '%'"));
    assert!(refused("postgresql://h?user=%zz").contains("user holds a '%'"));
    assert!(refused("postgresql://h/a%00b").contains("zero byte"));
    assert!(refused("postgresql://h/a%ff").contains("the database is not UTF-8"));
    assert!(refused("postgresql://h?sslmode").contains("has no '='"));
    assert!(refused("postgresql://h?client_encoding=latin1").contains("allowed is utf8"));
    assert!(refused("postgresql://h?gssencmode=require").contains("not supported"));
    assert!(refused("postgresql://h?connect_timeout=1s").contains("whole number of seconds"));
    assert!(refused("postgresql://?host=%40abstract").contains("abstract"));
    assert!(refused(&format!("postgresql://?host=/{}", "d".repeat(120))).contains("too long"));
    assert_eq!(
        with("postgresql://h", &[]).unwrap_err().0,
        "url: no user is given, and none of PGUSER, USER and LOGNAME is set"
    );
}

#[test]
fn parameters_without_effect_are_accepted() {
    parsed("postgresql://h?keepalives=1&keepalives_idle=1&keepalives_interval=1&keepalives_count=1");
    parsed(
        "postgresql://h?tcp_user_timeout=1&gssencmode=disable&krbsrvname=x&ssl_min_protocol_version=TLSv1",
    );
}

#[test]
fn sslmode_is_checked_against_what_needs_a_strict_one() {
    assert_eq!(parsed("postgresql://h?ssl=true").tls.mode, SslMode::Require);
    let config = parsed("postgresql://h?sslrootcert=system");
    assert_eq!(config.tls.mode, SslMode::VerifyFull);
    assert!(matches!(config.tls.roots, RootCertificates::System { file: None, directory: None }));
    assert!(
        refused("postgresql://h?sslrootcert=system&sslmode=verify-ca").contains("allowed is verify-full")
    );
    assert!(refused("postgresql://h?sslnegotiation=direct").contains("sslmode=require"));
    assert!(refused("postgresql://h?sslnegotiation=direct&sslmode=prefer").contains("too weak"));
    assert!(refused("postgresql://h?channel_binding=require&sslmode=disable").contains("needs TLS"));
    assert!(
        refused("postgresql://h?ssl_min_protocol_version=TLSv1.3&ssl_max_protocol_version=TLSv1.2")
            .contains("older")
    );
    assert!(
        refused("postgresql://h?ssl_max_protocol_version=TLSv1").contains("allowed are TLSv1.2, TLSv1.3")
    );
    assert!(!parsed("postgresql://h?sslsni=0").tls.server_name_indication);
}

#[test]
fn default_files_are_in_the_home_directory() {
    let config = with("postgresql://u@h", &[("HOME", "/home/u")]).unwrap();
    let file = |name: &str| FileSetting { path: format!("/home/u/.postgresql/{name}").into(), given: false };
    assert_eq!(config.tls.roots, RootCertificates::File(Some(file("root.crt"))));
    assert_eq!(config.tls.certificate, Some(file("postgresql.crt")));
    assert_eq!(config.tls.key, Some(file("postgresql.key")));
    assert_eq!(with("postgresql://u@h", &[]).unwrap().tls.certificate, None);
}

#[test]
fn the_password_file_gives_each_host_its_own() {
    let folder = Folder::new("pgpass");
    let path =
        folder.write(".pgpass", "a:5432:d:u:for a\nb:*:d:u:for b\n10.0.0.1:*:*:*:for the address\n", 0o600);
    let all = |config: &Config| -> Vec<Option<String>> {
        let text = |password: &Password| String::from_utf8(password.expose().to_vec()).unwrap();
        config.hosts.iter().map(|host| host.password.as_ref().map(text)).collect()
    };
    let own = [Some("for a".to_owned()), Some("for b".to_owned()), None];
    let home = folder.0.display().to_string();
    assert_eq!(all(&with("postgresql://u@a,b:7,c/d", &[("HOME", &home)]).unwrap()), own);
    assert_eq!(all(&with("postgresql://u@a,b:7,c/d", &[("PGPASSFILE", &path)]).unwrap()), own);
    assert_eq!(all(&parsed(&format!("postgresql://u@a,b:7,c/d?passfile={path}"))), own);
    assert_eq!(password(&parsed(&format!("postgresql://u:given@a/d?passfile={path}"))), Some("given"));
    assert_eq!(
        password(&parsed(&format!("postgresql://?hostaddr=10.0.0.1&passfile={path}"))),
        Some("for the address")
    );
    assert_eq!(password(&parsed(&format!("postgresql://a?hostaddr=10.0.0.1&passfile={path}"))), None);
}

#[test]
fn a_password_file_that_others_can_read_is_ignored() {
    let folder = Folder::new("open-pgpass");
    let path = folder.write("file", "*:*:*:*:secret", 0o640);
    assert_eq!(password(&parsed(&format!("postgresql://h?passfile={path}"))), None);
    let directory = folder.0.display();
    assert_eq!(password(&parsed(&format!("postgresql://h?passfile={directory}"))), None);
}

#[test]
fn a_question_mark_belongs_to_the_password_only_where_that_is_clear() {
    assert_eq!(password(&parsed("postgresql://u:p?w@h")), Some("p?w"));
    assert!(refused("postgresql://h:5432?password=p@ssword").contains("not clear"));
    let config = parsed("postgresql://h?password=p@ssword&user=me@server");
    assert_eq!((password(&config), config.user.as_str()), (Some("p@ssword"), "me@server"));
}
