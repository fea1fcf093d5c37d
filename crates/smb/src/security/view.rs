//! The view of a POSIX object as a security descriptor.

use super::descriptor::{Ace, AceFlags, AceKind, Dacl, Descriptor};
use super::identity::Identities;
use super::mask::{OWNER, of_rights};
use super::sid::Sid;
use crate::wire::AccessMask;
use alloc::vec::Vec;
use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl, Attr, FileKind};

/// An object as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Current<'a> {
    /// The attributes.
    pub attr: &'a Attr,
    /// The access list, if there is one.
    pub acl: Option<&'a Acl>,
    /// The default list of a directory, if there is one.
    pub default: Option<&'a Acl>,
}

impl Current<'_> {
    pub(super) fn is_directory(&self) -> bool {
        self.attr.kind == FileKind::Directory
    }
}

/// Flags of an entry of a default list.
pub(super) const DEFAULT: AceFlags =
    AceFlags::OBJECT_INHERIT.union(AceFlags::CONTAINER_INHERIT).union(AceFlags::INHERIT_ONLY);

/// Owner, group and list of an object. Each entry of its access list grants what it gives under
/// the mask, and the rights that POSIX denies nobody; the owner's also the rights that an owner
/// always has. The default list follows as entries that are only inherited, its owner and group as
/// creator owner and creator group.
#[must_use]
pub fn view(current: &Current<'_>, identities: &(impl Identities + ?Sized)) -> Descriptor {
    let attr = current.attr;
    let (owner, group) = (identities.user_sid(attr.uid), identities.group_sid(attr.gid));
    let from_mode;
    let acl = if let Some(acl) = current.acl {
        acl
    } else {
        from_mode = Acl::from_mode(attr.mode);
        &from_mode
    };
    let directory = current.is_directory();
    let mut entries = Vec::new();
    let mut list = |acl: &Acl, flags, owner, group| {
        let mask = mask_of(acl);
        for entry in acl.entries() {
            let sid = match entry.who {
                Who::Owner => owner,
                Who::User(uid) => identities.user_sid(uid),
                Who::OwningGroup => group,
                Who::Group(gid) => identities.group_sid(gid),
                Who::Others => Sid::EVERYONE,
                Who::Mask => continue,
            };
            let mask = granted(entry, mask, directory);
            entries.push(Ace { kind: AceKind::Allow, flags, mask, sid });
        }
    };
    list(acl, AceFlags::empty(), owner, group);
    if let Some(acl) = current.default.filter(|_| directory) {
        list(acl, DEFAULT, Sid::CREATOR_OWNER, Sid::CREATOR_GROUP);
    }
    Descriptor { owner: Some(owner), group: Some(group), dacl: Dacl::List(entries) }
}

/// The most that named users and groups get.
fn mask_of(acl: &Acl) -> Access {
    let mask = acl.entries().iter().find(|entry| entry.who == Who::Mask);
    mask.map_or(Access::all(), |entry| entry.rights)
}

fn granted(entry: &Entry, mask: Access, directory: bool) -> AccessMask {
    match entry.who {
        Who::Owner => of_rights(entry.rights, directory) | OWNER,
        Who::Others => of_rights(entry.rights, directory),
        _ => of_rights(entry.rights & mask, directory),
    }
}
