//! All targets, by the scheme of their URLs.

use std::path::PathBuf;
use std::sync::Arc;

use percent_encoding::percent_decode_str;

use crate::execute::files::{Direct, FileTarget};
use crate::execute::layout::Layout;
use crate::execute::page_store::PageStoreTarget;
use crate::execute::run::{Execution, Options};
use crate::execute::s3::S3Target;
use crate::execute::schedule::Schedule;
use crate::execute::target::{Failure, Target};

/// The schemes of URLs that [`open`] knows.
pub const SCHEMES: [&str; 3] = ["file", "page-store", "s3"];

/// A target whose kind its user need not know.
pub trait AnyTarget: Send + Sync {
    /// See [`Target::prepare`].
    fn prepare(&self, layout: &Layout) -> Result<(), Failure>;
    /// See [`Target::facts`].
    fn facts(&self) -> Vec<(&'static str, String)>;
    /// See [`Execution::start`].
    fn start(
        &self,
        layout: &Arc<Layout>,
        schedule: Schedule,
        options: &Options,
    ) -> Result<Execution, Failure>;
}

impl<T: Target> AnyTarget for Arc<T> {
    fn prepare(&self, layout: &Layout) -> Result<(), Failure> {
        (**self).prepare(layout)
    }

    fn facts(&self) -> Vec<(&'static str, String)> {
        (**self).facts()
    }

    fn start(
        &self,
        layout: &Arc<Layout>,
        schedule: Schedule,
        options: &Options,
    ) -> Result<Execution, Failure> {
        Execution::start(self, layout, schedule, options)
    }
}

/// The target of a URL. Nothing is touched yet. With `overwrite` it may hold something that is not ours.
pub fn open(url: &str, overwrite: bool) -> Result<Box<dyn AnyTarget>, String> {
    let (scheme, rest) = url.split_once("://").ok_or_else(|| unknown(url))?;
    match scheme {
        "file" => Ok(Box::new(Arc::new(file(rest, overwrite)?))),
        "page-store" => Ok(Box::new(Arc::new(PageStoreTarget::parse(rest)?))),
        "s3" => Ok(Box::new(Arc::new(S3Target::parse(rest, &|name| std::env::var(name).ok())?))),
        _ => Err(unknown(scheme)),
    }
}

fn unknown(what: &str) -> String {
    format!("{what} is no target; a target is a URL that begins with {}://", SCHEMES.join(":// or "))
}

fn file(rest: &str, overwrite: bool) -> Result<FileTarget, String> {
    let (path, query) = rest.split_once('?').unwrap_or((rest, ""));
    if !path.starts_with('/') {
        return Err(format!("file://{path}: the path begins with /, as in file:///var/tmp/target"));
    }
    let path = percent_decode_str(path).decode_utf8().map_err(|error| format!("file://{path}: {error}"))?;
    let mut direct = Direct::Auto;
    for option in query.split('&').filter(|option| !option.is_empty()) {
        direct = match option {
            "direct=auto" => Direct::Auto,
            "direct=on" => Direct::On,
            "direct=off" => Direct::Off,
            _ => return Err(format!("{option}: a file has the option direct=auto, on or off")),
        };
    }
    Ok(FileTarget::new(PathBuf::from(path.as_ref()), direct, overwrite))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_that_name_no_target_are_refused() {
        for (url, said) in [
            ("data.bin", "data.bin is no target"),
            ("ftp://x", "ftp is no target"),
            ("file://relative", "the path begins with /"),
            ("file:///x?cache=on", "cache=on: a file has the option direct"),
        ] {
            assert!(open(url, false).err().unwrap().contains(said), "{url}");
        }
        assert!(open("file:///tmp/a%20b?direct=off", false).is_ok());
    }
}
