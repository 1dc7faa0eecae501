//! What a file holds before anything is measured: our mark, and regions full of bytes.

use std::fs::{self, TryLockError};
use std::io::{self, Read as _, Seek as _, SeekFrom, Write as _};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _};
use std::path::Path;

use crate::execute::filling::randomise;
use crate::execute::layout::Layout;

/// Regions begin at multiples of this.
pub const PAGE: u64 = 4096;
/// What the first page begins with; then comes how many bytes behind it are filled.
const MARK: &[u8; 24] = b"nephoscope storage file\n";
const CHUNK: usize = 1 << 20;

/// Makes a file hold the regions of a layout, full of bytes; what is filled already stays. A file or device with other
/// content is refused but for `overwrite`. The file that comes back holds a lock.
pub(super) fn prepare(path: &Path, layout: &Layout, overwrite: bool) -> Result<fs::File, String> {
    let is_new = !path.exists();
    let prepared = take(path, layout, overwrite);
    if is_new && prepared.is_err() {
        // Nothing is left of a file that could not be filled; where there is none, that is what was wanted.
        let _ = fs::remove_file(path);
    }
    prepared
}

fn take(path: &Path, layout: &Layout, overwrite: bool) -> Result<fs::File, String> {
    let text = |error: io::Error| error.to_string();
    let mut file =
        fs::File::options().read(true).write(true).create(true).truncate(false).open(path).map_err(text)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err("another process executes requests on it".to_owned()),
        Err(TryLockError::Error(error)) => return Err(text(error)),
    }
    let kind = file.metadata().map_err(text)?.file_type();
    if !kind.is_file() && !kind.is_block_device() {
        return Err("it is neither a file nor a block device".to_owned());
    }
    let size = file.seek(SeekFrom::End(0)).map_err(text)?;
    let filled = match (read_mark(&mut file).map_err(text)?, size) {
        (Some(filled), _) => filled.min(size.saturating_sub(PAGE)),
        (None, 0) => 0,
        (None, _) if overwrite => 0,
        (None, _) => {
            let what = if kind.is_block_device() { "a block device" } else { "a file" };
            return Err(format!(
                "{what} whose content is not ours; --overwrite takes it, and what it holds is lost"
            ));
        }
    };
    let wanted = layout.bytes();
    if filled < wanted {
        check_room(&file, kind.is_block_device(), size, wanted + PAGE)?;
        fill(&file, filled, wanted).map_err(text)?;
    }
    Ok(file)
}

fn read_mark(file: &mut fs::File) -> io::Result<Option<u64>> {
    let mut head = [0; MARK.len() + 8];
    file.seek(SeekFrom::Start(0))?;
    match file.read_exact(&mut head) {
        Ok(()) => {}
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        Err(error) => return Err(error),
    }
    let filled = u64::from_le_bytes(head[MARK.len()..].try_into().unwrap_or_default());
    Ok((head[..MARK.len()] == MARK[..]).then_some(filled))
}

fn check_room(file: &fs::File, is_device: bool, size: u64, wanted: u64) -> Result<(), String> {
    let room = if is_device { size } else { size + free_space(file).map_err(|error| error.to_string())? };
    if room < wanted {
        let mib = |bytes: u64| bytes.div_ceil(1 << 20);
        return Err(format!(
            "the requests reach {} MiB, and there is room for {} MiB",
            mib(wanted),
            mib(room)
        ));
    }
    Ok(())
}

fn free_space(file: &fs::File) -> io::Result<u64> {
    let mut found = std::mem::MaybeUninit::<libc::statvfs>::uninit();
    // SAFETY: the descriptor is open, and there is room for the answer.
    if unsafe { libc::fstatvfs(file.as_raw_fd(), found.as_mut_ptr()) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: it was filled, as the call says.
    let found = unsafe { found.assume_init() };
    Ok(found.f_bavail * found.f_frsize)
}

/// Fills pages behind the first, and then says so in the first.
fn fill(file: &fs::File, from: u64, until: u64) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    randomise(&mut chunk);
    let mut at = from & !(PAGE - 1);
    while at < until {
        let bytes = (until - at).next_multiple_of(PAGE).min(CHUNK as u64) as usize;
        stamp(&mut chunk[..bytes], PAGE + at, 0);
        file.write_all_at(&chunk[..bytes], PAGE + at)?;
        at += bytes as u64;
    }
    file.sync_data()?;
    let mut head = vec![0; PAGE as usize];
    (&mut head[..]).write_all(&[&MARK[..], &at.to_le_bytes()].concat())?;
    file.write_all_at(&head, 0)?;
    file.sync_data()
}

/// Begins each whole page of what goes to a place with that place, and with a time in microseconds.
pub(super) fn stamp(bytes: &mut [u8], at: u64, time_us: u64) {
    let mut next = (at.next_multiple_of(PAGE) - at) as usize;
    while next + 16 <= bytes.len() {
        bytes[next..next + 8].copy_from_slice(&(at + next as u64).to_le_bytes());
        bytes[next + 8..next + 16].copy_from_slice(&time_us.to_le_bytes());
        next += PAGE as usize;
    }
}
