//! Verbs as requests, and their responses as rows.

use std::sync::Arc;

use nephoscope_runtime::clock::{self, SECOND};

use super::config::Config;
use super::object;
use crate::contract::error::Error;
use crate::contract::value::Params;
use crate::contract::verb::{Action, Verb};
use crate::net::aws::refusal::of_xml as refused;
use crate::net::http::service::{Cells, Found, Keyed, Service};
use crate::net::http::{Method, Response};
use crate::net::sigv4::{Signer, Unsigned};
use crate::net::xml;

/// The most keys that one listing gives.
const MOST_KEYS: usize = 1000;

/// A session's side of the protocol.
pub(crate) struct S3Service {
    config: Arc<Config>,
    signer: Signer,
    text: Vec<u8>,
    value: Vec<u8>,
    body: Vec<u8>,
    cells: Cells,
    scan: Scan,
}

/// A scan on its way.
#[derive(Default)]
struct Scan {
    /// Whether the response that is due is a listing.
    lists: bool,
    /// The keys whose objects are still to be read, the next one last.
    keys: Vec<String>,
    /// The key behind which a further listing begins; `None` if there is no more.
    after: Option<String>,
}

/// What a listing gives: names below the prefix, and whether there are more.
pub(super) struct Listing {
    pub(super) keys: Vec<String>,
    pub(super) goes_on: bool,
}

/// Reads a listing (`ListObjectsV2`).
pub(super) fn listing(config: &Config, body: &[u8]) -> Result<Listing, Error> {
    let mut found = Listing { keys: Vec::new(), goes_on: false };
    xml::texts(body, |parent, name, text| {
        if (parent, name) == (b"Contents", b"Key") {
            let mut key = Vec::new();
            xml::unescape(text, &mut key)?;
            let key = String::from_utf8_lossy(&key).into_owned();
            found.keys.extend(key.strip_prefix(&config.prefix).map(str::to_owned));
        } else if name == b"IsTruncated" {
            found.goes_on = text == b"true";
        }
        Ok(())
    })?;
    found.goes_on &= !found.keys.is_empty();
    Ok(found)
}

/// The parameters of a listing of what begins with `start`, below the prefix, behind a key.
pub(super) fn list(config: &Config, start: &str, after: &str, most: usize) -> [(&'static str, String); 4] {
    let below = |name: &str| format!("{}{name}", config.prefix);
    let after = if after.is_empty() { String::new() } else { below(after) };
    [
        ("list-type", "2".to_owned()),
        ("max-keys", most.clamp(1, MOST_KEYS).to_string()),
        ("prefix", below(start)),
        ("start-after", after),
    ]
}

/// Whether there is no such object; that there is no such bucket is an error.
pub(super) fn is_absent(response: &Response) -> bool {
    response.status == 404 && refused(response).code() != "NoSuchBucket"
}

impl S3Service {
    pub(super) fn new(config: &Arc<Config>) -> Self {
        Self {
            config: Arc::clone(config),
            signer: config.account.signer("s3"),
            text: Vec::new(),
            value: Vec::new(),
            body: Vec::new(),
            cells: Cells::default(),
            scan: Scan::default(),
        }
    }

    /// Puts the name of a call's object, below the prefix, into `text`.
    fn name(&mut self, keyed: &Keyed<()>, params: &Params) -> Result<String, Error> {
        self.text.clear();
        keyed.key(params, &mut self.text)?;
        // What a session is given is UTF-8: see `Keyed`.
        Ok(format!("{}/{}", keyed.verb.table, String::from_utf8_lossy(&self.text)))
    }

    /// Writes a request for an object, with the body that was written where it is to be put.
    fn send(
        &self,
        method: Method,
        name: &str,
        condition: Option<(&str, &str)>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let path = self.config.path(name);
        let mut headers = vec![("Host", self.config.account.endpoint.authority())];
        headers.extend(condition);
        let body = if method == Method::Put { self.body.as_slice() } else { b"" };
        let unsigned = Unsigned { method, path: &path, query: &[], headers: &headers, body };
        self.signer.write(&unsigned, clock::wall() / SECOND, out)?;
        Ok(Some(method))
    }

    /// Writes a request for names of a table behind one.
    fn ask_names(
        &self,
        table: &str,
        after: &str,
        most: usize,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let parameters = list(&self.config, &format!("{table}/"), after, most);
        let query = parameters.each_ref().map(|(name, value)| (*name, value.as_str()));
        let query = if after.is_empty() { &query[..3] } else { &query };
        let headers = [("Host", self.config.account.endpoint.authority())];
        let path = self.config.bucket_path();
        let unsigned = Unsigned { method: Method::Get, path, query, headers: &headers, body: b"" };
        self.signer.write(&unsigned, clock::wall() / SECOND, out)?;
        Ok(Some(Method::Get))
    }

    /// Writes the fields of a call into the body, behind those of an object that stay.
    fn write_body(&mut self, keyed: &Keyed<()>, params: &Params, kept: &[u8]) -> Result<(), Error> {
        self.body.clear();
        if !kept.is_empty() {
            let Self { body, value, text, .. } = self;
            object::fields(kept, |name, was| {
                if keyed.column(|field| name.is(field)).is_none() {
                    value.clear();
                    text.clear();
                    name.append_to(text)?;
                    was.append_to(value)?;
                    object::put_field(body, text, value);
                }
                Ok(())
            })?;
        }
        for (place, field) in keyed.verb.fields.iter().enumerate() {
            self.value.clear();
            keyed.field(params, place, &mut self.value)?;
            object::put_field(&mut self.body, field.as_bytes(), &self.value);
        }
        object::end(&mut self.body);
        Ok(())
    }

    fn row(&mut self, keyed: &Keyed<()>, response: &Response, found: &mut Found<'_>) -> Result<(), Error> {
        match response.status {
            200 => {
                object::read(keyed, &response.body, &mut self.cells)?;
                found.push(&self.cells)
            }
            _ if is_absent(response) => Ok(()),
            _ => Err(refused(response)),
        }
    }

    /// An object was read to be changed: writes it, on the condition that it is still what was read.
    fn change(
        &mut self,
        keyed: &Keyed<()>,
        params: &Params,
        response: &Response,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let name = self.name(keyed, params)?;
        match response.status {
            200 => {
                let Some(tag) = response.headers.get("etag") else {
                    return Err(Error::connection_lost("the server gives an object without its ETag"));
                };
                self.write_body(keyed, params, &response.body)?;
                self.send(Method::Put, &name, Some(("If-Match", tag)), out)
            }
            _ if is_absent(response) => {
                self.write_body(keyed, params, b"")?;
                self.send(Method::Put, &name, Some(("If-None-Match", "*")), out)
            }
            _ => Err(refused(response)),
        }
    }

    /// Takes a response to a scan's request; asks for the next object, or for further names.
    fn scanned(
        &mut self,
        (keyed, params, turn): (&Keyed<()>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        let most = keyed.count(params)?;
        if turn == 0 {
            let name = self.name(keyed, params)?;
            self.scan = Scan { lists: self.text.is_empty(), keys: Vec::new(), after: Some(name) };
        }
        if !self.scan.lists {
            if most > 0 {
                self.row(keyed, response, found)?;
            }
        } else if response.status == 200 {
            let Listing { mut keys, goes_on } = listing(&self.config, &response.body)?;
            self.scan.after = keys.last().filter(|_| goes_on).cloned();
            keys.reverse();
            self.scan.keys = keys;
        } else {
            return Err(refused(response));
        }
        let left = most.saturating_sub(found.count());
        if left == 0 {
            return Ok(None);
        }
        if let Some(name) = self.scan.keys.pop() {
            self.scan.lists = false;
            return self.send(Method::Get, &name, None, out);
        }
        self.scan.lists = true;
        match self.scan.after.take() {
            Some(after) => self.ask_names(&keyed.verb.table, &after, left, out),
            None => Ok(None),
        }
    }
}

impl Service for S3Service {
    type Own = ();

    const NAME: &'static str = "S3";

    fn own(&self, _verb: &Verb) {}

    fn ask(&mut self, keyed: &Keyed<()>, params: &Params, out: &mut Vec<u8>) -> Result<Method, Error> {
        let name = self.name(keyed, params)?;
        let asked = match keyed.verb.action {
            Action::Scan if self.text.is_empty() => {
                self.ask_names(&keyed.verb.table, "", keyed.count(params)?, out)?
            }
            Action::Read | Action::Scan => self.send(Method::Get, &name, None, out)?,
            Action::Update => {
                // Whether its values fit is told before anything is sent.
                self.write_body(keyed, params, b"")?;
                self.send(Method::Get, &name, None, out)?
            }
            Action::Insert => {
                self.write_body(keyed, params, b"")?;
                self.send(Method::Put, &name, None, out)?
            }
            Action::Delete => self.send(Method::Head, &name, None, out)?,
        };
        Ok(asked.unwrap_or(Method::Get))
    }

    fn answer(
        &mut self,
        (keyed, params, turn): (&Keyed<()>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        match (keyed.verb.action, turn) {
            (Action::Read, _) => self.row(keyed, response, found).map(|()| None),
            (Action::Scan, _) => self.scanned((keyed, params, turn), response, found, out),
            (Action::Update, 0) => self.change(keyed, params, response, out),
            (Action::Delete, 0) if response.status == 200 => {
                let name = self.name(keyed, params)?;
                self.send(Method::Delete, &name, None, out)
            }
            (Action::Delete, 0) if is_absent(response) => Ok(None),
            (Action::Insert | Action::Update | Action::Delete, _) => match response.status {
                200..300 => {
                    found.touched(1);
                    Ok(None)
                }
                _ => Err(refused(response)),
            },
        }
    }
}
