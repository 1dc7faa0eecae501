//! Files that may hold a password.

use std::fs::{self, File};
use std::io::{self, Read};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The content of a file. `None` where it does not exist, and where others could read it: then a warning says that
/// the file, which is `what`, is left alone.
pub(crate) fn read(what: &str, path: &Path) -> Option<Vec<u8>> {
    match read_private(path) {
        Ok(text) => Some(text),
        Err(error) => {
            if error.kind() != io::ErrorKind::NotFound {
                tracing::warn!("{what} {} is ignored: {error}", path.display());
            }
            None
        }
    }
}

fn read_private(path: &Path) -> io::Result<Vec<u8>> {
    // Looked at before it is opened: to open a pipe would wait for its other end.
    if !fs::metadata(path)?.is_file() {
        return Err(io::Error::other("it is not a plain file"));
    }
    let mut file = File::open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        return Err(io::Error::other("group or others have access to it; allowed is u=rw (0600) or less"));
    }
    let mut text = Vec::new();
    file.read_to_end(&mut text)?;
    Ok(text)
}
