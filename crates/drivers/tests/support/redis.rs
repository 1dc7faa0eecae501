//! A Redis server for the time of a test.

use std::fs;
use std::path::Path;
use std::process::{Child, ChildStdin, Stdio};

use super::postgres::{STOP_AT_END_OF_INPUT, as_user, free_port};
use super::{Folder, Identity};

/// The server's program. A test that needs it says so, and passes, where it is not.
pub(crate) fn program() -> Option<&'static Path> {
    let program = Path::new("/usr/bin/redis-server");
    if !program.exists() {
        eprintln!("skipped: there is no Redis server in /usr/bin");
        return None;
    }
    Some(program)
}

/// A running server. It is stopped, and its data removed, when it is dropped or the tests end.
pub(crate) struct Server {
    process: Child,
    input: Option<ChildStdin>,
    folder: Folder,
    /// Its port, on 127.0.0.1; with an identity that of TLS.
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server, which may not be ready yet. `settings` are of its command line.
    pub(crate) fn start(program: &Path, settings: &[&str], tls: Option<(&Identity, &Path)>) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let path = |name: &str| folder.path(name).display().to_string();
        let mut all = vec!["--unixsocket".to_owned(), path("socket"), "--dir".to_owned(), path("")];
        if let Some((identity, authority)) = tls {
            let files = [(&*identity.certificate, "cert"), (&identity.key, "key"), (authority, "ca-cert")];
            for (from, name) in files {
                fs::copy(from, folder.path(name)).unwrap();
                all.extend([format!("--tls-{name}-file"), path(name)]);
            }
            all.extend(["--tls-auth-clients", "no", "--port", "0", "--tls-port"].map(str::to_owned));
        } else {
            all.push("--port".to_owned());
        }
        all.push(port.to_string());
        if super::postgres::is_root() {
            let user = super::postgres::USER;
            super::run(std::process::Command::new("chown").arg("-R").arg(user).arg(folder.path("")));
        }
        let mut process = as_user(Path::new("sh"))
            .env("NEPHOSCOPE_FOLDER", folder.path(""))
            // Redis does not listen to SIGQUIT, which a shell has its background jobs ignore.
            .args(["-c", &STOP_AT_END_OF_INPUT.replace("-QUIT", "-TERM"), "sh"])
            .arg(program)
            .args(["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"])
            .args(all)
            .args(settings)
            .stdin(Stdio::piped())
            .stdout(fs::File::create(folder.path("log")).unwrap())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let input = process.stdin.take();
        Self { process, input, folder, port }
    }

    /// Its Unix socket.
    pub(crate) fn socket(&self) -> String {
        self.folder.path("socket").display().to_string()
    }

    /// The PEM file of the authority of its certificate.
    pub(crate) fn root_certificate(&self) -> String {
        self.folder.path("ca-cert").display().to_string()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.input.take());
        let _ = self.process.wait();
    }
}
