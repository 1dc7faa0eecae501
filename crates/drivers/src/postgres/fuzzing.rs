//! What the fuzz targets in `fuzz/` call, here because they need what is private; the crate's tests replay the seeds.
//!
//! A target takes any bytes and panics where a promise is broken.

pub(super) mod conversation;
mod set_up;
#[cfg(test)]
mod tests;

pub use super::config::fuzzing::settings;
pub use super::types::fuzzing::values;
use crate::contract::driver::StatementMode;

/// What a server sends: in the query phase (`S`, `E`, `P`: the statement mode; then a byte that says how the bytes
/// are cut) or before it (`L`, then a byte that says what lies under the connection).
///
/// # Panics
/// If the outcome depends on how the bytes are cut, if a claimed length costs memory, or if a password is given away.
pub fn protocol(data: &[u8]) {
    let Some(([phase, choice], bytes)) = data.split_first_chunk::<2>() else { return };
    match phase {
        b'S' => conversation::check(StatementMode::Simple, *choice, bytes),
        b'E' => conversation::check(StatementMode::Extended, *choice, bytes),
        b'P' => conversation::check(StatementMode::Prepared, *choice, bytes),
        b'L' => set_up::check(*choice, bytes),
        _ => {}
    }
}
