//! Loading rows by LOAD DATA LOCAL INFILE from memory, or by INSERT with many rows where the server does not allow that
//! (`local_infile`). In one transaction: a load that fails leaves the table as it was.

use nephoscope_runtime::Yield;

use crate::contract::bulk::{RowEncoder, RowSource};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::value::Value;
use crate::mysql::replies::{Link, Outcome, outcome, query, send};
use crate::mysql::startup::in_transaction;
use crate::mysql::types::{self, Misfit, field};
use crate::mysql::wire;

/// Rows are sent when so many bytes of them are ready: less than a server takes in one packet by default.
const CHUNK: usize = 256 * 1024;

/// A name as SQL takes it whatever it is.
fn quoted(name: &str) -> String {
    format!("`{}`", name.replace('`', "``"))
}

/// How a column's cells are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Form {
    /// As text.
    Plain,
    /// In hexadecimal digits: the file is text, and the column holds bytes.
    Hex,
    /// As text of a number: the text itself would be taken for the bits.
    Bits,
}

/// Loads rows and gives their number.
pub(super) async fn load(
    link: &mut Link,
    table: &str,
    columns: &[String],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let list = columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let forms = forms(link, &format!("SELECT {list} FROM {} LIMIT 0", quoted(table))).await?;
    // Within a transaction of the caller's the load is a part of that.
    let is_inner = in_transaction(link.status);
    query(link, if is_inner { "SAVEPOINT nephoscope_load" } else { "BEGIN" }).await?;
    let loaded = load_rows(link, table, columns, &forms, rows).await;
    let end = match (&loaded, is_inner) {
        (Ok(_), false) => "COMMIT",
        (Err(_), false) => "ROLLBACK",
        (Ok(_), true) => "RELEASE SAVEPOINT nephoscope_load",
        (Err(_), true) => "ROLLBACK TO SAVEPOINT nephoscope_load",
    };
    let is_gone = loaded.as_ref().is_err_and(|error| {
        matches!(error.class(), ErrorClass::ConnectionLost | ErrorClass::ShuttingDown)
            || crate::net::reach::is_time_out(error)
    });
    if is_gone {
        return loaded;
    }
    let ended = query(link, end).await;
    let count = loaded?;
    ended.map(|_| count)
}

/// How the cells of a query's columns are written.
async fn forms(link: &mut Link, sql: &str) -> Result<Vec<Form>, Error> {
    send(link, sql).await?;
    let header = link.next_good().await?;
    let mut fields = wire::Fields(&header);
    let count = usize::try_from(fields.number()?).unwrap_or(usize::MAX).min(usize::from(u16::MAX));
    if link.caches_metadata() && fields.u8()? == 0 {
        return Err(wire::garbage("a result without columns"));
    }
    let mut forms = Vec::new();
    for raw in link.definitions(count).await? {
        let definition = wire::definition(&raw)?;
        forms.push(match types::decode(types::kind(&definition, false), b"\xff") {
            _ if definition.kind == field::BIT => Form::Bits,
            Value::Bytes(_) => Form::Hex,
            _ => Form::Plain,
        });
    }
    let end = link.next_good().await?;
    if !wire::is_end(&end, link.deprecates_eof()) {
        return Err(wire::garbage("a row that was not asked for"));
    }
    link.status = wire::end(&end, link.deprecates_eof())?.status;
    Ok(forms)
}

async fn load_rows(
    link: &mut Link,
    table: &str,
    columns: &[String],
    forms: &[Form],
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let mut encoder = Encoder { table, columns, forms, is_file: true, out: Vec::new(), cells: 0, rows: 0 };
    send(link, &load_statement(table, columns, forms)).await?;
    match outcome(link).await {
        Ok((Outcome::File, _)) => by_file(link, &mut encoder, rows).await,
        Ok(_) => Err(wire::garbage("the answer to LOAD DATA")),
        // The server or the client library forbids local files: ER_NOT_ALLOWED_COMMAND, ER_CLIENT_LOCAL_FILES_DISABLED,
        // MariaDB's ER_LOAD_INFILE_CAPABILITY_DISABLED, TiDB's and proxies' "not supported".
        Err(error) if matches!(error.code(), "1148" | "3948" | "4166" | "1235" | "1290") => {
            encoder.is_file = false;
            by_insert(link, &mut encoder, rows).await
        }
        Err(error) => Err(error),
    }
}

fn load_statement(table: &str, columns: &[String], forms: &[Form]) -> String {
    let (mut list, mut set) = (Vec::new(), Vec::new());
    for (place, (name, form)) in columns.iter().zip(forms).enumerate() {
        let name = quoted(name);
        let function = match form {
            Form::Plain => {
                list.push(name);
                continue;
            }
            Form::Hex => format!("UNHEX(@nephoscope_{place})"),
            Form::Bits => format!("CAST(@nephoscope_{place} AS UNSIGNED)"),
        };
        list.push(format!("@nephoscope_{place}"));
        set.push(format!("{name} = {function}"));
    }
    // A backslash in a text means what `sql_mode` says; digits do not.
    let set = if set.is_empty() { String::new() } else { format!(" SET {}", set.join(", ")) };
    format!(
        "LOAD DATA LOCAL INFILE 'nephoscope' INTO TABLE {} CHARACTER SET utf8mb4 FIELDS TERMINATED BY X'09' \
         ESCAPED BY X'5C' LINES TERMINATED BY X'0A' ({}){set}",
        quoted(table),
        list.join(", ")
    )
}

/// Sends the rows as the content of the file that the server has asked for.
async fn by_file(link: &mut Link, encoder: &mut Encoder<'_>, rows: &mut dyn RowSource) -> Result<u64, Error> {
    let made = loop {
        let more = match rows.fill(encoder) {
            Ok(more) => more,
            Err(error) => break Err(error),
        };
        if !encoder.out.is_empty() && (!more || encoder.out.len() >= CHUNK) {
            link.packet(|out| out.extend_from_slice(&encoder.out));
            encoder.out.clear();
            link.channel.flush().await?;
            Yield::default().await;
        }
        if !more {
            break Ok(());
        }
    };
    // An empty packet is the file's end. What was loaded of a source that failed is rolled back.
    link.packet(|_| {});
    link.channel.flush().await?;
    let loaded = link.finish().await;
    made?;
    let loaded = loaded?;
    check_warnings(link).await?;
    if loaded != encoder.rows {
        return Err(Error::other(format!(
            "table {}: {} rows were sent, and the server took {loaded}",
            encoder.table, encoder.rows
        )));
    }
    Ok(loaded)
}

/// With LOCAL a server makes a warning of every error, and goes on without the row or with another value.
async fn check_warnings(link: &mut Link) -> Result<(), Error> {
    if link.warnings == 0 {
        return Ok(());
    }
    let warnings = query(link, "SHOW WARNINGS").await?;
    for row in warnings.rows {
        if let [Some(level), Some(code), Some(message)] = row.as_slice()
            && level != "Note"
        {
            return Err(crate::mysql::errors::error(code.parse().unwrap_or_default(), message.clone()));
        }
    }
    Ok(())
}

/// Inserts the rows, many with each statement.
async fn by_insert(
    link: &mut Link,
    encoder: &mut Encoder<'_>,
    rows: &mut dyn RowSource,
) -> Result<u64, Error> {
    let list = encoder.columns.iter().map(|name| quoted(name)).collect::<Vec<_>>().join(", ");
    let head = format!("INSERT INTO {} ({list}) VALUES ", quoted(encoder.table));
    loop {
        let more = rows.fill(encoder)?;
        if !encoder.out.is_empty() && (!more || encoder.out.len() >= CHUNK) {
            link.command(wire::command::QUERY, &[head.as_bytes(), &encoder.out].concat());
            encoder.out.clear();
            link.channel.flush().await?;
            link.finish().await?;
            check_warnings(link).await?;
        }
        if !more {
            return Ok(encoder.rows);
        }
    }
}

/// Encodes rows as a file or as the values of an INSERT.
struct Encoder<'a> {
    table: &'a str,
    columns: &'a [String],
    forms: &'a [Form],
    is_file: bool,
    out: Vec<u8>,
    cells: usize,
    rows: u64,
}

impl RowEncoder for Encoder<'_> {
    #[inline]
    fn push(&mut self, value: Value<'_>) -> Result<(), Error> {
        let place = self.cells;
        self.cells += 1;
        let Some(form) = self.forms.get(place) else {
            return Err(Error::other(format!("table {}: a row has more values than columns", self.table)));
        };
        let pushed =
            if self.is_file { self.push_cell(place, *form, value) } else { self.push_literal(place, value) };
        pushed.map_err(|why| {
            let column = self.columns.get(place).map_or("?", String::as_str);
            Error::other(format!("table {}, column {column}: {why}", self.table))
        })
    }

    #[inline]
    fn end_row(&mut self) -> Result<(), Error> {
        let (got, wanted) = (std::mem::take(&mut self.cells), self.forms.len());
        if got != wanted {
            return Err(Error::other(format!(
                "table {}: a row has {got} values for {wanted} columns",
                self.table
            )));
        }
        self.out.push(if self.is_file { b'\n' } else { b')' });
        self.rows += 1;
        Ok(())
    }
}

impl Encoder<'_> {
    fn push_cell(&mut self, place: usize, form: Form, value: Value<'_>) -> Result<(), Misfit> {
        if place > 0 {
            self.out.push(b'\t');
        }
        types::write_cell(value, form == Form::Hex, &mut self.out)
    }

    fn push_literal(&mut self, place: usize, value: Value<'_>) -> Result<(), Misfit> {
        let before: &[u8] = match (place, self.out.is_empty()) {
            (0, true) => b"(",
            (0, false) => b",(",
            _ => b",",
        };
        self.out.extend_from_slice(before);
        types::write_literal(value, &mut self.out)
    }
}
