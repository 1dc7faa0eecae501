//! What the fuzz target in `fuzz/` calls; the tests replay its seeds.

use std::io::{Cursor, Read};

use nephoscope_drivers::Lexer;

use crate::logs::{FORMATS, Format};
use crate::normal::{filled, fingerprint, normalised};
use crate::{Batch, Options, Reader};

/// A source that gives a few bytes at a time.
struct Slow(Cursor<Vec<u8>>, usize);

impl Read for Slow {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let size = buffer.len().min(self.1);
        self.0.read(&mut buffer[..size])
    }
}

/// A log, of the format that its first byte says, which is also looked at as a statement: it is refused with the number of
/// a line, or comes to the same however it is cut; each statement has a value for each letter, and the fingerprint of its
/// text; a masked trace has the same texts.
///
/// # Panics
/// If not.
pub fn sql_trace(data: &[u8]) {
    let Some((choice, text)) = data.split_first() else { return };
    let format = FORMATS[usize::from(*choice) % FORMATS.len()];
    let cut = 1 + usize::from(*choice) / FORMATS.len();
    let whole = read(format, text, text.len().max(1), false);
    assert_eq!(whole, read(format, text, cut, false));
    match &whole {
        Ok(batches) => {
            batches.iter().for_each(check);
            let masked = read(format, text, cut, true).unwrap_or_default();
            let texts = |batches: &[Batch]| {
                let of =
                    |batch: &Batch| (batch.fingerprint.clone(), batch.kinds.clone(), batch.given.clone());
                batches.iter().map(of).collect::<Vec<_>>()
            };
            assert_eq!(texts(batches), texts(&masked));
        }
        Err(why) => assert!(why.starts_with("seed: "), "{why}"),
    }
    if let Ok(sql) = std::str::from_utf8(text) {
        statement(sql, format.lexer);
    }
}

fn check(batch: &Batch) {
    for at in 0..batch.len() {
        let letters = batch.kinds_of(at).bytes().filter(u8::is_ascii_alphabetic).count();
        assert_eq!(letters, batch.parameters_of(at).len());
        assert_eq!(batch.fingerprint[at], fingerprint(batch.statement_of(at)));
    }
}

/// A statement has as many letters as values; when it is filled, it has the same fingerprint.
fn statement(sql: &str, lexer: Lexer) {
    let normal = normalised(sql, lexer);
    let letters = normal.kinds.bytes().filter(u8::is_ascii_alphabetic).count();
    assert_eq!(letters, normal.literals.len());
    let values: Vec<_> = normal.literals.iter().map(|literal| literal.value.as_deref()).collect();
    if !sql.contains('…') {
        assert!(filled(&normal.text, &normal.kinds, &values, lexer).is_ok(), "{}", normal.text);
    }
}

fn read(format: &'static Format, text: &[u8], cut: usize, mask: bool) -> Result<Vec<Batch>, String> {
    let source = Slow(Cursor::new(text.to_vec()), cut);
    let options = Options { mask, database: None };
    let mut reader = Reader::new("seed", source, format, &options)?;
    let mut batches = Vec::new();
    while let Some(batch) = reader.next()? {
        batches.push(batch);
    }
    Ok(batches)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use proptest::prelude::*;

    use crate::tests::EXAMPLES;

    #[test]
    fn the_seeds_of_traces_hold() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/sql_trace");
        let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(seeds.len() >= EXAMPLES.len(), "{} lacks seeds", folder.display());
        for seed in seeds {
            super::sql_trace(&fs::read(seed).unwrap());
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_taken(data in proptest::collection::vec(any::<u8>(), 0..200)) {
            super::sql_trace(&data);
        }

        #[test]
        fn examples_that_are_damaged_are_taken(
            example in 0..EXAMPLES.len(), cut in 0_usize..16, at in any::<prop::sample::Index>(), byte in any::<u8>()
        ) {
            let mut data = vec![(example + cut * EXAMPLES.len()) as u8];
            data.extend_from_slice(EXAMPLES[example].1.as_bytes());
            super::sql_trace(&data);
            let at = at.index(data.len() - 1) + 1;
            data[at] = byte;
            super::sql_trace(&data);
        }

        #[test]
        fn whatever_is_no_sql_is_taken(sql in "([a-c1E$/*' \"\\\\`#é.,()\\[\\]:;-]|IN|VALUES|--|::|\\$t\\$|\n){0,40}", mysql in any::<bool>()) {
            super::sql_trace(&[&[if mysql { 2 } else { 0 }], sql.as_bytes()].concat());
        }
    }
}
