//! The nodes of a ring, and which of them have the rows of a token.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use nephoscope_runtime::clock::{self, Nanos, SECOND};

use super::levels::Levels;
use super::startup::Link;
use super::tables::table;
use crate::contract::error::Error;
use crate::net::json::{Reader, Text};

/// For so long a ring that was read serves other sessions that connect.
const FRESH: Nanos = SECOND;
/// After so long a node that could not be reached is tried again.
const AGAIN: Nanos = 5 * SECOND;

/// What `system.local` tells of the node that is asked, and of its ring.
const LOCAL: &str = "SELECT rpc_address, broadcast_address, data_center, rack, toJson(tokens), partitioner \
    FROM system.local";
/// What it knows of the others.
const PEERS: &str = "SELECT rpc_address, peer, data_center, rack, toJson(tokens) FROM system.peers";
const KEYSPACES: &str = "SELECT keyspace_name, toJson(replication) FROM system_schema.keyspaces";
const PARTITIONER: &str = "Murmur3Partitioner";

/// A node, as the others know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Member {
    /// Where it listens for clients.
    pub(super) address: IpAddr,
    pub(super) centre: String,
    rack: String,
}

/// Where the copies of a keyspace's rows are.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Replication {
    /// `SimpleStrategy`: on so many nodes behind each other.
    Simple(usize),
    /// `NetworkTopologyStrategy`: on so many nodes of each data centre.
    Network(Vec<(String, usize)>),
    Other,
}

/// Which nodes have the rows of each token up to the one given, in the order of tokens.
pub(super) type Replicas = Vec<(i64, Box<[u16]>)>;

struct Keyspace {
    name: String,
    replication: Replication,
    replicas: OnceLock<Replicas>,
}

/// A ring as one of its nodes knows it.
#[derive(Default)]
pub(super) struct Ring {
    pub(super) members: Vec<Member>,
    /// Each token with its node, in the order of tokens.
    tokens: Vec<(i64, u16)>,
    keyspaces: Vec<Keyspace>,
}

/// What the sessions of an endpoint know together.
#[derive(Default)]
pub(super) struct Shared {
    ring: Mutex<Option<(Nanos, Arc<Ring>)>>,
    /// The nodes that could not be reached, and when they are tried again.
    closed: Mutex<BTreeMap<IpAddr, Nanos>>,
}

impl Shared {
    /// The ring of the node that a link leads to, and the node's place in it.
    pub(super) async fn ring(&self, link: &mut Link) -> Result<(Arc<Ring>, usize), Error> {
        let local = rows(link, LOCAL).await?;
        let [own] = &local[..] else { return Err(unread("system.local is not one row")) };
        let known = self.ring.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, ring)) = known.filter(|(read, _)| clock::now() < read + FRESH)
            && let Some(place) = ring.members.iter().position(|one| Some(one.address) == reached(own))
        {
            return Ok((ring, place));
        }
        let (peers, keyspaces) = (rows(link, PEERS).await?, rows(link, KEYSPACES).await?);
        let ring = Arc::new(Ring::of(own, &peers, &keyspaces)?);
        *self.ring.lock().unwrap_or_else(PoisonError::into_inner) = Some((clock::now(), Arc::clone(&ring)));
        Ok((ring, 0))
    }

    /// When a node may be connected to, as far as others have tried.
    pub(super) fn opens(&self, node: IpAddr) -> Nanos {
        let closed = self.closed.lock().unwrap_or_else(PoisonError::into_inner);
        closed.get(&node).copied().unwrap_or(0)
    }

    /// A node could not be reached, or its connection was lost; gives when it is tried again.
    pub(super) fn close(&self, node: IpAddr) -> Nanos {
        let until = clock::now().saturating_add(AGAIN);
        self.closed.lock().unwrap_or_else(PoisonError::into_inner).insert(node, until);
        until
    }
}

pub(super) type Row = Vec<Option<String>>;

async fn rows(link: &mut Link, cql: &str) -> Result<Vec<Row>, Error> {
    Ok(table(&link.query(cql, Levels::SET_UP.read).await?)?.rows)
}

fn cell(row: &Row, place: usize) -> Option<&str> {
    row.get(place)?.as_deref()
}

/// Where a node listens for clients: one that does so at every address is reached where the others reach it.
fn reached(row: &Row) -> Option<IpAddr> {
    let address = |place| cell(row, place).and_then(|text| text.parse::<IpAddr>().ok());
    address(0).filter(|at| !at.is_unspecified()).or_else(|| address(1))
}

fn text_of(text: Text<'_>) -> Result<String, Error> {
    let mut bytes = Vec::new();
    text.append_to(&mut bytes)?;
    String::from_utf8(bytes).map_err(|_| unread("a text is not UTF-8"))
}

fn unread(what: &str) -> Error {
    Error::other(format!("routing=token-aware: the node does not tell its ring as Cassandra does: {what}"))
}

impl Ring {
    /// Makes a ring of what its node says of itself, which is its first member, of the others and of the keyspaces.
    pub(super) fn of(own: &Row, peers: &[Row], keyspaces: &[Row]) -> Result<Self, Error> {
        let mut ring = Self::default();
        let partitioner = cell(own, 5).unwrap_or_default();
        if partitioner.rsplit('.').next() != Some(PARTITIONER) {
            return Err(Error::other(format!(
                "routing=token-aware needs a ring with {PARTITIONER}, and this one has {partitioner:?}; \
                 routing=fixed takes any"
            )));
        }
        // A node that is about to join or leave may be known in part; it is left out.
        if !ring.add(own)? {
            return Err(unread("system.local has no address or no tokens"));
        }
        for row in peers {
            ring.add(row)?;
        }
        ring.tokens.sort_unstable();
        for row in keyspaces {
            let (Some(name), Some(replication)) = (cell(row, 0), cell(row, 1)) else { continue };
            let (name, replication) = (name.to_owned(), Replication::read(replication)?);
            ring.keyspaces.push(Keyspace { name, replication, replicas: OnceLock::new() });
        }
        Ok(ring)
    }

    /// Adds a node; `false` where something of it is not known.
    fn add(&mut self, row: &Row) -> Result<bool, Error> {
        let (Some(address), Some(tokens)) = (reached(row), cell(row, 4)) else { return Ok(false) };
        let node = u16::try_from(self.members.len()).map_err(|_| unread("more than 65,536 nodes"))?;
        let mut found = Vec::new();
        if tokens != "null" {
            let mut reader = Reader::new(tokens.as_bytes());
            reader.array(|reader| {
                let token = text_of(reader.text()?)?.parse().map_err(|_| unread("a token is no number"))?;
                found.push((token, node));
                Ok(())
            })?;
        }
        if found.is_empty() {
            return Ok(false);
        }
        self.tokens.append(&mut found);
        let text = |place| cell(row, place).unwrap_or_default().to_owned();
        self.members.push(Member { address, centre: text(2), rack: text(3) });
        Ok(true)
    }

    /// The place of a keyspace, where it is known who has its rows.
    pub(super) fn keyspace(&self, name: &str) -> Option<usize> {
        let known = |one: &Keyspace| one.name == name && one.replication != Replication::Other;
        self.keyspaces.iter().position(known)
    }

    /// The nodes that have the rows of a token in a keyspace, of all data centres.
    pub(super) fn replicas(&self, keyspace: usize, token: i64) -> &[u16] {
        let keyspace = &self.keyspaces[keyspace];
        let replicas = keyspace.replicas.get_or_init(|| self.spread(&keyspace.replication));
        // A token has the rows from the one before it on; behind the last one the ring begins anew.
        let place = replicas.partition_point(|(end, _)| *end < token);
        replicas.get(place).or(replicas.first()).map_or(&[], |(_, nodes)| nodes)
    }

    fn spread(&self, replication: &Replication) -> Replicas {
        let from =
            |start: usize| self.tokens[start..].iter().chain(&self.tokens[..start]).map(|(_, node)| *node);
        let nodes = |start| match replication {
            Replication::Simple(factor) => {
                let (mut found, most) = (Vec::new(), self.members.len().min(*factor));
                for node in from(start) {
                    if found.len() == most {
                        break;
                    }
                    if !found.contains(&node) {
                        found.push(node);
                    }
                }
                found
            }
            Replication::Network(centres) => {
                let each = |(centre, factor): &(String, usize)| self.in_centre(centre, *factor, from(start));
                centres.iter().flat_map(each).collect()
            }
            Replication::Other => Vec::new(),
        };
        self.tokens.iter().enumerate().map(|(start, (token, _))| (*token, nodes(start).into())).collect()
    }

    /// The nodes of a data centre that come first, each in a rack of its own as far as there are racks
    /// (`org.apache.cassandra.locator.NetworkTopologyStrategy`).
    fn in_centre(&self, centre: &str, factor: usize, order: impl Iterator<Item = u16>) -> Vec<u16> {
        let here = || self.members.iter().filter(|one| one.centre == centre);
        let most = here().count().min(factor);
        let mut repeats = factor.saturating_sub(here().map(|one| &one.rack).collect::<BTreeSet<_>>().len());
        let (mut found, mut racks) = (Vec::new(), BTreeSet::new());
        for node in order {
            let member = &self.members[usize::from(node)];
            if found.len() == most {
                break;
            }
            if member.centre != centre || found.contains(&node) {
                continue;
            }
            if !racks.insert(&member.rack) {
                if repeats == 0 {
                    continue;
                }
                repeats -= 1;
            }
            found.push(node);
        }
        found
    }
}

impl Replication {
    /// Reads what a keyspace says of its replication, as JSON.
    fn read(json: &str) -> Result<Self, Error> {
        let (mut class, mut factors) = (String::new(), Vec::new());
        Reader::new(json.as_bytes()).object(|reader, name| {
            let (name, value) = (text_of(name)?, text_of(reader.text()?)?);
            if name == "class" {
                class = value;
            } else {
                // With transient replication it is `3/1`: the first number has all copies.
                let whole = value.split('/').next().and_then(|number| number.parse().ok());
                factors.push((name, whole.unwrap_or(0)));
            }
            Ok(())
        })?;
        Ok(match class.rsplit('.').next() {
            Some("SimpleStrategy") => {
                let factor = factors.iter().find(|(name, _)| name == "replication_factor");
                factor.map_or(Self::Other, |(_, factor)| Self::Simple(*factor))
            }
            Some("NetworkTopologyStrategy") => Self::Network(factors),
            _ => Self::Other,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(cells: &[&str]) -> Row {
        cells.iter().map(|cell| (*cell != "-").then(|| (*cell).to_owned())).collect()
    }

    const LOCAL: [&str; 6] = [
        "10.0.0.1",
        "10.0.0.1",
        "one",
        "a",
        r#"["-50", "40"]"#,
        "org.apache.cassandra.dht.Murmur3Partitioner",
    ];

    /// Four nodes in two data centres: `one` has the racks a and b, a with two nodes.
    fn ring(keyspaces: &[&str]) -> Ring {
        let peers = [
            row(&["0.0.0.0", "10.0.0.2", "one", "a", r#"["-40"]"#]),
            row(&["10.0.0.3", "10.1.0.3", "one", "b", r#"["0"]"#]),
            row(&["10.0.0.4", "10.0.0.4", "two", "a", r#"["20"]"#]),
            row(&["10.0.0.5", "10.0.0.5", "two", "a", "null"]),
            row(&["-", "-", "two", "a", r#"["7"]"#]),
        ];
        let keyspaces: Vec<Row> =
            keyspaces.iter().enumerate().map(|(number, of)| row(&[&format!("k{number}"), of])).collect();
        Ring::of(&row(&LOCAL), &peers, &keyspaces).unwrap()
    }

    #[test]
    fn the_rows_of_a_token_are_on_the_nodes_behind_it() {
        let ring = ring(&[
            r#"{"class": "org.apache.cassandra.locator.SimpleStrategy", "replication_factor": "2"}"#,
            r#"{"class": "NetworkTopologyStrategy", "one": "2", "two": "1"}"#,
            r#"{"class": "SimpleStrategy", "replication_factor": "9"}"#,
            r#"{"class": "org.apache.cassandra.locator.LocalStrategy"}"#,
        ]);
        let known: Vec<String> = ring.members.iter().map(|one| one.address.to_string()).collect();
        assert_eq!(known, ["10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"], "who has no tokens is not there");
        for (token, simple, network) in [
            (i64::MIN, [0, 1], [0, 2, 3]),
            (-50, [0, 1], [0, 2, 3]),
            (-49, [1, 2], [1, 2, 3]),
            (-40, [1, 2], [1, 2, 3]),
            (0, [2, 3], [2, 0, 3]),
            (1, [3, 0], [0, 2, 3]),
            (40, [0, 1], [0, 2, 3]),
            (41, [0, 1], [0, 2, 3]),
        ] {
            assert_eq!(ring.replicas(0, token), simple, "{token}");
            assert_eq!(ring.replicas(1, token), network, "{token}: a rack of its own for each");
        }
        assert_eq!(ring.replicas(2, 1), [3, 0, 1, 2], "there are not more nodes than there are");
        assert_eq!((ring.keyspace("k3"), ring.keyspace("other")), (None, None));
    }

    #[test]
    fn a_ring_that_is_another_is_refused_with_its_reason() {
        let told = |place: usize, cell: &str| {
            let mut own = row(&LOCAL);
            own[place] = Some(cell.to_owned());
            Ring::of(&own, &[], &[]).err().unwrap().to_string()
        };
        assert!(told(5, "org.apache.cassandra.dht.RandomPartitioner").contains("routing=fixed takes any"));
        assert!(told(4, r#"["x"]"#).contains("a token is no number"));
        assert!(told(4, "null").contains("no tokens"));
    }
}
