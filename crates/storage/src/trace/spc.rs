//! The Storage Performance Council's trace format 1.0 (as the repository of `UMass` has it): application storage unit,
//! block address in blocks of 512 bytes, size in bytes, operation, timestamp in seconds; further fields are the site's own.

use super::fields::{commas, read_or_write, seconds, sectors, text, unsigned};
use super::{Entry, Format, Parser, Target};

pub(super) const FORMAT: Format = Format {
    name: "spc",
    about: "Storage Performance Council: ASU,LBA,Size,Opcode,Timestamp",
    certain: true,
    choices: &[],
    make: |_| Box::new(Spc::default()),
};

#[derive(Default)]
struct Spc {
    name: String,
}

impl Parser for Spc {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        if line.starts_with(b"ASU,") {
            return Ok(());
        }
        let [unit, block, size, kind, time] = commas(line, true)?;
        self.name.clear();
        self.name.push_str("asu");
        self.name.push_str(text(unit, "the application storage unit")?);
        let entry = Entry {
            time_us: seconds(time, "the timestamp")?,
            offset: sectors(block, "the block address")?,
            bytes: unsigned(size, "the size")?,
            operation: read_or_write(kind, "R", "W")?,
            latency_us: f32::NAN,
        };
        target.take(&self.name, &entry)
    }
}
