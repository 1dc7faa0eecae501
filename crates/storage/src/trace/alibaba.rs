//! Block traces of Alibaba Cloud: device, operation, offset and length in bytes, timestamp in microseconds.

use super::fields::{commas, read_or_write, text, ticks, unsigned};
use super::{Entry, Format, Parser, Target};

pub(super) const FORMAT: Format = Format {
    name: "alibaba",
    about: "Alibaba Cloud block traces: device_id,opcode,offset,length,timestamp",
    certain: true,
    choices: &[],
    make: |_| Box::new(Alibaba),
};

struct Alibaba;

impl Parser for Alibaba {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        if line.starts_with(b"device_id,") {
            return Ok(());
        }
        let [device, kind, offset, length, time] = commas(line, false)?;
        let entry = Entry {
            time_us: ticks(time, "the timestamp", 1)?,
            offset: unsigned(offset, "the offset")?,
            bytes: unsigned(length, "the length")?,
            operation: read_or_write(kind, "R", "W")?,
            latency_us: f32::NAN,
        };
        target.take(text(device, "the device")?, &entry)
    }
}
