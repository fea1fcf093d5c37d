//! The groups of a user as this machine's user database (NSS) knows them. Rustix makes system calls
//! alone, and std asks the database nothing. Here because `unsafe` is kept to this crate. Not here:
//! for how long a result is valid, and on which thread it is looked up.

use rustix::io::Errno;
use std::io::{Error, Result};
use std::mem::MaybeUninit;
use std::ptr;

/// Bytes of a user's entry in the database, at first and at most.
const ENTRY_BYTES: usize = 1024;
const ENTRY_BYTES_MAX: usize = 1 << 20;
/// Groups of a user, at first, and at most: the kernel's `NGROUPS_MAX`.
const GROUPS: usize = 64;
const GROUPS_MAX: usize = 65_536;

/// The ids of all groups of the user `uid`, the primary one included; none if the database has no
/// such user. May ask a directory service over the network, so it blocks for as long as that likes.
///
/// # Errors
/// If the database can't be read, or the user is in more groups than the kernel allows.
pub fn groups_of_user(uid: u32) -> Result<Vec<u32>> {
    look_up(uid, ENTRY_BYTES, GROUPS)
}

/// Looks the user up with room for an entry of `entry_bytes` and so many `groups` at first.
fn look_up(uid: u32, entry_bytes: usize, groups: usize) -> Result<Vec<u32>> {
    let mut buffer = vec![0; entry_bytes];
    loop {
        let (mut entry, mut found) = (MaybeUninit::uninit(), ptr::null_mut());
        // SAFETY: the function writes an entry to `entry`, its texts within `buffer`, whose true
        // length is given, and to `found` null or the address of `entry`. All of them live until it
        // returns, and nobody else has a reference to them.
        let status = unsafe {
            let (entry, buffer_len) = (entry.as_mut_ptr(), buffer.len());
            libc::getpwuid_r(uid, entry, buffer.as_mut_ptr(), buffer_len, &raw mut found)
        };
        if status == Errno::RANGE.raw_os_error() && buffer.len() < ENTRY_BYTES_MAX {
            buffer = vec![0; 2 * buffer.len()];
        } else if status != 0 {
            return Err(Error::from_raw_os_error(status));
        } else if found.is_null() {
            return Ok(Vec::new());
        } else {
            // SAFETY: the function succeeded and found the user, so it filled the entry.
            let entry: libc::passwd = unsafe { entry.assume_init() };
            return groups_of_entry(&entry, groups);
        }
    }
}

/// The groups of the user whose entry this is, as `getpwuid_r` filled it: the buffer of its texts
/// lives.
fn groups_of_entry(entry: &libc::passwd, room: usize) -> Result<Vec<u32>> {
    let mut groups = vec![0; room];
    loop {
        let mut count = i32::try_from(groups.len()).unwrap_or(i32::MAX);
        // SAFETY: `pw_name` is a text with NUL in the buffer of `entry`, which outlives this call,
        // and `groups` has room for `count` ids, which the function writes at most.
        let done = unsafe {
            libc::getgrouplist(entry.pw_name, entry.pw_gid, groups.as_mut_ptr(), &raw mut count)
        };
        let count = usize::try_from(count).unwrap_or(0);
        if done >= 0 {
            groups.truncate(count);
            return Ok(groups);
        }
        if groups.len() >= GROUPS_MAX {
            return Err(Error::other("the user is in more than 65,536 groups"));
        }
        // The function says how many there are.
        groups = vec![0; count.max(2 * groups.len()).min(GROUPS_MAX)];
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn users_have_their_groups_and_strangers_none() {
        let root = groups_of_user(0).unwrap();
        assert!(root.contains(&0), "{root:?}");
        assert_eq!(groups_of_user(3_999_999_999).unwrap(), [0; 0]);
    }

    #[test]
    fn entries_and_lists_that_do_not_fit_at_first_are_read_whole() {
        assert_eq!(look_up(0, 1, 0).unwrap(), groups_of_user(0).unwrap());
    }
}
