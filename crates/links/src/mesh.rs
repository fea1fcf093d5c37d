//! The links of one gateway to all others, over which words travel.
//!
//! Each gateway dials each other one when it has a word for it, and keeps the link. A word may be
//! lost: the rules repeat what matters. So nothing here waits for a peer: of words that cannot be
//! sent the oldest are dropped, and so are words that arrive faster than they are read.

use crate::identity::Identity;
use crate::link::Link;
use crate::places::{Bounds, Place, Places};
use crate::words::{Word, WordError};
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::{JoinHandle, JoinSet};
use tokio::time::sleep;
use weir_cluster::{GatewayId, Life};

/// Words to one gateway that were not sent yet. Beyond: the oldest is dropped.
pub const QUEUED_MAX: usize = 32;
/// Links that others have opened. Beyond: a further one is closed.
pub const LINKS_MAX: usize = 256;
/// Connections whose peer has not proved yet who it is. Beyond: a further one is closed.
const HANDSHAKES: Bounds = Bounds { total: 128, each: 16 };
/// Time between two attempts to open a link.
const RETRY: Duration = Duration::from_millis(500);
/// Time before the next attempt to accept a connection, if the system has no room for one.
const ACCEPT_RETRY: Duration = Duration::from_millis(100);

/// A word, and the life that the link has proved it to be from.
pub type Heard = (Life, Word);

/// The links of a gateway. All of them end when this is dropped.
#[derive(Debug)]
pub struct Mesh {
    own: Arc<Identity>,
    heard: mpsc::Sender<Heard>,
    peers: BTreeMap<GatewayId, Peer>,
    listening: Vec<Task>,
}

/// Another gateway.
#[derive(Debug)]
struct Peer {
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
    /// No links yet. What others say goes to `heard`; if that is full, it is dropped.
    #[must_use]
    pub fn new(own: Identity, heard: mpsc::Sender<Heard>) -> Self {
        let own = Arc::new(own);
        Self { own, heard, peers: BTreeMap::new(), listening: Vec::new() }
    }

    /// Accepts links of others at `listener` from now on. Called within a runtime of tokio.
    pub fn listen(&mut self, listener: TcpListener) {
        let accepting = accept(listener, Arc::clone(&self.own), self.heard.clone());
        self.listening.push(Task(tokio::spawn(accepting)));
    }

    /// Takes over where the other gateways are. Links to those that are gone or elsewhere end.
    /// Called within a runtime of tokio.
    pub fn follow(&mut self, addresses: &BTreeMap<GatewayId, SocketAddr>) {
        self.peers.retain(|gateway, peer| addresses.get(gateway) == Some(&peer.address));
        for (&gateway, &address) in addresses {
            if gateway == self.own.life().gateway || self.peers.contains_key(&gateway) {
                continue;
            }
            let queue = Arc::new(Queue::default());
            let place = (gateway, address);
            let sending =
                send_all(Arc::clone(&self.own), place, Arc::clone(&queue), self.heard.clone());
            let task = Task(tokio::spawn(sending));
            self.peers.insert(gateway, Peer { address, queue, _sending: task });
        }
    }

    /// Sends a word to a gateway, if it is known where that is. Does not wait.
    pub fn send(&self, to: GatewayId, word: Word) {
        if let Some(peer) = self.peers.get(&to) {
            peer.queue.add(word);
        }
    }
}

/// Sends the words of `queue` to a gateway, for ever.
async fn send_all(
    own: Arc<Identity>,
    (gateway, address): (GatewayId, SocketAddr),
    queue: Arc<Queue>,
    heard: mpsc::Sender<Heard>,
) {
    let mut told = None;
    loop {
        queue.filled().await;
        let ended = match Link::dial(&own, gateway, address).await {
            Ok(link) => {
                if told.take().is_some() {
                    tracing::info!(%gateway, %address, "the link to a gateway is open again");
                }
                send_over(link, &queue, &heard).await
            }
            Err(error) => Some(error.to_string()),
        };
        // A gateway that is away for long is told of once.
        if ended.is_some() && ended != told {
            let error = ended.as_deref().unwrap_or_default();
            tracing::warn!(%gateway, %address, %error, "no link to a gateway");
            told = ended;
        }
        sleep(RETRY).await;
    }
}

/// Sends words over `link` until it ends, and hears what comes back. Returns the reason, unless the
/// peer has closed the link.
async fn send_over(mut link: Link, queue: &Queue, heard: &mpsc::Sender<Heard>) -> Option<String> {
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
                    if let Err(error) = hear(peer, &message, heard) {
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
    #[error("a word in the name of another gateway than {0}")]
    OtherName(Life),
}

/// Passes a message on, unless it is of a newer version or nobody reads.
fn hear(peer: Life, message: &[u8], heard: &mpsc::Sender<Heard>) -> Result<(), Wrong> {
    let word = match Word::decode(message) {
        Ok(word) if !is_own(peer, &word) => return Err(Wrong::OtherName(peer)),
        Ok(word) => word,
        Err(WordError::Newer(version)) => {
            tracing::debug!(%peer, %version, "ignored a word of a newer version");
            return Ok(());
        }
        Err(error) => return Err(Wrong::Word(error)),
    };
    if heard.try_send((peer, word)).is_err() {
        tracing::debug!(%peer, "dropped a word: too many have not been read");
    }
    Ok(())
}

/// Does `peer` speak for itself? A helper has the number of the gateway on its machine, and speaks
/// of that gateway's lives alone.
fn is_own(peer: Life, word: &Word) -> bool {
    match word {
        Word::Message(message) => message.from == peer,
        Word::Question { by, .. } => *by == peer,
        Word::Helper(word) => word.life.gateway == peer.gateway,
    }
}

/// Accepts links, for ever.
async fn accept(listener: TcpListener, own: Arc<Identity>, heard: mpsc::Sender<Heard>) {
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
        open.spawn(serve((tcp, from), Arc::clone(&own), held, heard.clone()));
    }
}

/// Hears what comes over an accepted connection until it ends.
async fn serve(
    (tcp, from): (TcpStream, SocketAddr),
    own: Arc<Identity>,
    (place, _permit): (Place, OwnedSemaphorePermit),
    heard: mpsc::Sender<Heard>,
) {
    let mut link = match Link::accept(&own, tcp).await {
        Ok(link) => link,
        Err(error) => {
            tracing::warn!(%from, %error, "refused a link");
            return;
        }
    };
    drop(place);
    let peer = link.peer();
    loop {
        match link.incoming.receive().await {
            Ok(Some(message)) => {
                if let Err(error) = hear(peer, &message, &heard) {
                    tracing::warn!(%peer, %error, "closed a link");
                    return;
                }
            }
            Ok(None) => return,
            Err(error) => {
                tracing::debug!(%peer, %error, "a link ended");
                return;
            }
        }
    }
}

#[cfg(test)]
mod tests;
