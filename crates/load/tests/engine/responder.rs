//! A small NFS server over the in-memory store, with a hook that may meddle with every call.

use rustix::net::{SendFlags, send};
use std::collections::{BTreeMap, BTreeSet};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use weir_core::store::Want;
use weir_core::testing::{MemStore, block_on};
use weir_core::{Credentials, HandleKey, Name, Rights, Shared, Store, VolumeId};
use weir_load::{NfsTarget, Target};
use weir_nfs::VolumeView;
use weir_nfs::mount::wire::{Flavors, MountStatus};
use weir_nfs::mount::{Export, Exports, Mount, MountGrant};
use weir_nfs::rpc::{Call, Credential, Deframer, Step};
use weir_nfs::v3::wire::Status;
use weir_nfs::v3::{Route, null, refuse, serve};
use weir_nfs::{PROGRAM_MOUNT, mount};

/// The number of the procedure READ (RFC 1813 §3.3.6).
const READ: u32 = 6;

/// Meddles with a reply.
pub(crate) type Alteration = Box<dyn FnOnce(&mut Vec<u8>)>;

/// The treatment of a call.
pub(crate) enum Verdict {
    Serve,
    Fail(Status),
    Close,
    /// Serve it, and meddle with the reply (the whole record).
    Alter(Alteration),
}

/// Looks at each NFS call: procedure and arguments, which it may change.
pub(crate) type Hook = Arc<dyn Fn(u32, &mut Vec<u8>) -> Verdict + Send + Sync>;

/// The connections that are served.
pub(crate) struct Door {
    /// Restarts of the server. Nothing is answered on connections from before the last one.
    restarts: AtomicU64,
    /// Looks at each new connection: `false` ends it.
    opens: Box<dyn Fn() -> bool + Send + Sync>,
}

impl Door {
    pub(crate) fn new(opens: impl Fn() -> bool + Send + Sync + 'static) -> Arc<Self> {
        Arc::new(Self { restarts: AtomicU64::new(0), opens: Box::new(opens) })
    }

    /// The server restarts.
    pub(crate) fn restart(&self) {
        self.restarts.fetch_add(1, Ordering::SeqCst);
    }

    fn restarts(&self) -> u64 {
        self.restarts.load(Ordering::SeqCst)
    }
}

pub(crate) struct Responder {
    address: SocketAddr,
    shared: Arc<World>,
}

struct World {
    volume: Arc<VolumeView<MemStore>>,
    hook: Hook,
    door: Arc<Door>,
    peers: Mutex<BTreeSet<SocketAddr>>,
    /// Machine names of callers.
    machines: Mutex<BTreeSet<String>>,
    /// Own addresses that clients connected to.
    locals: Mutex<BTreeSet<SocketAddr>>,
    /// READs by the address of the client's end of the connection.
    reads: Mutex<BTreeMap<SocketAddr, u64>>,
    /// Calls that came with one read, at most.
    most_at_once: AtomicUsize,
    /// Replies to calls that came with one read leave the other way round.
    is_backwards: AtomicBool,
}

impl Responder {
    pub(crate) fn start() -> Self {
        Self::with_hook(Arc::new(|_, _| Verdict::Serve))
    }

    pub(crate) fn with_hook(hook: Hook) -> Self {
        Self::with_door(hook, Door::new(|| true))
    }

    pub(crate) fn with_door(hook: Hook, door: Arc<Door>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let volume = Arc::new(VolumeView {
            id: VolumeId(1),
            fsid: 1,
            store: MemStore::new(),
            keys: HandleKey::new(&[7; 16]),
            verifier: [1; 8],
        });
        let (peers, locals, machines) = (Mutex::default(), Mutex::default(), Mutex::default());
        let (most_at_once, is_backwards) = (AtomicUsize::new(0), AtomicBool::new(false));
        let reads = Mutex::default();
        let shared = Arc::new(World {
            volume,
            hook,
            door,
            peers,
            machines,
            locals,
            reads,
            most_at_once,
            is_backwards,
        });
        World::listen(&shared, listener);
        Self { address, shared }
    }

    /// Serves the same at another address.
    pub(crate) fn also_at(&self, ip: &str) -> SocketAddr {
        let listener = TcpListener::bind((ip, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        World::listen(&self.shared, listener);
        address
    }

    /// From now on the last of several calls is answered first.
    pub(crate) fn answer_backwards(&self) {
        self.shared.is_backwards.store(true, Ordering::Relaxed);
    }

    /// Calls that came with one read, at most.
    pub(crate) fn most_at_once(&self) -> usize {
        self.shared.most_at_once.load(Ordering::Relaxed)
    }

    /// Own addresses that clients connected to.
    pub(crate) fn locals(&self) -> BTreeSet<SocketAddr> {
        self.shared.locals.lock().unwrap().clone()
    }

    /// READs on each connection that had any, in ascending order.
    pub(crate) fn reads(&self) -> Vec<u64> {
        let mut reads: Vec<_> = self.shared.reads.lock().unwrap().values().copied().collect();
        reads.sort_unstable();
        reads
    }

    pub(crate) fn target(&self) -> Target {
        Target::Nfs(self.nfs_target("/vol"))
    }

    pub(crate) fn nfs_target(&self, export: &str) -> NfsTarget {
        NfsTarget::new(self.address, export)
    }

    /// Addresses that clients came from.
    pub(crate) fn peers(&self) -> BTreeSet<IpAddr> {
        self.shared.peers.lock().unwrap().iter().map(SocketAddr::ip).collect()
    }

    /// Ports that clients came from.
    pub(crate) fn ports(&self) -> BTreeSet<u16> {
        self.shared.peers.lock().unwrap().iter().map(SocketAddr::port).collect()
    }

    /// Machine names of callers.
    pub(crate) fn machines(&self) -> BTreeSet<String> {
        self.shared.machines.lock().unwrap().clone()
    }

    /// Names in the export's top directory.
    pub(crate) fn names(&self) -> Vec<String> {
        self.names_in(&[])
    }

    /// Names in the directory at this path.
    pub(crate) fn names_in(&self, path: &[&str]) -> Vec<String> {
        let store = &self.shared.volume.store;
        let mut at = store.root();
        for name in path {
            let name = Name::new(name.as_bytes()).unwrap();
            at = block_on(store.lookup(&at, name)).unwrap().0;
        }
        let page = block_on(store.read_dir(&at, 0, 1000, 1 << 20, Want::Names)).unwrap();
        let name = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let mut names: Vec<_> = page.entries.iter().map(|entry| name(&entry.name)).collect();
        names.retain(|name| name != "." && name != "..");
        names
    }
}

impl World {
    fn listen(world: &Arc<Self>, listener: TcpListener) {
        let world = Arc::clone(world);
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten().filter(|_| (world.door.opens)()) {
                let world = Arc::clone(&world);
                std::thread::spawn(move || world.talk(stream));
            }
        });
    }

    fn talk(&self, mut stream: TcpStream) {
        stream.set_nodelay(true).unwrap();
        let peer = stream.peer_addr().unwrap();
        self.peers.lock().unwrap().insert(peer);
        self.locals.lock().unwrap().insert(stream.local_addr().unwrap());
        let began = self.door.restarts();
        let (mut deframer, mut bytes) = (Deframer::new(), Vec::new());
        let mut chunk = vec![0; 1 << 16];
        while let Ok(len) = stream.read(&mut chunk)
            && len > 0
        {
            bytes.extend_from_slice(&chunk[..len]);
            let mut replies: Vec<Vec<u8>> = Vec::new();
            while let Step::Record { at, consumed } = deframer.next(&bytes).unwrap() {
                let answer = self.answer(peer, &bytes[at]);
                if self.door.restarts() != began {
                    return;
                }
                let Some(reply) = answer else {
                    // The earlier replies leave in one segment with the end.
                    let out: Vec<u8> = replies.concat();
                    send(&stream, &out, SendFlags::MORE).ok();
                    return;
                };
                replies.push(reply);
                bytes.drain(..consumed);
            }
            self.most_at_once.fetch_max(replies.len(), Ordering::Relaxed);
            if self.is_backwards.load(Ordering::Relaxed) {
                replies.reverse();
            }
            if stream.write_all(&replies.concat()).is_err() {
                return;
            }
        }
    }

    /// The reply, or `None` to close the connection.
    fn answer(&self, peer: SocketAddr, record: &[u8]) -> Option<Vec<u8>> {
        self.machines.lock().unwrap().insert(machine(record));
        let mut call = Call::parse(Shared::from(record.to_vec())).unwrap();
        if call.program == PROGRAM_MOUNT {
            return Some(mount::serve(&call, self, Vec::new()));
        }
        if call.procedure == READ {
            *self.reads.lock().unwrap().entry(peer).or_default() += 1;
        }
        let mut args = call.args.to_vec();
        let mut alter: Alteration = Box::new(|_| {});
        match (self.hook)(call.procedure, &mut args) {
            Verdict::Serve => {}
            Verdict::Alter(with) => alter = with,
            Verdict::Fail(status) => return Some(refuse(&call, status, Vec::new())),
            Verdict::Close => return None,
        }
        call.args = Shared::from(args.clone());
        let Some(handle) = Route::of(call.procedure, &args).unwrap().handle else {
            return Some(null(&call, Vec::new()));
        };
        let handle = self.volume.keys.open(handle).unwrap();
        let cred = match call.credential {
            Credential::Sys(ref auth) => auth.credentials.clone(),
            _ => Credentials::new(65534, 65534),
        };
        let rights = Rights { cred, read_only: false };
        let volume = Arc::clone(&self.volume);
        let mut reply = block_on(serve(volume, rights, handle, call, Vec::new())).reply;
        alter(&mut reply);
        Some(reply)
    }
}

impl Exports for World {
    fn mount(&self, path: &[u8]) -> Result<MountGrant, MountStatus> {
        if path != b"/vol" {
            return Err(MountStatus::NOENT);
        }
        let store = &self.volume.store;
        let handle = self.volume.seal(store.key(&store.root()));
        Ok(MountGrant { handle, flavors: Flavors::new(&[1]) })
    }

    fn exports(&self) -> Vec<Export> {
        vec![Export { path: b"/vol".to_vec(), groups: Vec::new() }]
    }

    fn mounts(&self) -> Vec<Mount> {
        Vec::new()
    }

    fn unmount(&self, _: &[u8]) {}

    fn unmount_all(&self) {}
}

/// The machine name in the AUTH_SYS credential of a call (RFC 5531 §9 and appendix A).
fn machine(record: &[u8]) -> String {
    let len = u32::from_be_bytes(record[36..40].try_into().unwrap()) as usize;
    String::from_utf8(record[40..40 + len].to_vec()).unwrap()
}

/// The place of the offset in the arguments of READ and WRITE, behind the handle.
pub(crate) fn offset_at(args: &[u8]) -> usize {
    let len = u32::from_be_bytes(args[..4].try_into().unwrap()) as usize;
    4 + len.next_multiple_of(4)
}

/// The offset in the arguments of READ and WRITE.
pub(crate) fn offset(args: &[u8]) -> u64 {
    let at = offset_at(args);
    u64::from_be_bytes(args[at..at + 8].try_into().unwrap())
}

/// The length in the arguments of READ and WRITE.
pub(crate) fn count(args: &[u8]) -> u32 {
    let at = offset_at(args) + 8;
    u32::from_be_bytes(args[at..at + 4].try_into().unwrap())
}

/// Cuts a READ, or a WRITE with its data, to at most `most` bytes; `true` if it was longer.
pub(crate) fn cut(args: &mut Vec<u8>, most: u32) -> bool {
    let wanted = count(args);
    if wanted <= most {
        return false;
    }
    let at = offset_at(args) + 8;
    args[at..at + 4].copy_from_slice(&most.to_be_bytes());
    // Behind the count, a WRITE has the stability, and the length of the data before the data.
    if args.len() > at + 4 {
        args[at + 8..at + 12].copy_from_slice(&most.to_be_bytes());
        args.truncate(at + 12 + most as usize);
        args.resize((at + 12 + most as usize).next_multiple_of(4), 0);
    }
    true
}

/// Moves a READ or WRITE elsewhere.
pub(crate) fn redirect(args: &mut [u8], to: u64) {
    let at = offset_at(args);
    args[at..at + 8].copy_from_slice(&to.to_be_bytes());
}

/// An address where nobody listens for as long as it is held.
pub(crate) fn nobody() -> (SocketAddr, socket2::Socket) {
    let held = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
    held.bind(&SocketAddr::from(([127, 0, 0, 1], 0)).into()).unwrap();
    (held.local_addr().unwrap().as_socket().unwrap(), held)
}
