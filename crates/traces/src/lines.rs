//! Lines of a file or a pipe, plain or compressed by gzip, each of a limited length and with its number.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

const BUFFER: usize = 256 * 1024;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// Lines, read one after the other.
pub struct Lines {
    source: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    longest: usize,
    /// The number of the last line that was read; the first is 1.
    pub number: u64,
}

/// How a line ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// As lines do.
    Line,
    /// With the file, and without an end of line.
    File,
    /// Somewhere behind what was taken of it: it is too long.
    Beyond,
}

impl Lines {
    /// Lines of at most `longest` bytes of what has this path.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is compressed in a way that is not known here.
    pub fn open(path: &Path, longest: usize) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        // Reading a folder fails only later, and says less.
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            return Err("it is a folder (allowed: a file or a pipe)".to_owned());
        }
        Self::new(file, longest)
    }

    /// Lines of at most `longest` bytes of any source.
    ///
    /// # Errors
    ///
    /// As of [`Self::open`].
    pub fn new(source: impl Read + Send + 'static, longest: usize) -> Result<Self, String> {
        let mut plain = BufReader::with_capacity(BUFFER, source);
        let start = plain.fill_buf().map_err(|error| error.to_string())?;
        let source: Box<dyn BufRead + Send> = if start.starts_with(&ZSTD) {
            return Err("it is compressed by zstd: unpack it first, by `zstd -dc FILE`".to_owned());
        } else if start.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self { source, line: Vec::new(), longest, number: 0 })
    }

    /// The next line without its end, or `None` behind the last.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or is too long.
    #[expect(clippy::should_implement_trait, reason = "a line lasts until the next one")]
    pub fn next(&mut self) -> Result<Option<&[u8]>, String> {
        let mut line = std::mem::take(&mut self.line);
        line.clear();
        let ended = self.read(&mut line);
        self.line = line;
        let Some(ended) = ended? else { return Ok(None) };
        let line = without_end(&self.line);
        if ended == End::Beyond || line.len() > self.longest {
            return Err(format!("it is longer than {} bytes", self.longest));
        }
        Ok(Some(line))
    }

    /// Adds the next line, with its end, to a record of at most `longest` bytes; `None` behind the last line. What would
    /// make the record longer is left out.
    ///
    /// # Errors
    ///
    /// If it cannot be read.
    pub fn read(&mut self, record: &mut Vec<u8>) -> Result<Option<End>, String> {
        let most = self.longest + 2;
        let (mut any, mut beyond) = (false, false);
        loop {
            let found = match self.source.fill_buf() {
                Ok(found) => found,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
                Err(error) => return Err(format!("it cannot be read: {error}")),
            };
            if found.is_empty() {
                self.number += u64::from(any);
                return Ok(any.then_some(if beyond { End::Beyond } else { End::File }));
            }
            any = true;
            let end = found.iter().position(|byte| *byte == b'\n');
            let size = end.map_or(found.len(), |end| end + 1);
            let room = most.saturating_sub(record.len());
            record.extend_from_slice(&found[..size.min(room)]);
            beyond |= size > room;
            self.source.consume(size);
            if end.is_some() {
                self.number += 1;
                return Ok(Some(if beyond { End::Beyond } else { End::Line }));
            }
        }
    }
}

/// A line without its end.
fn without_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;

    const LONGEST: usize = 64 * 1024;

    fn all(source: Vec<u8>) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let mut lines = Lines::new(std::io::Cursor::new(source), LONGEST)?;
        let mut found = Vec::new();
        loop {
            match lines.next()?.map(<[u8]>::to_vec) {
                Some(line) => found.push((lines.number, line)),
                None => return Ok(found),
            }
        }
    }

    #[test]
    fn lines_have_numbers_and_no_ends() {
        let expected = vec![(1, b"a".to_vec()), (2, b"".to_vec()), (3, b"b".to_vec())];
        assert_eq!(all(b"a\r\n\nb".to_vec()), Ok(expected));
        assert_eq!(all(Vec::new()), Ok(Vec::new()));
    }

    #[test]
    fn gzip_is_unpacked_all_of_its_members() {
        let mut packed = Vec::new();
        for part in [b"a\n", b"b\n"] {
            let mut encoder = GzEncoder::new(&mut packed, flate2::Compression::fast());
            encoder.write_all(part).unwrap();
            encoder.finish().unwrap();
        }
        assert_eq!(all(packed.clone()), Ok(vec![(1, b"a".to_vec()), (2, b"b".to_vec())]));
        packed.truncate(packed.len() - 9);
        assert!(all(packed).unwrap_err().contains("cannot be read"));
    }

    #[test]
    fn what_cannot_be_a_line_is_refused() {
        let mut longest = vec![b'x'; LONGEST];
        assert!(all(longest.clone()).is_ok());
        longest.push(b'x');
        assert!(all(longest).unwrap_err().contains("longer than 65536 bytes"));
        assert!(all(ZSTD.to_vec()).unwrap_err().contains("zstd -dc"));
    }

    #[test]
    fn a_record_of_several_lines_is_cut_where_it_gets_too_long() {
        let mut lines = Lines::new(std::io::Cursor::new(b"ab\ncd\nefghijk\nl".to_vec()), 8).unwrap();
        let mut record = Vec::new();
        let mut ends = Vec::new();
        while let Some(end) = lines.read(&mut record).unwrap() {
            ends.push(end);
        }
        assert_eq!(ends, [End::Line, End::Line, End::Beyond, End::Beyond]);
        assert_eq!((record.as_slice(), lines.number), (b"ab\ncd\nefgh".as_slice(), 4));
    }
}
