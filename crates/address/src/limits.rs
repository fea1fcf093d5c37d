//! Bounds of the helper, and its behaviour when they are reached.

use std::time::Duration;

/// Addresses that are held. Beyond: a request for one more is refused.
pub const ADDRESSES_MAX: usize = 256;

/// Addresses that were ever held in the life of a helper, which its guard covers. Beyond: a request
/// for one more is refused, until the helper is started anew.
pub const GUARDED_MAX: u32 = 4096;

/// Longest time from now to the end of a lease. Beyond: the request is refused, so that a wrong
/// clock of the server cannot keep an address for ever.
pub const LEASE_MAX: Duration = Duration::from_secs(60);

/// Bytes of a frame on the link, without its length. Beyond: the link ends, and with it all
/// addresses.
pub const FRAME_BYTES_MAX: usize = 32 * 1024;

/// Clients in one request for tickles. Beyond: the request is refused; the sender divides the list.
pub const TICKLES_PER_REQUEST_MAX: usize = 1024;

/// Connections of one address that are being tickled. Beyond: the request is refused; the clients
/// notice by themselves, by their own timeouts.
pub const TICKLES_MAX: usize = 16 * 1024;

/// Bytes of a sentence in a report. Beyond: it is cut.
pub const WORDS_BYTES_MAX: usize = 1024;

/// Bytes of reports that the server has not read yet. Beyond: no more requests are read, and
/// reports that answer none are dropped.
pub(crate) const OUTBOX_BYTES_MAX: usize = 256 * 1024;

/// Longest wait for an answer of the kernel.
pub(crate) const KERNEL_WAIT_MAX: Duration = Duration::from_secs(5);

/// Moments after the addition of an address at which it is announced, in milliseconds: the first at
/// once, the later ones for those that missed it, and for switches whose port was not ready.
pub(crate) const ANNOUNCE_AFTER_MS: &[u64] = &[0, 250, 1_000, 3_000, 7_000, 15_000];

/// Moments after a request at which its tickles are sent, in milliseconds. Linux answers at most
/// one such segment in 500 ms for each connection, so that the later ones are further apart.
pub(crate) const TICKLE_AFTER_MS: &[u64] = &[0, 700, 2_100];

const _: () = assert!(TICKLES_PER_REQUEST_MAX * 19 + 64 < FRAME_BYTES_MAX);
const _: () = assert!(WORDS_BYTES_MAX + 64 < FRAME_BYTES_MAX);
const _: () = assert!(TICKLES_PER_REQUEST_MAX <= TICKLES_MAX);
