//! A blocking connection for everything outside the measured interval: mounting, making files,
//! laying them out, reading them back.

use super::ahead::Patience;
use crate::engine::net::{Blocking, Ports, Waits, connect};
use crate::error::BenchError;
use crate::target::NfsTarget;
use std::hash::BuildHasher;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::time::Duration;
use weir_nfs::client::{CallError, Caller, Refused, RemoteCall, Reply};
use weir_nfs::rpc::{AuthStat, Deframer, RejectReason, Step};
use weir_nfs::v3::wire::Status;

const RECEIVE_BYTES: usize = 256 * 1024;

/// The name of the program NFS in messages.
const NFS: &str = "NFS";

/// Numbers of calls lie below this one; those above are for [`Session::queue_as`].
const XID_MASK: u32 = 0x3FFF_FFFF;

/// A session's first number, different in each session. A server answers a call that it takes for
/// one sent again from its cache (RFC 1813 §4.4), so that a session that began at the number of an
/// earlier one of this machine would be told of directories and files that are gone.
fn first_xid() -> u32 {
    let number = std::hash::RandomState::new().hash_one(std::process::id()) & u64::from(XID_MASK);
    u32::try_from(number).unwrap_or(0)
}

impl Ports {
    /// The source ports of connections to `target`.
    pub(super) const fn of(target: &NfsTarget) -> Self {
        if target.resvport { Self::Privileged } else { Self::Any }
    }
}

/// The server at the other end of a session.
#[derive(Clone, Copy, Debug)]
pub(super) struct Peer {
    pub(super) address: SocketAddr,
    /// The called program.
    pub(super) service: &'static str,
    /// The source ports of the client.
    pub(super) ports: Ports,
}

/// A blocking connection. Calls may be sent ahead; replies are taken one at a time.
pub struct Session {
    connection: Blocking,
    ports: Ports,
    caller: Caller,
    out: Vec<u8>,
    received: Vec<u8>,
    consumed: usize,
    deframer: Deframer,
    next_xid: u32,
    is_patient: bool,
}

impl Session {
    /// Connects to NFS at `address`; every call is made by `caller`.
    ///
    /// # Errors
    /// [`BenchError::Connect`] if there is no connection.
    pub fn open(
        address: SocketAddr,
        source: Option<IpAddr>,
        caller: Caller,
    ) -> Result<Self, BenchError> {
        let peer = Peer { address, service: NFS, ports: Ports::Any };
        Self::with(peer, source, caller, &Waits::default())
    }

    /// Connects to NFS of `target`; every call is made by `caller`, with the time limits `waits`.
    ///
    /// # Errors
    /// [`BenchError::Connect`] if there is no connection.
    pub fn of(target: &NfsTarget, caller: Caller, waits: &Waits) -> Result<Self, BenchError> {
        let peer = Peer { address: target.address, service: NFS, ports: Ports::of(target) };
        Self::with(peer, None, caller, waits)
    }

    /// Connects to `peer`.
    pub(super) fn with(
        peer: Peer,
        source: Option<IpAddr>,
        caller: Caller,
        waits: &Waits,
    ) -> Result<Self, BenchError> {
        let Peer { address, ports, .. } = peer;
        let stream = connect(address, source, ports)?;
        Self::on(stream, peer, caller, waits)
    }

    /// Calls NFS over `stream`, which is connected to `address`; every call is made by `caller`,
    /// with the time limits `waits`.
    ///
    /// # Errors
    /// [`BenchError::Connection`] if the connection cannot be used.
    pub fn over(
        stream: TcpStream,
        address: SocketAddr,
        caller: Caller,
        waits: &Waits,
    ) -> Result<Self, BenchError> {
        Self::on(stream, Peer { address, service: NFS, ports: Ports::Any }, caller, waits)
    }

    fn on(
        stream: TcpStream,
        peer: Peer,
        caller: Caller,
        waits: &Waits,
    ) -> Result<Self, BenchError> {
        Ok(Self {
            connection: Blocking::new(stream, (peer.address, peer.service), waits)?,
            ports: peer.ports,
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
        let stream = self.connection.into_stream();
        // A failure means that the connection is gone already.
        drop(socket2::SockRef::from(&stream).set_linger(Some(Duration::ZERO)));
    }

    /// The server.
    pub(super) const fn peer(&self) -> Peer {
        let (address, service) = (self.connection.address(), self.connection.service());
        Peer { address, service, ports: self.ports }
    }

    /// Changes the time limits for answers.
    pub(super) fn set_waits(&mut self, waits: Waits) {
        self.connection.set_waits(waits);
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
        let (peer, is_patient) = (self.peer(), self.is_patient);
        let (mut patience, mut read) = (Patience::default(), Some(read));
        loop {
            let asked = self.queue(|caller, out, xid| caller.call(out, xid, args));
            let answer = self.answer(|reply| {
                if reply.xid != asked {
                    return Err(peer.unasked(reply.xid));
                }
                if is_patient && patience.forgives(wants_time(reply)) {
                    return Ok(None);
                }
                let results = reply.results::<A>().map_err(|error| peer.failed(error))?;
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
        let peer = self.peer();
        let taken;
        let record = loop {
            let waiting = self.received.get(self.consumed..).unwrap_or(&[]);
            let step = self.deframer.next(waiting).map_err(|error| peer.malformed(&error))?;
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
        self.connection.answered();
        let reply = Reply::parse(record).map_err(|error| peer.malformed(&error))?;
        read(&reply)
    }

    fn flush(&mut self) -> Result<(), BenchError> {
        let sent = self.connection.write_all(&self.out);
        self.out.clear();
        sent
    }

    fn receive(&mut self) -> Result<(), BenchError> {
        self.received.drain(..self.consumed);
        self.consumed = 0;
        let len = self.received.len();
        self.received.resize(len + RECEIVE_BYTES, 0);
        let received = self.connection.read(self.received.get_mut(len..).unwrap_or(&mut []));
        self.received.truncate(len + *received.as_ref().unwrap_or(&0));
        received.map(drop)
    }
}

/// Does the server want to be asked again later (NFS3ERR_JUKEBOX, RFC 1813 §2.6)? The results of
/// every procedure of NFSv3 but NULL begin with a status, and those of MOUNT with none of this
/// number.
pub(super) fn wants_time(reply: &Reply<'_>) -> bool {
    reply.body.is_ok_and(|results| results.starts_with(&Status::JUKEBOX.0.to_be_bytes()))
}

impl Peer {
    /// The error of a call without results.
    pub(super) fn failed(&self, error: CallError) -> BenchError {
        let Self { address, service, ports } = *self;
        match error {
            CallError::Refused(refused) => {
                BenchError::Denied { address, service, refused, hint: hint(refused, ports) }
            }
            CallError::Malformed(_) => self.malformed(&error),
        }
    }

    /// The error of a malformed answer.
    pub(super) fn malformed(&self, error: &dyn std::error::Error) -> BenchError {
        let mut detail = error.to_string();
        if let Some(source) = error.source() {
            detail = format!("{detail}: {source}");
        }
        BenchError::Protocol { address: self.address, detail }
    }

    /// The error of an answer without a request.
    pub(super) fn unasked(&self, xid: u32) -> BenchError {
        let detail = format!("a reply without a request (xid {xid:#010x})");
        BenchError::Protocol { address: self.address, detail }
    }
}

/// The advice where a call was refused on a connection from `ports`.
const fn hint(refused: Refused, ports: Ports) -> &'static str {
    match (refused, ports) {
        (Refused::Denied(RejectReason::AuthError(AuthStat::TOOWEAK)), Ports::Any) => {
            "; the export may demand source ports below 1024: add ?resvport=1 to the target, or \
             export it with the option insecure"
        }
        (Refused::Denied(RejectReason::AuthError(AuthStat::TOOWEAK)), Ports::Privileged) => {
            "; the export may demand Kerberos, which this client does not have: export it with \
             sec=sys"
        }
        _ => "",
    }
}
