//! One object of the tree: its attributes and what it holds.

use super::sparse::Sparse;
use crate::access;
use crate::acl::Acl;
use crate::attr::{Attr, DeviceNumber, FileKind};
use crate::cred::Credentials;
use crate::details::{Details, DosAttributes};
use crate::fold;
use crate::permission::Access;
use crate::time::Timestamp;
use std::boxed::Box;
use std::collections::BTreeMap;
use std::vec::Vec;

pub(super) const COOKIE_DOT: u64 = 1;
pub(super) const COOKIE_DOT_DOT: u64 = 2;

/// The entries of a directory, each with the cookie it got when it was made. A cookie is never
/// used again, so those that stay keep their place whatever is removed beside them.
#[derive(Debug)]
pub(super) struct Directory {
    pub(super) parent: u64,
    by_name: BTreeMap<Box<[u8]>, (u64, u64)>,
    by_cookie: BTreeMap<u64, Box<[u8]>>,
    last_cookie: u64,
}

impl Directory {
    pub(super) fn new(parent: u64) -> Self {
        Self {
            parent,
            by_name: BTreeMap::new(),
            by_cookie: BTreeMap::new(),
            last_cookie: COOKIE_DOT_DOT,
        }
    }

    pub(super) fn get(&self, name: &[u8]) -> Option<u64> {
        self.by_name.get(name).map(|(_, ino)| *ino)
    }

    pub(super) fn insert(&mut self, name: &[u8], ino: u64) {
        self.remove(name);
        self.last_cookie += 1;
        self.by_name.insert(name.into(), (self.last_cookie, ino));
        self.by_cookie.insert(self.last_cookie, name.into());
    }

    pub(super) fn remove(&mut self, name: &[u8]) {
        if let Some((cookie, _)) = self.by_name.remove(name) {
            self.by_cookie.remove(&cookie);
        }
    }

    /// The first of the names that differ from `name` in case alone, if at all.
    pub(super) fn folded(&self, name: &[u8]) -> Option<(&[u8], u64)> {
        let names = self.by_name.iter();
        let mut same = names.filter(|(other, _)| fold::eq_folded(other, name));
        same.next().map(|(name, (_, ino))| (name.as_ref(), *ino))
    }

    pub(super) fn is_empty(&self) -> bool {
        self.by_name.is_empty()
    }

    pub(super) fn len(&self) -> u64 {
        self.by_name.len() as u64
    }

    pub(super) fn last_cookie(&self) -> u64 {
        self.last_cookie
    }

    /// Cookie, name and object of everything after `cookie`, in order, `.` and `..` included.
    pub(super) fn after(
        &self,
        own: u64,
        cookie: u64,
    ) -> impl Iterator<Item = (u64, &[u8], u64)> + '_ {
        let dots = [(COOKIE_DOT, &b"."[..], own), (COOKIE_DOT_DOT, &b".."[..], self.parent)];
        let named = self.by_cookie.range(cookie.saturating_add(1)..);
        let named = named
            .filter_map(|(cookie, name)| self.get(name).map(|ino| (*cookie, name.as_ref(), ino)));
        dots.into_iter().filter(move |dot| dot.0 > cookie).chain(named)
    }
}

#[derive(Debug)]
pub(super) enum Body {
    File(Sparse),
    Directory(Directory),
    Symlink(Vec<u8>),
    Special(FileKind, DeviceNumber),
}

impl Body {
    pub(super) fn kind(&self) -> FileKind {
        match self {
            Self::File(_) => FileKind::Regular,
            Self::Directory(_) => FileKind::Directory,
            Self::Symlink(_) => FileKind::Symlink,
            Self::Special(kind, _) => *kind,
        }
    }
}

#[derive(Debug)]
pub(super) struct Node {
    pub(super) mode: u32,
    /// The access list, where it says more than the mode.
    pub(super) acl: Option<Acl>,
    /// The default list of a directory, with which objects made in it begin.
    pub(super) default_acl: Option<Acl>,
    pub(super) nlink: u32,
    pub(super) uid: u32,
    pub(super) gid: u32,
    pub(super) atime: Timestamp,
    pub(super) mtime: Timestamp,
    pub(super) ctime: Timestamp,
    pub(super) birth: Timestamp,
    pub(super) dos: DosAttributes,
    /// The verifier of an exclusive create, until data or times are set.
    pub(super) verifier: Option<[u8; 8]>,
    pub(super) body: Body,
}

impl Node {
    /// May `cred` do all of `want`?
    pub(super) fn allows(&self, cred: &Credentials, want: Access) -> bool {
        access::allows(&self.attr(0), self.acl.as_ref(), cred, want)
    }

    /// Every change has a time of its own, which counts it.
    pub(super) fn details(&self) -> Details {
        let Timestamp { secs, nanos } = self.ctime;
        let change = secs.unsigned_abs() * 1_000_000_000 + u64::from(nanos);
        Details { birth: self.birth, dos: self.dos, change }
    }

    /// Sets permission and set-id bits, and the entries of the list that stand for them. A symbolic
    /// link has no mode of its own on Linux.
    pub(super) fn set_mode(&mut self, mode: u32) {
        if matches!(self.body, Body::Symlink(_)) {
            return;
        }
        self.mode = mode;
        self.acl = self.acl.take().map(|acl| acl.with_mode(mode));
    }

    pub(super) fn attr(&self, fileid: u64) -> Attr {
        let (size, used, rdev) = match &self.body {
            Body::File(data) => (data.size(), data.used(), None),
            Body::Directory(entries) => (32 * (2 + entries.len()), 0, None),
            Body::Symlink(target) => (target.len() as u64, 0, None),
            Body::Special(_, rdev) => (0, 0, Some(*rdev)),
        };
        Attr {
            kind: self.body.kind(),
            mode: self.mode,
            has_acl: self.acl.is_some(),
            nlink: self.nlink,
            uid: self.uid,
            gid: self.gid,
            size,
            used,
            rdev: rdev.unwrap_or_default(),
            fileid,
            atime: self.atime,
            mtime: self.mtime,
            ctime: self.ctime,
        }
    }
}
