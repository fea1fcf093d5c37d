//! The state on which all protocols over one volume must agree: the holders of a file's bytes
//! ([`Table::lock`]), the shares of its openers ([`Table::share`]), the waiters in their order, and
//! the rules of the grace period after a restart ([`Table::begin_grace`]).
//!
//! The table is plain data under the caller's one mutex. An operation that frees ranges returns
//! [`Grant`]s, and the caller tells the waiters; a grant that its client did not want or never
//! heard of is taken back ([`Table::refused`]).
//!
//! Not here: a clock (time is a [`Mono`](weir_core::Mono) handed in), a wire type, a socket, a
//! file. Owners are opaque bytes of a protocol's choice, and nothing here knows what they mean. A
//! client that stays silent is the caller's to notice: a lease that ran out, a reboot that was
//! announced, all end in [`Table::release_client`].
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod amounts;
mod ask;
mod books;
mod deadlock;
mod error;
mod file;
mod grace;
mod interval;
mod limits;
mod locks;
mod owner;
mod queue;
mod range;
mod ranges;
mod share;
mod table;

pub use amounts::Use;
pub use ask::{Ask, Grant, GrantId, Locked};
pub use error::{Counted, Holder, Limit, Refused, Scope};
pub use file::File;
pub use limits::{Limits, Part};
pub use owner::{Client, Owner, Protocol};
pub use range::{Mode, Range};
pub use share::Share;
pub use table::Table;
