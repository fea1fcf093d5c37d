//! The closed set of errors of the catalogue. Every refusal names the violated rule and the allowed
//! values; nothing here knows HTTP or exit codes.

mod ceiling;
mod cluster;
mod identity;
mod infeasible;

pub use self::ceiling::CeilingOf;
pub use self::cluster::ClusterError;
pub use self::identity::IdentityError;

use self::infeasible::infeasible;
use crate::limits::{EXPORT_RULES_MAX, NAME_CHARS_MAX};
use crate::network::IpNetwork;
use crate::overcommitment::Overcommitment;
use std::path::PathBuf;
use weir_core::units::{Bytes, Rate};
use weir_qos::contract::{Infeasible, Qos, Remedy};

/// The result of a call of the catalogue.
pub type Result<T> = std::result::Result<T, CatalogError>;

/// A kind of object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Thing {
    /// A service level.
    Level,
    /// A capacity pool.
    Pool,
    /// A volume.
    Volume,
    /// A token of the API.
    Token,
    /// The measurement of a directory.
    Calibration,
    /// A user.
    User,
    /// A group of users.
    Group,
    /// An address of a cluster.
    Address,
    /// A gateway of a cluster.
    Gateway,
}

impl Thing {
    /// The code of the refusal that there is none of a name.
    const fn no_such(self) -> &'static str {
        match self {
            Self::Level => "no_such_level",
            Self::Pool => "no_such_pool",
            Self::Volume => "no_such_volume",
            Self::Token => "no_such_token",
            Self::Calibration => "no_such_calibration",
            Self::User => "no_such_user",
            Self::Group => "no_such_group",
            Self::Address => "no_such_address",
            Self::Gateway => "no_such_gateway",
        }
    }
}

impl std::fmt::Display for Thing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Level => "level",
            Self::Pool => "pool",
            Self::Volume => "volume",
            Self::Token => "token",
            Self::Calibration => "calibration",
            Self::User => "user",
            Self::Group => "group",
            Self::Address => "address",
            Self::Gateway => "gateway",
        })
    }
}

/// Why the catalogue refused or failed.
#[derive(Debug, thiserror::Error)]
pub enum CatalogError {
    /// An invalid name.
    #[error(
        "{name:?} is not a valid name for a {thing}: use 1 to {NAME_CHARS_MAX} characters of A-Z a-z 0-9 . _ -, starting with a letter or digit"
    )]
    BadName {
        /// The kind of the thing to be named.
        thing: Thing,
        /// The name, cut to a length fit to print.
        name: String,
    },
    /// The name is taken.
    #[error("{thing} {name:?} already exists")]
    NameTaken {
        /// The kind of the thing to be named.
        thing: Thing,
        /// The name.
        name: String,
    },
    /// No object has that name.
    #[error("{thing} {name:?} does not exist")]
    NoSuch {
        /// The kind of the thing that was looked for.
        thing: Thing,
        /// The name, cut to a length fit to print.
        name: String,
    },
    /// No level has that name.
    #[error("level {name:?} does not exist: use {}, or create it with `weir level create`", known.join(", "))]
    NoSuchLevel {
        /// The name, cut to a length fit to print.
        name: String,
        /// The levels there are.
        known: Vec<String>,
    },
    /// A published level was to be changed or deleted.
    #[error(
        "level {level:?} is built in and cannot be changed: create a custom level with `weir level create`"
    )]
    LevelPublished {
        /// The level.
        level: String,
    },
    /// The rate of a level is out of bounds.
    #[error("a level cannot have {} per TiB: the range is 1 B/s to {}", Rate(*.asked), Rate(*.max).at_most())]
    LevelRate {
        /// Bytes per second asked for.
        asked: u64,
        /// Most bytes per second allowed.
        max: u64,
    },
    /// A level would be too slow for the rates assigned to the volumes of its pools.
    #[error(
        "level {level:?} is used by pool {pool:?}, whose volumes need at least {} per TiB: use that rate, or change the pool first",
        Rate(*.least).at_least()
    )]
    LevelTooSlow {
        /// The level.
        level: String,
        /// The pool that needs most.
        pool: String,
        /// Bytes per second for each TiB that it needs.
        least: u64,
    },
    /// A ceiling is out of bounds.
    #[error("{}", of.out_of_bounds(*asked, *least, *max))]
    CeilingBounds {
        /// The ceiling.
        of: CeilingOf,
        /// The value asked for.
        asked: u64,
        /// The least allowed.
        least: u64,
        /// The most allowed.
        max: u64,
    },
    /// A level with pools was to be deleted.
    #[error(
        "level {level:?} is used by {pools} pool(s): assign another level with `weir pool set` first"
    )]
    LevelInUse {
        /// The level.
        level: String,
        /// The number of pools that have it.
        pools: usize,
    },
    /// The files of a volume would have to be copied to move it.
    #[error(
        "the files of volume {volume:?} in {} are not on the same file system, or not on the same mount, as pool {pool:?} in {}; a move does not copy data: create a volume in pool {pool:?} and copy the files, or move to a pool on the same file system",
        from.display(), to.display()
    )]
    OtherFileSystem {
        /// The volume.
        volume: String,
        /// The pool it was to move to.
        pool: String,
        /// The directory of the pool it is in.
        from: PathBuf,
        /// The directory of the other pool.
        to: PathBuf,
    },
    /// The size is out of bounds.
    #[error("{} is not a valid size for a {thing}: the range is {} to {}", Bytes(*.asked), Bytes(*.min).at_least(), Bytes(*.max).at_most())]
    Size {
        /// The kind of the thing to be sized.
        thing: Thing,
        /// Bytes asked for.
        asked: u64,
        /// Least bytes allowed.
        min: u64,
        /// Most bytes allowed.
        max: u64,
    },
    /// A contract that the pool cannot carry.
    #[error("pool {pool:?}: {}", infeasible(*.rule))]
    Infeasible {
        /// The pool.
        pool: String,
        /// The rule of the model that was broken.
        #[source]
        rule: Infeasible,
    },
    /// The hardware would be committed beyond its measured capacity.
    #[error(
        "{0}; request less, reduce other commitments (`weir capacity`), repeat the calibration if the hardware has changed, or allow overcommitment (--overcommit)"
    )]
    BeyondHardware(Box<Overcommitment>),
    /// The value that can't have been measured.
    #[error("invalid calibration: {0}")]
    BadCalibration(String),
    /// The quota would be below what the volume holds.
    #[error("volume {volume:?} uses {}: its quota cannot be less", Bytes(*.used).at_least())]
    QuotaBelowUsed {
        /// The volume.
        volume: String,
        /// Bytes it holds.
        used: u64,
    },
    /// A smaller quota for a volume whose used space is unknown.
    #[error(
        "the used space of volume {volume:?} is not known, so its quota cannot be reduced: the volume is not served, or a recount is running after an unclean shutdown; see `weir volume show {volume}`"
    )]
    UsageUnknown {
        /// The volume.
        volume: String,
    },
    /// A rate for a volume whose limit follows from its quota.
    #[error(
        "pool {pool:?} is {qos}: the limit follows from the quota; omit the throughput, or change the pool to manual first"
    )]
    ThroughputInAuto {
        /// The pool.
        pool: String,
        /// The pool's model.
        qos: Qos,
    },
    /// A weight for a volume of a pool that is not shared.
    #[error(
        "pool {pool:?} is {qos}: only volumes of shared pools have a weight; omit the weight, or change the pool to shared first"
    )]
    NotShared {
        /// The pool.
        pool: String,
        /// The pool's model.
        qos: Qos,
    },
    /// A weight is out of bounds.
    #[error("a weight cannot be {asked}: the range is 1 to {max}, the default is 100")]
    Weight {
        /// The weight asked for.
        asked: u32,
        /// The most allowed.
        max: u32,
    },
    /// IOPS for a volume of a pool whose model assigns none.
    #[error(
        "pool {pool:?} is {qos}: its volumes have no IOPS setting; omit the IOPS, limit the volume with a ceiling, or change the pool to custom or provisioned-v2 first"
    )]
    IopsNotGiven {
        /// The pool.
        pool: String,
        /// The pool's model.
        qos: Qos,
    },
    /// A purchase that the pool's model does not have.
    #[error(
        "pool {pool:?} is {qos}: only flexible and custom pools purchase throughput separately from the size, and only custom pools purchase IOPS; omit the {what}, or change the model too"
    )]
    NotBought {
        /// The pool.
        pool: String,
        /// The model it is to have.
        qos: Qos,
        /// The resource that the pool was to buy.
        what: &'static str,
    },
    /// No rate for a volume of a pool that assigns rates.
    #[error("pool {pool:?} requires a throughput for each volume: set the throughput, at most {}", Rate(*.free).at_most())]
    ThroughputMissing {
        /// The pool.
        pool: String,
        /// Bytes per second that are left.
        free: u64,
    },
    /// A pool with volumes was to be deleted.
    #[error("pool {pool:?} still has {volumes} volume(s): move or delete them first")]
    PoolNotEmpty {
        /// The pool.
        pool: String,
        /// The number of its volumes.
        volumes: usize,
    },
    /// A bound on the number of things is reached.
    #[error("the maximum of {max} {thing}s is reached")]
    TooMany {
        /// The kind of the thing to be added.
        thing: Thing,
        /// The bound.
        max: usize,
    },
    /// Too many export rules.
    #[error("a volume can have at most {EXPORT_RULES_MAX} export rules")]
    TooManyRules,
    /// Two rules for one network.
    #[error(
        "volume {volume:?} already has a rule for {network}: remove it first, or replace all rules"
    )]
    RuleExists {
        /// The volume.
        volume: String,
        /// The network.
        network: IpNetwork,
    },
    /// No rule for that network.
    #[error("volume {volume:?} has no rule for {network}")]
    NoSuchRule {
        /// The volume.
        volume: String,
        /// The network.
        network: IpNetwork,
    },
    /// A change of users, groups or shares.
    #[error(transparent)]
    Identity(#[from] IdentityError),
    /// The catalogue that several gateways share.
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    /// A pool's path that can't be used.
    #[error("{} cannot be used for a pool: {reason}", path.display())]
    BadPath {
        /// The path.
        path: PathBuf,
        /// The reason, and the values that would be allowed.
        reason: String,
    },
    /// A directory in which nothing can have been measured.
    #[error("{} cannot be calibrated: {reason}", path.display())]
    BadPlace {
        /// The path.
        path: PathBuf,
        /// The reason, and the values that would be allowed.
        reason: String,
    },
    /// The directory of a pool has no mark: it is not what was made for the pool.
    #[error(
        "pool {pool:?} is not in {}: its marker file \"weir-pool\" is missing; mount the file system of the pool and restart the server",
        directory.display()
    )]
    PoolAway {
        /// The pool.
        pool: String,
        /// The thing's directory.
        directory: PathBuf,
    },
    /// The directory of a pool is marked as that of another.
    #[error(
        "{} does not belong to pool {pool:?}: its marker file \"weir-pool\" names another pool or another data directory; mount the right file system there and restart the server",
        directory.display()
    )]
    PoolForeign {
        /// The pool.
        pool: String,
        /// The thing's directory.
        directory: PathBuf,
    },
    /// Another process works in the pool.
    #[error(
        "another Weir server uses the pool in {}: stop it first, or delete the pool there; a copy of a data directory must not be served at the same time as the original, because both have the same pools",
        directory.display()
    )]
    PoolBusy {
        /// The pool's directory.
        directory: PathBuf,
    },
    /// The directory of a volume is gone.
    #[error(
        "the directory of volume {volume:?}, {}, is missing: restore it and restart the server, or delete the volume",
        directory.display()
    )]
    VolumeAway {
        /// The volume.
        volume: String,
        /// The thing's directory.
        directory: PathBuf,
    },
    /// Another server has the data directory.
    #[error(
        "another Weir server{} uses {}: stop it first, or use a different data directory",
        pid.map(|pid| format!(" (pid {pid})")).unwrap_or_default(), directory.display()
    )]
    Locked {
        /// The data directory.
        directory: PathBuf,
        /// The other server's process, where it has written it down.
        pid: Option<u32>,
    },
    /// The directory does not look like a data directory.
    #[error(
        "{} contains other files, is not a Weir data directory, and is readable by other users: use a new or empty directory, or `chmod 700` this one if it is for Weir only",
        directory.display()
    )]
    NotDataDirectory {
        /// The directory.
        directory: PathBuf,
    },
    /// A secret, or the directory that holds it, belongs to another user.
    #[error(
        "{} is owned by user {owner}, who could read and replace it, but the server runs as user {server}: `chown {server} {}`, or run the server as user {owner}",
        path.display(),
        path.display()
    )]
    ForeignOwner {
        /// The file or directory.
        path: PathBuf,
        /// The user id of its owner.
        owner: u32,
        /// The user id of the server.
        server: u32,
    },
    /// The catalogue was written by a newer version.
    #[error(
        "{} was written by a newer version of Weir (format {found}; this version supports up to {known}): use that version, or restore a copy from before the upgrade",
        path.display()
    )]
    NewerFormat {
        /// The database.
        path: PathBuf,
        /// The format found.
        found: i64,
        /// The newest format this version knows.
        known: i64,
    },
    /// The directory has no catalogue to back up or check.
    #[error("there is no catalogue in {}: is this the data directory?", directory.display())]
    NoCatalog {
        /// The directory.
        directory: PathBuf,
    },
    /// A restore would replace a catalogue.
    #[error(
        "a catalogue already exists in {}: with --replace, the backup replaces it and the old one is kept",
        directory.display()
    )]
    CatalogExists {
        /// The data directory.
        directory: PathBuf,
    },
    /// A restore was cut short.
    #[error(
        "a restore in {} was interrupted: run `weir catalog restore` again",
        directory.display()
    )]
    RestoreInterrupted {
        /// The data directory.
        directory: PathBuf,
    },
    /// The file is no backup.
    #[error("{} is not a backup of a catalogue", path.display())]
    NotBackup {
        /// The file.
        path: PathBuf,
    },
    /// The backup was written by a newer version.
    #[error(
        "{} was written by a newer version of Weir (backup version {found}; this version supports up to {known}): use that version",
        path.display()
    )]
    NewerBackup {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: i64,
        /// The newest version this one knows.
        known: i64,
    },
    /// The backup is damaged.
    #[error("the backup {} is damaged, use another: {what}", path.display())]
    DamagedBackup {
        /// The file.
        path: PathBuf,
        /// The fault.
        what: String,
    },
    /// The secret for file handles is damaged.
    #[error(
        "{} must contain 16 bytes: restore it from a copy, or remove it; the server then creates a new one, and every client must remount",
        path.display()
    )]
    BadSecret {
        /// The file.
        path: PathBuf,
    },
    /// The API's token is too short to be one.
    #[error(
        "{} must contain at least 32 characters: remove it; the server then creates a new one",
        path.display()
    )]
    BadToken {
        /// The file.
        path: PathBuf,
    },
    /// The secret that signs reports is no key.
    #[error(
        "{} must contain 32 bytes: restore it from a copy, or remove it; the server then creates a new one",
        path.display()
    )]
    BadReportKey {
        /// The file.
        path: PathBuf,
    },
    /// The file of tokens says something that this version never wrote.
    #[error(
        "{} is damaged, or from a later version of Weir: restore it from a copy, or remove it and create the tokens again",
        path.display()
    )]
    DamagedTokens {
        /// The file.
        path: PathBuf,
    },
    /// The catalogue says something that no version of Weir wrote.
    #[error("the catalogue is damaged: {0}")]
    Damaged(String),
    /// A file of the data directory or of a pool.
    #[error("{}: {source}{}", path.display(), advice(source))]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The database.
    #[error("the catalogue's database: {0}")]
    Database(#[from] rusqlite::Error),
}

/// The remedy for a cause that lies elsewhere than it shows.
fn advice(source: &std::io::Error) -> &'static str {
    match source.kind() {
        std::io::ErrorKind::ReadOnlyFilesystem => {
            "; if systemd runs the server, add this directory to ReadWritePaths= of its unit, and restart the server after the directory was created"
        }
        _ => "",
    }
}

/// The cause of an error, which decides the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is invalid by itself.
    Invalid,
    /// The request names an object that does not exist.
    NotFound,
    /// The request conflicts with the current state.
    Conflict,
    /// The request conflicts with a contract.
    Infeasible,
    /// The server or the machine failed.
    Internal,
}

/// The values with which a refused request would be granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Allowed {
    /// The field at fault: `size_bytes`, `quota_bytes`, `throughput_bytes_per_second`,
    /// `iops`, `max_throughput_bytes_per_second`, `max_iops` or `bytes_per_second_per_tib`.
    pub field: &'static str,
    /// The least allowed, if there is a least.
    pub min: Option<u64>,
    /// The most allowed, if there is a most.
    pub max: Option<u64>,
}

const LEVEL_RATE: &str = "bytes_per_second_per_tib";
const IOPS: &str = "iops";
const SIZE: &str = "size_bytes";
const QUOTA: &str = "quota_bytes";
const THROUGHPUT: &str = "throughput_bytes_per_second";

impl CatalogError {
    /// The code for programs, which never changes.
    #[must_use]
    pub const fn code(&self) -> &'static str {
        match self {
            Self::BadName { .. } => "bad_name",
            Self::NameTaken { .. } => "name_taken",
            Self::NoSuch { thing, .. } => thing.no_such(),
            Self::Identity(error) => error.code(),
            Self::Cluster(error) => error.code(),
            Self::BeyondHardware(_) => "hardware_exceeded",
            Self::BadCalibration(_) => "bad_calibration",
            Self::NoSuchLevel { .. } => Thing::Level.no_such(),
            Self::LevelPublished { .. } => "level_published",
            Self::LevelRate { .. } => "level_rate_out_of_bounds",
            Self::LevelTooSlow { .. } => "level_below_throughput",
            Self::LevelInUse { .. } => "level_in_use",
            Self::CeilingBounds { .. } => "ceiling_out_of_bounds",
            Self::OtherFileSystem { .. } => "other_file_system",
            Self::Size { .. } => "size_out_of_bounds",
            Self::Infeasible { rule, .. } => infeasible::code(rule),
            Self::QuotaBelowUsed { .. } => "quota_below_used",
            Self::UsageUnknown { .. } => "usage_unknown",
            Self::ThroughputInAuto { .. } => "throughput_in_auto_pool",
            Self::ThroughputMissing { .. } => "throughput_missing",
            Self::IopsNotGiven { .. } => "iops_not_given",
            Self::NotShared { .. } => "not_shared",
            Self::Weight { .. } => "weight_out_of_bounds",
            Self::NotBought { .. } => "not_bought",
            Self::PoolNotEmpty { .. } => "pool_not_empty",
            Self::TooMany { .. } | Self::TooManyRules => "too_many",
            Self::RuleExists { .. } => "rule_exists",
            Self::NoSuchRule { .. } => "no_such_rule",
            Self::BadPath { .. } | Self::BadPlace { .. } => "bad_path",
            Self::PoolAway { .. } => "pool_away",
            Self::PoolForeign { .. } => "pool_foreign",
            Self::PoolBusy { .. } => "pool_busy",
            Self::VolumeAway { .. } => "volume_away",
            Self::Locked { .. } => "locked",
            Self::NotDataDirectory { .. } => "not_a_data_directory",
            Self::ForeignOwner { .. } => "foreign_owner",
            Self::NewerFormat { .. } => "newer_format",
            Self::NoCatalog { .. } => "no_catalog",
            Self::CatalogExists { .. } => "catalog_exists",
            Self::RestoreInterrupted { .. } => "restore_interrupted",
            Self::NotBackup { .. } => "not_a_backup",
            Self::NewerBackup { .. } => "newer_backup",
            Self::DamagedBackup { .. } => "damaged_backup",
            Self::BadSecret { .. } => "bad_secret",
            Self::BadToken { .. } => "bad_token",
            Self::BadReportKey { .. } => "bad_report_key",
            Self::DamagedTokens { .. } => "damaged_tokens",
            Self::Damaged(_) => "damaged",
            Self::Io { .. } => "io",
            Self::Database(_) => "database",
        }
    }

    /// The cause of the error.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::BadName { .. }
            | Self::Size { .. }
            | Self::LevelRate { .. }
            | Self::CeilingBounds { .. }
            | Self::ThroughputInAuto { .. }
            | Self::ThroughputMissing { .. }
            | Self::IopsNotGiven { .. }
            | Self::NotShared { .. }
            | Self::Weight { .. }
            | Self::NotBought { .. }
            | Self::BadCalibration(_)
            | Self::BadPath { .. }
            | Self::BadPlace { .. }
            | Self::TooManyRules => Fault::Invalid,
            Self::NoSuch { .. } | Self::NoSuchLevel { .. } | Self::NoSuchRule { .. } => {
                Fault::NotFound
            }
            Self::NameTaken { .. }
            | Self::PoolNotEmpty { .. }
            | Self::LevelPublished { .. }
            | Self::LevelInUse { .. }
            | Self::OtherFileSystem { .. }
            | Self::RuleExists { .. }
            | Self::UsageUnknown { .. }
            | Self::TooMany { .. } => Fault::Conflict,
            Self::Identity(error) => error.fault(),
            Self::Cluster(error) => error.fault(),
            Self::Infeasible { .. }
            | Self::BeyondHardware(_)
            | Self::QuotaBelowUsed { .. }
            | Self::LevelTooSlow { .. } => Fault::Infeasible,
            Self::PoolAway { .. }
            | Self::PoolForeign { .. }
            | Self::PoolBusy { .. }
            | Self::VolumeAway { .. }
            | Self::Locked { .. }
            | Self::ForeignOwner { .. }
            | Self::NotDataDirectory { .. }
            | Self::NewerFormat { .. }
            | Self::NoCatalog { .. }
            | Self::CatalogExists { .. }
            | Self::RestoreInterrupted { .. }
            | Self::NotBackup { .. }
            | Self::NewerBackup { .. }
            | Self::DamagedBackup { .. }
            | Self::BadSecret { .. }
            | Self::BadToken { .. }
            | Self::BadReportKey { .. }
            | Self::DamagedTokens { .. }
            | Self::Damaged(_)
            | Self::Io { .. }
            | Self::Database(_) => Fault::Internal,
        }
    }

    /// The allowed range of values, if there is one.
    #[must_use]
    pub const fn allowed(&self) -> Option<Allowed> {
        let (field, min, max) = match self {
            Self::Size { thing: Thing::Pool, min, max, .. } => (SIZE, Some(*min), Some(*max)),
            Self::Size { min, max, .. } => (QUOTA, Some(*min), Some(*max)),
            Self::LevelRate { max, .. } => (LEVEL_RATE, Some(1), Some(*max)),
            Self::CeilingBounds { of, least, max, .. } => (of.field(), Some(*least), Some(*max)),
            Self::Weight { max, .. } => ("weight", Some(1), Some(*max as u64)),
            Self::LevelTooSlow { least, .. } => (LEVEL_RATE, Some(*least), None),
            Self::QuotaBelowUsed { used, .. } => (QUOTA, Some(*used), None),
            Self::ThroughputMissing { free, .. } => (THROUGHPUT, Some(1), Some(*free)),
            Self::Infeasible { rule, .. } => match rule {
                Infeasible::Quota { free_bytes, .. } => (QUOTA, None, Some(*free_bytes)),
                Infeasible::Throughput { free, .. } => (THROUGHPUT, Some(1), Some(free.0)),
                Infeasible::PoolSize { needed_bytes, .. } => (SIZE, Some(*needed_bytes), None),
                Infeasible::PoolThroughput { remedy: Remedy::Size(least), .. } => {
                    (SIZE, Some(*least), None)
                }
                Infeasible::PoolThroughput { remedy: Remedy::Buy(least), .. } => {
                    (THROUGHPUT, Some(least.0), None)
                }
                Infeasible::Iops { free, .. } => (IOPS, Some(1), Some(free.0)),
                Infeasible::PoolIops { needed, .. } => (IOPS, Some(needed.0), None),
                Infeasible::LevelCeiling { most, .. } => (THROUGHPUT, Some(1), Some(most.0)),
                Infeasible::BoughtRate { least, most, .. }
                | Infeasible::ProvisionedRate { least, most, .. } => {
                    (THROUGHPUT, Some(least.0), Some(most.0))
                }
                Infeasible::BoughtIops { least, most, .. }
                | Infeasible::ProvisionedIops { least, most, .. } => {
                    (IOPS, Some(least.0), Some(most.0))
                }
                Infeasible::RateWithoutIops { least, .. } => (THROUGHPUT, Some(least.0), None),
                Infeasible::ZeroIops => (IOPS, Some(1), None),
                Infeasible::QuotaWithoutRate { least_bytes, .. } => {
                    (QUOTA, Some(*least_bytes), None)
                }
                Infeasible::ZeroRate => (THROUGHPUT, Some(1), None),
            },
            _ => return None,
        };
        Some(Allowed { field, min, max })
    }
}
