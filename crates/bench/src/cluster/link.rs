//! A connection to a peer: messages are sent from a bounded queue and received by a function, and a
//! peer that sends nothing for too long is lost. Both sides use it.

use super::clock::Clock;
use super::wire::{self, Kind, Message, WireError};
use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::Builder;
use std::time::Duration;
use weir_load::error::BenchError;

/// Messages that wait to be sent. A sender of what must arrive waits when they are so many; what
/// is only shown is dropped then.
const QUEUE: usize = 64;
/// Pause before a full queue is tried again.
const RETRY: Duration = Duration::from_millis(5);

/// Both directions of a connection, and how to end it.
pub struct Halves {
    /// The peer's messages.
    pub read: Box<dyn Read + Send>,
    /// The messages to the peer; dropping it tells that nothing more comes.
    pub write: Box<dyn Write + Send>,
    /// Ends the connection at once, whoever waits for it.
    pub close: Box<dyn Fn() + Send + Sync>,
}

/// The longest waits.
#[derive(Clone, Copy, Debug)]
pub struct Patience {
    /// A sign of life is sent where nothing else was for so long.
    pub alive: Duration,
    /// A peer is lost of which nothing was heard for so long.
    pub silence: Duration,
    /// From the launch of a worker until it has answered the greeting.
    pub greeting: Duration,
    /// From being told to stop until everything is reported, besides the drain of the loads.
    pub ending: Duration,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            alive: Duration::from_secs(1),
            silence: Duration::from_secs(15),
            greeting: Duration::from_secs(20),
            ending: Duration::from_secs(60),
        }
    }
}

/// An event from a peer.
pub(crate) enum Incoming<In> {
    /// A message, and what the own clock showed when it came.
    Message(u64, In),
    /// Nothing more will come, and why. Said once.
    Closed(String),
}

/// The receiver of a peer's messages, with the way to answer at once.
pub(crate) type Sink<Out, In> = Box<dyn Fn(&Outbox<Out>, Incoming<In>) + Send + Sync>;

/// The way to a peer. The connection is ended when it is dropped, after what was sent.
pub(crate) struct Link<Out> {
    outbox: Outbox<Out>,
}

/// Sends to a peer.
pub(crate) struct Outbox<Out> {
    queue: SyncSender<Item>,
    shared: Arc<Shared>,
    of: std::marker::PhantomData<fn(Out)>,
}

enum Item {
    Bytes(Vec<u8>),
    End,
}

struct Shared {
    clock: Clock,
    heard_ns: AtomicU64,
    closed: AtomicBool,
    close: Box<dyn Fn() + Send + Sync>,
}

impl<Out> Clone for Outbox<Out> {
    fn clone(&self) -> Self {
        Self { queue: self.queue.clone(), shared: Arc::clone(&self.shared), of: self.of }
    }
}

impl<Out: Message> Outbox<Out> {
    /// Sends what has to arrive; waits where much is waiting already.
    ///
    /// # Errors
    /// [`WireError`] if it can't be sent at all, or the peer is gone.
    pub(crate) fn send(&self, message: &Out) -> Result<(), WireError> {
        let mut item = Item::Bytes(wire::encode(message)?);
        while !self.shared.closed.load(Ordering::Acquire) {
            match self.queue.try_send(item) {
                Ok(()) => return Ok(()),
                Err(TrySendError::Disconnected(_)) => break,
                Err(TrySendError::Full(back)) => item = back,
            }
            std::thread::sleep(RETRY);
        }
        Err(WireError::Closed)
    }

    /// Sends what may get lost.
    pub(crate) fn offer(&self, message: &Out) {
        if let Ok(bytes) = wire::encode(message) {
            drop(self.queue.try_send(Item::Bytes(bytes)));
        }
    }

    /// Ends the connection at once.
    pub(crate) fn hang_up(&self) {
        (self.shared.close)();
    }
}

impl<Out> Drop for Link<Out> {
    fn drop(&mut self) {
        if self.outbox.queue.try_send(Item::End).is_err() {
            (self.outbox.shared.close)();
        }
    }
}

impl<Out: Message> Link<Out> {
    /// Speaks over `halves` from now on; `sink` gets what comes, on threads of its own.
    ///
    /// # Errors
    /// [`BenchError::Local`] if no thread can be started.
    pub(crate) fn open<In: Message>(
        halves: Halves,
        clock: Clock,
        patience: Patience,
        sink: Sink<Out, In>,
    ) -> Result<Self, BenchError> {
        let Halves { read, write, close } = halves;
        let heard_ns = AtomicU64::new(clock.now_ns());
        let shared = Arc::new(Shared { clock, heard_ns, closed: AtomicBool::new(false), close });
        let (queue, items) = sync_channel(QUEUE);
        let outbox = Outbox { queue, shared, of: std::marker::PhantomData };
        let end = Arc::new(End { outbox: outbox.clone(), sink });
        let (reader, writer, watcher) = (Arc::clone(&end), Arc::clone(&end), end);
        start("bench-read", move || reader.read(read))?;
        start("bench-write", move || writer.write(write, &items, patience.alive))?;
        start("bench-watch", move || watcher.watch(patience.silence))?;
        Ok(Self { outbox })
    }

    /// To send with.
    #[must_use]
    pub(crate) const fn outbox(&self) -> &Outbox<Out> {
        &self.outbox
    }
}

fn start(name: &str, body: impl FnOnce() + Send + 'static) -> Result<(), BenchError> {
    let started = Builder::new().name(name.to_owned()).spawn(body);
    started.map(drop).map_err(|source| BenchError::Local { what: "starting a thread", source })
}

/// The state that the threads of a connection share.
struct End<Out, In> {
    outbox: Outbox<Out>,
    sink: Sink<Out, In>,
}

impl<Out: Message, In: Message> End<Out, In> {
    /// Whoever notices first tells why.
    fn lost(&self, why: String) {
        if !self.outbox.shared.closed.swap(true, Ordering::AcqRel) {
            (self.sink)(&self.outbox, Incoming::Closed(why));
            (self.outbox.shared.close)();
        }
    }

    fn read(&self, read: Box<dyn Read + Send>) {
        let mut read = Heard { read, shared: &self.outbox.shared };
        loop {
            match wire::receive::<In>(&mut read, &[Kind::Control, Kind::Prepare, Kind::Record]) {
                Ok(message) => {
                    let at_ns = self.outbox.shared.clock.now_ns();
                    (self.sink)(&self.outbox, Incoming::Message(at_ns, message));
                }
                Err(error) => return self.lost(error.to_string()),
            }
        }
    }

    fn write(&self, mut write: Box<dyn Write + Send>, items: &Receiver<Item>, alive: Duration) {
        let sign = wire::encode(&Out::ALIVE).unwrap_or_default();
        while !self.outbox.shared.closed.load(Ordering::Acquire) {
            let sent = match items.recv_timeout(alive) {
                Ok(Item::Bytes(bytes)) => write.write_all(&bytes),
                Err(RecvTimeoutError::Timeout) => write.write_all(&sign),
                Ok(Item::End) | Err(RecvTimeoutError::Disconnected) => return,
            };
            if let Err(error) = sent.and_then(|()| write.flush()) {
                return self.lost(WireError::Io(error).to_string());
            }
        }
    }

    fn watch(&self, silence: Duration) {
        let shared = &self.outbox.shared;
        while !shared.closed.load(Ordering::Acquire) {
            let heard_ns = shared.heard_ns.load(Ordering::Acquire);
            let quiet = Duration::from_nanos(shared.clock.now_ns().saturating_sub(heard_ns));
            if quiet >= silence {
                return self.lost(format!("nothing was heard for {:.1} s", quiet.as_secs_f64()));
            }
            std::thread::sleep((silence - quiet).min(silence / 8));
        }
    }
}

/// Notes when the last byte came: a long message is a sign of life from its first byte on.
struct Heard<'a> {
    read: Box<dyn Read + Send>,
    shared: &'a Shared,
}

impl Read for Heard<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.read.read(buffer)?;
        self.shared.heard_ns.store(self.shared.clock.now_ns(), Ordering::Release);
        Ok(read)
    }
}

impl Halves {
    /// Of this process's standard input and output.
    #[must_use]
    pub fn stdio() -> Self {
        Self {
            read: Box::new(io::stdin()),
            write: Box::new(io::stdout()),
            // Ends with the process, which has nothing else to do.
            close: Box::new(|| {}),
        }
    }
}

/// A value that threads hand to each other.
pub(super) struct Slot<T>(Mutex<T>);

impl<T> Slot<T> {
    pub(super) const fn new(value: T) -> Self {
        Self(Mutex::new(value))
    }

    /// Looks at it or changes it.
    pub(super) fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> R {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

#[cfg(test)]
mod tests {
    use super::super::wire::{Order, Report};
    use super::*;
    use std::net::Shutdown;
    use std::os::unix::net::UnixStream;
    use std::sync::mpsc::channel;

    fn halves(stream: &UnixStream) -> Halves {
        let (read, write) = (stream.try_clone().unwrap(), stream.try_clone().unwrap());
        let close = stream.try_clone().unwrap();
        Halves {
            read: Box::new(read),
            write: Box::new(write),
            close: Box::new(move || drop(close.shutdown(Shutdown::Both))),
        }
    }

    fn open(stream: &UnixStream, silence: Duration) -> (Link<Order>, Receiver<Incoming<Report>>) {
        let (sender, receiver) = channel();
        let sender = Mutex::new(sender);
        let patience =
            Patience { alive: Duration::from_millis(10), silence, ..Patience::default() };
        let sink: Sink<Order, Report> =
            Box::new(move |_, incoming| drop(sender.lock().unwrap().send(incoming)));
        (Link::open(halves(stream), Clock::new(), patience, sink).unwrap(), receiver)
    }

    #[test]
    fn signs_of_life_are_sent_unasked() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (_link, _events) = open(&ours, Duration::from_secs(3600));
        for _ in 0..3 {
            let order: Order = wire::receive(&mut theirs, &[Kind::Control]).unwrap();
            assert_eq!(order, Order::Alive);
        }
    }

    #[test]
    fn silence_is_a_loss() {
        let (ours, _theirs) = UnixStream::pair().unwrap();
        let (_link, events) = open(&ours, Duration::from_millis(50));
        let Incoming::Closed(why) = events.recv().unwrap() else { panic!("nothing was sent") };
        assert!(why.contains("nothing was heard"), "{why}");
    }

    #[test]
    fn what_was_sent_arrives_before_the_end() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (link, _events) = open(&ours, Duration::from_secs(60));
        link.outbox().send(&Order::Bye).unwrap();
        drop(link);
        loop {
            match wire::receive::<Order>(&mut theirs, &[Kind::Control]).unwrap() {
                Order::Alive => {}
                order => break assert_eq!(order, Order::Bye),
            }
        }
    }

    #[test]
    fn nonsense_ends_the_connection_and_says_so() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let (link, events) = open(&ours, Duration::from_secs(60));
        theirs.write_all(b"\x02\xff\xff\xff\xff").unwrap();
        let Incoming::Closed(why) = events.recv().unwrap() else { panic!("a message") };
        assert!(why.contains("the maximum of 1048576"), "{why}");
        assert!(matches!(link.outbox().send(&Order::Bye), Err(WireError::Closed)));
    }
}
