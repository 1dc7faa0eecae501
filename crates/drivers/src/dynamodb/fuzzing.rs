//! What the fuzz target in `fuzz/` calls; the crate's tests replay the seeds.

use super::config::Config;
use super::service::DynamoDbService;
use crate::net::http::driver::System;
use crate::net::http::fuzzing::in_pieces;

/// A session of a table in no particular region.
fn service() -> DynamoDbService {
    let Ok(config) = Config::read("dynamodb://id:secret@r?endpoint=http://h", &|_| None) else {
        panic!("it is a URL")
    };
    DynamoDbService::new(&config.account, true)
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
        replay("dynamodb_protocol", protocol);
    }

    fn responses(bodies: &[(u16, &str)]) -> String {
        bodies.iter().map(|(status, body)| answer(*status, "", body)).collect()
    }

    #[test]
    fn verbs_are_requests_and_their_responses_rows() {
        let bytes = responses(&[
            (200, r#"{"Item":{"b":{"S":"é\n"},"k":{"S":"7"}},"x":[1]}"#),
            (200, r#"{"Item":{"a":{"S":"1"},"b":{"N":"2"}}}"#),
            (200, r#"{"Items":[],"Count":0,"LastEvaluatedKey":{"k":{"S":"q\"8"}}}"#),
            (200, r#"{"Items":[{"a":{"S":"3"}},{"a":{"S":"one too many"}}]}"#),
            (200, "{}"),
            (200, "{}"),
            (200, r#"{"Attributes":{"a":{"S":"x"}}}"#),
            (200, "{}"),
        ]);
        let (told, sent) = converse(service(), bytes.as_bytes(), bytes.len());
        let rows: Vec<(u64, Vec<String>)> = told.into_iter().map(Result::unwrap).collect();
        let text = |text: &str| format!("{:?}", crate::Value::Text(text.as_bytes()));
        assert_eq!(rows[0], (1, vec![format!("Null {}", text("é\n"))]));
        let scanned = vec![format!("{} {}", text("1"), text("2")), format!("{} Null", text("3"))];
        assert_eq!(rows[1], (2, scanned));
        assert_eq!(rows[2..].iter().map(|(count, _)| *count).collect::<Vec<_>>(), [1, 1, 1, 0]);
        let bodies: Vec<&str> =
            sent.split("\r\n\r\n").map(|part| part.split("POST").next().unwrap()).collect();
        let names = r##""ProjectionExpression":"#0,#1","ExpressionAttributeNames":{"#0":"a","#1":"b"}"##;
        let get = format!(r#"{{"TableName":"t","Key":{{"k":{{"S":"7"}}}},{names},"ConsistentRead":true}}"#);
        let scan = |limit: u32, key: &str| {
            format!(
                r#"{{"TableName":"t",{names},"ConsistentRead":true,"Limit":{limit},"ExclusiveStartKey":{{"k":{{"S":"{key}"}}}}}}"#
            )
        };
        let update = r##"{"TableName":"t","Key":{"k":{"S":"x\""}},"UpdateExpression":"SET #0=:0,#1=:1","ExpressionAttributeNames":{"#0":"a","#1":"b"},"ExpressionAttributeValues":{":0":{"S":"7"},":1":{"S":"2"}}}"##;
        let insert = r#"{"TableName":"t","Item":{"k":{"S":"7"},"a":{"S":"2"},"b":{"S":"x\""}}}"#;
        let delete = r#"{"TableName":"t","Key":{"k":{"S":"7"}},"ReturnValues":"ALL_OLD"}"#;
        let expected =
            [&get, &get, &scan(1, "7"), &scan(1, "q\\\"8"), insert, update, delete, &get].map(str::to_owned);
        assert_eq!(bodies[1..9], expected);
        for operation in ["GetItem", "Scan", "PutItem", "UpdateItem", "DeleteItem"] {
            assert!(
                sent.contains(&format!("X-Amz-Target: DynamoDB_20120810.{operation}\r\n")),
                "{operation}"
            );
        }
    }

    #[test]
    fn an_error_of_one_call_leaves_the_others() {
        let bytes = responses(&[
            (
                400,
                r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException","message":"m"}"#,
            ),
            (500, ""),
            (
                400,
                r#"{"__type":"x#ConditionalCheckFailedException","Message":"The conditional request failed"}"#,
            ),
            (400, "<no JSON>"),
            (200, "[]"),
        ]);
        let (told, _) = converse(service(), bytes.as_bytes(), 1);
        let errors: Vec<String> = told.into_iter().map(Result::unwrap_err).collect();
        let expected = [
            "throttled ProvisionedThroughputExceededException",
            "shutting_down ",
            "constraint ConditionalCheckFailedException",
            "other ",
            "connection_lost ",
        ];
        assert_eq!(errors, expected);
    }
}
