//! The files of one workload's folder, and those that a Lua file asks for while it runs.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Mutex, PoisonError};

use nephoscope_drivers::{Lexer, Statement};
use nephoscope_runtime::clock;

use crate::error::ScriptError;
use crate::statements::{Stray, names, override_statements, parse_statements};
use crate::workload::Schema;

/// The longest file of a workload, in bytes.
const LONGEST_FILE: u64 = 16 << 20;

/// A dialect, as files are chosen and read by it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reader {
    pub(crate) name: &'static str,
    pub(crate) lexer: Lexer,
}

/// The files of one folder, as a dialect reads them.
#[derive(Debug)]
pub(crate) struct Layer {
    pub(crate) folder: PathBuf,
    /// What comes before the names of its files in messages: nothing for the workload's own folder.
    pub(crate) prefix: String,
    pub(crate) lua: Arc<str>,
    pub(crate) statements: Vec<Statement>,
    /// Statements that only the dialect's file has.
    pub(crate) strays: Vec<Stray>,
    pub(crate) schema: Schema,
    /// Statements that only other dialects have, each with theirs.
    pub(crate) elsewhere: BTreeMap<String, Vec<String>>,
    files: Vec<PathBuf>,
}

impl Layer {
    /// Reads a folder's files.
    pub(crate) fn read(folder: &Path, prefix: &str, dialect: Reader) -> Result<Self, ScriptError> {
        let mut files = Vec::new();
        let mut read = |name: &str, required: bool| -> Result<Option<String>, ScriptError> {
            let path = folder.join(name);
            match read_text(&path) {
                Ok(text) => {
                    files.push(path);
                    Ok(Some(text))
                }
                Err(error) if error.kind() == io::ErrorKind::NotFound && !required => Ok(None),
                Err(error) => Err(unreadable(&path, &error)),
            }
        };
        let lua = read("workload.lua", true)?.unwrap_or_default();
        let mut named = |kind: &str| -> Result<(Vec<Statement>, Vec<Stray>), ScriptError> {
            let common = format!("{kind}.sql");
            let mut statements = match read(&common, false)? {
                Some(text) => parse_statements(&format!("{prefix}{common}"), &text, dialect.lexer)?,
                None => Vec::new(),
            };
            let special = format!("{kind}.{}.sql", dialect.name);
            let Some(text) = read(&special, false)? else { return Ok((statements, Vec::new())) };
            let special = format!("{prefix}{special}");
            let theirs = parse_statements(&special, &text, dialect.lexer)?;
            let strays = override_statements(&mut statements, theirs, &special);
            Ok((statements, strays))
        };
        let (statements, strays) = named("statements")?;
        let (sections, section_strays) = named("schema")?;
        let schema = schema(&sections, prefix)?;
        // Nothing asks for a section by its name, so one that overrides none is a slip of the pen.
        if let Some(Stray { name, file }) = section_strays.first() {
            let message = format!("the section {name} overrides none of {prefix}schema.sql");
            return Err(ScriptError::new(file, 0, &message));
        }
        let elsewhere = elsewhere(folder, &statements)?;
        Ok(Self {
            folder: folder.to_owned(),
            prefix: prefix.to_owned(),
            lua: lua.into(),
            statements,
            strays,
            schema,
            elsewhere,
            files,
        })
    }

    /// The name of its Lua file in messages.
    pub(crate) fn lua_name(&self) -> String {
        format!("{}workload.lua", self.prefix)
    }
}

/// What Lua files have asked for: read once, so that every thread runs the same.
#[derive(Clone, Debug)]
pub(crate) struct Library {
    /// The folder of the workloads that come with nephoscope.
    pub(crate) packaged: Option<PathBuf>,
    /// How many unique numbers sysbench's scripts have drawn: all threads share it.
    pub(crate) unique: Arc<AtomicU64>,
    read: Arc<Mutex<Read>>,
}

#[derive(Debug, Default)]
struct Read {
    required: BTreeMap<PathBuf, Arc<str>>,
    extended: BTreeMap<PathBuf, Arc<Layer>>,
    /// In the order in which they were read.
    files: Vec<PathBuf>,
}

impl Default for Library {
    fn default() -> Self {
        // Another run begins elsewhere, as long as fewer numbers are drawn than microseconds go by.
        let unique = Arc::new((clock::wall() as u64 / 1000).into());
        Self { packaged: None, unique, read: Arc::default() }
    }
}

impl Library {
    /// The text of a Lua file beside a workload's own.
    pub(crate) fn required(&self, layer: &Layer, file: &str) -> io::Result<Arc<str>> {
        let path = layer.folder.join(file);
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(text) = read.required.get(&path) {
            return Ok(Arc::clone(text));
        }
        let text: Arc<str> = read_text(&path)?.into();
        read.files.push(path.clone());
        read.required.insert(path, Arc::clone(&text));
        Ok(text)
    }

    /// The workload of a name that another one extends: one that comes with nephoscope, or else the one in the folder
    /// beside. `None` where there is none.
    pub(crate) fn extended(
        &self,
        name: &str,
        by: &Layer,
        dialect: Reader,
    ) -> Result<Option<Arc<Layer>>, ScriptError> {
        let packaged = self.packaged.iter().map(|folder| folder.join(name));
        let mut folders = packaged.chain([by.folder.join("..").join(name)]);
        let Some(folder) = folders.find(|folder| folder.join("workload.lua").exists()) else {
            return Ok(None);
        };
        let folder = folder.canonicalize().map_err(|error| unreadable(&folder, &error))?;
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(layer) = read.extended.get(&folder) {
            return Ok(Some(Arc::clone(layer)));
        }
        let layer = Arc::new(Layer::read(&folder, &format!("{name}/"), dialect)?);
        read.files.extend(layer.files.iter().cloned());
        read.extended.insert(folder, Arc::clone(&layer));
        Ok(Some(layer))
    }

    /// All files that were read: the workload's own, then what its Lua file asked for.
    pub(crate) fn files(&self, own: &Layer) -> Vec<PathBuf> {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        own.files.iter().chain(&read.files).cloned().collect()
    }
}

fn unreadable(path: &Path, error: &io::Error) -> ScriptError {
    ScriptError::plain(format!("{}: {error}", path.display()))
}

/// The names of statements that only other dialects have.
fn elsewhere(folder: &Path, here: &[Statement]) -> Result<BTreeMap<String, Vec<String>>, ScriptError> {
    let mut elsewhere: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let path = entry.map_err(|error| unreadable(folder, &error))?.path();
        let file = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let dialect = file.strip_prefix("statements.").and_then(|rest| rest.strip_suffix(".sql"));
        let Some(dialect) = dialect else { continue };
        let text = read_text(&path).map_err(|error| unreadable(&path, &error))?;
        for name in names(&text).filter(|name| !here.iter().any(|known| known.name() == *name)) {
            elsewhere.entry(name.to_owned()).or_default().push(dialect.to_owned());
        }
    }
    for dialects in elsewhere.values_mut() {
        dialects.sort();
    }
    Ok(elsewhere)
}

/// Reads a file whole: a regular one, for others may have no end.
fn read_text(path: &Path) -> io::Result<String> {
    let wrong = |why: &str| io::Error::new(io::ErrorKind::InvalidData, why);
    if !std::fs::metadata(path)?.is_file() {
        return Err(wrong("it is no regular file"));
    }
    let mut text = String::new();
    let read = File::open(path)?.take(LONGEST_FILE + 1).read_to_string(&mut text)?;
    if read as u64 > LONGEST_FILE {
        return Err(wrong("it is longer than 16 MiB"));
    }
    Ok(text)
}

fn schema(sections: &[Statement], prefix: &str) -> Result<Schema, ScriptError> {
    let mut schema = Schema::default();
    for section in sections {
        let name = section.name();
        let Some(place) = schema.section(name) else {
            let message =
                format!("the section {name:?} is not known; sections are create, keys, drop and prewarm");
            return Err(ScriptError::new(&format!("{prefix}schema.sql"), 0, &message));
        };
        *place = section.text();
    }
    Ok(schema)
}
