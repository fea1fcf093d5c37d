//! A server without sockets, and hosts that ask it for locks.

use std::net::IpAddr;
use weir_core::{Mono, ObjectKey, Shared, VolumeId};
use weir_nfs::client::{
    Caller, NlmCancel, NlmLock, NlmShare, NlmTest, NlmUnlock, NlmUnshare, RemoteCall, Reply,
};
use weir_nfs::nlm::wire::{
    CallerName, CancelArgs, Lock, LockArgs, NetObj, Share, ShareArgs, ShareBits, TestArgs,
    TestReply, UnlockArgs,
};
use weir_nfs::nlm::{
    Callback, Delivery, Host, LockManager, Next, Peer, Procedure, Request, Status, Waiting,
};
use weir_nfs::rpc::Call;
use weir_nfs::xdr::{Encode, Writer, decode};
use weir_state::{File, Grant, Limits, Tables};

pub(crate) const NOW: Mono = Mono::from_millis(1000);
pub(crate) const VOLUME: VolumeId = VolumeId(1);
pub(crate) const COOKIE: &[u8] = b"cookie";

/// A host, and one of its processes.
#[derive(Clone, Copy)]
pub(crate) struct Process {
    pub(crate) address: &'static str,
    pub(crate) name: &'static str,
    pub(crate) svid: u32,
    /// The state number of the host's monitor.
    pub(crate) state: u32,
}

pub(crate) const A: Process = Process { address: "10.0.0.1", name: "a", svid: 1, state: 3 };
pub(crate) const B: Process = Process { address: "10.0.0.2", name: "b", svid: 1, state: 3 };
pub(crate) const C: Process = Process { address: "10.0.0.3", name: "c", svid: 1, state: 3 };

/// The subject of a lock: the file's name, offset and length.
pub(crate) type About = (&'static str, u64, u64);

pub(crate) const FILE: About = ("file", 0, 0);

impl Process {
    pub(crate) fn peer(&self) -> Peer {
        let local = "10.0.0.9".parse().unwrap();
        Peer { address: self.address.parse().unwrap(), local }
    }

    pub(crate) fn ip(&self) -> IpAddr {
        self.address.parse().unwrap()
    }

    pub(crate) fn about(&self, (file, offset, length): About) -> Lock<'static> {
        let (caller_name, fh) = (CallerName(self.name.as_bytes()), NetObj(file.as_bytes()));
        Lock { caller_name, fh, oh: NetObj(b"oh"), svid: self.svid, offset, length }
    }

    pub(crate) fn lock(&self, about: About, exclusive: bool) -> LockArgs<'static> {
        LockArgs {
            cookie: NetObj(COOKIE),
            block: false,
            exclusive,
            lock: self.about(about),
            reclaim: false,
            state: self.state,
        }
    }

    pub(crate) fn share(&self, access: u32, deny: u32) -> ShareArgs<'static> {
        let (caller_name, fh) = (CallerName(self.name.as_bytes()), NetObj(b"file"));
        let (access, deny) = (ShareBits(access), ShareBits(deny));
        let share = Share { caller_name, fh, oh: NetObj(b"oh"), deny, access };
        ShareArgs { cookie: NetObj(COOKIE), share, reclaim: false }
    }
}

/// The server. Every handle names a file but `gone`, whose file is no more.
pub(crate) struct World {
    pub(crate) manager: LockManager,
    pub(crate) tables: Tables<Waiting>,
    pub(crate) now: Mono,
    /// Calls that clients are to get.
    pub(crate) callbacks: Vec<Callback>,
}

pub(crate) fn file(handle: &[u8]) -> Result<File, Status> {
    match handle {
        b"gone" => Err(Status::STALE_FH),
        _ => Ok(File { volume: VOLUME, object: ObjectKey::new(handle).unwrap() }),
    }
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with_limits(Limits::SERVER)
    }

    pub(crate) fn with_limits(limits: Limits) -> Self {
        let mut tables = Tables::new(limits);
        tables.open(VOLUME);
        Self { manager: LockManager::default(), tables, now: NOW, callbacks: Vec::new() }
    }

    /// Notes the calls to make of the clients that got these locks.
    pub(crate) fn granted(&mut self, grants: Vec<Grant<Waiting>>) {
        let told = |grant: Grant<Waiting>| Callback::granted(grant.id, &grant.ask, &grant.waiter);
        self.callbacks.extend(grants.into_iter().filter_map(told));
    }

    /// The host that calls itself `name` at `address` begins the life `state`.
    pub(crate) fn rebooted(&mut self, address: IpAddr, name: &str, state: u32) {
        let grants = self.manager.rebooted(&mut self.tables, address, name.as_bytes(), state);
        self.granted(grants);
    }

    /// The hosts that hold anything or wait.
    pub(crate) fn hosts(&self) -> Vec<Host> {
        self.tables.clients().filter_map(Host::of).collect()
    }

    /// Carries out `request`, as the call 7.
    pub(crate) fn serve(
        &mut self,
        peer: &Peer,
        request: &Request<'_>,
        file: Result<File, Status>,
    ) -> (Vec<u8>, Status) {
        let (tables, waiter) = (&mut self.tables, request.waiting(peer));
        let served = self.manager.serve(tables, self.now, peer, request, file, waiter);
        self.callbacks.extend(served.answer);
        self.granted(served.grants);
        (served.reply, served.status)
    }

    /// The reply record to `args`, without its mark, and the outcome.
    pub(crate) fn call<A: RemoteCall>(&mut self, peer: &Peer, args: &A) -> (Vec<u8>, Status) {
        let mut record = Vec::new();
        Caller::none().call(&mut record, 7, args);
        let call = Call::parse(Shared::from(record).skip(4)).unwrap();
        let request = Request::parse(&call).unwrap();
        let file = request.target().map_or(Err(Status::FAILED), |target| file(target.handle));
        let (reply, status) = self.serve(peer, &request, file);
        (reply[4..].to_vec(), status)
    }

    pub(crate) fn ask(&mut self, who: &Process, args: LockArgs<'_>) -> Status {
        let (reply, status) = self.call(&who.peer(), &NlmLock(args));
        let res = Reply::parse(&reply).unwrap().results::<NlmLock<'_>>().unwrap();
        assert_eq!((res.cookie.0, res.status), (COOKIE, status));
        status
    }

    pub(crate) fn lock(&mut self, who: &Process, about: About, exclusive: bool) -> Status {
        self.ask(who, who.lock(about, exclusive))
    }

    pub(crate) fn wait(&mut self, who: &Process, about: About, exclusive: bool) -> Status {
        self.ask(who, LockArgs { block: true, ..who.lock(about, exclusive) })
    }

    pub(crate) fn reclaim(&mut self, who: &Process, about: About, exclusive: bool) -> Status {
        self.ask(who, LockArgs { reclaim: true, ..who.lock(about, exclusive) })
    }

    pub(crate) fn unlock(&mut self, who: &Process, about: About) -> Status {
        let args = UnlockArgs { cookie: NetObj(COOKIE), lock: who.about(about) };
        let (reply, status) = self.call(&who.peer(), &NlmUnlock(args));
        let res = Reply::parse(&reply).unwrap().results::<NlmUnlock<'_>>().unwrap();
        assert_eq!((res.cookie.0, res.status), (COOKIE, status));
        status
    }

    pub(crate) fn cancel(&mut self, who: &Process, about: About, exclusive: bool) -> Status {
        let cookie = NetObj(COOKIE);
        let args = CancelArgs { cookie, block: true, exclusive, lock: who.about(about) };
        let (reply, status) = self.call(&who.peer(), &NlmCancel(args));
        let res = Reply::parse(&reply).unwrap().results::<NlmCancel<'_>>().unwrap();
        assert_eq!((res.cookie.0, res.status), (COOKIE, status));
        status
    }

    /// The holder of a lock that `who` would like, as TEST tells it: alone?, process, offset,
    /// length.
    pub(crate) fn holder(
        &mut self,
        who: &Process,
        about: About,
        exclusive: bool,
    ) -> Result<Option<(bool, u32, u64, u64)>, Status> {
        let args = TestArgs { cookie: NetObj(COOKIE), exclusive, lock: who.about(about) };
        let (reply, _) = self.call(&who.peer(), &NlmTest(args));
        let res = Reply::parse(&reply).unwrap().results::<NlmTest<'_>>().unwrap();
        assert_eq!(res.cookie.0, COOKIE);
        match res.reply {
            TestReply::Denied(by) => {
                assert_eq!(by.oh.0, b"oh");
                Ok(Some((by.exclusive, by.svid, by.offset, by.length)))
            }
            TestReply::Other(Status::GRANTED) => Ok(None),
            TestReply::Other(status) => Err(status),
        }
    }

    pub(crate) fn share(&mut self, who: &Process, access: u32, deny: u32) -> Status {
        let (reply, status) = self.call(&who.peer(), &NlmShare(who.share(access, deny)));
        let res = Reply::parse(&reply).unwrap().results::<NlmShare<'_>>().unwrap();
        assert_eq!((res.cookie.0, res.status, res.sequence), (COOKIE, status, 0));
        status
    }

    pub(crate) fn unshare(&mut self, who: &Process) -> Status {
        let (reply, status) = self.call(&who.peer(), &NlmUnshare(who.share(0, 0)));
        let res = Reply::parse(&reply).unwrap().results::<NlmUnshare<'_>>().unwrap();
        assert_eq!((res.cookie.0, res.status), (COOKIE, status));
        status
    }

    /// The one call that is to be made, which tells `who` that it has `about`.
    pub(crate) fn grant(&mut self, who: &Process, about: About) -> Callback {
        assert_eq!(self.callbacks.len(), 1, "{:?}", self.callbacks);
        let callback = self.callbacks.pop().unwrap();
        assert_eq!(callback.peer, who.peer());
        let args: TestArgs<'_> = decode(&callback.args).unwrap();
        assert_eq!(args.lock, who.about(about), "a client compares all of it");
        callback
    }

    /// Delivers `callback`, with this answer of the client's.
    pub(crate) fn answered(&mut self, callback: Callback, status: Status) -> Next {
        assert_eq!(callback.procedure, Procedure::Granted);
        let mut out = Writer::default();
        NetObj(b"any").encode(&mut out);
        status.encode(&mut out);
        self.delivered(callback, Delivery::Answered(out.as_bytes()))
    }

    pub(crate) fn delivered(&mut self, callback: Callback, delivery: Delivery<'_>) -> Next {
        let (next, grants) = LockManager::delivered(&mut self.tables, callback, delivery);
        self.granted(grants);
        next
    }
}
