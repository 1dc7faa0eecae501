//! Prepared statements, and the values that they are executed with.

use std::collections::BTreeMap;

use nephoscope_drivers::mysql::{Fields, literal, text_literal};
use nephoscope_drivers::{Lexer, Piece};

use super::Agreed;
use crate::logs::TOO_LONG;
use crate::reader::LONGEST;
use crate::wire::kept::{Foreign, Sizeable, Text, length};
use crate::wire::{NOT_READ, TYPES};

/// The flag of an execution that says how many parameters it has.
const PARAMETER_COUNT: u8 = 8;

#[derive(Debug)]
pub(super) struct Prepared {
    pub(super) text: Text,
    /// How many parameters it has.
    places: usize,
    /// Their types, as its last execution that gave any has them.
    types: Vec<[u8; 2]>,
    /// Values that were sent by themselves.
    long: BTreeMap<u16, Vec<u8>>,
}

impl Sizeable for Prepared {
    fn size(&self) -> usize {
        let long: usize = self.long.values().map(|value| value.len() + size_of::<Vec<u8>>()).sum();
        size_of::<Self>() + length(&self.text) + size_of_val(&*self.types) + long
    }
}

impl Prepared {
    pub(super) fn new(text: Text, places: u16) -> Self {
        Self { text, places: places.into(), types: Vec::new(), long: BTreeMap::new() }
    }

    /// Takes a piece of a value that is sent by itself.
    pub(super) fn add_long(&mut self, place: u16, piece: &[u8]) {
        self.long.entry(place).or_default().extend_from_slice(piece);
    }

    /// Forgets values that were sent by themselves.
    pub(super) fn reset(&mut self) {
        self.long.clear();
    }

    /// The text of an execution, with its values in their places; or why there is none. `body` is what stands behind the
    /// statement's number.
    pub(super) fn executed(&mut self, body: &[u8], agreed: Agreed) -> Text {
        let values = self.values(Fields(body), agreed).unwrap_or(Err(NOT_READ))?;
        let text = self.text.as_ref().map_err(|why| *why)?;
        let size: usize = values.iter().map(String::len).sum();
        if text.len() + size > LONGEST {
            return Err(TOO_LONG);
        }
        with_values(text, &values).map(Into::into).ok_or(NOT_READ)
    }

    fn values(
        &mut self,
        mut fields: Fields<'_>,
        agreed: Agreed,
    ) -> Result<Result<Vec<String>, &'static str>, Foreign> {
        let flags = fields.u8()?;
        let _iterations = fields.u32()?;
        let has_count = agreed.query_attributes && flags & PARAMETER_COUNT != 0;
        let count = if has_count { fields.number()? as usize } else { self.places };
        let nulls = fields.bytes(count.div_ceil(8))?;
        if count > 0 && fields.u8()? == 1 {
            self.types = types(&mut fields, count, agreed.query_attributes)?;
        }
        let mut values = Vec::new();
        for place in 0..self.places {
            let long = u16::try_from(place).ok().and_then(|place| self.long.get(&place));
            let is_null = nulls.get(place / 8).is_some_and(|bits| bits >> (place % 8) & 1 == 1);
            values.push(match (long, self.types.get(place)) {
                (Some(long), _) => text_literal(long),
                _ if is_null => "NULL".to_owned(),
                (None, Some(kind)) => match literal(*kind, &mut fields) {
                    Some(shown) => shown,
                    None => return Ok(Err(TYPES)),
                },
                (None, None) => return Ok(Err(TYPES)),
            });
        }
        Ok(Ok(values))
    }
}

/// The types of parameters, each with its name behind it where there are names.
fn types(fields: &mut Fields<'_>, count: usize, have_names: bool) -> Result<Vec<[u8; 2]>, Foreign> {
    let mut types = Vec::new();
    for _ in 0..count {
        types.push(fields.take()?);
        if have_names {
            fields.string()?;
        }
    }
    Ok(types)
}

/// The text of a query, behind the parameters that it may have for itself ("`COM_QUERY`").
pub(super) fn query(body: &[u8], agreed: Agreed) -> Result<&[u8], Foreign> {
    let mut fields = Fields(body);
    if agreed.query_attributes {
        let count = fields.number()? as usize;
        let _sets = fields.number()?;
        if count > 0 {
            let nulls = fields.bytes(count.div_ceil(8))?;
            let _bound = fields.u8()?;
            for (place, kind) in types(&mut fields, count, true)?.into_iter().enumerate() {
                if nulls[place / 8] >> (place % 8) & 1 == 0 {
                    literal(kind, &mut fields).ok_or(Foreign)?;
                }
            }
        }
    }
    Ok(fields.0)
}

/// A text with values in the places of its question marks, if there are as many.
fn with_values(text: &str, values: &[String]) -> Option<String> {
    let mut out = String::with_capacity(text.len() + values.iter().map(String::len).sum::<usize>());
    let (mut rest, mut values) = (text, values.iter());
    while let Some(first) = rest.chars().next() {
        // What stands in a comment that is executed is none to the server.
        let piece = Lexer::MYSQL.piece(rest).filter(|(piece, _)| {
            *piece == Piece::Quoted || !(rest.starts_with("/*!") || rest.starts_with("/*M!"))
        });
        let size = piece.map_or(first.len_utf8(), |(_, size)| size);
        if piece.is_none() && first == '?' {
            out.push_str(values.next()?);
        } else {
            out.push_str(&rest[..size]);
        }
        rest = &rest[size..];
    }
    values.next().is_none().then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_stand_where_the_question_marks_stood() {
        let filled = |text: &str, values: &[&str]| {
            with_values(text, &values.iter().map(|value| (*value).to_owned()).collect::<Vec<_>>())
        };
        let text = "SELECT '?', \"?''?\", `?`, ? /* ? */ /*! + ? */ -- ?\n, ? # ?";
        let shown = "SELECT '?', \"?''?\", `?`, 1 /* ? */ /*! + 2 */ -- ?\n, 'é' # ?";
        assert_eq!(filled(text, &["1", "2", "'é'"]).as_deref(), Some(shown));
        assert_eq!(filled("?", &[]), None);
        assert_eq!(filled("?", &["1", "2"]), None);
        assert_eq!(filled("", &[]).as_deref(), Some(""));
    }
}
