//! `FerretDB` for the time of a test: what speaks `MongoDB`'s protocol, with its data in SQLite.

use std::path::Path;

use super::running::{Running, free_port};
use super::{Folder, Identity};

const PROGRAM: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.ferretdb/ferretdb");

/// The server's program, which `make test` builds where Go is installed. Where it is not, a test that needs it says so,
/// and passes.
pub(crate) fn program() -> Option<&'static Path> {
    let program = Path::new(PROGRAM);
    if !program.exists() {
        eprintln!("skipped: there is no FerretDB; `make .ferretdb/ferretdb` builds it, which takes Go");
        return None;
    }
    Some(program)
}

/// A running server. It is stopped, and its data removed, when it is dropped or the tests end.
pub(crate) struct Server {
    _running: Running,
    folder: Folder,
    /// Its port, on 127.0.0.1; with an identity that of TLS.
    pub(crate) port: u16,
}

impl Server {
    /// Starts a server, which may not be ready yet. With an identity, and the PEM file of an authority, clients have to
    /// use TLS. `settings` are of its command line.
    pub(crate) fn start(program: &Path, settings: &[&str], tls: Option<(&Identity, &Path)>) -> Self {
        let (folder, port) = (Folder::new(), free_port());
        let path = |name: &str| folder.path(name).display().to_string();
        let mut all = vec![
            "--handler=sqlite".to_owned(),
            format!("--sqlite-url=file:{}/", path("")),
            format!("--state-dir={}", path("")),
            format!("--listen-unix={}", path("socket")),
        ];
        all.extend(["--debug-addr=-", "--telemetry=disable", "--log-level=ERROR"].map(str::to_owned));
        if let Some(tls) = tls {
            let names = ["cert", "key", "ca"];
            folder.take(tls, names);
            all.extend(["cert", "key"].map(|name| format!("--listen-tls-{name}-file={}", path(name))));
            all.push(format!("--listen-tls=127.0.0.1:{port}"));
            all.push("--listen-addr=".to_owned());
        } else {
            all.push(format!("--listen-addr=127.0.0.1:{port}"));
        }
        let arguments = all.iter().map(String::as_str).chain(settings.iter().copied());
        // Its program may be under the home of whoever runs the tests.
        let running = Running::start_as_self(&folder, "TERM", program, arguments);
        Self { _running: running, folder, port }
    }

    /// Its Unix socket.
    pub(crate) fn socket(&self) -> String {
        self.folder.path("socket").display().to_string()
    }

    /// The PEM file of the authority of its certificate.
    pub(crate) fn root_certificate(&self) -> String {
        self.folder.path("ca").display().to_string()
    }
}
