//! Opens and locks of SMB clients against calls of NFS clients, and the reverse.

use crate::bed::{Bed, Host, answer, run_alone};
use crate::smb::Smb;
use weir_control::plane::LockOwner;
use weir_nfs::client::{NlmTest, Reply};
use weir_nfs::nlm::Status as Nlm;
use weir_nfs::nlm::wire::{LockArgs, NetObj, Res as NlmRes, TestArgs, TestReply};
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, ReadArgs, RemoveArgs, Sattr3, SetattrArgs,
    StableHow, Status, WriteArgs,
};
use weir_nfs::xdr::decode;
use weir_nfs::{PROGRAM_NLM, PROGRAM_NSM};
use weir_smb::wire::{AccessMask, LockFlags, ShareAccess, Status as Smb2};

const NAME: &str = "file";
const READ_WRITE: AccessMask = AccessMask::READ_DATA.union(AccessMask::WRITE_DATA);
const EXCLUSIVE: LockFlags = LockFlags::EXCLUSIVE.union(LockFlags::FAIL_IMMEDIATELY);
const SHARED: LockFlags = LockFlags::SHARED.union(LockFlags::FAIL_IMMEDIATELY);
const SIZE: u64 = 40;

/// An NFS client, and a file of 40 bytes in the volume that both protocols serve. Root owns it, and
/// everybody may read and write it.
struct Nfs {
    host: Host,
    root: Vec<u8>,
    file: Vec<u8>,
}

/// The statuses of NFS calls that use the data of the file.
#[derive(Debug, PartialEq, Eq)]
struct Uses {
    /// READ of the bytes 0 to 9, and WRITE of them.
    first: (Status, Status),
    /// READ of the bytes 20 to 29, and WRITE of them.
    other: (Status, Status),
    /// SETATTR of the size to 5 bytes.
    cut: Status,
    /// SETATTR of the size to 50 bytes.
    grown: Status,
    /// CREATE of the existing file with a size of 0 (RFC 1813 §3.3.8).
    emptied: Status,
}

const OK: Status = Status::OK;
const JUKEBOX: Status = Status::JUKEBOX;
const FREE: Uses = Uses { first: (OK, OK), other: (OK, OK), cut: OK, grown: OK, emptied: OK };
const REFUSED: Uses = Uses {
    first: (JUKEBOX, JUKEBOX),
    other: (JUKEBOX, JUKEBOX),
    cut: JUKEBOX,
    grown: JUKEBOX,
    emptied: JUKEBOX,
};

impl Nfs {
    fn new(address: &str, name: &'static str) -> Self {
        let mut host = Host::new(address, name);
        let root = host.mount(b"/both");
        let mut own = Self { host, root, file: Vec::new() };
        own.make();
        own
    }

    fn set(&mut self, new_attributes: Sattr3) -> Status {
        let args = SetattrArgs { object: FileHandle3(&self.file), new_attributes, guard: None };
        let record = self.host.call(&args);
        Reply::parse(&record).unwrap().results::<SetattrArgs<'_>>().unwrap().status()
    }

    fn read(&mut self, offset: u64) -> Status {
        let args = ReadArgs { file: FileHandle3(&self.file), offset, count: 10 };
        let record = self.host.call(&args);
        Reply::parse(&record).unwrap().results::<ReadArgs<'_>>().unwrap().status()
    }

    fn write(&mut self, offset: u64) -> Status {
        let (file, stable, data) = (FileHandle3(&self.file), StableHow::Unstable, &[7; 10]);
        let record = self.host.call(&WriteArgs { file, offset, count: 10, stable, data });
        Reply::parse(&record).unwrap().results::<WriteArgs<'_>>().unwrap().status()
    }

    fn empty(&mut self) -> Status {
        let location = DirOpArgs3 { dir: FileHandle3(&self.root), name: NAME.as_bytes() };
        let record = self.host.call(&CreateArgs { location, how: CreateHow3::Unchecked(size(0)) });
        Reply::parse(&record).unwrap().results::<CreateArgs<'_>>().unwrap().status()
    }

    /// Carries out each use of the file. Its size is as before if every use is allowed or none.
    fn uses(&mut self) -> Uses {
        let (first, other) = ((self.read(0), self.write(0)), (self.read(20), self.write(20)));
        let (cut, grown, emptied) = (self.set(size(5)), self.set(size(50)), self.empty());
        Uses { first, other, cut, grown, emptied }
    }

    /// Lets everybody change names in the volume's root.
    fn open_root(&mut self) {
        let new_attributes = Sattr3 { mode: Some(0o777), ..Sattr3::NONE };
        let args = SetattrArgs { object: FileHandle3(&self.root), new_attributes, guard: None };
        let record = self.host.call(&args);
        let done = Reply::parse(&record).unwrap().results::<SetattrArgs<'_>>().unwrap();
        assert_eq!(done.status(), OK);
    }

    fn remove(&mut self) -> Status {
        let object = DirOpArgs3 { dir: FileHandle3(&self.root), name: NAME.as_bytes() };
        let record = self.host.call(&RemoveArgs { object });
        Reply::parse(&record).unwrap().results::<RemoveArgs<'_>>().unwrap().status()
    }

    /// Makes the file anew.
    fn make(&mut self) {
        self.file = self.host.file_of(b"/both", NAME);
        assert_eq!(self.set(Sattr3 { mode: Some(0o666), ..size(SIZE) }), OK);
    }

    /// Makes the size of the file what it was at first.
    fn restore(&mut self) {
        assert_eq!(self.set(size(SIZE)), OK);
    }

    /// Locks the bytes 0 to 9, without waiting.
    fn lock(&mut self, exclusive: bool) -> Nlm {
        let (cookie, lock) = (NetObj(b"lock"), self.host.about(&self.file));
        let args = LockArgs { cookie, block: false, exclusive, lock, reclaim: false, state: 3 };
        self.host.ask_with(args)
    }

    /// The lock that denies an exclusive lock of the bytes 0 to 9: its mode, offset and length.
    fn holder(&mut self) -> (bool, u64, u64) {
        let (cookie, lock) = (NetObj(b"test"), self.host.about(&self.file));
        let record = self.host.call(&NlmTest(TestArgs { cookie, exclusive: true, lock }));
        match Reply::parse(&record).unwrap().results::<NlmTest<'_>>().unwrap().reply {
            TestReply::Denied(holder) => (holder.exclusive, holder.offset, holder.length),
            other => panic!("{other:?}"),
        }
    }

    fn unlock(&mut self) {
        assert_eq!(self.host.unlock(&self.file), Nlm::GRANTED);
    }
}

fn size(bytes: u64) -> Sattr3 {
    Sattr3 { size: Some(bytes), ..Sattr3::NONE }
}

#[test]
fn deny_modes_of_smb_refuse_uses_over_nfs() {
    run_alone("across::body_deny_modes");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_deny_modes() {
    let bed = Bed::start();
    let (mut nfs, mut smb) = (Nfs::new("127.0.0.2", "one"), Smb::connect("both"));
    assert_eq!(nfs.uses(), FREE);
    nfs.restore();
    let all = ShareAccess::all();
    for (share, expected) in [
        (ShareAccess::empty(), REFUSED),
        (ShareAccess::READ, Uses { first: (OK, JUKEBOX), other: (OK, JUKEBOX), ..REFUSED }),
        (all, FREE),
        (ShareAccess::WRITE, Uses { first: (JUKEBOX, OK), other: (JUKEBOX, OK), ..FREE }),
    ] {
        let file = smb.open(NAME, READ_WRITE, share).unwrap();
        assert_eq!(nfs.uses(), expected, "{share:?}");
        smb.close(file);
        assert_eq!(nfs.uses(), FREE, "after {share:?}");
        nfs.restore();
    }
    drop(bed);
}

#[test]
fn nfs_removes_a_file_whatever_opens_of_smb_share() {
    run_alone("across::body_removal");
}

/// A deny mode is about data (RFC 1813 has no opens): as on a POSIX system, a name goes although
/// the file is open.
#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_removal() {
    let bed = Bed::start();
    let (mut nfs, mut smb) = (Nfs::new("127.0.0.2", "one"), Smb::connect("both"));
    nfs.open_root();
    for share in [ShareAccess::empty(), ShareAccess::READ | ShareAccess::WRITE] {
        let file = smb.open(NAME, READ_WRITE, share).unwrap();
        let deletion = smb.open(NAME, AccessMask::DELETE, ShareAccess::all());
        assert_eq!(deletion, Err(Smb2::SHARING_VIOLATION), "over SMB, by {share:?}");
        assert_eq!(nfs.remove(), OK, "{share:?}");
        let again = smb.open(NAME, READ_WRITE, ShareAccess::all());
        assert_eq!(again, Err(Smb2::OBJECT_NAME_NOT_FOUND));
        nfs.make();
        assert_eq!(nfs.uses(), FREE, "the deny mode is not the new file's");
        smb.close(file);
        nfs.restore();
    }
    drop(bed);
}

#[test]
fn locks_of_smb_refuse_uses_over_nfs() {
    run_alone("across::body_locks_of_smb");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_locks_of_smb() {
    let bed = Bed::start();
    let (mut nfs, mut smb) = (Nfs::new("127.0.0.2", "one"), Smb::connect("both"));
    let file = smb.open(NAME, READ_WRITE, ShareAccess::all()).unwrap();
    let rest = Uses { cut: JUKEBOX, emptied: JUKEBOX, ..FREE };
    for (flags, first) in [(EXCLUSIVE, (JUKEBOX, JUKEBOX)), (SHARED, (OK, JUKEBOX))] {
        smb.lock(file, (0, 10), flags).unwrap();
        assert_eq!(nfs.uses(), Uses { first, ..rest }, "{flags:?}");
        smb.lock(file, (0, 10), LockFlags::UNLOCK).unwrap();
        assert_eq!(nfs.uses(), FREE, "after {flags:?}");
        nfs.restore();
    }
    smb.lock(file, (30, 1), EXCLUSIVE).unwrap();
    assert_eq!(nfs.uses(), rest, "behind both ranges");
    smb.lock(file, (30, 1), LockFlags::UNLOCK).unwrap();
    nfs.restore();
    // A lock of no bytes is between two; NLM has no word for it but one byte.
    smb.lock(file, (5, 0), EXCLUSIVE).unwrap();
    assert_eq!(nfs.holder(), (true, 5, 1));
    smb.lock(file, (5, 0), LockFlags::UNLOCK).unwrap();
    smb.lock(file, (45, 1), EXCLUSIVE).unwrap();
    assert_eq!(nfs.uses(), Uses { grown: JUKEBOX, ..rest }, "behind the end");
    smb.close(file);
    assert_eq!(nfs.uses(), FREE);
    drop(bed);
}

#[test]
fn locks_of_nfs_refuse_uses_over_smb() {
    run_alone("across::body_locks_of_nfs");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_locks_of_nfs() {
    let bed = Bed::start();
    let (mut nfs, mut smb) = (Nfs::new("127.0.0.2", "one"), Smb::connect("both"));
    let file = smb.open(NAME, READ_WRITE, ShareAccess::all()).unwrap();
    let conflict = Err(Smb2::FILE_LOCK_CONFLICT);
    for exclusive in [true, false] {
        assert_eq!(nfs.lock(exclusive), Nlm::GRANTED);
        let read = if exclusive { conflict } else { Ok(()) };
        assert_eq!(smb.read(file, 5).map(drop), read, "exclusive: {exclusive}");
        assert_eq!(smb.read(file, 10).map(drop), Ok(()));
        assert_eq!(smb.write(file, 0, b"x"), conflict);
        assert_eq!(smb.write(file, 10, b"x"), Ok(()));
        assert_eq!(smb.set_size(file, 5), conflict);
        assert_eq!(smb.lock(file, (9, 1), EXCLUSIVE), Err(Smb2::LOCK_NOT_GRANTED));
        let shared = if exclusive { Err(Smb2::LOCK_NOT_GRANTED) } else { Ok(()) };
        assert_eq!(smb.lock(file, (9, 1), SHARED), shared);
        nfs.unlock();
        assert_eq!(smb.read(file, 5).map(drop), Ok(()));
        let own = if exclusive { Ok(()) } else { conflict };
        assert_eq!(smb.write(file, 9, b"x"), own, "a shared lock binds its own holder");
        if !exclusive {
            smb.lock(file, (9, 1), LockFlags::UNLOCK).unwrap();
        }
        assert_eq!(smb.set_size(file, 5), Ok(()));
        assert_eq!(smb.set_size(file, SIZE), Ok(()));
    }
    drop(bed);
}

#[test]
fn locks_of_both_protocols_wait_for_each_other() {
    run_alone("across::body_waiting");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_waiting() {
    let bed = Bed::start();
    let (mut nfs, mut smb) = (Nfs::new("127.0.0.2", "one"), Smb::connect("both"));
    let file = smb.open(NAME, READ_WRITE, ShareAccess::all()).unwrap();
    assert_eq!(nfs.lock(true), Nlm::GRANTED);
    let waiting = smb.send_lock(file, (0, 10), LockFlags::EXCLUSIVE);
    smb.receive_interim(waiting);
    nfs.unlock();
    assert_eq!(smb.receive(waiting).0.status, Smb2::SUCCESS);

    assert_eq!(nfs.holder(), (true, 0, 10));
    assert_eq!(nfs.lock(true), Nlm::DENIED);
    assert_eq!(nfs.host.ask(&nfs.file, true, false), Nlm::BLOCKED);
    smb.close(file);
    let (call, from) = nfs.host.called(PROGRAM_NLM);
    let granted: TestArgs<'_> = decode(&call.args).unwrap();
    assert_eq!(granted.lock, nfs.host.about(&nfs.file));
    let res = NlmRes { cookie: granted.cookie, status: Nlm::GRANTED };
    answer(&nfs.host.program, &call, from, &res);
    let file = smb.open(NAME, READ_WRITE, ShareAccess::all()).unwrap();
    assert_eq!(smb.read(file, 0).map(drop), Err(Smb2::FILE_LOCK_CONFLICT));
    nfs.unlock();
    bed.wait_until_held(0);
}

#[test]
fn smb_clients_get_no_lock_in_the_grace_period() {
    run_alone("across::body_grace");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_grace() {
    let mut bed = Bed::start();
    let mut nfs = Nfs::new("127.0.0.2", "one");
    // In another volume, so that no lock but the grace period is in the way.
    let other = nfs.host.file("other");
    assert_eq!(nfs.host.lock(&other), Nlm::GRANTED);
    bed.restart();
    let (call, from) = nfs.host.called(PROGRAM_NSM);
    answer(&nfs.host.program, &call, from, &());
    nfs.host.again();
    let mut smb = Smb::connect("both");
    let file = smb.open(NAME, READ_WRITE, ShareAccess::all()).unwrap();
    for flags in [EXCLUSIVE, SHARED, LockFlags::EXCLUSIVE] {
        let refused = smb.lock(file, (0, 10), flags);
        assert_eq!(refused, Err(Smb2::LOCK_NOT_GRANTED), "{flags:?}");
    }
    assert_eq!(smb.write(file, 0, b"x"), Ok(()));
    assert_eq!(nfs.host.ask(&other, false, true), Nlm::GRANTED, "a reclaim");
    bed.wait_until_held(1);
    // The client for whom the grace period is has restarted too, and reclaims nothing more.
    nfs.host.notify("one", 5);
    bed.wait_until_held(0);
    assert_eq!(smb.lock(file, (0, 10), EXCLUSIVE), Ok(()));
}

#[test]
fn an_operator_closes_locks_of_clients_that_are_gone() {
    run_alone("across::body_closed_by_hand");
}

#[test]
#[ignore = "run in a network of its own by the test above"]
fn body_closed_by_hand() {
    let bed = Bed::start();
    let (mut nfs, mut smb) = (Nfs::new("127.0.0.2", "one"), Smb::connect("both"));
    let file = smb.open(NAME, READ_WRITE, ShareAccess::all()).unwrap();
    assert_eq!(nfs.lock(true), Nlm::GRANTED);
    assert_eq!(smb.lock(file, (0, 10), EXCLUSIVE), Err(Smb2::LOCK_NOT_GRANTED));
    let waiting = smb.send_lock(file, (0, 10), LockFlags::EXCLUSIVE);
    smb.receive_interim(waiting);

    // The wait is ended, and the lock of the other protocol stays.
    let [held, request] = bed.lock_ids().try_into().unwrap();
    assert!(bed.close_lock(&request).unwrap().waits);
    assert_eq!(smb.receive(waiting).0.status, Smb2::CANCELLED);
    assert_eq!(bed.close_lock(&request), None);
    assert_eq!(bed.lock_ids().first(), Some(&held), "the same ID in the next list");

    // The request that waits gets the lock, and later ones see the new owner.
    let waiting = smb.send_lock(file, (0, 10), LockFlags::EXCLUSIVE);
    smb.receive_interim(waiting);
    let closed = bed.close_lock(&held).unwrap();
    assert!(matches!(closed.owner, LockOwner::Nlm { process: Some(1), .. }), "{closed:?}");
    assert_eq!((closed.offset, closed.length, closed.waits), (0, Some(10), false));
    assert_eq!(smb.receive(waiting).0.status, Smb2::SUCCESS);
    assert_eq!(nfs.lock(true), Nlm::DENIED);

    // A lock of SMB goes to an NFS client that waits, which is called back.
    assert_eq!(nfs.host.ask(&nfs.file, true, false), Nlm::BLOCKED);
    let [held, _] = bed.lock_ids().try_into().unwrap();
    assert!(matches!(bed.close_lock(&held).unwrap().owner, LockOwner::Smb { .. }));
    let (call, from) = nfs.host.called(PROGRAM_NLM);
    let granted: TestArgs<'_> = decode(&call.args).unwrap();
    assert_eq!(granted.lock, nfs.host.about(&nfs.file));
    let res = NlmRes { cookie: granted.cookie, status: Nlm::GRANTED };
    answer(&nfs.host.program, &call, from, &res);
    let unlocked = smb.lock(file, (0, 10), LockFlags::UNLOCK);
    assert_eq!(unlocked, Err(Smb2::RANGE_NOT_LOCKED));

    let [held] = bed.lock_ids().try_into().unwrap();
    assert!(bed.close_lock(&held).is_some());
    bed.wait_until_held(0);
    nfs.unlock();
}
