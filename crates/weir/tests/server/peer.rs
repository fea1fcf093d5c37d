//! A client on a bare socket: it sends whatever bytes it is given.

use crate::test_server::{TestServer, connect};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use weir_core::Credentials;
use weir_nfs::client::{Caller, Mnt, RemoteCall, Reply};
use weir_nfs::mount::wire::MntRes;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, FsStatArgs, GetattrArgs, Res, Sattr3, SetTime3,
};

/// The mark of a record's last fragment (RFC 5531 §11).
pub(crate) const LAST: u32 = 1 << 31;

/// A credential: its flavor and body.
pub(crate) type Credential<'a> = (u32, &'a [u8]);

pub(crate) const AUTH_NONE: Credential<'static> = (0, &[]);

pub(crate) struct Peer {
    pub(crate) stream: TcpStream,
    /// The handle of the top directory, once mounted.
    pub(crate) root: Vec<u8>,
    xid: u32,
}

impl Peer {
    pub(crate) fn new(server: &TestServer) -> Self {
        Self::from(server.connect())
    }

    /// A client that mounted a volume of its own.
    pub(crate) fn mount(server: &TestServer) -> Self {
        server.volume("good", "1TiB");
        Self::mount_at(server.address(), b"/good")
    }

    /// A client that mounted what is there already.
    pub(crate) fn mount_at(address: SocketAddr, path: &[u8]) -> Self {
        let mut peer = Self { stream: connect(address), root: Vec::new(), xid: 0 };
        let reply = peer.call(&Mnt(path));
        match Reply::parse(&reply).unwrap().results::<Mnt<'_>>().unwrap() {
            MntRes::Ok(grant) => peer.root = grant.handle.0.to_vec(),
            MntRes::Fail(status) => panic!("mount: {status:?}"),
        }
        peer
    }

    /// Calls as the superuser and gives the reply record.
    pub(crate) fn call<A: RemoteCall>(&mut self, args: &A) -> Vec<u8> {
        self.xid += 1;
        let mut call = Vec::new();
        Caller::sys(&Credentials::ROOT, b"peer").call(&mut call, self.xid, args);
        self.send(&call);
        let reply = self.receive();
        assert_eq!(Reply::parse(&reply).unwrap().xid, self.xid);
        reply
    }

    /// Makes a file in the top directory and gives its handle.
    pub(crate) fn create(&mut self, name: &[u8]) -> Vec<u8> {
        let attributes = Sattr3 {
            mode: Some(0o600),
            uid: None,
            gid: None,
            size: None,
            atime: SetTime3::DontChange,
            mtime: SetTime3::DontChange,
        };
        let root = self.root.clone();
        let location = DirOpArgs3 { dir: FileHandle3(&root), name };
        let args = CreateArgs { location, how: CreateHow3::Guarded(attributes) };
        let reply = self.call(&args);
        match Reply::parse(&reply).unwrap().results::<CreateArgs<'_>>().unwrap() {
            Res::Ok(made) => made.object.unwrap().0.to_vec(),
            Res::Fail(status, _) => panic!("create: {status:?}"),
        }
    }

    /// Asks for the attributes behind `handle`, whatever the answer.
    pub(crate) fn attributes(&mut self, handle: &[u8]) {
        self.call(&GetattrArgs { object: FileHandle3(handle) });
    }

    /// An everyday call is carried out.
    pub(crate) fn works(&mut self) {
        let root = self.root.clone();
        let reply = self.call(&FsStatArgs { root: FileHandle3(&root) });
        let results = Reply::parse(&reply).unwrap().results::<FsStatArgs<'_>>().unwrap();
        assert!(matches!(results, Res::Ok(_)));
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// The next record; the server sends each as one fragment.
    pub(crate) fn receive(&mut self) -> Vec<u8> {
        let mut mark = [0; 4];
        self.stream.read_exact(&mut mark).unwrap();
        let mark = u32::from_be_bytes(mark);
        assert!(mark & LAST != 0);
        let mut record = vec![0; (mark & !LAST) as usize];
        self.stream.read_exact(&mut record).unwrap();
        record
    }
}

impl From<TcpStream> for Peer {
    fn from(stream: TcpStream) -> Self {
        Self { stream, root: Vec::new(), xid: 0 }
    }
}

/// A whole record that calls as the superuser.
pub(crate) fn encoded<A: RemoteCall>(xid: u32, args: &A) -> Vec<u8> {
    let mut call = Vec::new();
    Caller::sys(&Credentials::ROOT, b"peer").call(&mut call, xid, args);
    call
}

/// The header of a call (RFC 5531 §9) with any values, and an empty verifier.
pub(crate) fn header(
    xid: u32,
    rpc: u32,
    program: u32,
    version: u32,
    procedure: u32,
    (flavor, body): Credential<'_>,
) -> Vec<u8> {
    let mut out = Vec::new();
    let len = u32::try_from(body.len()).unwrap();
    for word in [xid, 0, rpc, program, version, procedure, flavor, len] {
        out.extend(word.to_be_bytes());
    }
    out.extend(body);
    out.extend([0; 8]);
    out
}

/// `body` as a record of one fragment.
pub(crate) fn record(body: &[u8]) -> Vec<u8> {
    let mark = LAST | u32::try_from(body.len()).unwrap();
    [&mark.to_be_bytes()[..], body].concat()
}

/// Allows as many descriptors as this process may have, and gives that number.
pub(crate) fn raise_descriptor_limit() -> u64 {
    let limit = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: limit.maximum, ..limit }).unwrap();
    limit.maximum.unwrap_or(u64::MAX)
}
