//! The duplicate request cache, which makes a call that is sent twice act once (RFC 1813 §4.4).
//!
//! A client that lost its connection, or waited too long, sends a call again, also over another
//! connection. What is kept to recognize it belongs to the client, which is its address:
//!
//! - Calls that must not be repeated (CREATE, REMOVE, RENAME …) are known while they are carried
//!   out, and their replies are kept and given again.
//! - READ and WRITE may be repeated, so nothing of them is kept once they are answered. But while
//!   one waits for its contract, or a WRITE for the disk, the same call is not carried out beside
//!   it: an old WRITE must not be done after the client was told that it is, and wrote on.
//! - Everything else is carried out again.
//!
//! All of it is in memory. Calls that change names are on record in their volume too, and the next
//! process begins with the replies to those. The table has no clock; `limits.rs` says what happens
//! when a bound is reached.

mod claim;
mod clients;
mod key;
mod table;

pub(crate) use claim::{Caller, Came, Claim};
pub(crate) use clients::{Clients, client_at};
pub(crate) use key::{CallKey, Prints};
pub(crate) use table::Askers;
