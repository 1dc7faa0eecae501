//! Numbers of the protocol: capabilities, flags of the status, commands.

/// Capabilities of a client or a server ("Capabilities Flags").
pub mod capability {
    /// A server of MySQL's own family; one of MariaDB's leaves it out, and has more flags elsewhere.
    pub(crate) const MYSQL: u32 = 1;
    pub(crate) const FOUND_ROWS: u32 = 1 << 1;
    pub(crate) const LONG_FLAG: u32 = 1 << 2;
    /// The client names a database in its answer to the greeting.
    pub const CONNECT_WITH_DB: u32 = 1 << 3;
    pub(crate) const LOCAL_FILES: u32 = 1 << 7;
    /// The protocol as it is since MySQL 4.1.
    pub const PROTOCOL_41: u32 = 1 << 9;
    /// TLS.
    pub const SSL: u32 = 1 << 11;
    pub(crate) const TRANSACTIONS: u32 = 1 << 13;
    /// What proves a user has its length before it, in one byte.
    pub const SECURE_CONNECTION: u32 = 1 << 15;
    pub(crate) const MULTI_STATEMENTS: u32 = 1 << 16;
    pub(crate) const MULTI_RESULTS: u32 = 1 << 17;
    pub(crate) const PS_MULTI_RESULTS: u32 = 1 << 18;
    pub(crate) const PLUGIN_AUTH: u32 = 1 << 19;
    pub(crate) const CONNECT_ATTRS: u32 = 1 << 20;
    /// The same, with a length of any size.
    pub const PLUGIN_AUTH_LENENC_DATA: u32 = 1 << 21;
    /// `OK_Packet` takes the place of `EOF_Packet` at the end of rows.
    pub const DEPRECATE_EOF: u32 = 1 << 24;
    /// MariaDB, in the second set of flags: unchanged columns of a prepared statement are not described again.
    pub const CACHE_METADATA: u32 = 1 << 4;
}

/// Flags of a server's status ("`SERVER_STATUS_flags_enum`").
pub mod status {
    pub(crate) const IN_TRANSACTION: u16 = 1;
    /// Another result follows.
    pub const MORE_RESULTS: u16 = 1 << 3;
}

/// Commands ("Command Phase").
pub mod command {
    /// The connection ends.
    pub const QUIT: u8 = 0x01;
    /// A statement as text.
    pub const QUERY: u8 = 0x03;
    /// Is the server there?
    pub const PING: u8 = 0x0e;
    /// A statement is prepared.
    pub const PREPARE: u8 = 0x16;
    /// A prepared statement is executed.
    pub const EXECUTE: u8 = 0x17;
    /// A prepared statement is forgotten; there is no reply.
    pub const CLOSE: u8 = 0x19;
}
