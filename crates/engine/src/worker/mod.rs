//! A worker: one thread with its runtime, its Lua states, its sessions and its recorder.

mod connecting;
mod course;
pub(crate) mod history;
pub(crate) mod recorder;
pub(crate) mod report;
pub(crate) mod rest;
mod session;
mod tenant;
mod turn;
pub(crate) mod watchdog;

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;

use nephoscope_drivers::Error;
use nephoscope_runtime::{Runtime, clock};

use crate::error::EngineError;
use crate::worker::course::Course;
use crate::worker::report::{Order, Report};
use crate::worker::session::Session;

pub(crate) use course::{TenantSetup, WorkerSetup};

/// Runs a worker to its end.
pub(crate) fn run(setup: WorkerSetup) {
    let (number, reports) = (setup.number, setup.reports.clone());
    match Worker::new(setup) {
        Ok(worker) => worker.end(worker.runtime().block_on(worker.life())),
        // Nobody listens any more if the run was given up.
        Err(error) => drop(reports.send((number, Report::NotReady(error)))),
    }
}

/// The course of a load, and the sessions that run it. Clones are the same worker.
#[derive(Clone)]
pub(crate) struct Worker(Rc<Course>);

impl Worker {
    /// A worker with nothing done yet: its [`Worker::life`] is to be run on its runtime, and then its [`Worker::end`].
    pub(crate) fn new(setup: WorkerSetup) -> Result<Self, EngineError> {
        let recruit = |course: &Rc<Course>, tenant: &_| {
            course.runtime.spawn(Session::new(course, tenant)?.run());
            Ok(())
        };
        Ok(Self(Course::new(setup, recruit)?))
    }

    pub(crate) fn runtime(&self) -> &Runtime {
        &self.0.runtime
    }

    /// Sessions hold the course and the runtime holds them; ending the tasks ends the circle. It also ends the
    /// transactions that are still in flight, so what they may have done is known only now.
    pub(crate) fn end(&self, life: Result<bool, EngineError>) {
        self.runtime().shut_down();
        self.0.history.flush();
        match life {
            Ok(true) => self.0.report(Report::Finished(Box::new(self.0.take_totals()))),
            Ok(false) => {}
            Err(error) => self.0.report(Report::NotReady(error)),
        }
    }

    /// Gets ready and runs the load to its end; `false` if the run was given up before it began.
    pub(crate) async fn life(&self) -> Result<bool, EngineError> {
        let course = &self.0;
        course.report(Report::Begun(course.watched()?));
        let sessions = self.get_ready().await?;
        course.report(Report::Ready);
        let Order::Start(origin) = course.first_order().await else { return Ok(false) };
        course.begin(origin).await;
        for session in sessions {
            self.runtime().spawn(session.run());
        }
        for tenant in course.tenants() {
            let course = Rc::clone(course);
            self.runtime().spawn(async move { course.pace(&tenant).await });
        }
        while !course.is_ending() {
            course.wait_for_boundary().await;
            course.advance(clock::now());
            self.runtime().failure().iter().for_each(|why| course.fail(&why.to_string()));
        }
        course.drain().await;
        Ok(true)
    }

    /// Applies the first phase and connects the sessions that it needs. The first session goes ahead alone: what
    /// is wrong with an endpoint, it finds out and says once.
    async fn get_ready(&self) -> Result<Vec<Session>, EngineError> {
        let first = self.0.first_change();
        let now = clock::now();
        let mut ready = Vec::new();
        for (index, tenant) in self.0.tenants().into_iter().enumerate() {
            if let Some(change) = first.as_ref().and_then(|change| change.tenants.get(index)) {
                tenant.change(change, now, now);
            }
            let name = tenant.plan.name.clone();
            let failed = |error: Error| EngineError::Failed(format!("tenant {name}: {error}"));
            let wanted = tenant.wanted(now);
            if wanted > 0 {
                let mut session = Session::new(&self.0, &tenant)?;
                session.prepare().await.map_err(failed)?;
                ready.push(session);
            }
            let rest = (1..wanted).map(|_| Session::new(&self.0, &tenant)).collect::<Result<Vec<_>, _>>()?;
            ready.extend(self.prepare_together(rest).await.map_err(failed)?);
        }
        Ok(ready)
    }

    /// Connects sessions side by side.
    async fn prepare_together(&self, sessions: Vec<Session>) -> Result<Vec<Session>, Error> {
        let count = sessions.len();
        let done = Rc::new(RefCell::new((Vec::with_capacity(count), None)));
        let waker = Rc::new(RefCell::new(None::<std::task::Waker>));
        for mut session in sessions {
            let (done, waker) = (Rc::clone(&done), Rc::clone(&waker));
            self.runtime().spawn(async move {
                let result = session.prepare().await;
                let mut done = done.borrow_mut();
                done.0.push(session);
                if let Err(error) = result {
                    done.1.get_or_insert(error);
                }
                if let Some(waker) = waker.borrow_mut().take() {
                    waker.wake();
                }
            });
        }
        poll_fn(|cx| {
            if done.borrow().0.len() == count || done.borrow().1.is_some() {
                return Poll::Ready(());
            }
            *waker.borrow_mut() = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
        let mut done = done.borrow_mut();
        match done.1.take() {
            Some(error) => Err(error),
            None => Ok(std::mem::take(&mut done.0)),
        }
    }
}
