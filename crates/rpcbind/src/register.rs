//! Registering with the rpcbind that runs on this machine.
//!
//! rpcbind is called over its socket file, as system libraries do, or over TCP from a reserved
//! port.
//! A registered program that answers is left alone and reported; one that does not answer is stale
//! and replaced.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;
use weir_nfs::client::{
    CallError, Caller, RemoteCall, Reply, RpcbindDump, RpcbindSet, RpcbindUnset,
};
use weir_nfs::rpc::{Deframer, Step};
use weir_nfs::rpcbind::wire::{Rpcb, Text};
use weir_nfs::rpcbind::{self, Entry, Netid, Universal, universal};
use weir_nfs::xdr::XdrError;

/// Sockets at which rpcbind listens for programs of its machine.
const SOCKETS: [&str; 2] = ["/run/rpcbind.sock", "/var/run/rpcbind.sock"];
/// Longest to wait for rpcbind.
const ANSWER_WAIT_MAX: Duration = Duration::from_secs(5);
/// Longest to wait for a program of this machine to show that it lives.
const PROBE_WAIT_MAX: Duration = Duration::from_secs(1);
/// Ports that only privileged programs get, and rpcbind believes.
const RESERVED_PORTS: std::ops::Range<u16> = 600..1024;

/// Why our programs can't be registered.
#[derive(Debug, thiserror::Error)]
pub enum RegisterError {
    /// Nobody answers.
    #[error(
        "no rpcbind responds on this machine ({0}): start it, or use the built-in portmapper with --rpcbind serve"
    )]
    Absent(#[source] std::io::Error),
    /// Another program serves the same.
    #[error(
        "RPC program {program} version {version} ({netid}) is registered on port {port} by another \
         program of this machine, probably the kernel's NFS server or lock manager, or rpc.statd: \
         stop that program, or use --rpcbind off"
    )]
    Taken {
        /// The program.
        program: u32,
        /// The program's version.
        version: u32,
        /// The transport.
        netid: &'static str,
        /// The other program's port.
        port: u16,
    },
    /// rpcbind said no.
    #[error(
        "rpcbind refuses to register RPC program {program} version {version} ({netid}): run weir \
         serve as root"
    )]
    Refused {
        /// The program.
        program: u32,
        /// The program's version.
        version: u32,
        /// The transport.
        netid: &'static str,
    },
    /// The conversation failed.
    #[error("communication with rpcbind failed: {0}")]
    Io(#[from] std::io::Error),
    /// rpcbind sends an unexpected reply.
    #[error("rpcbind rejected the request: {0}")]
    Call(#[from] CallError),
    /// rpcbind's answer is no reply.
    #[error("cannot parse rpcbind's reply: {0}")]
    Malformed(#[from] XdrError),
}

/// Registrations that were made; they are taken back when this is dropped.
#[derive(Debug)]
pub struct Registration {
    entries: Vec<Entry>,
}

impl Registration {
    /// Registers `entries`, whose ports are ours already.
    ///
    /// # Errors
    /// [`RegisterError`]; nothing stays registered.
    pub fn make(entries: Vec<Entry>) -> Result<Self, RegisterError> {
        let mut rpcbind = Conversation::begin().map_err(RegisterError::Absent)?;
        let known = rpcbind.registered()?;
        for entry in &entries {
            let other = known.iter().find(|known| is_same(known, entry));
            if let Some(other) = other
                && other.address.port() != entry.address.port()
                && answers(other)
            {
                return Err(RegisterError::Taken {
                    program: entry.program,
                    version: entry.version,
                    netid: entry.netid.name(),
                    port: other.address.port(),
                });
            }
        }
        let made = Self { entries };
        made.entries.iter().try_for_each(|entry| rpcbind.replace(entry))?;
        Ok(made)
    }
}

impl Drop for Registration {
    /// Takes back what is still ours.
    fn drop(&mut self) {
        let undone = Conversation::begin().map_err(RegisterError::Io).and_then(|mut rpcbind| {
            let known = rpcbind.registered()?;
            let still = |entry: &&Entry| {
                known.iter().any(|known| {
                    is_same(known, entry) && known.address.port() == entry.address.port()
                })
            };
            self.entries.iter().filter(still).try_for_each(|entry| rpcbind.unset(entry).map(drop))
        });
        if let Err(error) = undone {
            tracing::warn!(%error, "could not unregister from rpcbind");
        }
    }
}

fn is_same(one: &Entry, other: &Entry) -> bool {
    (one.program, one.version, one.netid) == (other.program, other.version, other.netid)
}

trait Stream: Read + Write {}
impl<T: Read + Write> Stream for T {}

/// Calls one after the other.
struct Conversation {
    stream: Box<dyn Stream>,
    deframer: Deframer,
    received: Vec<u8>,
    xid: u32,
}

impl Conversation {
    fn begin() -> std::io::Result<Self> {
        let by_file = SOCKETS.iter().find_map(|path| by_file(Path::new(path)).ok());
        let stream = match by_file {
            Some(stream) => stream,
            None => by_tcp()?,
        };
        Ok(Self { stream, deframer: Deframer::new(), received: Vec::new(), xid: 0 })
    }

    /// The registered programs with transports and addresses that we know.
    fn registered(&mut self) -> Result<Vec<Entry>, RegisterError> {
        let record = self.call(&RpcbindDump)?;
        let results = Reply::parse(&record)?.results::<RpcbindDump>()?;
        Ok(results.list.iter().filter_map(|rpcb| entry(&rpcb)).collect())
    }

    /// Registers `entry` in place of what is registered for the same.
    fn replace(&mut self, entry: &Entry) -> Result<(), RegisterError> {
        self.unset(entry)?;
        let address = universal(&everywhere(entry));
        let record = self.call(&RpcbindSet(rpcb(entry, &address)))?;
        let set = Reply::parse(&record)?.results::<RpcbindSet<'_>>()?;
        let Entry { program, version, netid, .. } = *entry;
        let refused = RegisterError::Refused { program, version, netid: netid.name() };
        if set { Ok(()) } else { Err(refused) }
    }

    fn unset(&mut self, entry: &Entry) -> Result<bool, RegisterError> {
        let record = self.call(&RpcbindUnset(rpcb(entry, "")))?;
        Ok(Reply::parse(&record)?.results::<RpcbindUnset<'_>>()?)
    }

    /// Sends a call and gives the record that answers it.
    fn call<A: RemoteCall>(&mut self, args: &A) -> std::io::Result<Vec<u8>> {
        self.xid += 1;
        let mut out = Vec::new();
        Caller::none().call(&mut out, self.xid, args);
        self.stream.write_all(&out)?;
        loop {
            let record = self.record()?;
            if record.get(..4) == Some(&self.xid.to_be_bytes()) {
                return Ok(record);
            }
        }
    }

    fn record(&mut self) -> std::io::Result<Vec<u8>> {
        loop {
            let step = self.deframer.next(&self.received).map_err(std::io::Error::other)?;
            let (record, consumed) = match step {
                Step::Record { at, consumed } => {
                    (self.received.get(at).map(<[u8]>::to_vec), consumed)
                }
                Step::Assembled { record, consumed } => (Some(record), consumed),
                Step::Fragment { consumed } => (None, consumed),
                Step::NeedMore { .. } => {
                    let mut more = [0; 4096];
                    let count = self.stream.read(&mut more)?;
                    if count == 0 {
                        return Err(std::io::ErrorKind::UnexpectedEof.into());
                    }
                    self.received.extend(more.iter().take(count));
                    continue;
                }
            };
            self.received.drain(..consumed);
            if let Some(record) = record {
                return Ok(record);
            }
        }
    }
}

fn by_file(path: &Path) -> std::io::Result<Box<dyn Stream>> {
    let stream = UnixStream::connect(path)?;
    stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
    stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
    Ok(Box::new(stream))
}

/// Over loopback, from a reserved port: what comes from another can't register.
fn by_tcp() -> std::io::Result<Box<dyn Stream>> {
    use socket2::{Domain, Socket, Type};
    let rpcbind = SocketAddr::from((Ipv4Addr::LOCALHOST, rpcbind::PORT));
    let mut refused = std::io::Error::from(std::io::ErrorKind::AddrInUse);
    for port in RESERVED_PORTS.rev() {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        match socket.bind(&SocketAddr::from((Ipv4Addr::LOCALHOST, port)).into()) {
            Ok(()) => {}
            Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => continue,
            Err(error) => return Err(error),
        }
        match socket.connect_timeout(&rpcbind.into(), ANSWER_WAIT_MAX) {
            Ok(()) => {
                let stream = TcpStream::from(socket);
                stream.set_read_timeout(Some(ANSWER_WAIT_MAX))?;
                stream.set_write_timeout(Some(ANSWER_WAIT_MAX))?;
                return Ok(Box::new(stream));
            }
            // The pair of ports is still remembered from an earlier connection.
            Err(error) if error.kind() == std::io::ErrorKind::AddrNotAvailable => refused = error,
            Err(error) => return Err(error),
        }
    }
    Err(refused)
}

fn rpcb<'a>(entry: &Entry, address: &'a str) -> Rpcb<'a> {
    Rpcb {
        program: entry.program,
        version: entry.version,
        netid: Text(entry.netid.name().as_bytes()),
        address: Text(address.as_bytes()),
        owner: Text(b"superuser"),
    }
}

fn entry(rpcb: &Rpcb<'_>) -> Option<Entry> {
    let netid = Netid::named(rpcb.netid.0)?;
    let Universal(address) = Universal::parse(rpcb.address.0)?;
    Some(Entry { program: rpcb.program, version: rpcb.version, netid, address })
}

/// The address to register: rpcbind tells each client the one of ours that the client reaches.
fn everywhere(entry: &Entry) -> SocketAddr {
    let all: IpAddr = if entry.netid.is_ipv4() {
        Ipv4Addr::UNSPECIFIED.into()
    } else {
        Ipv6Addr::UNSPECIFIED.into()
    };
    SocketAddr::new(all, entry.address.port())
}

/// Does the registered program answer at all?
fn answers(entry: &Entry) -> bool {
    let mut address = entry.address;
    if address.ip().is_unspecified() {
        let loopback: IpAddr = if entry.netid.is_ipv4() {
            Ipv4Addr::LOCALHOST.into()
        } else {
            Ipv6Addr::LOCALHOST.into()
        };
        address.set_ip(loopback);
    }
    match entry.netid {
        Netid::Tcp | Netid::Tcp6 => TcpStream::connect_timeout(&address, PROBE_WAIT_MAX).is_ok(),
        Netid::Udp | Netid::Udp6 => answers_datagram(address, entry).unwrap_or(false),
    }
}

/// A closed port refuses a datagram at once; an open one answers NULL.
fn answers_datagram(address: SocketAddr, entry: &Entry) -> std::io::Result<bool> {
    let any: IpAddr =
        if address.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind((any, 0))?;
    socket.connect(address)?;
    socket.set_read_timeout(Some(PROBE_WAIT_MAX))?;
    let mut null = Vec::new();
    Caller::none().encoded(&mut null, 1, [entry.program, entry.version, 0], &[]);
    socket.send(null.get(4..).unwrap_or(&[]))?;
    Ok(socket.recv(&mut [0; 256]).is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn at(netid: Netid, address: SocketAddr) -> Entry {
        Entry { program: 100_005, version: 3, netid, address }
    }

    #[test]
    fn what_lives_is_told_from_what_is_stale() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let everywhere = SocketAddr::from((Ipv4Addr::UNSPECIFIED, port));
        assert!(answers(&at(Netid::Tcp, everywhere)));
        drop(listener);
        assert!(!answers(&at(Netid::Tcp, everywhere)));
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let address = socket.local_addr().unwrap();
        let responder = std::thread::spawn(move || {
            let mut call = [0; 256];
            let (len, from) = socket.recv_from(&mut call).unwrap();
            let call = weir_nfs::rpc::Call::parse(call[..len].to_vec().into()).unwrap();
            assert_eq!((call.program, call.version, call.procedure), (100_005, 3, 0));
            socket.send_to(b"anything", from).unwrap();
        });
        assert!(answers(&at(Netid::Udp, address)));
        responder.join().unwrap();
        assert!(!answers(&at(Netid::Udp, address)));
    }

    #[test]
    fn registrations_of_transports_we_do_not_know_are_passed_over() {
        let text = |text: &'static str| Text(text.as_bytes());
        let of = |netid, address| Rpcb {
            program: 1,
            version: 2,
            netid: text(netid),
            address: text(address),
            owner: text(""),
        };
        let six = SocketAddr::from((Ipv6Addr::UNSPECIFIED, 2049));
        let known = entry(&of("tcp6", "::.8.1")).unwrap();
        assert_eq!(known, Entry { program: 1, version: 2, netid: Netid::Tcp6, address: six });
        assert_eq!(entry(&of("local", "/run/rpcbind.sock")), None);
    }
}
