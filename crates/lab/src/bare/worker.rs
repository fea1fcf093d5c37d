//! One thread, its connections and the loop around epoll.

use super::call::{self, Request};
use super::connection::Connection;
use super::files::{Files, Known, ROOT};
use super::reply::{Batch, EXIST, IO, NOENT, STALE};
use anyhow::{Context, Result};
use rustix::buffer::spare_capacity;
use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::{AtFlags, Mode, OFlags, fdatasync, openat, unlinkat};
use rustix::io::{Errno, IoSliceMut, ReadWriteFlags, pread, preadv2, pwrite};
use std::collections::HashMap;
use std::net::TcpStream;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, channel};

/// The way to hand connections to a worker.
pub(crate) struct Worker {
    epoll: Arc<OwnedFd>,
    sockets: Sender<(u64, TcpStream)>,
    next: AtomicU64,
}

/// Starts a worker thread.
pub(crate) fn start(number: usize, files: Arc<Files>) -> Result<Worker> {
    let epoll = Arc::new(epoll::create(epoll::CreateFlags::CLOEXEC)?);
    let (sockets, arrivals) = channel();
    let mut serving = Serving {
        epoll: Arc::clone(&epoll),
        arrivals,
        connections: HashMap::new(),
        known: Known::new(files),
        batch: Batch::new(),
    };
    std::thread::Builder::new()
        .name(format!("bare-{number}"))
        .spawn(move || serving.run())
        .context("can't start a worker")?;
    Ok(Worker { epoll, sockets, next: AtomicU64::new(0) })
}

impl Worker {
    /// Gives a connection to the worker. It learns of it when the first bytes arrive.
    pub(crate) fn adopt(&self, socket: TcpStream) -> Result<()> {
        socket.set_nonblocking(true)?;
        socket.set_nodelay(true)?;
        let token = self.next.fetch_add(1, Ordering::Relaxed);
        epoll::add(&self.epoll, &socket, EventData::new_u64(token), EventFlags::IN)?;
        self.sockets.send((token, socket)).context("a worker has ended")
    }
}

struct Serving {
    epoll: Arc<OwnedFd>,
    arrivals: Receiver<(u64, TcpStream)>,
    connections: HashMap<u64, Connection>,
    known: Known,
    batch: Batch,
}

impl Serving {
    fn run(&mut self) {
        let mut events = Vec::with_capacity(64);
        loop {
            events.clear();
            match epoll::wait(&self.epoll, spare_capacity(&mut events), None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => {
                    weir_report::errln!("weir-lab bare: epoll: {error}");
                    return;
                }
            }
            for event in &events {
                let token = event.data.u64();
                let writable = { event.flags }.contains(EventFlags::OUT);
                if self.turn(token, writable).is_err() {
                    self.connections.remove(&token);
                    self.batch.clear();
                }
            }
        }
    }

    /// One wake of one connection: receive, answer, send.
    fn turn(&mut self, token: u64, writable: bool) -> rustix::io::Result<()> {
        while !self.connections.contains_key(&token) {
            let (arrived, socket) = self.arrivals.recv().map_err(|_| Errno::CANCELED)?;
            self.connections.insert(arrived, Connection::new(socket));
        }
        let connection = self.connections.get_mut(&token).ok_or(Errno::BADF)?;
        if writable {
            connection.resume()?;
        } else {
            connection.receive()?;
        }
        while !connection.is_blocked()
            && let Some(at) = connection.next()?
        {
            let (xid, request) = call::parse(connection.record(at)).ok_or(Errno::PROTO)?;
            self.batch.begin(xid);
            answer(request, &mut self.known, &mut self.batch);
            self.batch.end();
            if self.batch.is_full() {
                connection.send(self.batch.as_bytes())?;
                self.batch.clear();
            }
        }
        connection.send(self.batch.as_bytes())?;
        self.batch.clear();
        if writable || connection.is_blocked() {
            let wanted = if connection.is_blocked() { EventFlags::OUT } else { EventFlags::IN };
            epoll::modify(&self.epoll, &connection.socket, EventData::new_u64(token), wanted)?;
        }
        Ok(())
    }
}

/// Performs `request` and appends what follows the header of its reply.
fn answer(request: Request<'_>, known: &mut Known, batch: &mut Batch) {
    match request {
        Request::Null | Request::Unmount => {}
        Request::Mount => {
            batch.word(0);
            batch.handle(ROOT);
            batch.word(1);
            batch.word(1);
        }
        Request::Getattr { file } => match known.get(file) {
            None => batch.failure(STALE, 0),
            Some(file) => {
                batch.word(0);
                batch.bytes(&file.attr);
            }
        },
        Request::Access { file, wanted } => match known.get(file) {
            None => batch.failure(STALE, 1),
            Some(file) => {
                batch.word(0);
                batch.attributes(&file.attr);
                batch.word(wanted);
            }
        },
        Request::Lookup { dir, name } => lookup(dir, name, known, batch),
        Request::Read { file, offset, count } => read(file, offset, count, known, batch),
        Request::Write { file, offset, stable, data } => {
            write(file, offset, stable, data, known, batch);
        }
        Request::Create { dir, name } => create(dir, name, known, batch),
        Request::Remove { dir, name } => remove(dir, name, known, batch),
        Request::Fsinfo { file } => fsinfo(file, known, batch),
        Request::Commit { file } => match known.get(file) {
            Some(file) if fdatasync(&file.fd).is_ok() => {
                batch.word(0);
                batch.weak_cache(&file.attr);
                batch.bytes(&[0; 8]);
            }
            _ => batch.failure(IO, 2),
        },
    }
}

fn lookup(dir: u32, name: &[u8], known: &mut Known, batch: &mut Batch) {
    let number = match known.lookup(dir, name) {
        Ok(number) => number,
        Err(Errno::NOENT) => return batch.failure(NOENT, 1),
        Err(_) => return batch.failure(IO, 1),
    };
    let Some(file) = known.get(number) else { return batch.failure(STALE, 1) };
    batch.word(0);
    batch.handle(number);
    batch.attributes(&file.attr);
    if let Some(dir) = known.get(dir) {
        batch.attributes(&dir.attr);
    } else {
        batch.word(0);
    }
}

fn read(file: u32, offset: u64, count: usize, known: &mut Known, batch: &mut Batch) {
    let Some(file) = known.get(file) else { return batch.failure(STALE, 1) };
    let begun = batch.position();
    batch.word(0);
    batch.attributes(&file.attr);
    let counts = batch.position();
    batch.bytes(&[0; 12]);
    let read = batch.opaque(count.min(1 << 20), |room| {
        let cached =
            preadv2(&file.fd, &mut [IoSliceMut::new(room)], offset, ReadWriteFlags::NOWAIT);
        let done = match cached {
            Err(Errno::AGAIN) => 0,
            other => other?,
        };
        // The rest is not in the page cache, or lies behind the end of the file.
        if done < room.len() && offset + (done as u64) < file.size {
            return Ok(done + pread(&file.fd, &mut room[done..], offset + done as u64)?);
        }
        Ok::<_, Errno>(done)
    });
    match read.map(|done| (done, u32::try_from(done).unwrap_or(u32::MAX))) {
        Ok((done, done_word)) => {
            batch.patch(counts, done_word);
            batch.patch(counts + 4, u32::from(offset + done as u64 >= file.size));
            batch.patch(counts + 8, done_word);
        }
        Err(_) => {
            batch.rewind(begun);
            batch.failure(IO, 1);
        }
    }
}

fn write(file: u32, offset: u64, stable: u32, data: &[u8], known: &mut Known, batch: &mut Batch) {
    let Some(file) = known.get(file) else { return batch.failure(STALE, 2) };
    let written = pwrite(&file.fd, data, offset);
    let synced = if stable == 0 { Ok(()) } else { fdatasync(&file.fd) };
    match (written.map(u32::try_from), synced) {
        (Ok(Ok(count)), Ok(())) => {
            batch.word(0);
            batch.weak_cache(&file.attr);
            batch.word(count);
            batch.word(stable);
            batch.bytes(&[0; 8]);
        }
        _ => batch.failure(IO, 2),
    }
}

fn create(dir: u32, name: &[u8], known: &mut Known, batch: &mut Batch) {
    let Some(dir) = known.get(dir) else { return batch.failure(STALE, 2) };
    let flags = OFlags::CREATE | OFlags::EXCL | OFlags::RDWR | OFlags::CLOEXEC;
    match openat(&dir.fd, name, flags, Mode::from_raw_mode(0o644)) {
        Ok(made) => drop(made),
        Err(Errno::EXIST) => return batch.failure(EXIST, 2),
        Err(_) => return batch.failure(IO, 2),
    }
    batch.word(0);
    batch.word(1);
    batch.handle(u32::MAX);
    batch.attributes(&dir.attr);
    batch.weak_cache(&dir.attr);
}

fn remove(dir: u32, name: &[u8], known: &mut Known, batch: &mut Batch) {
    let Some(dir) = known.get(dir) else { return batch.failure(STALE, 2) };
    match unlinkat(&dir.fd, name, AtFlags::empty()) {
        Ok(()) => {
            batch.word(0);
            batch.weak_cache(&dir.attr);
        }
        Err(Errno::NOENT) => batch.failure(NOENT, 2),
        Err(_) => batch.failure(IO, 2),
    }
}

/// The sizes that a client may use (RFC 1813 §3.3.19).
fn fsinfo(file: u32, known: &mut Known, batch: &mut Batch) {
    let Some(file) = known.get(file) else { return batch.failure(STALE, 1) };
    batch.word(0);
    batch.attributes(&file.attr);
    for word in [1 << 20, 1 << 20, 4096, 1 << 20, 1 << 20, 4096, 65_536] {
        batch.word(word);
    }
    batch.bytes(&i64::MAX.to_be_bytes());
    for word in [0, 1, 0x1b] {
        batch.word(word);
    }
}

#[cfg(test)]
mod tests {
    use super::call::tests::{call, handle};
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;

    fn framed(record: &[u8]) -> Vec<u8> {
        let mark = u32::try_from(record.len()).unwrap() | 0x8000_0000;
        [&mark.to_be_bytes(), record].concat()
    }

    fn reply(client: &mut TcpStream) -> Vec<u8> {
        let mut mark = [0; 4];
        client.read_exact(&mut mark).unwrap();
        let mut record = vec![0; (u32::from_be_bytes(mark) & 0x7fff_ffff) as usize];
        client.read_exact(&mut record).unwrap();
        record
    }

    #[test]
    fn a_client_that_asks_for_much_and_reads_late_gets_every_reply() {
        const READS: usize = 64;
        let dir = tempfile::tempdir().unwrap();
        let content: Vec<u8> = (0..1u32 << 20).map(|at| (at % 251) as u8).collect();
        std::fs::write(dir.path().join("f"), &content).unwrap();
        let worker = start(0, Arc::new(Files::open(dir.path()).unwrap())).unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut client = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        worker.adopt(listener.accept().unwrap().0).unwrap();

        let name = [&1u32.to_be_bytes()[..], b"f\0\0\0"].concat();
        let lookup = call(100_003, 3, &[], &[handle(ROOT), name].concat());
        client.write_all(&framed(&lookup)).unwrap();
        let found = reply(&mut client);
        assert_eq!(call::word(&found, 24), Some(0));
        let file = call::word(&found, 32).unwrap();
        let place = [&0u64.to_be_bytes()[..], &(1u32 << 20).to_be_bytes()].concat();
        let read = framed(&call(100_003, 6, &[], &[handle(file), place].concat()));
        client.write_all(&read.repeat(READS)).unwrap();
        for _ in 0..READS {
            let record = reply(&mut client);
            assert_eq!(call::word(&record, 24 + 4 + 88), Some(1 << 20));
            assert_eq!(call::word(&record, 24 + 4 + 88 + 4), Some(1), "the end of the file");
            assert!(record.ends_with(&content));
        }
    }
}
