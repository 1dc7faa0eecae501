//! The certificate and key files.

use std::fs;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::RootCertStore;
use rustls::crypto::ring::sign::any_supported_type;
use rustls::pki_types::pem::{Error as PemError, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::sign::CertifiedKey;

use super::x509::Certificate;
use crate::contract::error::ConfigError;
use crate::net::settings::{FileSetting, RootCertificates, SslMode, TlsSettings, TlsWords};

/// Where systems keep their store of authorities, in one file.
const SYSTEM_FILES: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/pki/ca-trust/extracted/pem/tls-ca-bundle.pem",
    "/etc/ssl/cert.pem",
];
/// Where systems keep it in many files.
const SYSTEM_DIRECTORIES: [&str; 2] = ["/etc/ssl/certs", "/etc/pki/tls/certs"];

/// The certificates that are trusted.
#[derive(Debug)]
pub(super) struct Roots {
    /// As authorities.
    pub(super) store: RootCertStore,
    /// As they are.
    pub(super) certificates: Vec<CertificateDer<'static>>,
    /// Where they are from.
    pub(super) from: String,
    /// What the setting is called that names them.
    setting: &'static str,
}

impl Roots {
    fn new(from: String, setting: &'static str) -> Self {
        Self { store: RootCertStore::empty(), certificates: Vec::new(), from, setting }
    }

    fn add(&mut self, pem: &[u8], path: &Path) -> Result<(), ConfigError> {
        let (setting, shown) = (self.setting, path.display());
        for certificate in CertificateDer::pem_slice_iter(pem) {
            let certificate = certificate
                .map_err(|error| ConfigError(format!("{setting}: {shown} is not a PEM file: {error}")))?;
            if let Err(error) = self.store.add(certificate.clone()) {
                tracing::warn!("{setting}: {shown}: a certificate is not used: {error}");
            } else {
                self.certificates.push(certificate);
            }
        }
        Ok(())
    }
}

/// The trusted certificates; `None` where the server's is not to be verified.
pub(super) fn roots(tls: &TlsSettings) -> Result<Option<Roots>, ConfigError> {
    match &tls.roots {
        RootCertificates::System { file, directory } => {
            system_roots(file.as_deref(), directory.as_deref(), tls.words.roots).map(Some)
        }
        RootCertificates::File(setting) => file_roots(setting.as_ref(), tls.mode, tls.words),
    }
}

fn file_roots(
    setting: Option<&FileSetting>,
    mode: SslMode,
    words: &TlsWords,
) -> Result<Option<Roots>, ConfigError> {
    let pem = setting.map(|setting| read(words.roots, &setting.path)).transpose()?.flatten();
    let (Some(setting), Some(pem)) = (setting, pem) else {
        return without_roots(setting, mode, words).map(|()| None);
    };
    let mut roots = Roots::new(setting.path.display().to_string(), words.roots);
    roots.add(&pem, &setting.path)?;
    if roots.store.is_empty() {
        return Err(ConfigError(format!(
            "{}: {} holds no certificate (PEM)",
            words.roots,
            setting.path.display()
        )));
    }
    Ok(Some(roots))
}

/// Whether it will do that there is no root certificate file.
fn without_roots(setting: Option<&FileSetting>, mode: SslMode, words: &TlsWords) -> Result<(), ConfigError> {
    let name = words.roots;
    if mode >= SslMode::VerifyCa {
        let file = setting.map_or_else(
            || "no file is named, and there is no home directory to look in".to_owned(),
            |setting| format!("{} does not exist", setting.path.display()),
        );
        return Err(ConfigError(format!(
            "{name}: {file}, and {} needs root certificates; name a file, {}, or allow any certificate with {}",
            words.with_mode(mode),
            words.system_roots,
            words.with_mode(SslMode::Require)
        )));
    }
    if let Some(setting) = setting.filter(|setting| setting.given) {
        tracing::warn!(
            "{name}: {} does not exist: the server's certificate is not verified",
            setting.path.display()
        );
    }
    Ok(())
}

/// The system's store: the file and the directory given, else the usual ones.
fn system_roots(
    file: Option<&Path>,
    directory: Option<&Path>,
    setting: &'static str,
) -> Result<Roots, ConfigError> {
    let mut paths: Vec<PathBuf> = file.map(Path::to_owned).into_iter().collect();
    let directories = directory.into_iter().flat_map(std::env::split_paths);
    paths.extend(directories.flat_map(|directory| files_in(&directory)));
    if file.is_none() && directory.is_none() {
        paths.extend(SYSTEM_FILES.iter().map(PathBuf::from).find(|path| path.is_file()));
        if paths.is_empty() {
            paths.extend(SYSTEM_DIRECTORIES.iter().flat_map(|directory| files_in(Path::new(directory))));
        }
    }
    let mut roots = Roots::new("the system's store".to_owned(), setting);
    for path in paths {
        // One file of the system's that is broken does not make the others useless.
        if let Err(error) = read(setting, &path).and_then(|pem| roots.add(&pem.unwrap_or_default(), &path)) {
            tracing::warn!("{error}");
        }
    }
    // The store's certificates are authorities, and nothing else.
    roots.certificates.clear();
    if roots.store.is_empty() {
        return Err(ConfigError(format!(
            "{setting}: the system's store holds no certificate; looked for are SSL_CERT_FILE, \
             SSL_CERT_DIR, {} and {}",
            SYSTEM_FILES.join(", "),
            SYSTEM_DIRECTORIES.join(", ")
        )));
    }
    Ok(roots)
}

/// The plain files of a directory; none where it cannot be read.
fn files_in(directory: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(|path| path.is_file()).collect()
}

/// The client's certificate with its key; `None` where there is none.
pub(super) fn client_certificate(tls: &TlsSettings) -> Result<Option<CertifiedKey>, ConfigError> {
    let Some(setting) = &tls.certificate else { return Ok(None) };
    let path = setting.path.display();
    let (name, key_name) = (tls.words.certificate, tls.words.key);
    let Some(pem) = read(name, &setting.path)? else {
        if setting.given {
            return Err(ConfigError(format!("{name}: {path} does not exist")));
        }
        return Ok(None);
    };
    let chain: Vec<_> = CertificateDer::pem_slice_iter(&pem)
        .collect::<Result<_, _>>()
        .map_err(|error| ConfigError(format!("{name}: {path} is not a PEM file: {error}")))?;
    let Some(certificate) = chain.first() else {
        return Err(ConfigError(format!("{name}: {path} holds no certificate (PEM)")));
    };
    let certificate = Certificate::read(certificate)
        .ok_or_else(|| ConfigError(format!("{name}: {path} holds what is not an X.509 certificate")))?;
    let Some(key_path) = tls.key.as_ref().map(|key| key.path.as_path()) else {
        return Err(ConfigError(format!("{key_name}: no file is named for the key of {path}")));
    };
    let key = any_supported_type(&client_key(key_path, key_name)?).map_err(|error| {
        ConfigError(format!("{key_name}: {} holds no key that can be used: {error}", key_path.display()))
    })?;
    if key.public_key().is_some_and(|public| public.as_ref() != certificate.key_info) {
        return Err(ConfigError(format!(
            "{key_name}: {} is not the key of the certificate {path}",
            key_path.display()
        )));
    }
    Ok(Some(CertifiedKey::new(chain, Arc::clone(&key))))
}

/// Reads the client's key. As in libpq, others may have no access to it; root's may be read by a group.
fn client_key(path: &Path, name: &str) -> Result<PrivateKeyDer<'static>, ConfigError> {
    let shown = path.display();
    let missing =
        || ConfigError(format!("{name}: {shown} does not exist, and the client's certificate needs it"));
    let pem = read(name, path)?.ok_or_else(missing)?;
    let metadata = fs::metadata(path).map_err(|error| unreadable(name, path, &error))?;
    let forbidden = if metadata.uid() == 0 { 0o037 } else { 0o077 };
    if metadata.mode() & forbidden != 0 {
        return Err(ConfigError(format!(
            "{name}: group or others have access to {shown}; allowed is u=rw (0600) or less, or u=rw,g=r \
             (0640) for a file of root's"
        )));
    }
    PrivateKeyDer::from_pem_slice(&pem).map_err(|error| {
        let encrypted = pem.windows(9).any(|bytes| bytes == b"ENCRYPTED");
        ConfigError(match error {
            _ if encrypted => {
                format!("{name}: the key in {shown} is encrypted; decrypt it with openssl pkey -in … -out …")
            }
            PemError::NoItemsFound => format!("{name}: {shown} holds no private key (PEM)"),
            error => format!("{name}: {shown} is not a PEM file: {error}"),
        })
    })
}

/// The content of a file; `None` where it does not exist.
fn read(setting: &str, path: &Path) -> Result<Option<Vec<u8>>, ConfigError> {
    match fs::read(path) {
        Ok(content) => Ok(Some(content)),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => {
            Ok(None)
        }
        Err(error) => Err(unreadable(setting, path, &error)),
    }
}

fn unreadable(setting: &str, path: &Path, error: &io::Error) -> ConfigError {
    ConfigError(format!("{setting}: {} cannot be read: {error}", path.display()))
}
