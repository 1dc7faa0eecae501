//! The connection for set-up and checks.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};

use nephoscope_drivers::{Driver, Error, Interrupt, Settings, Table, open};
use nephoscope_runtime::Nanos;
use nephoscope_runtime::clock::SECOND;
use pyo3::prelude::*;

use crate::{errors, signals};

type Rows = Vec<Vec<Option<String>>>;

enum Question {
    /// SQL, and how long its answer may take.
    Query(String, Nanos),
    Facts,
}

enum Answer {
    Table(Result<Table, Error>),
    Facts(Result<Vec<(String, String)>, Error>),
}

/// The way to the connection's thread.
struct Line {
    questions: Sender<(Question, Sender<Answer>)>,
    interrupt: Interrupt,
    answer_timeout: Nanos,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

/// A connection that runs SQL outside the measured load. The connection stays on a thread of its own; this object
/// may be used from any.
///
/// Every wait looks for signals. Where a handler raises, the server is asked to give up what it is doing, and the
/// connection is closed.
#[pyclass(frozen)]
pub(crate) struct Admin(Mutex<Option<Line>>);

#[pymethods]
impl Admin {
    /// Connects to the endpoint of a URL. Raises `InputError` for a URL that cannot be used, `MeasurementError`
    /// where no connection can be made. A question that takes longer than `answer_timeout_s`, a day where that is left
    /// out, raises `MeasurementError`, and so does every one after it.
    #[new]
    #[pyo3(signature = (url, connect_timeout_s = 10.0, on_connect = Vec::new(), answer_timeout_s = None))]
    fn new(
        py: Python<'_>,
        url: &str,
        connect_timeout_s: f64,
        on_connect: Vec<String>,
        answer_timeout_s: Option<f64>,
    ) -> PyResult<Self> {
        let connect_timeout = nanos(connect_timeout_s);
        let mut settings = Settings { connect_timeout, on_connect, ..Settings::default() };
        if let Some(seconds) = answer_timeout_s {
            settings.answer_timeout = nanos(seconds);
        }
        let driver = open(url, &settings).map_err(|error| errors::input(py, &error.0))?;
        let name = driver.redacted_url();
        let (connected, connection) = channel();
        let (questions, asked) = channel();
        let (ends, ended) = channel();
        let work = move || {
            serve(&*driver, &connected, &asked);
            drop::<Sender<()>>(ends);
        };
        std::thread::Builder::new().name("admin".to_owned()).spawn(work)?;
        let Settings { interrupt, answer_timeout, .. } = settings;
        match signals::receive(py, connection).inspect_err(|_| interrupt.strike())? {
            Some(Ok(())) => Ok(Self(Mutex::new(Some(Line { questions, interrupt, answer_timeout, ended })))),
            Some(Err(error)) => Err(errors::failed(py, &format!("{name}: {error}"))),
            None => Err(errors::failed(py, &format!("{name}: the connection's thread died"))),
        }
    }

    /// Runs one or several statements and gives the last result: the columns' names, and rows of texts. Raises
    /// `MeasurementError` with what the server said, or where the answer takes longer than `answer_timeout_s`, if that
    /// is given, or than the connection's.
    #[pyo3(signature = (sql, answer_timeout_s = None))]
    fn query(
        &self,
        py: Python<'_>,
        sql: String,
        answer_timeout_s: Option<f64>,
    ) -> PyResult<(Vec<String>, Rows)> {
        let question = |usual| Question::Query(sql, answer_timeout_s.map_or(usual, nanos));
        match self.ask(py, question)? {
            Answer::Table(Ok(table)) => Ok((table.columns, table.rows)),
            Answer::Table(Err(error)) => Err(errors::failed(py, &error.to_string())),
            Answer::Facts(_) => Err(errors::failed(py, "the connection gave the wrong answer")),
        }
    }

    /// What a manifest should say of the server: names and values.
    fn server_facts(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        match self.ask(py, |_| Question::Facts)? {
            Answer::Facts(Ok(facts)) => Ok(facts),
            Answer::Facts(Err(error)) => Err(errors::failed(py, &error.to_string())),
            Answer::Table(_) => Err(errors::failed(py, "the connection gave the wrong answer")),
        }
    }

    /// Ends the connection, when the thread has said good-bye to the server; harmless if it has ended.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let Some(Line { questions, interrupt, ended, .. }) = self.line().take() else { return Ok(()) };
        drop(questions);
        signals::receive(py, ended).map(drop).inspect_err(|_| interrupt.strike())
    }
}

/// A time limit, from a millisecond to an hour.
fn nanos(seconds: f64) -> u64 {
    (seconds.clamp(0.001, 3600.0) * SECOND as f64) as u64
}

/// Connects, says what came of it, and answers questions until nobody has any. Who asked may have gone away.
fn serve(
    driver: &dyn Driver,
    connected: &Sender<Result<(), Error>>,
    asked: &Receiver<(Question, Sender<Answer>)>,
) {
    let mut admin = match driver.admin() {
        Ok(admin) => admin,
        Err(error) => return drop(connected.send(Err(error))),
    };
    let _ = connected.send(Ok(()));
    while let Ok((question, answer)) = asked.recv() {
        let _ = answer.send(match question {
            Question::Query(sql, limit) => {
                admin.limit_answers(limit);
                Answer::Table(admin.query(&sql))
            }
            Question::Facts => Answer::Facts(admin.server_facts()),
        });
    }
}

impl Admin {
    fn line(&self) -> MutexGuard<'_, Option<Line>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks; the question is made with the connection's own time limit.
    fn ask(&self, py: Python<'_>, question: impl FnOnce(Nanos) -> Question) -> PyResult<Answer> {
        let closed = || errors::failed(py, "the connection is closed");
        let (reply, answer) = channel();
        // Held no longer than this: other threads may ask, too, and are answered in their turn.
        let sent =
            self.line().as_ref().map(|line| line.questions.send((question(line.answer_timeout), reply)));
        sent.ok_or_else(closed)?.map_err(|_| closed())?;
        let answered = signals::receive(py, answer).inspect_err(|_| self.give_up(py))?;
        answered.ok_or_else(closed)
    }

    /// Leaves the connection, and whatever it waits for.
    fn give_up(&self, py: Python<'_>) {
        let line = self.line().take();
        if let Some(Line { questions, interrupt, ended, .. }) = line {
            interrupt.strike();
            drop(questions);
            signals::await_end(py, ended);
        }
    }
}
