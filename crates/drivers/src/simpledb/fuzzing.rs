//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use std::sync::Arc;

use super::config::Config;
use super::service::SimpleDbService;
use crate::net::http::driver::System;
use crate::net::http::fuzzing::in_pieces;

fn service() -> SimpleDbService {
    let Ok(config) = Config::read("simpledb://id:secret@r/p-?endpoint=http://h", &|_| None) else {
        panic!("it is a URL")
    };
    SimpleDbService::new(&Arc::new(config), true)
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
        replay("simpledb_protocol", protocol);
    }

    /// An answer of an operation, in the form of AWS's examples ("Operations" in the developer guide).
    fn of(operation: &str, result: &str) -> String {
        let body = format!(
            "<{operation}Response xmlns=\"http://sdb.amazonaws.com/doc/2009-04-15/\">\
             <{operation}Result>{result}</{operation}Result><ResponseMetadata>\
             <RequestId>b1e8f1f7-42e9-494c-ad09-2674e557526d</RequestId><BoxUsage>0.0000219907</BoxUsage>\
             </ResponseMetadata></{operation}Response>"
        );
        answer(200, "", &body)
    }

    fn attribute(name: &str, value: &str) -> String {
        format!("<Attribute><Name>{name}</Name><Value>{value}</Value></Attribute>")
    }

    #[test]
    fn verbs_are_requests_and_their_responses_rows() {
        let item = |key: &str, attributes: &[String]| {
            format!("<Item><Name>{key}</Name>{}</Item>", attributes.concat())
        };
        let (a, b) = (attribute("a", "1"), attribute("b", "2 &lt; 3"));
        let coded = "<Attribute><Name>b</Name><Value encoding=\"base64\">AAE=</Value></Attribute>";
        let token = "<NextToken>rO0ABXNy+/=</NextToken>";
        let bytes = [
            of("GetAttributes", &[attribute("other", "x"), attribute("b", "é")].concat()),
            of("Select", &[item("7", &[b, a]), token.to_owned()].concat()),
            of("Select", &[item("8", &[coded.to_owned()]), item("9", &[])].concat()),
            of("PutAttributes", ""),
            of("PutAttributes", ""),
            of("DeleteAttributes", ""),
            of("GetAttributes", ""),
            of("Select", &item("7", &[attribute("a", "")])),
        ]
        .concat();
        let (told, sent) = converse(service(), bytes.as_bytes(), bytes.len());
        let rows: Vec<(u64, Vec<String>)> = told.into_iter().map(Result::unwrap).collect();
        let text = |text: &str| format!("{:?}", crate::Value::Text(text.as_bytes()));
        assert_eq!(rows[0], (1, vec![format!("Null {}", text("é"))]));
        let scanned = [format!("{} {}", text("1"), text("2 < 3")), format!("Null {}", text("\0\x01"))];
        assert_eq!(rows[1], (2, scanned.to_vec()));
        assert_eq!(rows[2..6].iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 1, 1, 0]);
        assert_eq!(rows[6], (1, vec![format!("{} Null", text(""))]), "an empty text is no NULL");
        let bodies: Vec<&str> = sent.split("\r\n\r\n").skip(1).collect();
        for (place, parts) in [
            &["Action=GetAttributes", "AttributeName.1=a&AttributeName.2=b", "ConsistentRead=true"][..],
            &[
                "Action=Select",
                "SelectExpression=select%20%60a%60%2C%20%60b%60%20from%20%60p-t%60%20where%20itemName%28%29%20%3E\
                 %3D%20%277%27%20order%20by%20itemName%28%29%20limit%202",
            ],
            &["Action=Select", "NextToken=rO0ABXNy%2B%2F%3D", "limit%202"],
            &["Action=PutAttributes", "Attribute.1.Name=a&Attribute.1.Replace=true&Attribute.1.Value=2"],
            &["Action=PutAttributes", "ItemName=x%22", "Attribute.2.Value=2"],
            &["Action=DeleteAttributes", "DomainName=p-t&ItemName=7&Signature"],
            &["Action=GetAttributes"],
        ]
        .into_iter()
        .enumerate()
        {
            for part in parts.iter().chain(&["Version=2009-04-15", "SignatureMethod=HmacSHA256"]) {
                assert!(bodies[place].contains(part), "{part} is not in {}", bodies[place]);
            }
        }
        assert!(!sent.contains("secret"));
    }

    #[test]
    fn an_error_of_one_call_leaves_the_others() {
        let error = |status, code: &str| {
            let error = format!(
                "<?xml version=\"1.0\"?><Response><Errors><Error><Code>{code}</Code><Message>m</Message>\
                 <BoxUsage>0.0000219907</BoxUsage></Error></Errors><RequestID>x</RequestID></Response>"
            );
            answer(status, "", &error)
        };
        let bytes = [
            error(503, "ServiceUnavailable"),
            error(400, "NoSuchDomain"),
            error(500, "InternalError"),
            error(400, "RequestThrottled"),
            answer(502, "", "<html>"),
            answer(200, "", "<GetAttributesResponse>"),
        ]
        .concat();
        let (told, _) = converse(service(), bytes.as_bytes(), 1);
        let errors: Vec<String> = told.into_iter().map(Result::unwrap_err).collect();
        let expected = [
            "throttled ServiceUnavailable",
            "other NoSuchDomain",
            "shutting_down InternalError",
            "throttled RequestThrottled",
            "shutting_down ",
            "connection_lost ",
        ];
        assert_eq!(errors, expected);
    }
}
