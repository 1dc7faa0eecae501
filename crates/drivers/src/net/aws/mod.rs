//! What the services of AWS have in common: where one is and who asks ([`Account`]), signed requests ([`Caller`]), and
//! what their errors come to.

mod account;
mod caller;
pub(crate) mod refusal;

pub use account::credentials;
pub(crate) use account::{Account, Product};
pub use caller::Caller;
