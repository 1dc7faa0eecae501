//! The connection for set-up and checks.

use std::sync::Mutex;
use std::sync::mpsc::{Receiver, Sender, channel};

use nephoscope_drivers::{Error, Settings, Table, open};
use nephoscope_runtime::clock::SECOND;
use pyo3::prelude::*;

use crate::errors;

type Rows = Vec<Vec<Option<String>>>;

enum Question {
    Query(String),
    Facts,
}

enum Answer {
    Connected(Result<(), Error>),
    Table(Result<Table, Error>),
    Facts(Result<Vec<(String, String)>, Error>),
}

struct Line {
    questions: Sender<Question>,
    answers: Receiver<Answer>,
}

/// A connection that runs SQL outside the measured load. The connection stays on a thread of its own; this object
/// may be used from any.
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
        let (questions, asked) = channel();
        let (answered, answers) = channel();
        let name = driver.redacted_url();
        let work = move || {
            let mut admin = match driver.admin() {
                Ok(admin) => admin,
                Err(error) => return drop(answered.send(Answer::Connected(Err(error)))),
            };
            let mut answer = Answer::Connected(Ok(()));
            // Ends when the other side is gone, or asks no more.
            while answered.send(answer).is_ok() {
                answer = match asked.recv() {
                    Ok(Question::Query(sql)) => Answer::Table(admin.query(&sql)),
                    Ok(Question::Facts) => Answer::Facts(admin.server_facts()),
                    Err(_) => return,
                };
            }
        };
        std::thread::Builder::new().name("admin".to_owned()).spawn(work)?;
        let line = Mutex::new(Some(Line { questions, answers }));
        match py.detach(|| line.lock().ok()?.as_ref()?.answers.recv().ok()) {
            Some(Answer::Connected(Ok(()))) => Ok(Self(line)),
            Some(Answer::Connected(Err(error))) => Err(errors::failed(py, &format!("{name}: {error}"))),
            _ => Err(errors::failed(py, &format!("{name}: the connection's thread died"))),
        }
    }

    /// Runs one or several statements and gives the last result: the columns' names, and rows of texts. Raises
    /// `MeasurementError` with what the server said.
    fn query(&self, py: Python<'_>, sql: String) -> PyResult<(Vec<String>, Rows)> {
        match self.ask(py, Question::Query(sql))? {
            Answer::Table(Ok(table)) => Ok((table.columns, table.rows)),
            Answer::Table(Err(error)) => Err(errors::failed(py, &error.to_string())),
            _ => Err(errors::failed(py, "the connection gave the wrong answer")),
        }
    }

    /// What a manifest should say of the server: names and values.
    fn server_facts(&self, py: Python<'_>) -> PyResult<Vec<(String, String)>> {
        match self.ask(py, Question::Facts)? {
            Answer::Facts(Ok(facts)) => Ok(facts),
            Answer::Facts(Err(error)) => Err(errors::failed(py, &error.to_string())),
            _ => Err(errors::failed(py, "the connection gave the wrong answer")),
        }
    }

    /// Ends the connection; harmless if it has ended.
    fn close(&self, py: Python<'_>) {
        py.detach(|| {
            let line = self.0.lock().map(|mut line| line.take());
            if let Ok(Some(Line { questions, answers })) = line {
                drop(questions);
                // Waits until the thread has said good-bye to the server.
                while answers.recv().is_ok() {}
            }
        });
    }
}

/// A time limit, from a millisecond to an hour.
fn nanos(seconds: f64) -> u64 {
    (seconds.clamp(0.001, 3600.0) * SECOND as f64) as u64
}

impl Admin {
    fn ask(&self, py: Python<'_>, question: Question) -> PyResult<Answer> {
        let answer = py.detach(|| {
            let line = self.0.lock().ok()?;
            let line = line.as_ref()?;
            line.questions.send(question).ok()?;
            line.answers.recv().ok()
        });
        answer.ok_or_else(|| errors::failed(py, "the connection is closed"))
    }
}
