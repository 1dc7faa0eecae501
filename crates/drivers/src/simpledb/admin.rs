//! The connection for set-up, loading and checks.

use std::sync::Arc;

use nephoscope_runtime::Nanos;
use percent_encoding::percent_decode_str;

use super::answer::{plain, refused};
use super::config::Config;
use super::service::{Form, SimpleDbService, VERSION, put, write};
use crate::contract::bulk::{Admin, RowSource, Table};
use crate::contract::driver::Settings;
use crate::contract::error::Error;
use crate::net::http::loading::{Batch, TextRow, load, patiently};
use crate::net::http::{Blocking, Caller, Method, Response};
use crate::net::sigv2::Signer;
use crate::net::xml;

/// The most items that a request may write, and half of the bytes.
const BATCH: Batch = Batch { rows: 25, bytes: 512 << 10 };

pub(super) struct SimpleDbAdmin {
    config: Arc<Config>,
    signer: Signer,
    blocking: Blocking,
}

impl SimpleDbAdmin {
    pub(super) fn connect(config: &Arc<Config>, settings: &Settings) -> Result<Self, Error> {
        let blocking = Blocking::connect(&config.account.endpoint, settings, |caller| caller)?;
        Ok(Self { config: Arc::clone(config), signer: config.signer(), blocking })
    }
}

/// Makes a request; the error is the service's.
async fn ask(caller: &mut Caller, signer: &Signer, form: &Form, deadline: Nanos) -> Result<Response, Error> {
    let authority = caller.authority().to_owned();
    let written = |out: &mut Vec<u8>| write(signer, &authority, form, out);
    let response = caller.call(Method::Post, written, deadline).await?;
    if response.status == 200 { Ok(response) } else { Err(refused(&response)) }
}

/// Reads a request as it is written here: an operation, and its parameters as a query.
fn request(text: &str, prefix: &str) -> Result<Form, Error> {
    let (operation, rest) = text.trim().split_once(char::is_whitespace).unwrap_or((text.trim(), ""));
    let wrong = || {
        let example = "ListDomains MaxNumberOfDomains=5";
        Error::other(format!("SimpleDB has no SQL; an operation and its parameters is a request: {example}"))
    };
    if operation.is_empty() || !operation.bytes().all(|byte| byte.is_ascii_alphanumeric()) {
        return Err(wrong());
    }
    let decoded = |text: &str| Some(percent_decode_str(text).decode_utf8().ok()?.into_owned());
    let pair = |pair: &str| {
        let (name, value) = pair.split_once('=')?;
        let below = if name == "DomainName" { prefix } else { "" };
        Some((decoded(name)?, format!("{below}{}", decoded(value)?)))
    };
    let pairs = rest.trim().split('&').filter(|part| !part.is_empty());
    let parameters: Option<Form> = pairs.map(pair).collect();
    let action = ("Action".to_owned(), operation.to_owned());
    Ok([action].into_iter().chain(parameters.ok_or_else(wrong)?).collect())
}

/// The texts of a response, each with its element's name; of domains those alone that the prefix precedes.
fn texts(body: &[u8], prefix: &str) -> Result<Table, Error> {
    let mut rows = Vec::new();
    xml::tagged(body, |_, tag, text| {
        let name = tag.split(u8::is_ascii_whitespace).next().unwrap_or_default();
        let mut cell = Vec::new();
        plain(tag, text, &mut cell)?;
        let cell = String::from_utf8_lossy(&cell);
        let shown = match name {
            b"DomainName" => cell.strip_prefix(prefix),
            // Blanks between elements.
            _ if name != b"Value" && cell.trim().is_empty() => None,
            _ => Some(&*cell),
        };
        rows.extend(shown.map(|shown| vec![String::from_utf8_lossy(name).into_owned(), shown.to_owned()]));
        Ok(())
    })?;
    let rows = rows.into_iter().map(|row| row.into_iter().map(Some).collect()).collect();
    Ok(Table { columns: ["element", "text"].map(str::to_owned).into(), rows })
}

/// The form that writes rows as items.
fn form_of(domain: String, rows: &[TextRow<'_>]) -> Form {
    let mut form = [("Action".to_owned(), "BatchPutAttributes".to_owned())].to_vec();
    form.push(("DomainName".to_owned(), domain));
    for (number, row) in (1..).zip(rows) {
        let item = format!("Item.{number}.");
        form.push((format!("{item}ItemName"), row.key().to_owned()));
        let fields = row.fields().enumerate();
        fields.for_each(|(place, (name, value))| put(&mut form, &item, place, name, value));
    }
    form
}

impl Admin for SimpleDbAdmin {
    fn limit_answers(&mut self, limit: Nanos) {
        self.blocking.answer_timeout = limit;
    }

    /// Makes one request: an operation and its parameters, percent-encoded, `GetAttributes DomainName=t&ItemName=x`.
    /// Domains are those below the URL's prefix. Gives the texts of the response and the names of their elements.
    fn query(&mut self, sql: &str) -> Result<Table, Error> {
        let Self { config, signer, blocking } = self;
        let form = request(sql, &config.prefix)?;
        let response = blocking.run(async |caller, _, deadline| ask(caller, signer, &form, deadline).await);
        texts(&response?.body, &config.prefix)
    }

    /// Stores rows as items, the first column as their name. Rows that were stored before an error stay.
    fn bulk_load(&mut self, table: &str, columns: &[String], rows: &mut dyn RowSource) -> Result<u64, Error> {
        let Self { config, signer, blocking } = self;
        let loaded = blocking.run(async |caller, runtime, deadline| {
            load::<SimpleDbService>(columns, rows, BATCH, async |rows| {
                let form = form_of(format!("{}{table}", config.prefix), rows);
                patiently(runtime, deadline, async || {
                    ask(caller, signer, &form, deadline).await.map(|_| true)
                })
                .await
            })
            .await
        });
        loaded.map_err(|error| error.context(&format!("table {table}")))
    }

    fn server_facts(&mut self) -> Result<Vec<(String, String)>, Error> {
        Ok(self.config.account.facts(VERSION))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::http::loading::tests::{example, refusals};

    fn shown(form: &Form) -> String {
        form.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn a_request_is_an_operation_and_its_parameters() {
        let form = request(" GetAttributes DomainName=t&ItemName=a%26b ", "p-").unwrap();
        assert_eq!(shown(&form), "Action=GetAttributes DomainName=p-t ItemName=a&b");
        for text in ["", "select * from t", "ListDomains x", "ListDomains a=%ff"] {
            assert!(request(text, "").unwrap_err().message().contains("SimpleDB has no SQL"), "{text}");
        }
        let body = b"<R>\n <DomainName>p-t</DomainName><DomainName>q</DomainName><Value> </Value>\
                     <Name encoding=\"base64\">AQ==</Name></R>";
        let told: Vec<String> =
            texts(body, "p-").unwrap().rows.iter().map(|row| row[1].clone().unwrap()).collect();
        assert_eq!(told, ["t", " ", "\u{1}"]);
    }

    #[test]
    fn rows_are_items() {
        let columns = ["k", "a", "b"].map(str::to_owned);
        let rows = example::<SimpleDbService>(&columns);
        let form = form_of("t".to_owned(), &rows.rows().collect::<Vec<_>>());
        let item = |number, key| {
            let item = format!("Item.{number}");
            format!(
                "{item}.ItemName={key} {item}.Attribute.1.Name=a {item}.Attribute.1.Value=x\"y \
                 {item}.Attribute.1.Replace=true {item}.Attribute.2.Name=b {item}.Attribute.2.Value=1 \
                 {item}.Attribute.2.Replace=true"
            )
        };
        let expected = format!("Action=BatchPutAttributes DomainName=t {} {}", item(1, 7), item(2, 8));
        assert_eq!(shown(&form), expected);
        refusals::<SimpleDbService>();
    }
}
