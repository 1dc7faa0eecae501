//! The files of a log.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::Pages;

const NAME: usize = 24;
const PIECE: u64 = 1 << 20;

/// The segments of one time line in a folder such as `pg_wal`; a mebibyte of one is in memory.
pub struct WalFolder {
    folder: PathBuf,
    timeline: u32,
    page_bytes: u64,
    segment_bytes: u64,
    open: Option<(u64, File)>,
    piece: Vec<u8>,
    piece_at: Option<u64>,
    first: u64,
}

impl WalFolder {
    /// Looks for the segments of the latest time line.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            if let Some(parts) = entry?.file_name().to_str().and_then(parts_of) {
                names.push(parts);
            }
        }
        let none =
            || io::Error::new(io::ErrorKind::NotFound, format!("{}: no segment of a log", folder.display()));
        let timeline = names.iter().map(|(timeline, ..)| *timeline).max().ok_or_else(none)?;
        names.retain(|parts| parts.0 == timeline);
        names.sort_unstable();
        let mut found = Self {
            folder: folder.to_owned(),
            timeline,
            page_bytes: 0,
            segment_bytes: 0,
            open: None,
            piece: Vec::new(),
            piece_at: None,
            first: 0,
        };
        let (_, high, low) = names[0];
        found.measure(&folder.join(name_of(timeline, high, low)))?;
        found.first = (u64::from(high) << 32) + u64::from(low) * found.segment_bytes;
        Ok(found)
    }

    /// Where the first segment begins.
    #[must_use]
    pub const fn first(&self) -> super::Lsn {
        super::Lsn(self.first)
    }

    /// Reads the sizes in the header of a segment.
    fn measure(&mut self, path: &Path) -> io::Result<()> {
        let mut header = [0; 40];
        File::open(path)?.read_exact_at(&mut header, 0)?;
        let size = |at: usize| {
            let mut four = [0; 4];
            four.copy_from_slice(&header[at..at + 4]);
            u64::from(u32::from_le_bytes(four))
        };
        let (segment, page) = (size(32), size(36));
        let fits = segment.is_power_of_two() && (1 << 20..=1 << 30).contains(&segment);
        if !fits || !page.is_power_of_two() || !(1 << 10..=1 << 16).contains(&page) {
            let why = format!("{}: no segment of a log: its sizes are {segment} and {page}", path.display());
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        (self.segment_bytes, self.page_bytes) = (segment, page);
        Ok(())
    }

    /// Opens the segment that begins at a place; false where there is none.
    fn open_segment(&mut self, start: u64) -> io::Result<bool> {
        if self.open.as_ref().is_some_and(|(open, _)| *open == start) {
            return Ok(true);
        }
        let (high, low) = ((start >> 32) as u32, ((start & 0xFFFF_FFFF) / self.segment_bytes) as u32);
        match File::open(self.folder.join(name_of(self.timeline, high, low))) {
            Ok(file) => {
                self.open = Some((start, file));
                Ok(true)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

/// The time line of a segment and the two halves of its number, as its file's name has them; None for other files.
pub(crate) fn parts_of(name: &str) -> Option<(u32, u32, u32)> {
    if name.len() != NAME || !name.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    let part = |at: usize| u32::from_str_radix(&name[at..at + 8], 16).ok();
    Some((part(0)?, part(8)?, part(16)?))
}

fn name_of(timeline: u32, high: u32, low: u32) -> String {
    format!("{timeline:08X}{high:08X}{low:08X}")
}

impl Pages for WalFolder {
    fn page_bytes(&self) -> u64 {
        self.page_bytes
    }

    fn segment_bytes(&self) -> u64 {
        self.segment_bytes
    }

    fn page(&mut self, at: u64) -> io::Result<Option<&[u8]>> {
        let piece_at = at - at % PIECE;
        if self.piece_at != Some(piece_at) {
            let start = at - at % self.segment_bytes;
            if !self.open_segment(start)? {
                return Ok(None);
            }
            self.piece_at = None;
            self.piece.resize(PIECE as usize, 0);
            let mut read = 0;
            if let Some((_, file)) = &self.open {
                while read < self.piece.len() {
                    match file.read_at(&mut self.piece[read..], piece_at - start + read as u64)? {
                        0 => break,
                        more => read += more,
                    }
                }
            }
            self.piece.truncate(read);
            self.piece_at = Some(piece_at);
        }
        let from = (at - piece_at) as usize;
        Ok(self.piece.get(from..from + self.page_bytes as usize))
    }
}
