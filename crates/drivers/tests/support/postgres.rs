//! A `PostgreSQL` server for the time of a test.

use std::ffi::OsString;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};

use super::running::{Running, as_user, free_port};
use super::{Folder, Identity, run};

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

/// How a server is to be.
#[derive(Clone, Copy, Default)]
pub(crate) struct Plan<'a> {
    /// SQL, one statement a line, that a new server is set up with.
    pub(crate) set_up: &'a str,
    /// Its `pg_hba.conf`.
    pub(crate) access: &'a str,
    /// Its certificate, and the PEM file of the authority for client certificates; without them it has no TLS.
    pub(crate) tls: Option<(&'a Identity, &'a Path)>,
    /// Settings beside those that every server here has.
    pub(crate) settings: &'a [(&'a str, &'a str)],
    /// It is a hot standby of this server.
    pub(crate) standby_of: Option<&'a Server>,
}

/// A running server, whose superuser is `postgres`. It is stopped, and its data removed, when it is dropped or
/// the tests end.
pub(crate) struct Server {
    running: Running,
    folder: Folder,
    /// Its port, on 127.0.0.1.
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server, which may not be ready yet.
    pub(crate) fn start(programs: &Path, plan: Plan<'_>) -> Self {
        let folder = Folder::new();
        if let Some(tls) = plan.tls {
            folder.take(tls, ["server.crt", "server.key", "root.crt"]);
        }
        folder.hand_over();
        let data = folder.path("data");
        match plan.standby_of {
            Some(primary) => copy_data(programs, primary, &data),
            None => make_data(programs, plan.set_up, &data),
        }
        fs::write(data.join("pg_hba.conf"), plan.access).unwrap();
        let port = free_port();
        let mut arguments = vec![OsString::from("-D"), data.into_os_string()];
        arguments.extend(settings(&folder, port, plan).into_iter().map(OsString::from));
        let running = Running::start(&folder, "QUIT", &programs.join("postgres"), arguments);
        Self { running, folder, port }
    }

    /// The directory of its Unix socket.
    pub(crate) fn socket_directory(&self) -> String {
        self.folder.path("").display().to_string().trim_end_matches('/').to_owned()
    }

    /// The PEM file of the authority for client certificates.
    pub(crate) fn root_certificate(&self) -> String {
        self.folder.path("root.crt").display().to_string()
    }

    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path("log")).unwrap_or_default()
    }

    /// Sends a signal to the server's first process: `INT` is a fast shutdown, `QUIT` an immediate one.
    pub(crate) fn signal(&self, signal: Signal) {
        let file = fs::read_to_string(self.folder.path("data/postmaster.pid")).unwrap();
        send_signal(file.lines().next().unwrap(), signal);
    }

    /// Stops the server by a signal and starts it again after a pause. It may not be ready yet then.
    pub(crate) fn restart(&self, signal: Signal, pause: Duration) {
        self.signal(signal);
        thread::sleep(pause);
        self.running.again();
    }
}

/// Sends a signal to a process of a server that these tests have started.
pub(crate) fn send_signal(process: &str, signal: Signal) {
    let process = process.parse().ok().and_then(Pid::from_raw).unwrap_or_else(|| panic!("{process:?}"));
    kill_process(process, signal).unwrap();
}

fn make_data(programs: &Path, set_up: &str, data: &Path) {
    run(as_user(&programs.join("initdb"))
        .args(["--no-sync", "--no-instructions", "--username=postgres", "--encoding=UTF8", "--locale=C"])
        .arg("--pgdata")
        .arg(data));
    let mut single_user = as_user(&programs.join("postgres"));
    run_with_input(single_user.arg("--single").arg("-D").arg(data).arg("postgres"), set_up);
}

fn copy_data(programs: &Path, primary: &Server, data: &Path) {
    run(as_user(&programs.join("pg_basebackup"))
        .args(["--no-sync", "--checkpoint=fast", "--wal-method=stream", "--write-recovery-conf"])
        .args(["--username=postgres", "--host", &primary.socket_directory()])
        .args(["--port", &primary.port.to_string(), "--pgdata"])
        .arg(data));
}

fn settings(folder: &Folder, port: u16, plan: Plan<'_>) -> Vec<String> {
    let path = |name: &str| folder.path(name).display().to_string();
    let mut settings = vec![
        ("listen_addresses", "127.0.0.1".to_owned()),
        ("port", port.to_string()),
        ("unix_socket_directories", path("").trim_end_matches('/').to_owned()),
        ("fsync", "off".to_owned()),
        ("shared_buffers", "16MB".to_owned()),
        ("max_connections", "20".to_owned()),
    ];
    if plan.tls.is_some() {
        settings.extend([
            ("ssl", "on".to_owned()),
            ("ssl_cert_file", path("server.crt")),
            ("ssl_key_file", path("server.key")),
            ("ssl_ca_file", path("root.crt")),
        ]);
    }
    settings.extend(plan.settings.iter().map(|(name, value)| (*name, (*value).to_owned())));
    settings.into_iter().flat_map(|(name, value)| ["-c".to_owned(), format!("{name}={value}")]).collect()
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
