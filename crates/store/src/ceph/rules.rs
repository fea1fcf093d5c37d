//! The POSIX rules of who may change names and attributes, and what a change does to the mode.
//!
//! A local file system has them in the kernel. Libcephfs decides for the identity of each call too,
//! but not in all of these, and with other errors; so the store decides first, and the library
//! again. The rules are those that the model in `weir_core::testing` has, and the tests compare.

use super::object::CephObject;
use super::volume::Volume;
use weir_core::limits::FILE_BYTES_MAX;
use weir_core::{Access, Attr, Credentials, FileKind, FsError, FsResult, SetAttr, SetTime, access};

pub(super) const SET_UID: u32 = 0o4000;
pub(super) const SET_GID: u32 = 0o2000;
const STICKY: u32 = 0o1000;
const GROUP_EXECUTE: u32 = 0o010;
const MODE_BITS: u32 = 0o7777;

/// An object and its attributes, of which something is decided.
pub(super) type Seen<'a> = (&'a CephObject, &'a Attr);

impl Volume {
    /// May `cred` do all of `want`? The access list is asked for where it matters.
    pub(super) fn allows(
        &self,
        (object, attr): Seen<'_>,
        cred: &Credentials,
        want: Access,
    ) -> FsResult<bool> {
        let acl = if access::asks_acl(attr, cred) { self.access_list(object)? } else { None };
        Ok(access::allows(attr, acl.as_ref(), cred, want))
    }

    /// May `cred` look names up in this directory?
    pub(super) fn may_search(&self, dir: Seen<'_>, cred: &Credentials) -> FsResult<()> {
        need(self.allows(dir, cred, Access::EXECUTE)?, FsError::AccessDenied)
    }

    /// May `cred` add names to this directory?
    pub(super) fn may_add(&self, dir: Seen<'_>, cred: &Credentials) -> FsResult<()> {
        let wanted = Access::WRITE | Access::EXECUTE;
        need(self.allows(dir, cred, wanted)?, FsError::AccessDenied)
    }

    /// May `cred` take the name of `victim` out of this directory? In a sticky one only the owner
    /// of either may.
    pub(super) fn may_take_out(
        &self,
        dir: Seen<'_>,
        victim: &Attr,
        cred: &Credentials,
    ) -> FsResult<()> {
        self.may_add(dir, cred)?;
        let free = dir.1.mode & STICKY == 0 || cred.is_root();
        need(free || cred.uid == dir.1.uid || cred.uid == victim.uid, FsError::NotPermitted)
    }

    /// May `cred` change data or details: the owner, or whoever may write?
    pub(super) fn may_change(&self, seen: Seen<'_>, cred: &Credentials) -> FsResult<()> {
        let may = cred.uid == seen.1.uid || self.allows(seen, cred, Access::WRITE)?;
        need(may, FsError::AccessDenied)
    }

    /// May `cred` make all of the changes `set`?
    pub(super) fn may_set(
        &self,
        (object, attr): Seen<'_>,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<()> {
        let touches = owner_may_set(attr, set, cred)?;
        if set.size.is_some() {
            self.may_change((object, attr), cred)?;
        }
        if touches { self.may_change((object, attr), cred) } else { Ok(()) }
    }
}

/// Decides what the attributes alone tell. True if the right to write is needed still.
pub(super) fn owner_may_set(attr: &Attr, set: &SetAttr, cred: &Credentials) -> FsResult<bool> {
    let owner = cred.is_root() || cred.uid == attr.uid;
    // These numbers are no ids: the kernel takes them for "leave it".
    if set.uid == Some(u32::MAX) || set.gid == Some(u32::MAX) {
        return Err(FsError::Invalid);
    }
    if set.mode.is_some() {
        need(owner, FsError::NotPermitted)?;
    }
    if let Some(uid) = set.uid {
        need(cred.is_root() || (owner && uid == attr.uid), FsError::NotPermitted)?;
    }
    if let Some(gid) = set.gid {
        let own_group = owner && (gid == attr.gid || cred.in_group(gid));
        need(cred.is_root() || own_group, FsError::NotPermitted)?;
    }
    if let Some(size) = set.size {
        match attr.kind {
            FileKind::Regular => {}
            FileKind::Directory => return Err(FsError::IsDirectory),
            _ => return Err(FsError::Invalid),
        }
        need(size <= FILE_BYTES_MAX, FsError::TooLarge)?;
    }
    match (set.atime, set.mtime) {
        (SetTime::Keep, SetTime::Keep) => Ok(false),
        // The rule of `utimensat`: a caller who may write may touch, but not choose, nor set one
        // time alone.
        (SetTime::ServerNow, SetTime::ServerNow) => Ok(!owner),
        _ => need(owner, FsError::NotPermitted).map(|()| false),
    }
}

/// The mode that a file has after its data changed: setuid is gone, and so is setgid where it means
/// running as the group.
pub(super) fn without_privileges(mode: u32) -> u32 {
    let setgid = if mode & GROUP_EXECUTE == 0 { 0 } else { SET_GID };
    mode & !(SET_UID | setgid)
}

/// The mode that a file of this mode and group has after `cred` changed its owner
/// (`setattr_should_drop_sgid` of Linux).
fn chowned(mode: u32, gid: u32, cred: &Credentials) -> u32 {
    let member = cred.is_root() || cred.in_group(gid);
    without_privileges(mode) & if member { !0 } else { !SET_GID }
}

/// The mode that `cred` gets when asking for `mode` by chmod on an object of group `gid`.
pub(super) fn chmod(mode: u32, gid: u32, cred: &Credentials) -> u32 {
    let keeps_setgid = cred.is_root() || cred.in_group(gid);
    mode & MODE_BITS & if keeps_setgid { !0 } else { !SET_GID }
}

/// The mode after all of `set`, in the order truncate, chown, chmod.
pub(super) fn mode_after(attr: &Attr, set: &SetAttr, cred: &Credentials) -> u32 {
    let mut mode = attr.mode;
    if set.size.is_some() && !cred.is_root() {
        mode = without_privileges(mode);
    }
    if (set.uid.is_some() || set.gid.is_some()) && attr.kind != FileKind::Directory {
        mode = chowned(mode, attr.gid, cred);
    }
    match set.mode {
        // A symbolic link has no mode of its own on Linux.
        Some(asked) if attr.kind != FileKind::Symlink => {
            chmod(asked, set.gid.unwrap_or(attr.gid), cred)
        }
        _ => mode,
    }
}

/// Group and mode of an object that `cred` makes in `dir`, asking for `mode`: a setgid directory
/// hands its group on, and to directories the bit as well.
pub(super) fn inherit(dir: &Attr, mode: u32, directory: bool, cred: &Credentials) -> (u32, u32) {
    let mode = mode & MODE_BITS;
    if dir.mode & SET_GID == 0 {
        return (cred.gid, mode);
    }
    let outsider = !cred.is_root() && !cred.in_group(dir.gid);
    let mode = match (directory, outsider) {
        (true, _) => mode | SET_GID,
        (false, true) if mode & GROUP_EXECUTE != 0 => mode & !SET_GID,
        (false, _) => mode,
    };
    (dir.gid, mode)
}

fn need(allowed: bool, otherwise: FsError) -> FsResult<()> {
    if allowed { Ok(()) } else { Err(otherwise) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use weir_core::store::{CreateHow, MakeKind};
    use weir_core::testing::{MemStore, block_on};
    use weir_core::{Name, Store, Timestamp};

    fn callers() -> impl Strategy<Value = Credentials> {
        prop_oneof![
            Just(Credentials::ROOT),
            Just(Credentials::new(1001, 2001)),
            Just(Credentials::new(1002, 2002).with_groups(&[2001, 2003])),
        ]
    }

    fn id() -> impl Strategy<Value = Option<u32>> {
        prop::option::of(prop_oneof![Just(0), Just(1001), Just(2001), Just(2003)])
    }

    fn time() -> impl Strategy<Value = SetTime> {
        let then = SetTime::To(Timestamp { secs: 5, nanos: 0 });
        prop_oneof![3 => Just(SetTime::Keep), 1 => Just(SetTime::ServerNow), 1 => Just(then)]
    }

    fn name(text: &str) -> Name<'_> {
        Name::new(text.as_bytes()).unwrap()
    }

    /// The decision about `set` and the mode afterwards, where there is no list.
    fn decide(attr: &Attr, set: &SetAttr, cred: &Credentials) -> FsResult<u32> {
        let touches = owner_may_set(attr, set, cred)?;
        let may_write = cred.uid == attr.uid || access::allows(attr, None, cred, Access::WRITE);
        need(may_write || !(touches || set.size.is_some()), FsError::AccessDenied)?;
        Ok(mode_after(attr, set, cred))
    }

    proptest! {
        #[test]
        fn changes_of_attributes_are_decided_as_by_the_model(
            made in 0..0o10000u32, kind in 0..3u8, owner in callers(), cred in callers(),
            mode in prop::option::of(0..0o10000u32), uid in id(), gid in id(),
            size in prop::option::of(0..9u64), times in (time(), time()),
        ) {
            let store = MemStore::new();
            let top = store.root();
            let set = SetAttr { mode: Some(made), ..SetAttr::default() };
            let object = match kind {
                0 => {
                    let how = CreateHow::Guarded(set);
                    block_on(store.create(&top, name("f"), &how, &owner)).unwrap().object
                }
                _ => {
                    let link = MakeKind::Symlink(b"t".to_vec());
                    let kind = if kind == 1 { MakeKind::Directory } else { link };
                    let made = store.make(&top, name("f"), &kind, &set, &owner);
                    block_on(made).unwrap().object
                }
            };
            let attr = block_on(store.attr(&object)).unwrap();
            // Which of two refusals comes first is nobody's business.
            let (atime, mtime) = if size.is_some() { Default::default() } else { times };
            let set = SetAttr { mode, uid, gid, size, atime, mtime };
            let model = block_on(store.set_attr(&object, &set, None, &cred));
            let model = model.map(|change| change.after.unwrap().mode);
            prop_assert_eq!(decide(&attr, &set, &cred), model, "{:?} {:?}", attr, set);
        }

        #[test]
        fn what_is_made_gets_group_and_mode_as_in_the_model(
            top in 0..0o10000u32, mode in 0..0o10000u32, directory: bool, cred in callers(),
        ) {
            let store = MemStore::new();
            let above = store.root();
            let set = SetAttr { mode: Some(top | 0o777), gid: Some(2003), ..SetAttr::default() };
            let root = Credentials::ROOT;
            let dir = store.make(&above, name("d"), &MakeKind::Directory, &set, &root);
            let dir = block_on(dir).unwrap();
            let set = SetAttr { mode: Some(mode), ..SetAttr::default() };
            let made = if directory {
                let made = store.make(&dir.object, name("n"), &MakeKind::Directory, &set, &cred);
                block_on(made).unwrap().attr
            } else {
                let how = CreateHow::Guarded(set);
                block_on(store.create(&dir.object, name("n"), &how, &cred)).unwrap().attr
            };
            prop_assert_eq!(inherit(&dir.attr, mode, directory, &cred), (made.gid, made.mode));
        }
    }

    #[test]
    fn no_id_is_an_id() {
        let store = MemStore::new();
        let attr = block_on(store.attr(&store.root())).unwrap();
        for set in [
            SetAttr { uid: Some(u32::MAX), ..SetAttr::default() },
            SetAttr { gid: Some(u32::MAX), ..SetAttr::default() },
        ] {
            assert_eq!(owner_may_set(&attr, &set, &Credentials::ROOT), Err(FsError::Invalid));
        }
    }
}
