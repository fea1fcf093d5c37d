//! The identity of the calling thread before the file system.
//!
//! Linux keeps credentials per thread, but the C library's `setfsuid` family and `setgroups` may
//! (for `setgroups`: does) broadcast to all threads of the process; so raw system calls are used,
//! which change the calling thread alone. Only the *file system* ids change: real and effective
//! ids stay root's, so the thread can always change back. When the file system user leaves 0 the
//! kernel takes the file system capabilities (`CAP_DAC_OVERRIDE`, `CAP_DAC_READ_SEARCH`,
//! `CAP_FOWNER`, `CAP_FSETID`, `CAP_CHOWN`, `CAP_MKNOD`, …) out of the effective set, and gives
//! them back on return.
//!
//! A switch costs 2–6 µs, so a thread **keeps** the last identity it took, and everything that
//! depends on one asks first: [`as_root`] and [`as_caller`] do nothing if the thread already is
//! what is wanted. Whatever runs outside them must not depend on the identity: `pread`, `pwrite`,
//! `fstat`, `fsync` and `getdents` on open descriptors don't. A thread that called the store must
//! not open files by path for purposes of its own before [`reset_identity`]; threads that it starts
//! inherit its identity, which is why a fresh thread's identity counts as unknown.
//!
//! Without root nothing can be switched: then everything runs as the server's own user, and only
//! callers who *are* that user, or root whom it stands for, may change names or attributes.

use crate::sys;
use rustix::process::geteuid;
use rustix::thread::{CapabilitySet, capabilities};
use std::cell::RefCell;
use std::marker::PhantomData;
use std::sync::OnceLock;
use weir_core::{Credentials, FsError, FsResult};

/// Proof that the thread has root's identity, if the process has it at all.
pub(crate) struct AsRoot(PhantomData<*const ()>);

/// Proof that the thread has a caller's identity.
pub(crate) struct AsCaller(PhantomData<*const ()>);

thread_local! {
    static CURRENT: RefCell<Option<Credentials>> = const { RefCell::new(None) };
}

/// Can this process take its callers' identities? Decided once, by trying.
pub fn switches_identity() -> bool {
    static ABLE: OnceLock<bool> = OnceLock::new();
    *ABLE.get_or_init(|| geteuid().is_root() && std::thread::spawn(probe).join().unwrap_or(false))
}

/// Tries a switch on a thread of its own: it must take the capabilities away and be reversible.
fn probe() -> bool {
    const NOBODY: Credentials = Credentials::new(65_534, 65_534);
    let overrides = || {
        capabilities(None).is_ok_and(|sets| sets.effective.contains(CapabilitySet::DAC_OVERRIDE))
    };
    switch(&NOBODY).is_ok() && !overrides() && switch(&Credentials::ROOT).is_ok()
}

/// Gives the calling thread the server's own identity back, which store operations may have left
/// as their last caller's. For whoever opens files by path on a thread that polls the store.
///
/// # Errors
/// `Io` if the thread can't return to root, which the kernel never refuses.
pub fn reset_identity() -> FsResult<()> {
    as_root(|_| ())
}

/// Runs `work` with root's identity (without root: the server's own).
///
/// # Errors
/// `Io` if the thread can't return to root, which the kernel never refuses.
pub(crate) fn as_root<T>(work: impl FnOnce(&AsRoot) -> T) -> FsResult<T> {
    if switches_identity()
        && !CURRENT.with_borrow(|current| current.as_ref().is_some_and(Credentials::is_root))
    {
        switch(&Credentials::ROOT).map_err(|()| FsError::Io)?;
    }
    Ok(work(&AsRoot(PhantomData)))
}

/// Runs `work` with the identity of `cred`.
///
/// # Errors
/// `AccessDenied` if the identity can't be taken: an id that the kernel doesn't know, or a
/// stranger where the process can't switch.
pub(crate) fn as_caller<T>(cred: &Credentials, work: impl FnOnce(&AsCaller) -> T) -> FsResult<T> {
    if switches_identity() {
        let taken = |current: &Option<Credentials>| {
            current.as_ref().is_some_and(|current| serves(current, cred))
        };
        if !CURRENT.with_borrow(taken) {
            switch(cred).map_err(|()| FsError::AccessDenied)?;
        }
    } else if !cred.is_root() && cred.uid != geteuid().as_raw() {
        return Err(FsError::AccessDenied);
    }
    Ok(work(&AsCaller(PhantomData)))
}

/// Is `current` as good as `wanted`? Root's groups never decide anything.
fn serves(current: &Credentials, wanted: &Credentials) -> bool {
    current.uid == wanted.uid
        && current.gid == wanted.gid
        && (wanted.is_root() || current.groups() == wanted.groups())
}

/// Takes an identity. The parts that are known to be right already are left alone.
fn switch(wanted: &Credentials) -> Result<(), ()> {
    let current = CURRENT.replace(None);
    let current = current.as_ref();
    let keeps_groups = current.is_some_and(|c| c.groups() == wanted.groups());
    if !keeps_groups && (current.is_none() || !wanted.is_root()) {
        sys::set_thread_groups(wanted.groups().as_slice()).map_err(drop)?;
    }
    if current.is_none_or(|c| c.gid != wanted.gid) {
        sys::set_fs_gid(wanted.gid);
        // These calls report no failure (an id the kernel can't map, `u32::MAX` among them), but
        // always give the id in force, and `u32::MAX` changes nothing.
        if sys::set_fs_gid(u32::MAX) != wanted.gid {
            return Err(());
        }
    }
    if current.is_none_or(|c| c.uid != wanted.uid) {
        sys::set_fs_uid(wanted.uid);
        if sys::set_fs_uid(u32::MAX) != wanted.uid || wanted.uid == u32::MAX {
            return Err(());
        }
    }
    let groups = match current {
        Some(current) if wanted.is_root() => current.groups(),
        _ => wanted.groups(),
    };
    let taken = Credentials::new(wanted.uid, wanted.gid).with(groups.clone());
    CURRENT.set(Some(taken));
    Ok(())
}
