//! A Redis server for the time of a test.

use std::path::Path;

use super::running::{Running, free_port};
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
    running: Running,
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
        if let Some(tls) = tls {
            let names = ["cert", "key", "ca-cert"];
            folder.take(tls, names);
            all.extend(names.into_iter().flat_map(|name| [format!("--tls-{name}-file"), path(name)]));
            all.extend(["--tls-auth-clients", "no", "--port", "0", "--tls-port"].map(str::to_owned));
        } else {
            all.push("--port".to_owned());
        }
        all.push(port.to_string());
        folder.hand_over();
        let fixed = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--daemonize", "no"];
        let arguments =
            fixed.into_iter().chain(all.iter().map(String::as_str)).chain(settings.iter().copied());
        // Redis does not listen to SIGQUIT, which a shell has its background jobs ignore.
        let running = Running::start(&folder, "TERM", program, arguments);
        Self { running, folder, port }
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
