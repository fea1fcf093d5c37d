//! UDP, for what clients use it for: the portmapper, MOUNT, and the lock manager's small messages.
//! NFS itself is served over TCP alone.
//!
//! A source address is easily forged here, so an answer is never much larger than what it answers
//! ([`DATAGRAM_REPLY_BYTES_MAX`]), and the rate is bounded.

mod socket;

use crate::acceptor::Stop;
use crate::clock::seconds_since_1970;
use crate::engine::{Engine, View};
use crate::limits::{
    DATAGRAM_BYTES_MAX, DATAGRAM_REPLY_BYTES_MAX, DATAGRAMS_ROUND_MAX, DATAGRAMS_SECOND_MAX,
};
use crate::sync::Arc;
use crate::worker::PeerExports;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use socket::{Arrived, DatagramSocket};
use std::net::SocketAddr;
use weir_core::{Clock, Mono, Shared};
use weir_nfs::rpc::{AcceptError, Call, Refusal, reply};
use weir_nfs::{PROGRAM_MOUNT, PROGRAM_RPCBIND, mount};

const RECORD_MARK_BYTES: usize = 4;

/// What a socket is there for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Serves {
    /// The programs beside NFS.
    Programs,
    /// The portmapper.
    Portmapper,
}

/// The sockets, bound before anything is served so that a taken port is found out at once.
#[derive(Debug, Default)]
pub(crate) struct Sockets {
    all: Vec<(Serves, DatagramSocket)>,
}

impl Sockets {
    /// Adds a socket for the programs beside NFS.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn programs(&mut self, address: &SocketAddr) -> std::io::Result<()> {
        self.all.push((Serves::Programs, DatagramSocket::bind(address)?));
        Ok(())
    }

    /// Adds a socket for the portmapper.
    ///
    /// # Errors
    /// What the kernel refuses.
    pub(crate) fn portmapper(&mut self, address: &SocketAddr) -> std::io::Result<()> {
        self.all.push((Serves::Portmapper, DatagramSocket::bind(address)?));
        Ok(())
    }
}

/// The thread that serves datagrams.
pub(crate) struct Datagrams {
    engine: Arc<Engine>,
    view: View,
    sockets: Vec<(Serves, DatagramSocket)>,
    rate: Rate,
}

impl Datagrams {
    /// Serves `sockets` for `engine`.
    pub(crate) fn new(engine: Arc<Engine>, sockets: Sockets) -> Self {
        Self { view: engine.view(), sockets: sockets.all, rate: Rate::default(), engine }
    }

    /// Serves until `stop`.
    ///
    /// # Errors
    /// Where poll fails, which it does only for want of memory.
    pub(crate) fn run(mut self, stop: &Stop) -> std::io::Result<()> {
        loop {
            let mut watched: Vec<PollFd<'_>> =
                self.sockets.iter().map(|(_, socket)| PollFd::new(socket, PollFlags::IN)).collect();
            watched.push(PollFd::new(stop, PollFlags::IN));
            match poll(&mut watched, None) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(error) => return Err(error.into()),
            }
            if watched.last().is_some_and(|fd| !fd.revents().is_empty()) {
                return Ok(());
            }
            for index in 0..self.sockets.len() {
                self.receive_some(index);
            }
        }
    }

    fn receive_some(&mut self, index: usize) {
        for _ in 0..DATAGRAMS_ROUND_MAX {
            let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
            let Some((serves, socket)) = self.sockets.get(index) else { return };
            let Some(arrived) = socket.receive(&mut buffer) else { return };
            if !self.rate.admits(self.engine.clock.now()) {
                continue;
            }
            buffer.truncate(arrived.len);
            let Some(reply) = self.answer(*serves, buffer, &arrived) else { continue };
            if let (Some((_, socket)), Some(bytes)) =
                (self.sockets.get(index), reply.get(RECORD_MARK_BYTES..))
            {
                socket.send(bytes, arrived.from, arrived.to);
            }
        }
    }

    /// The reply record to one datagram, if it deserves one.
    fn answer(&mut self, serves: Serves, bytes: Vec<u8>, arrived: &Arrived) -> Option<Vec<u8>> {
        let call = match Call::parse(Shared::from(bytes)) {
            Ok(call) => call,
            Err(Refusal::Drop) => return None,
            Err(Refusal::Reply(rejection)) => return Some(reply::reject(Vec::new(), &rejection)),
        };
        let answer = match (serves, call.program) {
            (Serves::Portmapper, PROGRAM_RPCBIND) => {
                let now = seconds_since_1970();
                self.engine.portmap.serve(&call, arrived.from, arrived.to, false, now, Vec::new())
            }
            (Serves::Programs, PROGRAM_MOUNT) => {
                let exports = PeerExports::new(&self.engine, self.view.load(), arrived.from.ip());
                mount::serve(&call, &exports, Vec::new())
            }
            _ => reply::error(Vec::new(), call.xid, AcceptError::ProgramUnavailable),
        };
        Some(bounded(answer, arrived.len, call.xid))
    }
}

/// `answer` if it may go by UDP in return for `asked` bytes, else a system error.
fn bounded(answer: Vec<u8>, asked: usize, xid: u32) -> Vec<u8> {
    if answer.len().saturating_sub(RECORD_MARK_BYTES) <= DATAGRAM_REPLY_BYTES_MAX.max(asked) {
        return answer;
    }
    reply::error(answer, xid, AcceptError::SystemError)
}

/// Counts datagrams by the second.
#[derive(Debug, Default)]
struct Rate {
    second: u64,
    count: u32,
}

impl Rate {
    fn admits(&mut self, now: Mono) -> bool {
        let second = now.0 / 1_000_000_000;
        if second != self.second {
            *self = Self { second, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count <= DATAGRAMS_SECOND_MAX
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn so_many_datagrams_a_second_and_no_more() {
        let mut rate = Rate::default();
        let admitted = |rate: &mut Rate, now| (0..20_000).filter(|_| rate.admits(now)).count();
        assert_eq!(admitted(&mut rate, Mono(5)), 10_000);
        assert_eq!(admitted(&mut rate, Mono(999_999_999)), 0);
        assert_eq!(admitted(&mut rate, Mono(1_000_000_000)), 10_000);
    }

    #[test]
    fn a_small_call_gets_no_large_answer() {
        let long = vec![0; 4 + 300];
        assert_eq!(bounded(long.clone(), 300, 7), long);
        assert_eq!(bounded(long, 299, 7), reply::error(Vec::new(), 7, AcceptError::SystemError));
        let short = vec![0; 4 + 256];
        assert_eq!(bounded(short.clone(), 40, 7), short);
    }
}
