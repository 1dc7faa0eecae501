//! Dates and times as workload files write them (ISO 8601), with messages for their authors.

use nephoscope_drivers::calendar;

/// Microseconds in a second.
pub(crate) const SECOND: i64 = 1_000_000;

/// Days since 1970-01-01 of a date `YYYY-MM-DD`.
pub(crate) fn date(text: &str) -> Result<i32, String> {
    let days = calendar::parse_date(text).and_then(|days| i32::try_from(days).ok());
    days.ok_or_else(|| format!("{text:?} is not a date such as 2024-02-29"))
}

/// Microseconds since 1970-01-01 00:00 UTC of a date, or of a date and a time of day.
pub(crate) fn timestamp(text: &str) -> Result<i64, String> {
    calendar::parse_timestamp(text).ok_or_else(|| {
        format!("{text:?} is not a timestamp such as 2024-02-29, 2024-02-29 18:30 or 2024-02-29T18:30:05.25Z")
    })
}
