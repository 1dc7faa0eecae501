//! The messages that run a statement with its values.

use super::Prepared;
use crate::contract::driver::StatementMode;
use crate::contract::error::Error;
use crate::contract::value::{Params, Value};
use crate::postgres::{types, wire};

/// `Bind` and `Execute`, and `Parse` before them in the extended mode.
#[inline]
pub(super) fn write_bound(
    statement: &Prepared,
    mode: StatementMode,
    params: &Params,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let length_at = out.len() + statement.length_at(mode);
    out.extend_from_slice(&statement.head);
    // The formats stand before the number of values.
    let formats = out.len() - 2 - 2 * statement.params.len();
    for (place, (value, of)) in params.iter().zip(&statement.params).enumerate() {
        if value == Value::Null {
            out.extend_from_slice(&(-1_i32).to_be_bytes());
            continue;
        }
        let start = out.len();
        out.extend_from_slice(&[0; 4]);
        let binary = types::encode(*of, value, out).map_err(|why| statement.statement.misfit(place, why))?;
        let size = (out.len() - start - 4) as u32;
        out[start..start + 4].copy_from_slice(&size.to_be_bytes());
        out[formats + 2 * place + 1] = u8::from(binary);
    }
    // Bind ends where Execute begins; its length counts itself.
    let bind_end = out.len() + statement.tail.len() - wire::EXECUTE.len();
    out.extend_from_slice(&statement.tail);
    let length = (bind_end - length_at) as u32;
    out[length_at..length_at + 4].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

/// `Query`, with the values written into the text.
pub(super) fn write_simple(statement: &Prepared, params: &Params, out: &mut Vec<u8>) -> Result<(), Error> {
    out.push(b'Q');
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    let values: Vec<Value<'_>> = params.iter().collect();
    statement.statement.render(out, |param, out| {
        types::write_literal(statement.params[param], values[param], out)
            .map_err(|why| statement.statement.misfit(param, why))
    })?;
    out.push(0);
    wire::end_message(out, start);
    Ok(())
}
