//! The API of a Weir server as types, routes and a typed client, for the command line, the load
//! generator and other programs.
//!
//! This crate contains no storage, no decisions and no enforcement. Sizes are bytes and rates are
//! bytes per second, as integers; fields with names ending in `_mibps` repeat a rate in MiB/s for
//! people.
#![forbid(unsafe_code)]

mod audit;
mod capacity;
mod client;
pub mod codes;
mod error;
mod gateway;
mod level;
pub mod limits;
mod load;
#[cfg(test)]
mod openapi;
mod operation;
mod page;
mod pool;
pub mod routes;
mod server;
mod share;
mod signed;
mod sizing;
mod smb;
mod terms;
mod token;
mod top;
mod trust;
mod user;
mod volume;
mod watch;
mod words;

pub use audit::{AuditPage, AuditRecord};
pub use capacity::{
    Calibration, CalibrationCell, CalibrationLoad, Capacity, Filesystem, Machine, NewCalibration,
};
pub use client::{AuditQuery, Client, ClientError, Dry, Pages, get_over};
pub use error::{Allowed, ApiError};
pub use gateway::{
    Address, Gateway, GatewayHealth, HomeChange, MissingGateway, NewAddress, VolumeHome,
};
pub use level::{Level, LevelChange, NewLevel};
pub use load::{ClientLoad, Load, OperationRate};
pub use operation::Operation;
pub use page::{HasEtag, Page};
pub use pool::{CephFs, NewPool, Pool, PoolChange};
pub use server::{Changed, Health, LimitChange, ServerInfo, UnservedVolume, Warning};
pub use share::{ANY_NETWORK, ShareRule, Sharing, SharingChange};
pub use signed::{
    ALGORITHM, SIGNED_PREFIX, SignedReport, SignedReportError, hexadecimal, signed_text,
};
pub use sizing::{Concurrency, SizeChoice, Sizing, SizingQuery, Spread, TcpWindow};
pub use smb::{FileLock, SmbOpen, SmbSession};
pub use terms::{Terms, TermsChange};
pub use token::{MadeToken, NewToken, Token};
pub use top::{Top, TopChange, UnixMode, UnixModeError};
pub use trust::{Fingerprint, Trust, TrustError};
pub use user::{Group, Member, NewGroup, NewPassword, NewUser, User, UserChange};
pub use volume::{
    Counted, Counting, ExportRule, NewVolume, OperationCount, Volume, VolumeChange, VolumeLive,
};
pub use watch::{Active, Activity, REPORT_VERSION, Report, Split, Why, Window};
pub use words::{
    Access, AuditEvent, Cause, FileUse, GatewayState, Gateways, LoadKind, LockMode, OperationState,
    PasswordState, Policy, Protocol, Qos, Role, ShareAccess, Squash, UnknownWord, Verdict,
};

/// The OpenAPI 3.1 document of this version, as JSON.
pub const OPENAPI: &str = include_str!("../openapi.json");

/// A rate in MiB/s, for the fields that repeat a rate for people.
#[must_use]
#[expect(clippy::cast_precision_loss, reason = "exact below 2^53 bytes per second")]
pub fn mibps(bytes_per_second: u64) -> f64 {
    bytes_per_second as f64 / 1_048_576.0
}
