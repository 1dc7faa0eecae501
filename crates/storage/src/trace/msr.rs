//! Traces of Microsoft Research Cambridge (SNIA IOTTA): timestamp and response time in ticks of 100 ns, host, disk,
//! type, offset and size in bytes.

use super::fields::{commas, read_or_write, text, ticks, unsigned};
use super::{Entry, Format, Parser, Target};

pub(super) const FORMAT: Format = Format {
    name: "msr",
    about: "Microsoft Research Cambridge: Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime",
    certain: true,
    choices: &[],
    make: |_| Box::new(Msr::default()),
};

const TICKS_PER_US: u64 = 10;

#[derive(Default)]
struct Msr {
    name: String,
}

impl Parser for Msr {
    fn line(&mut self, line: &[u8], target: &mut Target<'_>) -> Result<(), String> {
        if line.starts_with(b"Timestamp,") {
            return Ok(());
        }
        let [time, host, disk, kind, offset, size, response] = commas(line, false)?;
        // The dataset's own files are named so.
        self.name.clear();
        self.name.push_str(text(host, "the host name")?);
        self.name.push('_');
        self.name.push_str(text(disk, "the number of the disk")?);
        let entry = Entry {
            time_us: ticks(time, "the timestamp", TICKS_PER_US)?,
            offset: unsigned(offset, "the offset")?,
            bytes: unsigned(size, "the size")?,
            operation: read_or_write(kind, "Read", "Write")?,
            latency_us: unsigned(response, "the response time")? as f32 / TICKS_PER_US as f32,
        };
        target.take(&self.name, &entry)
    }
}
