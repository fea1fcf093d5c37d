//! The addresses of a gateway's machine, and the helper process that owns them.
//!
//! A gateway serves its volumes at addresses that move between machines. The helper ([`run()`])
//! adds and removes them, tells the network where they are now, and makes clients of an earlier
//! machine reconnect. It needs `CAP_NET_ADMIN` and `CAP_NET_RAW` and nothing else ([`confine()`]);
//! the server, which parses the bytes of clients, has neither. The server asks over a link
//! ([`HelperLink`], with the messages [`Request`] and [`Report`]).
//!
//! An address is held until a moment, the end of the gateway's lease, and no longer, even if helper
//! and server are both stopped: the kernel then drops all that is sent from it (`netlink/guard.rs`)
//! and removes it (`netlink/addresses.rs`).
//!
//! Not here: leases, the choice of the machine for an address, and which connections clients have.
//! Why it is as it is: `docs/decisions/0068-addresses-of-gateways.md`.
#![forbid(unsafe_code)]

mod announce;
mod confine;
mod helper;
mod holdings;
mod hook;
pub mod limits;
mod link;
mod netlink;
mod packet;
mod place;
mod process;
mod wire;

pub use confine::confine;
pub use helper::{End, HelperError, Options, run};
pub use hook::Hook;
pub use link::{HelperLink, LinkError};
pub use place::{Interface, InvalidPlace, Place};
pub use process::ServerProcess;
pub use wire::{FrameError, Frames, Numbered, Report, Request};

use rustix::time::{ClockId, clock_gettime};
use weir_core::Mono;

/// The priority of a socket (socket(7), `SO_PRIORITY`) whose reset the guard drops. A server gives
/// it to a connection, with `SO_LINGER` of 0, so that the connection ends without a segment to the
/// client if the process ends; the client then learns that from the next machine with the address.
/// The server sets the priority of before when it ends the connection itself. To set this priority
/// needs no capability, and Linux's usual queues send it like the priority 0 (tc-prio(8): band 1).
pub const SILENT_END_PRIORITY: u32 = 4;

/// The present moment on the clock of the ends of leases: time since the machine started, with the
/// time for which it was suspended. It is the same in every process of the machine.
#[must_use]
pub fn now() -> Mono {
    let time = clock_gettime(ClockId::Boottime);
    let seconds = u64::try_from(time.tv_sec).unwrap_or_default();
    let nanos = u64::try_from(time.tv_nsec).unwrap_or_default();
    Mono(seconds.saturating_mul(1_000_000_000).saturating_add(nanos))
}
