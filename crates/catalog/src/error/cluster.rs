//! Refusals and failures of the catalogue that several gateways share.

use super::Fault;
use crate::cephfs::Ceph;
use std::path::PathBuf;

/// Why the shared catalogue refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    /// The shared store does not answer.
    #[error(
        "the store of the cluster does not answer ({what}): changes are refused until it does; volumes are served meanwhile"
    )]
    Unreachable {
        /// The failure.
        what: String,
    },
    /// The store stopped answering in the middle of a change.
    #[error(
        "the store of the cluster stopped answering during the change, which was made or not: look at the object when the store answers again, or repeat the request with the same idempotency key"
    )]
    InDoubt,
    /// Other gateways were faster, again and again.
    #[error("other gateways change the catalogue at the same time: repeat the request")]
    Overtaken,
    /// The life of the gateway is not a member: not yet, or not any more, or etcd was away.
    #[error(
        "gateway {gateway:?} is not a member of the cluster at present: repeat the request; if that does not help, restart the gateway"
    )]
    NotMember {
        /// The gateway.
        gateway: String,
    },
    /// Another gateway makes a large change.
    #[error(
        "gateway {gateway:?} is making a large change of the catalogue: repeat the request when it is done"
    )]
    Busy {
        /// The gateway.
        gateway: String,
    },
    /// A large change was undone while it was made.
    #[error("the change was undone by another gateway before it was complete: nothing was changed")]
    Undone,
    /// Another gateway carried out the same request.
    #[error("another gateway has carried out this request: repeat it to get the response")]
    Repeated,
    /// A row that no version of Weir wrote.
    #[error(
        "{key} in the store of the cluster is damaged or foreign: {what}; correct or remove it, or restore a backup; until then changes are refused, and gateways serve what they know"
    )]
    Row {
        /// The key.
        key: String,
        /// The fault.
        what: String,
    },
    /// A row of a later version.
    #[error(
        "{key} in the store of the cluster was written by a newer version of Weir (format {found}; this version supports up to {known}): upgrade this gateway"
    )]
    Newer {
        /// The key.
        key: String,
        /// The format found.
        found: u64,
        /// The newest format this version knows.
        known: u64,
    },
    /// A change that older gateways do not understand.
    #[error(
        "{column:?} needs format {needed} of the catalogue, and the cluster has format {format}: upgrade all gateways first"
    )]
    NotYet {
        /// The setting.
        column: &'static str,
        /// The format that has it.
        needed: u32,
        /// The format of the cluster.
        format: u32,
    },
    /// A row that is too long.
    #[error("{key} would be longer than {max} bytes: use fewer rules or shorter texts")]
    TooLarge {
        /// The key.
        key: String,
        /// The bound, in bytes.
        max: usize,
    },
    /// The key of the cluster opens no secret.
    #[error(
        "{key} cannot be opened with this gateway's cluster key: use the key file of the other gateways"
    )]
    WrongKey {
        /// The secret's key in the store.
        key: String,
    },
    /// The name of a cluster or a gateway is not one.
    #[error(
        "{name:?} is not a valid name for a cluster or a gateway: use 1 to 64 characters of A-Z a-z 0-9 . _ -"
    )]
    BadName {
        /// The name, cut to a length fit to print.
        name: String,
    },
    /// The store has no catalogue of this cluster.
    #[error(
        "the store has no catalogue of cluster {cluster:?}: check the name, or create the cluster first"
    )]
    Missing {
        /// The cluster.
        cluster: String,
    },
    /// The store has a catalogue of this cluster.
    #[error("the store already has a catalogue of cluster {cluster:?}")]
    Exists {
        /// The cluster.
        cluster: String,
    },
    /// The catalogue was replaced.
    #[error("the catalogue of the cluster was replaced by an import: restart this gateway")]
    Replaced,
    /// Something of a cluster was asked of a server that is alone.
    #[error("this server is not a gateway of a cluster, so it cannot have {what}")]
    NotGateway {
        /// The CephFS that was asked for.
        what: &'static str,
    },
    /// A pool of a gateway in a directory of its own.
    #[error(
        "pool {pool:?} must be on CephFS, which all gateways reach: give the configuration file of Ceph (--ceph) and a directory in CephFS (--path)"
    )]
    LocalPool {
        /// The pool.
        pool: String,
    },
    /// A pool on CephFS in the catalogue of a server that is alone.
    #[error("pool {pool:?} is on CephFS, which only the gateways of a cluster serve")]
    PoolOnCeph {
        /// The pool.
        pool: String,
    },
    /// A pool on another CephFS than that of the gateways.
    #[error(
        "this gateway serves CephFS by {} as the user {:?}, not by {} as {:?}: its sessions are opened when it starts, as gateway.toml says",
        .ours.conf.display(), .ours.user, .asked.conf.display(), .asked.user
    )]
    OtherCeph {
        /// That of this gateway.
        ours: Ceph,
        /// That of the pool.
        asked: Ceph,
    },
    /// The name of a user of Ceph is not one.
    #[error(
        "{name:?} is not a valid user of Ceph: use 1 to 64 characters of A-Z a-z 0-9 . _ -, without the prefix \"client.\""
    )]
    BadCephUser {
        /// The name, cut to a length fit to print.
        name: String,
    },
    /// An address that cannot be used.
    #[error("{address:?} is not a valid address: {reason}")]
    BadAddress {
        /// The address, cut to a length fit to print.
        address: String,
        /// The rule.
        reason: String,
    },
    /// An address with volumes was to be removed.
    #[error("address {address} still has {volumes} volume(s): delete them first")]
    AddressInUse {
        /// The address.
        address: String,
        /// The number of its volumes.
        volumes: usize,
    },
    /// A volume was to get another address.
    #[error(
        "volume {volume:?} has an address, which it keeps: create a volume at the other address and copy the files, or move the address with all its volumes to another gateway"
    )]
    AddressKept {
        /// The volume.
        volume: String,
    },
    /// A volume in a cluster without addresses.
    #[error(
        "the cluster has no address at which clients could reach the volume: add one with `weir gateway address add`"
    )]
    NoAddress,
    /// Two gateways at one address.
    #[error("address {address} is that of gateway {gateway:?}")]
    GatewayAddressTaken {
        /// The address.
        address: String,
        /// The gateway that has it.
        gateway: String,
    },
    /// An import with pools that gateways cannot serve.
    #[error(
        "{} in directories of one machine, which gateways cannot serve: name a directory in CephFS for them; their files are copied afterwards",
        are(pools)
    )]
    LocalPools {
        /// The pools.
        pools: Vec<String>,
    },
    /// An import with volumes that no client could reach.
    #[error(
        "{volumes} volume(s) of the catalogue to import would have no address at which clients reach them: give addresses for the cluster"
    )]
    VolumesWithoutAddress {
        /// The number of the volumes.
        volumes: usize,
    },
    /// An import with volumes whose numbers the cluster has given to others.
    #[error(
        "volumes of the catalogue to import would be served with the files of others that the cluster has made with the same numbers: import into another directory of CephFS (volumes: {})",
        volumes.join(", ")
    )]
    NumbersTaken {
        /// The volumes of the import.
        volumes: Vec<String>,
    },
    /// An import with passwords that its key does not open.
    #[error(
        "the passwords of {users} user(s) cannot be opened without the smb.key of the server that they come from: give a copy of it, or import without passwords and set them again"
    )]
    PasswordsShut {
        /// The number of the users.
        users: usize,
    },
    /// The backup of a cluster, where one of a server that is alone is needed.
    #[error(
        "{} is a backup of the cluster {cluster:?}: restore it on the machine of a gateway, with the data directory that has gateway.toml", path.display()
    )]
    OfCluster {
        /// The file.
        path: PathBuf,
        /// The cluster.
        cluster: String,
    },
    /// The backup of a server that is alone, where one of a cluster is needed.
    #[error(
        "{} is a backup of a server that is alone: `weir gateway import` brings it into a cluster", path.display()
    )]
    NotOfCluster {
        /// The file.
        path: PathBuf,
    },
    /// The backup of a cluster with another key.
    #[error(
        "the secrets in {} cannot be opened with this key file: use a copy of the key file that cluster {cluster:?} had when the backup was made", path.display()
    )]
    OtherBackupKey {
        /// The file.
        path: PathBuf,
        /// The cluster that it is of.
        cluster: String,
    },
    /// An export would replace a secret.
    #[error(
        "{} exists and has another content: export to a new or empty directory", path.display()
    )]
    SecretExists {
        /// The file.
        path: PathBuf,
    },
}

/// The pools with these names as the subject of a sentence.
fn are(pools: &[String]) -> String {
    match pools {
        [pool] => format!("pool {pool} is"),
        _ => format!("pools {} are", pools.join(", ")),
    }
}

impl ClusterError {
    /// The code for programs, which never changes.
    #[must_use]
    pub(super) const fn code(&self) -> &'static str {
        match self {
            Self::Unreachable { .. } => "cluster_unreachable",
            Self::InDoubt => "cluster_in_doubt",
            Self::Overtaken => "cluster_overtaken",
            Self::NotMember { .. } => "not_a_member",
            Self::Busy { .. } => "cluster_busy",
            Self::Undone => "cluster_change_undone",
            Self::Repeated => "request_repeated",
            Self::Row { .. } => "cluster_row_damaged",
            Self::Newer { .. } => "newer_format",
            Self::NotYet { .. } => "cluster_format",
            Self::TooLarge { .. } => "cluster_row_too_large",
            Self::WrongKey { .. } => "wrong_cluster_key",
            Self::BadName { .. } => "bad_name",
            Self::Missing { .. } => "no_cluster",
            Self::Exists { .. } => "cluster_exists",
            Self::Replaced => "cluster_replaced",
            Self::NotGateway { .. } => "not_a_gateway",
            Self::LocalPool { .. } => "pool_not_on_ceph",
            Self::PoolOnCeph { .. } => "pool_on_ceph",
            Self::OtherCeph { .. } => "other_ceph",
            Self::BadCephUser { .. } => "bad_ceph_user",
            Self::BadAddress { .. } => "bad_address",
            Self::AddressInUse { .. } => "address_in_use",
            Self::AddressKept { .. } => "address_kept",
            Self::NoAddress => "no_address",
            Self::GatewayAddressTaken { .. } => "gateway_address_taken",
            Self::LocalPools { .. } => "pools_not_on_ceph",
            Self::VolumesWithoutAddress { .. } => "no_address",
            Self::NumbersTaken { .. } => "volume_numbers_taken",
            Self::PasswordsShut { .. } => "passwords_unreadable",
            Self::OfCluster { .. } => "backup_of_cluster",
            Self::NotOfCluster { .. } => "backup_of_server",
            Self::OtherBackupKey { .. } => "wrong_cluster_key",
            Self::SecretExists { .. } => "secret_exists",
        }
    }

    /// The cause of the error.
    #[must_use]
    pub(super) const fn fault(&self) -> Fault {
        match self {
            Self::BadName { .. }
            | Self::TooLarge { .. }
            | Self::LocalPool { .. }
            | Self::OtherCeph { .. }
            | Self::BadCephUser { .. }
            | Self::BadAddress { .. } => Fault::Invalid,
            Self::Overtaken
            | Self::Busy { .. }
            | Self::Undone
            | Self::Repeated
            | Self::NotYet { .. }
            | Self::Exists { .. }
            | Self::NotGateway { .. }
            | Self::PoolOnCeph { .. }
            | Self::AddressInUse { .. }
            | Self::AddressKept { .. }
            | Self::NoAddress
            | Self::GatewayAddressTaken { .. }
            | Self::LocalPools { .. }
            | Self::VolumesWithoutAddress { .. }
            | Self::NumbersTaken { .. }
            | Self::PasswordsShut { .. }
            | Self::OfCluster { .. }
            | Self::NotOfCluster { .. }
            | Self::SecretExists { .. } => Fault::Conflict,
            Self::Unreachable { .. }
            | Self::InDoubt
            | Self::NotMember { .. }
            | Self::Row { .. }
            | Self::Newer { .. }
            | Self::WrongKey { .. }
            | Self::OtherBackupKey { .. }
            | Self::Missing { .. }
            | Self::Replaced => Fault::Internal,
        }
    }
}
