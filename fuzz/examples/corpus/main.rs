//! Makes the committed corpus from valid messages: `cargo run --example corpus` in `fuzz/`.
//!
//! The handles in it are those that the targets' volume in memory gives, so that a fuzzer starts
//! behind the door.

mod smb;

use std::fs;
use std::io::Result;
use std::path::Path;
use weir_address::{Interface, Numbered, Place, Report, Request};
use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl, AclKind, Credentials, Mono};
use weir_fuzz::{NFSACL, Server, append_call};
use weir_nfs::PROGRAM_NFSACL;
use weir_nfs::acl::wire::{AclMask, GetaclArgs, ListBytes, SetaclArgs};
use weir_nfs::client::{Caller, Dump, ExportList, Mnt, Null, RemoteCall, Reply, Umnt};
use weir_nfs::nlm::wire::{
    CallerName, CancelArgs, FreeAllArgs, Lock, LockArgs, NetObj, Res, ShareArgs, ShareBits,
    TestArgs, UnlockArgs,
};
use weir_nfs::nsm::wire::{HostName, MonArgs, MonId, MyId, NotifyArgs, Private, StatArgs};
use weir_nfs::rpcbind::wire::{Mapping, Rpcb, Text};
use weir_nfs::v3::wire::*;
use weir_nfs::xdr::{Encode, Writer};

fn main() -> Result<()> {
    address()?;
    records()?;
    calls()?;
    mounts()?;
    portmaps()?;
    operations()?;
    handles()?;
    locks()?;
    smb::all()
}

fn save(target: &str, name: &str, bytes: &[u8]) -> Result<()> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus").join(target);
    fs::create_dir_all(&folder)?;
    fs::write(folder.join(name), bytes)
}

fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut out = Writer::default();
    value.encode(&mut out);
    out.into_vec()
}

/// Requests and reports of the link to the helper for addresses, after the size of a piece.
fn address() -> Result<()> {
    let interface = Interface::parse("eth0").expect("a name");
    let address = [10, 0, 0, 9].into();
    let place = Place::new(address, 32, interface).expect("a place");
    let socket = |text: &str| text.parse().expect("an address with a port");
    let clients = vec![socket("[fd00::1]:700"), socket("[fd00::2]:701")];
    let requests = [
        Request::Hold { place, until: Mono::from_secs(3) },
        Request::Renew { until: Mono::from_secs(4) },
        Request::Tickle { local: socket("[fd00::9]:2049"), clients },
        Request::Silence { address },
        Request::Release { address },
    ];
    let mut stream = vec![6];
    for (number, message) in (1..).zip(requests) {
        stream.extend(Numbered { number, message }.frame());
    }
    save("address", "requests", &stream)?;
    let words = || "words".to_owned();
    let mut stream = vec![6];
    for report in [
        Report::Done { number: 1 },
        Report::Refused { number: 2, words: words() },
        Report::Ended { address },
        Report::Failed { address, words: words() },
    ] {
        stream.extend(report.frame());
    }
    save("address", "reports", &stream)
}

fn records() -> Result<()> {
    let mut two = vec![200];
    Caller::none().call(&mut two, 1, &Null);
    Caller::none().call(&mut two, 2, &ExportList);
    save("record", "two-records", &two)?;
    let fragments =
        [&[2][..], &[0, 0, 0, 3], b"abc", &[0, 0, 0, 0], &[0x80, 0, 0, 2], b"de"].concat();
    save("record", "three-fragments", &fragments)?;
    save("record", "too-long", &[0, 0xff, 0xff, 0xff, 0xff])
}

fn calls() -> Result<()> {
    let someone = Credentials::new(1000, 1000).with_groups(&[4, 24, 27]);
    for (name, caller) in [("none", Caller::none()), ("sys", Caller::sys(&someone, b"client"))] {
        let mut record = Vec::new();
        caller.call(&mut record, 7, &Mnt(b"/volume"));
        save("rpc", name, &record[4..])?;
    }
    let mut flavor = Vec::new();
    Caller::none().call(&mut flavor, 7, &Null);
    flavor[31] = 6;
    save("rpc", "other-flavor", &flavor[4..])?;
    flavor[15] = 3;
    save("rpc", "other-version", &flavor[4..])
}

fn mounts() -> Result<()> {
    let mut script = Vec::new();
    append_call(&mut script, Mnt::PROCEDURE, &encoded(&Mnt(b"/volume")));
    append_call(&mut script, Mnt::PROCEDURE, &encoded(&Mnt(b"/absent")));
    append_call(&mut script, Umnt::PROCEDURE, &encoded(&Umnt(b"/volume")));
    save("mount", "paths", &script)?;
    let mut script = Vec::new();
    for procedure in [0, Dump::PROCEDURE, 4, ExportList::PROCEDURE, 6] {
        append_call(&mut script, procedure, &[]);
    }
    save("mount", "lists", &script)
}

/// The selector of a call is explained in `targets/rpcbind.rs`.
fn portmaps() -> Result<()> {
    let mapping = encoded(&Mapping { program: 100_021, version: 4, protocol: 6, port: 700 });
    let mut script = Vec::new();
    for procedure in [0x81, 3, 4, 0x82, 5] {
        append_call(&mut script, procedure, &mapping);
    }
    save("rpcbind", "portmap", &script)?;
    let (netid, address, owner) = (Text(b"udp6"), Text(b"::.2.188"), Text(b"0"));
    let rpcb = encoded(&Rpcb { program: 100_021, version: 4, netid, address, owner });
    let mut script = Vec::new();
    for procedure in [0xa1, 0x23, 0x29, 0x13, 0x24, 0x26, 0xa2, 0x1c] {
        append_call(&mut script, procedure, &rpcb);
    }
    save("rpcbind", "rpcbind", &script)
}

/// Calls and replies of a session that touches every procedure, one script and one pair of wire
/// inputs for each call.
struct Session {
    server: Server,
    script: Vec<u8>,
}

impl Session {
    /// Calls, saves the arguments and the results, and gives the results' bytes.
    fn call<A: RemoteCall>(&mut self, name: &str, args: &A) -> Result<Vec<u8>> {
        let args = encoded(args);
        let number = A::PROCEDURE + if A::PROGRAM == PROGRAM_NFSACL { NFSACL } else { 0 };
        append_call(&mut self.script, number, &args);
        let reply = self.server.call(number, &args);
        let reply = Reply::parse(&reply[4..]).expect("our replies can be read");
        let results = reply.body.expect("a valid call is carried out").to_vec();
        let selector = u8::try_from(number).expect("procedures are small numbers");
        save("wire", &format!("{name}-args"), &[&[selector][..], &args].concat())?;
        save("wire", &format!("{name}-results"), &[&[selector | 0x80][..], &results].concat())?;
        Ok(results)
    }
}

const KEEP: Sattr3 = Sattr3 {
    mode: Some(0o644),
    uid: None,
    gid: None,
    size: None,
    atime: SetTime3::DontChange,
    mtime: SetTime3::ToServerTime,
};

fn operations() -> Result<()> {
    let mut session = Session { server: Server::default(), script: Vec::new() };
    let root = session.server.root();
    let dir = FileHandle3(root.as_bytes());
    let at = |name| DirOpArgs3 { dir, name };
    let how = CreateHow3::Unchecked(KEEP);
    session.call("create", &CreateArgs { location: at(b"file"), how })?;
    let found = session.call("lookup", &LookupArgs { what: at(b"file") })?;
    // LOOKUP3resok begins with the status, then the handle with its length.
    let len = usize::from(found[7]);
    let file = FileHandle3(&found[8..8 + len]);
    files(&mut session, dir, file)?;
    names(&mut session, dir, file)?;
    volume(&mut session, dir)?;
    lists(&mut session, dir, file)?;
    save("nfs3", "session", &session.script)
}

fn files(session: &mut Session, dir: FileHandle3<'_>, file: FileHandle3<'_>) -> Result<()> {
    let stable = StableHow::FileSync;
    session.call("write", &WriteArgs { file, offset: 100, count: 5, stable, data: b"hello" })?;
    session.call("read", &ReadArgs { file, offset: 90, count: 4096 })?;
    session.call("commit", &CommitArgs { file, offset: 0, count: 0 })?;
    session.call("getattr", &GetattrArgs { object: file })?;
    let object = file;
    session.call("access", &AccessArgs { object, access: AccessBits::all() })?;
    let new_attributes = Sattr3 { size: Some(3), ..KEEP };
    let guard = Some(NfsTime3 { seconds: 1, nseconds: 2 });
    session.call("setattr", &SetattrArgs { object, new_attributes, guard: None })?;
    session.call("setattr-guarded", &SetattrArgs { object, new_attributes, guard })?;
    session.call("getattr-directory", &GetattrArgs { object: dir }).map(drop)
}

fn names(session: &mut Session, dir: FileHandle3<'_>, file: FileHandle3<'_>) -> Result<()> {
    let at = |name| DirOpArgs3 { dir, name };
    session.call("mkdir", &MkdirArgs { location: at(b"sub"), attributes: KEEP })?;
    let link = SymlinkArgs { location: at(b"soft"), attributes: KEEP, data: b"a/b" };
    session.call("symlink", &link)?;
    let found = session.call("lookup-symlink", &LookupArgs { what: at(b"soft") })?;
    let symlink = FileHandle3(&found[8..8 + usize::from(found[7])]);
    session.call("readlink", &ReadlinkArgs { symlink })?;
    let spec = SpecData3 { specdata1: 1, specdata2: 3 };
    let device = MknodData3::CharDevice(DeviceData3 { attributes: KEEP, spec });
    session.call("mknod-device", &MknodArgs { location: at(b"null"), what: device })?;
    let fifo = MknodArgs { location: at(b"pipe"), what: MknodData3::Fifo(KEEP) };
    session.call("mknod-fifo", &fifo)?;
    session.call("link", &LinkArgs { file, link: at(b"hard") })?;
    session.call("rename", &RenameArgs { from: at(b"hard"), to: at(b"moved") })?;
    let exclusive = CreateHow3::Exclusive(*b"exclusiv");
    session.call("create-exclusive", &CreateArgs { location: at(b"once"), how: exclusive })?;
    session.call("remove", &RemoveArgs { object: at(b"pipe") })?;
    session.call("rmdir", &RmdirArgs { object: at(b"sub") }).map(drop)
}

fn volume(session: &mut Session, dir: FileHandle3<'_>) -> Result<()> {
    let cookie_verifier = [0; 8];
    session.call("readdir", &ReaddirArgs { dir, cookie: 0, cookie_verifier, count: 4096 })?;
    let plus =
        ReaddirplusArgs { dir, cookie: 0, cookie_verifier, dir_count: 4096, max_count: 8192 };
    session.call("readdirplus", &plus)?;
    session.call("fsstat", &FsStatArgs { root: dir })?;
    session.call("fsinfo", &FsInfoArgs { root: dir })?;
    session.call("pathconf", &PathconfArgs { object: dir }).map(drop)
}

fn lists(session: &mut Session, dir: FileHandle3<'_>, file: FileHandle3<'_>) -> Result<()> {
    let all = AclMask::all();
    let mut entries = Acl::from_mode(0o750).entries().to_vec();
    entries.push(Entry { who: Who::User(7), rights: Access::READ });
    entries.push(Entry { who: Who::Mask, rights: Access::all() });
    let list = Acl::new(entries).expect("a valid list");
    let attr = session.server.root_attr();
    let bytes = |kind| ListBytes::new(&list, kind, &attr).expect("a short list");
    let (access, default) = (bytes(AclKind::Access), bytes(AclKind::Default));
    let (access, default) = (access.list(true), default.list(true));
    session.call("setacl", &SetaclArgs { object: dir, mask: all, access, default })?;
    let mask = AclMask::ACL;
    session.call("setacl-file", &SetaclArgs { object: file, mask, access, default })?;
    session.call("getacl", &GetaclArgs { object: dir, mask: all }).map(drop)
}

fn handles() -> Result<()> {
    let root = Server::default().root();
    save("handle", "root", root.as_bytes())?;
    save("handle", "longest", &[0xa5; 13 + 42])?;
    save("handle", "empty-key", &[0; 13])
}

/// Two hosts contend for a file, with a callback; shares; a restart. Numbers as the target reads
/// them.
fn locks() -> Result<()> {
    let root = Server::default().root();
    let object = NetObj(b"cookie");
    let lock = |name| Lock {
        caller_name: CallerName(name),
        fh: NetObj(root.as_bytes()),
        oh: NetObj(b"7@host"),
        svid: 7,
        offset: 0,
        length: 100,
    };
    let ask = |name, block| LockArgs {
        cookie: object,
        block,
        exclusive: true,
        lock: lock(name),
        reclaim: false,
        state: 3,
    };
    let (a, b, nsm) = (1 << 6, 2 << 6, 0x20);
    let mut script = Vec::new();
    let mut add = |number, args: &dyn Encode| {
        let mut out = Writer::default();
        args.encode(&mut out);
        append_call(&mut script, number, out.as_bytes());
    };
    add(a + 2, &ask(b"a", false));
    add(b + 2, &ask(b"b", true));
    add(b + 1, &TestArgs { cookie: object, exclusive: false, lock: lock(b"b") });
    let middle = Lock { offset: 20, length: 10, ..lock(b"a") };
    add(a + 4, &UnlockArgs { cookie: object, lock: middle });
    add(a + 4, &UnlockArgs { cookie: object, lock: lock(b"a") });
    add(nsm + 31, &Res { cookie: object, status: weir_nfs::nlm::Status::GRANTED });
    add(a + 7, &ask(b"a", true));
    let cancel = CancelArgs { cookie: object, block: true, exclusive: true, lock: lock(b"a") };
    add(a + 3, &cancel);
    let (caller_name, fh, oh) = (CallerName(b"b"), NetObj(root.as_bytes()), NetObj(b"7@host"));
    let share = weir_nfs::nlm::wire::Share {
        caller_name,
        fh,
        oh,
        deny: ShareBits(2),
        access: ShareBits(1),
    };
    add(b + 20, &ShareArgs { cookie: object, share, reclaim: false });
    add(b + 21, &ShareArgs { cookie: object, share, reclaim: false });
    add(
        a + 15,
        &Res { cookie: NetObj(&[0, 0, 0, 0, 0, 0, 0, 2]), status: weir_nfs::nlm::Status::DENIED },
    );
    add(b + nsm + 6, &NotifyArgs { name: HostName(b"b"), state: 5 });
    add(a + 23, &FreeAllArgs { name: CallerName(b"a"), state: 5 });
    save("locks", "two-hosts", &script)?;

    let mut script = Vec::new();
    let my_id = MyId { name: HostName(b"me"), program: 100_021, version: 4, procedure: 16 };
    let mon_id = MonId { name: HostName(b"host"), my_id };
    append_call(&mut script, nsm + 1, &encoded(&StatArgs { name: HostName(b"host") }));
    append_call(&mut script, nsm + 2, &encoded(&MonArgs { mon_id, private: Private([9; 16]) }));
    append_call(&mut script, nsm + 3, &encoded(&mon_id));
    append_call(&mut script, nsm + 4, &encoded(&my_id));
    append_call(&mut script, nsm + 5, &[]);
    save("locks", "monitor", &script)
}
