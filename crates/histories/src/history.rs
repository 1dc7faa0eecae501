//! Transactions as a load has run them.

/// How a transaction ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Outcome {
    /// The commit was acknowledged.
    #[default]
    Committed,
    /// Certainly without effect.
    Aborted,
    /// Its commit was sent, and no answer came.
    Unknown,
}

/// What a transaction did to an item. Values of lists and registers are unique for their key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Append to a list.
    Append {
        /// The list.
        key: u64,
        /// The element.
        value: u64,
    },
    /// Read of a whole list, which lies in the transaction's elements.
    List {
        /// The list.
        key: u64,
        /// Where it begins.
        first: u32,
        /// How many elements it has.
        length: u32,
    },
    /// Write of a register.
    Write {
        /// The register.
        key: u64,
        /// What it is now.
        value: u64,
    },
    /// Read of a register.
    Read {
        /// The register.
        key: u64,
        /// What it was; `None` before its first write.
        value: Option<u64>,
    },
    /// Addition to a counter.
    Add {
        /// The counter.
        key: u64,
        /// What is added.
        amount: i64,
    },
    /// Read of a counter.
    Count {
        /// The counter.
        key: u64,
        /// What it was.
        value: i64,
    },
    /// Transfer between accounts.
    Transfer {
        /// The account that pays.
        from: u64,
        /// The account that is paid.
        to: u64,
        /// How much.
        amount: i64,
    },
    /// Read of every account's balance; the balances lie in the transaction's elements, as two's complement.
    Balances {
        /// Where they begin.
        first: u32,
        /// How many accounts there are.
        length: u32,
    },
}

/// A transaction. Its two lists are one allocation each, and can be used again after [`Transaction::restart`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its number, by which a witness names it.
    pub number: u64,
    /// The session that ran it. A session has one transaction at a time.
    pub session: u32,
    /// When it began, in nanoseconds of the clock that all sessions share.
    pub begin: u64,
    /// When its outcome was known, on the same clock.
    pub end: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// What it did, in order. What it read counts only where it has committed.
    pub operations: Vec<Operation>,
    /// What its reads of lists and balances returned.
    pub elements: Vec<u64>,
}

impl Transaction {
    /// Empties it for the next one.
    pub fn restart(&mut self, number: u64, session: u32, begin: u64) {
        (self.number, self.session, self.begin, self.end) = (number, session, begin, begin);
        self.outcome = Outcome::Committed;
        self.operations.clear();
        self.elements.clear();
    }

    /// Adds the read of a list.
    pub fn list(&mut self, key: u64, values: &[u64]) {
        let first = self.elements.len() as u32;
        self.elements.extend_from_slice(values);
        self.operations.push(Operation::List { key, first, length: values.len() as u32 });
    }

    /// Adds the read of all balances.
    pub fn balances(&mut self, balances: &[i64]) {
        let first = self.elements.len() as u32;
        self.elements.extend(balances.iter().map(|balance| balance.cast_unsigned()));
        self.operations.push(Operation::Balances { first, length: balances.len() as u32 });
    }

    /// The elements of a read; none where the range lies outside.
    #[must_use]
    pub fn elements(&self, first: u32, length: u32) -> &[u64] {
        let first = first as usize;
        self.elements.get(first..first + length as usize).unwrap_or(&[])
    }
}
