//! Many calls ahead on one connection: a window of them in flight, replies in any order.
//!
//! For what comes before and after the measured interval. The load itself has its own engine
//! ([`super::worker`]), where a server that wants time has failed the operation.

use super::session::{Session, malformed, wants_time};
use crate::control::Control;
use crate::error::BenchError;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::Duration;
use weir_nfs::client::{RemoteCall, Reply};

/// Calls in flight.
const WINDOW: usize = 32;
/// Between being told that the server needs time and asking again.
const WAIT: Duration = Duration::from_millis(100);
/// Waits without any progress in between; then the server's answer counts.
const WAITS_MAX: u32 = 300;

/// What a reply means for the thing it was asked about.
pub(crate) enum Answer<T> {
    Done,
    /// Something more is to be asked.
    More(T),
}

/// A reply, and from whom it is.
pub(crate) struct Answered<'a> {
    reply: Reply<'a>,
    address: SocketAddr,
}

impl<'a> Answered<'a> {
    /// The results of the call, whose arguments were an `A`.
    ///
    /// # Errors
    /// [`BenchError::Protocol`] if there are none, or they are malformed.
    pub(crate) fn results<A: RemoteCall>(&self) -> Result<A::Results<'a>, BenchError> {
        self.reply.results::<A>().map_err(|error| malformed(self.address, &error))
    }

    /// What the reply says is wrong.
    pub(crate) const fn protocol(&self, detail: String) -> BenchError {
        BenchError::Protocol { address: self.address, detail }
    }
}

/// How long a server is waited for that wants to be asked again later (NFS3ERR_JUKEBOX, RFC 1813
/// §2.6): half a minute without progress.
#[derive(Debug, Default)]
pub(super) struct Patience {
    waits: u32,
}

impl Patience {
    /// Is there any left?
    pub(super) const fn is_left(&self) -> bool {
        self.waits < WAITS_MAX
    }

    /// Waits for a while.
    pub(super) fn wait(&mut self) {
        std::thread::sleep(WAIT);
        self.waits += 1;
    }

    /// The server got on with something.
    const fn progress(&mut self) {
        self.waits = 0;
    }
}

impl Session {
    /// Queues a call for each of `items` (`ask` gives its number) and lets `judge` read the
    /// answers, until all are done or `control` is told to stop. What the server wants to be asked
    /// later is asked again; `judge` sees NFS3ERR_JUKEBOX when patience ends.
    ///
    /// # Errors
    /// The first that `judge` gives, once all that was asked is answered, so that nothing happens
    /// at the server after this returned; or the connection's.
    pub(crate) fn ahead<T>(
        &mut self,
        control: &Control,
        items: impl Iterator<Item = T>,
        mut ask: impl FnMut(&mut Self, &T) -> u32,
        mut judge: impl FnMut(T, Answered<'_>) -> Result<Answer<T>, BenchError>,
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
            let address = self.address();
            let judged = self.answer(|reply| {
                let Some(item) = pending.remove(&reply.xid) else {
                    let xid = reply.xid;
                    let detail = format!("a reply to nothing that was asked (xid {xid:#010x})");
                    return Err(BenchError::Protocol { address, detail });
                };
                if wants_time(reply) && patience.is_left() {
                    later.push(item);
                    return Ok(Ok(Answer::Done));
                }
                patience.progress();
                Ok(judge(item, Answered { reply: *reply, address }))
            })?;
            match judged {
                Ok(Answer::Done) => {}
                Ok(Answer::More(item)) if failure.is_none() => {
                    pending.insert(ask(self, &item), item);
                }
                Ok(Answer::More(_)) => {}
                Err(error) => failure = failure.or(Some(error)),
            }
        }
    }
}
