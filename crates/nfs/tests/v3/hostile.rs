//! Bad handles and bad bytes: always a reply the client can decode, never a panic.

use crate::world::{ALICE, Client, Handle, World, at, failed, made, ok, reply};
use proptest::prelude::*;
use weir_core::testing::MemStore;
use weir_core::{FileHandle, ObjectKey, Shared, SnapshotId, VolumeId};
use weir_nfs::client::{Refused, RemoteCall};
use weir_nfs::rpc::{AcceptError, Call, Credential};
use weir_nfs::v3::wire::{
    AccessArgs, AccessBits, CommitArgs, CreateArgs, CreateHow3, FileHandle3, FsInfoArgs,
    FsStatArgs, GetattrArgs, LinkArgs, LookupArgs, MkdirArgs, MknodArgs, MknodData3, PathconfArgs,
    Procedure, ReadArgs, ReaddirArgs, ReaddirplusArgs, ReadlinkArgs, RemoveArgs, RenameArgs,
    RmdirArgs, Sattr3, SetattrArgs, StableHow, Status, SymlinkArgs, WriteArgs,
};
use weir_nfs::v3::{Served, null, refuse};
use weir_nfs::xdr::{Decode, Encode, Reader, Writer};

fn call(procedure: u32, args: Vec<u8>) -> Call {
    Call {
        xid: 7,
        program: weir_nfs::PROGRAM_NFS,
        version: weir_nfs::v3::VERSION,
        procedure,
        credential: Credential::None,
        args: Shared::from(args),
    }
}

/// Is `body` a whole result of the procedure, and nothing more?
fn is_result_of(procedure: Procedure, body: &[u8]) -> bool {
    fn whole<'a, A: RemoteCall>(body: &'a [u8]) -> bool {
        let mut input = Reader::new(body);
        A::Results::<'a>::decode(&mut input).is_ok() && input.finish().is_ok()
    }
    match procedure {
        Procedure::Null => body.is_empty(),
        Procedure::Getattr => whole::<GetattrArgs<'_>>(body),
        Procedure::Setattr => whole::<SetattrArgs<'_>>(body),
        Procedure::Lookup => whole::<LookupArgs<'_>>(body),
        Procedure::Access => whole::<AccessArgs<'_>>(body),
        Procedure::Readlink => whole::<ReadlinkArgs<'_>>(body),
        Procedure::Read => whole::<ReadArgs<'_>>(body),
        Procedure::Write => whole::<WriteArgs<'_>>(body),
        Procedure::Create => whole::<CreateArgs<'_>>(body),
        Procedure::Mkdir => whole::<MkdirArgs<'_>>(body),
        Procedure::Symlink => whole::<SymlinkArgs<'_>>(body),
        Procedure::Mknod => whole::<MknodArgs<'_>>(body),
        Procedure::Remove => whole::<RemoveArgs<'_>>(body),
        Procedure::Rmdir => whole::<RmdirArgs<'_>>(body),
        Procedure::Rename => whole::<RenameArgs<'_>>(body),
        Procedure::Link => whole::<LinkArgs<'_>>(body),
        Procedure::Readdir => whole::<ReaddirArgs<'_>>(body),
        Procedure::Readdirplus => whole::<ReaddirplusArgs<'_>>(body),
        Procedure::Fsstat => whole::<FsStatArgs<'_>>(body),
        Procedure::Fsinfo => whole::<FsInfoArgs<'_>>(body),
        Procedure::Pathconf => whole::<PathconfArgs<'_>>(body),
        Procedure::Commit => whole::<CommitArgs<'_>>(body),
    }
}

fn bytes(args: &impl Encode) -> Vec<u8> {
    let mut out = Writer::default();
    args.encode(&mut out);
    out.into_vec()
}

/// Arguments of every procedure but NULL, valid but for the handle where that is not.
fn valid_args(handle: &Handle) -> Vec<(Procedure, Vec<u8>)> {
    let fh = FileHandle3(handle);
    let name = at(handle, "name");
    let (set, how) = (Sattr3::NONE, CreateHow3::Guarded(Sattr3::NONE));
    let (access, stable) = (AccessBits::all(), StableHow::FileSync);
    let (cookie_verifier, what) = ([0; 8], MknodData3::Fifo(set));
    let list = ReaddirArgs { dir: fh, cookie: 0, cookie_verifier, count: 4096 };
    let plus =
        ReaddirplusArgs { dir: fh, cookie: 0, cookie_verifier, dir_count: 4096, max_count: 4096 };
    let setattr = SetattrArgs { object: fh, new_attributes: set, guard: None };
    let write = WriteArgs { file: fh, offset: 0, count: 4, stable, data: b"data" };
    vec![
        (Procedure::Getattr, bytes(&GetattrArgs { object: fh })),
        (Procedure::Setattr, bytes(&setattr)),
        (Procedure::Lookup, bytes(&LookupArgs { what: name })),
        (Procedure::Access, bytes(&AccessArgs { object: fh, access })),
        (Procedure::Readlink, bytes(&ReadlinkArgs { symlink: fh })),
        (Procedure::Read, bytes(&ReadArgs { file: fh, offset: 0, count: 10 })),
        (Procedure::Write, bytes(&write)),
        (Procedure::Create, bytes(&CreateArgs { location: name, how })),
        (Procedure::Mkdir, bytes(&MkdirArgs { location: name, attributes: set })),
        (
            Procedure::Symlink,
            bytes(&SymlinkArgs { location: name, attributes: set, data: b"target" }),
        ),
        (Procedure::Mknod, bytes(&MknodArgs { location: name, what })),
        (Procedure::Remove, bytes(&RemoveArgs { object: name })),
        (Procedure::Rmdir, bytes(&RmdirArgs { object: name })),
        (Procedure::Rename, bytes(&RenameArgs { from: name, to: name })),
        (Procedure::Link, bytes(&LinkArgs { file: fh, link: name })),
        (Procedure::Readdir, bytes(&list)),
        (Procedure::Readdirplus, bytes(&plus)),
        (Procedure::Fsstat, bytes(&FsStatArgs { root: fh })),
        (Procedure::Fsinfo, bytes(&FsInfoArgs { root: fh })),
        (Procedure::Pathconf, bytes(&PathconfArgs { object: fh })),
        (Procedure::Commit, bytes(&CommitArgs { file: fh, offset: 0, count: 0 })),
    ]
}

/// Delivers valid arguments on `handle` to every procedure and expects `status` of each.
#[track_caller]
fn all_refuse(client: &Client<'_>, handle: &Handle, status: Status) {
    for (procedure, args) in valid_args(handle) {
        let served = client.deliver(call(procedure as u32, args));
        let body = reply(&served.reply).body.unwrap();
        assert_eq!(served.status, status, "{procedure:?}");
        assert_eq!(body[..4], status.0.to_be_bytes(), "{procedure:?}");
        assert!(is_result_of(procedure, body), "{procedure:?}");
        assert_eq!(served.moved, 0);
    }
}

#[test]
fn the_valid_arguments_are_valid() {
    let world = World::new();
    let covered: Vec<_> = valid_args(&world.root()).iter().map(|(which, _)| *which).collect();
    assert_eq!(covered, Procedure::ALL[1..]);
    for (procedure, args) in valid_args(&world.root()) {
        let served = world.client(ALICE).deliver(call(procedure as u32, args));
        assert!(is_result_of(procedure, reply(&served.reply).body.unwrap()), "{procedure:?}");
    }
}

#[test]
fn forged_and_foreign_handles_are_refused_by_every_procedure() {
    let (world, other) = (World::new(), World::of(2, MemStore::new()));
    let alice = world.client(ALICE);
    let mut forged = world.root();
    *forged.last_mut().unwrap() ^= 0x80;
    all_refuse(&alice, &forged, Status::BADHANDLE);
    all_refuse(&alice, &Vec::new(), Status::BADHANDLE);
    all_refuse(&alice, &other.root(), Status::STALE);
}

#[test]
fn a_handle_outlives_its_object_as_stale() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let file = alice.create(&root, "f", 0o644);
    ok(alice.call(&RemoveArgs { object: at(&root, "f") }).results());
    all_refuse(&alice, &file, Status::STALE);
    let second = alice.call(&LinkArgs { file: FileHandle3(&root), link: at(&file, "g") });
    assert_eq!(failed(second.results()).0, Status::STALE);
    let second = alice.call(&RenameArgs { from: at(&root, "a"), to: at(&file, "g") });
    assert_eq!(failed(second.results()).0, Status::STALE);
}

#[test]
fn handles_of_snapshots_that_are_not_there_are_stale() {
    let world = World::new();
    let open = world.volume.keys.open(&world.root()).unwrap();
    let sealed = world.volume.keys.seal(&FileHandle { snapshot: SnapshotId(1), ..open });
    all_refuse(&world.client(ALICE), &sealed.as_bytes().to_vec(), Status::STALE);
}

#[test]
fn keys_that_are_none_of_the_stores_are_bad() {
    let world = World::new();
    let key = ObjectKey::new(b"short").unwrap();
    let handle = FileHandle { volume: VolumeId(1), snapshot: SnapshotId::LIVE, key };
    let sealed = world.volume.keys.seal(&handle);
    all_refuse(&world.client(ALICE), &sealed.as_bytes().to_vec(), Status::BADHANDLE);
}

#[test]
fn refusals_have_the_shape_of_their_procedure() {
    for procedure in Procedure::ALL {
        let refused = refuse(&call(procedure as u32, Vec::new()), Status::JUKEBOX, Vec::new());
        let body = reply(&refused).body.unwrap();
        assert!(is_result_of(procedure, body), "{procedure:?}");
        let status = if procedure == Procedure::Null { &[][..] } else { &[0, 0, 0x27, 0x18] };
        assert!(body.starts_with(status), "{procedure:?}");
    }
}

#[test]
fn calls_without_a_handle_get_the_answer_of_rpc() {
    let failed = |error| Err(Refused::Failed(error));
    let answer = |number| null(&call(number, Vec::new()), Vec::new());
    assert_eq!(reply(&answer(0)).body, Ok(&[][..]));
    assert_eq!(reply(&answer(1)).body, failed(AcceptError::GarbageArgs));
    for number in [22, u32::MAX] {
        let unavailable = failed(AcceptError::ProcedureUnavailable);
        assert_eq!(reply(&answer(number)).body, unavailable);
        let refused = refuse(&call(number, Vec::new()), Status::STALE, Vec::new());
        assert_eq!(reply(&refused).body, unavailable);
    }
}

#[test]
fn arguments_cut_off_anywhere_are_garbage() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    for (procedure, args) in valid_args(&file) {
        for len in 0..args.len() {
            let served = alice.deliver(call(procedure as u32, args[..len].to_vec()));
            let expected = Err(Refused::Failed(AcceptError::GarbageArgs));
            assert_eq!(reply(&served.reply).body, expected, "{procedure:?} at {len}");
            assert_eq!(served.moved, 0);
        }
    }
    assert_eq!(alice.attr(&file).size, 0);
}

/// The reply decodes as a result of the procedure, or is an error of RPC.
fn check(number: u32, served: &Served) {
    match (reply(&served.reply).body, Procedure::of(number)) {
        (Ok(body), Some(procedure)) => {
            assert!(is_result_of(procedure, body), "{procedure:?}: {body:02x?}");
        }
        (Err(Refused::Failed(AcceptError::GarbageArgs)), Some(_))
        | (Err(Refused::Failed(AcceptError::ProcedureUnavailable)), None) => {}
        other => panic!("{other:?}"),
    }
    assert!(served.status.is_ok() || served.moved == 0);
}

/// A directory with a file, a link and a directory in it.
fn populated() -> (World, Vec<Handle>) {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let file = alice.create(&root, "name", 0o644);
    ok(alice.write(&file, 0, b"some data"));
    let attributes = Sattr3::NONE;
    let link = SymlinkArgs { location: at(&root, "link"), attributes, data: b"name" };
    let link = made(alice.call(&link).results());
    let dir = alice.mkdir(&root, "dir", 0o755);
    (world, vec![root, file, link, dir])
}

proptest! {
    #[test]
    fn random_arguments_get_a_reply(
        number in 0u32..23,
        args in proptest::collection::vec(any::<u8>(), 0..200),
    ) {
        let world = World::new();
        check(number, &world.client(ALICE).deliver(call(number, args)));
    }

    #[test]
    fn random_arguments_after_a_good_handle_get_a_reply(
        number in 0u32..23,
        object in 0usize..4,
        words in proptest::collection::vec(prop_oneof![0u32..16, any::<u32>()], 0..40),
    ) {
        let (world, objects) = populated();
        let mut args = bytes(&FileHandle3(&objects[object]));
        args.extend(words.iter().flat_map(|word| word.to_be_bytes()));
        check(number, &world.client(ALICE).deliver(call(number, args)));
    }

    #[test]
    fn altered_arguments_get_a_reply(
        which in 0usize..21,
        object in 0usize..4,
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
    ) {
        let (world, objects) = populated();
        let (procedure, mut args) = valid_args(&objects[object]).swap_remove(which);
        let handle_end = 4 + objects[object].len().next_multiple_of(4);
        for (index, byte) in changes {
            if args.len() > handle_end {
                let at = handle_end + index.index(args.len() - handle_end);
                args[at] = byte;
            }
        }
        let number = procedure as u32;
        check(number, &world.client(ALICE).deliver(call(number, args)));
    }
}
