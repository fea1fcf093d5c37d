//! The users and groups of POSIX as SIDs, and back.

use super::sid::Sid;

/// A user or group of POSIX.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Principal {
    /// A user.
    User(u32),
    /// A group.
    Group(u32),
}

/// The directory of users and groups: its own have numbers (RIDs) in its domain. All others have
/// the SIDs S-1-22-1-uid and S-1-22-2-gid.
pub trait Identities {
    /// The domain, S-1-5-21-a-b-c.
    fn domain(&self) -> Sid;

    /// The RID of a user of the directory.
    fn user_rid(&self, uid: u32) -> Option<u32>;

    /// The RID of a group of the directory; never that of a user.
    fn group_rid(&self, gid: u32) -> Option<u32>;

    /// The user or group of this RID.
    fn by_rid(&self, rid: u32) -> Option<Principal>;

    /// The SID that a user is shown with.
    fn user_sid(&self, uid: u32) -> Sid {
        let own = self.user_rid(uid).and_then(|rid| self.domain().member(rid));
        own.unwrap_or(Sid::unix_user(uid))
    }

    /// The SID that a group is shown with.
    fn group_sid(&self, gid: u32) -> Sid {
        let own = self.group_rid(gid).and_then(|rid| self.domain().member(rid));
        own.unwrap_or(Sid::unix_group(gid))
    }

    /// The user or group of a SID: of the directory, S-1-22-1-uid, S-1-22-2-gid, or in the
    /// form of NFS clients of Windows, S-1-5-88-1-uid and S-1-5-88-2-gid. No user or group has the
    /// number 2^32 - 1.
    fn principal(&self, sid: &Sid) -> Option<Principal> {
        let found = match (sid.authority(), sid.sub_authorities()) {
            (22, [1, uid]) | (5, [88, 1, uid]) => Principal::User(*uid),
            (22, [2, gid]) | (5, [88, 2, gid]) => Principal::Group(*gid),
            _ => self.by_rid(sid.rid_in(&self.domain())?)?,
        };
        let (Principal::User(id) | Principal::Group(id)) = found;
        (id != u32::MAX).then_some(found)
    }
}
