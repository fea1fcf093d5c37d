//! Bounds on what clients may hold, with what happens when they are reached.

use crate::books::Use;

/// The bounds of a [`Table`](crate::Table). A request that would pass one is refused with
/// [`Refused::Full`](crate::Refused::Full) and changes nothing.
///
/// To unlock the middle of a range makes two of one, so it is refused too where the bound on locks
/// is reached. A waiter whose turn comes is served in any case: the locks held can pass their bound
/// by two for each waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// What may be held and waited for on one file.
    pub file: Use,
    /// What one client may hold and wait for.
    pub client: Use,
    /// What all may hold and wait for.
    pub server: Use,
    /// Clients that may hold or wait for anything.
    pub clients: usize,
}

impl Limits {
    /// The bounds of a server. A lock takes about 250 bytes of memory and a waiter about as much;
    /// so all of them together stay under 200 MiB.
    pub const SERVER: Self = Self {
        file: Use { locks: 1 << 16, waiters: 1 << 13, shares: 1 << 13, owner_bytes: usize::MAX },
        client: Use { locks: 1 << 16, waiters: 1 << 12, shares: 1 << 14, owner_bytes: 4 << 20 },
        server: Use { locks: 1 << 18, waiters: 1 << 15, shares: 1 << 16, owner_bytes: 64 << 20 },
        clients: 1 << 14,
    };
}

const _: () = assert!(Limits::SERVER.client.locks <= Limits::SERVER.server.locks);
const _: () = assert!(Limits::SERVER.client.waiters <= Limits::SERVER.server.waiters);
const _: () = assert!(Limits::SERVER.client.owner_bytes <= Limits::SERVER.server.owner_bytes);
