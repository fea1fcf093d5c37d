//! The catalogue: capacity pools, volumes, export rules, users and share rules, their feasibility,
//! their persistence in SQLite with its backups, and the immutable [`Snapshot`]s that the rest of
//! the server reads without a lock.
//!
//! Not here: HTTP, sockets, and the files of the volumes. The catalogue decides and remembers; the
//! data plane is told the outcome as a snapshot.
#![forbid(unsafe_code)]

mod accounts;
mod addresses;
mod admission;
mod backup;
mod calibration;
mod calibrations;
mod catalog;
mod ceph;
mod cephfs;
mod check;
mod claims;
mod cluster;
mod credits;
mod devices;
mod directory;
mod error;
mod exports;
mod filesystem;
mod finding;
mod follower;
mod gateway;
mod gateways;
mod groups;
mod idempotency;
mod identity;
mod image;
mod levels;
pub mod limits;
mod members;
mod merge;
mod model;
mod monitored;
mod names;
mod network;
mod overcommitment;
mod owner;
mod placement;
mod places;
mod pools;
mod promises;
mod requests;
mod restore;
mod rows;
mod schema;
mod seal;
mod sealer;
mod shares;
mod sharing;
mod snapshot;
mod terms;
mod tokens;
mod transfer;
mod users;
mod volumes;

pub use backup::{BackupInfo, backup_stopped, inspect_backup};
pub use calibration::{CALIBRATION_POOL, Calibration, Load, Machine, Measured};
pub use catalog::{Asked, Catalog, Mode, Outcome};
pub use cephfs::Ceph;
pub use check::{Report, check};
pub use cluster::{
    Changes, ClusterKey, ClusterPlace, ClusterStore, Decision, Event, Followed, Guard, LifeGuard,
    Listing, OPERATIONS_MAX, Operation, Pair, StoreError, TRANSACTION_BYTES_MAX,
};
pub use directory::Lock;
pub use error::{
    Allowed, CatalogError, CeilingOf, ClusterError, Fault, IdentityError, Result, Thing,
};
pub use filesystem::Filesystem;
pub use finding::{Finding, Severity};
pub use follower::{FOLLOWED_WITHIN, Follower};
pub use gateways::NewGateway;
pub use idempotency::IdempotencyKey;
pub use identity::{Group, RID_FIRST, SealedHash, User, folded};
pub use levels::{LevelChange, NewLevel};
pub use limits::Minimums;
pub use members::{Address, Gateway, InterfaceAddress};
pub use model::{
    ANONYMOUS_ID, Access, ExportRule, Level, Pool, Principal, Protocols, ShareAccess, ShareRule,
    ShareSettings, Squash, UnknownWord, Volume,
};
pub use monitored::MonitoredHost;
pub use network::{IpNetwork, NetworkError};
pub use overcommitment::Overcommitment;
pub use pools::{NewPool, PoolChange};
pub use requests::Known;
pub use restore::{Replace, Restored, restore};
pub use sealer::{NT_HASH_BYTES, Sealer, Unsealed};
pub use shares::{NamedPrincipal, ShareClients};
pub use sharing::SharingChange;
pub use snapshot::Snapshot;
pub use terms::{Terms, TermsChange};
pub use tokens::{NotAdmitted, Role, Token, Tokens};
pub use transfer::{
    ClusterBackup, Import, back_up_cluster, check_import, cluster_exists, cluster_gateways,
    create_cluster, export_cluster, import_into_cluster, preview_import, restore_cluster,
};
pub use users::{NewUser, UserChange};
pub use volumes::{Condemned, NewVolume, VolumeChange};
pub use weir_cluster::{GatewayId, GroupId};
pub use weir_qos::admission::{Admission, Cell, Committed, Holds, Mix, Plan, Policy};
pub use weir_qos::contract::{Bought, Change, Floors, Model, Qos};
pub use weir_qos::rate::{BytesPerSecond, Iops};
pub use weir_qos::{Ceiling, Limits};
