//! Bounds on what clients may hold, with what happens when they are reached.

use crate::amounts::Use;
use weir_core::origin::part;

/// The bounds of [`Tables`](crate::Tables). A request that would pass one is refused with
/// [`Refused::Full`](crate::Refused::Full) and changes nothing.
///
/// To unlock the middle of a range makes two of one, so it is refused too where the bound on locks
/// is reached. A waiter whose turn comes is served in any case: the locks held can pass their bound
/// by two for each waiter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The most that may be held and waited for on one file.
    pub file: Use,
    /// The most that one client may hold and wait for.
    pub client: Use,
    /// The most that all clients may hold and wait for.
    pub server: Use,
    /// Clients that may hold or wait for anything.
    pub clients: usize,
    /// The part of `server` and `clients` that the clients of one origin may have together. A
    /// client can invent others at its own address, and this bounds all of them.
    pub origin: Part,
    /// The part of `server` and `clients` that may be on the files of one volume. The bytes of
    /// names don't count here, since an owner belongs to no volume.
    pub volume: Part,
}

/// The part of a common bound that one origin or one volume may have: a fraction of the rest that
/// the others leave free. It binds new locks, waiters, shares and opens. A reclaim after a restart,
/// and the additional range that an unlock can make, pass it: they belong to an earlier grant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    /// The divisor for locks, waiters, shares, opens and bytes: the part is one in this number.
    pub one_in: usize,
    /// The divisor for clients: the part is one in this number.
    pub clients_one_in: usize,
    /// The least part, however much the others have.
    pub least: Use,
    /// The least number of clients.
    pub least_clients: usize,
}

impl Part {
    /// The whole bound: no limit beside the server's.
    pub const ALL: Self = Self {
        one_in: 1,
        clients_one_in: 1,
        least: Use {
            locks: usize::MAX,
            waiters: usize::MAX,
            shares: usize::MAX,
            opens: usize::MAX,
            owner_bytes: usize::MAX,
        },
        least_clients: usize::MAX,
    };

    /// The part of `most` if the `others` use this much.
    pub(crate) const fn of(&self, most: &Use, others: &Use) -> Use {
        let (one_in, least) = (self.one_in, &self.least);
        Use {
            locks: part(most.locks, others.locks, one_in, least.locks),
            waiters: part(most.waiters, others.waiters, one_in, least.waiters),
            shares: part(most.shares, others.shares, one_in, least.shares),
            opens: part(most.opens, others.opens, one_in, least.opens),
            owner_bytes: part(most.owner_bytes, others.owner_bytes, one_in, least.owner_bytes),
        }
    }

    /// The part of `most` clients if there are `others` already.
    pub(crate) const fn of_clients(&self, most: usize, others: usize) -> usize {
        part(most, others, self.clients_one_in, self.least_clients)
    }
}

impl Limits {
    /// The bounds of a server. `examples/opens.rs` measures the memory. A lock takes 160 bytes
    /// beside others on its file, and 1.4 KiB alone on a file; a waiter takes 200 bytes. So all of
    /// them stay under 360 MiB, and the names of owners under 64 MiB. An open on a file of its own
    /// takes 230 bytes here, so all opens stay under 60 MiB.
    pub const SERVER: Self = Self {
        file: Use {
            locks: 1 << 16,
            waiters: 1 << 13,
            shares: 1 << 13,
            opens: 1 << 16,
            owner_bytes: usize::MAX,
        },
        client: Use {
            locks: 1 << 16,
            waiters: 1 << 12,
            shares: 1 << 14,
            opens: 1 << 16,
            owner_bytes: 4 << 20,
        },
        server: Use {
            locks: 1 << 18,
            waiters: 1 << 15,
            shares: 1 << 16,
            opens: 1 << 18,
            owner_bytes: 64 << 20,
        },
        clients: 1 << 14,
        origin: Part {
            one_in: 4,
            clients_one_in: 16,
            least: Use {
                locks: 1 << 10,
                waiters: 1 << 7,
                shares: 1 << 8,
                opens: 1 << 10,
                owner_bytes: 1 << 18,
            },
            least_clients: 16,
        },
        volume: Part {
            one_in: 2,
            clients_one_in: 2,
            least: Use {
                locks: 1 << 12,
                waiters: 1 << 9,
                shares: 1 << 10,
                opens: 1 << 12,
                owner_bytes: usize::MAX,
            },
            least_clients: 256,
        },
    };
}

/// The most waiters and unsettled grants on a file for a request to count as quick: each of them
/// may be looked at.
pub(crate) const QUICK_WAITERS_MAX: usize = 32;

/// The most ranges of an owner for its requests to count as quick: each of them may be changed.
pub(crate) const QUICK_LOCKS_MAX: usize = 256;

const _: () = assert!(Limits::SERVER.client.locks <= Limits::SERVER.server.locks);
const _: () = assert!(Limits::SERVER.client.waiters <= Limits::SERVER.server.waiters);
const _: () = assert!(Limits::SERVER.client.opens <= Limits::SERVER.server.opens);
const _: () = assert!(Limits::SERVER.client.owner_bytes <= Limits::SERVER.server.owner_bytes);
