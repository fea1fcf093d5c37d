//! One volume and its clients, without sockets.

use std::marker::PhantomData;
use std::sync::Arc;
use weir_core::testing::{MemStore, block_on};
use weir_core::{Credentials, FsError, HandleKey, Rights, Shared, Store, VolumeId};
use weir_nfs::VolumeView;
use weir_nfs::client::{Caller, RemoteCall, Reply};
use weir_nfs::rpc::{Call, Deframer, Step};
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, Fattr3, FileHandle3, GetattrArgs, LookupArgs, MkdirArgs,
    NewObject, ReadArgs, Res, Sattr3, StableHow, Status, WccData, WriteArgs, WriteRes,
};
use weir_nfs::v3::{Route, Served, null, refuse, serve};

pub(crate) const ALICE: Credentials = Credentials::new(10, 100);
pub(crate) const BOB: Credentials = Credentials::new(11, 101);
pub(crate) const ROOT: Credentials = Credentials::ROOT;

pub(crate) const VERIFIER: [u8; 8] = *b"verifier";
pub(crate) const FSID: u64 = 0x5eed;

/// A handle as a client keeps it.
pub(crate) type Handle = Vec<u8>;

pub(crate) struct World {
    pub(crate) volume: Arc<VolumeView<MemStore>>,
}

impl World {
    pub(crate) fn new() -> Self {
        Self::of(1, MemStore::new())
    }

    pub(crate) fn of(id: u32, store: MemStore) -> Self {
        let keys = HandleKey::new(&[42; 16]);
        let volume = VolumeView { id: VolumeId(id), fsid: FSID, store, keys, verifier: VERIFIER };
        Self { volume: Arc::new(volume) }
    }

    pub(crate) fn root(&self) -> Handle {
        let store = &self.volume.store;
        self.volume.seal(store.key(&store.root())).as_bytes().to_vec()
    }

    pub(crate) fn client(&self, cred: Credentials) -> Client<'_> {
        self.with(Rights { cred, read_only: false })
    }

    fn with(&self, rights: Rights) -> Client<'_> {
        Client { world: self, rights: Box::leak(Box::new(rights)) }
    }

    pub(crate) fn read_only(&self, cred: Credentials) -> Client<'_> {
        self.with(Rights { cred, read_only: true })
    }
}

/// A client whose identity the export rule has settled.
#[derive(Clone, Copy)]
pub(crate) struct Client<'w> {
    pub(crate) world: &'w World,
    /// Never freed, so that clients can be copied.
    pub(crate) rights: &'static Rights,
}

/// A reply to a call with arguments `A`.
pub(crate) struct Answer<A> {
    record: Vec<u8>,
    pub(crate) moved: u64,
    pub(crate) status: Status,
    args: PhantomData<A>,
}

impl<A: RemoteCall> Answer<A> {
    pub(crate) fn results(&self) -> A::Results<'_> {
        reply(&self.record).results::<A>().unwrap()
    }

    /// The size of the results without their status, in bytes.
    pub(crate) fn results_bytes(&self) -> usize {
        reply(&self.record).body.unwrap().len() - 4
    }
}

/// The reply in a record that begins with its mark and has nothing after it.
pub(crate) fn reply(record: &[u8]) -> Reply<'_> {
    match Deframer::new().next(record).unwrap() {
        Step::Record { at, consumed } if consumed == record.len() => {
            Reply::parse(&record[at]).unwrap()
        }
        other => panic!("not one whole record: {other:?}"),
    }
}

impl Client<'_> {
    /// The server's treatment of a call: route it, prove its handle, serve it or refuse it.
    pub(crate) fn deliver(&self, call: Call) -> Served {
        let volume = &self.world.volume;
        let refused = |call: &Call, status| Served {
            reply: refuse(call, status, Vec::new()),
            moved: 0,
            status,
        };
        let args = call.args.clone();
        let Ok(Route { handle, .. }) = Route::of(call.procedure, &args) else {
            // Cut off before the handle: `serve` must come to the same, whatever handle it gets.
            let handle = volume.keys.open(&self.world.root()).unwrap();
            return block_on(serve(volume.clone(), self.rights.clone(), handle, call, Vec::new()));
        };
        let Some(handle) = handle else {
            return Served { reply: null(&call, Vec::new()), moved: 0, status: Status::OK };
        };
        match volume.keys.open(handle) {
            Err(error) => refused(&call, error.into()),
            Ok(handle) if handle.volume != volume.id => refused(&call, Status::STALE),
            Ok(handle) => {
                block_on(serve(volume.clone(), self.rights.clone(), handle, call, Vec::new()))
            }
        }
    }

    pub(crate) fn call<A: RemoteCall>(&self, args: &A) -> Answer<A> {
        let mut record = Vec::new();
        Caller::sys(&self.rights.cred, b"client").call(&mut record, 7, args);
        let call = Call::parse(Shared::from(record).skip(4)).unwrap();
        let served = self.deliver(call);
        let answered = reply(&served.reply);
        assert_eq!(answered.xid, 7);
        if A::PROCEDURE != 0 {
            let body = answered.body.unwrap();
            assert_eq!(body[..4], served.status.0.to_be_bytes(), "the status told and written");
        }
        let Served { reply: record, moved, status } = served;
        Answer { record, moved, status, args: PhantomData }
    }

    pub(crate) fn create(&self, dir: &Handle, name: &str, mode: u32) -> Handle {
        let how = CreateHow3::Guarded(with_mode(mode));
        made(self.call(&CreateArgs { location: at(dir, name), how }).results())
    }

    pub(crate) fn mkdir(&self, dir: &Handle, name: &str, mode: u32) -> Handle {
        let attributes = with_mode(mode);
        made(self.call(&MkdirArgs { location: at(dir, name), attributes }).results())
    }

    pub(crate) fn write(&self, file: &Handle, offset: u64, data: &[u8]) -> WriteRes {
        let (file, count) = (FileHandle3(file), u32::try_from(data.len()).unwrap());
        let stable = StableHow::Unstable;
        self.call(&WriteArgs { file, offset, count, stable, data }).results()
    }

    pub(crate) fn read(&self, file: &Handle, offset: u64, count: u32) -> (Vec<u8>, bool) {
        let answer = self.call(&ReadArgs { file: FileHandle3(file), offset, count });
        let read = ok(answer.results());
        assert_eq!(answer.moved, u64::from(read.count));
        assert_eq!(read.data.len(), read.count as usize);
        (read.data.to_vec(), read.eof)
    }

    pub(crate) fn attr(&self, object: &Handle) -> Fattr3 {
        ok(self.call(&GetattrArgs { object: FileHandle3(object) }).results()).attributes
    }

    pub(crate) fn lookup(&self, dir: &Handle, name: &str) -> Result<Handle, Status> {
        match self.call(&LookupArgs { what: at(dir, name) }).results() {
            Res::Ok(found) => Ok(found.object.0.to_vec()),
            Res::Fail(status, _) => Err(status),
        }
    }

    pub(crate) fn fail_after(&self, operations: u32, error: FsError) {
        self.world.volume.store.fail_after(operations, error);
    }
}

pub(crate) fn at<'a>(dir: &'a Handle, name: &'a str) -> DirOpArgs3<'a> {
    DirOpArgs3 { dir: FileHandle3(dir), name: name.as_bytes() }
}

pub(crate) fn with_mode(mode: u32) -> Sattr3 {
    Sattr3 { mode: Some(mode), ..Sattr3::NONE }
}

#[track_caller]
pub(crate) fn ok<O, F: std::fmt::Debug>(result: Res<O, F>) -> O {
    match result {
        Res::Ok(ok) => ok,
        Res::Fail(status, with) => panic!("failed with {status:?}, {with:?}"),
    }
}

#[track_caller]
pub(crate) fn failed<O: std::fmt::Debug, F>(result: Res<O, F>) -> (Status, F) {
    match result {
        Res::Ok(ok) => panic!("succeeded with {ok:?}"),
        Res::Fail(status, with) => (status, with),
    }
}

/// The handle of a new object.
#[track_caller]
pub(crate) fn made(result: Res<NewObject<'_>, WccData>) -> Handle {
    ok(result).object.unwrap().0.to_vec()
}
