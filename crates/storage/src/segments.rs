//! Segments: pieces of a fixed size of relations, files and devices, numbered in the order in which they are met.

use std::collections::HashMap;

/// The most segments of a corpus: so many take about 500 MB here.
pub const MOST_SEGMENTS: usize = 1 << 24;
/// The smallest segment, in bytes: a page of most file systems.
pub const LEAST_SEGMENT_BYTES: u64 = 4096;

/// Gives a number to each (name, chunk).
#[derive(Debug)]
pub struct Segments {
    bytes: u64,
    names: Vec<String>,
    by_name: HashMap<String, u32>,
    numbers: HashMap<(u32, u32), u32>,
    table: Vec<(u32, u32)>,
    last_name: u32,
    last: Option<((u32, u32), u32)>,
}

impl Segments {
    /// Segments of so many bytes.
    ///
    /// # Errors
    ///
    /// If that is too few.
    pub fn new(segment_bytes: u64) -> Result<Self, String> {
        if segment_bytes < LEAST_SEGMENT_BYTES {
            return Err(format!(
                "a segment of {segment_bytes} bytes (allowed: {LEAST_SEGMENT_BYTES} or more)"
            ));
        }
        Ok(Self {
            bytes: segment_bytes,
            names: Vec::new(),
            by_name: HashMap::new(),
            numbers: HashMap::new(),
            table: Vec::new(),
            last_name: 0,
            last: None,
        })
    }

    /// The number of the segment where an offset lies, in bytes from the beginning of `name`, and the offset within it.
    ///
    /// # Errors
    ///
    /// If the offset is too large for a number of a chunk, or there are too many segments.
    pub fn place(&mut self, name: &str, offset: u64) -> Result<(u32, u64), String> {
        let chunk = u32::try_from(offset / self.bytes).map_err(|_| {
            format!("the offset {offset} is beyond {} segments of {} bytes", 1_u64 << 32, self.bytes)
        })?;
        let key = (self.name(name)?, chunk);
        let within = offset % self.bytes;
        match self.last {
            Some((last, number)) if last == key => Ok((number, within)),
            _ => {
                let number = self.number(key)?;
                self.last = Some((key, number));
                Ok((number, within))
            }
        }
    }

    fn name(&mut self, name: &str) -> Result<u32, String> {
        if self.names.get(self.last_name as usize).is_some_and(|last| last == name) {
            return Ok(self.last_name);
        }
        if let Some(number) = self.by_name.get(name) {
            self.last_name = *number;
            return Ok(*number);
        }
        self.check_room()?;
        let number = self.names.len() as u32;
        self.names.push(name.to_owned());
        self.by_name.insert(name.to_owned(), number);
        self.last_name = number;
        Ok(number)
    }

    fn number(&mut self, key: (u32, u32)) -> Result<u32, String> {
        if let Some(number) = self.numbers.get(&key) {
            return Ok(*number);
        }
        self.check_room()?;
        let number = self.table.len() as u32;
        self.table.push(key);
        self.numbers.insert(key, number);
        Ok(number)
    }

    fn check_room(&self) -> Result<(), String> {
        if self.table.len() < MOST_SEGMENTS {
            return Ok(());
        }
        Err(format!(
            "more than {MOST_SEGMENTS} segments of {} bytes: a larger segment makes fewer",
            self.bytes
        ))
    }

    /// The size of a segment, in bytes.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The name and the chunk of each segment, in the order of their numbers.
    pub fn table(&self) -> impl Iterator<Item = (&str, u32)> {
        self.table.iter().map(|(name, chunk)| (self.names[*name as usize].as_str(), *chunk))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_are_numbered_as_they_are_met() {
        let mut segments = Segments::new(4096).unwrap();
        assert_eq!(segments.place("a", 0), Ok((0, 0)));
        assert_eq!(segments.place("a", 4095), Ok((0, 4095)));
        assert_eq!(segments.place("b", 4096), Ok((1, 0)));
        assert_eq!(segments.place("a", 8200), Ok((2, 8)));
        assert_eq!(segments.place("b", 5000), Ok((1, 904)));
        assert_eq!(segments.table().collect::<Vec<_>>(), [("a", 0), ("b", 1), ("a", 2)]);
    }

    #[test]
    fn what_has_no_number_is_refused() {
        assert!(Segments::new(4095).is_err());
        let refused = Segments::new(4096).unwrap().place("a", u64::MAX).unwrap_err();
        assert!(refused.contains("18446744073709551615"), "{refused}");
    }
}
