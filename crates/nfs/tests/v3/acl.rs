//! NFSACL, and how lists decide in NFSv3.

use crate::world::{ALICE, BOB, Client, Handle, ROOT, World, at, failed, ok, reply, with_mode};
use weir_core::acl::{Entry, Who};
use weir_core::testing::block_on;
use weir_core::{Access, Acl, AclKind, Attr, Credentials, FsError, Shared, Store};
use weir_nfs::acl::wire::{
    AclMask, GetaclArgs, GetaclOk, ListBytes, SecAcl, SetaclArgs, SetaclRes,
};
use weir_nfs::acl::{handle, null, refuse, serve};
use weir_nfs::client::{AclNull, Caller, Refused, RemoteCall};
use weir_nfs::rpc::{AcceptError, Call, Credential};
use weir_nfs::v3::Served;
use weir_nfs::v3::wire::{
    AccessArgs, AccessBits, FileHandle3, ReadArgs, ReaddirArgs, ReaddirplusArgs, RemoveArgs,
    SetattrArgs, Status,
};
use weir_nfs::{PROGRAM_NFSACL, acl};

/// The server's treatment of a call of NFSACL.
fn deliver(client: &Client<'_>, call: Call) -> Served {
    let volume = &client.world.volume;
    let args = call.args.clone();
    match handle(call.procedure, &args) {
        Ok(Some(wire)) => match volume.keys.open(wire) {
            Ok(handle) => {
                let volume = volume.clone();
                block_on(serve(volume, client.rights.clone(), handle, call, Vec::new()))
            }
            Err(error) => {
                let status = error.into();
                Served { reply: refuse(&call, status, Vec::new()), moved: 0, status }
            }
        },
        Ok(None) => Served { reply: null(&call, Vec::new()), moved: 0, status: Status::OK },
        Err(_) => {
            // Cut off before the handle: `serve` must come to the same, whatever handle it gets.
            let handle = volume.keys.open(&client.world.root()).unwrap();
            let volume = volume.clone();
            block_on(serve(volume, client.rights.clone(), handle, call, Vec::new()))
        }
    }
}

fn call<A: RemoteCall>(client: &Client<'_>, args: &A) -> Vec<u8> {
    let mut record = Vec::new();
    Caller::sys(&client.rights.cred, b"client").call(&mut record, 7, args);
    deliver(client, Call::parse(Shared::from(record).skip(4)).unwrap()).reply
}

/// Both lists as a client sees them, and the mode.
fn get(client: &Client<'_>, object: &Handle) -> (u32, Option<Acl>, Option<Acl>) {
    let args = GetaclArgs { object: FileHandle3(object), mask: AclMask::all() };
    let record = call(client, &args);
    let got: GetaclOk<'_> = ok(reply(&record).results::<GetaclArgs<'_>>().unwrap());
    assert_eq!(got.mask, AclMask::all());
    let mode = got.attributes.unwrap().mode;
    (mode, got.access.to_acl().unwrap(), got.default.to_acl().unwrap())
}

fn attr(world: &World, object: &Handle) -> Attr {
    let handle = world.volume.keys.open(object).unwrap();
    let store = &world.volume.store;
    block_on(store.attr(&block_on(store.resolve(&handle.key)).unwrap())).unwrap()
}

/// Sets those lists that are given.
fn set(
    client: &Client<'_>,
    object: &Handle,
    access: Option<Option<&Acl>>,
    default: Option<Option<&Acl>>,
) -> SetaclRes {
    let attr = attr(client.world, object);
    let bytes = |list: Option<Option<&Acl>>, kind| match list {
        Some(Some(acl)) => ListBytes::new(acl, kind, &attr).unwrap(),
        _ => ListBytes::default(),
    };
    let (a, d) = (bytes(access, AclKind::Access), bytes(default, AclKind::Default));
    let mut mask = AclMask::empty();
    mask.set(AclMask::ACL, access.is_some());
    mask.set(AclMask::DFACL, default.is_some());
    let object = FileHandle3(object);
    let args = SetaclArgs { object, mask, access: a.list(true), default: d.list(true) };
    reply(&call(client, &args)).results::<SetaclArgs<'_>>().unwrap()
}

/// BOB gets `rights`, group and others nothing.
fn for_bob(rights: Access) -> Acl {
    let mut entries = Acl::from_mode(0o700).entries().to_vec();
    entries.push(Entry { who: Who::User(BOB.uid), rights });
    entries.push(Entry { who: Who::Mask, rights: Access::all() });
    Acl::new(entries).unwrap()
}

#[test]
fn lists_are_got_as_they_were_set() {
    let world = World::new();
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "d", 0o750);
    assert_eq!(get(&alice, &dir), (0o750, Some(Acl::from_mode(0o750)), None));
    let (access, default) = (for_bob(Access::READ), for_bob(Access::all()));
    ok(set(&alice, &dir, Some(Some(&access)), Some(Some(&default))));
    assert_eq!(get(&world.client(BOB), &dir), (0o770, Some(access.clone()), Some(default)));
    ok(set(&alice, &dir, None, Some(None)));
    assert_eq!(get(&alice, &dir), (0o770, Some(access), None), "only what the mask names");
    ok(set(&alice, &dir, Some(None), None));
    assert_eq!(get(&alice, &dir), (0o770, Some(Acl::from_mode(0o770)), None));
}

#[test]
fn getacl_gives_what_was_asked_for() {
    let world = World::new();
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "d", 0o700);
    let list = for_bob(Access::READ);
    ok(set(&alice, &dir, Some(Some(&list)), Some(Some(&list))));
    for (mask, expected) in [
        (AclMask::empty(), [0, 0, 0, 0]),
        (AclMask::ACL, [5, 5, 0, 0]),
        (AclMask::ACLCNT, [5, 0, 0, 0]),
        (AclMask::DFACL, [0, 0, 5, 5]),
        (AclMask::DFACLCNT | AclMask::ACL, [5, 5, 5, 0]),
    ] {
        let record = call(&alice, &GetaclArgs { object: FileHandle3(&dir), mask });
        let got: GetaclOk<'_> = ok(reply(&record).results::<GetaclArgs<'_>>().unwrap());
        let of = |list: SecAcl<'_>| [list.count() as usize, list.entries().count()];
        assert_eq!([of(got.access), of(got.default)].concat(), expected, "{mask:?}");
    }
    let mask = AclMask::from_bits_retain(0x10);
    let record = call(&alice, &GetaclArgs { object: FileHandle3(&dir), mask });
    let (status, after) = failed(reply(&record).results::<GetaclArgs<'_>>().unwrap());
    assert_eq!((status, after.is_some()), (Status::INVAL, true));
}

#[test]
fn only_the_owner_and_root_set_lists_and_never_through_a_read_only_export() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o666);
    let list = for_bob(Access::all());
    let refused = |client: Client<'_>| failed(set(&client, &file, Some(Some(&list)), None)).0;
    assert_eq!(refused(world.client(BOB)), Status::PERM);
    assert_eq!(refused(world.read_only(ALICE)), Status::ROFS);
    assert_eq!(get(&world.read_only(BOB), &file).1, Some(Acl::from_mode(0o666)));
    ok(set(&world.client(ROOT), &file, Some(Some(&list)), None));
    let default = failed(set(&alice, &file, Some(None), Some(Some(&list))));
    assert_eq!(default.0, Status::ACCES);
    assert_eq!(get(&alice, &file).1, Some(list), "nothing was set of it");
}

#[test]
fn a_list_that_is_none_changes_nothing() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o640);
    let mut entries = for_bob(Access::READ).entries().to_vec();
    entries.retain(|entry| entry.who != Who::Mask);
    let handle = FileHandle3(&file);
    let mut out = weir_nfs::xdr::Writer::default();
    out.opaque(handle.0);
    out.u32(AclMask::ACL.bits());
    out.u32(3);
    out.u32(3);
    // Owner, user 11, others: neither a group nor a mask.
    for word in [1, 0, 7, 2, 11, 7, 0x20, 0, 0] {
        out.u32(word);
    }
    out.u32(0);
    out.u32(0);
    let served = deliver(&alice, raw(2, out.into_vec()));
    assert_eq!(served.status, Status::INVAL);
    assert_eq!(get(&alice, &file), (0o640, Some(Acl::from_mode(0o640)), None));
}

#[test]
fn a_list_decides_over_reading_writing_and_listing() {
    let world = World::new();
    let (alice, bob) = (world.client(ALICE), world.client(BOB));
    let dir = alice.mkdir(&world.root(), "d", 0o700);
    let file = alice.create(&dir, "f", 0o600);
    ok(alice.write(&file, 0, b"secret"));
    assert_eq!(bob.lookup(&dir, "f"), Err(Status::ACCES));
    let read = ReadArgs { file: FileHandle3(&file), offset: 0, count: 10 };
    let list =
        ReaddirArgs { dir: FileHandle3(&dir), cookie: 0, cookie_verifier: [0; 8], count: 4096 };
    assert_eq!(failed(bob.call(&list).results()).0, Status::ACCES);
    ok(set(&alice, &dir, Some(Some(&for_bob(Access::READ))), None));
    ok(bob.call(&list).results());
    assert_eq!(bob.lookup(&dir, "f"), Err(Status::ACCES), "reading is not searching");
    let plus = ReaddirplusArgs {
        dir: FileHandle3(&dir),
        cookie: 0,
        cookie_verifier: [0; 8],
        dir_count: 4096,
        max_count: 4096,
    };
    let without = bob.call(&plus);
    assert!(ok(without.results()).entries.iter().all(|entry| entry.handle.is_none()));
    ok(set(&alice, &dir, Some(Some(&for_bob(Access::READ | Access::EXECUTE))), None));
    assert_eq!(bob.lookup(&dir, "f"), Ok(file.clone()));
    let with = bob.call(&plus);
    assert!(ok(with.results()).entries.iter().any(|entry| entry.handle.is_some()));

    assert_eq!(failed(bob.call(&read).results()).0, Status::ACCES);
    ok(set(&alice, &file, Some(Some(&for_bob(Access::READ))), None));
    assert_eq!(bob.read(&file, 0, 10).0, b"secret");
    assert_eq!(failed(bob.write(&file, 0, b"x")).0, Status::ACCES);
    let size = weir_nfs::v3::wire::Sattr3 { size: Some(1), ..weir_nfs::v3::wire::Sattr3::NONE };
    let cut = SetattrArgs { object: FileHandle3(&file), new_attributes: size, guard: None };
    assert_eq!(failed(bob.call(&cut).results()).0, Status::ACCES);
    let all = AccessArgs { object: FileHandle3(&file), access: AccessBits::all() };
    assert_eq!(ok(bob.call(&all).results()).access, AccessBits::READ);
    ok(set(&alice, &file, Some(Some(&for_bob(Access::READ | Access::WRITE))), None));
    ok(bob.write(&file, 0, b"x"));
    ok(bob.call(&cut).results());
    // A chmod takes it away again, because the mode's group bits are the mask.
    let mode =
        SetattrArgs { object: FileHandle3(&file), new_attributes: with_mode(0o600), guard: None };
    ok(alice.call(&mode).results());
    assert_eq!(failed(bob.write(&file, 0, b"x")).0, Status::ACCES);
    let member = Credentials::new(77, ALICE.gid);
    assert_eq!(failed(world.client(member).call(&read).results()).0, Status::ACCES);
}

#[test]
fn default_lists_are_handed_on() {
    let world = World::new();
    let alice = world.client(ALICE);
    let dir = alice.mkdir(&world.root(), "d", 0o700);
    ok(set(&alice, &dir, None, Some(Some(&for_bob(Access::all())))));
    let file = alice.create(&dir, "f", 0o664);
    assert_eq!(get(&alice, &file), (0o660, Some(for_bob(Access::all()).inherited(0o664)), None));
    let sub = alice.mkdir(&dir, "s", 0o755);
    assert_eq!(get(&alice, &sub).2, Some(for_bob(Access::all())));
}

fn raw(procedure: u32, args: Vec<u8>) -> Call {
    Call {
        xid: 7,
        program: PROGRAM_NFSACL,
        version: acl::VERSION,
        procedure,
        credential: Credential::None,
        args: Shared::from(args),
    }
}

#[test]
fn null_answers_and_other_procedures_are_unavailable() {
    let world = World::new();
    let alice = world.client(ALICE);
    let record = call(&alice, &AclNull);
    assert_eq!(reply(&record).results::<AclNull>(), Ok(()));
    for procedure in [3, 4, u32::MAX] {
        let served = deliver(&alice, raw(procedure, vec![0; 64]));
        let expected = Err(Refused::Failed(AcceptError::ProcedureUnavailable));
        assert_eq!(reply(&served.reply).body, expected, "{procedure}");
    }
}

#[test]
fn bad_handles_and_cut_arguments_are_refused() {
    let world = World::new();
    let alice = world.client(ALICE);
    let root = world.root();
    let list = ListBytes::new(&for_bob(Access::READ), AclKind::Access, &attr(&world, &root));
    let list = list.unwrap();
    let (object, mask) = (FileHandle3(&root), AclMask::ACL);
    let default = SecAcl::default();
    let args = SetaclArgs { object, mask, access: list.list(true), default };
    let mut whole = weir_nfs::xdr::Writer::default();
    weir_nfs::xdr::Encode::encode(&args, &mut whole);
    let whole = whole.into_vec();
    for end in 0..whole.len() {
        let served = deliver(&alice, raw(2, whole[..end].to_vec()));
        let expected = Err(Refused::Failed(AcceptError::GarbageArgs));
        assert_eq!(reply(&served.reply).body, expected, "cut to {end} bytes");
    }
    for procedure in [1, 2] {
        let mut forged = whole.clone();
        forged[8] ^= 1;
        let served = deliver(&alice, raw(procedure, forged));
        assert_eq!(served.status, Status::BADHANDLE);
    }
    let file = alice.create(&root, "f", 0o644);
    ok(alice.call(&RemoveArgs { object: at(&root, "f") }).results());
    let gone = call(&alice, &GetaclArgs { object: FileHandle3(&file), mask: AclMask::all() });
    let (status, _) = failed(reply(&gone).results::<GetaclArgs<'_>>().unwrap());
    assert_eq!(status, Status::STALE);
}

#[test]
fn a_store_without_lists_says_so() {
    let world = World::new();
    let alice = world.client(ALICE);
    let file = alice.create(&world.root(), "f", 0o644);
    // Handle, attributes, then the list.
    alice.fail_after(3, FsError::NotSupported);
    let refused = set(&alice, &file, Some(None), None);
    assert_eq!(failed(refused).0, Status::NOTSUPP);
}
