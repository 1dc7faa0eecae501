//! A `PostgreSQL` server for the time of a test.

use std::fs;
use std::io::Write;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};

use super::{Folder, Identity, run};

/// The user that the server runs as where the tests run as root, which `PostgreSQL` refuses.
const USER: &str = "nobody";

/// Stops the server when its standard input ends: also when the tests are killed, and cannot stop it
/// themselves.
const STOP_AT_END_OF_INPUT: &str = r#""$@" & server=$!; read _; kill -QUIT $server; wait $server"#;

/// The folder of the newest installed server's programs. A test that needs it says so, and passes, where
/// there is none.
pub(crate) fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let folders = versions.map(|entry| entry.path().join("bin")).filter(|bin| bin.join("postgres").exists());
    let newest = folders.max_by_key(|bin| bin.parent()?.file_name()?.to_str()?.parse::<u32>().ok());
    if newest.is_none() {
        eprintln!("skipped: there is no PostgreSQL server in /usr/lib/postgresql");
    }
    newest
}

/// A running server. It is stopped, and its data removed, when it is dropped.
pub(crate) struct Server {
    process: Child,
    input: Option<ChildStdin>,
    folder: Folder,
    /// Its port, on 127.0.0.1.
    pub(crate) port: u16,
}

impl Server {
    /// A new server with TLS, whose superuser is `postgres`.
    ///
    /// `set_up` is SQL, one statement a line; `access` is its `pg_hba.conf`; `clients` is the PEM file of the
    /// authority for client certificates.
    pub(crate) fn start(
        programs: &Path,
        set_up: &str,
        access: &str,
        identity: &Identity,
        clients: &Path,
    ) -> Self {
        let folder = Folder::new();
        for (from, name) in [
            (identity.certificate.as_path(), "server.crt"),
            (&identity.key, "server.key"),
            (clients, "root.crt"),
        ] {
            fs::copy(from, folder.path(name)).unwrap();
        }
        if is_root() {
            run(Command::new("chown").arg("-R").arg(USER).arg(folder.path("")));
        }
        let data = folder.path("data");
        let program = |name: &str| as_user(&programs.join(name));
        run(program("initdb")
            .args(["--no-sync", "--no-instructions", "--username=postgres", "--encoding=UTF8", "--locale=C"])
            .arg("--pgdata")
            .arg(&data));
        run_with_input(program("postgres").arg("--single").arg("-D").arg(&data).arg("postgres"), set_up);
        fs::write(data.join("pg_hba.conf"), access).unwrap();
        let port = free_port();
        let mut process = as_user(Path::new("sh"))
            .args(["-c", STOP_AT_END_OF_INPUT, "sh"])
            .arg(programs.join("postgres"))
            .arg("-D")
            .arg(&data)
            .args(settings(&folder, port))
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(fs::File::create(folder.path("log")).unwrap())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        Self { process, input, folder, port }
    }

    /// The directory of its Unix socket.
    pub(crate) fn socket_directory(&self) -> String {
        self.folder.path("").display().to_string().trim_end_matches('/').to_owned()
    }

    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}

fn settings(folder: &Folder, port: u16) -> Vec<String> {
    let path = |name: &str| folder.path(name).display().to_string();
    [
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("port", port.to_string()),
        ("unix_socket_directories", path("").trim_end_matches('/').to_owned()),
        ("ssl", "on".to_owned()),
        ("ssl_cert_file", path("server.crt")),
        ("ssl_key_file", path("server.key")),
        ("ssl_ca_file", path("root.crt")),
        ("fsync", "off".to_owned()),
        ("shared_buffers", "16MB".to_owned()),
        ("max_connections", "20".to_owned()),
    ]
    .into_iter()
    .flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")])
    .collect()
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// A command of the user that the server runs as, in a folder that it may enter.
fn as_user(program: &Path) -> Command {
    let mut command = Command::new(if is_root() { Path::new("runuser") } else { program });
    if is_root() {
        command.args(["-u", USER, "--"]).arg(program);
    }
    command.current_dir("/");
    command
}

fn run_with_input(command: &mut Command, input: &str) {
    let mut process = command
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}"));
    process.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = process.wait_with_output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && !errors.contains("ERROR"), "{command:?}: {errors}");
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
