//! Bounds that every crate agrees on, with their relations checked at compile time.

use core::time::Duration;

/// Longest name of one directory entry, in bytes (`NAME_MAX` of Linux file systems).
pub const NAME_BYTES_MAX: usize = 255;

/// Longest target of a symbolic link, in bytes (`PATH_MAX` less the terminator).
pub const SYMLINK_BYTES_MAX: usize = 4095;

/// Largest payload of one READ or WRITE, in bytes.
pub const IO_BYTES_MAX: u32 = 1 << 20;

/// Largest file handle on the wire, in bytes (NFSv3: RFC 1813 §2.3.3, `NFS3_FHSIZE`).
pub const HANDLE_BYTES_MAX: usize = 64;

/// Largest store-specific object key, in bytes: what is left of a handle after version (1), key
/// length (1), volume (4), snapshot (4), birth (4) and MAC (8).
pub const OBJECT_KEY_BYTES_MAX: usize = HANDLE_BYTES_MAX - 22;

/// Supplementary groups that are kept in the order given: as many as a credential on the wire
/// carries (RFC 5531 appendix A, AUTH_SYS: 16). More are sorted, to be searched.
pub const GROUPS_AS_GIVEN_MAX: usize = 16;

/// Most supplementary groups of a caller (`NGROUPS_MAX` of Linux).
pub const GROUPS_MAX: usize = 65_536;

/// Most entries of one access control list: what fits the 64 KiB of an extended attribute on Linux.
pub const ACL_ENTRIES_MAX: usize = 8191;

/// Largest offset a file may reach, in bytes (`loff_t`).
pub const FILE_BYTES_MAX: u64 = i64::MAX as u64;

/// Calls that change names, of one client in one volume, that are kept on record for the next
/// process. Beyond: the oldest call is forgotten, and a repetition after a restart is carried out
/// again. A client has at most 512 calls under way on each connection.
pub const CALLS_CLIENT_MAX: usize = 1024;

/// Calls that change names on record in one volume. Beyond: the oldest call is forgotten of the
/// client that has the most, of the origin (IPv4 address, or /64 of IPv6) that has the most.
pub const CALLS_VOLUME_MAX: usize = 4096;

/// Time that a call that must not be repeated is remembered, in memory and on record.
pub const CALLS_KEPT: Duration = Duration::from_secs(30 * 60);

const _: () = assert!(OBJECT_KEY_BYTES_MAX >= 40, "btrfs connectable handles are 40 bytes");
