//! What the fuzz target in `fuzz/` calls, and those of the systems behind HTTP; the tests replay the seeds.

use std::rc::Rc;

use nephoscope_runtime::Inbox;

use crate::contract::rows::Rows;
use crate::contract::statement::Statement;
use crate::contract::value::{Params, Value};
use crate::contract::verb::{Action, Verb};
use crate::net::http::service::{Found, Keyed, Service};
use crate::net::http::{Limits, Method, Reader, Response};

const LIMITS: Limits = Limits { head: 2048, body: 2048 };

/// What a server sends: the first byte says how the rest is cut, and whether a HEAD is answered.
///
/// # Panics
/// If what is read depends on how the bytes are cut, or is longer than the limit.
pub fn response(data: &[u8]) {
    let Some((how, bytes)) = data.split_first() else { return };
    let method = if how & 1 == 1 { Method::Head } else { Method::Get };
    let whole = read(bytes, method, bytes.len().max(1));
    let pieces = read(bytes, method, usize::from(how >> 1) + 1);
    assert_eq!(whole, pieces);
    if let Ok(Some(response)) = whole {
        assert!(response.body.len() <= LIMITS.body && (200..600).contains(&response.status));
    }
}

/// The first response; the error's words.
fn read(bytes: &[u8], method: Method, piece: usize) -> Result<Option<Response>, String> {
    let (mut reader, mut inbox) = (Reader::new(LIMITS), Inbox::default());
    reader.begin(method);
    for piece in bytes.chunks(piece) {
        inbox.extend(piece);
        if reader.feed(&mut inbox).map_err(|error| error.message().to_owned())? {
            return Ok(Some(reader.take_response()));
        }
    }
    Ok(reader.end().then(|| reader.take_response()))
}

/// The verbs on a table of two fields, in the order of [`Action::ALL`].
fn verbs() -> Vec<Statement> {
    let of = |action: Action| {
        let fields =
            if action == Action::Delete { Vec::new() } else { ["a", "b"].map(str::to_owned).to_vec() };
        Statement::of_verb(action.name(), Verb { action, table: "t".to_owned(), key: "k".to_owned(), fields })
    };
    Action::ALL.map(of).into()
}

/// The most requests of one call: a server may say that there is more for ever.
const MOST_REQUESTS: u32 = 20;

/// What came of each call: the rows it touched and those it gave, or its error; and the requests that were made.
pub(crate) type Told = (Vec<Result<(u64, Vec<String>), String>>, String);

/// Makes a call of each verb, one after the other, of a system that sends these bytes.
///
/// # Panics
/// If a call gives another number of rows than it says.
pub(crate) fn converse<S: Service>(mut service: S, bytes: &[u8], piece: usize) -> Told {
    let (mut reader, mut inbox, mut pieces) = (Reader::new(LIMITS), Inbox::default(), bytes.chunks(piece));
    let (mut told, mut sent, mut rows) = (Vec::new(), Vec::new(), Rows::default());
    'calls: for statement in verbs().iter().cycle() {
        let Ok(keyed) = Keyed::of(&service, statement) else { panic!("the statements are verbs") };
        let values = [Value::Int(7), Value::Int(2), Value::Text(b"x\"")];
        let params: Params = values.into_iter().take(statement.params().len()).collect();
        let (mut result, mut count, columns) = (None, 0, Rc::clone(&keyed.columns));
        let Ok(mut method) = service.ask(&keyed, &params, &mut sent) else { panic!("the values fit") };
        for turn in 0..MOST_REQUESTS {
            reader.begin(method);
            loop {
                match reader.feed(&mut inbox) {
                    Ok(true) => break,
                    Ok(false) => {}
                    Err(_) => break 'calls,
                }
                match pieces.next() {
                    Some(piece) => inbox.extend(piece),
                    None if reader.end() => break,
                    None => break 'calls,
                }
            }
            let (rows, result, count) = (&mut rows, &mut result, &mut count);
            let mut found = Found { rows, columns: &columns, keeps: true, result, count };
            match service.answer((&keyed, &params, turn), reader.response(), &mut found, &mut sent) {
                Ok(Some(next)) => method = next,
                Ok(None) => break,
                Err(error) => {
                    told.push(Err(format!("{} {}", error.class().name(), error.code())));
                    continue 'calls;
                }
            }
        }
        let cell = |row, column| result.and_then(|result| rows.value(result, row, column));
        let shown = |row| Some(format!("{:?} {:?}", cell(row, 0)?, cell(row, 1)?));
        let given: Vec<String> = (0..).map_while(shown).collect();
        assert!(result.is_none() || given.len() as u64 == count, "{count} rows were told");
        told.push(Ok((count, given)));
    }
    (told, String::from_utf8_lossy(&sent).into_owned())
}

/// The same bytes of a system whole and in pieces: the first of them says how they are cut.
///
/// # Panics
/// If the outcome depends on how the bytes are cut.
pub(crate) fn in_pieces<S: Service>(service: impl Fn() -> S, data: &[u8]) {
    let Some((cut, bytes)) = data.split_first() else { return };
    let whole = converse(service(), bytes, bytes.len().max(1));
    assert_eq!(whole.0, converse(service(), bytes, usize::from(*cut) + 1).0);
}

/// Gives a target its seeds.
///
/// # Panics
/// If there are not three of them.
#[cfg(test)]
pub(crate) fn replay(target: &str, tried: fn(&[u8])) {
    let folder = format!("{}/../../fuzz/corpus/{target}", env!("CARGO_MANIFEST_DIR"));
    let seeds: Vec<_> = std::fs::read_dir(&folder).unwrap().collect();
    assert!(seeds.len() >= 3, "{folder} has {} seeds", seeds.len());
    for seed in seeds {
        tried(&std::fs::read(seed.unwrap().path()).unwrap());
    }
}

/// A response as a server sends it; each of the headers ends its line.
#[cfg(test)]
pub(crate) fn answer(status: u16, headers: &str, body: &str) -> String {
    format!("HTTP/1.1 {status} x\r\n{headers}Content-Length: {}\r\n\r\n{body}", body.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_seeds_are_replayed() {
        replay("http", super::response);
    }
}
