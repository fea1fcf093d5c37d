//! The vocabulary every other crate of Weir speaks: ids, names, attributes, credentials, the
//! access decision, file handles, the closed error set and the [`Store`] trait.
//!
//! Not here: I/O, clocks, threads, and any type of a wire protocol. The crate is `no_std` +
//! `alloc`, so the compiler holds that line.
#![cfg_attr(not(any(test, feature = "testing")), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod access;
pub mod acl;
pub mod attr;
pub mod buf;
pub mod call;
pub mod cred;
pub mod details;
pub mod error;
pub mod fair;
pub mod fold;
pub mod handle;
pub mod hex;
pub mod id;
pub mod limits;
pub mod name;
pub mod op;
pub mod origin;
pub mod permission;
pub mod place;
pub mod rng;
pub mod store;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
pub mod text;
pub mod time;
pub mod units;

pub use acl::{Acl, AclKind};
pub use attr::{Attr, DeviceNumber, FileKind, SetAttr, SetTime};
pub use buf::Shared;
pub use call::{CallId, Remembered};
pub use cred::{Credentials, Groups, Rights};
pub use details::{Details, DosAttributes, SetDetails};
pub use error::{FsError, FsResult};
pub use handle::{FileHandle, HandleKey, ObjectKey};
pub use id::{PoolId, SnapshotId, VolumeId};
pub use name::Name;
pub use op::OpClass;
pub use origin::Origin;
pub use permission::Access;
pub use store::Store;
pub use time::{Clock, Mono, Timestamp};
