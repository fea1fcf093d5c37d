//! libcephfs and librados, loaded at run time, behind a safe interface: clients of a CephFS
//! ([`Ceph`], [`Mount`]) with calls on its inodes and files, and commands to its monitors
//! ([`CephMonitors`]), which fence the clients of others.
//!
//! Nothing of Ceph is needed to build: the declarations are our own, for the binary interface of
//! Ceph 16.2, and the versions of the libraries are checked when they are loaded. Every call
//! blocks. Not here: volumes, keys of objects, rights, usage, and any rule about them.

#[expect(unsafe_code, reason = "the types of functions that are found at run time")]
mod ffi;
#[expect(unsafe_code, reason = "the loader of the system")]
mod library;
#[expect(unsafe_code, reason = "calls of librados")]
mod monitors;
#[expect(unsafe_code, reason = "calls of libcephfs")]
mod mount;
#[expect(unsafe_code, reason = "the end of the process without exit handlers")]
mod process;
mod session;
mod sync;

pub use ffi::{STATX_ALL, Statx, Time, set};
pub use library::LibraryError;
pub use monitors::CephMonitors;
pub use mount::{Called, Entry, FileRef, InodeRef, Listing, Mount, New, Perm};
pub use process::exit;
pub use session::{Ceph, CephError, CephOptions, CephSession, Dealt, MOUNTS_MAX, MOUNTS_MIN};
