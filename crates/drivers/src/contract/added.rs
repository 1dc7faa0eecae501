//! Statements that a connection comes to know while it is in use.

use std::rc::Rc;

use crate::contract::statement::Statement;

/// What [`crate::Connection::add`] has come to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Added {
    /// The place for [`crate::Command::Execute`].
    Ready(usize),
    /// The place for [`crate::Command::Execute`] once the preparation, which is queued, has been answered.
    Asked(usize),
    /// What is queued takes every place: it has to be sent first.
    Full,
}

/// The most statements that a connection knows beside those that it was made with.
pub(crate) const MOST_ADDED: usize = 256;

/// Which added statement stands where. Of more than [`MOST_ADDED`] the one that was used longest ago makes way; one
/// without parameters, which no driver prepares, goes before all others.
pub(crate) struct Places {
    /// The place of the first one.
    first: usize,
    statements: Vec<Rc<Statement>>,
    uses: Vec<Use>,
    /// How often a statement was asked for.
    clock: u64,
    /// When the commands began that are queued or not answered.
    batch: u64,
}

struct Use {
    last: u64,
    /// The statement did not come to be prepared, or has none of its own to keep.
    is_void: bool,
}

/// Where a statement stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// It has been there since it was added.
    Known(usize),
    /// It is new there: whatever stood there before has made way.
    New(usize),
    /// Every place is used by a command that is not answered.
    Full,
}

/// Puts what a driver knows of a statement at its place, which is taken, or the next.
pub(crate) fn put<T>(all: &mut Vec<T>, place: usize, one: T) {
    match all.get_mut(place) {
        Some(taken) => *taken = one,
        None => all.push(one),
    }
}

impl Places {
    /// The place of the first one is `first`.
    pub(crate) fn new(first: usize) -> Self {
        Self { first, statements: Vec::new(), uses: Vec::new(), clock: 0, batch: 0 }
    }

    /// The statement at a place.
    pub(crate) fn get(&self, place: usize) -> Option<&Rc<Statement>> {
        self.statements.get(place.checked_sub(self.first)?)
    }

    /// Finds a place. Where the connection is `idle`, no command uses any.
    pub(crate) fn find(&mut self, statement: &Rc<Statement>, idle: bool) -> Found {
        self.clock += 1;
        if idle {
            self.batch = self.clock;
        }
        let keeps = !statement.params().is_empty();
        if keeps && let Some(slot) = self.known(statement) {
            self.uses[slot].last = self.clock;
            return Found::Known(self.first + slot);
        }
        let Some(slot) = self.vacant() else { return Found::Full };
        let used = Use { last: self.clock, is_void: !keeps };
        if slot == self.statements.len() {
            self.statements.push(Rc::clone(statement));
            self.uses.push(used);
        } else {
            self.statements[slot] = Rc::clone(statement);
            self.uses[slot] = used;
        }
        Found::New(self.first + slot)
    }

    /// The statement at a place did not come to be prepared.
    pub(crate) fn forget(&mut self, place: usize) {
        if let Some(used) = place.checked_sub(self.first).and_then(|slot| self.uses.get_mut(slot)) {
            used.is_void = true;
        }
    }

    /// The statement is mostly the very one that is known; the same text may also have been read anew.
    fn known(&mut self, statement: &Rc<Statement>) -> Option<usize> {
        if let Some(slot) = self.statements.iter().position(|known| Rc::ptr_eq(known, statement)) {
            // Where it did not come to be prepared, it may have been since, in another place.
            return if self.uses[slot].is_void { self.same_text(statement) } else { Some(slot) };
        }
        let slot = self.same_text(statement)?;
        self.statements[slot] = Rc::clone(statement);
        Some(slot)
    }

    fn same_text(&self, statement: &Rc<Statement>) -> Option<usize> {
        let mut all = self.statements.iter().zip(&self.uses);
        all.position(|(known, used)| !used.is_void && known == statement)
    }

    fn vacant(&self) -> Option<usize> {
        let free = |(_, used): &(usize, &Use)| used.last < self.batch;
        let void = self.uses.iter().enumerate().filter(free).find(|(_, used)| used.is_void);
        if let Some((slot, _)) = void {
            return Some(slot);
        }
        if self.uses.len() < MOST_ADDED {
            return Some(self.uses.len());
        }
        self.uses.iter().enumerate().filter(free).min_by_key(|(_, used)| used.last).map(|(slot, _)| slot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn statement(number: usize) -> Rc<Statement> {
        Rc::new(Statement::new("", &format!("SELECT {number} + :a")))
    }

    #[test]
    fn a_text_without_parameters_takes_the_place_of_another() {
        let mut places = Places::new(5);
        for number in 0..3 {
            let text = Rc::new(Statement::new("", &format!("SELECT {number}")));
            assert_eq!(places.find(&text, true), Found::New(5));
        }
        assert_eq!(places.find(&statement(1), true), Found::New(5), "nothing is kept of it");
        let text = Rc::new(Statement::new("", "SELECT 0"));
        assert_eq!(places.find(&text, false), Found::New(6));
        assert_eq!(places.find(&text, false), Found::New(7), "the other is not answered");
    }

    #[test]
    fn a_statement_that_was_not_prepared_is_new_again() {
        let (mut places, one) = (Places::new(0), statement(1));
        assert_eq!(places.find(&one, true), Found::New(0));
        assert_eq!(places.find(&statement(1), true), Found::Known(0), "the same text");
        places.forget(0);
        assert_eq!(places.find(&one, true), Found::New(0));
        assert_eq!(places.find(&one, true), Found::Known(0));
    }

    #[test]
    fn places_that_are_used_are_not_given_to_others() {
        let mut places = Places::new(0);
        let all: Vec<_> = (0..MOST_ADDED).map(statement).collect();
        for (place, one) in all.iter().enumerate() {
            assert_eq!(places.find(one, place == 0), Found::New(place));
        }
        assert_eq!(places.find(&statement(MOST_ADDED), false), Found::Full);
        assert_eq!(places.find(&all[0], false), Found::Known(0));
        assert_eq!(places.find(&statement(MOST_ADDED), true), Found::New(1), "the one used longest ago");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 20, ..ProptestConfig::default() })]

        /// Against a list in the order of use.
        #[test]
        fn the_last_ones_are_known(asked in prop::collection::vec(0..MOST_ADDED + 40, 0..2000)) {
            let mut places = Places::new(3);
            let mut recent: Vec<usize> = Vec::new();
            for number in asked {
                let was = recent.iter().position(|known| *known == number);
                let found = places.find(&statement(number), true);
                prop_assert_eq!(matches!(found, Found::Known(_)), was.is_some_and(|at| recent.len() - at <= MOST_ADDED));
                let (Found::Known(place) | Found::New(place)) = found else { panic!("nothing is in use") };
                prop_assert!(**places.get(place).unwrap() == *statement(number));
                if let Some(at) = was {
                    recent.remove(at);
                }
                recent.push(number);
            }
        }
    }
}
