//! A session of a system behind HTTP: one request after the other over a connection that is kept.
//!
//! Requests are independent, and servers close connections that rest, or after so many requests. So a connection that
//! the server has closed between two requests is made anew, and the call goes on; one that breaks while a response is
//! due is lost, as that of any other protocol. Whether the call may be made again is the engine's to decide.

use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use nephoscope_runtime::clock;
use nephoscope_runtime::{Nanos, Runtime};

use crate::contract::added::{self, Added, Found as Placed, Places};
use crate::contract::driver::{Command, Connection, ConnectionState, LocalFuture, Reply, Want};
use crate::contract::error::{Error, ErrorClass};
use crate::contract::rows::{ResultIndex, Rows};
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::contract::verb::Action;
use crate::net::http::client::Client;
use crate::net::http::endpoint::Endpoint;
use crate::net::http::request::Method;
use crate::net::http::response::Limits;
use crate::net::http::service::{Found, Keyed, Service};

/// A call that is not answered.
struct Call {
    statement: usize,
    /// Whether its rows are wanted.
    keeps: bool,
    params: Params,
    method: Method,
    /// Where its first request ends in [`HttpSession::requests`].
    end: usize,
}

/// Where the first of the calls is.
enum Phase {
    /// Its next request has not been sent.
    Due,
    /// A connection is made for it.
    Connecting(LocalFuture<'static, Result<Client, Error>>),
    /// A response is due.
    Asked,
}

/// A connection to a service.
pub(crate) struct HttpSession<S: Service> {
    service: S,
    endpoint: Arc<Endpoint>,
    connect_timeout: Nanos,
    deadline: Nanos,
    client: Client,
    statements: Vec<Keyed<S::Own>>,
    places: Places,
    calls: VecDeque<Call>,
    /// The memory of calls that have ended.
    spare: Vec<Params>,
    /// The first requests of the calls, and how much of it has been sent.
    requests: Vec<u8>,
    sent: usize,
    /// A further request of the first call.
    further: Option<(Method, Vec<u8>)>,
    phase: Phase,
    /// How many requests of the first call have been answered.
    turn: u32,
    error: Option<Error>,
    lost: bool,
    reply: Reply,
    result: Option<ResultIndex>,
    count: u64,
}

impl<S: Service> HttpSession<S> {
    /// Connects within `connect_timeout`.
    pub(crate) async fn connect(
        runtime: &Runtime,
        service: S,
        endpoint: &Arc<Endpoint>,
        statements: &[Statement],
        connect_timeout: Nanos,
    ) -> Result<Self, Error> {
        let known =
            statements.iter().map(|statement| Keyed::of(&service, statement)).collect::<Result<_, _>>()?;
        let deadline = clock::now().saturating_add(connect_timeout);
        let client = Client::connect(runtime, endpoint, Limits::default(), deadline).await?;
        Ok(Self {
            service,
            endpoint: Arc::clone(endpoint),
            connect_timeout,
            deadline: Nanos::MAX,
            client,
            statements: known,
            places: Places::new(statements.len()),
            calls: VecDeque::with_capacity(8),
            spare: Vec::new(),
            requests: Vec::new(),
            sent: 0,
            further: None,
            phase: Phase::Due,
            turn: 0,
            error: None,
            lost: false,
            reply: Reply::default(),
            result: None,
            count: 0,
        })
    }

    fn execute(&mut self, place: usize, params: &Params, want: Want) -> Result<(), Error> {
        let Some(keyed) = self.statements.get(place) else { return Err(Statement::missing(place)) };
        keyed.check(params)?;
        let start = self.requests.len();
        let method = self.service.ask(keyed, params, &mut self.requests).inspect_err(|_| {
            self.requests.truncate(start);
        })?;
        let mut kept = self.spare.pop().unwrap_or_default();
        kept.clone_from(params);
        let end = self.requests.len();
        let keeps = want == Want::Rows;
        self.calls.push_back(Call { statement: place, keeps, params: kept, method, end });
        Ok(())
    }

    /// Makes a connection in place of the one that the server has closed.
    fn reconnect(&self) -> Phase {
        let (runtime, endpoint) = (self.client.runtime().clone(), Arc::clone(&self.endpoint));
        let deadline = self.deadline.min(clock::now().saturating_add(self.connect_timeout));
        Phase::Connecting(Box::pin(async move {
            Client::connect(&runtime, &endpoint, Limits::default(), deadline).await
        }))
    }

    /// Hands the next request of the first call to a connection that can be used; gives where the call is then.
    fn send(&mut self) -> Phase {
        if !self.client.is_usable() {
            return self.reconnect();
        }
        let method = match &mut self.further {
            Some((method, bytes)) if !bytes.is_empty() => {
                self.client.out().append(bytes);
                *method
            }
            _ => {
                let Some(call) = self.calls.front() else { return Phase::Due };
                self.client.out().extend_from_slice(&self.requests[self.sent..call.end]);
                self.sent = call.end;
                call.method
            }
        };
        self.client.begin(method);
        Phase::Asked
    }

    /// A response is there: ends the call, or has its next request sent. The error ends the connection.
    fn answered(&mut self, rows: &mut Rows) -> Result<(), Error> {
        let Some(call) = self.calls.front() else { return Ok(()) };
        let keyed = &self.statements[call.statement];
        let mut found = Found {
            rows,
            columns: &keyed.columns,
            keeps: call.keeps && matches!(keyed.verb.action, Action::Read | Action::Scan),
            result: &mut self.result,
            count: &mut self.count,
        };
        let (method, bytes) = self.further.get_or_insert_with(|| (Method::Get, Vec::new()));
        let told = (keyed, &call.params, self.turn);
        match self.service.answer(told, self.client.response(), &mut found, bytes) {
            Ok(Some(next)) => {
                *method = next;
                self.turn += 1;
                return Ok(());
            }
            Ok(None) => {
                found.begin();
                let (affected, result) = (self.count, self.result);
                self.reply = Reply { affected, result, ..Reply::default() };
            }
            Err(error) if error.class() == ErrorClass::ConnectionLost => return Err(error),
            Err(error) => {
                bytes.clear();
                self.error.get_or_insert(error);
            }
        }
        (self.turn, self.count, self.result) = (0, 0, None);
        if let Some(call) = self.calls.pop_front() {
            self.spare.push(call.params);
        }
        if self.calls.is_empty() {
            self.requests.clear();
            self.sent = 0;
        }
        Ok(())
    }

    fn lose(&mut self, reason: Error) -> Error {
        self.lost = true;
        self.error.take().unwrap_or(reason)
    }

    /// An error of the connection. A wait that has timed out goes on where it was.
    fn failed(&mut self, error: Error) -> Error {
        if error.class() == ErrorClass::StatementTimeout { error } else { self.lose(error) }
    }
}

impl<S: Service> Connection for HttpSession<S> {
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        match command {
            Command::Execute(place) => self.execute(place, params, want),
            _ => Err(Error::other(format!(
                "{} has no transactions of several statements; w:can \"transactions\" tells whether a system has",
                S::NAME
            ))),
        }
    }

    fn add(&mut self, statement: &Rc<Statement>, _alone: bool) -> Result<Added, Error> {
        let keyed = Keyed::of(&self.service, statement)?;
        Ok(match self.places.find(statement, self.calls.is_empty()) {
            Placed::Known(place) => Added::Ready(place),
            Placed::New(place) => {
                added::put(&mut self.statements, place, keyed);
                Added::Ready(place)
            }
            Placed::Full => Added::Full,
        })
    }

    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        if self.lost {
            return Poll::Ready(Err(Error::connection_lost("the connection was lost before")));
        }
        while !self.calls.is_empty() {
            match &mut self.phase {
                Phase::Due => self.phase = self.send(),
                Phase::Connecting(connecting) => match ready!(connecting.as_mut().poll(cx)) {
                    Ok(client) => {
                        self.client = client;
                        self.client.set_deadline(self.deadline);
                        self.phase = Phase::Due;
                    }
                    // Nothing of the call that changes anything has been sent.
                    Err(error) => return Poll::Ready(Err(self.lose(error.with_known_outcome()))),
                },
                Phase::Asked => {
                    let waited = ready!(self.client.poll_response(cx)).and_then(|()| self.answered(rows));
                    match waited {
                        Ok(()) => self.phase = Phase::Due,
                        Err(error) => return Poll::Ready(Err(self.failed(error))),
                    }
                }
            }
        }
        let reply = std::mem::take(&mut self.reply);
        Poll::Ready(self.error.take().map_or(Ok(reply), Err))
    }

    fn set_deadline(&mut self, deadline: Nanos) {
        self.deadline = deadline;
        self.client.set_deadline(deadline);
    }

    fn state(&self) -> ConnectionState {
        match () {
            () if self.lost => ConnectionState::Lost,
            () if !self.calls.is_empty() => ConnectionState::Waiting,
            () => ConnectionState::Idle,
        }
    }

    /// No request can be given up but by closing the connection.
    fn cancel(&self) -> LocalFuture<'static, ()> {
        Box::pin(async {})
    }
}
