//! The procedures about names.

use super::{Direct, Told, after, need, seen};
use crate::answer::{Body, Listed, Seen};
use crate::cursor::Cursor;
use crate::step::{At, Bytes, How, Kind, With};
use std::collections::BTreeMap;
use weir_core::store::{CreateHow, DirEntry, MakeKind, Want};
use weir_core::testing::block_on;
use weir_core::{Credentials, DeviceNumber, FileKind, Name, SetAttr, Store};
use weir_nfs::v3::wire::Status;

/// Everything of a READDIR result but entries, and of an entry but its name (RFC 1813 §3.3.16):
/// `post_op_attr`, verifier, end of the list, eof; flag, file id, length of the name, cookie.
const LIST_BYTES: usize = (4 + 84) + 8 + 4 + 4;
const ENTRY_BYTES: usize = 4 + 8 + 4 + 8;

/// A name that may exist; an empty one is NFS3ERR_ACCES (RFC 1813 §3.2).
fn existing(name: &Bytes) -> Result<Name<'_>, Status> {
    if name.0.is_empty() {
        return Err(Status::ACCES);
    }
    Ok(Name::new(&name.0)?)
}

/// A name to be made.
fn fresh(name: &Bytes) -> Result<Name<'_>, Status> {
    let name = existing(name)?;
    if name.is_special() { Err(Status::EXIST) } else { Ok(name) }
}

/// A name to rename from or to.
fn movable(name: &Bytes) -> Result<Name<'_>, Status> {
    let name = existing(name)?;
    if name.is_special() { Err(Status::INVAL) } else { Ok(name) }
}

/// The attributes that `cred` may ask for of an object that it makes: it can't make others the
/// owner.
fn asked(set: &SetAttr, cred: &Credentials) -> SetAttr {
    let root = cred.uid == 0;
    let gid = set.gid.filter(|gid| root || cred.in_group(*gid));
    SetAttr { uid: set.uid.filter(|_| root), gid, ..*set }
}

impl<S: Store> Direct<S> {
    pub(super) fn lookup(
        &mut self,
        at: &At,
        into: usize,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let dir = self.found(at.dir)?;
        dir.need_directory()?;
        need(dir.to(cred).may_search())?;
        let (object, attr) = block_on(self.store.lookup(&dir.object, existing(&at.name)?))?;
        Ok((vec![seen(&attr), seen(&dir.attr)], self.keep(into, &object, &attr)))
    }

    pub(super) fn create(
        &mut self,
        at: &At,
        how: &How,
        into: usize,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let (dir, name) = (self.object(at.dir)?, fresh(&at.name)?);
        let how = match how {
            How::Unchecked(set) => CreateHow::Unchecked(asked(set, cred)),
            How::Guarded(set) => CreateHow::Guarded(asked(set, cred)),
            How::Exclusive(verifier) => CreateHow::Exclusive(*verifier),
        };
        let made = block_on(self.store.create(&dir, name, &how, cred))?;
        let kept = self.keep(into, &made.object, &made.attr);
        Ok((vec![seen(&made.attr), after(&made.dir)], kept))
    }

    pub(super) fn make(
        &mut self,
        at: &At,
        kind: &Kind,
        set: &SetAttr,
        into: usize,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let (dir, name) = (self.object(at.dir)?, fresh(&at.name)?);
        let kind = match kind {
            Kind::Directory => MakeKind::Directory,
            Kind::Symlink(target) => match target.0.len() {
                0 => return Err(Status::INVAL),
                1..4096 => MakeKind::Symlink(target.0.clone()),
                _ => return Err(Status::NAMETOOLONG),
            },
            Kind::Fifo => MakeKind::Fifo,
            Kind::Socket => MakeKind::Socket,
            &Kind::CharDevice(major, minor) => MakeKind::CharDevice(DeviceNumber { major, minor }),
        };
        let set = SetAttr { size: None, ..asked(set, cred) };
        let made = block_on(self.store.make(&dir, name, &kind, &set, cred))?;
        let kept = self.keep(into, &made.object, &made.attr);
        Ok((vec![seen(&made.attr), after(&made.dir)], kept))
    }

    pub(super) fn remove(&self, at: &At, cred: &Credentials) -> Result<Told, Status> {
        let (dir, name) = (self.object(at.dir)?, existing(&at.name)?);
        if name.is_special() {
            return Err(Status::ISDIR);
        }
        let change = block_on(self.store.remove(&dir, name, cred))?;
        Ok((vec![after(&change)], Body::Nothing))
    }

    pub(super) fn rmdir(&self, at: &At, cred: &Credentials) -> Result<Told, Status> {
        let (dir, name) = (self.object(at.dir)?, existing(&at.name)?);
        match name.as_bytes() {
            b"." => return Err(Status::INVAL),
            b".." => return Err(Status::EXIST),
            _ => {}
        }
        let change = block_on(self.store.remove_dir(&dir, name, cred))?;
        Ok((vec![after(&change)], Body::Nothing))
    }

    pub(super) fn rename(&self, from: &At, to: &At, cred: &Credentials) -> Result<Told, Status> {
        let (source, target) = (self.object(from.dir)?, self.object(to.dir)?);
        let (old, new) = (movable(&from.name)?, movable(&to.name)?);
        let (left, entered) = block_on(self.store.rename(&source, old, &target, new, cred))?;
        Ok((vec![after(&left), after(&entered)], Body::Nothing))
    }

    pub(super) fn link(&self, slot: usize, at: &At, cred: &Credentials) -> Result<Told, Status> {
        let (object, dir) = (self.object(slot)?, self.object(at.dir)?);
        let name = fresh(&at.name)?;
        if self.links_protected && !self.may_be_linked(slot, cred)? {
            self.need_free_name(at, name, cred)?;
            return Err(Status::PERM);
        }
        let (attr, change) = block_on(self.store.link(&object, &dir, name, cred))?;
        Ok((vec![seen(&attr), after(&change)], Body::Nothing))
    }

    /// The rule of `fs.protected_hardlinks`: an owner's file, or one that the caller may read and
    /// write and that has no privileges. (A directory can't be linked at all.)
    fn may_be_linked(&self, slot: usize, cred: &Credentials) -> Result<bool, Status> {
        let found = self.found(slot)?;
        let mode = found.attr.mode;
        let privileged = mode & 0o4000 != 0 || mode & 0o2010 == 0o2010;
        let plain = found.attr.kind == FileKind::Regular && !privileged;
        let safe = plain && found.to(cred).may_read_and_write();
        let owner = cred.uid == 0 || cred.uid == found.attr.uid;
        Ok(found.attr.kind == FileKind::Directory || owner || safe)
    }

    fn need_free_name(&self, at: &At, name: Name<'_>, cred: &Credentials) -> Result<(), Status> {
        let dir = self.found(at.dir)?;
        dir.need_directory()?;
        need(dir.to(cred).may_search())?;
        match block_on(self.store.lookup(&dir.object, name)) {
            Ok(_) => Err(Status::EXIST),
            Err(_) => Ok(()),
        }
    }

    /// The whole directory, in pages of as many entries as surely fit into `bytes`.
    pub(super) fn list(
        &self,
        slot: usize,
        with: With,
        bytes: u32,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let dir = self.found(slot)?;
        dir.need_directory()?;
        need(dir.to(cred).may_list())?;
        let bytes = bytes as usize;
        if bytes < LIST_BYTES {
            return Err(Status::TOOSMALL);
        }
        let with_objects = with != With::Names && dir.to(cred).may_search();
        let want = if with_objects { Want::Attributes } else { Want::Names };
        let entries_max = 1 + (bytes - LIST_BYTES) / 200;
        let (mut names, mut cookie, mut last) = (BTreeMap::new(), 0, None);
        loop {
            let page = self.store.read_dir(&dir.object, cookie, entries_max, bytes, want);
            let page = block_on(page)?;
            for entry in page.entries {
                let needs = LIST_BYTES + ENTRY_BYTES + entry.name.len().next_multiple_of(4);
                if with == With::Names && needs > bytes {
                    return Err(Status::TOOSMALL);
                }
                cookie = entry.cookie;
                let listed = with_objects.then(|| self.listed(&entry));
                let twice = names.insert(Bytes(entry.name.to_vec()), listed).is_some();
                assert!(!twice, "{} is listed twice", entry.name.escape_ascii());
            }
            last = page.eof.then_some(page.attr).or(last);
            if page.eof {
                break;
            }
        }
        Ok((vec![last.as_ref().map(Seen::of)], Body::Names(names)))
    }

    /// Any answer will do, but the names must be right when the directory ends.
    pub(super) fn page(&mut self, begin: Option<usize>, cred: &Credentials) {
        if let Some(slot) = begin {
            let Ok((_, Body::Names(names))) = self.list(slot, With::Names, 4096, cred) else {
                return;
            };
            let names = names.into_keys().map(|name| name.0);
            self.cursor = Some(Cursor::new(*self.slots.get(slot), names));
        }
        let Some(mut cursor) = self.cursor.take() else { return };
        let Ok(dir) = block_on(self.store.resolve(&cursor.dir)) else { return };
        let page =
            block_on(self.store.read_dir(&dir, cursor.cookie, 3, 4096, Want::Names)).unwrap();
        for entry in &page.entries {
            self.complaints.extend(cursor.note(&entry.name, entry.cookie));
        }
        if page.eof {
            self.complaints.extend(cursor.end());
        } else {
            self.cursor = Some(cursor);
        }
    }

    fn listed(&self, entry: &DirEntry) -> Listed {
        let Some((key, attr)) = &entry.object else { return (None, None) };
        assert_eq!(attr.fileid, entry.fileid, "{}", entry.name.escape_ascii());
        (seen(attr), self.slots.find(key))
    }
}
