//! What every protocol's messages need: room for those that are on their way, and the limits of a server's texts.

use nephoscope_runtime::Inbox;

/// What is there of a value or a message.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Part<T> {
    Whole(T),
    /// It has so many bytes at least.
    Partial(usize),
}

/// What stands in place of the rest.
pub(crate) const CUT: &str = "… (cut)";
/// How large a message may claim to be at its beginning.
const BELIEVED: usize = 64 * 1024;

/// Makes room for a message of which a part is there. A claim to be large is believed only as far as it has come
/// true: a header alone costs no memory.
pub(crate) fn make_room(inbox: &mut Inbox, size: usize) {
    let received = inbox.bytes().len();
    inbox.expect(size.min(2 * received + BELIEVED));
}

/// A server's text: what is not UTF-8 is replaced, and what is too long cut.
pub(crate) fn shown(text: &[u8], longest: usize) -> String {
    if text.len() <= longest {
        return String::from_utf8_lossy(text).into_owned();
    }
    // Not within a character.
    let end = (longest - 3..=longest).rev().find(|end| text[*end] & 0xc0 != 0x80).unwrap_or(longest);
    String::from_utf8_lossy(&text[..end]).into_owned() + CUT
}
