//! Listing a directory.

use super::{Called, InodeRef, Mount};
use crate::ffi::{RawDirectory, STATX_ALL, Statx};
use crate::sync::Arc;
use rustix::io::Errno;
use std::ffi::{CStr, c_char};
use std::ptr::{NonNull, null_mut};

/// An entry of a directory.
#[derive(Debug)]
pub struct Entry {
    /// The name.
    pub name: Box<[u8]>,
    /// The inode number.
    pub ino: u64,
    /// The place after the entry.
    pub cookie: u64,
    /// The object, where it was asked for.
    pub object: Option<(InodeRef, Statx)>,
}

/// A directory that is being listed, `.` and `..` with it.
#[derive(Debug)]
pub struct Listing {
    mount: Arc<Mount>,
    raw: NonNull<RawDirectory>,
}

impl Listing {
    /// Opens a directory at `cookie`, 0 for its start.
    ///
    /// # Errors
    /// `INVAL` for a number that is no cookie; the library's.
    pub fn open(mount: &Arc<Mount>, dir: &InodeRef, cookie: u64) -> Called<Self> {
        let at = i64::try_from(cookie).map_err(|_| Errno::INVAL)?;
        let (dir, mut raw) = (mount.own(dir)?, null_mut());
        // SAFETY: mount, directory and identity are valid, and `raw` is valid to write to.
        let opened = unsafe {
            (mount.functions.ceph_ll_opendir)(
                mount.raw.as_ptr(),
                dir,
                &raw mut raw,
                mount.perm(None),
            )
        };
        mount.done(opened)?;
        let listing = Self { mount: Arc::clone(mount), raw: NonNull::new(raw).ok_or(Errno::IO)? };
        if at != 0 {
            // SAFETY: mount and listing are valid.
            unsafe { (mount.functions.ceph_seekdir)(mount.raw.as_ptr(), raw, at) };
        }
        Ok(listing)
    }

    /// The next entry, with its object if that is wanted. `None` at the end.
    ///
    /// # Errors
    /// The library's.
    pub fn next(&mut self, objects: bool) -> Called<Option<Entry>> {
        // SAFETY: all of `dirent64` is integers, for which zeroes are valid.
        let mut entry: libc::dirent64 = unsafe { std::mem::zeroed() };
        let (mut found, mut raw) = (Statx::default(), null_mut());
        let want = if objects { STATX_ALL } else { 0 };
        let out = if objects { &raw mut raw } else { null_mut() };
        let mount = &self.mount;
        // SAFETY: mount and listing are valid, and the rest is valid to write to; where no object
        // is wanted, the library takes null for its place.
        let got = unsafe {
            (mount.functions.ceph_readdirplus_r)(
                mount.raw.as_ptr(),
                self.raw.as_ptr(),
                &raw mut entry,
                &raw mut found,
                want,
                0,
                out,
            )
        };
        if mount.done(got)? == 0 {
            return Ok(None);
        }
        let object = match objects {
            true => Some((mount.inode(raw)?, found)),
            false => None,
        };
        let name = entry.d_name.map(c_char::to_ne_bytes).concat();
        let name = CStr::from_bytes_until_nul(&name).map_err(|_| Errno::IO)?.to_bytes();
        let cookie = u64::try_from(entry.d_off).map_err(|_| Errno::IO)?;
        Ok(Some(Entry { name: name.into(), ino: entry.d_ino, cookie, object }))
    }
}

impl Drop for Listing {
    fn drop(&mut self) {
        // SAFETY: mount and listing are valid, and the listing is not used again.
        unsafe {
            (self.mount.functions.ceph_ll_releasedir)(self.mount.raw.as_ptr(), self.raw.as_ptr());
        }
    }
}
