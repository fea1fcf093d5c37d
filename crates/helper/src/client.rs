//! The server's end of the link to the helper. Not here: when addresses are held, and what a note
//! means (`weir-cluster`).

use crate::stream::{Broken, Incoming, send};
use crate::wire::{Request, ToHelper, ToServer, Why, WireError};
use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::net::unix::OwnedWriteHalf;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;
use tokio::time::sleep;
use weir_address::{Numbered, Place, Report, Request as AddressRequest};
use weir_cluster::{GatewayId, Life, MachineId};
use weir_core::Mono;

/// Reports that were not read yet. Beyond: further ones are dropped. The server knows by itself
/// when a lease ends.
pub const REPORTS_MAX: usize = 1024;
/// Requests that were not sent yet. Beyond: callers wait.
const REQUESTS_MAX: usize = 64;
/// Time between two attempts while the process before has not ended.
const BUSY_RETRY: Duration = Duration::from_millis(50);

/// The link of a server to the helper of its machine. It is of one process: the helper takes the
/// process that made it for the life. When the last clone is dropped, the link ends, and the helper
/// removes all addresses: once the process has ended, or a second later. The life goes on until its
/// process ends.
///
/// No call has a limit of time: a helper that is stopped answers when it goes on.
#[derive(Clone, Debug)]
pub struct Client(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    messages: mpsc::Sender<Vec<u8>>,
    pending: Arc<Pending>,
    numbers: AtomicU32,
    task: JoinHandle<()>,
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A link to a helper that may or may not know the life.
#[derive(Debug)]
pub struct Attached {
    /// The link.
    pub client: Client,
    /// Its reports.
    pub reports: Reports,
    /// The helper knows the life. If it does not, it was started after the life was announced: it
    /// says nothing about the life to others, and refuses its notes.
    pub known: bool,
}

/// Reports about addresses that answer no request: [`Report::Ended`] and [`Report::Failed`].
#[derive(Debug)]
pub struct Reports(mpsc::Receiver<Report>);

impl Reports {
    /// The next report; none if the link has ended. All addresses are removed soon then, and the
    /// server is to attach itself anew ([`Client::attach`]).
    pub async fn next(&mut self) -> Option<Report> {
        self.0.recv().await
    }
}

/// A request that was not carried out, or a link that could not be opened.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// There is no helper at the socket, or this process may not connect to it.
    #[error("cannot connect to the helper of this machine: {0}")]
    Connect(#[source] io::Error),
    /// The helper refuses, in words.
    #[error("the helper of this machine refuses: {0}")]
    Refused(String),
    /// The helper was started after this life, and does not know it.
    #[error("the helper of this machine was started after this life of the gateway")]
    UnknownLife,
    /// The helper is of another version, or is none; in words.
    #[error("{0}")]
    Protocol(String),
    /// The link has ended: whether the request was carried out is not known. All addresses are
    /// removed soon.
    #[error("the link to the helper of this machine has ended")]
    Lost,
}

/// An answer of the helper.
#[derive(Debug)]
enum Answer {
    Done,
    Attached(bool),
    Refused(String, Why),
}

impl Answer {
    fn done(self) -> Result<(), ClientError> {
        match self {
            Self::Done | Self::Attached(_) => Ok(()),
            Self::Refused(_, Why::UnknownLife) => Err(ClientError::UnknownLife),
            Self::Refused(words, _) => Err(ClientError::Refused(words)),
        }
    }
}

impl Client {
    /// Connects to the helper at `socket` and announces that this process is `life`, which has the
    /// local state `machine`. From then on the helper says to other gateways that the life runs,
    /// and when the process has ended, that it has. Called once in a life, and again only if the
    /// call failed.
    ///
    /// Waits while the helper serves an earlier process that has not ended. Within a runtime of
    /// tokio.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Refused`] if the life is of another gateway than the
    /// helper's, or not later than the one that was announced before.
    pub async fn announce(
        socket: &Path,
        machine: MachineId,
        life: Life,
    ) -> Result<(Self, Reports), ClientError> {
        let (client, reports, answer) = open(socket, Request::Announce(machine, life)).await?;
        answer.done()?;
        Ok((client, reports))
    }

    /// Connects to the helper at `socket` for addresses, after the link to it has ended. The life
    /// is not announced: a helper that was started since stays silent about it.
    ///
    /// Waits while the helper serves an earlier process that has not ended. Within a runtime of
    /// tokio.
    ///
    /// # Errors
    /// [`ClientError`]; [`ClientError::Refused`] if the life is of another gateway than the
    /// helper's.
    pub async fn attach(
        socket: &Path,
        machine: MachineId,
        life: Life,
    ) -> Result<Attached, ClientError> {
        let (client, reports, answer) = open(socket, Request::Attach(machine, life)).await?;
        let known = matches!(answer, Answer::Attached(true));
        answer.done()?;
        Ok(Attached { client, reports, known })
    }

    /// Tells the helper that `life` of another gateway is being condemned. When this returns `Ok`,
    /// the helper has it; on an error, the change that would condemn is not to be sent.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn note(&self, life: Life) -> Result<(), ClientError> {
        self.request(Request::Note(life)).await
    }

    /// Tells the helper that this is over.
    ///
    /// # Errors
    /// [`ClientError`]; the note then stays, and the helper gives no word to that life.
    pub async fn unnote(&self, life: Life) -> Result<(), ClientError> {
        self.request(Request::Unnote(life)).await
    }

    /// Tells the helper the servers of the other gateways, and where they take links. It is to them
    /// that the helper says by itself that this life has ended. Replaces what was told before, also
    /// by an earlier life.
    ///
    /// # Errors
    /// [`ClientError`]; more than [`GATEWAYS_MAX`](weir_cluster::timing::GATEWAYS_MAX) servers end
    /// the link.
    pub async fn follow(
        &self,
        servers: BTreeMap<GatewayId, SocketAddr>,
    ) -> Result<(), ClientError> {
        self.request(Request::Follow(servers)).await
    }

    /// Holds an address until a moment ([`weir_address::now`]), as
    /// [`Hold`](AddressRequest::Hold) says.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn hold(&self, place: Place, until: Mono) -> Result<(), ClientError> {
        self.address(AddressRequest::Hold { place, until }).await
    }

    /// Holds all held addresses until this moment. Never shortens a lease.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn renew(&self, until: Mono) -> Result<(), ClientError> {
        self.address(AddressRequest::Renew { until }).await
    }

    /// Removes an address now, and ends its connections.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn release(&self, address: IpAddr) -> Result<(), ClientError> {
        self.address(AddressRequest::Release { address }).await
    }

    /// Lets nothing leave from an address any more, as [`Silence`](AddressRequest::Silence) says.
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn silence(&self, address: IpAddr) -> Result<(), ClientError> {
        self.address(AddressRequest::Silence { address }).await
    }

    /// Makes clients of an earlier machine reconnect, as [`Tickle`](AddressRequest::Tickle) says.
    /// There are at most so many at a time:
    /// [`TICKLES_PER_REQUEST_MAX`](weir_address::limits::TICKLES_PER_REQUEST_MAX).
    ///
    /// # Errors
    /// [`ClientError`]
    pub async fn tickle(
        &self,
        local: SocketAddr,
        clients: Vec<SocketAddr>,
    ) -> Result<(), ClientError> {
        self.address(AddressRequest::Tickle { local, clients }).await
    }

    async fn request(&self, request: Request) -> Result<(), ClientError> {
        let number = self.number();
        self.ask(number, ToHelper::Request(number, request)).await?.done()
    }

    async fn address(&self, message: AddressRequest) -> Result<(), ClientError> {
        let number = self.number();
        let bytes = Numbered { number, message }.frame();
        self.ask(number, ToHelper::Address(bytes)).await?.done()
    }

    /// A number for a request; 0 is that of messages without one.
    fn number(&self) -> u32 {
        loop {
            let number = self.0.numbers.fetch_add(1, Ordering::Relaxed);
            if number != 0 {
                return number;
            }
        }
    }

    async fn ask(&self, number: u32, message: ToHelper) -> Result<Answer, ClientError> {
        let (sender, answer) = oneshot::channel();
        self.0.pending.lock().insert(number, sender);
        if self.0.messages.send(message.encode()).await.is_err() {
            self.0.pending.lock().remove(&number);
            return Err(ClientError::Lost);
        }
        answer.await.map_err(|_| ClientError::Lost)
    }
}

/// Opens a link, with the answer to its first request. Waits while another process is served.
async fn open(socket: &Path, first: Request) -> Result<(Client, Reports, Answer), ClientError> {
    let mut told = false;
    loop {
        let (client, reports) = connect(socket).await?;
        let number = client.number();
        let message = ToHelper::Request(number, first.clone());
        match client.ask(number, message).await? {
            Answer::Refused(words, Why::Busy) => {
                if !told {
                    tracing::warn!(%words, "waiting for the helper of this machine");
                    told = true;
                }
                sleep(BUSY_RETRY).await;
            }
            answer => return Ok((client, reports, answer)),
        }
    }
}

async fn connect(socket: &Path) -> Result<(Client, Reports), ClientError> {
    let stream = UnixStream::connect(socket).await.map_err(ClientError::Connect)?;
    let (reading, writing) = stream.into_split();
    let mut incoming = Incoming::new(reading);
    // Before this the helper has no descriptor of this process: were it to end, and another to get
    // its number, the helper would take that one for this life.
    match next(&mut incoming).await.map_err(words)? {
        ToServer::Welcome => {}
        ToServer::Refused { words, .. } => return Err(ClientError::Refused(words)),
        _ => return Err(words(WireError::Malformed.into())),
    }
    let (messages, outgoing) = mpsc::channel(REQUESTS_MAX);
    let (told, reports) = mpsc::channel(REPORTS_MAX);
    let pending = Arc::new(Pending::default());
    let task = tokio::spawn(carry((incoming, writing), outgoing, Arc::clone(&pending), told));
    let numbers = AtomicU32::new(1);
    Ok((Client(Arc::new(Inner { messages, pending, numbers, task })), Reports(reports)))
}

/// Requests that wait for their answers, by their numbers.
#[derive(Debug, Default)]
struct Pending(Mutex<BTreeMap<u32, oneshot::Sender<Answer>>>);

impl Pending {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<u32, oneshot::Sender<Answer>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Gives an answer to the caller that waits for it, if there is one.
    fn answer(&self, number: u32, answer: Answer) {
        if let Some(caller) = self.lock().remove(&number) {
            // A caller that was dropped wants no answer.
            drop(caller.send(answer));
        }
    }
}

fn words(broken: Broken) -> ClientError {
    match broken {
        Broken::Io(_) | Broken::Closed => ClientError::Lost,
        other => ClientError::Protocol(other.to_string()),
    }
}

/// Carries messages in both directions until the link ends; then all calls fail.
async fn carry(
    (incoming, writing): (Incoming, OwnedWriteHalf),
    outgoing: mpsc::Receiver<Vec<u8>>,
    pending: Arc<Pending>,
    told: mpsc::Sender<Report>,
) {
    // Neither direction waits for the other: the helper may wait for us to read.
    let ended = tokio::select! {
        ended = receive(incoming, &pending, &told) => ended,
        ended = send_all(writing, outgoing) => ended,
    };
    if let Err(error) = ended {
        tracing::error!(%error, "the link to the helper of this machine has ended");
    }
    // The queue of requests is gone, so no caller can be added that would wait for ever.
    pending.lock().clear();
}

async fn next(incoming: &mut Incoming) -> Result<ToServer, Broken> {
    Ok(ToServer::decode(&incoming.next().await?)?)
}

async fn send_all(
    mut writing: OwnedWriteHalf,
    mut outgoing: mpsc::Receiver<Vec<u8>>,
) -> Result<(), Broken> {
    while let Some(message) = outgoing.recv().await {
        send(&mut writing, &message).await?;
    }
    Ok(())
}

async fn receive(
    mut incoming: Incoming,
    pending: &Pending,
    told: &mpsc::Sender<Report>,
) -> Result<(), Broken> {
    let mut addresses = weir_address::Frames::default();
    loop {
        match next(&mut incoming).await? {
            ToServer::Done(number) => pending.answer(number, Answer::Done),
            ToServer::Attached { number, known } => {
                pending.answer(number, Answer::Attached(known));
            }
            ToServer::Refused { number: 0, words, .. } => return Err(Broken::Told(words)),
            ToServer::Refused { number, words, why } => {
                pending.answer(number, Answer::Refused(words, why));
            }
            ToServer::Address(bytes) => {
                addresses.push(&bytes);
                while let Some(report) = addresses.report()? {
                    take_report(report, pending, told)?;
                }
            }
            ToServer::Welcome => return Err(WireError::Malformed.into()),
        }
    }
}

fn take_report(
    report: Report,
    pending: &Pending,
    told: &mpsc::Sender<Report>,
) -> Result<(), Broken> {
    match report {
        Report::Done { number } => pending.answer(number, Answer::Done),
        Report::Refused { number: 0, words } => return Err(Broken::Told(words)),
        Report::Refused { number, words } => {
            pending.answer(number, Answer::Refused(words, Why::Other));
        }
        report @ (Report::Ended { .. } | Report::Failed { .. }) => {
            if let Err(error) = told.try_send(report) {
                tracing::warn!(%error, "dropped a report about an address: nobody reads them");
            }
        }
    }
    Ok(())
}
