//! Getting the export's handle by the MOUNT protocol, with an explanation where that fails.
//!
//! A server may have MOUNT on the port of NFS, as Weir and many appliances do; on a port that its
//! port mapper names, as Linux does; or on one that is known to its users alone.

use super::session::{Peer, Session};
use crate::engine::net::{Ports, Waits};
use crate::error::BenchError;
use crate::target::NfsTarget;
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;
use weir_nfs::client::{Caller, ExportList, Getaddr, Getport, Mnt, Refused, Umnt};
use weir_nfs::mount::wire::{MntRes, MountStatus};
use weir_nfs::rpc::AcceptError;
use weir_nfs::rpcbind::Universal;
use weir_nfs::rpcbind::wire::{Mapping, Rpcb, Text};
use weir_nfs::{PROGRAM_MOUNT, mount};

/// The port of the port mapper (RFC 1833 §3.1).
const MAPPER_PORT: u16 = 111;
/// The number of TCP in its registrations (RFC 1833 §3.1, `IPPROTO_TCP`).
const TCP: u32 = 6;
/// A port mapper reads a table: it answers at once, or a firewall drops the call.
const MAPPER_TIMEOUT: Duration = Duration::from_secs(5);

/// An export's handle, and the address that gave it.
pub(super) struct Mounted {
    pub(super) handle: Box<[u8]>,
    pub(super) at: SocketAddr,
}

/// The handle of the export's top directory.
///
/// # Errors
/// [`BenchError`] says why there is none, and what to do.
pub fn mount(target: &NfsTarget, caller: &Caller, waits: &Waits) -> Result<Box<[u8]>, BenchError> {
    find(target, caller, waits).map(|mounted| mounted.handle)
}

/// Mounts the export, wherever the server has MOUNT.
pub(super) fn find(
    target: &NfsTarget,
    caller: &Caller,
    waits: &Waits,
) -> Result<Mounted, BenchError> {
    find_by(target, caller, waits, MAPPER_PORT)
}

/// Mounts the export; `mapper_port` is the port mapper's.
fn find_by(
    target: &NfsTarget,
    caller: &Caller,
    waits: &Waits,
    mapper_port: u16,
) -> Result<Mounted, BenchError> {
    let at = |port| SocketAddr::new(target.address.ip(), port);
    let first = at(target.mount_port.unwrap_or(target.address.port()));
    let refused = match ask(target, caller, waits, first) {
        Err(error) if is_elsewhere(&error) => error,
        outcome => return outcome,
    };
    if target.mount_port.is_some() {
        return Err(BenchError::Mount(format!(
            "{}; the port was given by ?mountport=: without this option the port mapper is asked",
            refused.in_full()
        )));
    }
    let mapper = at(mapper_port);
    match mapped(mapper, waits) {
        Ok(port) => ask(target, caller, waits, at(port)),
        Err(error @ BenchError::Stopped { .. }) => Err(error),
        Err(error) => Err(BenchError::Mount(format!(
            "{first} does not serve MOUNT, and the port mapper did not name its port ({}): give the \
             port with ?mountport=PORT",
            error.in_full()
        ))),
    }
}

/// Does `error` tell that the server has MOUNT elsewhere, or not at all? Some servers answer a
/// program that they lack by closing the connection.
fn is_elsewhere(error: &BenchError) -> bool {
    use AcceptError::{ProgramMismatch, ProgramUnavailable};
    match error {
        BenchError::Denied { refused, .. } => {
            matches!(refused, Refused::Failed(ProgramUnavailable | ProgramMismatch { .. }))
        }
        BenchError::Connection { source, .. } => {
            matches!(source.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset)
        }
        _ => false,
    }
}

/// The port of MOUNT version 3 over TCP, as the port mapper at `mapper` knows it.
fn mapped(mapper: SocketAddr, waits: &Waits) -> Result<u16, BenchError> {
    let peer = Peer { address: mapper, service: "port mapper", ports: Ports::Any };
    let waits = waits.at_most(MAPPER_TIMEOUT);
    let mut session = Session::with(peer, None, Caller::none(), &waits)?;
    let port = if mapper.is_ipv4() { getport(&mut session) } else { getaddr(&mut session) }?;
    match port {
        Some(0) => Err(BenchError::Mount(format!(
            "{mapper} has no registration of MOUNT version 3 over TCP"
        ))),
        Some(port) => Ok(port),
        None => {
            let detail = "the port of MOUNT is malformed".to_owned();
            Err(BenchError::Protocol { address: mapper, detail })
        }
    }
}

/// The port in the registrations for IPv4 (RFC 1833 §3.2), 0 for none.
fn getport(session: &mut Session) -> Result<Option<u16>, BenchError> {
    let wanted =
        Mapping { program: PROGRAM_MOUNT, version: mount::VERSION, protocol: TCP, port: 0 };
    session.call(&Getport(wanted), |port| u16::try_from(port).ok())
}

/// The port in the registrations for IPv6 (RFC 1833 §2.2.1, RFC 5665 §5.2.3), 0 for none.
fn getaddr(session: &mut Session) -> Result<Option<u16>, BenchError> {
    let wanted = Rpcb {
        program: PROGRAM_MOUNT,
        version: mount::VERSION,
        netid: Text(b"tcp6"),
        address: Text(b""),
        owner: Text(b""),
    };
    session.call(&Getaddr(wanted), |address| match address.0 {
        b"" => Some(0),
        text => Universal::parse(text).map(|Universal(address)| address.port()),
    })
}

/// Asks MOUNT at `at` for the handle.
fn ask(
    target: &NfsTarget,
    caller: &Caller,
    waits: &Waits,
    at: SocketAddr,
) -> Result<Mounted, BenchError> {
    let mut session = session(target, caller, waits, at)?;
    let granted = session.call(&Mnt(target.export.as_bytes()), |result| match result {
        MntRes::Ok(ok) => Ok(ok.handle.0.into()),
        MntRes::Fail(status) => Err(status),
    })?;
    match granted {
        Ok(handle) => Ok(Mounted { handle, at }),
        Err(status) => Err(refused(target, status, &mut session)),
    }
}

/// Sends UMNT to MOUNT at `at`. The run does not depend on its success.
pub(super) fn unmount(
    target: &NfsTarget,
    caller: &Caller,
    waits: &Waits,
    at: SocketAddr,
) -> Result<(), BenchError> {
    session(target, caller, waits, at)?.call(&Umnt(target.export.as_bytes()), |()| ())
}

fn session(
    target: &NfsTarget,
    caller: &Caller,
    waits: &Waits,
    at: SocketAddr,
) -> Result<Session, BenchError> {
    let peer = Peer { address: at, service: "MOUNT", ports: Ports::of(target) };
    Session::with(peer, None, caller.clone(), waits)
}

fn refused(target: &NfsTarget, status: MountStatus, session: &mut Session) -> BenchError {
    let offered = session.call(&ExportList, |result| {
        let path = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        result.exports.iter().map(|entry| path(entry.directory.0)).collect::<Vec<_>>()
    });
    let offered = offered.ok();
    let why = match status {
        MountStatus::NOENT => "the export does not exist",
        MountStatus::ACCES | MountStatus::PERM => denied(target, offered.as_deref()),
        MountStatus::NOTDIR => "it is not a directory",
        _ => "the server refused",
    };
    let offered = match offered {
        Some(paths) if paths.is_empty() => "; the server exports nothing".to_owned(),
        Some(paths) => format!("; the server exports {}", paths.join(", ")),
        None => String::new(),
    };
    let (export, address) = (&target.export, session.peer().address);
    BenchError::Mount(format!(
        "cannot mount {export} from {address}: {why} (MOUNT status {}){offered}",
        status.0
    ))
}

/// The meaning of a denied permission. Servers also return it for exports that do not exist.
fn denied(target: &NfsTarget, offered: Option<&[String]>) -> &'static str {
    let covers = |path: &String| {
        let below = target.export.strip_prefix(path.trim_end_matches('/'));
        below.is_some_and(|below| below.is_empty() || below.starts_with('/'))
    };
    let is_offered = offered.is_some_and(|paths| paths.iter().any(covers));
    match (is_offered, target.resvport) {
        (false, _) => "there is no such export, or this address may not mount it",
        (true, true) => "this address may not mount it",
        (true, false) => {
            "this address may not mount it, or only from source ports below 1024 (?resvport=1)"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpListener;
    use std::thread::JoinHandle;
    use weir_core::handle::Sealed;
    use weir_core::{Credentials, FileHandle, HandleKey, ObjectKey, Shared, SnapshotId, VolumeId};
    use weir_nfs::mount::wire::Flavors;
    use weir_nfs::mount::{Export, Exports, Mount, MountGrant};
    use weir_nfs::rpc::{AuthStat, Call, Deframer, RejectReason, Rejection, Step, reply};

    fn grant() -> Sealed {
        let key = ObjectKey::new(b"top").unwrap();
        let handle = FileHandle { volume: VolumeId(1), snapshot: SnapshotId(0), key };
        HandleKey::new(&[7; 16]).seal(&handle)
    }

    /// The exports of a server.
    struct Offer {
        path: &'static str,
        answer: Result<(), MountStatus>,
    }

    impl Exports for Offer {
        fn mount(&self, _: &[u8]) -> Result<MountGrant, MountStatus> {
            self.answer.map(|()| MountGrant { handle: grant(), flavors: Flavors::new(&[1]) })
        }

        fn exports(&self) -> Vec<Export> {
            vec![Export { path: self.path.as_bytes().to_vec(), groups: Vec::new() }]
        }

        fn mounts(&self) -> Vec<Mount> {
            Vec::new()
        }

        fn unmount(&self, _: &[u8]) {}

        fn unmount_all(&self) {}
    }

    /// A server of one connection, which answers each call by `serve`, and its address.
    fn server(serve: impl Fn(&Call) -> Vec<u8> + Send + 'static) -> (SocketAddr, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let thread = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let (mut deframer, mut bytes, mut chunk) = (Deframer::new(), Vec::new(), [0; 4096]);
            while let Ok(count @ 1..) = stream.read(&mut chunk) {
                bytes.extend_from_slice(&chunk[..count]);
                while let Step::Record { at, consumed } = deframer.next(&bytes).unwrap() {
                    let call = Call::parse(Shared::from(bytes[at].to_vec())).unwrap();
                    stream.write_all(&serve(&call)).unwrap();
                    bytes.drain(..consumed);
                }
            }
        });
        (address, thread)
    }

    /// A server without MOUNT.
    fn unavailable() -> SocketAddr {
        server(|call| reply::error(Vec::new(), call.xid, AcceptError::ProgramUnavailable)).0
    }

    /// A port mapper that has `port` for MOUNT version 3 over TCP.
    fn mapper(port: u16) -> u16 {
        let (address, _) = server(move |call| {
            assert_eq!((call.program, call.version, call.procedure), (100_000, 2, 3));
            let asked: Vec<u32> = call
                .args
                .chunks(4)
                .map(|word| u32::from_be_bytes(word.try_into().unwrap()))
                .collect();
            assert_eq!(asked, [PROGRAM_MOUNT, 3, 6, 0]);
            let mut out = reply::begin(Vec::new(), call.xid);
            out.u32(port.into());
            reply::finish(out)
        });
        address.port()
    }

    #[test]
    fn over_ipv6_rpcbind_is_asked_for_the_address_of_tcp6() {
        let text = |answer: &'static [u8]| {
            let (address, _) = server(move |call| {
                assert_eq!((call.program, call.version, call.procedure), (100_000, 4, 3));
                let asked = call.args.windows(4).any(|bytes| bytes == b"tcp6");
                assert!(asked, "{:?}", &*call.args);
                let mut out = reply::begin(Vec::new(), call.xid);
                out.opaque(answer);
                reply::finish(out)
            });
            let peer = Peer { address, service: "port mapper", ports: Ports::Any };
            let waits = Waits::default();
            getaddr(&mut Session::with(peer, None, Caller::none(), &waits).unwrap()).unwrap()
        };
        assert_eq!(text(b"::.78.81"), Some(20049));
        assert_eq!(text(b""), Some(0));
        assert_eq!(text(b"::.78"), None);
    }

    /// A port where nobody listens.
    fn closed() -> u16 {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None);
        let socket = socket.unwrap();
        socket.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
        let port = socket.local_addr().unwrap().as_socket().unwrap().port();
        // Bound until the test ends, so that nobody else gets it.
        std::mem::forget(socket);
        port
    }

    fn mountd(offer: Offer) -> SocketAddr {
        server(move |call| mount::serve(call, &offer, Vec::new())).0
    }

    fn by(target: &NfsTarget, mapper: u16) -> Result<Mounted, String> {
        let caller = Caller::sys(&Credentials::ROOT, b"test");
        find_by(target, &caller, &Waits::default(), mapper).map_err(|error| error.in_full())
    }

    #[test]
    fn a_server_that_closes_the_connection_on_mount_may_have_it_elsewhere() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let server = std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            stream.read(&mut [0; 4096]).unwrap()
        });
        let mountd = mountd(Offer { path: "/vol", answer: Ok(()) });
        let mounted = by(&NfsTarget::new(address, "/vol"), mapper(mountd.port())).unwrap();
        assert_eq!(mounted.at, mountd);
        assert!(server.join().unwrap() > 0);
    }

    #[test]
    fn where_the_port_of_nfs_has_no_mount_the_port_mapper_is_asked() {
        let mountd = mountd(Offer { path: "/vol", answer: Ok(()) });
        let target = NfsTarget::new(unavailable(), "/vol");
        let mounted = by(&target, mapper(mountd.port())).unwrap();
        assert_eq!((mounted.at, &*mounted.handle), (mountd, grant().as_bytes()));
    }

    #[test]
    fn a_server_without_mount_and_port_mapper_is_told_with_the_option_that_helps() {
        let target = NfsTarget::new(unavailable(), "/vol");
        let error = by(&target, mapper(0)).err().unwrap();
        assert!(error.contains("no registration of MOUNT version 3 over TCP"), "{error}");
        assert!(error.contains("?mountport=PORT") && !error.contains("malformed"), "{error}");
        let error = by(&NfsTarget::new(unavailable(), "/vol"), closed()).err().unwrap();
        assert!(error.contains("cannot connect") && error.contains("?mountport=PORT"), "{error}");
    }

    #[test]
    fn a_given_port_is_the_only_one_that_is_asked() {
        let (port, address) = (unavailable().port(), SocketAddr::from(([127, 0, 0, 1], 1)));
        let target = NfsTarget { mount_port: Some(port), ..NfsTarget::new(address, "/vol") };
        let error = by(&target, closed()).err().unwrap();
        assert!(error.contains("PROG_UNAVAIL") && error.contains("?mountport="), "{error}");
    }

    #[test]
    fn a_weak_credential_is_told_with_the_option_that_helps() {
        let weak = || {
            let reason = RejectReason::AuthError(AuthStat::TOOWEAK);
            server(move |call| reply::reject(Vec::new(), &Rejection { xid: call.xid, reason })).0
        };
        let error = by(&NfsTarget::new(weak(), "/vol"), 1).err().unwrap();
        assert!(error.contains("AUTH_TOOWEAK") && error.contains("?resvport=1"), "{error}");
        assert!(error.contains("insecure"), "{error}");
    }

    #[test]
    fn a_denied_mount_of_what_is_not_exported_may_be_a_wrong_name() {
        let acces = |path, export: &str| {
            let offer = Offer { path, answer: Err(MountStatus::ACCES) };
            by(&NfsTarget::new(mountd(offer), export), 1).err().unwrap()
        };
        let error = acces("/vol", "/nosuch");
        assert!(error.contains("there is no such export, or this address may not"), "{error}");
        assert!(error.contains("the server exports /vol"), "{error}");
        assert!(acces("/vol", "/volume").contains("no such export"));
        for export in ["/vol", "/vol/below"] {
            let error = acces("/vol", export);
            assert!(!error.contains("no such export"), "{error}");
            assert!(error.contains("?resvport=1"), "{error}");
        }
        assert!(!acces("/", "/any").contains("no such export"));
    }
}
