//! The links of one gateway to all others and to the helpers on their machines, or those of a
//! helper to the gateways, over which words travel.
//!
//! Each dials another when it has a word for it, and keeps the link. A helper answers questions
//! over the link on which they came. Connections for questions of other gateways ([`Mesh::asked`])
//! come to the same address, and are passed on: none of their bytes go over a link. A word may be
//! lost: the rules repeat what matters. So nothing
//! here waits for a peer: of words that cannot be sent the oldest are dropped, and so are words
//! that arrive faster than they are read.

use crate::identity::Identity;
use crate::link::{Link, LinkError, Peer, Stream};
use crate::name::{Name, Role};
use crate::places::{Bounds, Place, Places};
use crate::words::{Word, WordError};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use weir_cluster::{GatewayId, Life};

/// Words to one gateway or helper that were not sent yet. Beyond: the oldest is dropped.
pub const QUEUED_MAX: usize = 32;
/// Connections for questions that were not taken up yet. Beyond: a further one is closed.
pub const QUESTIONS_MAX: usize = 16;
/// Links that others have opened. Beyond: a further one is closed.
pub const LINKS_MAX: usize = 256;
/// Connections from one address whose peer has not proved yet who it is. Beyond: a further one is
/// closed, whether it is for words or for questions.
pub const HANDSHAKES_ADDRESS_MAX: usize = 16;
/// Connections whose peer has not proved yet who it is. Beyond: a further one is closed.
const HANDSHAKES: Bounds = Bounds { total: 128, each: HANDSHAKES_ADDRESS_MAX };
/// Time between two attempts to open a link.
const RETRY: Duration = Duration::from_millis(500);
/// Time before the next attempt to accept a connection, if the system has no room for one.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A word, and the life that the link has proved it to be from; the number of a helper is 0.
pub type Heard = (Life, Word);

/// The answer of a helper to a word of a life, if it has one. It does not block.
pub type Reply = dyn Fn(Life, Word) -> Option<Word> + Send + Sync;

/// The use of words that arrive.
#[derive(Clone)]
enum Ears {
    /// They are kept for the gateway.
    Queue(mpsc::Sender<Heard>),
    /// They are answered by the helper.
    Reply(Arc<Reply>),
}

impl fmt::Debug for Ears {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Queue(_) => "Queue",
            Self::Reply(_) => "Reply",
        })
    }
}

/// The links of a gateway or a helper. All of them end when this is dropped.
#[derive(Debug)]
pub struct Mesh {
    own: Arc<Identity>,
    ears: Ears,
    asked: Option<mpsc::Sender<Stream>>,
    others: BTreeMap<Name, Other>,
    listening: Vec<Task>,
}

/// Another gateway, or a helper.
#[derive(Debug)]
struct Other {
    address: SocketAddr,
    queue: Arc<Queue>,
    _sending: Task,
}

/// A task that ends when this is dropped.
#[derive(Debug)]
struct Task(JoinHandle<()>);

impl Drop for Task {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Words that were not sent yet.
#[derive(Debug, Default)]
struct Queue {
    words: Mutex<VecDeque<Word>>,
    added: Notify,
}

impl Queue {
    fn words(&self) -> MutexGuard<'_, VecDeque<Word>> {
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, word: Word) {
        let mut words = self.words();
        if words.len() >= QUEUED_MAX {
            words.pop_front();
        }
        words.push_back(word);
        drop(words);
        self.added.notify_one();
    }

    /// Waits until there is a word. It stays.
    async fn filled(&self) {
        while self.words().is_empty() {
            self.added.notified().await;
        }
    }

    /// The next word. A call that is dropped takes none.
    async fn next(&self) -> Word {
        loop {
            if let Some(word) = self.words().pop_front() {
                return word;
            }
            self.added.notified().await;
        }
    }
}

impl Mesh {
    /// No links yet, of a gateway. What others say goes to `heard`; if that is full, it is dropped.
    #[must_use]
    pub fn new(own: Identity, heard: mpsc::Sender<Heard>) -> Self {
        Self::with(own, Ears::Queue(heard))
    }

    /// No links yet, of a helper. `reply` answers the questions of gateways.
    #[must_use]
    pub fn answering(own: Identity, reply: Arc<Reply>) -> Self {
        Self::with(own, Ears::Reply(reply))
    }

    fn with(own: Identity, ears: Ears) -> Self {
        let (own, asked) = (Arc::new(own), None);
        Self { own, ears, asked, others: BTreeMap::new(), listening: Vec::new() }
    }

    /// The connections that other gateways open for questions from now on, at listeners that are
    /// added later. Those that nobody takes up are closed.
    pub fn asked(&mut self) -> mpsc::Receiver<Stream> {
        let (sender, asked) = mpsc::channel(QUESTIONS_MAX);
        self.asked = Some(sender);
        asked
    }

    /// Accepts links of others at `listener` from now on. Called within a runtime of tokio.
    pub fn listen(&mut self, listener: TcpListener) {
        let uses = (self.ears.clone(), self.asked.clone());
        let accepting = accept(listener, Arc::clone(&self.own), uses);
        self.listening.push(Task(tokio::spawn(accepting)));
    }

    /// Takes over where the other gateways are. Links to those that are gone or elsewhere end.
    /// Called within a runtime of tokio.
    pub fn follow(&mut self, addresses: &BTreeMap<GatewayId, SocketAddr>) {
        self.follow_all(Role::Server, addresses);
    }

    /// As [`Self::follow`], for the helpers on the machines of the other gateways.
    pub fn follow_helpers(&mut self, addresses: &BTreeMap<GatewayId, SocketAddr>) {
        self.follow_all(Role::Helper, addresses);
    }

    fn follow_all(&mut self, role: Role, addresses: &BTreeMap<GatewayId, SocketAddr>) {
        self.others.retain(|name, other| {
            name.role != role || addresses.get(&name.gateway) == Some(&other.address)
        });
        for (&gateway, &address) in addresses {
            let name = Name { role, gateway };
            if gateway == self.own.life().gateway || self.others.contains_key(&name) {
                continue;
            }
            let queue = Arc::new(Queue::default());
            let place = (name, address);
            let sending =
                send_all(Arc::clone(&self.own), place, Arc::clone(&queue), self.ears.clone());
            let task = Task(tokio::spawn(sending));
            self.others.insert(name, Other { address, queue, _sending: task });
        }
    }

    /// Sends a word to a gateway, or a question to the helper on its machine, if it is known where
    /// that is. Does not wait.
    pub fn send(&self, to: GatewayId, word: Word) {
        let role = match word {
            Word::Question { .. } => Role::Helper,
            Word::Message(_) | Word::Helper(_) => Role::Server,
        };
        if let Some(other) = self.others.get(&Name { role, gateway: to }) {
            other.queue.add(word);
        }
    }

    /// Sends a word to all gateways whose places are known. Does not wait.
    pub fn send_to_all(&self, word: Word) {
        for name in self.others.keys().filter(|name| name.role == Role::Server) {
            self.send(name.gateway, word);
        }
    }
}

/// Sends the words of `queue` to a gateway or a helper, for ever.
async fn send_all(
    own: Arc<Identity>,
    (to, address): (Name, SocketAddr),
    queue: Arc<Queue>,
    ears: Ears,
) {
    let mut told = None;
    loop {
        queue.filled().await;
        let ended = match Link::dial(&own, to, address).await {
            Ok(link) => {
                if told.take().is_some() {
                    tracing::info!(%to, %address, "a link is open again");
                }
                send_over(&own, link, &queue, &ears).await
            }
            Err(error) => Some(error.to_string()),
        };
        // One that is away for long is told of once.
        if ended.is_some() && ended != told {
            let error = ended.as_deref().unwrap_or_default();
            tracing::warn!(%to, %address, %error, "no link");
            told = ended;
        }
        sleep(RETRY).await;
    }
}

/// Sends words over `link` until it ends, and hears what comes back. Returns the reason, unless the
/// peer has closed the link.
async fn send_over(own: &Identity, mut link: Link, queue: &Queue, ears: &Ears) -> Option<String> {
    let peer = link.peer();
    loop {
        tokio::select! {
            word = queue.next() => {
                if let Err(error) = link.outgoing.send(&word.encode()).await {
                    return Some(error.to_string());
                }
            }
            received = link.incoming.receive() => match received {
                Ok(Some(message)) => {
                    if let Err(error) = hear(own.role(), peer, &message, ears) {
                        return Some(error.to_string());
                    }
                }
                Ok(None) => return None,
                Err(error) => return Some(error.to_string()),
            }
        }
    }
}

/// A message that has no place on the link of its peer.
#[derive(Debug, thiserror::Error)]
enum Wrong {
    #[error(transparent)]
    Word(WordError),
    #[error("a word that is not for {0} to say")]
    NotIts(Name),
}

/// Passes a message on, unless it is of a newer version or nobody reads. Returns the answer, if
/// there is one.
fn hear(own: Role, peer: Peer, message: &[u8], ears: &Ears) -> Result<Option<Word>, Wrong> {
    let word = match Word::decode(message) {
        Ok(word) if !is_its(own, peer, &word) => return Err(Wrong::NotIts(peer.name())),
        Ok(word) => word,
        Err(WordError::Newer(version)) => {
            tracing::debug!(peer = %peer.name(), %version, "ignored a word of a newer version");
            return Ok(None);
        }
        Err(error) => return Err(Wrong::Word(error)),
    };
    match ears {
        Ears::Reply(reply) => return Ok(reply(peer.life, word)),
        Ears::Queue(heard) => {
            if heard.try_send((peer.life, word)).is_err() {
                tracing::debug!(peer = %peer.name(), "dropped a word: too many have not been read");
            }
        }
    }
    Ok(None)
}

/// Is it for `peer` to say this to somebody in the role `own`? A life speaks for itself, and a
/// helper of the lives of its gateway alone; helpers are asked, and gateways are told.
fn is_its(own: Role, peer: Peer, word: &Word) -> bool {
    let roles = (peer.role, own);
    match word {
        Word::Message(message) => {
            roles == (Role::Server, Role::Server) && message.from == peer.life
        }
        Word::Question { by, .. } => roles == (Role::Server, Role::Helper) && *by == peer.life,
        Word::Helper(word) => {
            roles == (Role::Helper, Role::Server) && word.life.gateway == peer.life.gateway
        }
    }
}

/// The uses of accepted connections: words are heard, and connections for questions passed on.
type Uses = (Ears, Option<mpsc::Sender<Stream>>);

/// Accepts links, for ever.
async fn accept(listener: TcpListener, own: Arc<Identity>, uses: Uses) {
    let (places, links) = (Places::new(HANDSHAKES), Arc::new(Semaphore::new(LINKS_MAX)));
    let mut open = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            Some(_) = open.join_next() => continue,
        };
        let (tcp, from) = match accepted {
            Ok(accepted) => accepted,
            Err(error) => {
                tracing::warn!(%error, "cannot accept a link");
                sleep(ACCEPT_RETRY).await;
                continue;
            }
        };
        let permit = Arc::clone(&links).try_acquire_owned();
        let (Some(place), Ok(permit)) = (places.take(from.ip()), permit) else {
            tracing::debug!(%from, "closed a connection: there are too many");
            continue;
        };
        let held = (place, permit);
        open.spawn(serve((tcp, from), Arc::clone(&own), held, uses.clone()));
    }
}

/// Hears words over an accepted connection, and answers them, until it ends.
async fn serve(
    (tcp, from): (TcpStream, SocketAddr),
    own: Arc<Identity>,
    (place, _permit): (Place, OwnedSemaphorePermit),
    (ears, asked): Uses,
) {
    let mut link = match Link::accept(&own, tcp).await {
        Ok(link) => link,
        Err(error) => {
            tracing::warn!(%from, %error, "refused a link");
            return;
        }
    };
    drop(place);
    let peer = link.peer().name();
    if link.is_for_questions() {
        if asked.is_none_or(|asked| asked.try_send(link.into_stream()).is_err()) {
            tracing::debug!(%peer, "closed a connection for questions: there are too many");
        }
        return;
    }
    match answer_all(own.role(), &mut link, &ears).await {
        Ok(()) => {}
        Err(Ended::Wrong(error)) => tracing::warn!(%peer, %error, "closed a link"),
        Err(Ended::Link(error)) => tracing::debug!(%peer, %error, "a link ended"),
    }
}

/// The reason for which an accepted link ended.
#[derive(Debug, thiserror::Error)]
enum Ended {
    #[error(transparent)]
    Wrong(#[from] Wrong),
    #[error(transparent)]
    Link(#[from] LinkError),
}

/// Hears and answers until the peer closes the link. A peer that does not take its answer gets no
/// other, and delays nobody else.
async fn answer_all(own: Role, link: &mut Link, ears: &Ears) -> Result<(), Ended> {
    let peer = link.peer();
    while let Some(message) = link.incoming.receive().await? {
        if let Some(word) = hear(own, peer, &message, ears)? {
            link.outgoing.send(&word.encode()).await?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests;
