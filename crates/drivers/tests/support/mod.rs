//! What several tests need: a folder, and certificates made by the `openssl` command.
#![allow(dead_code, reason = "each test uses a part of it")]

pub(crate) mod aws;
pub(crate) mod cassandra;
pub(crate) mod ferretdb;
pub(crate) mod handshake;
pub(crate) mod mariadb;
pub(crate) mod postgres;
pub(crate) mod redis;
pub(crate) mod running;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

/// A folder that is removed with its files.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder, empty and for its owner only.
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("nephoscope-drivers-{}-{number}", std::process::id()));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o700)).unwrap();
        Self(path)
    }

    /// A path in the folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Runs a command; its output is shown if it fails.
pub(crate) fn run(command: &mut Command) {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(output.status.success(), "{command:?}: {}", String::from_utf8_lossy(&output.stderr));
}

/// Whether the `openssl` command is there. A test that needs it says so, and passes, where it is not.
pub(crate) fn has_openssl() -> bool {
    let found = Command::new("openssl").arg("version").stdout(Stdio::null()).status().is_ok();
    if !found {
        eprintln!("skipped: there is no openssl command");
    }
    found
}

/// A certificate with its key.
pub(crate) struct Identity {
    /// PEM: the certificate, then those that lead to its authority.
    pub(crate) certificate: PathBuf,
    /// PEM.
    pub(crate) key: PathBuf,
}

/// How a certificate is to be.
#[derive(Clone, Copy)]
pub(crate) struct Wanted<'a> {
    /// The subject's common name.
    pub(crate) common_name: &'a str,
    /// The alternative names in OpenSSL's words, `DNS:a,IP:::1`; none where it is empty.
    pub(crate) names: &'a str,
    /// Whether it has expired.
    pub(crate) expired: bool,
    /// Whether it is of X.509 version 3; else of version 1, without extensions.
    pub(crate) version_3: bool,
}

impl Default for Wanted<'_> {
    fn default() -> Self {
        Self { common_name: "server", names: "DNS:localhost", expired: false, version_3: true }
    }
}

/// Makes certificates in a folder.
pub(crate) struct Workshop {
    folder: Folder,
}

impl Workshop {
    /// A workshop with an authority of its own, of this name.
    pub(crate) fn new(authority: &str) -> Self {
        let workshop = Self { folder: Folder::new() };
        workshop.new_key("root");
        workshop
            .openssl(&format!("req -new -x509 -days 30 -key @root.key -subj /CN={authority} -out @root.crt"));
        fs::write(workshop.path("ca.index"), "").unwrap();
        let files = format!("database={0}.index\nnew_certs_dir={1}", workshop.file("ca"), workshop.file(""));
        let settings =
            "rand_serial=yes\ndefault_md=sha256\npolicy=p\nunique_subject=no\n[p]\ncommonName=supplied\n";
        fs::write(workshop.path("ca.conf"), format!("[ca]\ndefault_ca=d\n[d]\n{files}\n{settings}")).unwrap();
        workshop
    }

    /// A path in the workshop's folder.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path(name)
    }

    fn file(&self, name: &str) -> String {
        self.path(name).display().to_string()
    }

    /// The root certificate, PEM.
    pub(crate) fn root(&self) -> String {
        self.file("root.crt")
    }

    /// Runs `openssl` with the words of `line`, in which `@name` is the path of a file.
    pub(crate) fn openssl(&self, line: &str) {
        let word = |word: &str| word.strip_prefix('@').map_or(word.to_owned(), |name| self.file(name));
        run(Command::new("openssl").args(line.split_whitespace().map(word)));
    }

    fn new_key(&self, name: &str) {
        self.openssl(&format!("genpkey -algorithm EC -pkeyopt ec_paramgen_curve:P-256 -out @{name}.key"));
        fs::set_permissions(self.path(&format!("{name}.key")), fs::Permissions::from_mode(0o600)).unwrap();
    }

    /// A certificate signed by the authority.
    pub(crate) fn signed(&self, name: &str, wanted: Wanted<'_>) -> Identity {
        self.new_key(name);
        let extensions = self.extensions(name, wanted);
        self.openssl(&format!("req -new -key @{name}.key -subj /CN={} -out @{name}.csr", wanted.common_name));
        // Only `openssl ca` sets both dates in every version of OpenSSL.
        self.openssl(&if wanted.expired {
            format!(
                "ca -batch -notext -config @ca.conf -cert @root.crt -keyfile @root.key -in @{name}.csr \
                 -startdate 20200101000000Z -enddate 20200131120000Z {extensions} -out @{name}.crt"
            )
        } else {
            format!(
                "x509 -req -in @{name}.csr -CA @root.crt -CAkey @root.key -set_serial 7 -days 30 \
                 {extensions} -out @{name}.crt"
            )
        });
        self.identity(name)
    }

    /// A certificate that signs itself, as a server's first one does.
    pub(crate) fn self_signed(&self, name: &str, wanted: Wanted<'_>) -> Identity {
        self.new_key(name);
        let names = if wanted.names.is_empty() {
            String::new()
        } else {
            format!("-addext subjectAltName={}", wanted.names)
        };
        self.openssl(&format!(
            "req -new -x509 -days 30 -key @{name}.key -subj /CN={} {names} -out @{name}.crt",
            wanted.common_name
        ));
        self.identity(name)
    }

    fn extensions(&self, name: &str, wanted: Wanted<'_>) -> String {
        if !wanted.version_3 {
            return String::new();
        }
        let names = if wanted.names.is_empty() { "" } else { "subjectAltName=" };
        let text = format!("basicConstraints=CA:FALSE\n{names}{}\n", wanted.names);
        fs::write(self.path(&format!("{name}.ext")), text).unwrap();
        format!("-extfile @{name}.ext")
    }

    fn identity(&self, name: &str) -> Identity {
        Identity { certificate: self.path(&format!("{name}.crt")), key: self.path(&format!("{name}.key")) }
    }
}

/// Makes a file readable for nobody but its owner.
pub(crate) fn protect(path: &Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
}
