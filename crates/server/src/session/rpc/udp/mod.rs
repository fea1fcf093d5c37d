//! UDP, for what clients use it for: the portmapper, MOUNT, and the lock manager's small messages.
//! NFS itself is served over TCP alone.
//!
//! A source address is easily forged here, so an answer is never much larger than what it answers
//! ([`DATAGRAM_REPLY_BYTES_MAX`]), and the rate is bounded.

mod socket;

use crate::clock::seconds_since_1970;
use crate::engine::{Engine, ServedSet, View};
use crate::limits::{
    DATAGRAM_BYTES_MAX, DATAGRAM_REPLY_BYTES_MAX, DATAGRAMS_ROUND_MAX, DATAGRAMS_SECOND_MAX,
    DATAGRAMS_SECOND_ORIGIN_MIN, DATAGRAMS_SECOND_ORIGIN_ONE_IN,
};
use crate::session::PeerExports;
use crate::sync::Arc;
use socket::{Arrived, DatagramSocket};
use std::net::{IpAddr, SocketAddr};
use weir_core::origin::Counts;
use weir_core::{Clock, Mono, Origin, Shared};
use weir_nfs::client::Datagram;
use weir_nfs::nlm::Peer;
use weir_nfs::rpc::{AcceptError, Call, Refusal, reply};
use weir_nfs::{PROGRAM_MOUNT, PROGRAM_NLM, PROGRAM_NSM, PROGRAM_RPCBIND, mount};

/// The message type of a reply (RFC 5531 §9), as it is on the wire.
const MSG_REPLY: [u8; 4] = [0, 0, 0, 1];
const RECORD_MARK_BYTES: usize = 4;

/// The purpose of a socket.
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
    /// The kernel's error.
    pub(crate) fn programs(&mut self, address: &SocketAddr) -> std::io::Result<()> {
        self.all.push((Serves::Programs, DatagramSocket::bind(address)?));
        Ok(())
    }

    /// Adds a socket for the portmapper.
    ///
    /// # Errors
    /// The kernel's error.
    pub(crate) fn portmapper(&mut self, address: &SocketAddr) -> std::io::Result<()> {
        self.all.push((Serves::Portmapper, DatagramSocket::bind(address)?));
        Ok(())
    }
}

/// A call to NLM or NSM in a datagram.
pub(crate) struct Asked {
    pub(crate) call: Call,
    /// The two ends of the datagram's way.
    pub(crate) peer: Peer,
    /// The sender's address.
    pub(crate) from: SocketAddr,
    /// The datagram's length, in bytes.
    pub(crate) bytes: usize,
}

/// A datagram's content for the lock manager.
pub(crate) enum Incoming {
    /// A call.
    Call(Asked),
    /// A reply to a call of ours.
    Reply {
        /// The sender's address.
        from: SocketAddr,
        /// The reply, without a record mark.
        record: Vec<u8>,
    },
}

/// The sockets at work.
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

    /// Follows the volumes that are served.
    pub(crate) fn refresh(&mut self) {
        self.view.load();
    }

    /// The sockets, to wait for.
    pub(crate) fn sockets(&self) -> impl Iterator<Item = &DatagramSocket> {
        self.sockets.iter().map(|(_, socket)| socket)
    }

    /// Takes some of what came: answers what it can, and puts what is for the lock manager into
    /// `incoming`.
    pub(crate) fn receive(&mut self, incoming: &mut Vec<Incoming>) {
        for (serves, socket) in &self.sockets {
            for _ in 0..DATAGRAMS_ROUND_MAX {
                let mut buffer = vec![0; DATAGRAM_BYTES_MAX];
                let Some(arrived) = socket.receive(&mut buffer) else { break };
                if !self.rate.admits(arrived.from.ip(), self.engine.clock.now()) {
                    continue;
                }
                buffer.truncate(arrived.len);
                if *serves == Serves::Programs && buffer.get(4..8) == Some(&MSG_REPLY) {
                    incoming.push(Incoming::Reply { from: arrived.from, record: buffer });
                    continue;
                }
                let served = self.view.load();
                match answer(&self.engine, served, *serves, buffer, &arrived) {
                    Some(Answer::Reply(_)) if !self.engine.right.allows() => {}
                    Some(Answer::Reply(reply)) => {
                        let reply = reply.get(RECORD_MARK_BYTES..).unwrap_or(&[]);
                        socket.send(reply, arrived.from, arrived.to);
                    }
                    Some(Answer::Later(asked)) => incoming.push(Incoming::Call(asked)),
                    None => {}
                }
            }
        }
    }

    /// Sends from the socket that listens on the address it is to come from. Without the right to
    /// reply the datagram is lost like any other.
    pub(crate) fn send(&self, datagram: &Datagram) {
        if !self.engine.right.allows() {
            return;
        }
        let listens = |(serves, socket): &&(Serves, DatagramSocket)| {
            let bound = socket.bound().ip();
            *serves == Serves::Programs
                && bound.is_ipv4() == datagram.to.is_ipv4()
                && (bound.is_unspecified() || bound == datagram.from)
        };
        match self.sockets.iter().find(listens) {
            Some((_, socket)) => socket.send(&datagram.bytes, datagram.to, datagram.from),
            None => tracing::debug!(from = %datagram.from, "no socket has this address any longer"),
        }
    }
}

/// The treatment of a call.
enum Answer {
    /// The server sends this record.
    Reply(Vec<u8>),
    /// The lock manager answers.
    Later(Asked),
}

fn answer(
    engine: &Engine,
    served: &Arc<ServedSet>,
    serves: Serves,
    bytes: Vec<u8>,
    arrived: &Arrived,
) -> Option<Answer> {
    let call = match Call::parse(Shared::from(bytes)) {
        Ok(call) => call,
        Err(Refusal::Drop) => return None,
        Err(Refusal::Reply(rejection)) => {
            return Some(Answer::Reply(reply::reject(Vec::new(), &rejection)));
        }
    };
    let from = arrived.from;
    let answer = match (serves, call.program) {
        (Serves::Portmapper, PROGRAM_RPCBIND) => {
            let now = seconds_since_1970();
            engine.portmap.serve(&call, from, arrived.to, false, now, Vec::new())
        }
        (Serves::Programs, PROGRAM_MOUNT) => {
            mount::serve(&call, &PeerExports::new(engine, served, from.ip()), Vec::new())
        }
        (Serves::Programs, PROGRAM_NLM | PROGRAM_NSM) => {
            let peer = Peer { address: from.ip(), local: arrived.to };
            return Some(Answer::Later(Asked { call, peer, from, bytes: arrived.len }));
        }
        _ => reply::error(Vec::new(), call.xid, AcceptError::ProgramUnavailable),
    };
    Some(Answer::Reply(bounded(answer, arrived.len, call.xid)))
}

/// `answer` if it may be sent by UDP in reply to `asked` bytes, else a system error.
pub(crate) fn bounded(answer: Vec<u8>, asked: usize, xid: u32) -> Vec<u8> {
    if answer.len().saturating_sub(RECORD_MARK_BYTES) <= DATAGRAM_REPLY_BYTES_MAX.max(asked) {
        return answer;
    }
    reply::error(answer, xid, AcceptError::SystemError)
}

/// The record `reply` as a datagram.
pub(crate) fn datagram(reply: &[u8], to: SocketAddr, from: IpAddr) -> Option<Datagram> {
    Some(Datagram { bytes: reply.get(RECORD_MARK_BYTES..)?.to_vec(), to, from })
}

/// Counts datagrams by the second, all of them and those of each origin.
#[derive(Debug, Default)]
struct Rate {
    second: u64,
    admitted: Counts,
}

impl Rate {
    fn admits(&mut self, from: IpAddr, now: Mono) -> bool {
        let second = now.0 / 1_000_000_000;
        if second != self.second {
            *self = Self { second, ..Self::default() };
        }
        let origin = Origin::of(from);
        let (one_in, least) = (DATAGRAMS_SECOND_ORIGIN_ONE_IN, DATAGRAMS_SECOND_ORIGIN_MIN);
        let admitted = self.admitted.have_room(origin, DATAGRAMS_SECOND_MAX, one_in, least);
        if admitted {
            self.admitted.add(origin);
        }
        admitted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(number: u32) -> IpAddr {
        IpAddr::V4((0x0a00_0000 + number).into())
    }

    #[test]
    fn so_many_datagrams_a_second_and_no_more() {
        let mut rate = Rate::default();
        let mut admitted = |now| {
            let mut send = |number| rate.admits(address(number % 1000), Mono(now));
            (0u32..20_000).filter(|number| send(*number)).count()
        };
        assert_eq!(admitted(5), DATAGRAMS_SECOND_MAX);
        assert_eq!(admitted(999_999_999), 0);
        assert_eq!(admitted(1_000_000_000), DATAGRAMS_SECOND_MAX);
    }

    #[test]
    fn a_flood_from_one_origin_leaves_most_of_the_rate_to_others() {
        let mut rate = Rate::default();
        let mut admitted =
            |number, sent: u32| (0..sent).filter(|_| rate.admits(address(number), Mono(0))).count();
        let one = DATAGRAMS_SECOND_MAX / DATAGRAMS_SECOND_ORIGIN_ONE_IN;
        assert_eq!(admitted(0, 20_000), one);
        let others: usize = (1..10).map(|number| admitted(number, 20_000)).sum();
        assert!(one + others < DATAGRAMS_SECOND_MAX, "ten origins don't take all");
        assert_eq!(admitted(10, 1), 1, "a newcomer is heard");
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
