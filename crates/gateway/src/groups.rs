//! The steps of groups: addresses and volumes, one step of a group after the other, each repeated
//! until it succeeds.

use crate::driver::Troubles;
use crate::limits::AGAIN;
use crate::parts::{Failure, Machine, Service};
use crate::queue::{Order, Turn};
use std::collections::BTreeMap;
use std::future::Future;
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::sleep;
use weir_cluster::{Came, Event, GroupId, Life, View};

/// A step of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Step {
    Adopt(Came),
    Address,
    Notify,
    Stop(Option<Life>),
    Resume,
}

/// The groups of one life.
pub(crate) struct Groups<M, S> {
    hands: Hands<M, S>,
    orders: BTreeMap<GroupId, Order>,
}

/// Everything that a step needs.
struct Hands<M, S> {
    machine: Arc<M>,
    service: Arc<S>,
    events: mpsc::Sender<Event>,
    troubles: Arc<Troubles>,
}

impl<M, S> Clone for Hands<M, S> {
    fn clone(&self) -> Self {
        Self {
            machine: Arc::clone(&self.machine),
            service: Arc::clone(&self.service),
            events: self.events.clone(),
            troubles: Arc::clone(&self.troubles),
        }
    }
}

impl<M: Machine, S: Service> Groups<M, S> {
    pub(crate) fn new(
        machine: Arc<M>,
        service: Arc<S>,
        events: mpsc::Sender<Event>,
        troubles: Arc<Troubles>,
    ) -> Self {
        Self { hands: Hands { machine, service, events, troubles }, orders: BTreeMap::new() }
    }

    /// Begins a step behind those of the group that were begun before.
    pub(crate) fn begin(&mut self, group: GroupId, step: Step, tasks: &mut JoinSet<()>) {
        let turn = self.orders.entry(group).or_default().turn();
        tasks.spawn(self.hands.clone().carry_out(turn, group, step));
    }

    /// Forgets groups that were withdrawn.
    pub(crate) fn follow(&mut self, view: &View) {
        self.orders.retain(|group, _| view.records.groups.contains_key(group));
    }
}

impl<M: Machine, S: Service> Hands<M, S> {
    async fn carry_out(self, turn: Turn, group: GroupId, step: Step) {
        turn.begin().await;
        let event = match step {
            Step::Adopt(came) => {
                self.serve(group, move |service| service.adopt(group, came)).await;
                Some(Event::Adopted(group))
            }
            Step::Address => {
                self.repeat(group, || self.machine.address(group)).await;
                Some(Event::Addressed(group))
            }
            Step::Notify => {
                self.notify(group).await;
                None
            }
            Step::Stop(to) => {
                self.repeat(group, || self.machine.unaddress(group)).await;
                self.serve(group, move |service| service.stop(group, to)).await;
                Some(Event::Stopped(group))
            }
            Step::Resume => {
                self.serve(group, move |service| service.resume(group)).await;
                self.repeat(group, || self.machine.address(group)).await;
                self.notify(group).await;
                None
            }
        };
        drop(turn);
        if let Some(event) = event {
            // Nobody listens after the end.
            let _ = self.events.send(event).await;
        }
    }

    async fn notify(&self, group: GroupId) {
        let notify = move |service: &S| {
            service.notify(group);
            Ok(())
        };
        self.serve(group, notify).await;
    }

    /// Calls the service off the tasks until it succeeds.
    async fn serve(
        &self,
        group: GroupId,
        call: impl Fn(&S) -> Result<(), Failure> + Clone + Send + 'static,
    ) {
        let calling = || {
            let (service, call) = (Arc::clone(&self.service), call.clone());
            async move {
                let called = spawn_blocking(move || call(&service)).await;
                called.unwrap_or_else(|error| Err(Failure(error.to_string())))
            }
        };
        self.repeat(group, calling).await;
    }

    /// Does a step until it succeeds.
    async fn repeat<F>(&self, group: GroupId, step: impl Fn() -> F)
    where
        F: Future<Output = Result<(), Failure>>,
    {
        while let Err(failure) = step().await {
            tracing::warn!(%group, %failure, "a step of a group of volumes failed, and is repeated");
            self.troubles.set(|troubles| troubles.groups.insert(group, failure.0));
            sleep(AGAIN).await;
        }
        self.troubles.set(|troubles| troubles.groups.remove(&group));
    }
}
