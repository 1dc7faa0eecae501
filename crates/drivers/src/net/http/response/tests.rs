//! Responses: whole, in pieces, and such as nobody should send.

use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { head: 1000, body: 1000 };

/// What comes of bytes that arrive in pieces of a length, and what is left; then the server closes.
fn read(bytes: &[u8], method: Method, piece: usize) -> Result<(Option<Response>, Vec<u8>), Error> {
    let (mut reader, mut inbox) = (Reader::new(LIMITS), Inbox::default());
    reader.begin(method);
    let mut arrived = 0;
    for piece in bytes.chunks(piece) {
        inbox.extend(piece);
        arrived += piece.len();
        if reader.feed(&mut inbox)? {
            return Ok((Some(reader.take_response()), [inbox.bytes(), &bytes[arrived..]].concat()));
        }
    }
    Ok((reader.end().then(|| reader.take_response()), inbox.bytes().to_vec()))
}

fn whole(text: &str) -> Response {
    let (response, rest) = read(text.as_bytes(), Method::Get, text.len()).unwrap();
    assert_eq!(rest, b"");
    response.unwrap()
}

fn refused(text: &str) -> String {
    read(text.as_bytes(), Method::Get, text.len()).unwrap_err().message().to_owned()
}

#[test]
fn a_body_has_the_length_that_is_said() {
    let response = whole("HTTP/1.1 200 OK\r\nContent-Length: 5\r\nETag: \"x\"\r\n\r\nhello");
    assert_eq!((response.status, &*response.body, response.keep_alive), (200, &b"hello"[..], true));
    assert_eq!((response.headers.get("etag"), response.headers.get("e")), (Some("\"x\""), None));
    // Twice the same is once.
    assert_eq!(whole("HTTP/1.1 200 OK\r\nContent-Length: 1, 1\r\nContent-Length: 1\r\n\r\nx").body, b"x");
    assert_eq!(whole("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n").body, b"");
}

#[test]
fn chunks_are_joined_and_trailers_passed_over() {
    let head = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
    assert_eq!(whole(&format!("{head}3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n")).body, b"abc0123456789");
    assert_eq!(whole(&format!("{head}1\r\nx\r\n0\r\nA: b\r\nC: d\r\n\r\n")).body, b"x");
    assert!(refused(&format!("{head}1\r\nxy\r\n")).contains("longer than it said"));
    assert!(refused(&format!("{head}x\r\n")).contains("no length"));
    assert!(refused(&format!("{head}ffffffffffffffff\r\n")).contains("1000 bytes"));
    assert!(refused(&format!("{head}0\r\n{}", "a: b\r\n".repeat(200))).contains("trailers"));
}

#[test]
fn some_responses_have_no_body_whatever_they_say() {
    let head = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n";
    let (response, rest) = read(head.as_bytes(), Method::Head, 100).unwrap();
    assert_eq!((response.unwrap().body, rest), (vec![], vec![]));
    assert_eq!(whole("HTTP/1.1 204 No Content\r\n\r\n").status, 204);
    assert_eq!(whole("HTTP/1.1 304 Not Modified\r\nContent-Length: 9\r\n\r\n").body, b"");
}

#[test]
fn a_body_without_a_length_ends_with_the_connection() {
    let response = whole("HTTP/1.1 200 OK\r\n\r\nall of it");
    assert_eq!((&*response.body, response.keep_alive), (&b"all of it"[..], false));
    // One with a length does not.
    let (response, _) = read(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf", Method::Get, 99).unwrap();
    assert_eq!(response, None);
}

#[test]
fn a_connection_is_kept_as_both_versions_have_it() {
    let kept = |text: &str| whole(&format!("{text}Content-Length: 0\r\n\r\n")).keep_alive;
    assert!(kept("HTTP/1.1 200 OK\r\n"));
    assert!(!kept("HTTP/1.1 200 OK\r\nConnection: Close\r\n"));
    assert!(!kept("HTTP/1.0 200 OK\r\n"));
    assert!(kept("HTTP/1.0 200 OK\r\nConnection: a, Keep-Alive\r\n"));
}

#[test]
fn a_response_that_only_informs_is_passed_over() {
    let text = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nx";
    assert_eq!((whole(text).status, whole(text).body), (200, b"x".to_vec()));
    assert!(refused("HTTP/1.1 101 Switching Protocols\r\n\r\n").contains("101"));
}

#[test]
fn what_could_be_read_in_two_ways_is_refused() {
    let refused = |headers: &str| refused(&format!("HTTP/1.1 200 OK\r\n{headers}\r\n\r\n"));
    assert!(refused("Content-Length: 1\r\nContent-Length: 2").contains("differ"));
    assert!(refused("Content-Length: +1").contains("no number"));
    assert!(refused("Content-Length: 1\r\nTransfer-Encoding: chunked").contains("chunked"));
    assert!(refused("Transfer-Encoding: gzip, chunked").contains("chunked"));
    assert!(refused("Content-Length: 1001").contains("1000 bytes"));
    assert!(refused(&format!("A: {}", "b".repeat(1000))).contains("1000 bytes"));
}

#[test]
fn what_follows_a_response_stays() {
    let text = b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nxHTTP/1.1 404 Not Found\r\n";
    let (response, rest) = read(text, Method::Get, text.len()).unwrap();
    assert_eq!((response.unwrap().body, rest), (b"x".to_vec(), b"HTTP/1.1 404 Not Found\r\n".to_vec()));
}

/// Bytes that look like responses, more or less.
fn responses() -> impl Strategy<Value = Vec<u8>> {
    let words = prop::sample::select(vec![
        "HTTP/1.1 ",
        "HTTP/1.0 ",
        "200 OK",
        "204",
        "100 Continue",
        "\r\n",
        "\r\n\r\n",
        "Content-Length: ",
        "3",
        "Transfer-Encoding: chunked",
        "0",
        "A",
        ";",
        "abc",
        "Connection: close",
        ":",
        " ",
        "\n",
        "fffffffff",
    ]); // fmt: skip
    let words = words.prop_map(|word: &str| word.as_bytes().to_vec());
    let piece = prop_oneof![9 => words, 1 => prop::collection::vec(any::<u8>(), 0..4)];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| {
        let start = b"HTTP/1.1 200 OK\r\n".to_vec();
        [start].into_iter().chain(pieces).flatten().collect()
    })
}

proptest! {
    #[test]
    fn how_the_bytes_are_cut_makes_no_difference(bytes in responses(), piece in 1_usize..20) {
        let whole = read(&bytes, Method::Get, bytes.len());
        let pieces = read(&bytes, Method::Get, piece);
        match (whole, pieces) {
            (Ok((whole, _)), Ok((pieces, _))) => prop_assert_eq!(whole, pieces),
            // An error behind a response that was whole already is seen only where both arrive at once, and not then.
            (Err(whole), Err(pieces)) => prop_assert_eq!(whole.message(), pieces.message()),
            (whole, pieces) => prop_assert!(false, "{:?} or {:?}", whole, pieces),
        }
    }

    #[test]
    fn a_body_comes_back_from_chunks(body in prop::collection::vec(any::<u8>(), 0..900), chunk in 1_usize..200) {
        let mut bytes = b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n".to_vec();
        for piece in body.chunks(chunk) {
            bytes.extend(format!("{:x}\r\n", piece.len()).bytes().chain(piece.iter().copied()).chain(*b"\r\n"));
        }
        bytes.extend(b"0\r\n\r\n");
        let (response, rest) = read(&bytes, Method::Get, 7).unwrap();
        prop_assert_eq!((response.unwrap().body, rest), (body, vec![]));
    }
}
