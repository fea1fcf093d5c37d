//! Security descriptors, and the changes of mode and lists that they ask for.

use crate::Server;
use weir_core::{Attr, FileKind};
use weir_smb::security::{
    Current, Descriptor, Identities, Principal, SetDefault, SetPosix, Sid, posix_from, view,
};

pub(super) fn descriptor(bytes: &[u8]) -> Option<Vec<u8>> {
    let value = Descriptor::decode(bytes).ok()?;
    let mut again = Vec::new();
    // Parts that lay upon each other can be too long apart.
    value.encode(&mut again).ok()?;
    assert_eq!(Descriptor::decode(&again), Ok(value));
    Some(again)
}

pub(super) fn set_on_directory(bytes: &[u8]) -> Option<Vec<u8>> {
    set(FileKind::Directory, bytes)
}

pub(super) fn set_on_file(bytes: &[u8]) -> Option<Vec<u8>> {
    set(FileKind::Regular, bytes)
}

/// Sets a descriptor, behind a mode, on an object of that mode. What is shown afterwards changes
/// nothing when it is set again.
fn set(kind: FileKind, bytes: &[u8]) -> Option<Vec<u8>> {
    let (mode, rest) = bytes.split_first_chunk::<2>()?;
    let mode = u32::from(u16::from_be_bytes(*mode)) & 0o7777;
    let wanted = Descriptor::decode(rest).ok()?;
    let mut attr = Attr { kind, mode, uid: 7, gid: 7, ..Server::default().root_attr() };
    let before = Current { attr: &attr, acl: None, default: None };
    let set = posix_from(&wanted, &before, &Directory).ok()?;
    attr.uid = set.uid.unwrap_or(attr.uid);
    attr.gid = set.gid.unwrap_or(attr.gid);
    attr.mode = set.mode.unwrap_or(attr.mode);
    if let Some(acl) = &set.acl {
        attr.mode = attr.mode & !0o777 | acl.mode_bits();
    }
    let acl = set.acl.filter(|acl| !acl.is_mode());
    let default = match set.default {
        SetDefault::Keep | SetDefault::Remove => None,
        SetDefault::To(acl) => Some(acl),
    };
    let after = Current { attr: &attr, acl: acl.as_ref(), default: default.as_ref() };
    let shown = view(&after, &Directory);
    assert_eq!(posix_from(&shown, &after, &Directory), Ok(SetPosix::default()));
    None
}

/// Users have the RIDs from 1000 on, groups those from 2000.
struct Directory;

impl Identities for Directory {
    fn domain(&self) -> Sid {
        Sid::domain([1, 2, 3])
    }

    fn user_rid(&self, uid: u32) -> Option<u32> {
        (uid < 1000).then(|| uid + 1000)
    }

    fn group_rid(&self, gid: u32) -> Option<u32> {
        (gid < 1000).then(|| gid + 2000)
    }

    fn by_rid(&self, rid: u32) -> Option<Principal> {
        match rid {
            1000..2000 => Some(Principal::User(rid - 1000)),
            2000..3000 => Some(Principal::Group(rid - 2000)),
            _ => None,
        }
    }
}
