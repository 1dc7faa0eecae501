//! Which descriptors are files of the data directory: looked up when a descriptor is first used, forgotten when it is
//! closed or opened anew.

use core::ffi::c_int;
use core::fmt::Write as _;
use core::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};

use crate::format::{PAYLOAD, Word, kind};
use crate::recording;
use crate::settings;
use crate::system::readlink;
use crate::text::Text;

/// Not looked up yet.
const UNKNOWN: u32 = 0;
/// None of ours.
const OTHER: u32 = 1;
/// A file's number is added to this.
const FIRST: u32 = 2;

const MOST: usize = 1 << 20;
static FILES: [AtomicU32; MOST] = [const { AtomicU32::new(UNKNOWN) }; MOST];
/// One more than the greatest descriptor that was looked up.
static USED: AtomicUsize = AtomicUsize::new(0);
/// The number of the next file.
static NEXT: AtomicU32 = AtomicU32::new(0);
static ON: AtomicBool = AtomicBool::new(false);

/// Begins to look descriptors up.
pub(crate) fn enable() {
    ON.store(true, Ordering::Release);
}

/// The file's number, if the descriptor is one of a file that is recorded.
pub(crate) fn number(fd: c_int) -> Option<u32> {
    let place = FILES.get(fd as usize)?;
    match place.load(Ordering::Acquire) {
        UNKNOWN if ON.load(Ordering::Relaxed) => look_up(fd, place),
        UNKNOWN | OTHER => None,
        known => Some(known - FIRST),
    }
}

/// Forgets a descriptor, which is about to be closed or has just been opened.
pub(crate) fn forget(fd: c_int) {
    if let Some(place) = FILES.get(fd as usize)
        && place.load(Ordering::Relaxed) != UNKNOWN
    {
        place.store(UNKNOWN, Ordering::Relaxed);
    }
}

/// Forgets all descriptors: files have other names now.
pub(crate) fn forget_all() {
    let used = USED.load(Ordering::Relaxed);
    FILES[..used].iter().for_each(|place| place.store(UNKNOWN, Ordering::Relaxed));
}

/// As after a fork: the numbers are those of the parent's records.
pub(crate) fn reset() {
    forget_all();
    NEXT.store(0, Ordering::Relaxed);
}

#[cold]
fn look_up(fd: c_int, place: &AtomicU32) -> Option<u32> {
    let errno = crate::system::errno();
    let mut link = Text::new();
    let _ = write!(link, "/proc/self/fd/{fd}");
    link.end();
    let mut found = [0_u8; 4096];
    // SAFETY: the path ends with a zero, and the size is that of the room.
    let length = unsafe { readlink(link.bytes().as_ptr().cast(), found.as_mut_ptr().cast(), found.len()) };
    crate::system::set_errno(errno);
    USED.fetch_max(fd as usize + 1, Ordering::Relaxed);
    let Some(path) = usize::try_from(length).ok().and_then(|length| inside(&found[..length])) else {
        place.store(OTHER, Ordering::Relaxed);
        return None;
    };
    if !recording::is_on() {
        place.store(OTHER, Ordering::Relaxed);
        return None;
    }
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    name(kind::FILE, number, path);
    place.store(number + FIRST, Ordering::Release);
    Some(number)
}

/// The part of a path that is inside the data directory.
fn inside(path: &[u8]) -> Option<&[u8]> {
    let path = path.strip_prefix(settings::data())?.strip_prefix(b"/")?;
    Some(path.strip_suffix(b" (deleted)").unwrap_or(path))
}

/// Writes the name of a file or of a caller: in as many slots as it needs.
pub(crate) fn name(kind: u8, number: u32, name: &[u8]) {
    let parts = name.chunks(PAYLOAD);
    let mut left = parts.len() as u16;
    for part in parts {
        left -= 1;
        let mut payload = [0; PAYLOAD];
        payload[..part.len()].copy_from_slice(part);
        recording::put(&payload, Word { number, detail: left, kind });
    }
}
