//! Loading rows by COPY (manual, section 53.2.6 "COPY Operations").
//!
//! Rows go in COPY's binary form where this driver knows that of every column, else in its text form.

use std::task::{Context, Poll, Waker};

use nephoscope_runtime::Yield;

use crate::contract::bulk::{RowEncoder, RowSource};
use crate::contract::error::Error;
use crate::contract::value::Value;
use crate::net::channel::Channel;
use crate::postgres::admin::{Replies, described_columns};
use crate::postgres::types::{self, Misfit, Type};
use crate::postgres::wire::{self, Frame};

/// Rows are sent when so many bytes of them are ready.
const CHUNK: usize = 256 * 1024;
/// The header of COPY's binary format: signature, flags, no extension (manual, COPY, "Binary Format").
const HEADER: &[u8; 19] = b"PGCOPY\n\xff\r\n\0\0\0\0\0\0\0\0\0";

/// A name as SQL takes it whatever it is.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// Loads rows and gives their number. What the server has to say it says at the end, or at once if it is an error.
pub(super) async fn copy_in(
    channel: &mut Channel,
    table: &str,
    columns: &[String],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let list = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let types = column_types(channel, &format!("SELECT {list} FROM {} LIMIT 0", quoted(table))).await?;
    let binary = !types.contains(&Type::Other);
    let format = if binary { "binary" } else { "text" };
    wire::query(channel.out(), &format!("COPY {} ({list}) FROM STDIN (FORMAT {format})", quoted(table)));
    channel.flush().await?;
    let mut replies = Replies::new(channel);
    while let Some((tag, _)) = replies.next().await? {
        if tag == b'G' {
            let mut encoder =
                Encoder { table, columns, types: &types, binary, out: Vec::new(), row: 0, cells: 0 };
            return load(&mut replies, &mut encoder, rows).await;
        }
    }
    Err(wire::garbage("the answer to COPY"))
}

/// Sends the rows, the server being ready for them.
async fn load(
    replies: &mut Replies<'_>,
    encoder: &mut Encoder<'_>,
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    if encoder.binary {
        encoder.out.extend_from_slice(HEADER);
    }
    let outcome = loop {
        let more = match rows.fill(encoder) {
            Ok(more) => more,
            Err(error) => break Err(error),
        };
        if !more && encoder.binary {
            encoder.out.extend_from_slice(&(-1_i16).to_be_bytes());
        }
        if !more || encoder.out.len() >= CHUNK {
            wire::message(replies.channel.out(), b'd', |out| out.extend_from_slice(&encoder.out));
            encoder.out.clear();
            let sent = replies.channel.flush().await;
            // Lets the runtime see what has arrived: sending alone does not.
            Yield::default().await;
            if sent.is_err() || has_failed(replies.channel)? {
                // The server has said why, and takes no more rows.
                let ended = replies.finish().await;
                return ended.and(Err(wire::garbage("the end of COPY before that of its rows")));
            }
        }
        if !more {
            break Ok(());
        }
    };
    match &outcome {
        Ok(()) => replies.channel.out().extend_from_slice(&wire::COPY_DONE),
        Err(error) => {
            wire::message(replies.channel.out(), b'f', |out| wire::put_text(out, &error.to_string()));
        }
    }
    replies.channel.flush().await?;
    let loaded = replies.finish().await;
    outcome.and(loaded)
}

/// Whether the server has ended the load before its end. Does not wait for anything.
fn has_failed(channel: &mut Channel) -> Result<bool, Error> {
    let mut cx = Context::from_waker(Waker::noop());
    let ended = matches!(channel.poll_fill(&mut cx), Poll::Ready(Ok(0) | Err(_)));
    let inbox = channel.inbox();
    while let Frame::Message(message, size) = wire::frame(inbox.bytes())? {
        if message.tag == b'E' {
            return Ok(true);
        }
        // Notices, and changes of settings: kept, they would pile up.
        inbox.consume(size);
    }
    Ok(ended)
}

/// The types of a query's columns.
async fn column_types(channel: &mut Channel, sql: &str) -> Result<Vec<Type>, Error> {
    wire::parse(channel.out(), "", sql);
    wire::describe(channel.out(), "");
    channel.out().extend_from_slice(&wire::SYNC);
    channel.flush().await?;
    let (mut replies, mut types) = (Replies::new(channel), Vec::new());
    while let Some((tag, body)) = replies.next().await? {
        if tag == b'T' {
            types = described_columns(&body)?.into_iter().map(|(_, of)| of).collect();
        }
    }
    Ok(types)
}

/// Encodes rows as COPY wants them.
struct Encoder<'a> {
    table: &'a str,
    columns: &'a [String],
    types: &'a [Type],
    /// Whether in the binary form, else in the text form.
    binary: bool,
    out: Vec<u8>,
    /// Where the present row's count of cells lies.
    row: usize,
    cells: usize,
}

impl RowEncoder for Encoder<'_> {
    #[inline]
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        if self.cells == 0 {
            self.begin_row();
        }
        let place = self.cells;
        self.cells += 1;
        let Some(of) = self.types.get(place) else {
            return Err(Error::other(format!("table {}: a row has more values than columns", self.table)));
        };
        let pushed =
            if self.binary { self.push_binary(*of, value) } else { self.push_text(place, *of, value) };
        pushed.map_err(|why| {
            let column = self.columns.get(place).map_or("?", String::as_str);
            Error::other(format!("table {}, column {column}: {why}", self.table))
        })
    }

    #[inline]
    fn end_row(&mut self) -> Result<(), Error> {
        let (got, wanted) = (std::mem::take(&mut self.cells), self.types.len());
        if got != wanted {
            return Err(Error::other(format!(
                "table {}: a row has {got} values for {wanted} columns",
                self.table
            )));
        }
        if !self.binary {
            self.out.push(b'\n');
        } else if got > 0 {
            self.out[self.row..self.row + 2].copy_from_slice(&(got as i16).to_be_bytes());
        }
        Ok(())
    }
}

impl Encoder<'_> {
    fn begin_row(&mut self) {
        if self.binary {
            self.row = self.out.len();
            self.out.extend_from_slice(&[0, 0]);
        }
    }

    fn push_binary(&mut self, of: Type, value: Value<'_>) -> Result<(), Misfit> {
        if value == Value::Null {
            self.out.extend_from_slice(&(-1_i32).to_be_bytes());
            return Ok(());
        }
        let start = self.out.len();
        self.out.extend_from_slice(&[0; 4]);
        types::encode_binary(of, value, &mut self.out)?;
        let size = (self.out.len() - start - 4) as u32;
        self.out[start..start + 4].copy_from_slice(&size.to_be_bytes());
        Ok(())
    }

    fn push_text(&mut self, place: usize, of: Type, value: Value<'_>) -> Result<(), Misfit> {
        if place > 0 {
            self.out.push(b'\t');
        }
        types::write_copy_text(of, value, &mut self.out)
    }
}
