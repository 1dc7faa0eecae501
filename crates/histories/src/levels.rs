//! Isolation levels: which anomalies each forbids, and the strongest that a history does not contradict.

use crate::check::{Count, Summary};
use crate::finding::{Anomaly, Order};

/// An isolation level, the weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    /// PL-1 of Adya, Liskov and O'Neil (2000): no dirty writes.
    ReadUncommitted,
    /// PL-2: nothing is read that is not committed.
    ReadCommitted,
    /// PL-SI: each transaction reads one snapshot, and no update of the same item is lost.
    Snapshot,
    /// PL-3, as far as items tell: reads by a predicate are not looked at.
    Serializable,
}

/// Every level, the weakest first.
pub const LEVELS: [Level; 4] =
    [Level::ReadUncommitted, Level::ReadCommitted, Level::Snapshot, Level::Serializable];

impl Level {
    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::ReadUncommitted => "read uncommitted",
            Self::ReadCommitted => "read committed",
            Self::Snapshot => "snapshot isolation",
            Self::Serializable => "serializable",
        }
    }

    /// Its name where sessions, or real time, order transactions as well.
    #[must_use]
    pub fn name_with(self, order: Order) -> &'static str {
        match (self, order) {
            (Self::Snapshot, Order::Session) => "strong session snapshot isolation",
            (Self::Snapshot, Order::RealTime) => "strong snapshot isolation",
            (Self::Serializable, Order::Session) => "strong session serializable",
            (Self::Serializable, Order::RealTime) => "strict serializable",
            _ => self.name(),
        }
    }
}

impl Anomaly {
    /// The weakest level that forbids it.
    #[must_use]
    pub fn forbidden_from(self) -> Level {
        match self {
            Self::G0 | Self::Duplicate | Self::Unwritten => Level::ReadUncommitted,
            // Reads of what is not committed may well contradict each other.
            Self::G1a | Self::G1b | Self::G1c | Self::Missing | Self::IncompatibleOrder => {
                Level::ReadCommitted
            }
            Self::LostUpdate
            | Self::GSingle
            | Self::LongFork
            | Self::GNonadjacent
            | Self::Internal
            | Self::Counter
            | Self::Total => Level::Snapshot,
            Self::G2Item => Level::Serializable,
        }
    }
}

impl Summary {
    /// The strongest level that what was found does not contradict, and the strongest order with which that holds; `None`
    /// where not even the weakest does. Orders are as far as the checker looked.
    #[must_use]
    pub fn strongest(&self, looked: Order) -> Option<(Level, Order)> {
        let allows = |level: Level, order: Order| {
            let contradicts = |count: &Count| count.order <= order && count.anomaly.forbidden_from() <= level;
            !self.counts.iter().any(contradicts)
        };
        let level = LEVELS.into_iter().rfind(|level| allows(*level, Order::None))?;
        let orders = [Order::RealTime, Order::Session, Order::None];
        let order = orders.into_iter().find(|order| *order <= looked && allows(level, *order));
        Some((level, order.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(counts: &[(Anomaly, Order)]) -> Option<&'static str> {
        let counts =
            counts.iter().map(|(anomaly, order)| Count { anomaly: *anomaly, order: *order, times: 1 });
        let summary = Summary { counts: counts.collect(), ..Summary::default() };
        summary.strongest(Order::RealTime).map(|(level, order)| level.name_with(order))
    }

    #[test]
    fn the_strongest_level_is_the_one_below_what_was_found() {
        assert_eq!(of(&[]), Some("strict serializable"));
        assert_eq!(of(&[(Anomaly::GSingle, Order::RealTime)]), Some("strong session serializable"));
        assert_eq!(of(&[(Anomaly::GSingle, Order::Session)]), Some("serializable"));
        assert_eq!(of(&[(Anomaly::G2Item, Order::None)]), Some("strong snapshot isolation"));
        assert_eq!(
            of(&[(Anomaly::G2Item, Order::None), (Anomaly::Counter, Order::RealTime)]),
            Some("strong session snapshot isolation")
        );
        assert_eq!(of(&[(Anomaly::LostUpdate, Order::None)]), Some("read committed"));
        assert_eq!(of(&[(Anomaly::G1a, Order::None)]), Some("read uncommitted"));
        assert_eq!(of(&[(Anomaly::G0, Order::None)]), None);
    }

    #[test]
    fn what_was_not_looked_for_is_not_claimed() {
        let summary = Summary::default();
        assert_eq!(summary.strongest(Order::None), Some((Level::Serializable, Order::None)));
    }
}
