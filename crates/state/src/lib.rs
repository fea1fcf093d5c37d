//! The state on which all protocols over a volume must agree: the byte-range locks of a file
//! ([`Tables::lock`], [`Tables::lock_open`]), its opens ([`Tables::open_file`]) and share
//! reservations ([`Tables::share`]), the waiting requests in their order, and the rules of the
//! grace period after a restart ([`Tables::begin_grace`]).
//!
//! There are two disciplines of byte ranges. Locks of owners with names follow POSIX and are
//! advisory. Locks of opens follow MS-FSA and are mandatory: reading and writing can conflict with
//! them ([`Tables::io`]). Locks of both disciplines conflict with each other, and their waiting
//! requests are in one queue.
//!
//! Each volume has a table of its own; owners, their bounds and the search for deadlocks belong to
//! books that all volumes share. All of it is plain data under the caller's mutex: every change of
//! a table is a change of the books. An operation that frees ranges returns [`Grant`]s, and the
//! caller tells the waiters; a grant that its client did not want or never heard of is taken back
//! ([`Tables::refused`]).
//!
//! A volume that moves to another server takes the locks of owners with names along, as data
//! ([`Tables::hand_over`], [`Tables::take_up`]).
//!
//! Not here: a clock (time is a [`Mono`](weir_core::Mono) handed in), a wire type, a socket, a
//! file. Owners are opaque bytes of a protocol's choice, or opens, and nothing here knows more of
//! them. A client that stays silent is the caller's to notice: a lease that ran out, a reboot that
//! was announced, all end in [`Tables::release_client`].
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod accounts;
mod amounts;
mod ask;
mod books;
mod deadlock;
mod error;
mod exact;
mod file;
mod file_locks;
mod grace;
mod interval;
mod limits;
mod listed;
mod moving;
mod open;
mod opened;
mod owner;
mod place;
mod presence;
mod queue;
mod range;
mod ranges;
mod share;
mod span;
mod table;
mod tables;

pub use amounts::Use;
pub use ask::{Ask, Grant, GrantId, Locked, OpenLocked};
pub use error::{Conflict, Counted, Holder, Limit, NotLocked, Refused, Scope};
pub use file::File;
pub use grace::{Claimants, GraceLeft};
pub use limits::{Limits, Part};
pub use moving::{MovingLock, MovingShare, MovingWait, VolumeLocks};
pub use open::{Closed, DeleteRequest, OpenFile, OpenMode, Sharing};
pub use owner::{Client, OpenId, Owner, Protocol};
pub use place::{ListedLock, LockPlace, LockSpot, ReleasedLock};
pub use presence::{Presence, Watch};
pub use range::{Io, Mode, Range};
pub use share::Share;
pub use span::Span;
pub use tables::Tables;
