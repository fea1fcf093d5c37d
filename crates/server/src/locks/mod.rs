//! The locks of all volumes, and the lock manager beside NFSv3 (NLM) with its status monitor (NSM).
//!
//! The tables of locks and the books over them are one state under one mutex, reached through
//! [`LockDoor`] from every thread. A worker never waits for the mutex: it carries a call out itself
//! if the mutex is free and the call takes only a short time, and otherwise awaits the lock
//! thread. That thread also serves UDP, calls clients back, tells them of a restart, and waits for
//! the catalogue's disk before a host's first lock. READ and WRITE do not come here.
//!
//! The meaning of a call is decided in `weir_nfs::nlm`, that of a lock in `weir_state`. Not here:
//! sockets, and whether a caller may lock a file.

mod calls;
mod door;
mod state;

pub(crate) use door::{Asked, LockDoor, Message};
pub(crate) use state::LockState;

use weir_nfs::nlm::{Callback, Status, Waiting};
use weir_state::{File, Grant};

/// The file that a call is about and its caller may lock, or why there is none.
pub(crate) type Proof = Result<File, Status>;

/// A request that waits for a lock, with what its protocol needs to tell the client. Another
/// protocol is one more variant.
#[derive(Debug)]
pub(crate) enum Waiter {
    /// The lock thread calls the client back.
    Nlm(Waiting),
    /// A call to the client goes out on its connection.
    #[cfg(test)]
    Toy(crate::session::ToyWaiter),
}

impl From<Waiting> for Waiter {
    fn from(waiting: Waiting) -> Self {
        Self::Nlm(waiting)
    }
}

/// The calls by which the lock thread tells those who got these locks.
fn callbacks(grants: Vec<Grant<Waiter>>) -> Vec<Callback> {
    let callback = |Grant { id, ask, waiter }| match waiter {
        Waiter::Nlm(waiting) => Callback::granted(id, &ask, &waiting),
        #[cfg(test)]
        Waiter::Toy(waiter) => {
            waiter.granted(id);
            None
        }
    };
    grants.into_iter().filter_map(callback).collect()
}
