//! The duplicate request cache: a call that a client retransmits is executed once (RFC 1813 §4.4).
//!
//! A client that lost its connection, or waited too long, retransmits a call, perhaps over another
//! connection. The cache belongs to the client, which is its address:
//!
//! - Non-idempotent calls (CREATE, REMOVE, RENAME …) have an entry while they are executed, and
//!   their replies are cached.
//! - The replies to all other calls are not cached. But while such a call waits at the gate, or a
//!   WRITE waits for the disk, a retransmission is dropped or gets the same reply: an old WRITE
//!   must not be executed after the client has received its reply and written newer data.
//!   Otherwise it is executed again.
//!
//! The cache is in memory. Volumes keep a record of the calls that changed names, from which the
//! next process fills the cache; a volume that moves to another server takes its replies along
//! ([`Clients::hand_over`]). The table has no clock. `limits.rs` has the bounds, and what
//! happens when each is reached.

#![forbid(unsafe_code)]

mod answered;
mod clients;
mod entry;
mod key;
mod limits;
mod sync;
mod table;

pub use answered::Answered;
pub use clients::{Clients, client_at};
pub use entry::{DrcClient, DrcEntry, Lookup};
pub use key::{CallKey, Fingerprints};
pub use limits::CACHED_REPLY_BYTES_MAX;
pub use table::Waiters;
