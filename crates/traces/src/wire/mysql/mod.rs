//! The protocol of `MySQL` and `MariaDB`.
//!
//! <https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html>,
//! <https://mariadb.com/kb/en/clientserver-protocol/>

mod connection;
mod packets;
mod parameters;
mod reply;
mod session;

use nephoscope_drivers::Lexer;
use nephoscope_drivers::mysql::capability::{CACHE_METADATA, DEPRECATE_EOF};

use super::Protocol;
use connection::Connection;

pub(super) const PROTOCOL: Protocol = Protocol {
    schemes: &["mysql", "mariadb"],
    port: 3306,
    lexer: Lexer::MYSQL,
    kind: ("mysql-wire", "mysql", 1),
    connect: "mariadb --host={host} --port={port} --skip-ssl",
    follow: |session| Box::new(Connection::new(session)),
};

pub(super) const ENCRYPTED: &str =
    "connections that are encrypted: connect with --skip-ssl, or ssl-mode=DISABLED";
pub(super) const COMPRESSED: &str = "connections that are compressed: connect without compression";
pub(super) const BULK: &str = "bulk executions (COM_STMT_BULK_EXECUTE)";

/// Capabilities of which the drivers have no use.
mod capability {
    pub(super) const COMPRESS: u32 = 1 << 5;
    pub(super) const OPTIONAL_METADATA: u32 = 1 << 25;
    pub(super) const COMPRESS_ZSTD: u32 = 1 << 26;
    pub(super) const QUERY_ATTRIBUTES: u32 = 1 << 27;
}

/// What a client and a server have agreed on, as far as it changes what they send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "each is a capability of its own, as the protocol has them"
)]
struct Agreed {
    /// `OK_Packet` ends rows.
    deprecates_eof: bool,
    /// `MariaDB`: a result says whether its columns are described.
    caches_metadata: bool,
    /// `MySQL`: the same, in another place.
    optional_metadata: bool,
    /// `MySQL`: a query has parameters of its own before its text.
    query_attributes: bool,
}

impl Agreed {
    fn of(capabilities: u32, more: u32) -> Self {
        let has = |flag| capabilities & flag != 0;
        Self {
            deprecates_eof: has(DEPRECATE_EOF),
            caches_metadata: more & CACHE_METADATA != 0,
            optional_metadata: has(capability::OPTIONAL_METADATA),
            query_attributes: has(capability::QUERY_ATTRIBUTES),
        }
    }
}
