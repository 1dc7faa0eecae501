//! A Cassandra node for the time of a test.

use std::fs;
use std::path::Path;
use std::process::Command;

use super::running::{Running, free_port};
use super::{Folder, Identity, run};

/// What every node is started with: the files of the provider of clusters.
const FILES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../python/nephoscope/systems/cassandra");
const JARS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../.jars/cassandra");

/// Java, where Cassandra's jars are there, too. A test that needs it says so, and passes, where one is missing.
pub(crate) fn program() -> Option<&'static Path> {
    let program = Path::new("/usr/bin/java");
    if !program.exists() {
        eprintln!("skipped: there is no Java in /usr/bin");
        return None;
    }
    if !Path::new(JARS).exists() {
        eprintln!("skipped: there are no jars of Cassandra; `make .jars/cassandra` fetches them");
        return None;
    }
    Some(program)
}

/// A running node. It is stopped, and its data removed, when it is dropped or the tests end.
pub(crate) struct Server {
    running: Running,
    folder: Folder,
    /// The port of its native protocol, on 127.0.0.1.
    pub(crate) port: u16,
}

impl Server {
    /// Starts a node of its own ring, which may not be ready yet. `settings` are lines of `cassandra.yaml`. With an
    /// identity, and the PEM file of an authority, clients have to use TLS.
    pub(crate) fn start(program: &Path, settings: &str, tls: Option<(&Identity, &Path)>) -> Self {
        let folder = Folder::new();
        let [port, storage, jmx] = [0; 3].map(|_| free_port());
        let path = |name: &str| folder.path(name).display().to_string();
        let fixed = fs::read_to_string(format!("{FILES}/node.yaml")).unwrap();
        let ours = format!(
            "listen_address: 127.0.0.1\nrpc_address: 127.0.0.1\nstorage_port: {storage}\nnative_transport_port: {port}\n\
             seed_provider: [{{class_name: org.apache.cassandra.locator.SimpleSeedProvider, \
             parameters: [{{seeds: \"127.0.0.1:{storage}\"}}]}}]\n{settings}\n"
        );
        let mut encryption = String::new();
        if let Some((identity, _)) = tls {
            let store = path("keys.p12");
            run(Command::new("openssl")
                .args(["pkcs12", "-export", "-passout", "pass:secret", "-out", &store, "-in"])
                .arg(&identity.certificate)
                .arg("-inkey")
                .arg(&identity.key));
            encryption = format!(
                "client_encryption_options: {{enabled: true, optional: false, keystore: \"{store}\", \
                 keystore_password: secret, store_type: PKCS12}}\n"
            );
        }
        if let Some(tls) = tls {
            folder.take(tls, ["cert", "key", "ca"]);
        }
        fs::write(folder.path("cassandra.yaml"), [fixed, ours, encryption].concat()).unwrap();
        folder.hand_over();
        let agent = fs::read_dir(JARS)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .find(|path| is_agent(path))
            .unwrap();
        let arguments = [
            format!("@{FILES}/node.options"),
            "-Xms256M".to_owned(),
            "-Xmx256M".to_owned(),
            format!("-javaagent:{}", agent.display()),
            format!("-Dcassandra.config=file://{}", path("cassandra.yaml")),
            format!("-Dcassandra.storagedir={}", path("data")),
            format!("-Dcassandra.jmx.local.port={jmx}"),
            format!("-Dlogback.configurationFile={FILES}/logback.xml"),
            "-cp".to_owned(),
            format!("{FILES}:{JARS}/*"),
            "org.apache.cassandra.service.CassandraDaemon".to_owned(),
        ];
        // Nobody needs its data: it is not given the time to put it in order.
        let running = Running::start(&folder, "KILL", program, arguments);
        Self { running, folder, port }
    }

    /// The PEM file of the authority of its certificate.
    pub(crate) fn root_certificate(&self) -> String {
        self.folder.path("ca").display().to_string()
    }
}

fn is_agent(path: &Path) -> bool {
    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("jamm-"))
}
