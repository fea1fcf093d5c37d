//! The local passthrough store: a volume as a directory tree on a local file system (ext4, XFS,
//! btrfs), behind [`weir_core::Store`].
//!
//! With the feature `ceph` also a volume on CephFS (`src/ceph`), through `weir_ceph`.
//!
//! The only crate that touches the disk, and beside `weir_ceph` the only one with `unsafe`: so two
//! calls for the server are here too, for datagrams and for the groups of users. What is *not*
//! here: protocol types, export rules, performance contracts. Who may read, write and look up was
//! decided by the caller; what changes names or attributes is decided by the kernel, under the
//! caller's identity.
//!
//! A process that serves volumes calls [`prepare_process`] once, before it starts threads.

mod acl_format;
#[cfg(feature = "ceph")]
mod ceph;
mod control;
mod creds;
#[expect(unsafe_code, reason = "the control messages of sockets, which rustix lacks")]
mod datagram;
mod descriptors;
mod details_format;
#[cfg(feature = "ceph")]
#[expect(unsafe_code, reason = "polling a future that is a part of another")]
mod either;
mod error;
mod index_memory;
mod local;
mod pace;
mod pool;
mod sync;
#[expect(unsafe_code, reason = "the system calls that rustix lacks")]
mod sys;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
#[expect(unsafe_code, reason = "the user database, which only the C library reads")]
mod user_groups;
mod volume_store;
mod writeback;

#[cfg(feature = "ceph")]
pub use ceph::{
    CephObject, CephOpenError, CephStore, Removal, claim_pool, clear_handover, holds_volumes,
    move_volume, put_handover, remove_volume, take_handover,
};
pub use control::{Counted, Counting, StoreControl, Usage};
pub use creds::{reset_identity, switches_identity};
pub use datagram::{Datagram, receive_datagram, report_destinations, send_datagram};
pub use descriptors::Descriptors;
pub use local::{Durability, Inode, LocalStore, OpenError, Options, volume_format};
pub use pool::Pool;
pub use sys::{FILE_MAP_REQUEST, prepare_process};
pub use user_groups::groups_of_user;
pub use volume_store::{VolumeObject, VolumeStore};
#[cfg(feature = "ceph")]
pub use weir_ceph::{
    Ceph, CephError, CephMonitors, CephOptions, CephSession, LibraryError, MOUNTS_MAX, exit,
};
