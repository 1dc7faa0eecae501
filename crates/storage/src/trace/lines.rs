//! Lines of a file or a pipe, plain or compressed by gzip, each of a limited length and with its number.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;

/// The longest line, in bytes.
pub const LONGEST_LINE: usize = 64 * 1024;
const BUFFER: usize = 256 * 1024;
const GZIP: [u8; 2] = [0x1f, 0x8b];
const ZSTD: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

pub(super) struct Lines {
    source: Box<dyn BufRead + Send>,
    line: Vec<u8>,
    /// The number of the last line that was read; the first is 1.
    pub(super) number: u64,
}

impl Lines {
    /// Lines of what has this path.
    pub(super) fn open(path: &Path) -> Result<Self, String> {
        let file = File::open(path).map_err(|error| error.to_string())?;
        // Reading a folder fails only later, and says less.
        if file.metadata().is_ok_and(|found| found.is_dir()) {
            return Err("it is a folder (allowed: a file or a pipe)".to_owned());
        }
        Self::new(file)
    }

    pub(super) fn new(source: impl Read + Send + 'static) -> Result<Self, String> {
        let mut plain = BufReader::with_capacity(BUFFER, source);
        let start = plain.fill_buf().map_err(|error| error.to_string())?;
        let source: Box<dyn BufRead + Send> = if start.starts_with(&ZSTD) {
            return Err("it is compressed by zstd: unpack it first, by `zstd -dc FILE`".to_owned());
        } else if start.starts_with(&GZIP) {
            Box::new(BufReader::with_capacity(BUFFER, MultiGzDecoder::new(plain)))
        } else {
            Box::new(plain)
        };
        Ok(Self { source, line: Vec::new(), number: 0 })
    }

    /// The next line without its end, or `None` behind the last.
    pub(super) fn next(&mut self) -> Result<Option<&[u8]>, String> {
        self.line.clear();
        self.number += 1;
        let limit = LONGEST_LINE as u64 + 2;
        let mut limited = (&mut self.source).take(limit);
        let read = limited
            .read_until(b'\n', &mut self.line)
            .map_err(|error| format!("it cannot be read: {error}"))?;
        if read == 0 {
            self.number -= 1;
            return Ok(None);
        }
        let line = self.line.strip_suffix(b"\n").unwrap_or(&self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if line.len() > LONGEST_LINE {
            return Err(format!("it is longer than {LONGEST_LINE} bytes"));
        }
        Ok(Some(line))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::write::GzEncoder;

    use super::*;

    fn all(source: Vec<u8>) -> Result<Vec<(u64, Vec<u8>)>, String> {
        let mut lines = Lines::new(std::io::Cursor::new(source))?;
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
        let mut longest = vec![b'x'; LONGEST_LINE];
        assert!(all(longest.clone()).is_ok());
        longest.push(b'x');
        assert!(all(longest).unwrap_err().contains("longer than 65536 bytes"));
        assert!(all(ZSTD.to_vec()).unwrap_err().contains("zstd -dc"));
    }
}
