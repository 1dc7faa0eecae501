//! What a server answers, packet by packet ("Command Response").

use std::num::NonZeroU64;

use super::order::Effect;
use super::prepared::Prepared;
use super::{Machine, Phase, Step, What};
use crate::contract::driver::{Reply, Want};
use crate::contract::error::Error;
use crate::contract::rows::{Rows, too_many};
use crate::mysql::errors::ends_session;
use crate::mysql::types;
use crate::mysql::wire::{self, status};

impl Machine {
    #[inline]
    pub(super) fn packet(&mut self, payload: &[u8], last: u8, rows: &mut Rows) -> Result<(), Error> {
        if payload.first() == Some(&0xff) {
            return self.failed(payload);
        }
        let packets = (payload.len() / wire::FULL) as u8;
        let first = self.sequence.map_or_else(|| self.front().map(|step| step.answer), Ok)?;
        if last != first.wrapping_add(packets) {
            return Err(wire::garbage("the order of its packets"));
        }
        self.sequence = Some(last.wrapping_add(1));
        match self.phase {
            Phase::Header => self.header(payload, rows),
            Phase::Params { left, columns } => {
                self.described_params(left - 1, columns);
                Ok(())
            }
            Phase::Definitions { left } => self.definition(payload, left - 1, rows),
            Phase::DefinitionsEnd => {
                wire::eof(payload)?;
                self.described(rows);
                Ok(())
            }
            Phase::Rows if wire::is_end(payload, self.agreed.deprecates_eof) => {
                let end = wire::end(payload, self.agreed.deprecates_eof)?;
                self.completed(self.count, None, end.status, rows);
                Ok(())
            }
            Phase::Rows => self.row(payload, rows),
        }
    }

    fn front(&self) -> Result<Step, Error> {
        self.expected.front().copied().ok_or_else(|| wire::garbage("an answer to nothing"))
    }

    /// The statement whose turn it is.
    fn current(&mut self) -> Result<&mut Prepared, Error> {
        match self.front()?.what {
            What::Execute(index) | What::Prepare(index) => Ok(&mut self.statements[index]),
            What::Control | What::Ping => Err(wire::garbage("rows of a command that has none")),
        }
    }

    #[inline]
    fn header(&mut self, payload: &[u8], rows: &mut Rows) -> Result<(), Error> {
        if let What::Prepare(index) = self.front()?.what {
            let eof = usize::from(!self.agreed.deprecates_eof);
            let statement = self.current()?;
            let (params, columns) = statement.prepared(payload)?;
            if let Err(unequal) = statement.check_places(params) {
                self.places.forget(index);
                self.error.get_or_insert(unequal);
            }
            self.described_params(if params > 0 { params + eof } else { 0 }, columns);
            return Ok(());
        }
        match payload.first() {
            Some(0) => {
                let end = wire::ok(payload)?;
                self.completed(end.affected, end.inserted_id, end.status, rows);
                return Ok(());
            }
            Some(0xfb) => return Err(Error::other("LOAD DATA LOCAL cannot be run as a statement")),
            _ => {}
        }
        let mut fields = wire::Fields(payload);
        let count = fields.number()?;
        let count = usize::try_from(count).ok().filter(|count| (1..=usize::from(u16::MAX)).contains(count));
        let count = count.ok_or_else(|| wire::garbage("a result"))?;
        self.count = 0;
        let known = self.current()?.columns.columns.as_ref().map(|columns| columns.columns.len());
        if self.agreed.caches_metadata && fields.u8()? == 0 {
            if known != Some(count) {
                return Err(wire::garbage("a result without columns"));
            }
            self.described(rows);
            return Ok(());
        }
        self.current()?.columns.begin(count);
        self.phase = Phase::Definitions { left: count };
        Ok(())
    }

    /// So many parameters are still to be described.
    fn described_params(&mut self, left: usize, columns: usize) {
        self.phase = match (left, columns) {
            (0, 0) => {
                self.answered();
                Phase::Header
            }
            (0, _) => Phase::Definitions { left: columns },
            _ => Phase::Params { left, columns },
        };
    }

    fn definition(&mut self, payload: &[u8], left: usize, rows: &mut Rows) -> Result<(), Error> {
        let deprecates_eof = self.agreed.deprecates_eof;
        let statement = self.current()?;
        statement.columns.push(payload);
        if left > 0 {
            self.phase = Phase::Definitions { left };
            return Ok(());
        }
        let as_text = statement.as_text;
        statement.columns.end(as_text)?;
        self.phase = Phase::DefinitionsEnd;
        if deprecates_eof {
            self.described(rows);
        }
        Ok(())
    }

    /// Every column is described: rows follow, unless it was a preparation.
    fn described(&mut self, rows: &mut Rows) {
        let Some(Step { what: What::Execute(index), want, .. }) = self.expected.front().copied() else {
            self.answered();
            return;
        };
        let columns = self.statements[index].columns.columns.as_ref().filter(|_| want.has_rows());
        self.result = columns.map(|columns| rows.begin(columns));
        self.phase = Phase::Rows;
    }

    #[inline]
    fn row(&mut self, payload: &[u8], rows: &mut Rows) -> Result<(), Error> {
        /// What a cell may need in the store beyond its bytes on the wire.
        const MOST_MORE: usize = 32;
        self.count += 1;
        if self.result.is_none() {
            return Ok(());
        }
        let statement = self.current()?;
        let as_text = statement.as_text;
        let Some(columns) = statement.columns.columns.as_ref() else { return Ok(()) };
        if !rows.has_room(payload.len() + MOST_MORE * columns.columns.len()) {
            // What still comes of this result is read and not kept.
            self.result = None;
            self.overflow = Some(too_many());
            return Ok(());
        }
        if as_text {
            types::push_text_row(columns, payload, rows)
        } else {
            types::push_binary_row(columns, payload, rows)
        }
    }

    /// A result has ended.
    fn completed(&mut self, affected: u64, inserted_id: Option<NonZeroU64>, flags: u16, rows: &mut Rows) {
        self.status = flags;
        let before = self.kept.take();
        self.earlier += u32::from(self.result.is_some() && before.is_some());
        let kept = self.result.take().or(before);
        self.phase = Phase::Header;
        if flags & status::MORE_RESULTS != 0 {
            self.kept = kept;
            return;
        }
        let earlier = std::mem::take(&mut self.earlier);
        self.reply = Reply { affected, result: kept, earlier, inserted_id };
        if self.expected.front().is_some_and(|step| step.want == Want::Kept) {
            rows.keep(self.reply);
        }
        if self.begin_failed && self.expected.front().is_some_and(|step| step.effect == Effect::Write) {
            self.error = self.error.take().map(Error::with_unknown_outcome);
        }
        self.answered();
    }

    /// The command whose turn it was is done.
    fn answered(&mut self) {
        self.expected.pop_front();
        self.phase = Phase::Header;
        self.sequence = None;
    }

    #[cold]
    fn failed(&mut self, payload: &[u8]) -> Result<(), Error> {
        let mut error = wire::error(payload);
        if error.code().parse().is_ok_and(ends_session) {
            return Err(error);
        }
        let step = self.front()?;
        if let What::Prepare(index) = step.what {
            error = error.context(&format!("statement {}", self.statements[index].statement.name()));
            self.places.forget(index);
        }
        self.begin_failed |= step.effect == Effect::Begin;
        // The first error is the cause; what follows in the same flush are its consequences.
        self.error.get_or_insert(error);
        self.unsettled |= step.what != What::Ping;
        self.reply = Reply::default();
        (self.result, self.kept, self.earlier) = (None, None, 0);
        self.answered();
        Ok(())
    }
}
