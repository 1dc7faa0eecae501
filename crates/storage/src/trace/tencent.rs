//! Block traces of Tencent's cloud block storage: timestamp in whole seconds, offset and size in sectors of 512 bytes,
//! 0 for a read and 1 for a write, volume.

use super::fields::{commas, read_or_write, seconds, sectors, text};
use super::{Entry, Format, Parser, Target};

pub(super) const FORMAT: Format = Format {
    name: "tencent",
    about: "Tencent block storage: Timestamp,Offset,Size,IOType,VolumeID",
    // Any five numbers could be such a line.
    certain: false,
    choices: &[],
    make: |_| Box::new(Tencent),
};

struct Tencent;

impl Parser for Tencent {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        if line.starts_with(b"Timestamp,") {
            return Ok(());
        }
        let [time, offset, size, kind, volume] = commas(line, false)?;
        let entry = Entry {
            time_us: seconds(time, "the timestamp")?,
            offset: sectors(offset, "the offset")?,
            bytes: sectors(size, "the size")?,
            operation: read_or_write(kind, "0", "1")?,
            latency_us: f32::NAN,
        };
        target.take(text(volume, "the volume")?, &entry)
    }
}
