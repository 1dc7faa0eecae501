//! What the fuzz targets in `fuzz/` call; the tests replay their seeds.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};

use nephoscope_drivers::Lexer;

use crate::logs::{FORMATS, Format};
use crate::normal::{filled, fingerprint, normalised};
use crate::wire::{PROTOCOLS, Recorder, Side};
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
            check_masked(batches, &read(format, text, cut, true).unwrap_or_default());
        }
        Err(why) => assert!(why.starts_with("seed: "), "{why}"),
    }
    if let Ok(sql) = std::str::from_utf8(text) {
        statement(sql, format.lexer);
    }
}

/// A masked trace has the same texts.
fn check_masked(batches: &[Batch], masked: &[Batch]) {
    let texts = |batches: &[Batch]| {
        let of = |batch: &Batch| (batch.fingerprint.clone(), batch.kinds.clone(), batch.given.clone());
        batches.iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(texts(batches), texts(masked));
}

/// Two connections of clients and a server, in pieces. The first byte chooses the protocol, and how they are cut. A piece is
/// a byte that says who sends, on which connection, and whether that has
/// ended behind it, two bytes for the length, and so many bytes. The statements are the same however the pieces are cut, and
/// those of a trace.
///
/// # Panics
/// If not.
pub fn wire_trace(data: &[u8]) {
    let Some((choice, pieces)) = data.split_first() else { return };
    let (protocol, cut) = (usize::from(choice >> 7), 1 + usize::from(choice & 0x7f));
    let whole = recorded(protocol, pieces, usize::MAX, false);
    assert_eq!(whole, recorded(protocol, pieces, cut, false));
    whole.0.iter().for_each(check);
    check_masked(&whole.0, &recorded(protocol, pieces, usize::MAX, true).0);
}

fn recorded(
    protocol: usize,
    mut pieces: &[u8],
    cut: usize,
    mask: bool,
) -> (Vec<Batch>, BTreeMap<&'static str, u64>) {
    let options = Options { mask, database: None };
    let Ok(mut recorder) = Recorder::new(PROTOCOLS[protocol], &options, 0, 0) else {
        return Default::default();
    };
    let mut at = 0;
    while let Some(([what, length @ ..], rest)) = pieces.split_first_chunk::<3>() {
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(u16::from_be_bytes(*length))));
        let (side, connection) =
            (if what & 1 == 0 { Side::Client } else { Side::Server }, u64::from(what & 2));
        piece.chunks(cut).for_each(|bytes| recorder.passed(connection, side, at, bytes));
        if what & 4 != 0 {
            recorder.ended(connection);
        }
        (pieces, at) = (rest, at + 1000);
    }
    recorder.end();
    let batches = std::iter::from_fn(|| recorder.ready()).collect();
    (batches, recorder.left_out().clone())
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
    use crate::wire::tests::{Talk, examples};

    fn replay(target: &str, least: usize, call: fn(&[u8])) {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(target);
        let seeds: Vec<_> = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        assert!(seeds.len() >= least, "{} lacks seeds", folder.display());
        for seed in seeds {
            call(&fs::read(seed).unwrap());
        }
    }

    #[test]
    fn the_seeds_of_traces_hold() {
        replay("sql_trace", EXAMPLES.len(), super::sql_trace);
        replay("wire_trace", examples().iter().map(Vec::len).sum(), super::wire_trace);
    }

    /// A conversation as the fuzz target takes it, beside another one of which every second piece comes between.
    fn seed(choice: u8, talk: &Talk, beside: &Talk) -> Vec<u8> {
        let mut data = vec![choice];
        let mut piece = |connection: u8, talk: &Talk, at: usize| {
            if let Some((side, bytes)) = talk.0.get(at) {
                data.push(*side as u8 | connection);
                data.extend((bytes.len() as u16).to_be_bytes());
                data.extend(bytes);
            }
        };
        for at in 0..talk.0.len() {
            piece(0, talk, at);
            piece(2, beside, at);
        }
        data
    }

    /// Writes the seeds of what passes on connections: `cargo test -p nephoscope-traces write_seeds -- --ignored`.
    #[test]
    #[ignore = "writes the seeds of the fuzz target"]
    fn write_seeds() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire_trace");
        for (protocol, (of, examples)) in crate::wire::PROTOCOLS.iter().zip(examples()).enumerate() {
            for (name, talk, ..) in &examples {
                let name = format!("{}-{name}", of.kind.1);
                fs::write(folder.join(name), seed(2 | (protocol as u8) << 7, talk, &examples[0].1)).unwrap();
            }
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
        fn conversations_that_are_damaged_are_taken(
            examples in Just(examples()), which in any::<[prop::sample::Index; 2]>(), choice in any::<u8>(),
            damage in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4)
        ) {
            let examples = &examples[usize::from(choice >> 7)];
            let [one, other] = which.map(|which| &examples[which.index(examples.len())].1);
            let mut data = seed(choice, one, other);
            super::wire_trace(&data);
            for (at, byte) in damage {
                let at = at.index(data.len());
                data[at] = byte;
            }
            super::wire_trace(&data);
        }

        #[test]
        fn any_bytes_of_a_conversation_are_taken(mysql in any::<bool>(), pieces in proptest::collection::vec((any::<u8>(), proptest::collection::vec(any::<u8>(), 0..60)), 0..20)) {
            let protocol = usize::from(mysql);
            let begun = &examples()[protocol][0].1;
            let mut talk = begun.clone();
            talk.0.extend(pieces.into_iter().map(|(side, bytes)| {
                (if side % 2 == 0 { crate::wire::Side::Client } else { crate::wire::Side::Server }, bytes)
            }));
            super::wire_trace(&seed(2 | (protocol as u8) << 7, &talk, begun));
        }

        #[test]
        fn whatever_is_no_sql_is_taken(sql in "([a-c1E$/*' \"\\\\`#é.,()\\[\\]:;-]|IN|VALUES|--|::|\\$t\\$|\n){0,40}", mysql in any::<bool>()) {
            super::sql_trace(&[&[if mysql { 2 } else { 0 }], sql.as_bytes()].concat());
        }
    }
}
