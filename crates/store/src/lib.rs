//! The local passthrough store: a volume as a directory tree on a local file system (ext4, XFS,
//! btrfs), behind [`weir_core::Store`].
//!
//! The only crate that touches the disk and the only one with `unsafe`. What is *not* here:
//! sockets, protocol types, export rules, performance contracts. Who may read, write and look up
//! was decided by the caller; what changes names or attributes is decided by the kernel, under the
//! caller's identity.
//!
//! A process that serves volumes calls [`prepare_process`] once, before it starts threads.

mod acl_format;
mod control;
mod creds;
mod error;
mod local;
mod pace;
mod pool;
mod sync;
#[expect(unsafe_code, reason = "the system calls that rustix lacks")]
mod sys;
#[cfg(feature = "testing")]
pub mod testing;
mod volume_store;
mod writeback;

pub use control::{Counted, Counting, StoreControl, Usage};
pub use creds::{reset_identity, switches_identity};
pub use local::{Durability, Inode, LocalStore, OpenError, Options, volume_format};
pub use pool::Pool;
pub use sys::{FILE_MAP_REQUEST, prepare_process};
pub use volume_store::{VolumeObject, VolumeStore};
