//! Latency histograms: HdrHistogram with the bounds of METRICS, section 1.

mod interval;

use std::io::Read as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::read::ZlibDecoder;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::{MICROSECOND, SECOND};

pub use interval::IntervalHistogram;

/// A histogram of any window.
pub type WindowHistogram = Histogram<u64>;

const HIGHEST: Nanos = 3600 * SECOND;
const DIGITS: u8 = 3;
/// The cookie of the V2 compressed form.
const COMPRESSED: [u8; 4] = 0x1c84_9314_u32.to_be_bytes();
/// No histogram with these bounds is longer than this: it has some 25,000 counts of at most nine bytes.
const LONGEST: u64 = 1 << 20;

/// An empty histogram of times from 1 µs to 1 h to 3 significant digits.
#[must_use]
pub fn empty() -> WindowHistogram {
    Histogram::new_with_bounds(MICROSECOND, HIGHEST, DIGITS)
        .unwrap_or_else(|_| unreachable!("the bounds are constants that the library takes"))
}

/// Adds a time. What lies beyond the bounds is counted at the bound.
pub fn record(histogram: &mut WindowHistogram, time: Nanos) {
    histogram.saturating_record(time.max(1));
}

/// A histogram in HdrHistogram's V2 compressed form, in base64: what log files of histograms hold.
#[must_use]
pub fn encode(histogram: &WindowHistogram) -> String {
    let mut bytes = Vec::new();
    // Writing into a vector cannot fail, and the counts of our own histograms are in range.
    let _ = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    STANDARD.encode(bytes)
}

/// Reads what [`encode`] or another HdrHistogram library wrote with the same bounds; the error says what is wrong
/// with it.
pub fn decode(text: &str) -> Result<WindowHistogram, String> {
    let bytes = STANDARD.decode(text.trim()).map_err(|error| format!("not base64: {error}"))?;
    let wrong = |error: &dyn std::fmt::Display| format!("not a histogram: {error}");
    let Some(packed) = bytes.strip_prefix(&COMPRESSED) else {
        return Err(wrong(&"it is not in the V2 compressed form"));
    };
    let mut plain = Vec::new();
    // Behind the length of what follows, which is what there is.
    let inflated =
        ZlibDecoder::new(packed.get(4..).unwrap_or_default()).take(LONGEST).read_to_end(&mut plain);
    inflated.map_err(|error| wrong(&error))?;
    // The library gives a histogram the size that its head claims, and believes how long its counts are.
    let claims = plain.get(4..8).and_then(|length| length.try_into().ok()).map(u32::from_be_bytes);
    if claims.is_none_or(|length| length as usize > plain.len()) {
        return Err(wrong(&"it is cut off"));
    }
    if plain.get(12..32) != Some(&bounds()[..]) {
        return Err(wrong(&"its bounds are not 1 µs to 1 h with 3 digits"));
    }
    Deserializer::new().deserialize(&mut plain.as_slice()).map_err(|error| wrong(&error))
}

/// The bounds as they stand in a histogram's head: digits, lowest, highest.
fn bounds() -> [u8; 20] {
    let mut bounds = [0; 20];
    bounds[3] = DIGITS;
    bounds[4..12].copy_from_slice(&MICROSECOND.to_be_bytes());
    bounds[12..].copy_from_slice(&HIGHEST.to_be_bytes());
    bounds
}

#[cfg(test)]
mod tests {
    use flate2::Compression;
    use flate2::read::ZlibEncoder;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shards_merge_into_the_whole(times in prop::collection::vec(1..7200 * SECOND, 1..400), shards in 1..5_usize) {
            let mut whole: WindowHistogram = empty();
            let mut parts: Vec<WindowHistogram> = (0..shards).map(|_| empty()).collect();
            for (at, time) in times.iter().enumerate() {
                record(&mut whole, *time);
                record(&mut parts[at % shards], *time);
            }
            let mut merged: WindowHistogram = empty();
            for part in &parts {
                merged.add(decode(&encode(part)).unwrap()).unwrap();
            }
            prop_assert_eq!(merged.len(), times.len() as u64);
            for q in [0.0, 0.5, 0.9, 0.99, 1.0] {
                prop_assert_eq!(merged.value_at_quantile(q), whole.value_at_quantile(q));
            }
            prop_assert_eq!(merged, whole);
        }

        #[test]
        fn no_counts_break_the_decoder(counts in prop::collection::vec(any::<u8>(), 0..300), more in -2..3_i32) {
            let length = counts.len() as u32;
            let claimed = length.saturating_add_signed(more);
            let decoded = decode(&holding(claimed, 3, HIGHEST, &counts));
            prop_assert!(claimed <= length || decoded.is_err());
            if let Ok(decoded) = decoded {
                let mut sum: WindowHistogram = empty();
                prop_assert!(sum.add(&decoded).is_ok());
                prop_assert_eq!(sum.len(), decoded.len());
                prop_assert!(decode(&encode(&decoded)).is_ok_and(|again| again == decoded));
            }
        }

        #[test]
        fn no_text_breaks_the_decoder(text in "[A-Za-z0-9+/=]{0,80}") {
            let _ = decode(&text);
        }
    }

    /// A head with these claims and no counts, compressed.
    fn claiming(length: u32, digits: u32, high: u64) -> String {
        holding(length, digits, high, &[])
    }

    /// The same with counts.
    fn holding(length: u32, digits: u32, high: u64, counts: &[u8]) -> String {
        let mut plain = 0x1c84_9313_u32.to_be_bytes().to_vec();
        for field in [length, 0, digits] {
            plain.extend_from_slice(&field.to_be_bytes());
        }
        for field in [MICROSECOND, high, 1_f64.to_bits()] {
            plain.extend_from_slice(&field.to_be_bytes());
        }
        plain.extend_from_slice(counts);
        let mut packed = Vec::new();
        ZlibEncoder::new(plain.as_slice(), Compression::fast()).read_to_end(&mut packed).unwrap();
        STANDARD.encode([&COMPRESSED[..], &(packed.len() as u32).to_be_bytes(), &packed].concat())
    }

    #[test]
    fn what_a_head_claims_is_not_believed() {
        assert!(decode(&claiming(0, 3, HIGHEST)).unwrap().is_empty());
        let bounds = "not a histogram: its bounds are not 1 µs to 1 h with 3 digits";
        for (text, expected) in [
            (claiming(u32::MAX, 3, HIGHEST), "not a histogram: it is cut off"),
            (claiming(0, 5, u64::MAX), bounds),
            (claiming(0, 3, HIGHEST + 1), bounds),
            (STANDARD.encode(COMPRESSED), "not a histogram: incomplete deflate stream"),
            (STANDARD.encode([0; 40]), "not a histogram: it is not in the V2 compressed form"),
        ] {
            assert_eq!(decode(&text).unwrap_err(), expected);
        }
        let bomb = vec![0_u8; 1 << 22];
        let mut packed = Vec::new();
        ZlibEncoder::new(bomb.as_slice(), Compression::best()).read_to_end(&mut packed).unwrap();
        assert!(decode(&STANDARD.encode([&COMPRESSED[..], &[0; 4], &packed].concat())).is_err());
    }

    #[test]
    fn values_are_right_to_three_digits_and_bounds_hold() {
        let mut histogram: WindowHistogram = empty();
        for time in [0, 1, 999, 1_860_000_000, 4000 * SECOND] {
            record(&mut histogram, time);
        }
        assert_eq!(histogram.len(), 5);
        let stall = histogram.value_at_quantile(0.8) as f64;
        assert!((stall / 1.86e9 - 1.0).abs() < 0.001, "{stall}");
        assert!((histogram.max() as f64 / 4e12 - 1.0).abs() < 0.001);
        record(&mut histogram, 1_000_000 * SECOND);
        assert_eq!(histogram.len(), 6);
    }
}
