//! The change of a POSIX object that a security descriptor asks for.
//!
//! A list of Windows grants the sum of the entries that match a user, and a list of POSIX what the
//! first matching class has. So owner, group and named users get what everyone gets beside their
//! own. A list grants more finely than POSIX: refused are the entries whose meaning would be lost
//! in what POSIX can say (denials, the right to append alone, the right of others to change the
//! list), not those without effect here (the rights to delete follow from the directory above,
//! the server may do everything, and there are no extended attributes).

use super::descriptor::{Ace, AceFlags, AceKind, Dacl, Descriptor};
use super::identity::{Identities, Principal};
use super::mask::BASE;
use super::sid::Sid;
use super::view::{Current, DEFAULT, view};
use crate::wire::AccessMask;
use alloc::collections::BTreeMap;
use alloc::vec::Vec;
use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl};

/// POSIX has no way to say this: STATUS_ACCESS_DENIED.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("mode and access control list can't express the security descriptor")]
pub struct NotExpressible;

/// Changes of a POSIX object; nothing where all is as it was.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SetPosix {
    /// The new owner.
    pub uid: Option<u32>,
    /// The new group.
    pub gid: Option<u32>,
    /// The new mode, the low 12 bits.
    pub mode: Option<u32>,
    /// The new access list. It brings its permission bits; where it says no more than those, the
    /// object has no list afterwards.
    pub acl: Option<Acl>,
    /// The default list of a directory.
    pub default: SetDefault,
}

/// The change of a default list.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum SetDefault {
    /// Leave it.
    #[default]
    Keep,
    /// Remove it.
    Remove,
    /// Set this one.
    To(Acl),
}

/// Rights that may be in any entry: POSIX grants or ignores them independently of the list.
const ANYWAY: AccessMask = BASE
    .union(AccessMask::READ_EA)
    .union(AccessMask::WRITE_EA)
    .union(AccessMask::DELETE)
    .union(AccessMask::DELETE_CHILD);
/// Rights of the owner alone. "Full control" contains the right to give the file away.
const OWNERS: AccessMask =
    AccessMask::WRITE_DAC.union(AccessMask::WRITE_OWNER).union(AccessMask::WRITE_ATTRIBUTES);
/// Writing, which POSIX has undivided.
const WRITES: AccessMask = AccessMask::WRITE_DATA.union(AccessMask::APPEND_DATA);

/// The changes that make `current` what `wanted` says. Parts that `wanted` doesn't have stay.
///
/// # Errors
/// [`NotExpressible`].
pub fn posix_from(
    wanted: &Descriptor,
    current: &Current<'_>,
    identities: &(impl Identities + ?Sized),
) -> Result<SetPosix, NotExpressible> {
    let principal = |sid: &Sid| identities.principal(sid).ok_or(NotExpressible);
    let (mut uid, mut gid) = (current.attr.uid, current.attr.gid);
    if let Some(sid) = &wanted.owner {
        let Principal::User(owner) = principal(sid)? else { return Err(NotExpressible) };
        uid = owner;
    }
    if let Some(sid) = &wanted.group {
        let Principal::Group(group) = principal(sid)? else { return Err(NotExpressible) };
        gid = group;
    }
    let mut set = SetPosix {
        uid: (uid != current.attr.uid).then_some(uid),
        gid: (gid != current.attr.gid).then_some(gid),
        ..SetPosix::default()
    };
    let entries = match &wanted.dacl {
        Dacl::Absent => return Ok(set),
        Dacl::Null => return Err(NotExpressible),
        Dacl::List(entries) => entries,
    };
    if let Some(mode) = entries.iter().find_map(nfs_mode) {
        set.mode = (mode != current.attr.mode & 0o7777).then_some(mode);
        return Ok(set);
    }
    let lists = Lists::sorted(entries, current.is_directory())?;
    let shown = match view(current, identities).dacl {
        Dacl::List(shown) => Lists::sorted(&shown, current.is_directory())?,
        Dacl::Absent | Dacl::Null => return Err(NotExpressible),
    };
    let same_owners = set.uid.is_none() && set.gid.is_none();
    if lists.access != shown.access || !same_owners {
        let who = |sid: &Sid| access_who(sid, uid, gid, identities);
        set_access(&mut set, list(&lists.access, who)?, current);
    }
    if lists.default != shown.default {
        set.default = if lists.default.is_empty() {
            SetDefault::Remove
        } else {
            SetDefault::To(list(&lists.default, |sid| default_who(sid, identities))?)
        };
    }
    Ok(set)
}

/// The mode in an entry for S-1-5-88-3-mode, by which NFS clients of Windows set a mode. The other
/// entries of such a list are for clients without this entry.
fn nfs_mode(entry: &Ace) -> Option<u32> {
    match (entry.sid.authority(), entry.sid.sub_authorities()) {
        (5, [88, 3, mode]) => Some(mode & 0o7777),
        _ => None,
    }
}

/// Sets the access list, as a mode where there are no lists before and after.
fn set_access(set: &mut SetPosix, acl: Acl, current: &Current<'_>) {
    let same =
        current.acl.map_or_else(|| acl == Acl::from_mode(current.attr.mode), |now| acl == *now);
    if same {
        return;
    }
    if acl.is_mode() && current.acl.is_none() {
        set.mode = Some(current.attr.mode & 0o7000 | acl.mode_bits());
    } else {
        set.acl = Some(acl);
    }
}

/// The entries that decide about the object, and those that new objects in it inherit. In an order
/// of their own, as denials have been refused.
struct Lists {
    access: Vec<(Sid, AccessMask)>,
    default: Vec<(Sid, AccessMask)>,
}

impl Lists {
    fn sorted(entries: &[Ace], directory: bool) -> Result<Self, NotExpressible> {
        let mut lists = Self { access: Vec::new(), default: Vec::new() };
        for entry in entries {
            let inherited = entry.flags.intersection(DEFAULT.union(AceFlags::NO_PROPAGATE));
            let both = AceFlags::OBJECT_INHERIT.union(AceFlags::CONTAINER_INHERIT);
            if entry.kind == AceKind::Deny && !entry.mask.is_empty() {
                return Err(NotExpressible);
            }
            // The server may do everything without an entry.
            if entry.sid == Sid::SYSTEM || entry.kind == AceKind::Deny {
                continue;
            }
            let one = (entry.sid, entry.mask.specific());
            if !inherited.contains(AceFlags::INHERIT_ONLY) {
                lists.access.push(one);
            }
            if directory && inherited.intersects(both) {
                let whole = inherited.difference(AceFlags::INHERIT_ONLY) == both;
                if !whole {
                    return Err(NotExpressible);
                }
                lists.default.push(one);
            }
        }
        lists.access.sort_unstable();
        lists.default.sort_unstable();
        Ok(lists)
    }
}

/// The class of POSIX for an entry that decides about an object of this owner and group; nothing
/// for one that is for nobody.
fn access_who(
    sid: &Sid,
    uid: u32,
    gid: u32,
    identities: &(impl Identities + ?Sized),
) -> Result<Option<Who>, NotExpressible> {
    Ok(Some(match *sid {
        Sid::CREATOR_OWNER | Sid::CREATOR_GROUP => return Ok(None),
        Sid::OWNER_RIGHTS => Who::Owner,
        Sid::EVERYONE | Sid::AUTHENTICATED_USERS => Who::Others,
        _ => match identities.principal(sid).ok_or(NotExpressible)? {
            Principal::User(user) if user == uid => Who::Owner,
            Principal::Group(group) if group == gid => Who::OwningGroup,
            Principal::User(user) => Who::User(user),
            Principal::Group(group) => Who::Group(group),
        },
    }))
}

/// The class of POSIX for an entry that is inherited.
fn default_who(
    sid: &Sid,
    identities: &(impl Identities + ?Sized),
) -> Result<Option<Who>, NotExpressible> {
    Ok(Some(match *sid {
        Sid::CREATOR_OWNER => Who::Owner,
        Sid::CREATOR_GROUP => Who::OwningGroup,
        Sid::EVERYONE | Sid::AUTHENTICATED_USERS => Who::Others,
        _ => match identities.principal(sid).ok_or(NotExpressible)? {
            Principal::User(user) => Who::User(user),
            Principal::Group(group) => Who::Group(group),
        },
    }))
}

/// The list of POSIX for these entries.
fn list(
    entries: &[(Sid, AccessMask)],
    who: impl Fn(&Sid) -> Result<Option<Who>, NotExpressible>,
) -> Result<Acl, NotExpressible> {
    let none = Access::empty();
    let mut classes: BTreeMap<Who, Access> =
        [Who::Owner, Who::OwningGroup, Who::Others].map(|who| (who, none)).into();
    for (sid, mask) in entries {
        if let Some(who) = who(sid)? {
            *classes.entry(who).or_insert(none) |= rights(*mask, who)?;
        }
    }
    let everyone = classes.get(&Who::Others).copied().unwrap_or(none);
    let named = classes.len() > 3;
    let mut most = none;
    for (who, rights) in &mut classes {
        *rights |= everyone;
        if !matches!(who, Who::Owner | Who::Others) {
            most |= *rights;
        }
    }
    if named {
        classes.insert(Who::Mask, most);
    }
    let entries = classes.into_iter().map(|(who, rights)| Entry { who, rights });
    Acl::new(entries.collect()).map_err(|_| NotExpressible)
}

/// The rights of POSIX that a mask is, for this class.
fn rights(mask: AccessMask, who: Who) -> Result<Access, NotExpressible> {
    let mut rights = Access::empty();
    let mut said = ANYWAY;
    if who == Who::Owner {
        said |= OWNERS;
    }
    if mask.contains(AccessMask::READ_DATA) {
        rights |= Access::READ;
        said |= AccessMask::FILE_GENERIC_READ;
    }
    if mask.contains(WRITES) {
        rights |= Access::WRITE;
        said |= AccessMask::FILE_GENERIC_WRITE;
    }
    if mask.contains(AccessMask::EXECUTE) {
        rights |= Access::EXECUTE;
        said |= AccessMask::FILE_GENERIC_EXECUTE;
    }
    if said.contains(mask) { Ok(rights) } else { Err(NotExpressible) }
}
