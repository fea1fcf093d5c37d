//! READDIR and READDIRPLUS to the end of a directory, and NFSACL.

use super::{Wire, answer, seen};
use crate::answer::{Answer, Body, Listed};
use crate::cursor::Cursor;
use crate::step::{Bytes, With, lists};
use std::collections::BTreeMap;
use weir_core::{Acl, AclKind, Attr};
use weir_nfs::acl::wire::{AclMask, GetaclArgs, ListBytes, SetaclArgs};
use weir_nfs::v3::wire::{EntryPlus3, FileHandle3, ReaddirArgs, ReaddirplusArgs, Res};

/// More pages than any directory here has.
const PAGES_MAX: usize = 10_000;

/// Room for a few short names, or for one of the longest.
const PAGE_BYTES: u32 = 400;

/// The entries of a directory so far, and where to go on.
#[derive(Default)]
struct Progress {
    names: BTreeMap<Bytes, Option<Listed>>,
    cookie: u64,
    verifier: [u8; 8],
}

impl Wire {
    pub(super) fn list(&mut self, slot: usize, with: With, bytes: u32) -> Answer {
        let (dir, mut progress) = (self.handle(slot), Progress::default());
        for _ in 0..PAGES_MAX {
            let page = match with {
                With::Names => self.names(&dir, bytes, &mut progress),
                With::Objects { dir_count } => {
                    self.objects(&dir, (dir_count, bytes), &mut progress)
                }
            };
            if let Some(end) = page {
                return end;
            }
        }
        panic!("a directory without an end");
    }

    fn names(&mut self, dir: &[u8], count: u32, progress: &mut Progress) -> Option<Answer> {
        let (cookie, cookie_verifier) = (progress.cookie, progress.verifier);
        let args = ReaddirArgs { dir: FileHandle3(dir), cookie, cookie_verifier, count };
        let record = self.call(&args);
        let page = match self.results::<ReaddirArgs<'_>>(&record) {
            Res::Ok(page) => page,
            Res::Fail(status, attr) => return Some(Answer::failed(status, vec![seen(attr)])),
        };
        self.fits(&record, count);
        for entry in page.entries.iter() {
            self.note(progress, entry.name, entry.cookie, None);
        }
        progress.verifier = page.cookie_verifier;
        let names = page.eof.then(|| std::mem::take(&mut progress.names))?;
        Some(Answer::ok(vec![seen(page.dir_attributes)], Body::Names(names)))
    }

    fn objects(
        &mut self,
        dir: &[u8],
        (dir_count, max_count): (u32, u32),
        progress: &mut Progress,
    ) -> Option<Answer> {
        let (cookie, cookie_verifier) = (progress.cookie, progress.verifier);
        let dir = FileHandle3(dir);
        let record =
            self.call(&ReaddirplusArgs { dir, cookie, cookie_verifier, dir_count, max_count });
        let page = match self.results::<ReaddirplusArgs<'_>>(&record) {
            Res::Ok(page) => page,
            Res::Fail(status, attr) => return Some(Answer::failed(status, vec![seen(attr)])),
        };
        self.fits(&record, max_count);
        for entry in page.entries.iter() {
            let listed = self.listed(&entry);
            self.note(progress, entry.name, entry.cookie, listed);
        }
        progress.verifier = page.cookie_verifier;
        let names = page.eof.then(|| std::mem::take(&mut progress.names))?;
        Some(Answer::ok(vec![seen(page.dir_attributes)], Body::Names(names)))
    }

    /// The entry's handle and attributes; a caller who may not search the directory gets neither.
    fn listed(&mut self, entry: &EntryPlus3<'_>) -> Option<Listed> {
        let (handle, attr) = (entry.handle?, entry.attributes);
        if attr.is_some_and(|attr| attr.fileid != entry.fileid) {
            self.complain(format!("two file ids: {entry:?}"));
        }
        Some((seen(attr), self.slots.find(&handle.0.to_vec())))
    }

    fn note(&mut self, progress: &mut Progress, name: &[u8], cookie: u64, listed: Option<Listed>) {
        progress.cookie = cookie;
        if progress.names.insert(Bytes(name.to_vec()), listed).is_some() {
            self.complain(format!("{} is listed twice", name.escape_ascii()));
        }
    }

    /// A result is no longer than the client asked for: what comes before it in the record are xid,
    /// type, `reply_stat`, verifier, `accept_stat` and the status, 4 bytes each, the verifier 8.
    fn fits(&mut self, record: &[u8], bytes_max: u32) {
        let bytes = record.len() - 28;
        if bytes > bytes_max as usize {
            self.complain(format!("{bytes} bytes where {bytes_max} were asked for"));
        }
    }

    /// Any answer will do, but the names must be right when the directory ends.
    pub(super) fn page(&mut self, begin: Option<usize>) {
        if let Some(slot) = begin {
            let Body::Names(names) = self.list(slot, With::Names, 4096).body else { return };
            let names = names.into_keys().map(|name| name.0);
            self.cursor = Some(Cursor::new(self.handle(slot), names));
        }
        let Some(mut cursor) = self.cursor.take() else { return };
        let (cookie, cookie_verifier) = (cursor.cookie, cursor.verifier);
        let dir = FileHandle3(&cursor.dir);
        let record = self.call(&ReaddirArgs { dir, cookie, cookie_verifier, count: PAGE_BYTES });
        // Gone, or closed to this caller.
        let Res::Ok(page) = self.results::<ReaddirArgs<'_>>(&record) else { return };
        for entry in page.entries.iter() {
            self.complaints.extend(cursor.note(entry.name, entry.cookie));
        }
        cursor.verifier = page.cookie_verifier;
        if page.eof {
            self.complaints.extend(cursor.end());
        } else {
            self.cursor = Some(cursor);
        }
    }

    pub(super) fn get_acl(&mut self, slot: usize) -> Answer {
        let object = self.handle(slot);
        let args = GetaclArgs { object: FileHandle3(&object), mask: AclMask::all() };
        let record = self.call(&args);
        answer(self.results::<GetaclArgs<'_>>(&record), |got| {
            let access = got.access.to_acl().unwrap().unwrap();
            let lists = Body::Lists(access, got.default.to_acl().unwrap());
            (vec![seen(got.attributes)], lists)
        })
    }

    pub(super) fn set_acl(
        &mut self,
        slot: usize,
        access: Option<usize>,
        default: Option<usize>,
    ) -> Answer {
        let bytes = |number: Option<usize>, kind| {
            let list = number.and_then(|number| lists()[number].clone());
            list.map(|list| encoded(&list, kind)).unwrap_or_default()
        };
        let own = bytes(access, AclKind::Access);
        let handed_on = bytes(default, AclKind::Default);
        let mut mask = AclMask::empty();
        mask.set(AclMask::ACL, access.is_some());
        mask.set(AclMask::DFACL, default.is_some());
        let object = self.handle(slot);
        let object = FileHandle3(&object);
        let (access, default) = (own.list(true), handed_on.list(true));
        let record = self.call(&SetaclArgs { object, mask, access, default });
        match self.results::<SetaclArgs<'_>>(&record) {
            Res::Ok(attr) => Answer::ok(vec![seen(attr)], Body::Nothing),
            Res::Fail(status, attr) => Answer::failed(status, vec![seen(attr)]),
        }
    }
}

/// A list for the wire; the ids that owner and owning group have there mean nothing.
fn encoded(list: &Acl, kind: AclKind) -> ListBytes {
    let attr = Attr {
        kind: weir_core::FileKind::Regular,
        mode: 0,
        has_acl: true,
        nlink: 1,
        uid: 0,
        gid: 0,
        size: 0,
        used: 0,
        rdev: weir_core::DeviceNumber::default(),
        fileid: 0,
        atime: weir_core::Timestamp::default(),
        mtime: weir_core::Timestamp::default(),
        ctime: weir_core::Timestamp::default(),
    };
    ListBytes::new(list, kind, &attr).unwrap()
}
