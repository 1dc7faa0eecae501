//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use std::sync::Arc;

use super::config::Config;
use super::service::HBaseService;
use crate::net::http::driver::System;
use crate::net::http::fuzzing::in_pieces;

fn service() -> HBaseService {
    let Ok(config) = Config::read("hbase://h/ns", &|_| None) else { panic!("it is a URL") };
    HBaseService::new(&Arc::new(config))
}

/// What a gateway sends; the first byte says how the bytes are cut.
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

    /// Responses as the gateway of `HBase` 1.4.14 gave them.
    const JSON: &str = "Content-Type: application/json\r\n";
    const PLAIN: &str = "Content-Type: text/plain\r\n";
    const CREATED: &str = "Location: http://h:8080/ns:t/scanner/17956937200713aa6bbee\r\n";
    const ABSENT: &str = "Not found\r\n";
    const NO_TABLE: &str = "Not found\norg.apache.hadoop.hbase.TableNotFoundException: Table 'nothing' was not \
                            found, got: hbase:namespace.\n\tat org.apache.hadoop.hbase.client.ConnectionManager";

    #[test]
    fn the_seeds_of_the_protocol_are_kept() {
        replay("hbase_protocol", protocol);
    }

    fn cell(column: &str, value: &str) -> String {
        format!("{{\"column\":\"{column}\",\"timestamp\":1795693719882,\"$\":\"{value}\"}}")
    }

    fn rows_of(rows: &[(&str, &[String])]) -> String {
        let row = |(key, cells): &(&str, &[String])| {
            format!("{{\"key\":\"{key}\",\"Cell\":[{}]}}", cells.join(","))
        };
        let body = format!("{{\"Row\":[{}]}}", rows.iter().map(row).collect::<Vec<_>>().join(","));
        answer(200, JSON, &body)
    }

    #[test]
    fn verbs_are_requests_and_their_responses_rows() {
        let (a, b, other) = (cell("Zjph", "MQ=="), cell("Zjpi", "w6k="), cell("Zjpj", "Mg=="));
        let bytes = [
            rows_of(&[("Nw==", &[other, b.clone()])]),
            // A scan: the scanner, a row, no more, the scanner's end.
            answer(201, CREATED, ""),
            rows_of(&[("Nw==", &[a, b])]),
            format!("HTTP/1.1 204 No Content\r\n{JSON}\r\n"),
            answer(200, "", ""),
            // An insert, an update, a delete; a read of what is not there.
            answer(200, "", ""),
            answer(200, "", ""),
            answer(200, "", ""),
            answer(404, PLAIN, ABSENT),
            // A scan that ends with what was asked for, the first of its rows in two parts.
            answer(201, CREATED, ""),
            rows_of(&[("Nw==", &[cell("Zjph", "")])]),
            rows_of(&[("Nw==", &[]), ("OA==", &[]), ("OQ==", &[])]),
            answer(200, "", ""),
        ]
        .concat();
        let (told, sent) = converse(service(), bytes.as_bytes(), bytes.len());
        let rows: Vec<(u64, Vec<String>)> = told.into_iter().map(Result::unwrap).collect();
        let text = |text: &str| format!("{:?}", crate::Value::Text(text.as_bytes()));
        assert_eq!(rows[0], (1, vec![format!("Null {}", text("é"))]));
        assert_eq!(rows[1], (1, vec![format!("{} {}", text("1"), text("é"))]));
        assert_eq!(rows[2..6].iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 1, 1, 0]);
        assert_eq!(rows[6], (2, vec![format!("{} Null", text("")), "Null Null".to_owned()]));
        // A body has no line's end behind it.
        let lines = sent.lines().filter(|line| line.ends_with("HTTP/1.1"));
        let lines: Vec<&str> = lines.map(|line| line.rsplit('}').next().unwrap()).collect();
        let scanner = "/ns:t/scanner/17956937200713aa6bbee";
        let expected = [
            "GET /ns:t/7/f:a,f:b HTTP/1.1",
            "PUT /ns:t/scanner HTTP/1.1",
            &format!("GET {scanner}?n=2 HTTP/1.1"),
            &format!("GET {scanner}?n=1 HTTP/1.1"),
            &format!("DELETE {scanner} HTTP/1.1"),
            "PUT /ns:t/fakerow HTTP/1.1",
            "PUT /ns:t/fakerow HTTP/1.1",
            "DELETE /ns:t/7/f HTTP/1.1",
            "GET /ns:t/7/f:a,f:b HTTP/1.1",
            "PUT /ns:t/scanner HTTP/1.1",
        ];
        assert_eq!(lines[..10], expected);
        for body in [
            r#"{"batch":4,"startRow":"Nw==","column":["Zjph","Zjpi"]}"#,
            r#"{"Row":[{"key":"Nw==","Cell":[{"column":"Zjph","$":"Mg=="},{"column":"Zjpi","$":"eCI="}]}]}"#,
            r#"{"Row":[{"key":"eCI=","Cell":[{"column":"Zjph","$":"Nw=="},{"column":"Zjpi","$":"Mg=="}]}]}"#,
        ] {
            assert!(sent.contains(body), "{body} is not in {sent}");
        }
    }

    #[test]
    fn an_error_of_one_call_leaves_the_others() {
        let busy = "Unavailable\norg.apache.hadoop.hbase.RegionTooBusyException: Over memstore limit\n\tat x";
        let bytes = [
            answer(404, PLAIN, NO_TABLE),
            answer(404, PLAIN, ABSENT),
            answer(503, PLAIN, busy),
            answer(503, PLAIN, "Unavailable\r\n"),
            answer(403, PLAIN, "Forbidden\r\n"),
            answer(405, "Content-Type: text/html\r\n", "<html>"),
            answer(201, "", ""),
        ]
        .concat();
        let (told, _) = converse(service(), bytes.as_bytes(), 1);
        let errors: Vec<String> = told.into_iter().map(Result::unwrap_err).collect();
        let expected = [
            "other TableNotFoundException",
            "other ",
            "throttled RegionTooBusyException",
            "shutting_down ",
            "other ",
            "other ",
            "connection_lost ",
        ];
        assert_eq!(errors, expected);
    }
}
