//! The protocols of a volume, and its share: how SMB clients see it, and which users may connect to
//! it from where.

use super::{Access, Volume};
use crate::identity::User;
use crate::network::IpNetwork;
use std::net::IpAddr;

/// The protocols by which clients reach a volume, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    nfs: bool,
    smb: bool,
}

impl Protocols {
    /// NFS alone, which is what a new volume has.
    pub const NFS: Self = Self { nfs: true, smb: false };

    /// These protocols, unless it is none.
    #[must_use]
    pub const fn new(nfs: bool, smb: bool) -> Option<Self> {
        if nfs || smb { Some(Self { nfs, smb }) } else { None }
    }

    /// Whether NFS clients reach the volume.
    #[must_use]
    pub const fn nfs(self) -> bool {
        self.nfs
    }

    /// Whether SMB clients reach the volume.
    #[must_use]
    pub const fn smb(self) -> bool {
        self.smb
    }
}

impl Default for Protocols {
    fn default() -> Self {
        Self::NFS
    }
}

/// The settings of a volume's share. They are kept while the volume has no SMB.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShareSettings {
    /// Whether every request must be encrypted.
    pub encrypt: bool,
    /// Whether lists of shares omit it.
    pub hidden: bool,
    /// Access-based enumeration: whether lists of files omit those that the user may not read.
    pub abe: bool,
    /// The rules for users that may connect, in the order in which they are evaluated.
    pub rules: Vec<ShareRule>,
}

/// The rights of users from one network to a share. Modes and ACLs of files apply beside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ShareRule {
    /// The client addresses; `None` for all.
    pub network: Option<IpNetwork>,
    /// The users.
    pub principal: Principal,
    /// Their access.
    pub access: ShareAccess,
}

/// The users that a share rule is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Principal {
    /// Every user.
    Anyone,
    /// The users in the group with this RID.
    Group(u32),
    /// The user with this RID.
    User(u32),
}

/// The access by a share rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ShareAccess {
    /// Connecting is refused.
    None,
    /// Every change is refused.
    ReadOnly,
    /// Changes that modes allow are made.
    ReadWrite,
}

impl ShareSettings {
    /// Does a rule name the account with this RID?
    pub(crate) fn names_account(&self, rid: u32) -> bool {
        let named = |rule: &ShareRule| matches!(rule.principal, Principal::User(of) | Principal::Group(of) if of == rid);
        self.rules.iter().any(named)
    }
}

impl ShareRule {
    /// The first rules of a share: every user of this machine alone, as for exports.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        let open = |network| Self {
            network: Some(network),
            principal: Principal::Anyone,
            access: ShareAccess::ReadWrite,
        };
        vec![open(IpNetwork::loopback_v6()), open(IpNetwork::loopback_v4())]
    }

    /// How specific its network is, and its principal.
    fn specificity(&self) -> (Option<u8>, u8) {
        let principal = match self.principal {
            Principal::Anyone => 0,
            Principal::Group(_) => 1,
            Principal::User(_) => 2,
        };
        (self.network.map(|network| network.prefix()), principal)
    }

    fn matches(&self, peer: IpAddr, user: &User) -> bool {
        let is_theirs = match self.principal {
            Principal::Anyone => true,
            Principal::Group(rid) => user.is_in(rid),
            Principal::User(rid) => user.rid == rid,
        };
        is_theirs && self.network.is_none_or(|network| network.contains(peer))
    }

    /// Sorts rules in the order in which they are evaluated.
    pub(crate) fn sort(rules: &mut [Self]) {
        rules.sort_by_key(|rule| {
            let address = rule.network.map(|network| network.addr());
            (std::cmp::Reverse(rule.specificity()), address, rule.principal)
        });
    }
}

impl Volume {
    /// The access of `user`, who has logged in from `peer`, to the volume's share; `None` if
    /// connecting is refused.
    ///
    /// Of the rules that match both, those with the most specific network decide; of these, those
    /// for the user, else those for groups of the user, else the one for everybody. Where several
    /// groups of the user have one, the most permissive applies.
    #[must_use]
    pub fn share_access(&self, peer: IpAddr, user: &User) -> Option<Access> {
        if !self.protocols.smb() {
            return None;
        }
        let matching = self.smb.rules.iter().filter(|rule| rule.matches(peer, user));
        let decides = matching.max_by_key(|rule| (rule.specificity(), rule.access))?;
        match decides.access {
            ShareAccess::None => None,
            ShareAccess::ReadOnly => Some(Access::ReadOnly),
            ShareAccess::ReadWrite => Some(Access::ReadWrite),
        }
    }
}
