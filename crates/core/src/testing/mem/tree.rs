//! The tree itself: objects by inode number, and the operations on one object.

use super::MemObject;
use super::node::{Body, Directory, Node};
use super::rules;
use super::sparse::Sparse;
use crate::acl::{Acl, AclKind};
use crate::attr::{Attr, Change, SetAttr, SetTime};
use crate::cred::Credentials;
use crate::details::DosAttributes;
use crate::error::{FsError, FsResult};
use crate::limits::FILE_BYTES_MAX;
use crate::name::Name;
use crate::store::{DirEntry, DirPage, FsStat, Made, ReadDone, Stability, WriteDone};
use crate::time::Timestamp;
use std::collections::BTreeMap;
use std::vec::Vec;

pub(super) const ROOT: u64 = 1;

/// File slots that FSSTAT speaks of; nothing enforces them.
const FILES_TOTAL: u64 = 1 << 32;

#[derive(Debug)]
pub(super) struct Tree {
    pub(super) nodes: BTreeMap<u64, Node>,
    /// The number of operations until one fails, and its error.
    pub(super) failure: Option<(u32, FsError)>,
    /// The objects that were made stable, in this order.
    pub(super) stabilized: Vec<u64>,
    /// The stability that the last WRITE asked for.
    pub(super) asked: Option<Stability>,
    last_ino: u64,
    ticks: u32,
    quota: u64,
}

impl Tree {
    pub(super) fn new(quota: u64) -> Self {
        let mut tree = Self {
            nodes: BTreeMap::new(),
            failure: None,
            stabilized: Vec::new(),
            asked: None,
            last_ino: 0,
            ticks: 0,
            quota,
        };
        tree.add(Body::Directory(Directory::new(ROOT)), 0o777, (0, 0));
        tree
    }

    /// The next moment: every change has a time of its own.
    pub(super) fn tick(&mut self) -> Timestamp {
        self.ticks += 1;
        Timestamp { secs: 1_700_000_000, nanos: self.ticks }
    }

    pub(super) fn add(&mut self, body: Body, mode: u32, (uid, gid): (u32, u32)) -> u64 {
        let now = self.tick();
        self.last_ino += 1;
        let nlink = if matches!(body, Body::Directory(_)) { 2 } else { 1 };
        let (atime, mtime, ctime) = (now, now, now);
        let (acl, default_acl, verifier) = (None, None, None);
        let (birth, dos) = (now, DosAttributes::of_new(body.kind()));
        let node = Node {
            mode,
            acl,
            default_acl,
            nlink,
            uid,
            gid,
            atime,
            mtime,
            ctime,
            birth,
            dos,
            verifier,
            body,
        };
        self.nodes.insert(self.last_ino, node);
        self.last_ino
    }

    pub(super) fn node(&self, ino: u64) -> FsResult<&Node> {
        self.nodes.get(&ino).ok_or(FsError::Stale)
    }

    pub(super) fn node_mut(&mut self, ino: u64) -> FsResult<&mut Node> {
        self.nodes.get_mut(&ino).ok_or(FsError::Stale)
    }

    pub(super) fn attr(&self, ino: u64) -> FsResult<Attr> {
        Ok(self.node(ino)?.attr(ino))
    }

    pub(super) fn directory(&self, ino: u64) -> FsResult<&Directory> {
        match &self.node(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub(super) fn directory_mut(&mut self, ino: u64) -> FsResult<&mut Directory> {
        match &mut self.node_mut(ino)?.body {
            Body::Directory(directory) => Ok(directory),
            _ => Err(FsError::NotDirectory),
        }
    }

    pub(super) fn file(&self, ino: u64) -> FsResult<&Sparse> {
        match &self.node(ino)?.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(FsError::IsDirectory),
            _ => Err(FsError::WrongKind),
        }
    }

    pub(super) fn file_mut(&mut self, ino: u64) -> FsResult<&mut Sparse> {
        match &mut self.node_mut(ino)?.body {
            Body::File(data) => Ok(data),
            Body::Directory(_) => Err(FsError::IsDirectory),
            _ => Err(FsError::WrongKind),
        }
    }

    /// The object that `name` means in `dir`.
    pub(super) fn entry(&self, dir: u64, name: Name<'_>) -> FsResult<Option<u64>> {
        let directory = self.directory(dir)?;
        Ok(match name.as_bytes() {
            b"." => Some(dir),
            b".." => Some(directory.parent),
            other => directory.get(other),
        })
    }

    /// The object with its attributes now, and `dir` with its change since `before`.
    pub(super) fn made(&self, ino: u64, dir: u64, before: Attr) -> FsResult<Made<MemObject>> {
        let change = Change { before: Some(before), after: Some(self.attr(dir)?) };
        Ok(Made { object: MemObject(ino), attr: self.attr(ino)?, dir: change })
    }

    pub(super) fn read_link(&self, ino: u64) -> FsResult<Vec<u8>> {
        match &self.node(ino)?.body {
            Body::Symlink(target) => Ok(target.clone()),
            _ => Err(FsError::WrongKind),
        }
    }

    pub(super) fn read(
        &self,
        ino: u64,
        offset: u64,
        count: u32,
        mut out: Vec<u8>,
    ) -> FsResult<ReadDone> {
        let file = self.file(ino)?;
        let read = file.read(offset, count, &mut out);
        let eof = offset.saturating_add(u64::from(read)) >= file.size();
        Ok(ReadDone { out, count: read, eof, attr: self.attr(ino)? })
    }

    pub(super) fn write(&mut self, ino: u64, offset: u64, data: &[u8]) -> FsResult<WriteDone> {
        let before = self.attr(ino)?;
        let len = data.len() as u64;
        let end = offset.checked_add(len).ok_or(FsError::TooLarge)?;
        let growth = self.file(ino)?;
        if end > FILE_BYTES_MAX {
            return Err(FsError::TooLarge);
        }
        if self.used() + growth.would_allocate(offset, len) > self.quota {
            return Err(FsError::QuotaExceeded);
        }
        self.file_mut(ino)?.write(offset, data);
        if len > 0 {
            self.data_changed(ino)?;
        }
        let change = Change { before: Some(before), after: Some(self.attr(ino)?) };
        let count = u32::try_from(len).map_err(|_| FsError::TooLarge)?;
        Ok(WriteDone { count, committed: Stability::FileSync, change })
    }

    /// Somebody who may write has changed the data of a file.
    pub(super) fn data_changed(&mut self, ino: u64) -> FsResult<()> {
        let now = self.tick();
        let node = self.node_mut(ino)?;
        node.mode = rules::without_privileges(node.mode);
        (node.mtime, node.ctime) = (now, now);
        node.verifier = None;
        Ok(())
    }

    pub(super) fn set_attr(
        &mut self,
        ino: u64,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let before = self.attr(ino)?;
        if guard.is_some_and(|ctime| ctime != before.ctime) {
            return Err(FsError::NotSync);
        }
        rules::may_set(self.node(ino)?, set, cred)?;
        self.apply(ino, set, cred)?;
        Ok(Change { before: Some(before), after: Some(self.attr(ino)?) })
    }

    pub(super) fn acl(&self, ino: u64, kind: AclKind) -> FsResult<(Attr, Option<Acl>)> {
        let node = self.node(ino)?;
        let acl = match kind {
            AclKind::Access => &node.acl,
            AclKind::Default => &node.default_acl,
        };
        Ok((node.attr(ino), acl.clone()))
    }

    pub(super) fn set_acl(
        &mut self,
        ino: u64,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> FsResult<Attr> {
        let now = self.tick();
        let node = self.node_mut(ino)?;
        if matches!(node.body, Body::Symlink(_)) {
            return Err(FsError::NotSupported);
        }
        if kind == AclKind::Default && !matches!(node.body, Body::Directory(_)) {
            return if acl.is_some() { Err(FsError::AccessDenied) } else { self.attr(ino) };
        }
        rules::may_set_acl(node, cred)?;
        match (kind, acl) {
            (AclKind::Default, _) => node.default_acl = acl.cloned(),
            (AclKind::Access, None) => node.acl = None,
            (AclKind::Access, Some(acl)) => {
                node.mode = rules::chmod(node.mode & !0o777 | acl.mode_bits(), node.gid, cred);
                node.acl = Some(acl.clone()).filter(|acl| !acl.is_mode());
            }
        }
        node.ctime = now;
        self.attr(ino)
    }

    /// Makes the changes, in the order truncate, chown, chmod, times; they are allowed.
    pub(super) fn apply(&mut self, ino: u64, set: &SetAttr, cred: &Credentials) -> FsResult<()> {
        if *set == SetAttr::default() {
            return Ok(());
        }
        let now = self.tick();
        if let Some(size) = set.size {
            self.file_mut(ino)?.set_size(size);
        }
        let node = self.node_mut(ino)?;
        node.ctime = now;
        if set.size.is_some() {
            node.mtime = now;
            node.verifier = None;
            if !cred.is_root() {
                node.mode = rules::without_privileges(node.mode);
            }
        }
        if set.uid.is_some() || set.gid.is_some() {
            if !matches!(node.body, Body::Directory(_)) {
                node.mode = rules::chowned(node.mode, node.gid, cred);
            }
            node.uid = set.uid.unwrap_or(node.uid);
            node.gid = set.gid.unwrap_or(node.gid);
        }
        if let Some(mode) = set.mode {
            node.set_mode(rules::chmod(mode, node.gid, cred));
        }
        for (time, how) in [(&mut node.atime, set.atime), (&mut node.mtime, set.mtime)] {
            match how {
                SetTime::Keep => continue,
                SetTime::ServerNow => *time = now,
                SetTime::To(then) => *time = then,
            }
            node.verifier = None;
        }
        Ok(())
    }

    pub(super) fn read_dir(
        &self,
        dir: u64,
        cookie: u64,
        entries_max: usize,
        name_bytes_max: usize,
    ) -> FsResult<DirPage> {
        let directory = self.directory(dir)?;
        if cookie > directory.last_cookie() {
            return Err(FsError::BadCookie);
        }
        let (mut entries, mut name_bytes, mut eof) = (Vec::new(), 0, true);
        for (cookie, name, fileid) in directory.after(dir, cookie) {
            name_bytes += name.len();
            let enough = name_bytes > name_bytes_max && !entries.is_empty();
            if enough || entries.len() >= entries_max {
                eof = false;
                break;
            }
            entries.push(DirEntry {
                name: name.into(),
                fileid,
                cookie,
                object: None,
                details: None,
            });
        }
        Ok(DirPage { entries, eof, attr: self.attr(dir)? })
    }

    pub(super) fn fs_stat(&self) -> FsStat {
        let free = self.quota.saturating_sub(self.used());
        FsStat {
            total_bytes: self.quota,
            free_bytes: free,
            available_bytes: free,
            total_files: FILES_TOTAL,
            free_files: FILES_TOTAL - self.nodes.len() as u64,
        }
    }

    fn used(&self) -> u64 {
        self.nodes
            .values()
            .map(|node| if let Body::File(data) = &node.body { data.used() } else { 0 })
            .sum()
    }
}
