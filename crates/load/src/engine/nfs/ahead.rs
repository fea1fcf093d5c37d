//! Many calls ahead on one connection: a window of them in flight, replies in any order.
//!
//! For what comes before and after the measured interval. The load itself has its own engine
//! ([`super::super::net`]), where a server that wants time has failed the operation.

use super::session::{Peer, Session, wants_time};
use crate::control::Control;
use crate::error::BenchError;
use std::collections::HashMap;
use std::time::Duration;
use weir_nfs::client::{RemoteCall, Reply};

/// Calls in flight.
const WINDOW: usize = 32;
/// Between being told that the server needs time and asking again.
const WAIT: Duration = Duration::from_millis(100);
/// Waits without any progress in between, and in all; then the server's answer counts.
const WAITS_MAX: u32 = 300;
const WAITS_IN_ALL_MAX: u32 = 3000;

/// The meaning of a reply for the thing it was asked about.
pub enum FollowUp<T> {
    /// It is done.
    Done,
    /// Something more is to be asked.
    More(T),
}

/// A reply, and from whom it is.
pub struct Answered<'a> {
    reply: Reply<'a>,
    peer: Peer,
}

impl<'a> Answered<'a> {
    /// The results of the call, whose arguments were an `A`.
    ///
    /// # Errors
    /// [`BenchError::Denied`] if there are none, [`BenchError::Protocol`] if they are malformed.
    pub fn results<A: RemoteCall>(&self) -> Result<A::Results<'a>, BenchError> {
        self.reply.results::<A>().map_err(|error| self.peer.failed(error))
    }

    /// The error of a wrong reply.
    pub const fn protocol(&self, detail: String) -> BenchError {
        BenchError::Protocol { address: self.peer.address, detail }
    }
}

/// The patience with a server that wants to be asked again later (NFS3ERR_JUKEBOX, RFC 1813 §2.6):
/// half a minute without progress, five minutes in all. Once it is at its end each further call is
/// made once, until one succeeds.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waits: u32,
    in_all: u32,
}

impl Patience {
    /// Is this answer one to wait for and ask again? `wants_time` if the server says so.
    pub(super) const fn forgives(&mut self, wants_time: bool) -> bool {
        if !wants_time {
            self.waits = 0;
            return false;
        }
        self.waits < WAITS_MAX && self.in_all < WAITS_IN_ALL_MAX
    }

    /// Waits for a while.
    pub(super) fn wait(&mut self) {
        std::thread::sleep(WAIT);
        self.count();
    }

    const fn count(&mut self) {
        self.waits += 1;
        self.in_all += 1;
    }
}

impl Session {
    /// Queues a call for each of `items` (`ask` gives its number) and lets `judge` read the
    /// answers, until all are done or `control` is told to stop. What the server wants to be asked
    /// later is asked again; `judge` sees NFS3ERR_JUKEBOX when patience ends.
    ///
    /// # Errors
    /// The first that `judge` gives, once all that was asked is answered, so that nothing happens
    /// at the server after this returned; or the connection's, if that came first.
    pub fn ahead<T>(
        &mut self,
        control: &Control,
        items: impl Iterator<Item = T>,
        mut ask: impl FnMut(&mut Self, &T) -> u32,
        mut judge: impl FnMut(T, Answered<'_>) -> Result<FollowUp<T>, BenchError>,
    ) -> Result<(), BenchError> {
        let mut items = items.fuse();
        let mut pending = HashMap::with_capacity(WINDOW);
        let (mut later, mut patience) = (Vec::new(), Patience::default());
        let mut failure = None;
        loop {
            let goes_on = failure.is_none() && !control.stopped();
            while goes_on
                && later.is_empty()
                && pending.len() < WINDOW
                && let Some(item) = items.next()
            {
                pending.insert(ask(self, &item), item);
            }
            if pending.is_empty() {
                if later.is_empty() || !goes_on {
                    return failure.map_or(Ok(()), Err);
                }
                patience.wait();
                for item in later.drain(..) {
                    pending.insert(ask(self, &item), item);
                }
            }
            let peer = self.peer();
            let answer = self.answer(|reply| {
                let Some(item) = pending.remove(&reply.xid) else {
                    return Err(peer.unasked(reply.xid));
                };
                if patience.forgives(wants_time(reply)) {
                    later.push(item);
                    return Ok(Ok(FollowUp::Done));
                }
                Ok(judge(item, Answered { reply: *reply, peer }))
            });
            let judged = match answer {
                Ok(judged) => judged,
                // The first failure is the one to tell.
                Err(lost) => return Err(failure.unwrap_or(lost)),
            };
            match judged {
                Ok(FollowUp::More(item)) if failure.is_none() && !control.stopped() => {
                    pending.insert(ask(self, &item), item);
                }
                Ok(_) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patience_ends_without_progress_and_ends_for_good() {
        let mut patience = Patience::default();
        for _ in 0..WAITS_IN_ALL_MAX / WAITS_MAX {
            let mut waits = 0;
            while patience.forgives(true) {
                patience.count();
                waits += 1;
            }
            assert_eq!(waits, WAITS_MAX);
            assert!(!patience.forgives(true), "it is spent until something succeeds");
            assert!(!patience.forgives(false));
        }
        assert!(!patience.forgives(true), "and in all there is a bound");
    }
}
