//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use std::sync::Arc;

use super::config::Config;
use super::service::S3Service;
use crate::net::http::driver::System;
use crate::net::http::fuzzing::in_pieces;

fn service() -> S3Service {
    let url = "s3://id:secret@data/p?region=r&endpoint=http://h";
    let Ok(config) = Config::read(url, &|_| None) else { panic!("it is a URL") };
    S3Service::new(&Arc::new(config))
}

/// What a server sends; the first byte says how the bytes are cut.
///
/// # Panics
/// If the outcome depends on how the bytes are cut.
pub fn protocol(data: &[u8]) {
    in_pieces(service, data);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::http::fuzzing::{answer, converse, replay};

    #[test]
    fn the_seeds_of_the_protocol_are_kept() {
        replay("s3_protocol", protocol);
    }

    fn listing(keys: &[&str]) -> String {
        let entry = |key| format!("<Contents><Key>p/t/{key}</Key><Size>1</Size></Contents>");
        let contents = keys.iter().map(entry).collect::<Vec<_>>().concat();
        format!("<ListBucketResult><IsTruncated>true</IsTruncated>{contents}</ListBucketResult>")
    }

    #[test]
    fn verbs_are_requests_and_their_responses_rows() {
        let tag = "ETag: \"e1\"\r\n";
        let bytes = [
            answer(200, tag, r#"{"b":"é","c":"other"}"#),
            // A scan: the key itself, of which there is none; a listing; one that is gone meanwhile; a second listing.
            answer(404, "", "<Error><Code>NoSuchKey</Code></Error>"),
            answer(200, "", &listing(&["a&amp;b", "gone"])),
            answer(200, tag, r#"{"a":"1","b":"2"}"#),
            answer(404, "", ""),
            answer(200, "", &listing(&["z"])),
            answer(200, tag, r#"{"a":"3"}"#),
            // An insert; an update of what is there; a delete.
            answer(200, tag, ""),
            answer(200, tag, r#"{"a":"1","c":"kept"}"#),
            answer(200, tag, ""),
            "HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n".to_owned(),
            answer(204, "", "").replace("Content-Length: 0\r\n", ""),
            answer(404, "", ""),
        ]
        .concat();
        let (told, sent) = converse(service(), bytes.as_bytes(), bytes.len());
        let rows: Vec<(u64, Vec<String>)> = told.into_iter().map(Result::unwrap).collect();
        let text = |text: &str| format!("{:?}", crate::Value::Text(text.as_bytes()));
        assert_eq!(rows[0], (1, vec![format!("Null {}", text("é"))]));
        let scanned = vec![format!("{} {}", text("1"), text("2")), format!("{} Null", text("3"))];
        assert_eq!(rows[1], (2, scanned));
        assert_eq!(rows[2..].iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 1, 1, 0]);
        // A body has no line's end behind it.
        let lines = sent.lines().filter(|line| line.ends_with("HTTP/1.1"));
        let lines: Vec<&str> = lines.map(|line| line.rsplit('}').next().unwrap()).collect();
        let expected = [
            "GET /data/p/t/7 HTTP/1.1",
            "GET /data/p/t/7 HTTP/1.1",
            "GET /data?list-type=2&max-keys=2&prefix=p%2Ft%2F&start-after=p%2Ft%2F7 HTTP/1.1",
            "GET /data/p/t/a%26b HTTP/1.1",
            "GET /data/p/t/gone HTTP/1.1",
            "GET /data?list-type=2&max-keys=1&prefix=p%2Ft%2F&start-after=p%2Ft%2Fgone HTTP/1.1",
            "GET /data/p/t/z HTTP/1.1",
            "PUT /data/p/t/7 HTTP/1.1",
            "GET /data/p/t/x%22 HTTP/1.1",
            "PUT /data/p/t/x%22 HTTP/1.1",
            "HEAD /data/p/t/7 HTTP/1.1",
            "DELETE /data/p/t/7 HTTP/1.1",
            "GET /data/p/t/7 HTTP/1.1",
        ];
        assert_eq!(lines[..13], expected);
        assert!(sent.contains(r#"{"a":"2","b":"x\""}"#), "{sent}");
        assert!(
            sent.contains("If-Match: \"e1\"\r\n") && sent.contains(r#"{"c":"kept","a":"7","b":"2"}"#),
            "{sent}"
        );
    }

    #[test]
    fn what_was_changed_meanwhile_is_a_serialization_failure() {
        let missing = "<Error><Code>NoSuchBucket</Code><Message>no</Message></Error>";
        let bytes = [
            answer(404, "", missing),
            answer(503, "", "<Error><Code>SlowDown</Code></Error>"),
            answer(500, "", ""),
            answer(404, "", ""),
            answer(412, "", ""),
            answer(403, "", ""),
            answer(200, "", "no JSON"),
        ]
        .concat();
        let (told, sent) = converse(service(), bytes.as_bytes(), 3);
        let errors: Vec<String> = told.into_iter().map(Result::unwrap_err).collect();
        let expected = [
            "other NoSuchBucket",
            "throttled SlowDown",
            "shutting_down ",
            "serialization PreconditionFailed",
            "other ",
            "other ",
        ];
        assert_eq!(errors, expected);
        assert!(sent.contains("If-None-Match: *\r\n"));
    }
}
