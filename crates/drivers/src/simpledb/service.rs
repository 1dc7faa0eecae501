//! Verbs as requests, and their responses as rows.

use std::sync::Arc;

use nephoscope_runtime::clock::{self, SECOND};

use super::answer::{refused, rows};
use super::config::Config;
use crate::contract::error::Error;
use crate::contract::value::Params;
use crate::contract::verb::{Action, Verb};
use crate::net::http::service::{Cells, Found, Keyed, Service};
use crate::net::http::{Method, Request, Response};
use crate::net::sigv2::Signer;

/// The version of the interface.
pub(super) const VERSION: &str = "2009-04-15";
/// What a request says of its body.
const CONTENT: (&str, &str) = ("Content-Type", "application/x-www-form-urlencoded; charset=utf-8");
/// The most rows that one `Select` gives.
const MOST_ROWS: usize = 2500;

/// A session's side of the protocol.
pub(crate) struct SimpleDbService {
    config: Arc<Config>,
    signer: Signer,
    /// Whether reads see every write that was answered before.
    strong: bool,
    text: Vec<u8>,
    cells: Cells,
}

/// Names and values of a form.
pub(super) type Form = Vec<(String, String)>;

/// The parts of a verb's requests that do not change.
pub(crate) struct Parts {
    form: Form,
    /// Of a scan: up to its condition.
    select: String,
}

fn pair(name: &str, value: &str) -> (String, String) {
    (name.to_owned(), value.to_owned())
}

/// A name in an expression.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// Adds an attribute to a form that writes; `item` says of which item.
pub(super) fn put(form: &mut Form, item: &str, place: usize, name: &str, value: &str) {
    let key = |part: &str| format!("{item}Attribute.{}.{part}", place + 1);
    let parts = [("Name", name), ("Value", value), ("Replace", "true")];
    form.extend(parts.map(|(part, text)| (key(part), text.to_owned())));
}

/// Writes a request, signed now.
pub(super) fn write(
    signer: &Signer,
    authority: &str,
    parameters: &Form,
    out: &mut Vec<u8>,
) -> Result<(), Error> {
    let parameters = parameters.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    let form = signer.form(parameters.chain([("Version", VERSION)]), clock::wall() / SECOND);
    let headers = [("Host", authority), CONTENT];
    Request { method: Method::Post, target: "/", headers: &headers, body: form.as_bytes() }.write(out)
}

impl SimpleDbService {
    pub(super) fn new(config: &Arc<Config>, strong: bool) -> Self {
        let (config, signer) = (Arc::clone(config), config.signer());
        Self { config, signer, strong, text: Vec::new(), cells: Cells::default() }
    }

    fn send(&self, form: &Form, out: &mut Vec<u8>) -> Result<Method, Error> {
        write(&self.signer, self.config.account.endpoint.authority(), form, out)?;
        Ok(Method::Post)
    }

    /// A text of a call, which is UTF-8: see `Keyed`.
    fn taken(&mut self) -> String {
        let text = String::from_utf8_lossy(&self.text).into_owned();
        self.text.clear();
        text
    }

    /// The form of a call's first request.
    fn form(&mut self, keyed: &Keyed<Parts>, params: &Params) -> Result<Form, Error> {
        let Verb { action, table, fields, .. } = &keyed.verb;
        self.text.clear();
        keyed.key(params, &mut self.text)?;
        let key = self.taken();
        let mut form = keyed.own.form.clone();
        if *action == Action::Scan {
            let from = if key.is_empty() {
                "is not null".to_owned()
            } else {
                format!(">= '{}'", key.replace('\'', "''"))
            };
            let (head, most) = (&keyed.own.select, keyed.count(params)?.clamp(1, MOST_ROWS));
            let words = format!("{head} where itemName() {from} order by itemName() limit {most}");
            form.push(("SelectExpression".to_owned(), words));
            return Ok(form);
        }
        form.push(("ItemName".to_owned(), key));
        if matches!(action, Action::Insert | Action::Update) {
            if fields.is_empty() {
                let what = "SimpleDB keeps no row that has a key alone";
                return Err(Error::other(format!("table {table}: {what}")));
            }
            for (place, field) in fields.iter().enumerate() {
                keyed.field(params, place, &mut self.text)?;
                let value = self.taken();
                put(&mut form, "", place, field, &value);
            }
        }
        Ok(form)
    }
}

impl Service for SimpleDbService {
    type Own = Parts;

    const NAME: &'static str = "SimpleDB";

    const LONGEST_TEXT: usize = 1024;

    fn own(&self, verb: &Verb) -> Parts {
        let domain = format!("{}{}", self.config.prefix, verb.table);
        let operation = match verb.action {
            Action::Read => "GetAttributes",
            Action::Scan => "Select",
            Action::Insert | Action::Update => "PutAttributes",
            Action::Delete => "DeleteAttributes",
        };
        let (mut form, mut select) = (vec![pair("Action", operation)], String::new());
        if verb.action == Action::Scan {
            let fields: Vec<String> = verb.fields.iter().map(|field| quoted(field)).collect();
            let fields = if fields.is_empty() { "itemName()".to_owned() } else { fields.join(", ") };
            select = format!("select {fields} from {}", quoted(&domain));
        } else {
            form.push(pair("DomainName", &domain));
        }
        if matches!(verb.action, Action::Read | Action::Scan) {
            form.push(pair("ConsistentRead", if self.strong { "true" } else { "false" }));
        }
        if verb.action == Action::Read {
            let names = verb.fields.iter().enumerate();
            form.extend(names.map(|(place, name)| (format!("AttributeName.{}", place + 1), name.clone())));
        }
        Parts { form, select }
    }

    fn ask(&mut self, keyed: &Keyed<Parts>, params: &Params, out: &mut Vec<u8>) -> Result<Method, Error> {
        let form = self.form(keyed, params)?;
        self.send(&form, out)
    }

    fn answer(
        &mut self,
        (keyed, params, _): (&Keyed<Parts>, &Params, u32),
        response: &Response,
        found: &mut Found<'_>,
        out: &mut Vec<u8>,
    ) -> Result<Option<Method>, Error> {
        if response.status != 200 {
            return Err(refused(response));
        }
        match keyed.verb.action {
            Action::Read => {
                rows(keyed, response, (&mut self.cells, 1), found)?;
                Ok(None)
            }
            Action::Scan => {
                let most = keyed.count(params)?;
                match rows(keyed, response, (&mut self.cells, most), found)? {
                    Some(token) if found.count() < most => {
                        let mut form = self.form(keyed, params)?;
                        form.push(("NextToken".to_owned(), token));
                        self.send(&form, out).map(Some)
                    }
                    _ => Ok(None),
                }
            }
            // A deletion does not tell whether there was an item.
            Action::Insert | Action::Update | Action::Delete => {
                found.touched(1);
                Ok(None)
            }
        }
    }
}
