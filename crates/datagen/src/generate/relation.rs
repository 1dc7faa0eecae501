//! Values that depend on other columns, of the same row or of other tables' rows.

use nephoscope_drivers::calendar::DAY;
use nephoscope_drivers::{Error, Value};

use super::Cells;
use crate::plan::{At, Family, Relation, Target, name, number};
use crate::random::{Key, Span};

impl<'d> Cells<'d> {
    #[inline(never)]
    pub(super) fn relate(
        &mut self,
        relation: &'d Relation,
        table: usize,
        row: u64,
    ) -> Result<Value<'_>, Error> {
        Ok(match relation {
            Relation::Reach { target: Target::Any { key, rows }, column } => {
                return self.eval(*column, key.draws(row).below(*rows));
            }
            Relation::Reach { target: Target::Popular { key, ranks, shuffle }, column } => {
                return self.eval(*column, shuffle.place(ranks.draw(&mut key.draws(row))));
            }
            Relation::Reach { target: Target::Owner(family), column } => {
                let parent = self.owner(family, table, row).0;
                return self.eval(*column, parent);
            }
            Relation::Copy(column) => return self.eval(*column, row),
            Relation::Line(family, start) => {
                Value::Int(start.wrapping_add_unsigned(self.owner(family, table, row).1))
            }
            Relation::Distinct { key, min, shuffle, family } => {
                let (parent, index) =
                    family.as_ref().map_or((0, row), |family| self.owner(family, table, row));
                Value::Int(min.wrapping_add_unsigned(shuffle.drawn(index, key.draws(parent))))
            }
            Relation::Count(family) => {
                let children = family.children(row);
                Value::Int((children.end - children.start).cast_signed())
            }
            Relation::Total { family, column, arithmetic, index } => {
                return self.total(family, *column, *arithmetic, *index, row);
            }
            Relation::Product { factors, arithmetic } => return self.product(factors, *arithmetic, row),
            Relation::After { column, key, micros } => self.after(*column, *key, *micros, row)?,
            Relation::Email { of, key } => return self.email(*of, *key, row),
        })
    }

    /// The parent of a row and the row's index among its children, from 0.
    #[inline]
    fn owner(&mut self, family: &Family, table: usize, row: u64) -> (u64, u64) {
        let kept = &mut self.owners[table];
        if let Some(index) = kept.index(row) {
            return (kept.parent, index);
        }
        *kept = family.owner(row);
        (kept.parent, row - kept.first)
    }

    #[inline(never)]
    fn after(&mut self, column: At, key: Key, micros: Span, row: u64) -> Result<Value<'static>, Error> {
        let start = match self.eval(column, row)? {
            Value::Timestamp(micros) => Some(micros),
            Value::Date(days) => i64::from(days).checked_mul(DAY),
            _ => return Ok(Value::Null),
        };
        let end = start.and_then(|start| start.checked_add(micros.draw(&mut key.draws(row))));
        end.map(Value::Timestamp).ok_or_else(|| Error::other("the point in time is too far off for 64 bits"))
    }

    /// An address that is unique in its column, because the row's number is the part behind the last full
    /// stop.
    #[inline(never)]
    fn email(&mut self, of: Option<At>, key: Key, row: u64) -> Result<Value<'_>, Error> {
        let mut address = std::mem::take(&mut self.spare);
        address.clear();
        let source = if let Some(column) = of {
            self.eval(column, row)?
        } else {
            self.text.clear();
            name(None, row, &mut key.draws(row), &mut self.text);
            Value::Text(&self.text)
        };
        let present = matches!(source, Value::Text(_));
        if let Value::Text(source) = source {
            local_part(source, &mut address);
            number(row.wrapping_add(1), &mut address);
            address.extend_from_slice(b"@example.com");
        }
        self.spare = std::mem::replace(&mut self.text, address);
        Ok(if present { Value::Text(&self.text) } else { Value::Null })
    }
}

/// Letters and digits in lower case, with a full stop for whatever stands between them and one at the end. At
/// most 40 characters of the source are used: a local part has at most 64.
fn local_part(source: &[u8], out: &mut Vec<u8>) {
    for byte in source.iter().take(40) {
        if byte.is_ascii_alphanumeric() {
            out.push(byte.to_ascii_lowercase());
        } else if out.last().is_some_and(|last| *last != b'.') {
            out.push(b'.');
        }
    }
    if out.last().is_some_and(|last| *last != b'.') {
        out.push(b'.');
    }
}
