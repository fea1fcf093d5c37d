//! SETATTR, access control lists, and the details that SMB has.

use super::attrs;
use super::data::{resize, set_mode};
use super::error::{fs_error, of_object};
use super::object::CephObject;
use super::rules::{chmod, mode_after};
use super::volume::Volume;
use crate::details_format::{BYTES_MAX, Kept, NAME};
use rustix::io::Errno;
use weir_ceph::InodeRef;
use weir_core::attr::Change;
use weir_core::{
    Acl, AclKind, Attr, Credentials, Details, DosAttributes, FileKind, FsError, FsResult, SetAttr,
    SetDetails, Timestamp,
};

const PERMISSION_BITS: u32 = 0o777;

impl Volume {
    pub(super) fn set_attr(
        &self,
        object: &CephObject,
        set: &SetAttr,
        guard: Option<Timestamp>,
        cred: &Credentials,
    ) -> FsResult<Change> {
        let change = object.begin();
        let before = self.attr(object)?;
        if guard.is_some_and(|guard| guard != before.ctime) {
            return Err(FsError::NotSync);
        }
        self.may_set((object, &before), set, cred)?;
        let after = self.apply(object, &before, set, cred)?;
        Ok(change.end(before, after))
    }

    /// Makes the changes, which are allowed, size first: it is the likeliest to fail. Gives the
    /// attributes afterwards.
    pub(super) fn apply(
        &self,
        object: &CephObject,
        before: &Attr,
        set: &SetAttr,
        cred: &Credentials,
    ) -> FsResult<Attr> {
        if *set == SetAttr::default() {
            return self.attr(object);
        }
        // A symbolic link has no mode of its own on Linux; clients set one all the same.
        let mode = set.mode.filter(|_| object.kind != FileKind::Symlink);
        let wanted = mode_after(before, set, cred);
        if let Some(size) = set.size {
            resize(self, object, size)?;
        }
        let rest = SetAttr { size: None, mode: mode.map(|_| wanted), ..*set };
        let (values, mask) = attrs::to_set(&rest);
        if mask != 0 {
            let perm = self.mount().identity(cred).map_err(fs_error)?;
            self.counted(object, || {
                let set = self.mount().setattr(object.inode(), values, mask, Some(&perm));
                set.map_err(of_object)
            })?;
        }
        if object.kind != FileKind::Symlink {
            set_mode(self, object, wanted)?;
        }
        self.attr(object)
    }

    pub(super) fn set_acl(
        &self,
        object: &CephObject,
        kind: AclKind,
        acl: Option<&Acl>,
        cred: &Credentials,
    ) -> FsResult<Attr> {
        if object.kind == FileKind::Symlink {
            return Err(FsError::NotSupported);
        }
        let _change = object.begin();
        let before = self.attr(object)?;
        if kind == AclKind::Default && object.kind != FileKind::Directory {
            return if acl.is_some() { Err(FsError::AccessDenied) } else { Ok(before) };
        }
        if !cred.is_root() && cred.uid != before.uid {
            return Err(FsError::NotPermitted);
        }
        let perm = self.mount().identity(cred).map_err(fs_error)?;
        // An access list that says no more than the mode is not kept.
        let kept = acl.filter(|acl| kind == AclKind::Default || !acl.is_mode());
        self.counted(object, || {
            attrs::write_acl(self.mount(), object.inode(), kind, kept, &perm).map_err(of_object)
        })?;
        if let (AclKind::Access, Some(acl)) = (kind, acl) {
            let mode = before.mode & !PERMISSION_BITS | acl.mode_bits();
            set_mode(self, object, chmod(mode, before.gid, cred))?;
        }
        self.attr(object)
    }

    /// Attributes and details.
    pub(super) fn details(&self, object: &CephObject) -> FsResult<(Attr, Details)> {
        let (attr, change) = self.status(object)?;
        let details = self.details_of(object.inode(), (&attr, object.birth, change))?;
        Ok((attr, details))
    }

    /// The details of an object with these attributes, this birth and this count of changes.
    pub(super) fn details_of(
        &self,
        inode: &InodeRef,
        (attr, birth, change): (&Attr, Timestamp, u64),
    ) -> FsResult<Details> {
        let kept = self.kept(inode, attr)?;
        let birth = kept.birth.unwrap_or(birth);
        let dos = kept.dos.unwrap_or_else(|| DosAttributes::of_new(attr.kind));
        Ok(Details { birth, dos, change })
    }

    /// The details that a client has set.
    fn kept(&self, inode: &InodeRef, attr: &Attr) -> FsResult<Kept> {
        if !has_attributes(attr.kind) {
            return Ok(Kept::default());
        }
        let mut room = [0; BYTES_MAX];
        let kept = match self.mount().getxattr(inode, NAME, &mut room) {
            Ok(length) => room.get(..length).and_then(Kept::read),
            Err(Errno::RANGE) => None,
            Err(Errno::NODATA | Errno::OPNOTSUPP) => return Ok(Kept::default()),
            Err(errno) => return Err(of_object(errno)),
        };
        // They decide nothing, so a file is not to be lost for them.
        Ok(kept.unwrap_or_else(|| {
            let fileid = attr.fileid;
            tracing::warn!(fileid, attribute = ?NAME, "the DOS attributes of an object are damaged");
            Kept::default()
        }))
    }

    pub(super) fn set_details(
        &self,
        object: &CephObject,
        set: &SetDetails,
        cred: &Credentials,
    ) -> FsResult<(Attr, Details)> {
        if !has_attributes(object.kind) {
            return Err(FsError::NotSupported);
        }
        let _change = object.begin();
        let _details = object.details.lock();
        let (attr, before) = self.details(object)?;
        self.may_change((object, &attr), cred)?;
        let (birth, dos) = (set.birth.unwrap_or(before.birth), set.dos.unwrap_or(before.dos));
        if (birth, dos) == (before.birth, before.dos) {
            return Ok((attr, before));
        }
        // Only what differs from what the object has by itself is kept.
        let kept = Kept {
            birth: Some(birth).filter(|birth| *birth != object.birth),
            dos: Some(dos).filter(|dos| *dos != DosAttributes::of_new(object.kind)),
        };
        let bytes = (!kept.is_empty()).then(|| kept.write());
        let (attr, change) = self.counted(object, || {
            let set = self.mount().setxattr(object.inode(), NAME, bytes.as_deref(), None);
            set.map_err(of_object)
        })?;
        Ok((attr, Details { birth, dos, change }))
    }
}

/// Can details of an object of this kind be set?
fn has_attributes(kind: FileKind) -> bool {
    matches!(kind, FileKind::Regular | FileKind::Directory)
}
