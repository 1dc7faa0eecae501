//! Before the query phase: authentication, descriptions, the rows of the blocking connection.

use crate::net::secret::Password;
use crate::postgres::admin;
use crate::postgres::auth::{Authentication, Progress, Transport};
use crate::postgres::config::ChannelBinding;
use crate::postgres::machine::described_params;
use crate::postgres::wire::{self, Frame, Message};

const PASSWORD: &[u8] = b"Kq7Zx9 geheim";
/// What stands in a seed for the nonce that the client has drawn.
const NONCE: &[u8] = b"{nonce}";

pub(super) fn check(choice: u8, bytes: &[u8]) {
    let mut client = Client::new(choice);
    let mut rest = bytes;
    while let Ok(Frame::Message(message, size)) = wire::frame(rest) {
        if message.tag == b'R' {
            client.authenticate(message.body);
        } else {
            describe(message);
        }
        rest = &rest[size..];
    }
}

struct Client {
    authentication: Authentication,
    binding: ChannelBinding,
    plain: bool,
    out: Vec<u8>,
    scram: bool,
    failed: bool,
}

impl Client {
    fn new(choice: u8) -> Self {
        let (end_point, plain) = (choice & 0b10 == 0, choice & 0b1100 == 0);
        let transport = match choice & 0b1100 {
            0 => Transport::Plain,
            0b100 => Transport::Unix,
            _ => Transport::Tls { end_point: end_point.then(|| vec![7; 32]) },
        };
        let binding = match choice & 0b11_0000 {
            0 => ChannelBinding::Prefer,
            0b1_0000 => ChannelBinding::Require,
            _ => ChannelBinding::Disable,
        };
        let password = Password::new(PASSWORD);
        let password = (choice & 1 == 0).then_some(&password);
        let authentication = Authentication::new("user", password, binding, transport);
        Self { authentication, binding, plain, out: Vec::new(), scram: false, failed: false }
    }

    /// Answers an Authentication message and checks what the answer gives away.
    fn authenticate(&mut self, body: &[u8]) {
        let sent = self.out.len();
        let outcome = self.authentication.receive(&self.with_nonce(body), &mut self.out);
        assert!(!(self.failed && outcome.is_ok()), "an error is final");
        let holds = |bytes: &[u8]| bytes.windows(PASSWORD.len()).any(|window| window == PASSWORD);
        assert!(!(self.plain && holds(&self.out)), "the password in clear text on an open line");
        match outcome {
            Ok(Progress::Done) => {
                assert!(!self.scram, "a server that has proved nothing was believed");
                assert!(self.binding != ChannelBinding::Require, "let in without channel binding");
                self.failed = true;
            }
            Ok(Progress::Pending) => self.scram |= body.starts_with(&[0, 0, 0, 10]),
            Err(error) => {
                assert!(!holds(error.to_string().as_bytes()), "the error tells the password");
                assert!(self.out.len() == sent, "an answer to what was refused");
                self.failed = true;
            }
        }
    }

    /// The body with the client's own nonce where the seed asks for it: else no exchange would get beyond it.
    fn with_nonce(&self, body: &[u8]) -> Vec<u8> {
        let place = body.windows(NONCE.len()).position(|window| window == NONCE);
        let nonce = self.out.windows(2).rposition(|window| window == b"r=").map(|at| &self.out[at + 2..]);
        match (place, nonce) {
            (Some(at), Some(nonce)) => [&body[..at], nonce, &body[at + NONCE.len()..]].concat(),
            _ => body.to_vec(),
        }
    }
}

/// Reads the other messages of the set-up. What is read is never more than what came.
fn describe(message: Message<'_>) {
    let size = message.body.len();
    match message.tag {
        b'T' => assert!(admin::described_columns(message.body).map_or(0, |columns| columns.len()) <= size),
        b't' => assert!(described_params(message.body).map_or(0, |params| params.len()) <= size),
        b'D' => {
            let cells = admin::text_row(message.body).unwrap_or_default();
            // What is not UTF-8 grows to three bytes for one.
            assert!(cells.iter().flatten().map(String::len).sum::<usize>() <= 3 * size);
        }
        b'E' | b'N' => {
            // Besides: ": " and " ()", and three words for what was cut.
            let told = wire::error(message.body).to_string().len();
            assert!(told <= 3 * size + 5 && told <= 3 * wire::LONGEST_TOLD);
        }
        b'C' => {
            let _ = wire::affected(message.body);
        }
        _ => {}
    }
}
