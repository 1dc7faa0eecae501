//! What a server answers, message by message ("Command Response").

use nephoscope_drivers::mysql::status::MORE_RESULTS;
use nephoscope_drivers::mysql::{End, FULL, Fields, end, error, ok};

use super::Agreed;
use super::packets::Message;
use crate::wire::kept::Foreign;

/// The rows of a statement wait to be fetched ("`SERVER_STATUS_CURSOR_EXISTS`").
const CURSOR: u16 = 1 << 6;
/// The number of an error that is none: how far a long statement of `MariaDB`'s has come.
const PROGRESS: &str = "65535";

/// The shortest `OK_Packet`: a result that says that its columns are not described begins with a zero byte, too.
const SHORTEST_OK: usize = 7;

/// What a message comes to for the request that it answers.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Step {
    GoesOn,
    /// The client is to send a file.
    File,
    /// The reply has ended: with so many rows, returned or changed, where that is known.
    Done(Option<u64>),
    /// A statement was prepared under a number, with so many parameters.
    Prepared(u32, u16),
    /// The reply is an error of this number.
    Failed(String),
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    First,
    /// So many messages that describe something are still to come.
    Described(usize),
    DescribedEnd,
    Rows,
}

/// How far the reply to a request has come.
#[derive(Debug, Default)]
pub(super) struct Reply {
    stage: Stage,
    rows: u64,
    /// How many results have ended.
    results: u32,
    prepared: Option<(u32, u16)>,
}

impl Reply {
    /// Takes a message of one that has one result or several.
    pub(super) fn result(&mut self, message: Message<'_>, agreed: Agreed) -> Result<Step, Foreign> {
        let first = *message.body.first().ok_or(Foreign)?;
        match self.stage {
            _ if first == 0xff => return Ok(failed(message.body)),
            Stage::First => match first {
                0 if message.length >= SHORTEST_OK => {
                    let end = ok(message.body)?;
                    return Ok(self.ended(end, Some(matched(end.info).unwrap_or(end.affected))));
                }
                0xfb => return Ok(Step::File),
                _ => self.header(message.body, agreed)?,
            },
            Stage::Described(left) => self.described(left - 1, agreed),
            Stage::DescribedEnd if first == 0xfe => {
                let end = end(message.body, false)?;
                if end.status & CURSOR != 0 {
                    return Ok(self.ended(end, None));
                }
                self.stage = Stage::Rows;
            }
            Stage::DescribedEnd => return Err(Foreign),
            Stage::Rows if is_end(message, agreed) => {
                let end = end(message.body, agreed.deprecates_eof)?;
                return Ok(self.ended(end, Some(self.rows).filter(|_| end.status & CURSOR == 0)));
            }
            Stage::Rows => self.rows += 1,
        }
        Ok(Step::GoesOn)
    }

    fn header(&mut self, body: &[u8], agreed: Agreed) -> Result<(), Foreign> {
        let mut fields = Fields(body);
        let mut described = true;
        if agreed.optional_metadata {
            described = fields.u8()? != 0;
        }
        let columns = fields.number()? as usize;
        if agreed.caches_metadata {
            described = fields.u8()? != 0;
        }
        if columns == 0 {
            return Err(Foreign);
        }
        self.rows = 0;
        self.described(if described { columns } else { 0 }, agreed);
        Ok(())
    }

    fn described(&mut self, left: usize, agreed: Agreed) {
        self.stage = match left {
            0 if agreed.deprecates_eof => Stage::Rows,
            0 => Stage::DescribedEnd,
            _ => Stage::Described(left),
        };
    }

    fn ended(&mut self, end: End<'_>, rows: Option<u64>) -> Step {
        self.results += 1;
        self.stage = Stage::First;
        if end.status & MORE_RESULTS != 0 {
            return Step::GoesOn;
        }
        // Of several results none is the statement's.
        Step::Done(rows.filter(|_| self.results == 1))
    }

    /// Takes a message of one that has rows alone, or descriptions alone.
    pub(super) fn rows(message: Message<'_>, agreed: Agreed) -> Step {
        match message.body.first() {
            Some(0xff) => failed(message.body),
            _ if is_end(message, agreed) => Step::Done(None),
            _ => Step::GoesOn,
        }
    }

    /// Takes a message of one to a preparation ("`COM_STMT_PREPARE` Response").
    pub(super) fn prepared(&mut self, message: Message<'_>, agreed: Agreed) -> Result<Step, Foreign> {
        if let Stage::Described(left) = self.stage {
            self.stage = Stage::Described(left - 1);
        } else {
            let mut fields = Fields(message.body);
            match fields.u8()? {
                0 => {}
                0xff => return Ok(failed(message.body)),
                _ => return Err(Foreign),
            }
            let id = fields.u32()?;
            let (columns, places) = (fields.u16()?, fields.u16()?);
            let (_filler, _warnings) = (fields.u8()?, fields.u16()?);
            let is_described = !agreed.optional_metadata || fields.u8().is_ok_and(|all| all != 0);
            let ends = usize::from(!agreed.deprecates_eof);
            let of = |count: u16| if count > 0 { usize::from(count) + ends } else { 0 };
            self.stage = Stage::Described(if is_described { of(columns) + of(places) } else { 0 });
            self.prepared = Some((id, places));
        }
        match (&self.stage, self.prepared) {
            (Stage::Described(0), Some((id, places))) => Ok(Step::Prepared(id, places)),
            _ => Ok(Step::GoesOn),
        }
    }

    /// Takes the only message of one.
    pub(super) fn only(message: Message<'_>) -> Step {
        match message.body.first() {
            Some(0xff) => failed(message.body),
            _ => Step::Done(None),
        }
    }
}

fn failed(body: &[u8]) -> Step {
    let error = error(body);
    match error.code() {
        PROGRESS => Step::GoesOn,
        // An error of the server's without a number is an error nevertheless: ER_UNKNOWN_ERROR.
        "" => Step::Failed("1105".to_owned()),
        code => Step::Failed(code.to_owned()),
    }
}

fn is_end(message: Message<'_>, agreed: Agreed) -> bool {
    message.body.first() == Some(&0xfe) && message.length < if agreed.deprecates_eof { FULL } else { 9 }
}

/// How many rows an UPDATE has found, whatever it has changed: clients choose which of the two is counted.
fn matched(info: &[u8]) -> Option<u64> {
    const WORDS: &[u8] = b"Rows matched: ";
    let at = info.windows(WORDS.len()).take(10).position(|words| words == WORDS)?;
    let number = info[at + WORDS.len()..].split(|byte| !byte.is_ascii_digit()).next()?;
    std::str::from_utf8(number).ok()?.parse().ok()
}
