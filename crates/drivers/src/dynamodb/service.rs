//! Verbs as requests, and their responses as rows.

use std::fmt::Write as _;
use std::io::Write as _;

use nephoscope_runtime::clock::{self, SECOND};

use crate::contract::error::Error;
use crate::contract::value::Params;
use crate::contract::verb::{Action, Verb};
use crate::net::aws::Account;
use crate::net::aws::refusal::{LONGEST_ERROR, refusal};
use crate::net::frame::shown;
use crate::net::http::service::{Cells, Found, Keyed, Service};
use crate::net::http::{Method, Response};
use crate::net::json::{Reader, put_text};
use crate::net::sigv4::{Signer, Unsigned};

/// What every request says of its body.
pub(super) const CONTENT: (&str, &str) = ("Content-Type", "application/x-amz-json-1.0");

/// A session's side of the protocol.
pub(crate) struct DynamoDbService {
    signer: Signer,
    authority: String,
    /// Whether reads see every write that was answered before.
    strong: bool,
    body: Vec<u8>,
    text: Vec<u8>,
    cells: Cells,
}

/// The parts of a verb's requests that do not change.
pub(crate) struct Parts {
    /// Up to the key's value.
    head: String,
    /// Behind it.
    tail: String,
    /// Of a scan's requests: what they begin with, and what follows the limit.
    scan: (String, String),
}

/// The header that names an operation.
pub(super) fn target(operation: &str) -> String {
    format!("DynamoDB_20120810.{operation}")
}

/// A text between quotes.
pub(super) fn quoted(name: &str) -> String {
    let mut out = Vec::new();
    // A name is UTF-8.
    let _ = put_text(&mut out, name.as_bytes());
    String::from_utf8_lossy(&out).into_owned()
}

/// Stands for the names of fields, which may be words of the service's own: `"#0":"field0","#1":"field1"`.
fn names<'a>(fields: impl Iterator<Item = &'a str>) -> String {
    let each = |(place, name)| format!("\"#{place}\":{}", quoted(name));
    fields.enumerate().map(each).collect::<Vec<_>>().join(",")
}

/// What of an item is read: the fields, or the key where a table has nothing else.
fn projection(verb: &Verb) -> String {
    let fields = || verb.fields.iter().map(String::as_str).chain([verb.key.as_str()]);
    let count = verb.fields.len().max(1);
    let places: Vec<String> = (0..count).map(|place| format!("#{place}")).collect();
    format!(
        ",\"ProjectionExpression\":\"{}\",\"ExpressionAttributeNames\":{{{}}}",
        places.join(","),
        names(fields().take(count))
    )
}

impl Parts {
    fn new(verb: &Verb, strong: bool) -> Self {
        let (table, key) = (format!("{{\"TableName\":{}", quoted(&verb.table)), quoted(&verb.key));
        let mut head = format!("{table},\"Key\":{{{key}:{{\"S\":");
        let mut scan = (String::new(), String::new());
        let tail = match verb.action {
            Action::Read | Action::Scan => {
                let rest = format!("{},\"ConsistentRead\":{strong}", projection(verb));
                let start = format!(",\"ExclusiveStartKey\":{{{key}:{{\"S\":");
                scan = (format!("{table}{rest},\"Limit\":"), start);
                format!("}}}}{rest}}}")
            }
            Action::Insert => {
                head = format!("{table},\"Item\":{{{key}:{{\"S\":");
                "}".to_owned()
            }
            Action::Update => {
                let mut set = String::new();
                for place in 0..verb.fields.len() {
                    // Writing into memory does not fail.
                    let _ = write!(set, "{}#{place}=:{place}", if place == 0 { "" } else { "," });
                }
                format!(
                    "}}}},\"UpdateExpression\":\"SET {set}\",\"ExpressionAttributeNames\":{{{}}},\
                     \"ExpressionAttributeValues\":{{",
                    names(verb.fields.iter().map(String::as_str))
                )
            }
            Action::Delete => "}},\"ReturnValues\":\"ALL_OLD\"}".to_owned(),
        };
        Self { head, tail, scan }
    }
}

impl DynamoDbService {
    pub(super) fn new(account: &Account, strong: bool) -> Self {
        Self {
            signer: account.signer("dynamodb"),
            authority: account.endpoint.authority().to_owned(),
            strong,
            body: Vec::new(),
            text: Vec::new(),
            cells: Cells::default(),
        }
    }

    /// Adds a text between quotes to the body.
    fn quote(&mut self) {
        // What a session is given is UTF-8: see `Keyed`.
        let _ = put_text(&mut self.body, &self.text);
        self.text.clear();
    }

    fn write_body(&mut self, keyed: &Keyed<Parts>, params: &Params) -> Result<&'static str, Error> {
        self.body.clear();
        self.text.clear();
        keyed.key(params, &mut self.text)?;
        let Parts { head, tail, scan } = &keyed.own;
        if keyed.verb.action == Action::Scan && self.text.is_empty() {
            // No item has an empty key, and the service refuses to look for one: this is the table's beginning.
            let count = keyed.count(params)?;
            let _ = write!(self.body, "{}{}}}", scan.0, count.max(1));
            return Ok("Scan");
        }
        self.body.extend_from_slice(head.as_bytes());
        self.quote();
        let is_insert = keyed.verb.action == Action::Insert;
        if !is_insert {
            self.body.extend_from_slice(tail.as_bytes());
        }
        let written = if matches!(keyed.verb.action, Action::Insert | Action::Update) {
            keyed.verb.fields.len()
        } else {
            0
        };
        for (place, field) in keyed.verb.fields.iter().enumerate().take(written) {
            keyed.field(params, place, &mut self.text)?;
            if is_insert {
                self.body.extend_from_slice(b"},");
                let _ = put_text(&mut self.body, field.as_bytes());
            } else {
                let _ = write!(self.body, "{}\":{place}\"", if place == 0 { "" } else { "," });
            }
            self.body.extend_from_slice(b":{\"S\":");
            self.quote();
            if !is_insert {
                self.body.push(b'}');
            }
        }
        Ok(match keyed.verb.action {
            Action::Read | Action::Scan => "GetItem",
            Action::Delete => "DeleteItem",
            Action::Insert => {
                self.body.extend_from_slice(b"}}}");
                "PutItem"
            }
            Action::Update => {
                self.body.extend_from_slice(b"}}");
                "UpdateItem"
            }
        })
    }

    /// Writes a request with the body that has been written.
    fn send(&self, operation: &str, out: &mut Vec<u8>) -> Result<Method, Error> {
        let target = target(operation);
        let headers = [("Host", self.authority.as_str()), CONTENT, ("X-Amz-Target", &target)];
        let (method, body) = (Method::Post, self.body.as_slice());
        let unsigned = Unsigned { method, path: "/", query: &[], headers: &headers, body };
        self.signer.write(&unsigned, clock::wall() / SECOND, out)?;
        Ok(method)
    }

    /// Reads the attributes of an item, and adds them as a row.
    fn item(
        &mut self,
        keyed: &Keyed<Parts>,
        json: &mut Reader<'_>,
        found: &mut Found<'_>,
    ) -> Result<(), Error> {
        self.cells.begin(keyed.verb.fields.len());
        json.object(|json, name| {
            let Some(column) = keyed.column(|field| name.is(field)) else { return json.skip() };
            json.object(|json, kind| {
                // Whoever else has written the item may have used numbers.
                if kind.is(b"S") || kind.is(b"N") {
                    let text = json.text()?;
                    self.cells.set(column, |out| text.append_to(out))
                } else {
                    json.skip()
                }
            })
        })?;
        found.push(&self.cells)
    }

    /// Takes what a scan's request has given: the items, and in `text` the key behind which the next ones stand.
    fn page(
        &mut self,
        keyed: &Keyed<Parts>,
        json: &mut Reader<'_>,
        most: usize,
        found: &mut Found<'_>,
    ) -> Result<bool, Error> {
        let mut goes_on = false;
        json.object(|json, name| {
            if name.is(b"Items") {
                return json.array(|json| {
                    if found.count() < most { self.item(keyed, json, found) } else { json.skip() }
                });
            }
            if !name.is(b"LastEvaluatedKey") {
                return json.skip();
            }
            json.object(|json, key| {
                if !key.is(keyed.verb.key.as_bytes()) {
                    return Err(Error::other(
                        "the table has a sort key, too; one made by nephoscope has none",
                    ));
                }
                json.object(|json, kind| {
                    if !kind.is(b"S") {
                        return Err(Error::other("the table's key is no string"));
                    }
                    goes_on = true;
                    self.text.clear();
                    json.text()?.append_to(&mut self.text)
                })
            })
        })?;
        Ok(goes_on)
    }

    /// Takes a response to a scan's request: the first is that of the row of the key itself, unless there is none.
    fn scanned(
        &mut self,
        (keyed, params, turn): (&Keyed<Parts>, &Params, u32),
        json: &mut Reader<'_>,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let most = keyed.count(params)?;
        self.text.clear();
        keyed.key(params, &mut self.text)?;
        let goes_on = if turn == 0 && !self.text.is_empty() {
            json.object(|json, name| {
                if name.is(b"Item") && most > 0 { self.item(keyed, json, found) } else { json.skip() }
            })?;
            true
        } else {
            self.page(keyed, json, most, found)?
        };
        let left = most.saturating_sub(found.count());
        if !goes_on || left == 0 {
            return Ok(None);
        }
        let (head, start) = &keyed.own.scan;
        self.body.clear();
        let _ = write!(self.body, "{head}{left}{start}");
        self.quote();
        self.body.extend_from_slice(b"}}}");
        self.send("Scan", out).map(Some)
    }
}

/// What the service says of a request that it refused
/// (<https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/Programming.Errors.html>).
pub(super) fn refused(response: &Response) -> Error {
    let (mut kind, mut message) = (Vec::new(), Vec::new());
    let read = Reader::new(&response.body).object(|json, name| match () {
        () if name.is(b"__type") => json.text()?.append_to(&mut kind),
        () if name.is(b"message") || name.is(b"Message") => json.text()?.append_to(&mut message),
        () => json.skip(),
    });
    let kind = shown(&kind, LONGEST_ERROR);
    let code = kind.rsplit('#').next().unwrap_or_default();
    let plain = read.is_ok() && code.len() <= 64 && code.bytes().all(|byte| byte.is_ascii_alphanumeric());
    refusal(response.status, if plain { code } else { "" }, &shown(&message, LONGEST_ERROR))
}

impl Service for DynamoDbService {
    type Own = Parts;

    const NAME: &'static str = "DynamoDB";

    fn own(&self, verb: &Verb) -> Parts {
        Parts::new(verb, self.strong)
    }

    fn ask(&mut self, keyed: &Keyed<Parts>, params: &Params, out: &mut Vec<u8>) -> Result<Method, Error> {
        let operation = self.write_body(keyed, params)?;
        self.send(operation, out)
    }

    fn answer(
        &mut self,
        (keyed, params, turn): (&Keyed<Parts>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        if response.status != 200 {
            return Err(refused(response));
        }
        let mut json = Reader::new(&response.body);
        let next = match keyed.verb.action {
            Action::Scan => self.scanned((keyed, params, turn), &mut json, found, out)?,
            Action::Read => {
                json.object(|json, name| match () {
                    () if name.is(b"Item") => self.item(keyed, json, found),
                    () => json.skip(),
                })?;
                None
            }
            action => {
                let mut there = action != Action::Delete;
                json.object(|json, name| {
                    // The attributes of the item that was deleted.
                    there |= name.is(b"Attributes");
                    json.skip()
                })?;
                found.touched(u64::from(there));
                None
            }
        };
        json.end()?;
        Ok(next)
    }
}
