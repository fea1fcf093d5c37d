//! The bounds of the duplicate request cache. Each says what happens when it is reached.

use std::time::Duration;

/// Connections of one client that get the reply to the same call while it is in progress: a client
/// that lost some. Beyond: the call is executed for each of them by itself.
pub(crate) const WAITERS_MAX: usize = 8;
/// Cached replies of one client, sent again if it retransmits the call. Beyond: the oldest is
/// evicted, and a retransmission of that call is executed again.
pub(crate) const CACHED_REPLIES_CLIENT_MAX: usize = 1024;
/// Cached replies of all clients. Beyond: the oldest reply is evicted of the client that has the
/// most, of the origin (IPv4 address, or /64 of IPv6) that has the most. So an origin that has
/// `k` of them loses one only while at least `CACHED_REPLIES_MAX / k` origins have some.
pub(crate) const CACHED_REPLIES_MAX: usize = 262_144;
/// The longest reply that is cached, in bytes; no reply to a non-idempotent call is longer.
pub const CACHED_REPLY_BYTES_MAX: usize = 512;
/// Time for which a reply is cached, whether its client is connected or not.
pub(crate) const CACHED_REPLIES_KEPT: Duration = weir_core::limits::CALLS_KEPT;
