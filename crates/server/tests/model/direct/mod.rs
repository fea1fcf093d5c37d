//! A store played directly: every procedure of RFC 1813 §3.3 said once more in terms of
//! [`Store`], without the protocol's code, so that this is compared too.

mod data;
mod names;

use crate::answer::{Answer, Body, Seen};
use crate::cursor::Cursor;
use crate::rights::Subject;
use crate::slots::Slots;
use crate::step::{Bytes, Guard, Op, Step, callers, lists};
use weir_core::attr::Change;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::testing::block_on;
use weir_core::{
    Acl, AclKind, Attr, Credentials, FileKind, FsResult, ObjectKey, SetAttr, Store, Timestamp,
};
use weir_nfs::v3::wire::Status;

/// A store and the objects found in it.
pub(crate) struct Direct<S: Store> {
    pub(crate) store: S,
    slots: Slots<ObjectKey>,
    cursor: Option<Cursor<ObjectKey>>,
    complaints: Vec<String>,
    /// The store knows nothing of `fs.protected_hardlinks`, which this machine's kernel enforces.
    links_protected: bool,
}

/// Attributes in their order, and the rest.
type Told = (Vec<Option<Seen>>, Body);

/// An object with all that decides who may do what with it.
struct Found<O> {
    object: O,
    attr: Attr,
    acl: Option<Acl>,
}

impl<O> Found<O> {
    fn to<'a>(&'a self, cred: &'a Credentials) -> Subject<'a> {
        Subject { attr: &self.attr, acl: self.acl.as_ref(), cred }
    }

    fn need_file(&self) -> Result<(), Status> {
        match self.attr.kind {
            FileKind::Regular => Ok(()),
            FileKind::Directory => Err(Status::ISDIR),
            _ => Err(Status::INVAL),
        }
    }

    fn need_directory(&self) -> Result<(), Status> {
        if self.attr.kind == FileKind::Directory { Ok(()) } else { Err(Status::NOTDIR) }
    }
}

fn need(allowed: bool) -> Result<(), Status> {
    if allowed { Ok(()) } else { Err(Status::ACCES) }
}

fn seen(attr: &Attr) -> Option<Seen> {
    Some(Seen::of(attr))
}

fn after(change: &Change) -> Option<Seen> {
    change.after.as_ref().map(Seen::of)
}

/// The size before, of what has a size that is compared.
fn size_before(change: &Change) -> Option<u64> {
    change.before.as_ref().and_then(|attr| Seen::of(attr).size)
}

impl<S: Store> Direct<S> {
    pub(crate) fn new(store: S) -> Self {
        let slots = Slots::new(&store.key(&store.root()));
        Self { store, slots, cursor: None, complaints: vec![], links_protected: false }
    }

    /// Of a store that no kernel is behind: enforces what an administrator of this machine may
    /// have switched on.
    pub(crate) fn with_kernel_policy(self) -> Self {
        let setting = std::fs::read_to_string("/proc/sys/fs/protected_hardlinks");
        let links_protected = setting.is_ok_and(|text| text.trim() == "1");
        Self { links_protected, ..self }
    }

    pub(crate) fn play(&mut self, step: &Step) -> Answer {
        let cred = &callers()[step.by];
        // Which objects' attributes come with a failure.
        let about: Vec<usize> = match &step.op {
            Op::Getattr { .. } | Op::Page { .. } | Op::Restart => vec![],
            Op::Rename { from, to } => vec![from.dir, to.dir],
            Op::Link { object, at } => vec![*object, at.dir],
            Op::Lookup { at, .. }
            | Op::Create { at, .. }
            | Op::Make { at, .. }
            | Op::Remove { at }
            | Op::Rmdir { at } => vec![at.dir],
            Op::List { dir, .. } => vec![*dir],
            Op::Setattr { object, .. }
            | Op::Access { object }
            | Op::Readlink { object }
            | Op::Read { object, .. }
            | Op::Write { object, .. }
            | Op::Fsstat { object }
            | Op::Commit { object }
            | Op::Getacl { object }
            | Op::Setacl { object, .. } => vec![*object],
        };
        if let Some(cursor) = &mut self.cursor {
            cursor.touch(&step.op);
        }
        let answer = match self.carry_out(&step.op, cred) {
            Ok((told, body)) => Answer::ok(told, body),
            Err(status) => Answer::failed(status, self.attributes_after(&about)),
        };
        let rename = matches!(step.op, Op::Rename { .. });
        let answer = if rename { answer.of_rename() } else { answer };
        Answer { complaints: std::mem::take(&mut self.complaints), ..answer }
    }

    fn carry_out(&mut self, op: &Op, cred: &Credentials) -> Result<Told, Status> {
        match op {
            Op::Getattr { object } => Ok((vec![seen(&self.found(*object)?.attr)], Body::Nothing)),
            Op::Setattr { object, set, guard } => self.set_attr(*object, set, *guard, cred),
            Op::Lookup { at, into } => self.lookup(at, *into, cred),
            Op::Access { object } => {
                let found = self.found(*object)?;
                Ok((vec![seen(&found.attr)], Body::Access(found.to(cred).access_bits())))
            }
            Op::Readlink { object } => {
                let found = self.found(*object)?;
                let target = block_on(self.store.read_link(&found.object))?;
                Ok((vec![seen(&found.attr)], Body::Target(Bytes(target))))
            }
            Op::Read { object, offset, count } => self.read(*object, *offset, *count, cred),
            Op::Write { .. } => self.write(op, cred),
            Op::Create { at, how, into } => self.create(at, how, *into, cred),
            Op::Make { at, kind, set, into } => self.make(at, kind, set, *into, cred),
            Op::Remove { at } => self.remove(at, cred),
            Op::Rmdir { at } => self.rmdir(at, cred),
            Op::Rename { from, to } => self.rename(from, to, cred),
            Op::Link { object, at } => self.link(*object, at, cred),
            Op::List { dir, with, bytes } => self.list(*dir, *with, *bytes, cred),
            Op::Page { begin } => {
                self.page(*begin, cred);
                Ok((vec![], Body::Nothing))
            }
            Op::Fsstat { object } => {
                let attr = self.found(*object)?.attr;
                let space = block_on(self.store.fs_stat())?;
                let (total, free) = (space.total_bytes, space.free_bytes);
                let space = Body::Space { total, free, available: space.available_bytes };
                Ok((vec![seen(&attr)], space))
            }
            Op::Commit { object } => self.commit(*object),
            Op::Getacl { object } => self.get_acl(*object),
            Op::Setacl { object, access, default } => {
                self.set_acl(*object, *access, *default, cred)
            }
            Op::Restart => Ok((vec![], Body::Nothing)),
        }
    }

    fn object(&self, slot: usize) -> FsResult<S::Object> {
        block_on(self.store.resolve(self.slots.get(slot)))
    }

    fn found(&self, slot: usize) -> Result<Found<S::Object>, Status> {
        let object = self.object(slot)?;
        let (attr, acl) = block_on(self.store.acl(&object, AclKind::Access))?;
        Ok(Found { object, attr, acl })
    }

    /// The attributes of `slots`, as replies have them: after an object that is gone the server
    /// knows of no other.
    fn attributes_after(&self, slots: &[usize]) -> Vec<Option<Seen>> {
        let attr = |slot: &usize| {
            let object = self.object(*slot).ok()?;
            Some(Seen::of(&block_on(self.store.attr(&object)).ok()?))
        };
        let mut told: Vec<_> = slots.iter().map_while(|slot| attr(slot).map(Some)).collect();
        told.resize(slots.len(), None);
        told
    }

    /// Keeps an object in a slot.
    fn keep(&mut self, into: usize, object: &S::Object, attr: &Attr) -> Body {
        Body::Object(self.slots.fill(into, &self.store.key(object), attr.kind))
    }

    fn set_attr(
        &self,
        slot: usize,
        set: &SetAttr,
        guard: Guard,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let found = self.found(slot)?;
        if let Some(size) = set.size {
            found.need_file()?;
            need(found.to(cred).may_write_data())?;
            if size > FILE_BYTES_MAX {
                return Err(Status::FBIG);
            }
        }
        let Timestamp { secs, nanos } = found.attr.ctime;
        let guard = match guard {
            Guard::None => None,
            Guard::Right => Some(found.attr.ctime),
            Guard::Wrong => Some(Timestamp { secs, nanos: nanos ^ 1 }),
        };
        let change = block_on(self.store.set_attr(&found.object, set, guard, cred))?;
        Ok((vec![after(&change)], Body::Changed { before: size_before(&change) }))
    }

    fn get_acl(&self, slot: usize) -> Result<Told, Status> {
        let found = self.found(slot)?;
        let access = found.acl.unwrap_or_else(|| Acl::from_mode(found.attr.mode));
        let (_, default) = block_on(self.store.acl(&found.object, AclKind::Default))?;
        Ok((vec![seen(&found.attr)], Body::Lists(access, default)))
    }

    fn set_acl(
        &self,
        slot: usize,
        access: Option<usize>,
        default: Option<usize>,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let mut found = self.found(slot)?;
        let list = |number: Option<usize>| number.map(|number| lists()[number].clone());
        let (access, default) = (list(access), list(default));
        if matches!(default, Some(Some(_))) && found.attr.kind != FileKind::Directory {
            return Err(Status::ACCES);
        }
        for (kind, list) in [(AclKind::Access, access), (AclKind::Default, default)] {
            if let Some(list) = list {
                let set = self.store.set_acl(&found.object, kind, list.as_ref(), cred);
                found.attr = block_on(set)?;
            }
        }
        Ok((vec![seen(&found.attr)], Body::Nothing))
    }
}
