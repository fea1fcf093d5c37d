//! NFSACL version 3: POSIX access control lists beside NFSv3, on the same port.
//!
//! The protocol is Sun's and has no RFC. This follows what Solaris publishes
//! (`nfs_acl.x`) and what Linux speaks (`include/uapi/linux/nfsacl.h`), which are each other's
//! only peers. Version 2, which goes with NFSv2, is not spoken.

mod ops;
mod serve;
pub mod wire;

pub use serve::{handle, non_idempotent, null, refuse, serve};

/// The version of the protocol that goes with NFSv3.
pub const VERSION: u32 = 3;
