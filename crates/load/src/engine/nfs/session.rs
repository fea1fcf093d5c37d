//! A blocking connection for everything outside the measured interval: mounting, making files,
//! laying them out, reading them back.

use super::ahead::Patience;
use crate::engine::net::connect;
use crate::error::BenchError;
use std::hash::BuildHasher;
use std::io::{self, Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use weir_nfs::client::{Caller, RemoteCall, Reply};
use weir_nfs::rpc::{Deframer, Step};
use weir_nfs::v3::wire::Status;

/// A throttled volume may delay a window of large writes by tens of seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
const RECEIVE_BYTES: usize = 256 * 1024;

/// Numbers of calls lie below this one; those above are for [`Session::queue_as`].
const XID_MASK: u32 = 0x3FFF_FFFF;

/// A session's first number, different in each session. A server answers a call that it takes for
/// one sent again from its cache (RFC 1813 §4.4), so that a session that began at the number of an
/// earlier one of this machine would be told of directories and files that are gone.
fn first_xid() -> u32 {
    let number = std::hash::RandomState::new().hash_one(std::process::id()) & u64::from(XID_MASK);
    u32::try_from(number).unwrap_or(0)
}

/// A blocking connection. Calls may be sent ahead; replies are taken one at a time.
pub struct Session {
    stream: TcpStream,
    address: SocketAddr,
    caller: Caller,
    out: Vec<u8>,
    received: Vec<u8>,
    consumed: usize,
    deframer: Deframer,
    next_xid: u32,
    is_patient: bool,
}

impl Session {
    /// Connects to `address`; every call is made by `caller`.
    pub fn open(
        address: SocketAddr,
        source: Option<IpAddr>,
        caller: Caller,
    ) -> Result<Self, BenchError> {
        let stream = connect(address, source)?;
        stream
            .set_read_timeout(Some(ANSWER_TIMEOUT))
            .and_then(|()| stream.set_write_timeout(Some(ANSWER_TIMEOUT)))
            .map_err(|source| BenchError::Connection { address, source })?;
        Ok(Self {
            stream,
            address,
            caller,
            out: Vec::new(),
            received: Vec::new(),
            consumed: 0,
            deframer: Deframer::new(),
            next_xid: first_xid(),
            is_patient: false,
        })
    }

    /// Resets the connection, like a machine that has lost its power. An orderly close would tell
    /// the server that the client has all replies.
    pub fn reset(self) {
        // A failure means that the connection is gone already.
        drop(socket2::SockRef::from(&self.stream).set_linger(Some(Duration::ZERO)));
    }

    /// The server.
    pub(super) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The session, with patience: a server that wants to be asked later is asked again for a while
    /// by [`Session::call`].
    pub const fn patient(mut self) -> Self {
        self.is_patient = true;
        self
    }

    /// Makes one call, waits for its answer, and lets `read` take what it wants from it.
    pub fn call<A, T>(
        &mut self,
        args: &A,
        read: impl FnOnce(A::Results<'_>) -> T,
    ) -> Result<T, BenchError>
    where
        A: RemoteCall,
    {
        let (address, is_patient) = (self.address, self.is_patient);
        let (mut patience, mut read) = (Patience::default(), Some(read));
        loop {
            let asked = self.queue(|caller, out, xid| caller.call(out, xid, args));
            let answer = self.answer(|reply| {
                if reply.xid != asked {
                    let xid = reply.xid;
                    let detail = format!("a reply without a request (xid {xid:#010x})");
                    return Err(BenchError::Protocol { address, detail });
                }
                if is_patient && patience.forgives(wants_time(reply)) {
                    return Ok(None);
                }
                let results = reply.results::<A>().map_err(|error| malformed(address, &error))?;
                Ok(read.take().map(|read| read(results)))
            })?;
            match answer {
                Some(answer) => return Ok(answer),
                None => patience.wait(),
            }
        }
    }

    /// Queues a call that `encode` writes, and gives its number.
    pub fn queue(&mut self, encode: impl FnOnce(&Caller, &mut Vec<u8>, u32)) -> u32 {
        let xid = self.next_xid;
        self.next_xid = (xid + 1) & XID_MASK;
        encode(&self.caller, &mut self.out, xid);
        xid
    }

    /// Queues a call that `encode` writes under a number of the caller's: that of a call that was
    /// sent on another connection and not answered there. It must be none that
    /// [`Session::queue`] gives.
    pub fn queue_as(&mut self, encode: impl FnOnce(&Caller, &mut Vec<u8>)) {
        encode(&self.caller, &mut self.out);
    }

    /// Sends what is queued, waits for the next answer, and lets `read` take what it wants.
    pub fn answer<T>(
        &mut self,
        read: impl FnOnce(&Reply<'_>) -> Result<T, BenchError>,
    ) -> Result<T, BenchError> {
        self.flush()?;
        let address = self.address;
        let taken;
        let record = loop {
            let waiting = self.received.get(self.consumed..).unwrap_or(&[]);
            let step = self.deframer.next(waiting).map_err(|error| malformed(address, &error))?;
            match step {
                Step::NeedMore { .. } => self.receive()?,
                Step::Fragment { consumed } => self.consumed += consumed,
                Step::Record { at, consumed } => {
                    let start = self.consumed;
                    self.consumed += consumed;
                    break self.received.get(start + at.start..start + at.end).unwrap_or(&[]);
                }
                Step::Assembled { record, consumed } => {
                    self.consumed += consumed;
                    taken = record;
                    break &taken;
                }
            }
        };
        let reply = Reply::parse(record).map_err(|error| malformed(address, &error))?;
        read(&reply)
    }

    fn flush(&mut self) -> Result<(), BenchError> {
        let sent = self.stream.write_all(&self.out);
        self.out.clear();
        sent.map_err(|source| self.lost(source))
    }

    fn receive(&mut self) -> Result<(), BenchError> {
        self.received.drain(..self.consumed);
        self.consumed = 0;
        let len = self.received.len();
        self.received.resize(len + RECEIVE_BYTES, 0);
        let space = self.received.get_mut(len..).unwrap_or(&mut []);
        let received = self.stream.read(space);
        self.received.truncate(len + *received.as_ref().unwrap_or(&0));
        match received {
            Ok(0) => Err(self.lost(io::Error::from(io::ErrorKind::UnexpectedEof))),
            Ok(_) => Ok(()),
            // A socket with a timeout is not read on after a signal (signal(7)); whoever asks, asks
            // again. An interrupted run still has to clear away.
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) => Err(self.lost(error)),
        }
    }

    fn lost(&self, source: io::Error) -> BenchError {
        let source = match source.kind() {
            // The system's error for a timeout of a socket is "temporarily unavailable".
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut => {
                let said = format!("no answer for {} s", ANSWER_TIMEOUT.as_secs());
                io::Error::new(io::ErrorKind::TimedOut, said)
            }
            _ => source,
        };
        BenchError::Connection { address: self.address, source }
    }
}

/// Does the server want to be asked again later (NFS3ERR_JUKEBOX, RFC 1813 §2.6)? The results of
/// every procedure of NFSv3 but NULL begin with a status, and those of MOUNT with none of this
/// number.
pub(super) fn wants_time(reply: &Reply<'_>) -> bool {
    reply.body.is_ok_and(|results| results.starts_with(&Status::JUKEBOX.0.to_be_bytes()))
}

/// The peer's answer is not what was asked for.
pub(super) fn malformed(address: SocketAddr, error: &dyn std::error::Error) -> BenchError {
    let mut detail = error.to_string();
    if let Some(source) = error.source() {
        detail = format!("{detail}: {source}");
    }
    BenchError::Protocol { address, detail }
}
