//! Responses, read from bytes as they arrive.

use httparse::{EMPTY_HEADER, Status, parse_chunk_size};
use nephoscope_runtime::Inbox;

use crate::contract::error::Error;
use crate::net::http::request::Method;

/// The most headers of a response.
const MOST_HEADERS: usize = 128;
/// The longest line before a chunk, and the longest before the end of the chunks.
const LONGEST_CHUNK_LINE: usize = 4096;
/// How large a body is believed to be before it has come.
const BELIEVED: usize = 1 << 20;

/// How much of a response is read; one that is larger is an error.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most bytes of the status line and the headers, and of the trailers.
    pub head: usize,
    /// The most bytes of the body.
    pub body: usize,
}

impl Default for Limits {
    /// 64 KiB of headers, 64 MiB of body.
    fn default() -> Self {
        Self { head: 64 << 10, body: 64 << 20 }
    }
}

/// The headers of a response, in their order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Headers {
    /// Names and values, one behind the other.
    text: String,
    /// Where each name ends, and where its value.
    ends: Vec<(usize, usize)>,
}

impl Headers {
    /// The first value of a name, whose case does not matter.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&str> {
        self.all(name).next()
    }

    /// All values of a name, whose case does not matter.
    pub fn all(&self, name: &str) -> impl Iterator<Item = &str> {
        let mut start = 0;
        self.ends.iter().filter_map(move |(end, next)| {
            let known = &self.text[start..*end];
            start = *next;
            known.eq_ignore_ascii_case(name).then(|| &self.text[*end..*next])
        })
    }

    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, name: &str, value: &[u8]) {
        self.text.push_str(name);
        let end = self.text.len();
        self.text.push_str(&String::from_utf8_lossy(value));
        self.ends.push((end, self.text.len()));
    }

    /// Whether a list, such as that of `Connection`, holds a word.
    fn lists(&self, name: &str, word: &str) -> bool {
        self.all(name).flat_map(|value| value.split(',')).any(|one| one.trim().eq_ignore_ascii_case(word))
    }
}

/// A response.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Response {
    /// 200 and so on; never one of the 1xx, which are passed over.
    pub status: u16,
    /// Its headers.
    pub headers: Headers,
    /// Its body, without the marks of chunks.
    pub body: Vec<u8>,
    /// Whether the connection can be used again.
    pub keep_alive: bool,
}

/// What of the response is expected next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Expect {
    Head,
    /// So many bytes of body.
    Body(usize),
    /// The line before a chunk.
    ChunkLine,
    /// So many bytes of a chunk, and the end of its line.
    Chunk(usize),
    /// The end of a chunk's line.
    ChunkEnd,
    /// Header lines after the last chunk; so many bytes have been read.
    Trailers(usize),
    /// All until the server closes the connection.
    UntilClose,
    /// Nothing: it is whole.
    Nothing,
}

/// Reads one response after the other. [`Reader::begin`] says which request the next one answers.
#[derive(Debug)]
pub struct Reader {
    limits: Limits,
    method: Method,
    expect: Expect,
    response: Response,
}

impl Reader {
    /// A reader that waits for nothing yet.
    #[must_use]
    pub fn new(limits: Limits) -> Self {
        Self { limits, method: Method::Get, expect: Expect::Nothing, response: Response::default() }
    }

    /// The next response answers a request of this method.
    pub fn begin(&mut self, method: Method) {
        self.method = method;
        self.expect = Expect::Head;
        self.response.headers.clear();
        self.response.body.clear();
    }

    /// Uses up what has arrived; says whether the response is whole, which then is [`Reader::response`]. What follows it
    /// stays in the inbox.
    ///
    /// An error means that the connection cannot be used any more.
    pub fn feed(&mut self, inbox: &mut Inbox) -> Result<bool, Error> {
        while self.expect != Expect::Nothing {
            if !self.step(inbox)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// The server has closed the connection: says whether the response ends by that.
    pub fn end(&mut self) -> bool {
        let ends = self.expect == Expect::UntilClose;
        self.expect = Expect::Nothing;
        ends
    }

    /// The response, as far as it has been read. Its memory serves the next one.
    #[must_use]
    pub fn response(&self) -> &Response {
        &self.response
    }

    /// Gives the response away.
    pub fn take_response(&mut self) -> Response {
        std::mem::take(&mut self.response)
    }

    /// Whether anything of the response has been read.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.expect != Expect::Head
    }

    /// Whether it got on: else more bytes are needed.
    fn step(&mut self, inbox: &mut Inbox) -> Result<bool, Error> {
        match self.expect {
            Expect::Head => self.head(inbox),
            Expect::Body(left) => {
                let left = left - self.take(inbox, left)?;
                self.expect = if left == 0 { Expect::Nothing } else { Expect::Body(left) };
                Ok(left == 0)
            }
            Expect::ChunkLine => self.chunk_line(inbox),
            Expect::Chunk(left) => {
                let left = left - self.take(inbox, left)?;
                self.expect = if left == 0 { Expect::ChunkEnd } else { Expect::Chunk(left) };
                Ok(left == 0)
            }
            Expect::ChunkEnd => match inbox.bytes() {
                [b'\r', b'\n', ..] => {
                    inbox.consume(2);
                    self.expect = Expect::ChunkLine;
                    Ok(true)
                }
                [] | [b'\r'] => Ok(false),
                _ => Err(garbage("a chunk is longer than it said")),
            },
            Expect::Trailers(read) => self.trailer(inbox, read),
            Expect::UntilClose => {
                let all = inbox.bytes().len();
                self.take(inbox, all)?;
                Ok(false)
            }
            Expect::Nothing => Ok(true),
        }
    }

    fn head(&mut self, inbox: &mut Inbox) -> Result<bool, Error> {
        let mut headers = [EMPTY_HEADER; MOST_HEADERS];
        let mut parsed = httparse::Response::new(&mut headers);
        let bytes = inbox.bytes();
        let within = &bytes[..bytes.len().min(self.limits.head)];
        let length = match parsed.parse(within).map_err(|error| garbage(&error.to_string()))? {
            Status::Complete(length) => length,
            Status::Partial if within.len() < bytes.len() || within.len() == self.limits.head => {
                return Err(garbage(&format!("the headers are longer than {} bytes", self.limits.head)));
            }
            Status::Partial => return Ok(false),
        };
        let headers = &mut self.response.headers;
        headers.clear();
        parsed.headers.iter().for_each(|header| headers.push(header.name, header.value));
        let (status, version) = (parsed.code.unwrap_or(0), parsed.version.unwrap_or(0));
        inbox.consume(length);
        match status {
            // Switches to a protocol that nobody asked for.
            101 => return Err(garbage("status 101 switches to another protocol")),
            // Informational; the response itself follows.
            100..200 => return Ok(true),
            200..600 => {}
            _ => return Err(garbage(&format!("there is no status {status}"))),
        }
        self.response.status = status;
        self.response.keep_alive = if version == 0 {
            headers.lists("connection", "keep-alive")
        } else {
            !headers.lists("connection", "close")
        };
        self.expect = self.body_of(status)?;
        Ok(true)
    }

    /// How long the body is: RFC 9112, section 6.3.
    fn body_of(&mut self, status: u16) -> Result<Expect, Error> {
        if self.method == Method::Head || matches!(status, 204 | 304) {
            return Ok(Expect::Nothing);
        }
        let headers = &self.response.headers;
        let length = content_length(headers)?;
        if let Some(coding) = headers.get("transfer-encoding") {
            if !coding.trim().eq_ignore_ascii_case("chunked")
                || headers.all("transfer-encoding").count() > 1
                || length.is_some()
            {
                return Err(garbage(
                    "a transfer-encoding is read that is \"chunked\" alone, without a length",
                ));
            }
            return Ok(Expect::ChunkLine);
        }
        match length {
            None => {
                self.response.keep_alive = false;
                Ok(Expect::UntilClose)
            }
            Some(0) => Ok(Expect::Nothing),
            Some(length) => {
                self.within(length)?;
                self.response.body.reserve_exact(length.min(BELIEVED));
                Ok(Expect::Body(length))
            }
        }
    }

    /// The line before a chunk: its length, and what it may say of itself.
    fn chunk_line(&mut self, inbox: &mut Inbox) -> Result<bool, Error> {
        let bytes = inbox.bytes();
        let within = &bytes[..bytes.len().min(LONGEST_CHUNK_LINE)];
        match parse_chunk_size(within) {
            Ok(Status::Complete((line, length))) => {
                // On 32 bits such a length is beyond every limit as well.
                let length = usize::try_from(length).unwrap_or(usize::MAX);
                self.within(length)?;
                inbox.consume(line);
                self.expect = if length == 0 { Expect::Trailers(0) } else { Expect::Chunk(length) };
                Ok(true)
            }
            Ok(Status::Partial) if within.len() < LONGEST_CHUNK_LINE => Ok(false),
            _ => Err(garbage("the line before a chunk has no length")),
        }
    }

    /// A header line after the last chunk; nobody needs what it says.
    fn trailer(&mut self, inbox: &mut Inbox, read: usize) -> Result<bool, Error> {
        let bytes = inbox.bytes();
        let line = bytes.iter().position(|byte| *byte == b'\n').map(|end| end + 1);
        if read + line.unwrap_or(bytes.len()) > self.limits.head {
            return Err(garbage(&format!("the trailers are longer than {} bytes", self.limits.head)));
        }
        let Some(line) = line else { return Ok(false) };
        let empty = matches!(&bytes[..line], b"\r\n" | b"\n");
        inbox.consume(line);
        self.expect = if empty { Expect::Nothing } else { Expect::Trailers(read + line) };
        Ok(true)
    }

    /// Moves at most so many bytes into the body; gives how many.
    fn take(&mut self, inbox: &mut Inbox, most: usize) -> Result<usize, Error> {
        let count = inbox.bytes().len().min(most);
        self.within(count)?;
        self.response.body.extend_from_slice(&inbox.bytes()[..count]);
        inbox.consume(count);
        Ok(count)
    }

    /// Whether so many bytes more are within the limit.
    fn within(&self, more: usize) -> Result<(), Error> {
        if more > self.limits.body - self.response.body.len() {
            return Err(garbage(&format!("the body is longer than {} bytes", self.limits.body)));
        }
        Ok(())
    }
}

fn content_length(headers: &Headers) -> Result<Option<usize>, Error> {
    let mut found = None;
    for value in headers.all("content-length").flat_map(|value| value.split(',')).map(str::trim) {
        let length = value.parse().ok().filter(|_| value.bytes().all(|byte| byte.is_ascii_digit()));
        match (length, found) {
            (None, _) => return Err(garbage("a content-length is no number")),
            (Some(length), Some(other)) if length != other => {
                return Err(garbage("there are two content-lengths that differ"));
            }
            (length, _) => found = length,
        }
    }
    Ok(found)
}

fn garbage(what: &str) -> Error {
    Error::connection_lost(format!("the server's answer is not HTTP/1.1 as it is read here: {what}"))
}

#[cfg(test)]
#[path = "response/tests.rs"]
mod tests;
