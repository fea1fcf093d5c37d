//! The users and groups of the catalogue, as security identifiers name them.

use crate::sync::Arc;
use weir_catalog::Snapshot;
use weir_smb::security::{Identities, Principal, Sid};

/// The accounts of one snapshot.
#[derive(Clone)]
pub(super) struct Accounts(pub(super) Arc<Snapshot>);

impl Identities for Accounts {
    fn domain(&self) -> Sid {
        Sid::domain(self.0.domain())
    }

    fn user_rid(&self, uid: u32) -> Option<u32> {
        self.0.user_by_uid(uid).map(|user| user.rid)
    }

    fn group_rid(&self, gid: u32) -> Option<u32> {
        self.0.group_by_gid(gid).map(|group| group.rid)
    }

    fn by_rid(&self, rid: u32) -> Option<Principal> {
        let user = self.0.user_by_rid(rid).map(|user| Principal::User(user.uid));
        user.or_else(|| self.0.group_by_rid(rid).map(|group| Principal::Group(group.gid)))
    }
}
