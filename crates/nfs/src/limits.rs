//! Bounds on what a peer may send, with their relations checked at compile time.
//!
//! Bounds that storage shares (payload, names, handles) are in [`weir_core::limits`].

use weir_core::limits::{HANDLE_BYTES_MAX, IO_BYTES_MAX};

/// Largest credential or verifier body, in bytes (RFC 5531 §8.2, `opaque_auth`).
pub const AUTH_BYTES_MAX: usize = 400;

/// Longest machine name in an AUTH_SYS credential, in bytes (RFC 5531 appendix A).
pub const MACHINE_NAME_BYTES_MAX: usize = 255;

/// Everything in a record beside its payload, in bytes: RPC header, credential, verifier and the
/// other arguments or results.
pub const HEADER_BYTES_MAX: usize = 4096;

/// Largest RPC record, in bytes and without its record marks: one full payload and its headers.
pub const RECORD_BYTES_MAX: usize = IO_BYTES_MAX as usize + HEADER_BYTES_MAX;

/// Most fragments one record may come in. Sun's RPC library sends fragments of about 4,000 bytes,
/// so a full record takes it about 270.
pub const FRAGMENTS_MAX: u32 = 1024;

/// Longest path in a MOUNT call, in bytes (RFC 1813 §5.1.2, `MNTPATHLEN`).
pub const MOUNT_PATH_BYTES_MAX: usize = 1024;

/// Longest host or group name in a MOUNT reply, in bytes (RFC 1813 §5.1.2, `MNTNAMLEN`).
pub const MOUNT_NAME_BYTES_MAX: usize = 255;

/// Most authentication flavors a MNT reply may list.
pub const MOUNT_FLAVORS_MAX: usize = 16;

/// Most entries of one list in NFSACL (`NFS_ACL_MAX_ENTRIES`).
pub const ACL_ENTRIES_MAX: usize = 1024;

/// Longest network identifier, universal address or owner in a call to rpcbind, in bytes. The
/// protocol bounds none; the longest real one is the address of an IPv6 port, 53 bytes.
pub const RPCBIND_TEXT_BYTES_MAX: usize = 255;

/// Calls to clients that are under way (grants, notices of a restart). Beyond: a grant is passed on
/// to the next who waits, and a host is not notified, with a log line.
pub const OUTGOING_MAX: usize = 65_536;

/// Divisor for the outgoing calls to one origin: one in so many of the room that the others leave,
/// and at least [`OUTGOING_ORIGIN_MIN`]. Beyond: treated like calls beyond [`OUTGOING_MAX`]. Half,
/// since a restart tells all hosts of an origin.
pub const OUTGOING_ORIGIN_ONE_IN: usize = 2;

/// See [`OUTGOING_ORIGIN_ONE_IN`].
pub const OUTGOING_ORIGIN_MIN: usize = 256;

/// Most registrations of other programs that our own portmapper keeps. Beyond: SET is refused.
pub const RPCBIND_ENTRIES_MAX: usize = 256;

/// Longest opaque object in a lock call, in bytes: cookie, handle or owner (XNFS chapter 10,
/// `MAXNETOBJ_SZ`).
pub const NLM_OBJECT_BYTES_MAX: usize = 1024;

/// Longest name of a host in a lock call, in bytes (XNFS chapter 10, `LM_MAXSTRLEN`).
pub const NLM_NAME_BYTES_MAX: usize = 1024;

/// Hosts whose state number is remembered. Beyond it, the hosts without locks of the origin that
/// has the most are forgotten.
pub const NLM_HOSTS_MAX: usize = 1 << 15;

/// Hosts of one origin whose state number is remembered. Beyond it, its hosts without locks are
/// forgotten.
pub const NLM_HOSTS_ORIGIN_MAX: usize = 1 << 11;

/// Longest name of a host in a call to the status monitor, in bytes (XNFS chapter 11,
/// `SM_MAXSTRLEN`).
pub const NSM_NAME_BYTES_MAX: usize = 1024;

const WRITE_ARGS_BYTES: usize = 4 + HANDLE_BYTES_MAX + 8 + 4 + 4 + 4;
const CALL_HEADER_BYTES: usize = 24 + 2 * (8 + AUTH_BYTES_MAX);
const _: () = assert!(CALL_HEADER_BYTES + WRITE_ARGS_BYTES <= HEADER_BYTES_MAX);
const _: () = assert!(RECORD_BYTES_MAX < 1 << 31, "a record mark has 31 bits of length");
