//! The operations that give, move and take away names.

use super::MemObject;
use super::node::{Body, Directory};
use super::rules;
use super::sparse::Sparse;
use super::tree::{ROOT, Tree};
use crate::attr::{Attr, Change, DeviceNumber, FileKind, SetAttr};
use crate::cred::Credentials;
use crate::error::{FsError, FsResult};
use crate::limits::SYMLINK_BYTES_MAX;
use crate::name::Name;
use crate::permission::Access;
use crate::store::{CreateHow, Folded, Made, MakeKind, Replace};

/// The limit of ext4.
const LINKS_MAX: u32 = 65_000;

/// A name in a directory.
type Place<'a> = (u64, Name<'a>);

impl Tree {
    pub(super) fn create(
        &mut self,
        dir: u64,
        name: Name<'_>,
        how: &CreateHow,
        cred: &Credentials,
    ) -> FsResult<Made<MemObject>> {
        let before = self.searched(dir, cred)?;
        if let Some(ino) = self.entry(dir, name)? {
            self.create_existing(ino, how, cred)?;
            return self.made(ino, dir, before);
        }
        let set = match how {
            CreateHow::Unchecked(set) | CreateHow::Guarded(set) => *set,
            CreateHow::Exclusive(_) => SetAttr::default(),
        };
        let ino = self.add_named((dir, name), Body::File(Sparse::default()), &set, cred)?;
        if let CreateHow::Exclusive(verifier) = how {
            self.node_mut(ino)?.verifier = Some(*verifier);
        }
        self.made(ino, dir, before)
    }

    fn create_existing(&mut self, ino: u64, how: &CreateHow, cred: &Credentials) -> FsResult<()> {
        match how {
            CreateHow::Exclusive(verifier) if self.node(ino)?.verifier == Some(*verifier) => Ok(()),
            CreateHow::Exclusive(_) | CreateHow::Guarded(_) => Err(FsError::Exists),
            CreateHow::Unchecked(set) => {
                match self.attr(ino)?.kind {
                    FileKind::Regular => {}
                    FileKind::Directory => return Err(FsError::IsDirectory),
                    _ => return Err(FsError::Exists),
                }
                let size = set.size.filter(|size| *size == 0);
                let truncate = SetAttr { size, ..SetAttr::default() };
                rules::may_set(self.node(ino)?, &truncate, cred)?;
                self.apply(ino, &truncate, cred)
            }
        }
    }

    pub(super) fn make(
        &mut self,
        dir: u64,
        name: Name<'_>,
        kind: &MakeKind,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<Made<MemObject>> {
        let before = self.searched(dir, cred)?;
        if self.entry(dir, name)?.is_some() {
            return Err(FsError::Exists);
        }
        rules::may_add(self.node(dir)?, cred)?;
        let special = |kind| Body::Special(kind, DeviceNumber::default());
        let device = |kind, number: &DeviceNumber| {
            let body = Body::Special(kind, *number);
            if cred.is_root() { Ok(body) } else { Err(FsError::NotPermitted) }
        };
        let body = match kind {
            MakeKind::Directory => Body::Directory(Directory::new(dir)),
            MakeKind::Symlink(target) if target.len() > SYMLINK_BYTES_MAX => {
                return Err(FsError::NameTooLong);
            }
            MakeKind::Symlink(target) if target.is_empty() || target.contains(&0) => {
                return Err(FsError::Invalid);
            }
            MakeKind::Symlink(target) => Body::Symlink(target.clone()),
            MakeKind::Fifo => special(FileKind::Fifo),
            MakeKind::Socket => special(FileKind::Socket),
            MakeKind::BlockDevice(number) => device(FileKind::BlockDevice, number)?,
            MakeKind::CharDevice(number) => device(FileKind::CharDevice, number)?,
        };
        let ino = self.add_named((dir, name), body, set, cred)?;
        self.made(ino, dir, before)
    }

    /// Makes an object under a free name; if `set` asks for what `cred` may not have, nothing is.
    fn add_named(
        &mut self,
        (dir, name): Place<'_>,
        body: Body,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<u64> {
        let parent = self.node(dir)?;
        rules::may_add(parent, cred)?;
        let directory = matches!(body, Body::Directory(_));
        let symlink = matches!(body, Body::Symlink(_));
        let asked = if symlink { 0o777 } else { set.mode.unwrap_or(0) };
        let (gid, mode) = rules::inherit(parent, asked, directory, cred);
        let default_acl = parent.default_acl.clone().filter(|_| !symlink);
        let acl = default_acl.as_ref().map(|default| default.inherited(mode));
        let mode = acl.as_ref().map_or(mode, |acl| mode & !0o777 | acl.mode_bits());
        let ino = self.add(body, mode, (cred.uid, gid));
        let node = self.node_mut(ino)?;
        node.acl = acl.filter(|acl| !acl.is_mode());
        node.default_acl = default_acl.filter(|_| directory);
        // A size of zero is what it has already.
        let rest = SetAttr { mode: None, size: set.size.filter(|size| *size > 0), ..*set };
        if let Err(error) = rules::may_set(self.node(ino)?, &rest, cred) {
            self.nodes.remove(&ino);
            return Err(error);
        }
        self.apply(ino, &rest, cred)?;
        self.touch_dir(dir, i64::from(directory))?;
        self.directory_mut(dir)?.insert(name.as_bytes(), ino);
        Ok(ino)
    }

    pub(super) fn remove(
        &mut self,
        dir: u64,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let before = self.searched(dir, cred)?;
        if name.is_special() {
            return Err(FsError::IsDirectory);
        }
        let ino = self.entry(dir, name)?.ok_or(FsError::NotFound)?;
        rules::may_take_out(self.node(dir)?, self.node(ino)?, cred)?;
        if self.directory(ino).is_ok() {
            return Err(FsError::IsDirectory);
        }
        self.directory_mut(dir)?.remove(name.as_bytes());
        self.unlink(ino)?;
        self.touch_dir(dir, 0)?;
        self.changed(dir, before)
    }

    pub(super) fn remove_dir(
        &mut self,
        dir: u64,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let before = self.searched(dir, cred)?;
        match name.as_bytes() {
            b"." => return Err(FsError::Invalid),
            b".." => return Err(FsError::Exists),
            _ => {}
        }
        let ino = self.entry(dir, name)?.ok_or(FsError::NotFound)?;
        rules::may_take_out(self.node(dir)?, self.node(ino)?, cred)?;
        if !self.directory(ino)?.is_empty() {
            return Err(FsError::NotEmpty);
        }
        self.directory_mut(dir)?.remove(name.as_bytes());
        self.nodes.remove(&ino);
        self.touch_dir(dir, -1)?;
        self.changed(dir, before)
    }

    /// The name must lead to this object still.
    fn need_this(&self, (dir, name): Place<'_>, object: u64) -> FsResult<()> {
        self.directory(dir)?;
        if name.is_special() {
            return Err(FsError::Invalid);
        }
        let found = self.entry(dir, name)?;
        if found == Some(object) { Ok(()) } else { Err(FsError::NotFound) }
    }

    pub(super) fn remove_this(
        &mut self,
        dir: u64,
        name: Name<'_>,
        object: u64,
        cred: &Credentials,
    ) -> FsResult<Change> {
        self.need_this((dir, name), object)?;
        if self.directory(object).is_ok() {
            self.remove_dir(dir, name, cred)
        } else {
            self.remove(dir, name, cred)
        }
    }

    pub(super) fn rename_this(
        &mut self,
        object: u64,
        from: Place<'_>,
        to: Place<'_>,
        replace: Replace,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        self.directory(to.0)?;
        if to.1.is_special() {
            return Err(FsError::Invalid);
        }
        self.need_this(from, object)?;
        let taken = from != to && self.entry(to.0, to.1)?.is_some();
        if taken && replace == Replace::No {
            return Err(FsError::Exists);
        }
        self.rename(from, to, cred)
    }

    pub(super) fn lookup_folded(&self, dir: u64, name: Name<'_>) -> FsResult<Folded<MemObject>> {
        let found = match self.entry(dir, name)? {
            Some(ino) => Some((name.as_bytes(), ino)),
            None => self.directory(dir)?.folded(name.as_bytes()),
        };
        let (name, ino) = found.ok_or(FsError::NotFound)?;
        Ok(Folded { name: name.into(), object: MemObject(ino), attr: self.attr(ino)? })
    }

    pub(super) fn rename(
        &mut self,
        (from_dir, from): Place<'_>,
        (to_dir, to): Place<'_>,
        cred: &Credentials,
    ) -> FsResult<(Change, Change)> {
        self.directory(from_dir)?;
        self.directory(to_dir)?;
        let before = (self.searched(from_dir, cred)?, self.searched(to_dir, cred)?);
        if from.is_special() || to.is_special() {
            return Err(FsError::Invalid);
        }
        let source = self.entry(from_dir, from)?.ok_or(FsError::NotFound)?;
        let target = self.entry(to_dir, to)?;
        self.may_nest((from_dir, source), (to_dir, target))?;
        if target != Some(source) {
            self.may_rename((from_dir, source), (to_dir, target), cred)?;
            let directory = self.directory(source).is_ok();
            self.directory_mut(from_dir)?.remove(from.as_bytes());
            if let Some(target) = target {
                self.replaced(target, to_dir)?;
            }
            self.directory_mut(to_dir)?.insert(to.as_bytes(), source);
            if directory {
                self.directory_mut(source)?.parent = to_dir;
            }
            self.touch_dir(from_dir, -i64::from(directory))?;
            self.touch_dir(to_dir, i64::from(directory))?;
            let now = self.tick();
            self.node_mut(source)?.ctime = now;
        }
        Ok((self.changed(from_dir, before.0)?, self.changed(to_dir, before.1)?))
    }

    /// Neither end of a rename may be above the other; said before anything else about them, also
    /// where the caller could change neither (Linux, `lock_rename`).
    fn may_nest(
        &self,
        (from_dir, source): (u64, u64),
        (to_dir, target): (u64, Option<u64>),
    ) -> FsResult<()> {
        if from_dir == to_dir {
            return Ok(());
        }
        if self.directory(source).is_ok() && self.is_within(to_dir, source)? {
            return Err(FsError::Invalid);
        }
        match target {
            Some(target)
                if self.directory(target).is_ok() && self.is_within(from_dir, target)? =>
            {
                Err(FsError::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    /// The order is the kernel's (`vfs_rename`): the old name, the new one, the directory that
    /// moves, and what only the file system knows last.
    fn may_rename(
        &self,
        (from_dir, source): (u64, u64),
        (to_dir, target): (u64, Option<u64>),
        cred: &Credentials,
    ) -> FsResult<()> {
        let moved = self.node(source)?;
        let is_directory = self.directory(source).is_ok();
        rules::may_take_out(self.node(from_dir)?, moved, cred)?;
        match target {
            None => rules::may_add(self.node(to_dir)?, cred)?,
            Some(target) => {
                rules::may_take_out(self.node(to_dir)?, self.node(target)?, cred)?;
                match (is_directory, self.directory(target).is_ok()) {
                    (true, false) => return Err(FsError::NotDirectory),
                    (false, true) => return Err(FsError::IsDirectory),
                    (true, true) | (false, false) => {}
                }
            }
        }
        // The directory's `..` changes, so the directory itself must be writable.
        if is_directory && from_dir != to_dir && !moved.allows(cred, Access::WRITE) {
            return Err(FsError::AccessDenied);
        }
        match target {
            Some(target) if is_directory && !self.directory(target)?.is_empty() => {
                Err(FsError::NotEmpty)
            }
            _ => Ok(()),
        }
    }

    /// Is `dir` the directory `top` or anywhere below it?
    fn is_within(&self, mut dir: u64, top: u64) -> FsResult<bool> {
        while dir != top && dir != ROOT {
            dir = self.directory(dir)?.parent;
        }
        Ok(dir == top)
    }

    fn replaced(&mut self, target: u64, dir: u64) -> FsResult<()> {
        if self.directory(target).is_ok() {
            self.nodes.remove(&target);
            self.touch_dir(dir, -1)
        } else {
            self.unlink(target)
        }
    }

    pub(super) fn link(
        &mut self,
        object: u64,
        dir: u64,
        name: Name<'_>,
        cred: &Credentials,
    ) -> FsResult<(Attr, Change)> {
        let attr = self.attr(object)?;
        if attr.kind == FileKind::Directory {
            return Err(FsError::IsDirectory);
        }
        let before = self.searched(dir, cred)?;
        if self.entry(dir, name)?.is_some() {
            return Err(FsError::Exists);
        }
        rules::may_add(self.node(dir)?, cred)?;
        if attr.nlink >= LINKS_MAX {
            return Err(FsError::TooManyLinks);
        }
        let now = self.tick();
        let node = self.node_mut(object)?;
        node.nlink += 1;
        node.ctime = now;
        self.directory_mut(dir)?.insert(name.as_bytes(), object);
        self.touch_dir(dir, 0)?;
        Ok((self.attr(object)?, self.changed(dir, before)?))
    }

    /// The directory's attributes, if `cred` may search it.
    fn searched(&self, dir: u64, cred: &Credentials) -> FsResult<Attr> {
        self.directory(dir)?;
        rules::may_search(self.node(dir)?, cred)?;
        self.attr(dir)
    }

    fn changed(&self, dir: u64, before: Attr) -> FsResult<Change> {
        Ok(Change { before: Some(before), after: Some(self.attr(dir)?) })
    }

    /// Takes one name from an object that is no directory; without names it is gone.
    fn unlink(&mut self, ino: u64) -> FsResult<()> {
        let now = self.tick();
        let node = self.node_mut(ino)?;
        node.ctime = now;
        node.nlink -= 1;
        if node.nlink == 0 {
            self.nodes.remove(&ino);
        }
        Ok(())
    }

    /// Marks a directory changed, with `subdirectories` more of them than before.
    fn touch_dir(&mut self, dir: u64, subdirectories: i64) -> FsResult<()> {
        let now = self.tick();
        let node = self.node_mut(dir)?;
        (node.mtime, node.ctime) = (now, now);
        node.nlink = match subdirectories {
            -1 => node.nlink - 1,
            1 => node.nlink + 1,
            _ => node.nlink,
        };
        Ok(())
    }
}
