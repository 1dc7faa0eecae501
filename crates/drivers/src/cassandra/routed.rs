//! A session with a connection to each node: what is sent goes to a node that has its row.
//!
//! One of the connections is its home: what has no partition key goes there, and what is added later. A flush goes to
//! one node as a whole, that of its first statement, so that the order of what is sent together is as it is on one
//! connection. The session ends with its home; where another node ends, the statement that it had fails, and those behind it
//! go elsewhere, until the node can be reached again.

use std::future::poll_fn;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::task::{Context, Poll};

use nephoscope_runtime::Runtime;
use nephoscope_runtime::clock::{self, Nanos};

use super::levels::Levels;
use super::machine::{Clock, Machine};
use super::ring::Ring;
use super::startup::{Endpoint, Link, NoCancel};
use super::token;
use crate::contract::added::Added;
use crate::contract::driver::{Command, Connection, ConnectionState, LocalFuture, Reply, Want};
use crate::contract::error::Error;
use crate::contract::rows::Rows;
use crate::contract::statement::Statement;
use crate::contract::value::Params;
use crate::net::reach::not_in_time;
use crate::net::session::Session;
use crate::net::settings::{Host, HostAddress};

/// A session has connections to so many nodes at most; beyond them a request may take a hop more.
const MOST_NODES: usize = 32;

/// A connection to one node.
pub(super) type Single = Session<Machine, NoCancel>;

/// What each connection of a session is made with.
pub(super) struct Making {
    pub(super) endpoint: Arc<Endpoint>,
    pub(super) on_connect: Vec<String>,
    pub(super) statements: Arc<[Statement]>,
    pub(super) levels: Levels,
    pub(super) clock: Clock,
}

impl Making {
    /// Sets up a connection, and has every statement prepared.
    pub(super) async fn session(&self, mut link: Link) -> Result<Single, Error> {
        link.set_up(&self.on_connect).await.map_err(not_in_time)?;
        let all = link.prepare(&self.statements, self.levels).await.map_err(not_in_time)?;
        let machine = Machine::new(all, self.levels, link.speech, self.clock.clone());
        Ok(Session::new(link.channel, machine, NoCancel))
    }

    /// Connects to one node.
    async fn open(self: Rc<Self>, runtime: Runtime, host: Host) -> Result<Single, Error> {
        let deadline = self.endpoint.deadline();
        let mut link = self.endpoint.reach(&runtime, &[&host], deadline).await?;
        link.channel.set_deadline(deadline);
        self.session(link).await
    }
}

/// What there is of a node.
enum Node {
    Open(Box<Single>),
    Opening(LocalFuture<'static, Result<Single, Error>>),
    /// There is no connection, and none is tried before this time.
    Closed(Nanos),
}

/// How connections to other nodes are made.
struct Opener {
    making: Rc<Making>,
    runtime: Runtime,
    /// The home, whose port and password are those of the others.
    home: Host,
}

impl Opener {
    /// Begins to connect to a node that has no connection, if it is time; one that is lost is closed.
    fn renew(&self, node: &mut Node, address: IpAddr) {
        match node {
            Node::Open(_) => *node = Node::Closed(self.making.endpoint.shared.close(address)),
            Node::Closed(until) if *until <= clock::now() => {
                let name = address.to_string();
                let host = Host { name, address: HostAddress::Ip(address), ..self.home.clone() };
                *node = Node::Opening(Box::pin(Rc::clone(&self.making).open(self.runtime.clone(), host)));
            }
            Node::Opening(_) | Node::Closed(_) => {}
        }
    }

    /// Goes on with connections that are being made; gives whether there are any.
    fn open(&self, nodes: &mut [Node], ring: &Ring, cx: &mut Context<'_>) -> bool {
        let mut opens = false;
        for (node, member) in nodes.iter_mut().zip(&ring.members) {
            let Node::Opening(opening) = node else { continue };
            match opening.as_mut().poll(cx) {
                Poll::Pending => opens = true,
                Poll::Ready(Ok(session)) => *node = Node::Open(Box::new(session)),
                Poll::Ready(Err(error)) => {
                    tracing::debug!(%error, "a node of the ring is not reached");
                    *node = Node::Closed(self.making.endpoint.shared.close(member.address));
                }
            }
        }
        opens
    }
}

/// The connections of a session.
pub(super) struct Routed {
    opener: Opener,
    ring: Arc<Ring>,
    /// In the order of the ring's members.
    nodes: Vec<Node>,
    /// Whether some are being connected to.
    opens: bool,
    home: usize,
    /// The one that has what was sent last.
    current: usize,
    /// The keyspace of each statement that has a partition key, by its place in the ring.
    keyspaces: Vec<Option<usize>>,
    key: Vec<u8>,
    /// Replicas have turns.
    turn: usize,
    deadline: Nanos,
}

impl Routed {
    /// Makes the connections to the other nodes of the home's data centre, as far as they can be reached.
    pub(super) async fn connect(making: Making, runtime: &Runtime, mut link: Link) -> Result<Self, Error> {
        let (host, deadline) = (link.host.clone(), making.endpoint.deadline());
        let (ring, home) = making.endpoint.shared.ring(&mut link).await.map_err(not_in_time)?;
        let session = making.session(link).await?;
        let statements = session.machine().statements().iter();
        let keyspaces = statements.map(|one| ring.keyspace(one.routed_in()?)).collect();
        let count = ring.members.len();
        let near = |place: &usize| ring.members[*place].centre == ring.members[home].centre;
        let wanted = (0..count).map(|step| (home + step) % count).filter(near).take(MOST_NODES);
        let mut nodes: Vec<Node> = (0..count).map(|_| Node::Closed(Nanos::MAX)).collect();
        let opener = Opener { making: Rc::new(making), runtime: runtime.clone(), home: host };
        for place in wanted {
            let address = ring.members[place].address;
            nodes[place] = Node::Closed(opener.making.endpoint.shared.opens(address));
            if place != home {
                opener.renew(&mut nodes[place], address);
            }
        }
        nodes[home] = Node::Open(Box::new(session));
        poll_fn(|cx| if opener.open(&mut nodes, &ring, cx) { Poll::Pending } else { Poll::Ready(()) }).await;
        let (key, turn) = (Vec::new(), home);
        Ok(Self { opener, ring, nodes, opens: false, home, current: home, keyspaces, key, turn, deadline })
    }

    /// The connection to a node that is open.
    fn at(&self, place: usize) -> Option<&Single> {
        match &self.nodes[place] {
            Node::Open(session) => Some(session),
            _ => None,
        }
    }

    fn session(&mut self) -> Result<&mut Single, Error> {
        match &mut self.nodes[self.current] {
            Node::Open(session) => Ok(session),
            _ => Err(Error::connection_lost("the connection was lost before")),
        }
    }

    fn is_waiting(&self) -> bool {
        self.at(self.current).is_some_and(|session| session.state() == ConnectionState::Waiting)
    }

    /// The keyspace of a command's row, whose key is written down, if it has one.
    fn keyspace(&mut self, command: Command, params: &Params) -> Option<usize> {
        let Command::Execute(place) = command else { return None };
        let keyspace = self.keyspaces.get(place).copied().flatten()?;
        let Node::Open(home) = &self.nodes[self.home] else { return None };
        let has_key = home.machine().statements().get(place)?.write_key(params, &mut self.key);
        has_key.then_some(keyspace)
    }

    /// The node that is to have a command: one with its row, or the home.
    fn choose(&mut self, command: Command, params: &Params) -> usize {
        let Some(keyspace) = self.keyspace(command, params) else { return self.home };
        self.turn = self.turn.wrapping_add(1);
        let Self { opener, ring, nodes, opens, turn, .. } = self;
        let replicas = ring.replicas(keyspace, token::of(&self.key));
        for step in 0..replicas.len() {
            let place = usize::from(replicas[turn.wrapping_add(step) % replicas.len()]);
            match &mut nodes[place] {
                Node::Open(session) if session.state() != ConnectionState::Lost => return place,
                // Without its home the session is lost.
                _ if place == self.home => {}
                node => {
                    opener.renew(node, ring.members[place].address);
                    *opens = true;
                }
            }
        }
        self.home
    }
}

impl Connection for Routed {
    #[inline]
    fn queue(&mut self, command: Command, params: &Params, want: Want) -> Result<(), Error> {
        if !self.is_waiting() {
            self.current = self.choose(command, params);
            let deadline = self.deadline;
            self.session()?.set_deadline(deadline);
        }
        self.session()?.queue(command, params, want)
    }

    fn add(&mut self, statement: &Rc<Statement>, alone: bool) -> Result<Added, Error> {
        if !self.is_waiting() {
            self.current = self.home;
        }
        if self.current != self.home {
            // Another node has what is queued.
            return Ok(Added::Full);
        }
        self.session()?.add(statement, alone)
    }

    #[inline]
    fn poll_replies(&mut self, cx: &mut Context<'_>, rows: &mut Rows) -> Poll<Result<Reply, Error>> {
        if self.opens {
            self.opens = self.opener.open(&mut self.nodes, &self.ring, cx);
        }
        self.session()?.poll_replies(cx, rows)
    }

    fn set_deadline(&mut self, deadline: Nanos) {
        self.deadline = deadline;
        if let Ok(session) = self.session() {
            session.set_deadline(deadline);
        }
    }

    fn state(&self) -> ConnectionState {
        let state = |place| self.at(place).map_or(ConnectionState::Lost, Connection::state);
        match (state(self.home), state(self.current)) {
            (ConnectionState::Lost, _) => ConnectionState::Lost,
            // The other nodes are there.
            (_, ConnectionState::Lost) => ConnectionState::Idle,
            (_, current) => current,
        }
    }

    fn cancel(&self) -> LocalFuture<'static, ()> {
        // As `NoCancel` says.
        Box::pin(async {})
    }
}
