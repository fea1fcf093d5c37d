//! One life of a gateway, as the server has it in hand.

use crate::clock::now;
use crate::driver::{Asked, Driver, Troubles};
use crate::limits::{COMMANDS_MAX, EVENTS_MAX, WORDS_MAX};
use crate::parts::{Fencing, Machine, Service};
use crate::state::LocalState;
use crate::status::{End, Status};
use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::{Mutex, mpsc, oneshot, watch};
use tokio::task::JoinHandle;
use weir_cluster::{
    Cluster, Command, Event, Gateway as Row, GatewayId, Life, Refusal, SessionId, SharedRight,
    Start, Version,
};
use weir_etcd::{Connection, Keys, RecordsClient, RecordsError};
use weir_links::{Identity, KeyFile, Link, LinkError, Mesh, Stream};

/// Everything that a life of a gateway begins with.
pub struct Parts<M, F, S> {
    /// The life, from [`LocalState::begin`].
    pub life: Life,
    /// The local state.
    pub state: LocalState,
    /// The sessions with Ceph, all open. If one is lost, [`Gateway::blocklisted`] is called.
    pub sessions: Vec<SessionId>,
    /// etcd.
    pub connection: Connection,
    /// The keys of the cluster's records.
    pub keys: Keys,
    /// The secret of the cluster.
    pub key_file: KeyFile,
    /// The socket where this gateway takes links.
    pub listener: TcpListener,
    /// The other gateways and helpers, whenever they change.
    pub places: watch::Receiver<Places>,
    /// This machine.
    pub machine: Arc<M>,
    /// Ceph.
    pub fencing: Arc<F>,
    /// The volumes.
    pub service: Arc<S>,
    /// The right to reply, which the server asks before every send. The rules set it.
    pub right: Arc<SharedRight>,
}

/// The places where other gateways, and the helpers on their machines, take links. Those of this
/// gateway itself may be among them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Places {
    /// The gateways.
    pub gateways: BTreeMap<GatewayId, SocketAddr>,
    /// The helper on the machine of each gateway.
    pub helpers: BTreeMap<GatewayId, SocketAddr>,
}

/// A life that could not be begun.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// There is no certificate for links.
    #[error("making the certificate for links between gateways: {0}")]
    Identity(#[source] io::Error),
}

/// The records of a cluster cannot be used to begin a life.
#[derive(Debug, thiserror::Error)]
pub enum RecordedError {
    /// They cannot be read at present, or are damaged.
    #[error(transparent)]
    Records(RecordsError),
    /// They are newer than this program, for good.
    #[error(
        "the cluster was upgraded, and this program is older than its records ({0}): install the \
         version of Weir that the other gateways have; nothing was changed"
    )]
    Newer(String),
}

impl From<RecordsError> for RecordedError {
    fn from(error: RecordsError) -> Self {
        if error.is_newer() { Self::Newer(error.to_string()) } else { Self::Records(error) }
    }
}

/// A life of a gateway. It ends without a release when this is dropped.
#[derive(Debug)]
pub struct Gateway {
    life: Life,
    status: watch::Receiver<Arc<Status>>,
    commands: mpsc::Sender<Asked>,
    events: mpsc::Sender<Event>,
    /// Its end asks the driver to end the life.
    end: mpsc::Sender<()>,
    ended: watch::Receiver<Option<End>>,
    task: JoinHandle<()>,
    identity: Identity,
    questions: Mutex<mpsc::Receiver<Stream>>,
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Gateway {
    /// The number of the latest life in the record of `gateway`, for [`LocalState::begin`]; 0 if
    /// there is none.
    ///
    /// # Errors
    /// [`RecordedError`].
    pub async fn recorded(
        connection: &Connection,
        keys: &Keys,
        gateway: GatewayId,
    ) -> Result<u32, RecordedError> {
        let view = RecordsClient::new(connection.clone(), keys.clone()).view().await?;
        let (found, known) = (view.records.format, Version::CURRENT);
        if found > known {
            let what = format!("they are in version {found}, and it knows versions up to {known}");
            return Err(RecordedError::Newer(what));
        }
        Ok(view.records.gateways.get(&gateway).map_or(0, Row::number))
    }

    /// Begins the life, within a runtime of tokio. The runtime must not be kept busy by others for
    /// long: a life whose steps come late has no right to reply.
    ///
    /// # Errors
    /// [`StartError`].
    pub fn start<M: Machine, F: Fencing, S: Service>(
        parts: Parts<M, F, S>,
    ) -> Result<Self, StartError> {
        let Parts { life, state, sessions, connection, keys, key_file, right, .. } = parts;
        let identity = Identity::new(&key_file, life).map_err(StartError::Identity)?;
        let (heard, words) = mpsc::channel(WORDS_MAX);
        let mut mesh = Mesh::new(identity.clone(), heard.clone());
        let questions = Mutex::new(mesh.asked());
        mesh.listen(parts.listener);
        let helpers = Mesh::new(identity.clone(), heard);
        let start = Start { life, machine: state.machine(), speaks: Version::CURRENT, sessions };
        let cluster = Cluster::new(now(), start);
        let troubles = Arc::<Troubles>::default();
        let (events, news) = mpsc::channel(EVENTS_MAX);
        let (commands, asked) = mpsc::channel(COMMANDS_MAX);
        let (end, ending) = mpsc::channel(1);
        let (status, told) =
            watch::channel(Arc::new(troubles.status(&cluster, now(), &Arc::default())));
        let (over, ended) = watch::channel(None);
        let driver = Driver::new(
            (cluster, state),
            RecordsClient::new(connection, keys),
            (mesh, helpers),
            (parts.machine, parts.fencing, parts.service),
            (right, status, troubles),
            events.clone(),
        );
        let inputs = crate::driver::Inputs { news, words, asked, ending, places: parts.places };
        let task = tokio::spawn(async move {
            let ending = driver.run(inputs).await;
            over.send_replace(Some(ending));
        });
        let status = told;
        Ok(Self { life, status, commands, events, end, ended, task, identity, questions })
    }

    /// The life.
    #[must_use]
    pub fn life(&self) -> Life {
        self.life
    }

    /// The state of this gateway, after every step.
    #[must_use]
    pub fn status(&self) -> watch::Receiver<Arc<Status>> {
        self.status.clone()
    }

    /// Carries out an operator's command. It is done when it stands in the records.
    ///
    /// # Errors
    /// The refusal; [`Refusal::Unreachable`] too if the life has ended.
    pub async fn command(&self, command: Command) -> Result<(), Refusal> {
        let (answer, answered) = oneshot::channel();
        let asking = self.commands.send(Asked { command, answer }).await;
        asking.map_err(|_| Refusal::Unreachable)?;
        // The answer is lost with the life, and then it is not known.
        answered.await.unwrap_or(Err(Refusal::Unknown))
    }

    /// Opens a connection for a question to the gateway `to`, whose links are at `address`. Called
    /// within a runtime of tokio, which need not be that of the life.
    ///
    /// # Errors
    /// The errors of [`Link::ask`].
    pub async fn ask(&self, to: GatewayId, address: SocketAddr) -> Result<Stream, LinkError> {
        Link::ask(&self.identity, to, address).await
    }

    /// The next connection that another gateway has opened for a question; none after the end of
    /// the life.
    pub async fn asked(&self) -> Option<Stream> {
        self.questions.lock().await.recv().await
    }

    /// Tells the rules that Ceph refuses the sessions of this life, or has lost one: it ends.
    pub async fn blocklisted(&self) {
        // Nobody listens after the end.
        let _ = self.events.send(Event::Blocklisted).await;
    }

    /// Waits for the end of the life. Nothing is served any more then, and the process has to exit.
    pub async fn ended(&self) -> End {
        let mut ended = self.ended.clone();
        let over = ended.wait_for(Option::is_some).await;
        // Without an answer the task has ended before it could give one.
        over.map_or(None, |over| *over).unwrap_or(End::Asked)
    }

    /// Ends the life: no reply leaves from now on, the addresses are removed, the lease is
    /// released. Others take over the groups that are here as soon as the process has ended.
    pub async fn end(&self) -> End {
        // It is being ended if that was asked before.
        let _ = self.end.try_send(());
        self.ended().await
    }

    /// Moves all groups to other gateways, then ends the life. The gateway drains from then on,
    /// also in its next life, until [`Command::Drain`] ends that. A call that is dropped does not
    /// end the life.
    ///
    /// # Errors
    /// The gateway can't drain; the life goes on.
    pub async fn drain(&self) -> Result<End, Refusal> {
        let drain = Command::Drain { gateway: self.life.gateway, draining: true };
        self.command(drain).await?;
        let mut status = self.status();
        let is_empty = |status: &Arc<Status>| {
            let records = &status.view.records;
            let drains = records.gateways.get(&self.life.gateway).is_some_and(|row| row.draining);
            let mut homes = records.groups.values().filter_map(|group| group.home.at());
            drains && !homes.any(|(life, to)| life == self.life || to == Some(self.life))
        };
        // The life may end before.
        let _ = status.wait_for(is_empty).await;
        Ok(self.end().await)
    }
}
