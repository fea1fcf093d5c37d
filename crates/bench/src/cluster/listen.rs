//! A worker that waits for coordinators: one at a time, none without the token, and strangers cost
//! it a bounded time and a bounded number of threads.

use super::auth::Token;
use super::greet::welcome;
use super::link::Halves;
use super::worker::{Farewell, Worker};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::Builder;
use std::time::{Duration, Instant};
use weir_load::control::Control;
use weir_load::error::BenchError;

/// Connections at the same time, greeted or not; others are closed at once.
const CONNECTIONS_MAX: usize = 16;
/// Time between two looks for a connection, and for the end.
const LOOK: Duration = Duration::from_millis(50);
/// Longest time that the end waits for a session that clears away its files.
const CLEARING: Duration = Duration::from_secs(60);

/// Something to tell whoever started the worker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Happened {
    /// The worker listens.
    Listening(SocketAddr),
    /// Someone was not served, and why.
    Refused(SocketAddr, String),
    /// A coordinator is served.
    Began(SocketAddr),
    /// The coordinator is served no more.
    Ended(SocketAddr, Farewell),
}

/// Waits on `address` until `end` is told to stop. Coordinators must know `token`.
///
/// # Errors
/// [`BenchError`] if the address can't be had, or files could not be removed in time.
pub fn listen(
    address: SocketAddr,
    token: Token,
    worker: Worker,
    end: &Control,
    tell: impl Fn(&Happened) + Send + Sync + 'static,
) -> Result<(), BenchError> {
    let failed = |source| BenchError::Connect {
        address,
        from: "here (to listen)".to_owned(),
        source,
        hint: ": is it an address of this machine, and the port free?",
    };
    let listener = TcpListener::bind(address).map_err(failed)?;
    listener.set_nonblocking(true).map_err(failed)?;
    tell(&Happened::Listening(listener.local_addr().map_err(failed)?));
    let door = Arc::new(Door {
        token,
        worker,
        end: end.clone(),
        busy: AtomicBool::new(false),
        inside: AtomicUsize::new(0),
        tell: Box::new(tell),
    });
    while !end.stopped() {
        match listener.accept() {
            Ok((stream, peer)) => door.open(stream, peer),
            Err(error) if error.kind() == ErrorKind::WouldBlock => std::thread::sleep(LOOK),
            // A connection that broke before it was taken, or too many open files: later.
            Err(_) => std::thread::sleep(LOOK),
        }
    }
    let told = Instant::now();
    while door.busy.load(Ordering::Acquire) {
        if told.elapsed() > CLEARING {
            return Err(BenchError::Peer(
                "files of this worker may remain on the target: removing them took too long"
                    .to_owned(),
            ));
        }
        std::thread::sleep(LOOK);
    }
    Ok(())
}

struct Door {
    token: Token,
    worker: Worker,
    end: Control,
    busy: AtomicBool,
    inside: AtomicUsize,
    tell: Box<dyn Fn(&Happened) + Send + Sync>,
}

/// Counts a connection while it lives.
struct Inside(Arc<Door>);

impl Drop for Inside {
    fn drop(&mut self) {
        self.0.inside.fetch_sub(1, Ordering::AcqRel);
    }
}

/// The one session.
struct Served(Arc<Door>);

impl Drop for Served {
    fn drop(&mut self) {
        self.0.busy.store(false, Ordering::Release);
    }
}

impl Door {
    fn open(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        if self.inside.fetch_add(1, Ordering::AcqRel) >= CONNECTIONS_MAX {
            self.inside.fetch_sub(1, Ordering::AcqRel);
            return;
        }
        let inside = Inside(Arc::clone(self));
        let session = Builder::new().name("bench-session".to_owned());
        // A machine short of threads now may have one for the next.
        if let Err(error) = session.spawn(move || inside.0.serve(stream, peer)) {
            (self.tell)(&Happened::Refused(peer, format!("starting a thread: {error}")));
        }
    }

    fn serve(self: &Arc<Self>, stream: TcpStream, peer: SocketAddr) {
        let (halves, _served) = match self.greet(stream) {
            Ok(greeted) => greeted,
            Err(why) => return (self.tell)(&Happened::Refused(peer, why)),
        };
        (self.tell)(&Happened::Began(peer));
        let farewell = self.worker.serve(halves, &self.end);
        let farewell = farewell.unwrap_or_else(|error| Farewell::Lost(error.in_full()));
        (self.tell)(&Happened::Ended(peer, farewell));
    }

    fn greet(self: &Arc<Self>, stream: TcpStream) -> Result<(Halves, Served), String> {
        let io = |error: io::Error| error.to_string();
        // The listener does not wait; its connections do.
        stream.set_nonblocking(false).map_err(io)?;
        let until = Instant::now() + self.worker.patience.greeting;
        let deadlined = |stream: &TcpStream| Ok(Deadlined { stream: stream.try_clone()?, until });
        let mut brief = Halves {
            read: Box::new(deadlined(&stream).map_err(io)?),
            write: Box::new(deadlined(&stream).map_err(io)?),
            close: Box::new(|| {}),
        };
        let admit = || {
            self.busy
                .compare_exchange(false, true, Ordering::AcqRel, Ordering::Acquire)
                .map(|_| Served(Arc::clone(self)))
                .map_err(|_| "the worker is busy with another coordinator".to_owned())
        };
        let served = welcome(&mut brief, &self.worker.identity, Some(&self.token), admit)
            .map_err(|error| error.to_string())?;
        stream.set_read_timeout(None).map_err(io)?;
        let halves = Halves::of(stream, self.worker.patience.silence).map_err(io)?;
        Ok((halves, served))
    }
}

/// A connection on which everything has to be said before one instant, however slowly it comes.
struct Deadlined {
    stream: TcpStream,
    until: Instant,
}

impl Deadlined {
    fn left(&self) -> io::Result<Duration> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() { Err(too_long()) } else { Ok(left) }
    }
}

fn too_long() -> io::Error {
    io::Error::new(ErrorKind::TimedOut, "the greeting took too long")
}

/// A timeout of a socket, in words.
fn in_words(error: io::Error) -> io::Error {
    match error.kind() {
        ErrorKind::WouldBlock | ErrorKind::TimedOut => too_long(),
        _ => error,
    }
}

impl Read for Deadlined {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.stream.set_read_timeout(Some(self.left()?))?;
        self.stream.read(buffer).map_err(in_words)
    }
}

impl Write for Deadlined {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.stream.set_write_timeout(Some(self.left()?))?;
        self.stream.write(bytes).map_err(in_words)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
