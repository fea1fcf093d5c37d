//! Random operations, to be compared one by one with the model in memory, on any kind of store.

use crate::common::{COUNTS_SUBDIRECTORIES, KNOWS_HOLES, block_on};
use proptest::prelude::*;
use weir_core::acl::{Entry, Who};
use weir_core::store::{Allocated, CreateHow, MakeKind, Replace, Stability, Want, WriteHow};
use weir_core::{
    Access, Acl, AclKind, Attr, Credentials, Details, DosAttributes, FileKind, FsResult, Name,
    SetAttr, SetDetails, Shared, Store, Timestamp,
};

/// Most steps of one case.
pub(crate) const STEPS: usize = 60;

/// An operation on objects found so far (by number) and one of a few names.
#[derive(Clone, Debug)]
pub(crate) enum Step {
    Create { dir: usize, name: usize, how: u8, mode: u32, by: usize },
    Make { dir: usize, name: usize, kind: u8, mode: u32, by: usize },
    Remove { dir: usize, name: usize, by: usize },
    RemoveDir { dir: usize, name: usize, by: usize },
    Rename { from: (usize, usize), to: (usize, usize), by: usize },
    Link { object: usize, dir: usize, name: usize },
    Write { object: usize, offset: u64, length: usize, gives_change: bool },
    Read { object: usize, offset: u64, count: u32 },
    SetMode { object: usize, mode: u32, by: usize },
    SetOwner { object: usize, uid: Option<u32>, gid: Option<u32>, by: usize },
    SetSize { object: usize, size: u64, by: usize },
    Lookup { dir: usize, name: usize },
    List { dir: usize },
    ReadLink { object: usize },
    SetAcl { object: usize, default: bool, list: usize, by: usize },
    GetAcl { object: usize, default: bool },
    LookupFolded { dir: usize, name: usize },
    RemoveThis { dir: usize, name: usize, object: usize, by: usize },
    RenameThis { object: usize, from: (usize, usize), to: (usize, usize), no: bool, by: usize },
    Details { object: usize },
    SetDetails { object: usize, birth: Option<i64>, dos: Option<u16>, by: usize },
    DecidedSize { object: usize, size: u64 },
    Zero { object: usize, from: u64, to: u64 },
    Ranges { object: usize, from: u64, to: u64, most: usize },
}

const NAMES: [&[u8]; 9] = [b"a", b"b", b"c", b"\xff\xfe", b"d e", b"A", b"D e", b".", b".."];
const SPECIAL: usize = 7;

fn callers() -> [Credentials; 3] {
    [
        Credentials::ROOT,
        Credentials::new(1001, 2001),
        Credentials::new(1002, 2002).with_groups(&[2001, 2003]),
    ]
}

/// Lists to set: none, one that is a mode, and two with names.
fn lists() -> [Option<Acl>; 4] {
    let named = |mode: u32, who: Who, rights: Access, mask: Access| {
        let mut entries = Acl::from_mode(mode).entries().to_vec();
        entries.extend([Entry { who, rights }, Entry { who: Who::Mask, rights: mask }]);
        Some(Acl::new(entries).unwrap())
    };
    [
        None,
        Some(Acl::from_mode(0o751)),
        named(0o700, Who::User(1001), Access::all(), Access::READ | Access::EXECUTE),
        named(0o751, Who::Group(2003), Access::READ | Access::WRITE, Access::all()),
    ]
}

pub(crate) fn step() -> impl Strategy<Value = Step> {
    let dir = || 0..6usize;
    let object = || 0..24usize;
    // The special names are rare.
    let name = || prop_oneof![14 => 0..SPECIAL, 1 => SPECIAL..NAMES.len()];
    let by = || 0..3usize;
    let mode = || {
        prop_oneof![4 => Just(0o777), 2 => Just(0o755), 1 => Just(0o700), 1 => Just(0o1777),
                    1 => Just(0o2775), 1 => 0..0o7777u32]
    };
    let id = || prop::option::of(prop_oneof![Just(0), Just(1001), Just(2001), Just(2003)]);
    prop_oneof![
        4 => (dir(), name(), 0..4u8, mode(), by())
            .prop_map(|(dir, name, how, mode, by)| Step::Create { dir, name, how, mode, by }),
        4 => (dir(), name(), 0..6u8, mode(), by())
            .prop_map(|(dir, name, kind, mode, by)| Step::Make { dir, name, kind, mode, by }),
        2 => (dir(), name(), by()).prop_map(|(dir, name, by)| Step::Remove { dir, name, by }),
        1 => (dir(), name(), by()).prop_map(|(dir, name, by)| Step::RemoveDir { dir, name, by }),
        3 => ((dir(), name()), (dir(), name()), by())
            .prop_map(|(from, to, by)| Step::Rename { from, to, by }),
        2 => (object(), dir(), name())
            .prop_map(|(object, dir, name)| Step::Link { object, dir, name }),
        4 => (object(), 0..30_000u64, 0..9000usize, any::<bool>())
            .prop_map(|(object, offset, length, gives_change)| Step::Write {
                object,
                offset,
                length,
                gives_change,
            }),
        4 => (object(), 0..40_000u64, 0..20_000u32)
            .prop_map(|(object, offset, count)| Step::Read { object, offset, count }),
        2 => (object(), mode(), by())
            .prop_map(|(object, mode, by)| Step::SetMode { object, mode, by }),
        1 => (object(), id(), id(), by())
            .prop_map(|(object, uid, gid, by)| Step::SetOwner { object, uid, gid, by }),
        2 => (object(), 0..30_000u64, by())
            .prop_map(|(object, size, by)| Step::SetSize { object, size, by }),
        2 => (dir(), name()).prop_map(|(dir, name)| Step::Lookup { dir, name }),
        1 => dir().prop_map(|dir| Step::List { dir }),
        1 => object().prop_map(|object| Step::ReadLink { object }),
        3 => (object(), any::<bool>(), 0..4usize, by())
            .prop_map(|(object, default, list, by)| Step::SetAcl { object, default, list, by }),
        2 => (object(), any::<bool>())
            .prop_map(|(object, default)| Step::GetAcl { object, default }),
        4 => new_step(),
    ]
}

/// The steps that NFS has not.
fn new_step() -> impl Strategy<Value = Step> {
    let (dir, object, name, by) = (|| 0..6usize, || 0..24usize, || 0..SPECIAL, || 0..3usize);
    let (birth, dos) =
        (prop::option::of(-5..5i64), prop::option::of(prop::bits::u16::masked(0x227)));
    prop_oneof![
        2 => (dir(), name()).prop_map(|(dir, name)| Step::LookupFolded { dir, name }),
        2 => (dir(), name(), object(), by())
            .prop_map(|(dir, name, object, by)| Step::RemoveThis { dir, name, object, by }),
        2 => (object(), (dir(), name()), (dir(), name()), any::<bool>(), by())
            .prop_map(|(object, from, to, no, by)| Step::RenameThis { object, from, to, no, by }),
        1 => object().prop_map(|object| Step::Details { object }),
        2 => (object(), birth, dos, by())
            .prop_map(|(object, birth, dos, by)| Step::SetDetails { object, birth, dos, by }),
        1 => (object(), 0..30_000u64)
            .prop_map(|(object, size)| Step::DecidedSize { object, size }),
        2 => (object(), 0..30_000u64, 0..40_000u64)
            .prop_map(|(object, from, to)| Step::Zero { object, from, to }),
        2 => (object(), 0..30_000u64, 0..40_000u64, 0..4usize)
            .prop_map(|(object, from, to, most)| Step::Ranges { object, from, to, most }),
    ]
}

/// The answer to an operation, in so far as the two stores must agree.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    Attr(Seen),
    Data(Vec<u8>, bool),
    Names(Vec<Vec<u8>>),
    List(Option<Acl>),
    Details(DosAttributes, Option<i64>),
    Ranges(Allocated),
    Folded(Vec<u8>, Seen),
}

#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    kind: FileKind,
    mode: u32,
    nlink: Option<u32>,
    owner: (u32, u32),
    size: Option<u64>,
}

fn kind_of(default: bool) -> AclKind {
    if default { AclKind::Default } else { AclKind::Access }
}

/// A birth that a step has set.
pub(crate) fn told(details: &Details) -> Answer {
    let birth = Some(details.birth.secs).filter(|secs| secs.abs() < 5);
    Answer::Details(details.dos, birth)
}

pub(crate) fn seen(attr: &Attr) -> Answer {
    Answer::Attr(Seen::of(attr))
}

impl Seen {
    fn of(attr: &Attr) -> Self {
        Self {
            kind: attr.kind,
            mode: attr.mode,
            nlink: (COUNTS_SUBDIRECTORIES || attr.kind != FileKind::Directory)
                .then_some(attr.nlink),
            owner: (attr.uid, attr.gid),
            size: (attr.kind == FileKind::Regular).then_some(attr.size),
        }
    }
}

/// One store, the objects found in it so far, and the directories among them.
pub(crate) struct Player<S: Store> {
    pub(crate) store: S,
    pub(crate) objects: Vec<S::Object>,
    directories: Vec<S::Object>,
    steps: u64,
}

impl<S: Store> Player<S> {
    pub(crate) fn new(store: S) -> Self {
        let root = store.root();
        Self { store, objects: vec![root.clone()], directories: vec![root], steps: 0 }
    }

    /// The object by its key, as a server finds it, so that a removed one is stale.
    fn object(&self, number: usize) -> FsResult<S::Object> {
        let object = &self.objects[number % self.objects.len()];
        block_on(self.store.resolve(&self.store.key(object)))
    }

    fn dir(&self, number: usize) -> FsResult<S::Object> {
        let object = &self.directories[number % self.directories.len()];
        block_on(self.store.resolve(&self.store.key(object)))
    }

    fn found(&mut self, object: S::Object, attr: &Attr) -> Answer {
        if attr.kind == FileKind::Directory {
            self.directories.push(object.clone());
        }
        self.objects.push(object);
        seen(attr)
    }

    pub(crate) fn play(&mut self, step: &Step) -> FsResult<Answer> {
        let name = |number: usize| Name::new(NAMES[number]).unwrap();
        // Which of two refusals comes first is nobody's business, so only root uses special names.
        let by =
            |number: usize, name: usize| callers()[if name < SPECIAL { number } else { 0 }].clone();
        self.steps += 1;
        match *step {
            Step::Create { dir, name: n, how, mode, by: b } => {
                let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
                let how = match how {
                    0 => CreateHow::Guarded(set),
                    1 => CreateHow::Unchecked(set),
                    2 => CreateHow::Unchecked(SetAttr { size: Some(0), ..set }),
                    // Never the same twice: how long a verifier is remembered is each store's own.
                    _ => CreateHow::Exclusive(self.steps.to_be_bytes()),
                };
                let made = block_on(self.store.create(&self.dir(dir)?, name(n), &how, &by(b, n)))?;
                Ok(self.found(made.object, &made.attr))
            }
            Step::Make { dir, name: n, kind, mode, by: b } => {
                let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
                let kind = match kind {
                    0..3 => MakeKind::Directory,
                    3 => MakeKind::Symlink(b"a".to_vec()),
                    4 => MakeKind::Fifo,
                    _ => MakeKind::Socket,
                };
                let dir = self.dir(dir)?;
                let made = block_on(self.store.make(&dir, name(n), &kind, &set, &by(b, n)))?;
                Ok(self.found(made.object, &made.attr))
            }
            Step::Remove { dir, name: n, by: b } => {
                let change = block_on(self.store.remove(&self.dir(dir)?, name(n), &by(b, n)))?;
                Ok(seen(&change.after.unwrap()))
            }
            Step::RemoveDir { dir, name: n, by: b } => {
                let change = block_on(self.store.remove_dir(&self.dir(dir)?, name(n), &by(b, n)))?;
                Ok(seen(&change.after.unwrap()))
            }
            Step::Rename { from, to, by: b } => {
                let (source, target) = (self.dir(from.0)?, self.dir(to.0)?);
                let (old, new) = (name(from.1), name(to.1));
                let changes = block_on(self.store.rename(
                    &source,
                    old,
                    &target,
                    new,
                    &by(b, from.1.max(to.1)),
                ))?;
                Ok(seen(&changes.1.after.unwrap()))
            }
            Step::Link { object, dir, name: n } => {
                let (object, dir) = (self.object(object)?, self.dir(dir)?);
                let done = block_on(self.store.link(&object, &dir, name(n), &by(0, n)))?;
                Ok(seen(&done.0))
            }
            Step::Lookup { dir, name: n } => {
                let (object, attr) = block_on(self.store.lookup(&self.dir(dir)?, name(n)))?;
                Ok(self.found(object, &attr))
            }
            _ => self.play_on_this(step),
        }
    }

    fn play_on_this(&mut self, step: &Step) -> FsResult<Answer> {
        let name = |number: usize| Name::new(NAMES[number]).unwrap();
        match *step {
            Step::LookupFolded { dir, name: n } => {
                let found = block_on(self.store.lookup_folded(&self.dir(dir)?, name(n)))?;
                let _known = self.found(found.object, &found.attr);
                Ok(Answer::Folded(found.name.into_vec(), Seen::of(&found.attr)))
            }
            Step::RemoveThis { dir, name: n, object, by } => {
                let (dir, object) = (self.dir(dir)?, self.object(object)?);
                let cred = &callers()[by];
                let done = self.store.remove_this(&dir, name(n), &object, cred);
                Ok(seen(&block_on(done)?.after.unwrap()))
            }
            Step::RenameThis { object, from, to, no, by } => {
                let (object, old) = (self.object(object)?, (self.dir(from.0)?, name(from.1)));
                let (new, cred) = ((self.dir(to.0)?, name(to.1)), &callers()[by]);
                let replace = if no { Replace::No } else { Replace::Yes };
                let (old, new) = ((&old.0, old.1), (&new.0, new.1));
                let done = self.store.rename_this(&object, old, new, replace, cred);
                Ok(seen(&block_on(done)?.1.after.unwrap()))
            }
            _ => self.play_on_object(step),
        }
    }

    fn play_on_object(&self, step: &Step) -> FsResult<Answer> {
        let set = |object: usize, set: SetAttr, by: usize| {
            let object = self.object(object)?;
            let change = block_on(self.store.set_attr(&object, &set, None, &callers()[by]))?;
            Ok(seen(&change.after.unwrap()))
        };
        let blank = SetAttr::default();
        match *step {
            Step::Write { object, offset, length, gives_change } => {
                let data = Shared::from(vec![u8::try_from(offset % 251).unwrap(); length]);
                let object = self.object(object)?;
                let how = WriteHow { stability: Stability::Unstable, gives_change };
                let done = block_on(self.store.write(&object, offset, data, how))?;
                let after = match gives_change {
                    true => done.change.after.unwrap(),
                    false => block_on(self.store.attr(&object))?,
                };
                Ok(seen(&after))
            }
            Step::Read { object, offset, count } => {
                let object = self.object(object)?;
                let done = block_on(self.store.read(&object, offset, count, Vec::new()))?;
                Ok(Answer::Data(done.out, done.eof))
            }
            Step::SetMode { object, mode, by } => {
                set(object, SetAttr { mode: Some(mode), ..blank }, by)
            }
            Step::SetOwner { object, uid, gid, by } => {
                set(object, SetAttr { uid, gid, ..blank }, by)
            }
            Step::SetSize { object, size, by } => {
                set(object, SetAttr { size: Some(size), ..blank }, by)
            }
            Step::List { dir } => {
                let dir = self.dir(dir)?;
                let page = self.store.read_dir(&dir, 0, 1000, 100_000, Want::Details);
                let page = block_on(page)?;
                assert!(page.eof && page.entries.iter().all(|entry| entry.object.is_some()));
                let mut names: Vec<_> = page.entries.into_iter().map(|e| e.name.to_vec()).collect();
                names.sort_unstable();
                Ok(Answer::Names(names))
            }
            Step::ReadLink { object } => {
                let target = block_on(self.store.read_link(&self.object(object)?))?;
                Ok(Answer::Data(target, true))
            }
            Step::SetAcl { object, default, list, by } => {
                let (object, list) = (self.object(object)?, &lists()[list]);
                let (kind, cred) = (kind_of(default), &callers()[by]);
                Ok(seen(&block_on(self.store.set_acl(&object, kind, list.as_ref(), cred))?))
            }
            Step::GetAcl { object, default } => {
                let object = self.object(object)?;
                let (attr, acl) = block_on(self.store.acl(&object, kind_of(default)))?;
                assert!(default || attr.has_acl == acl.is_some());
                Ok(Answer::List(acl))
            }
            _ => self.play_decided(step),
        }
    }

    fn play_decided(&self, step: &Step) -> FsResult<Answer> {
        match *step {
            Step::Details { object } => {
                Ok(told(&block_on(self.store.details(&self.object(object)?))?.1))
            }
            Step::SetDetails { object, birth, dos, by } => {
                let birth = birth.map(|secs| Timestamp { secs, nanos: 1 });
                let set = SetDetails { birth, dos: dos.map(DosAttributes::from_bits_truncate) };
                let object = self.object(object)?;
                let before = block_on(self.store.details(&object))?.1;
                let after = block_on(self.store.set_details(&object, &set, &callers()[by]))?.1;
                let same = (before.birth, before.dos) == (after.birth, after.dos);
                assert_eq!(same, before.change == after.change);
                Ok(told(&after))
            }
            Step::DecidedSize { object, size } => {
                let change = block_on(self.store.set_size(&self.object(object)?, size))?;
                Ok(seen(&change.after.unwrap()))
            }
            Step::Zero { object, from, to } => {
                let change = block_on(self.store.zero_range(&self.object(object)?, from, to))?;
                Ok(seen(&change.after.unwrap()))
            }
            Step::Ranges { object, from, to, most } if KNOWS_HOLES => {
                let object = self.object(object)?;
                Ok(Answer::Ranges(block_on(self.store.allocated_ranges(&object, from, to, most))?))
            }
            _ => Ok(Answer::Nothing),
        }
    }
}
