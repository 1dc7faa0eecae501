//! Latency histograms: HdrHistogram with the bounds of METRICS, section 1.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Deserializer, Serializer as _, V2DeflateSerializer};
use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::{MICROSECOND, SECOND};

/// A histogram of one interval: small counters, for an interval has no 2^32 transactions of one length.
pub type IntervalHistogram = Histogram<u32>;

/// A histogram of any window.
pub type WindowHistogram = Histogram<u64>;

const HIGHEST: Nanos = 3600 * SECOND;
const DIGITS: u8 = 3;

/// An empty histogram of times from 1 µs to 1 h to 3 significant digits.
#[must_use]
pub fn empty<C: hdrhistogram::Counter>() -> Histogram<C> {
    Histogram::new_with_bounds(MICROSECOND, HIGHEST, DIGITS)
        .unwrap_or_else(|_| unreachable!("the bounds are constants that the library takes"))
}

/// Adds a time. What lies beyond the bounds is counted at the bound.
#[inline]
pub fn record<C: hdrhistogram::Counter>(histogram: &mut Histogram<C>, time: Nanos) {
    histogram.saturating_record(time.max(1));
}

/// A histogram in HdrHistogram's V2 compressed form, in base64: what log files of histograms hold.
#[must_use]
pub fn encode<C: hdrhistogram::Counter>(histogram: &Histogram<C>) -> String {
    let mut bytes = Vec::new();
    // Writing into a vector cannot fail, and the counts of our own histograms are in range.
    let _ = V2DeflateSerializer::new().serialize(histogram, &mut bytes);
    STANDARD.encode(bytes)
}

/// Reads what [`encode`] or another HdrHistogram library wrote; the error says what is wrong with it.
pub fn decode(text: &str) -> Result<WindowHistogram, String> {
    let bytes = STANDARD.decode(text.trim()).map_err(|error| format!("not base64: {error}"))?;
    Deserializer::new()
        .deserialize(&mut bytes.as_slice())
        .map_err(|error| format!("not a histogram: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn shards_merge_into_the_whole(times in prop::collection::vec(1..7200 * SECOND, 1..400), shards in 1..5_usize) {
            let mut whole: WindowHistogram = empty();
            let mut parts: Vec<IntervalHistogram> = (0..shards).map(|_| empty()).collect();
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
        fn no_text_breaks_the_decoder(text in "[A-Za-z0-9+/=]{0,80}") {
            let _ = decode(&text);
        }
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
