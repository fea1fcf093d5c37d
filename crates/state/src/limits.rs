//! Bounds on what clients may hold, with what happens when they are reached.

use crate::books::Use;
use weir_core::origin::part;

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
    /// What of `server` and `clients` the clients of one origin may have together. A client can
    /// invent others at its own address, and this is what bounds all of them.
    pub origin: Part,
    /// What of `server` and `clients` may be on the files of one volume. The bytes of names don't
    /// count here, since an owner belongs to no volume.
    pub volume: Part,
}

/// What one origin or one volume may have of what all may have together: a part of what the others
/// leave free. It binds new locks, waiters and shares. A reclaim after a restart, and the range
/// more that an unlock can make, pass it: they belong to what was granted before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The part of locks, waiters, shares and bytes is one in so many.
    pub one_in: usize,
    /// The part of clients is one in so many.
    pub clients_one_in: usize,
    /// At least this, however much the others have.
    pub least: Use,
    /// At least so many clients.
    pub least_clients: usize,
}

impl Part {
    /// All of it: no bound beside the server's.
    pub const ALL: Self = Self {
        one_in: 1,
        clients_one_in: 1,
        least: Use {
            locks: usize::MAX,
            waiters: usize::MAX,
            shares: usize::MAX,
            owner_bytes: usize::MAX,
        },
        least_clients: usize::MAX,
    };

    /// The part of `most` where the `others` use so much.
    pub(crate) const fn of(&self, most: &Use, others: &Use) -> Use {
        let (one_in, least) = (self.one_in, &self.least);
        Use {
            locks: part(most.locks, others.locks, one_in, least.locks),
            waiters: part(most.waiters, others.waiters, one_in, least.waiters),
            shares: part(most.shares, others.shares, one_in, least.shares),
            owner_bytes: part(most.owner_bytes, others.owner_bytes, one_in, least.owner_bytes),
        }
    }

    /// The part of `most` clients where there are `others` already.
    pub(crate) const fn of_clients(&self, most: usize, others: usize) -> usize {
        part(most, others, self.clients_one_in, self.least_clients)
    }
}

impl Limits {
    /// The bounds of a server. A lock takes about 250 bytes of memory and a waiter about as much;
    /// so all of them together stay under 200 MiB.
    pub const SERVER: Self = Self {
        file: Use { locks: 1 << 16, waiters: 1 << 13, shares: 1 << 13, owner_bytes: usize::MAX },
        client: Use { locks: 1 << 16, waiters: 1 << 12, shares: 1 << 14, owner_bytes: 4 << 20 },
        server: Use { locks: 1 << 18, waiters: 1 << 15, shares: 1 << 16, owner_bytes: 64 << 20 },
        clients: 1 << 14,
        origin: Part {
            one_in: 4,
            clients_one_in: 16,
            least: Use { locks: 1 << 10, waiters: 1 << 7, shares: 1 << 8, owner_bytes: 1 << 18 },
            least_clients: 16,
        },
        volume: Part {
            one_in: 2,
            clients_one_in: 2,
            least: Use {
                locks: 1 << 12,
                waiters: 1 << 9,
                shares: 1 << 10,
                owner_bytes: usize::MAX,
            },
            least_clients: 256,
        },
    };
}

const _: () = assert!(Limits::SERVER.client.locks <= Limits::SERVER.server.locks);
const _: () = assert!(Limits::SERVER.client.waiters <= Limits::SERVER.server.waiters);
const _: () = assert!(Limits::SERVER.client.owner_bytes <= Limits::SERVER.server.owner_bytes);
