//! What a proxy does to connections, as data: it can be written down, kept and sent elsewhere.

use std::num::NonZeroU64;

use nephoscope_runtime::Nanos;
use serde::{Deserialize, Serialize};

use crate::law::Law;

/// One of a connection's two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Direction {
    /// What the client sends.
    ToServer,
    /// What the server sends.
    ToClient,
}

impl Direction {
    /// The direction of a name, `to_server` or `to_client`; else a message that says so.
    pub fn from_name(name: &str) -> Result<Self, String> {
        match name {
            "to_server" => Ok(Self::ToServer),
            "to_client" => Ok(Self::ToClient),
            _ => Err(format!("{name:?} is no direction; allowed are to_server and to_client")),
        }
    }
}

/// What happens to those who connect.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Accept {
    /// They are connected to the target; if it does not take them, they are reset.
    #[default]
    Pass,
    /// Nobody listens: the kernel refuses (`ECONNREFUSED`), and resets those that were not yet taken.
    Refuse,
    /// They are taken and reset at once.
    Reset,
    /// They are taken and never answered; there is no connection to the target, then or later.
    Silent,
}

/// Bytes that get into the stream.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Garbage {
    /// After so many bytes, counted as those of [`Channel::cut_after`].
    pub after: u64,
    /// Which; in JSON hexadecimal digits.
    #[serde(with = "hexadecimal")]
    pub bytes: Vec<u8>,
}

/// What happens to the bytes of one direction.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Channel {
    /// How long they are on their way.
    pub delay: Option<Law>,
    /// How many pass in a second, one after the other, as on a slow line or to a slow reader.
    pub rate: Option<NonZeroU64>,
    /// They vanish, without a sign to either side, and so do the ends of connections: they are told when the hole is
    /// gone. What was on its way before arrives.
    pub black_hole: bool,
    /// They are kept, and delivered when this is over.
    pub hold: bool,
    /// The connection is cut, both ways, after so many bytes of this direction. They are counted from the moment at
    /// which this is set (to another value than before), or from the connection's beginning if that is later.
    pub cut_after: Option<u64>,
    /// Something gets between them, once.
    pub garbage_after: Option<Garbage>,
}

/// What a proxy does to its connections. The default is nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Faults {
    /// What happens to those who connect.
    pub accept: Accept,
    /// What happens to what clients send.
    pub to_server: Channel,
    /// What happens to what the server sends.
    pub to_client: Channel,
    /// The seed of delays that are drawn. It is a connection's for as long as it lasts.
    pub seed: u64,
}

impl Faults {
    /// Reads faults from JSON; what is left out is as in the default. The error says what is wrong, where, and what is
    /// allowed.
    pub fn from_json(json: &str) -> Result<Self, String> {
        let faults: Self = serde_json::from_str(json).map_err(|error| format!("faults: {error}"))?;
        faults.check()?;
        Ok(faults)
    }

    /// The faults of a network that is gone: every byte vanishes, in both directions.
    #[must_use]
    pub fn black_hole() -> Self {
        let hole = Channel { black_hole: true, ..Channel::default() };
        Self { to_server: hole.clone(), to_client: hole, ..Self::default() }
    }

    /// What is wrong with them, if something is that their types allow.
    pub(crate) fn check(&self) -> Result<(), String> {
        for (name, channel) in [("to_server", &self.to_server), ("to_client", &self.to_client)] {
            let law = channel.delay.map_or(Ok(()), Law::check);
            law.map_err(|error| format!("faults: {name}.delay: {error}"))?;
        }
        Ok(())
    }
}

/// Faults that are to take effect at a time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Planned {
    /// When, on the monotonic clock; `at_ns` in JSON. A time that has passed is now.
    #[serde(rename = "at_ns")]
    pub at: Nanos,
    /// What then holds.
    pub faults: Faults,
}

/// Reads a schedule from JSON, a list of `{"at_ns": …, "faults": {…}}`.
pub fn parse_schedule(json: &str) -> Result<Vec<Planned>, String> {
    let plan: Vec<Planned> = serde_json::from_str(json).map_err(|error| format!("schedule: {error}"))?;
    plan.iter().try_for_each(|planned| planned.faults.check())?;
    Ok(plan)
}

/// Bytes in JSON: hexadecimal digits, two a byte.
mod hexadecimal {
    use std::fmt::Write as _;

    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(bytes: &[u8], serializer: S) -> Result<S::Ok, S::Error> {
        let text = bytes.iter().fold(String::new(), |mut text, byte| {
            // Writing to a string does not fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        serializer.serialize_str(&text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<u8>, D::Error> {
        let text = String::deserialize(deserializer)?;
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let pair = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let bytes: Option<Vec<u8>> = text.as_bytes().chunks(2).map(pair).collect();
        bytes.ok_or_else(|| {
            D::Error::custom(format!("bytes are an even number of hexadecimal digits, not {text:?}"))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nephoscope_runtime::clock::MILLISECOND;

    #[test]
    fn json_says_everything_and_what_is_left_out_is_no_fault() {
        assert_eq!(Faults::from_json("{}"), Ok(Faults::default()));
        let text = r#"{"accept": "silent", "seed": 3,
            "to_server": {"delay": {"law": "uniform", "low_ms": 0.5, "high_ms": 2}, "rate": 100, "hold": true},
            "to_client": {"delay": {"law": "exponential", "ms": 1}, "black_hole": true, "cut_after": 9,
                          "garbage_after": {"after": 4, "bytes": "00ffA0"}}}"#;
        let faults = Faults::from_json(text).unwrap();
        let expected = Faults {
            accept: Accept::Silent,
            seed: 3,
            to_server: Channel {
                delay: Some(Law::Uniform { low: MILLISECOND / 2, high: 2 * MILLISECOND }),
                rate: NonZeroU64::new(100),
                hold: true,
                ..Channel::default()
            },
            to_client: Channel {
                delay: Some(Law::Exponential { mean: MILLISECOND }),
                black_hole: true,
                cut_after: Some(9),
                garbage_after: Some(Garbage { after: 4, bytes: vec![0, 255, 160] }),
                ..Channel::default()
            },
        };
        assert_eq!(faults, expected);
        let again = Faults::from_json(&serde_json::to_string(&faults).unwrap());
        assert_eq!(again, Ok(faults), "what is written can be read");
    }

    #[test]
    fn a_wrong_description_says_what_is_allowed() {
        let wrong = [
            (r#"{"acept": "pass"}"#, "unknown field `acept`, expected one of `accept`, `to_server`"),
            (
                r#"{"accept": "drop"}"#,
                "unknown variant `drop`, expected one of `pass`, `refuse`, `reset`, `silent`",
            ),
            (r#"{"to_server": {"latency": 1}}"#, "unknown field `latency`, expected one of `delay`, `rate`"),
            (r#"{"to_server": {"rate": 0}}"#, "expected a nonzero u64"),
            (
                r#"{"to_server": {"delay": {"law": "gauss"}}}"#,
                "expected one of `constant`, `uniform`, `exponential`",
            ),
            (
                r#"{"to_server": {"delay": {"law": "constant", "ms": -1}}}"#,
                "0 to 3600000 milliseconds, not -1",
            ),
            (r#"{"to_server": {"delay": {"law": "constant", "ms": 1, "x": 1}}}"#, "unknown field `x`"),
            (
                r#"{"to_client": {"delay": {"law": "uniform", "low_ms": 3, "high_ms": 2}}}"#,
                "to_client.delay: a uniform delay's low_ms must not be more than its high_ms: 3 is more than 2",
            ),
            (
                r#"{"to_client": {"garbage_after": {"after": 1, "bytes": "0g"}}}"#,
                "hexadecimal digits, not \"0g\"",
            ),
            (r#"{"to_client": {"garbage_after": {"after": 1, "bytes": "000"}}}"#, "an even number of"),
        ];
        for (text, part) in wrong {
            let message = Faults::from_json(text).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        let message = parse_schedule(r#"[{"at": 1, "faults": {}}]"#).unwrap_err();
        assert!(message.contains("unknown field `at`, expected `at_ns` or `faults`"), "{message}");
        assert!(Direction::from_name("up").unwrap_err().contains("to_server and to_client"));
    }
}
