//! What a replica counts.

use std::sync::atomic::{AtomicU64, Ordering};

macro_rules! counters {
    ($($(#[doc = $doc:literal])+ $name:ident,)+) => {
        /// A replica's counters since it was started.
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
        pub struct Statistics {
            $($(#[doc = $doc])+ pub $name: u64,)+
        }

        /// The same while they are counted; read from any thread.
        #[derive(Debug, Default)]
        pub(crate) struct Counters {
            $(pub(crate) $name: AtomicU64,)+
        }

        impl Counters {
            pub(crate) fn read(&self) -> Statistics {
                Statistics { $($name: self.$name.load(Ordering::Relaxed),)+ }
            }
        }

        impl Statistics {
            /// As the protocol has them.
            pub(crate) fn write(&self, out: &mut Vec<u8>) {
                $(out.extend_from_slice(&self.$name.to_le_bytes());)+
            }

            /// Reads what a replica sent; one of another version may have fewer, which are 0, or more, which are left
            /// out.
            #[must_use]
            pub fn of(bytes: &[u8]) -> Self {
                let mut numbers = bytes.chunks_exact(8).map(|number| {
                    number.first_chunk().map_or(0, |number| u64::from_le_bytes(*number))
                });
                Self { $($name: numbers.next().unwrap_or(0),)+ }
            }
        }
    };
}

counters! {
    /// Records that were added, those that a discard makes among them.
    appends,
    /// Bytes of those records.
    appended_bytes,
    /// Reads that were answered.
    reads,
    /// Bytes that were read.
    read_bytes,
    /// Reads that had to wait for a record.
    waited,
    /// Records that reads had to apply to images.
    applied,
    /// The most records that one read had to apply.
    longest_chain,
    /// Images that were made of pages and their chains in the background.
    consolidations,
    /// Records that those took up.
    consolidated,
    /// Requests that were refused.
    refused,
    /// Bytes of images and records in memory.
    held,
    /// Connections that were taken.
    connections,
}

/// Adds to a counter.
pub(crate) fn add(counter: &AtomicU64, more: u64) {
    counter.fetch_add(more, Ordering::Relaxed);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_come_back() {
        let counters = Counters::default();
        add(&counters.appends, 1);
        add(&counters.connections, u64::MAX);
        let mut bytes = Vec::new();
        counters.read().write(&mut bytes);
        assert_eq!(Statistics::of(&bytes), counters.read());
        assert_eq!(Statistics::of(&bytes[..8]), Statistics { appends: 1, ..Statistics::default() });
    }
}
