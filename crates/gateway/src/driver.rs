//! The task that owns the rules: events go in, actions are begun in their order.

use crate::clock::now;
use crate::gateway::Places;
use crate::groups::{Groups, Step};
use crate::limits::AGAIN;
use crate::parts::{Failure, Fencing, Machine, Service};
use crate::queue::Order;
use crate::state::LocalState;
use crate::status::{End, Status};
use std::collections::{BTreeMap, BTreeSet};
use std::future::Future;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::{JoinSet, spawn_blocking};
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use weir_cluster::timing::{ANSWER_WITHIN, TICK};
use weir_cluster::{
    Action, Cluster, Command, Event, GroupId, LeaseRequest, Life, Records, Refusal, RequestId,
    Right, SessionId, SharedRight, Transaction, View,
};
use weir_core::Mono;
use weir_etcd::{Follower, RecordsClient};
use weir_links::{Heard, Mesh, VERSION_OLDEST, Word};

/// A command with the place for its answer.
pub(crate) struct Asked {
    pub(crate) command: Command,
    pub(crate) answer: oneshot::Sender<Result<(), Refusal>>,
}

/// Everything that comes to the rules.
pub(crate) struct Inputs {
    pub(crate) news: mpsc::Receiver<Event>,
    pub(crate) words: mpsc::Receiver<Heard>,
    pub(crate) asked: mpsc::Receiver<Asked>,
    pub(crate) ending: mpsc::Receiver<()>,
    pub(crate) places: watch::Receiver<Places>,
}

/// The owner of the rules of one life.
pub(crate) struct Driver<M, F, S> {
    cluster: Cluster,
    state: LocalState,
    records: RecordsClient,
    mesh: Mesh,
    helpers: Mesh,
    machine: Arc<M>,
    fencing: Arc<F>,
    groups: Groups<M, S>,
    right: PublishedRight,
    until: watch::Sender<Mono>,
    gateways: watch::Sender<Places>,
    status: watch::Sender<Arc<Status>>,
    troubles: Arc<Troubles>,
    events: mpsc::Sender<Event>,
    /// The newest view that the rules were given.
    view: Arc<View>,
    /// The order of what the helper is told about lives.
    lives: Order,
    answers: BTreeMap<u64, oneshot::Sender<Result<(), Refusal>>>,
    commands: u64,
    tasks: JoinSet<()>,
}

/// The right to reply as others see it. There is none when this is dropped, on whatever way.
struct PublishedRight(Arc<SharedRight>);

impl Drop for PublishedRight {
    fn drop(&mut self) {
        self.0.set(Right::NONE);
    }
}

/// Things that fail at present, for the status.
#[derive(Debug, Default)]
pub(crate) struct Troubles(Mutex<Trouble>);

#[derive(Clone, Debug, Default)]
pub(crate) struct Trouble {
    pub(crate) etcd: Option<String>,
    pub(crate) helper: Option<String>,
    pub(crate) groups: BTreeMap<GroupId, String>,
    pub(crate) fencing: BTreeMap<Life, String>,
    /// Blocklists that were requested and are not in force.
    requested: BTreeSet<Life>,
}

impl Troubles {
    fn all(&self) -> MutexGuard<'_, Trouble> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes something that fails, or does no longer.
    pub(crate) fn set<T>(&self, note: impl FnOnce(&mut Trouble) -> T) -> T {
        note(&mut self.all())
    }

    /// The state of a gateway at a step of its rules.
    pub(crate) fn status(&self, cluster: &Cluster, at: Mono, view: &Arc<View>) -> Status {
        let Trouble { etcd, helper, groups, fencing, requested: _ } = self.all().clone();
        Status {
            life: cluster.life(),
            at,
            right: cluster.right(),
            view: Arc::clone(view),
            replying: cluster.replying().collect(),
            etcd,
            groups,
            fencing,
            helper,
        }
    }
}

impl<M: Machine, F: Fencing, S: Service> Driver<M, F, S> {
    pub(crate) fn new(
        (cluster, state): (Cluster, LocalState),
        records: RecordsClient,
        (mesh, helpers): (Mesh, Mesh),
        (machine, fencing, service): (Arc<M>, Arc<F>, Arc<S>),
        (right, status, troubles): (Arc<SharedRight>, watch::Sender<Arc<Status>>, Arc<Troubles>),
        events: mpsc::Sender<Event>,
    ) -> Self {
        let groups =
            Groups::new(Arc::clone(&machine), service, events.clone(), Arc::clone(&troubles));
        Self {
            cluster,
            state,
            records,
            mesh,
            helpers,
            machine,
            fencing,
            groups,
            right: PublishedRight(right),
            until: watch::Sender::new(Mono::ZERO),
            gateways: watch::Sender::default(),
            status,
            troubles,
            events,
            view: Arc::default(),
            lives: Order::default(),
            answers: BTreeMap::new(),
            commands: 0,
            tasks: JoinSet::new(),
        }
    }

    /// Runs the rules until the life ends.
    pub(crate) async fn run(mut self, mut inputs: Inputs) -> End {
        let (seen, mut views) = watch::channel(None);
        let (events, troubles) = (self.events.clone(), Arc::clone(&self.troubles));
        self.tasks.spawn(follow(self.records.follow(), seen, events, troubles));
        self.keep_machine_informed();
        self.follow_places(&mut inputs.places);
        // Half of what the rules allow, so that one late tick does no harm.
        let mut ticks = interval(TICK / 2);
        ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let end = loop {
            let event = tokio::select! {
                _ = ticks.tick() => Event::Tick,
                Some(event) = inputs.news.recv() => event,
                Some((_, word)) = inputs.words.recv() => match word {
                    Word::Message(message) => Event::Message(message),
                    Word::Helper(word) => Event::Helper(word),
                    // A helper is asked at its own place.
                    Word::Question { .. } => continue,
                },
                Ok(()) = views.changed() => match views.borrow_and_update().clone() {
                    Some(view) => Event::View(view),
                    None => continue,
                },
                Some(asked) = inputs.asked.recv() => self.command(asked),
                Ok(()) = inputs.places.changed() => {
                    self.follow_places(&mut inputs.places);
                    continue;
                }
                Some(()) = inputs.ending.recv() => break End::Asked,
                Some(_) = self.tasks.join_next() => continue,
            };
            if let Some(end) = self.step(event) {
                break end;
            }
        };
        tracing::info!(life = %self.cluster.life(), %end, "this life of the gateway has ended");
        self.finish(end).await
    }

    /// One step of the rules: the right is published before the actions are begun.
    fn step(&mut self, event: Event) -> Option<End> {
        if let Event::View(view) = &event
            && view.revision >= self.view.revision
        {
            self.view = Arc::clone(view);
            self.groups.follow(view);
            self.troubles.set(|troubles| {
                troubles.fencing.retain(|life, _| view.fence(*life).is_some());
                troubles.groups.retain(|group, _| view.records.groups.contains_key(group));
            });
        }
        let at = now();
        let mut actions = self.cluster.step(at, event).into_iter();
        let right = self.cluster.right();
        self.right.0.set(right);
        self.until.send_if_modified(|until| std::mem::replace(until, right.end()) != right.end());
        let mut end = None;
        while let Some(action) = actions.next() {
            match action {
                Action::Note(life) => self.note(life, actions.next()),
                Action::End(reason) => end = Some(End::Rules(reason)),
                action => self.begin(action),
            }
        }
        self.status.send_replace(Arc::new(self.troubles.status(&self.cluster, at, &self.view)));
        end
    }

    fn begin(&mut self, action: Action) {
        match action {
            Action::Announce(life) => self.announce(life),
            Action::Lease { request, kind } => self.lease(request, kind),
            Action::Change { request, transaction } => {
                let change = self.change(request, transaction);
                self.tasks.spawn(change);
            }
            Action::Acknowledge(generation) => {
                let (records, gateway) = (self.records.clone(), self.cluster.life().gateway);
                self.tasks.spawn(async move {
                    if let Err(error) = records.acknowledge(gateway, generation).await {
                        tracing::debug!(%error, "a generation was not acknowledged");
                    }
                });
            }
            Action::Send { to, message } => self.mesh.send(to, Word::Message(message)),
            Action::AskHelper { gateway, asked } => {
                // The helper outlives servers, so it may be older than the records.
                let version = VERSION_OLDEST;
                let question = Word::Question { version, by: self.cluster.life(), at: asked };
                self.helpers.send(gateway, question);
            }
            Action::Unnote(life) => self.unnote(life),
            Action::Blocklist { life, sessions } => self.blocklist(life, sessions),
            Action::Adopt { group, came } => self.group(group, Step::Adopt(came)),
            Action::Address(group) => self.group(group, Step::Address),
            Action::Notify(group) => self.group(group, Step::Notify),
            Action::Stop { group, to } => self.group(group, Step::Stop(to)),
            Action::Resume(group) => self.group(group, Step::Resume),
            Action::Answer { number, answer } => {
                if let Some(asked) = self.answers.remove(&number) {
                    // Whoever asked may have gone.
                    let _ = asked.send(answer);
                }
            }
            // They were taken out by the caller.
            Action::Note(_) | Action::End(_) => {}
        }
    }

    fn command(&mut self, Asked { command, answer }: Asked) -> Event {
        self.commands += 1;
        self.answers.insert(self.commands, answer);
        Event::Command { number: self.commands, command }
    }

    fn group(&mut self, group: GroupId, step: Step) {
        self.groups.begin(group, step, &mut self.tasks);
    }

    fn follow_places(&mut self, places: &mut watch::Receiver<Places>) {
        let places = places.borrow_and_update().clone();
        self.mesh.follow(&places.gateways);
        self.helpers.follow(&places.helpers);
        self.gateways.send_replace(places);
    }

    /// Releases what others wait for. The right has ended before.
    async fn finish(mut self, end: End) -> End {
        self.tasks.shutdown().await;
        drop(self.right);
        let releasing = async {
            if let Err(error) = self.machine.hold_until(Mono::ZERO).await {
                tracing::warn!(%error, "addresses were not removed");
            }
            if let Err(error) = self.records.release().await {
                tracing::debug!(%error, "the lease was not released");
            }
        };
        if timeout(2 * ANSWER_WITHIN, releasing).await.is_err() {
            tracing::warn!("the lease was not released in time");
        }
        // The local state is locked until nothing is done any more.
        drop(self.state);
        end
    }
}

/// etcd.
impl<M: Machine, F: Fencing, S: Service> Driver<M, F, S> {
    fn lease(&mut self, request: RequestId, kind: LeaseRequest) {
        let (records, life) = (self.records.clone(), self.cluster.life());
        let (known, events) = (self.known(), self.events.clone());
        self.tasks.spawn(async move {
            match records.lease(kind, life, &known).await {
                Ok(answer) => report(&events, Event::Lease { request, answer }).await,
                Err(error) => tracing::debug!(%error, "no answer about the lease"),
            }
        });
    }

    /// Sends a change, and reports the answer if there is one.
    fn change(
        &self,
        request: RequestId,
        transaction: Transaction,
    ) -> impl Future<Output = ()> + Send + use<M, F, S> {
        let (records, known, events) = (self.records.clone(), self.known(), self.events.clone());
        async move {
            match records.change(&known, &transaction).await {
                Ok(applied) => report(&events, Event::Changed { request, applied }).await,
                Err(error) => tracing::debug!(%error, "no answer to a change"),
            }
        }
    }

    /// The records upon which the rules decide.
    fn known(&self) -> Arc<Records> {
        Arc::clone(&self.cluster.view().records)
    }
}

/// The helper on this machine, and Ceph.
impl<M: Machine, F: Fencing, S: Service> Driver<M, F, S> {
    fn announce(&mut self, life: Life) {
        let (turn, machine) = (self.lives.turn(), Arc::clone(&self.machine));
        let (id, events) = (self.state.machine(), self.events.clone());
        let troubles = Arc::clone(&self.troubles);
        self.tasks.spawn(async move {
            turn.begin().await;
            until_told(&troubles, || machine.announce(id, life)).await;
            drop(turn);
            report(&events, Event::Announced).await;
        });
    }

    /// Tells the helper that a life is being condemned, and sends the change that does so only if
    /// it knows.
    fn note(&mut self, life: Life, next: Option<Action>) {
        let Some(Action::Change { request, transaction }) = next else {
            tracing::error!(%life, "nothing but a change waits for a note");
            return;
        };
        let change = self.change(request, transaction);
        let (turn, machine) = (self.lives.turn(), Arc::clone(&self.machine));
        self.tasks.spawn(async move {
            let noting = async {
                turn.begin().await;
                machine.note(life).await
            };
            // Later the rules take the change for one that has no answer.
            let noted = timeout(ANSWER_WITHIN, noting).await;
            drop(turn);
            match noted {
                Ok(Ok(())) => change.await,
                Ok(Err(error)) => tracing::warn!(%life, %error, "a life is not condemned"),
                Err(_) => tracing::warn!(%life, "a life is not condemned: the helper is silent"),
            }
        });
    }

    fn unnote(&mut self, life: Life) {
        let (turn, machine) = (self.lives.turn(), Arc::clone(&self.machine));
        let troubles = Arc::clone(&self.troubles);
        self.tasks.spawn(async move {
            turn.begin().await;
            until_told(&troubles, || machine.unnote(life)).await;
        });
    }

    /// Requests a blocklist, unless the request before is still under way.
    fn blocklist(&mut self, life: Life, sessions: Vec<SessionId>) {
        if !self.troubles.set(|troubles| troubles.requested.insert(life)) {
            return;
        }
        let (fencing, events) = (Arc::clone(&self.fencing), self.events.clone());
        let troubles = Arc::clone(&self.troubles);
        self.tasks.spawn(async move {
            let calling = spawn_blocking(move || fencing.blocklist(life, &sessions));
            let called = calling.await.unwrap_or_else(|error| Err(Failure(error.to_string())));
            troubles.set(|troubles| {
                troubles.requested.remove(&life);
                troubles.fencing.remove(&life);
            });
            match called {
                Ok(barrier) => report(&events, Event::InForce { life, barrier }).await,
                Err(failure) => {
                    tracing::warn!(%life, %failure, "a blocklist is not in force");
                    troubles.set(|troubles| troubles.fencing.insert(life, failure.0));
                }
            }
        });
    }

    /// Tells the helper the newest end of the right and the places of gateways, from now on.
    fn keep_machine_informed(&mut self) {
        let (machine, troubles) = (Arc::clone(&self.machine), Arc::clone(&self.troubles));
        let mut until = self.until.subscribe();
        self.tasks.spawn(async move {
            while until.changed().await.is_ok() {
                until_told(&troubles, || {
                    let newest = *until.borrow();
                    machine.hold_until(newest)
                })
                .await;
            }
        });
        let (machine, troubles) = (Arc::clone(&self.machine), Arc::clone(&self.troubles));
        let mut places = self.gateways.subscribe();
        self.tasks.spawn(async move {
            while places.changed().await.is_ok() {
                until_told(&troubles, || {
                    let gateways = places.borrow().gateways.clone();
                    machine.follow(gateways)
                })
                .await;
            }
        });
    }
}

async fn report(events: &mpsc::Sender<Event>, event: Event) {
    // Nobody listens after the end.
    let _ = events.send(event).await;
}

/// Tells the helper something until it succeeds.
async fn until_told<T>(troubles: &Troubles, tell: impl Fn() -> T)
where
    T: Future<Output = Result<(), Failure>>,
{
    while let Err(failure) = tell().await {
        tracing::warn!(%failure, "the helper of this machine could not be told");
        troubles.set(|troubles| troubles.helper = Some(failure.0));
        sleep(AGAIN).await;
    }
    troubles.set(|troubles| troubles.helper = None);
}

/// Passes every new view on, and notes why there is none. It is done when there will be none, as
/// the records are newer than this program: the rules end the life then.
async fn follow(
    mut follower: Follower,
    seen: watch::Sender<Option<Arc<View>>>,
    events: mpsc::Sender<Event>,
    troubles: Arc<Troubles>,
) {
    loop {
        match follower.next().await {
            Ok(view) => {
                if troubles.set(|troubles| troubles.etcd.take()).is_some() {
                    tracing::info!("the records of the cluster can be read again");
                }
                seen.send_replace(Some(view));
            }
            Err(error) => {
                let words = error.to_string();
                // A lasting trouble is told once.
                if troubles.set(|troubles| troubles.etcd.replace(words.clone())) != Some(words) {
                    tracing::warn!(%error, "the records of the cluster cannot be read");
                }
                if error.is_newer() {
                    return report(&events, Event::Newer).await;
                }
            }
        }
    }
}
