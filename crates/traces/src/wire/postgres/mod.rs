//! `PostgreSQL`'s protocol (manual, chapter 53 "Frontend/Backend Protocol").

mod connection;
mod described;
mod frames;
mod session;
mod statement;
mod waiting;

use nephoscope_drivers::Lexer;

use super::Protocol;
use connection::Connection;

pub(super) use described::Described;

pub(super) const PROTOCOL: Protocol = Protocol {
    schemes: &["postgresql", "postgres"],
    port: 5432,
    lexer: Lexer::POSTGRES,
    kind: ("postgresql-wire", "postgres", 1),
    connect: "psql \"host={host} port={port} sslmode=disable\"",
    follow: |session| Box::new(Connection::new(session)),
};

pub(super) const ENCRYPTED: &str = "connections that are encrypted: connect with sslmode=disable";
pub(super) const FUNCTIONS: &str = "calls of functions by the protocol";
