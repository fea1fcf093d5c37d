//! The objects of the catalogue as immutable values: levels, pools, volumes, export rules and share
//! rules. Users and groups are in `identity`.

mod share;

pub use share::{Principal, Protocols, ShareAccess, ShareRule, ShareSettings};

use crate::cephfs::Ceph;
use crate::network::IpNetwork;
use crate::terms::Terms;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;
use weir_cluster::GroupId;
use weir_core::{Credentials, Groups, PoolId, VolumeId};
use weir_qos::contract::{self, Demand, Model};
use weir_qos::shares::Share;
use weir_qos::{Ceiling, Limits};

/// A service level: the rate for each provisioned TiB of a pool, and the most that a volume has.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Level {
    /// Unique among levels.
    pub name: String,
    /// The figures, for the arithmetic of contracts.
    pub contract: contract::Level,
    /// Whether the level is built in and cannot be changed.
    pub published: bool,
}

/// A capacity pool: a size and a contract model for a set of volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pool {
    /// Never reused after a delete.
    pub id: PoolId,
    /// Unique among pools.
    pub name: String,
    /// Service level: the rate per provisioned TiB.
    pub level: Arc<Level>,
    /// Provisioned size, bytes.
    pub size_bytes: u64,
    /// The model by which volumes get their limits, with the figures that it needs.
    pub model: Model,
    /// Absolute path of the directory that holds the pool's volumes.
    pub directory: PathBuf,
    /// The CephFS that the directory is in; none if it is on this machine.
    pub ceph: Option<Ceph>,
}

/// A volume and its contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Never reused after a delete.
    pub id: VolumeId,
    /// Unique among all volumes; the export path is `/NAME`.
    pub name: String,
    /// Its pool.
    pub pool: PoolId,
    /// Absolute path of the directory that holds `root`, `snap` and `meta`, where its pool is.
    pub directory: PathBuf,
    /// The group of its address in a cluster. One that was imported has none before it is given
    /// one.
    pub address: Option<GroupId>,
    /// Provisioned size, bytes.
    pub quota_bytes: u64,
    /// Its settings beside quota and pool.
    pub terms: Terms,
    /// The share of the budget, in a shared pool.
    pub share: Option<Share>,
    /// The limits by its contract, reduced to its ceiling.
    pub limits: Limits,
    /// The rules for clients that may mount it, most specific network first: the first match
    /// decides.
    pub exports: Vec<ExportRule>,
    /// The protocols by which clients reach it.
    pub protocols: Protocols,
    /// Its share.
    pub smb: ShareSettings,
}

impl Pool {
    /// The directory of a volume in this pool.
    pub(crate) fn place_of(&self, volume: VolumeId) -> PathBuf {
        self.directory.join("volumes").join(volume.to_string())
    }

    /// The pool for the arithmetic of contracts.
    #[must_use]
    pub const fn contract(&self) -> contract::Pool {
        contract::Pool { size_bytes: self.size_bytes, model: self.model }
    }

    /// The part of the pool's budget that `volume` has, regardless of its ceiling; in a shared
    /// pool, its guaranteed minimum.
    #[must_use]
    pub fn gives(&self, volume: &Volume) -> Limits {
        self.contract().given(volume.demand())
    }

    /// The limits that the volumes of a shared pool share.
    #[must_use]
    pub fn shared_budget(&self) -> Option<Limits> {
        match self.model {
            Model::Shared(_) => self.contract().budget(),
            _ => None,
        }
    }
}

impl Volume {
    /// The volume for the arithmetic of contracts.
    #[must_use]
    pub const fn demand(&self) -> Demand {
        self.terms.demand(self.quota_bytes)
    }

    /// Its terms when `old`, its pool, changes to `next`, or it moves there.
    pub(crate) fn carried(&self, old: &Pool, next: &Pool) -> Terms {
        self.terms.carried(self.quota_bytes, &old.contract(), &next.model)
    }

    /// The ceiling of each file, if there is one.
    #[must_use]
    pub fn limits_of_files(&self) -> Option<Ceiling> {
        Some(self.terms.file_ceiling).filter(|ceiling| *ceiling != Ceiling::default())
    }

    /// The rule for an NFS client at `addr`; no rule, no access. A volume without NFS has none.
    #[must_use]
    pub fn rule_for(&self, addr: IpAddr) -> Option<&ExportRule> {
        if !self.protocols.nfs() {
            return None;
        }
        self.exports.iter().find(|rule| rule.network.contains(addr))
    }
}

/// The rights of clients of one network to a volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRule {
    /// The clients.
    pub network: IpNetwork,
    /// Whether they may write.
    pub access: Access,
    /// The callers whose identity is replaced by the anonymous one.
    pub squash: Squash,
    /// The anonymous user.
    pub anon_uid: u32,
    /// The anonymous group.
    pub anon_gid: u32,
}

/// The customary anonymous user and group (`nobody`, 16-bit −2).
pub const ANONYMOUS_ID: u32 = 65534;

impl ExportRule {
    /// Read and write for everyone in `network`, without squashing.
    #[must_use]
    pub const fn open(network: IpNetwork) -> Self {
        Self {
            network,
            access: Access::ReadWrite,
            squash: Squash::None,
            anon_uid: ANONYMOUS_ID,
            anon_gid: ANONYMOUS_ID,
        }
    }

    /// The rules of a new volume: this machine alone, unsquashed, so that it can be mounted at
    /// once on the server, and nowhere else.
    #[must_use]
    pub fn defaults() -> Vec<Self> {
        vec![Self::open(IpNetwork::loopback_v6()), Self::open(IpNetwork::loopback_v4())]
    }

    /// The identity for a client's `cred`. Root squash replaces user 0 and every group
    /// 0, as the Linux server does.
    #[must_use]
    pub fn identity(&self, cred: &Credentials) -> Credentials {
        let user = |uid| if uid == 0 { self.anon_uid } else { uid };
        let group = |gid| if gid == 0 { self.anon_gid } else { gid };
        match self.squash {
            Squash::None => cred.clone(),
            Squash::All => Credentials::new(self.anon_uid, self.anon_gid),
            Squash::Root => {
                let groups = cred.groups();
                let groups = if groups.contains(0) {
                    let squashed: Vec<u32> = groups.as_slice().iter().copied().map(group).collect();
                    Groups::new(&squashed)
                } else {
                    groups.clone()
                };
                Credentials::new(user(cred.uid), group(cred.gid)).with(groups)
            }
        }
    }

    /// The anonymous identity of this rule, for a caller who sent none (AUTH_NONE).
    #[must_use]
    pub fn anonymous(&self) -> Credentials {
        Credentials::new(self.anon_uid, self.anon_gid)
    }
}

/// Whether clients may write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Every change is answered with a read-only error.
    ReadOnly,
    /// Changes that modes allow are made.
    ReadWrite,
}

/// The callers whose identity is replaced by the anonymous one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Squash {
    /// Nobody's.
    None,
    /// The superuser's.
    Root,
    /// Everybody's.
    All,
}

/// A word that is none of those a field knows.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{word:?} is not a valid {field}: use {known}")]
pub struct UnknownWord {
    /// The field that the word is for.
    pub field: &'static str,
    /// The word.
    pub word: String,
    /// The words it knows.
    pub known: &'static str,
}

macro_rules! words {
    ($type:ident, $field:literal, $known:literal, $($word:literal => $variant:ident),+) => {
        impl fmt::Display for $type {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(Self::$variant => $word),+ })
            }
        }

        impl FromStr for $type {
            type Err = UnknownWord;
            fn from_str(word: &str) -> std::result::Result<Self, UnknownWord> {
                match word {
                    $($word => Ok(Self::$variant),)+
                    _ => Err(UnknownWord {
                        field: $field,
                        word: word.chars().take(64).collect(),
                        known: $known,
                    }),
                }
            }
        }
    };
}

words!(Access, "access", "ro or rw", "ro" => ReadOnly, "rw" => ReadWrite);
words!(
    ShareAccess, "access", "none, ro or rw",
    "none" => None, "ro" => ReadOnly, "rw" => ReadWrite
);
words!(Squash, "squash", "none, root or all", "none" => None, "root" => Root, "all" => All);

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(network: &str, squash: Squash) -> ExportRule {
        ExportRule { squash, ..ExportRule::open(network.parse().unwrap()) }
    }

    #[test]
    fn root_squash_replaces_the_superuser_and_its_group_everywhere() {
        let squashed = rule("::/0", Squash::Root).identity(&Credentials::ROOT.with_groups(&[0, 7]));
        let expected = Credentials::new(ANONYMOUS_ID, ANONYMOUS_ID).with_groups(&[ANONYMOUS_ID, 7]);
        assert_eq!(squashed, expected);
        let user = Credentials::new(5, 6).with_groups(&[7]);
        assert_eq!(rule("::/0", Squash::Root).identity(&user), user);
    }

    #[test]
    fn all_squash_replaces_everyone_and_none_nobody() {
        let user = Credentials::new(5, 6).with_groups(&[7]);
        let rule_all = rule("::/0", Squash::All);
        assert_eq!(rule_all.identity(&user), rule_all.anonymous());
        assert_eq!(rule("::/0", Squash::None).identity(&Credentials::ROOT), Credentials::ROOT);
    }

    #[test]
    fn words_read_back_what_they_print() {
        for access in [Access::ReadOnly, Access::ReadWrite] {
            assert_eq!(access.to_string().parse(), Ok(access));
        }
        for squash in [Squash::None, Squash::Root, Squash::All] {
            assert_eq!(squash.to_string().parse(), Ok(squash));
        }
        let error = "both".parse::<Squash>().unwrap_err();
        assert_eq!(error.to_string(), "\"both\" is not a valid squash: use none, root or all");
    }
}
