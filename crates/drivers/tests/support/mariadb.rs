//! A MariaDB server for the time of a test.

use std::fs;
use std::path::Path;

use super::running::{Running, as_user, free_port};
use super::{Folder, Identity, run};

/// The server's program, where Debian's package puts it. A test that needs it says so, and passes, where it is not.
pub(crate) fn program() -> Option<&'static Path> {
    let program = Path::new("/usr/sbin/mariadbd");
    if !program.exists() {
        eprintln!("skipped: there is no MariaDB server in /usr/sbin");
        return None;
    }
    Some(program)
}

/// A running server, whose user `tester` may do everything. It is stopped, and its data removed, when it is dropped or
/// the tests end.
pub(crate) struct Server {
    running: Running,
    folder: Folder,
    /// Its port, on 127.0.0.1.
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server, which may not be ready yet. With an identity, and the PEM file of an authority, it has TLS.
    pub(crate) fn start(program: &Path, set_up: &str, tls: Option<(&Identity, &Path)>) -> Self {
        let folder = Folder::new();
        let path = |name: &str| folder.path(name).display().to_string();
        fs::write(folder.path("set_up.sql"), set_up).unwrap();
        let port = free_port();
        let mut settings = vec![
            format!("--port={port}"),
            format!("--socket={}", path("socket")),
            format!("--pid-file={}", path("pid")),
            format!("--init-file={}", path("set_up.sql")),
            // A server that starts deletes what it takes for temporary tables that another has left.
            format!("--tmpdir={}", path("tmp")),
        ];
        fs::create_dir(folder.path("tmp")).unwrap();
        if let Some(tls) = tls {
            folder.take(tls, ["cert", "key", "ca"]);
            settings.extend(["cert", "key", "ca"].map(|name| format!("--ssl-{name}={}", path(name))));
        }
        folder.hand_over();
        let data = format!("--datadir={}", path("data"));
        run(as_user(Path::new("mariadb-install-db")).args([
            "--no-defaults",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            &format!("--tmpdir={}", path("tmp")),
            &data,
        ]));
        let fixed = [
            "--no-defaults",
            &data,
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0",
            "--innodb-buffer-pool-size=32M",
            "--max-connections=300",
            "--max-allowed-packet=64M",
            "--local-infile=1",
            "--plugin-load-add=auth_ed25519",
            "--performance-schema=0",
        ];
        let arguments = fixed.into_iter().chain(settings.iter().map(String::as_str));
        let running = Running::start(&folder, "QUIT", program, arguments);
        Self { running, folder, port }
    }

    /// Its Unix socket.
    pub(crate) fn socket(&self) -> String {
        self.folder.path("socket").display().to_string()
    }

    /// The PEM file of the authority of its certificate.
    pub(crate) fn root_certificate(&self) -> String {
        self.folder.path("ca").display().to_string()
    }

    /// What it has written so far.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.path("log")).unwrap_or_default()
    }
}
