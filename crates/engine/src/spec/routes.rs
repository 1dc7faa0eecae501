//! Where a tenant's transactions run: its endpoints by role, which may come and go while the load runs.

use std::collections::BTreeMap;
use std::sync::Arc;

use nephoscope_drivers::{Dialect, Driver, ErrorClasses, Settings, Statement};

use crate::error::EngineError;
use crate::spec::{Balance, EndpointsSpec, Reads, Role, Think};

/// What all workers know of a tenant.
pub(crate) struct TenantPlan {
    pub(crate) name: String,
    /// Where its transactions run in the beginning.
    pub(crate) routes: Routes,
    pub(crate) balance: Balance,
    /// As [`TenantSpec::writer_weight`](crate::spec::TenantSpec::writer_weight).
    pub(crate) writer_weight: f64,
    pub(crate) statements: Arc<[Statement]>,
    /// Each transaction only reads.
    pub(crate) read_only: Vec<bool>,
    /// Errors that each transaction expects.
    pub(crate) aborts_on: Vec<ErrorClasses>,
    /// The pauses before and after each transaction, where the load asks for the workload's own.
    pub(crate) pauses: Vec<[Think; 2]>,
    /// Sessions of an open load, over all workers.
    pub(crate) sessions: usize,
    /// Arrivals that may wait, over all workers.
    pub(crate) backlog: usize,
    pub(crate) seed: u64,
    /// The number of the tenant's first series. The transactions follow in their order, each where it runs in the
    /// beginning, and then those that only read, in the other role.
    pub(crate) first_series: usize,
    /// The series of each transaction by role; one that writes has the same in both.
    pub(crate) series: Vec<[usize; 2]>,
}

/// An endpoint: the same for whoever names the same URL in one run.
pub(crate) type Endpoint = Arc<dyn Driver>;

/// Whether two are one and the same endpoint.
pub(crate) fn is_same(one: &Endpoint, other: &Endpoint) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(one), Arc::as_ptr(other))
}

/// The endpoints of a tenant by role, and where it reads.
#[derive(Clone)]
pub(crate) struct Routes {
    endpoints: [Arc<[Endpoint]>; 2],
    reads: Reads,
}

impl Routes {
    /// The endpoints of a role.
    pub(crate) fn of(&self, role: Role) -> &Arc<[Endpoint]> {
        &self.endpoints[role as usize]
    }

    /// Where a transaction runs, of a session that reads in the role `own` where reads are spread over all endpoints:
    /// one that only reads goes to rw as long as there is no ro endpoint.
    #[inline]
    pub(crate) fn role(&self, read_only: bool, own: Role) -> Role {
        if !read_only || self.endpoints[Role::Ro as usize].is_empty() {
            return Role::Rw;
        }
        match self.reads {
            Reads::Rw => Role::Rw,
            Reads::Ro => Role::Ro,
            Reads::All => own,
        }
    }

    /// Which share of the sessions reads on rw, where reads are spread over all endpoints: 0 where they are not.
    pub(crate) fn writers_share(&self, writer_weight: f64) -> f64 {
        let [rw, ro] = self.endpoints.each_ref().map(|endpoints| endpoints.len() as f64);
        let weight = rw * writer_weight;
        if self.reads == Reads::All && ro > 0.0 { weight / (weight + ro) } else { 0.0 }
    }

    /// Takes other endpoints; tells those that it did not have before.
    pub(crate) fn change(&mut self, change: &RoutesChange) -> Vec<Endpoint> {
        let before = self.clone();
        for (endpoints, given) in self.endpoints.iter_mut().zip(&change.endpoints) {
            if let Some(given) = given {
                endpoints.clone_from(given);
            }
        }
        self.reads = change.reads.unwrap_or(self.reads);
        let now = self.endpoints.iter().flat_map(|endpoints| endpoints.iter());
        now.filter(|endpoint| !before.has(endpoint)).cloned().collect()
    }

    /// Whether it has an endpoint, in any role.
    pub(crate) fn has(&self, endpoint: &Endpoint) -> bool {
        self.endpoints.iter().flat_map(|endpoints| endpoints.iter()).any(|known| is_same(known, endpoint))
    }
}

/// Endpoints in the place of a tenant's; what is `None` stays.
#[derive(Clone, Default)]
pub(crate) struct RoutesChange {
    pub(crate) endpoints: [Option<Arc<[Endpoint]>>; 2],
    pub(crate) reads: Option<Reads>,
}

impl std::fmt::Debug for RoutesChange {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let urls = |endpoints: &Option<Arc<[Endpoint]>>| -> Option<Vec<String>> {
            endpoints.as_ref().map(|endpoints| endpoints.iter().map(|one| one.redacted_url()).collect())
        };
        let endpoints = self.endpoints.each_ref().map(urls);
        formatter
            .debug_struct("RoutesChange")
            .field("endpoints", &endpoints)
            .field("reads", &self.reads)
            .finish()
    }
}

/// Deals sessions to two groups so that of any so many that follow each other a share is the first group's: whether this
/// one is, and its index within its group.
pub(crate) fn deal(session: usize, share: f64) -> (bool, usize) {
    let dealt = |sessions: usize| (sessions as f64 * share).floor() as usize;
    let (before, after) = (dealt(session), dealt(session + 1));
    if after > before { (true, before) } else { (false, session - before) }
}

/// Opens endpoints, each URL once. A clone knows those that were opened before it.
#[derive(Clone)]
pub(crate) struct Opener {
    settings: Settings,
    known: BTreeMap<String, Endpoint>,
}

impl Opener {
    pub(crate) fn new(settings: &Settings) -> Self {
        Self { settings: settings.clone(), known: BTreeMap::new() }
    }

    /// Every endpoint that was opened.
    pub(crate) fn known(&self) -> impl Iterator<Item = &Endpoint> {
        self.known.values()
    }

    /// Opens the endpoints that a load begins with.
    pub(crate) fn begin(
        &mut self,
        rw: &[String],
        ro: &[String],
        reads: Reads,
    ) -> Result<Routes, EngineError> {
        Ok(Routes { endpoints: [self.open(rw)?, self.open(ro)?], reads })
    }

    fn open(&mut self, urls: &[String]) -> Result<Arc<[Endpoint]>, EngineError> {
        urls.iter().map(|url| self.one(url)).collect()
    }

    fn one(&mut self, url: &str) -> Result<Endpoint, EngineError> {
        if let Some(known) = self.known.get(url) {
            return Ok(Arc::clone(known));
        }
        let endpoint = nephoscope_drivers::open(url, &self.settings)?;
        self.known.insert(url.to_owned(), Arc::clone(&endpoint));
        Ok(endpoint)
    }

    /// Opens the endpoints of a change. They speak the dialect that the workload was read in.
    pub(crate) fn change(
        &mut self,
        spec: &EndpointsSpec,
        dialect: &'static Dialect,
    ) -> Result<RoutesChange, String> {
        if spec.rw.as_ref().is_some_and(Vec::is_empty) {
            return Err("endpoints.rw is empty; it must have at least one URL".to_owned());
        }
        let mut change = RoutesChange { reads: spec.reads, ..RoutesChange::default() };
        for (index, urls) in [&spec.rw, &spec.ro].into_iter().enumerate() {
            let Some(urls) = urls else { continue };
            let opened = self.open(urls).map_err(|error| error.to_string())?;
            if let Some(stray) = opened.iter().find(|endpoint| endpoint.dialect() != dialect) {
                return Err(format!(
                    "endpoints: {} speaks {}, and the load {}",
                    stray.redacted_url(),
                    stray.dialect().name,
                    dialect.name
                ));
            }
            change.endpoints[index] = Some(opened);
        }
        Ok(change)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn urls(names: &[&str]) -> Vec<String> {
        names.iter().map(|name| format!("sim://{name}")).collect()
    }

    fn opened() -> (Opener, Routes) {
        let mut opener = Opener::new(&Settings::default());
        let routes = opener.begin(&urls(&["a"]), &[], Reads::Ro).unwrap();
        (opener, routes)
    }

    #[test]
    fn reads_go_to_rw_as_long_as_there_is_no_ro() {
        let (mut opener, mut routes) = opened();
        assert_eq!([routes.role(true, Role::Rw), routes.role(false, Role::Ro)], [Role::Rw, Role::Rw]);
        let give = |ro: &[&str]| EndpointsSpec { ro: Some(urls(ro)), ..EndpointsSpec::default() };
        let change = opener.change(&give(&["b"]), Dialect::NONE).unwrap();
        assert_eq!(routes.change(&change).len(), 1, "b is new");
        assert_eq!([routes.role(true, Role::Rw), routes.role(false, Role::Ro)], [Role::Ro, Role::Rw]);
        assert!(routes.change(&change).is_empty(), "b is known");
        let none = opener.change(&give(&[]), Dialect::NONE).unwrap();
        assert!(routes.change(&none).is_empty());
        assert_eq!(routes.role(true, Role::Ro), Role::Rw);
        let stay = EndpointsSpec { reads: Some(Reads::Rw), ..give(&["b", "a"]) };
        let again = routes.change(&opener.change(&stay, Dialect::NONE).unwrap());
        assert_eq!(again.len(), 1, "b has been away");
        assert_eq!(routes.role(true, Role::Ro), Role::Rw);
        assert!(is_same(&routes.of(Role::Rw)[0], &routes.of(Role::Ro)[1]), "a URL is one endpoint");
    }

    #[test]
    fn where_reads_are_spread_each_session_reads_in_a_role_of_its_own() {
        let (mut opener, mut routes) = opened();
        let spread = EndpointsSpec { reads: Some(Reads::All), ..EndpointsSpec::default() };
        routes.change(&opener.change(&spread, Dialect::NONE).unwrap());
        assert_eq!([routes.role(true, Role::Ro), routes.role(false, Role::Ro)], [Role::Rw, Role::Rw]);
        assert_eq!(routes.writers_share(1.0), 0.0, "there is no choice");
        let two = EndpointsSpec { ro: Some(urls(&["b", "c"])), ..EndpointsSpec::default() };
        routes.change(&opener.change(&two, Dialect::NONE).unwrap());
        for own in Role::ALL {
            assert_eq!([routes.role(true, own), routes.role(false, own)], [own, Role::Rw]);
        }
        assert!((routes.writers_share(1.0) - 1.0 / 3.0).abs() < 1e-12);
        assert!((routes.writers_share(0.5) - 0.2).abs() < 1e-12);
    }

    #[test]
    fn sessions_are_dealt_by_weight_and_evenly_within_a_group() {
        for (share, nodes) in [(0.5, 1), (1.0 / 3.0, 2), (0.2, 4), (0.1, 3), (2.0 / 3.0, 1)] {
            for sessions in [7, 32, 1000] {
                let dealt: Vec<_> = (0..sessions).map(|session| deal(session, share)).collect();
                let first = dealt.iter().filter(|(is_first, _)| *is_first).count();
                assert!((first as f64 - share * sessions as f64).abs() < 1.0, "{first} of {sessions}");
                let at = |node: usize| {
                    dealt.iter().filter(|(first, index)| !first && index % nodes == node).count()
                };
                let each: Vec<_> = (0..nodes).map(at).collect();
                assert!(each.iter().max().unwrap() - each.iter().min().unwrap() <= 1, "{each:?}");
            }
        }
        assert!((0..100).all(|session| deal(session, 0.0) == (false, session)));
    }

    #[test]
    fn what_is_wrong_is_named() {
        let (mut opener, _) = opened();
        let empty = EndpointsSpec { rw: Some(Vec::new()), ..EndpointsSpec::default() };
        assert!(opener.change(&empty, Dialect::NONE).unwrap_err().contains("at least one"));
        let secret = "postgresql://me:hunter2@localhost/x".to_owned();
        let other = EndpointsSpec { ro: Some(vec![secret]), ..EndpointsSpec::default() };
        let error = opener.change(&other, Dialect::NONE).unwrap_err();
        assert!(error.contains("speaks postgres") && !error.contains("hunter2"), "{error}");
        let change = opener.change(&other, nephoscope_drivers::postgres::DIALECT).unwrap();
        assert!(!format!("{change:?}").contains("hunter2"));
    }
}
