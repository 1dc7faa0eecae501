//! What the environment asks for. It is read once, in the constructor, and copied: `PostgreSQL` writes its process title
//! over where the environment was.

use core::ffi::{CStr, c_char};
use core::sync::atomic::{AtomicUsize, Ordering};

use crate::system::getenv;

/// The folder that files of records are made in.
const FOLDER: &CStr = c"NEPHOSCOPE_IO_RECORDS";
/// The data directory, as the kernel names it (without links); only its files are recorded.
const DATA: &CStr = c"NEPHOSCOPE_IO_DATA";

const MOST: usize = 4096;

struct Copied {
    bytes: core::cell::UnsafeCell<[u8; MOST]>,
    length: AtomicUsize,
}

// SAFETY: it is written once, by the constructor, before its length is, and only read after that.
unsafe impl Sync for Copied {}

impl Copied {
    const fn new() -> Self {
        Self { bytes: core::cell::UnsafeCell::new([0; MOST]), length: AtomicUsize::new(0) }
    }

    fn read(&self, name: &CStr) {
        // SAFETY: the name ends with a zero; nobody changes the environment while constructors run.
        let value = unsafe {
            let found: *const c_char = getenv(name.as_ptr());
            if found.is_null() { &[] } else { CStr::from_ptr(found).to_bytes() }
        };
        if value.len() < MOST && value.first() == Some(&b'/') {
            // SAFETY: see `Sync`.
            unsafe { (&mut *self.bytes.get())[..value.len()].copy_from_slice(value) };
            self.length.store(value.len(), Ordering::Release);
        }
    }

    fn get(&self) -> &[u8] {
        let length = self.length.load(Ordering::Acquire);
        // SAFETY: see `Sync`.
        unsafe { &(&*self.bytes.get())[..length] }
    }
}

static FOLDER_COPY: Copied = Copied::new();
static DATA_COPY: Copied = Copied::new();

/// Copies the settings; false if nothing is to be recorded.
pub(crate) fn read() -> bool {
    FOLDER_COPY.read(FOLDER);
    DATA_COPY.read(DATA);
    !folder().is_empty() && !data().is_empty()
}

/// The folder of the files of records.
pub(crate) fn folder() -> &'static [u8] {
    FOLDER_COPY.get()
}

/// The data directory.
pub(crate) fn data() -> &'static [u8] {
    DATA_COPY.get()
}
