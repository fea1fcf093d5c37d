//! Calls of a server to its clients over UDP: find the program's port, call it, send again with
//! growing pauses, give up. Plain data, with time as an argument; somebody else has the socket.

use super::{Caller, Getaddr, Getport, Reply};
use crate::limits::{OUTGOING_MAX, OUTGOING_ORIGIN_MIN, OUTGOING_ORIGIN_ONE_IN};
use crate::rpcbind::wire::{Mapping, Rpcb, Text};
use crate::rpcbind::{self, Netid, Universal};
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::net::{IpAddr, SocketAddr};
use core::time::Duration;
use weir_core::origin::Counts;
use weir_core::{Credentials, Mono, Origin};

/// The first pause before something is sent again; each is twice the one before.
const PAUSE_MIN: Duration = Duration::from_secs(1);
/// The longest pause.
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Times that a port is tried before it is asked for anew: the program may have moved.
const TRIES_OF_PORT: u32 = 3;
const RECORD_MARK_BYTES: usize = 4;

/// The host to call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Target {
    /// The client's address.
    pub address: IpAddr,
    /// The address of ours that it knows us by, and takes calls from.
    pub local: IpAddr,
}

/// The call to make.
#[derive(Clone, Copy, Debug)]
pub struct What<'a> {
    /// The number of the program.
    pub program: u32,
    /// Its version.
    pub version: u32,
    /// The procedure.
    pub procedure: u32,
    /// The arguments, encoded.
    pub args: &'a [u8],
    /// Are there results to wait for?
    pub answered: bool,
}

/// A datagram to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Datagram {
    /// The message.
    pub bytes: Vec<u8>,
    /// The destination.
    pub to: SocketAddr,
    /// The address of ours that it comes from.
    pub from: IpAddr,
}

/// The outcome of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// The results, or for a call that wants none, nothing.
    Answered(Vec<u8>),
    /// The program answered that it does not do this.
    Refused,
    /// No answer; `heard` if the client may have heard the call nevertheless.
    Silent {
        /// Was the call itself ever sent?
        heard: bool,
    },
}

/// The calls under way, each for a purpose `P`.
#[derive(Debug)]
pub struct Outgoing<P> {
    caller: Caller,
    /// The calls by transaction id, which is even; the odd one after it asks for the port.
    calls: BTreeMap<u32, Pending<P>>,
    /// The calls by the origin that they go to.
    to: Counts,
    due: BTreeSet<(Mono, u32)>,
    next: u32,
}

#[derive(Debug)]
struct Pending<P> {
    target: Target,
    program: (u32, u32),
    record: Vec<u8>,
    answered: bool,
    purpose: P,
    port: Option<u16>,
    tries: u32,
    heard: bool,
    pause: Duration,
    due: Mono,
    until: Mono,
}

impl<P> Outgoing<P> {
    /// None yet; transaction ids begin at `seed`, which others should not guess.
    pub fn new(seed: u32) -> Self {
        let caller = Caller::sys(&Credentials::ROOT, b"weir");
        let (calls, to, due) = (BTreeMap::new(), Counts::default(), BTreeSet::new());
        Self { caller, calls, to, due, next: seed & !1 }
    }

    /// Begins a call at `now`, to be given up after `patience`. It is sent by the next
    /// [`Self::send_due`]. One that is not `answered` is over once it is sent.
    ///
    /// # Errors
    /// The purpose, if [`OUTGOING_MAX`] calls are under way, or the target's origin has its part of
    /// them.
    pub fn begin(
        &mut self,
        target: Target,
        what: &What<'_>,
        purpose: P,
        now: Mono,
        patience: Duration,
    ) -> Result<(), P> {
        let origin = Origin::of(target.address);
        let (one_in, least) = (OUTGOING_ORIGIN_ONE_IN, OUTGOING_ORIGIN_MIN);
        if !self.to.have_room(origin, OUTGOING_MAX, one_in, least) {
            return Err(purpose);
        }
        self.to.add(origin);
        let xid = self.next;
        self.next = self.next.wrapping_add(2);
        let mut record = Vec::new();
        let procedure = [what.program, what.version, what.procedure];
        self.caller.encoded(&mut record, xid, procedure, what.args);
        let pending = Pending {
            target,
            program: (what.program, what.version),
            record,
            answered: what.answered,
            purpose,
            port: None,
            tries: 0,
            heard: false,
            pause: PAUSE_MIN,
            due: now,
            until: after(now, patience),
        };
        self.due.insert((now, xid));
        self.calls.insert(xid, pending);
        Ok(())
    }

    /// Time of the next work for [`Self::send_due`].
    pub fn next_due(&self) -> Option<Mono> {
        self.due.first().map(|(at, _)| *at)
    }

    /// Sends what is due at `now` into `out`, and gives up what took too long. A call that is not
    /// `wanted` any more is dropped, and its end is not reported.
    pub fn send_due(
        &mut self,
        now: Mono,
        out: &mut Vec<Datagram>,
        wanted: impl Fn(&P) -> bool,
    ) -> Vec<(P, Ended)> {
        let mut ended = Vec::new();
        while let Some((at, xid)) = self.due.first().copied()
            && at <= now
        {
            self.due.pop_first();
            let Some(mut call) = self.calls.remove(&xid) else { continue };
            if !wanted(&call.purpose) {
                self.over(call.target);
                continue;
            }
            if now >= call.until {
                self.over(call.target);
                ended.push((call.purpose, Ended::Silent { heard: call.heard }));
                continue;
            }
            out.extend(call.datagram(&self.caller, xid));
            if call.heard && !call.answered {
                self.over(call.target);
                ended.push((call.purpose, Ended::Answered(Vec::new())));
                continue;
            }
            call.due = after(now, call.pause);
            call.pause = call.pause.saturating_mul(2).min(PAUSE_MAX);
            self.due.insert((call.due, xid));
            self.calls.insert(xid, call);
        }
        ended
    }

    /// Takes the reply in `record`, which came from `from`; how the call ended, if it did. What
    /// answers no call, or comes from elsewhere, is dropped.
    pub fn answer(&mut self, from: SocketAddr, record: &[u8], now: Mono) -> Option<(P, Ended)> {
        let reply = Reply::parse(record).ok()?;
        let (xid, of_port) = (reply.xid & !1, reply.xid & 1 == 1);
        let call = self.calls.get_mut(&xid)?;
        let port = if of_port { Some(rpcbind::PORT) } else { call.port };
        if from.ip() != call.target.address || Some(from.port()) != port {
            return None;
        }
        if of_port {
            let found = if call.port.is_none() { call.port_in(&reply) } else { None };
            if let Some(port) = found {
                (call.port, call.tries, call.pause) = (Some(port), 0, PAUSE_MIN);
                self.due.remove(&(call.due, xid));
                call.due = now;
                self.due.insert((now, xid));
            }
            return None;
        }
        let call = self.calls.remove(&xid)?;
        self.over(call.target);
        self.due.remove(&(call.due, xid));
        let ended = reply.body.map_or(Ended::Refused, |results| Ended::Answered(results.to_vec()));
        Some((call.purpose, ended))
    }

    /// A call to `target` has ended.
    fn over(&mut self, target: Target) {
        self.to.remove(Origin::of(target.address));
    }
}

impl<P> Pending<P> {
    /// The datagram to send now.
    fn datagram(&mut self, caller: &Caller, xid: u32) -> Option<Datagram> {
        if self.tries == TRIES_OF_PORT {
            self.port = None;
        }
        let (bytes, port) = match self.port {
            Some(port) => {
                (self.heard, self.tries) = (true, self.tries.saturating_add(1));
                (self.record.get(RECORD_MARK_BYTES..)?.to_vec(), port)
            }
            None => (self.ask_for_port(caller, xid | 1)?, rpcbind::PORT),
        };
        let to = SocketAddr::new(self.target.address, port);
        Some(Datagram { bytes, to, from: self.target.local })
    }

    fn ask_for_port(&self, caller: &Caller, xid: u32) -> Option<Vec<u8>> {
        let (program, version) = self.program;
        let mut record = Vec::new();
        if self.target.address.is_ipv4() {
            let protocol = Netid::Udp.protocol();
            let mapping = Mapping { program, version, protocol, port: 0 };
            caller.call(&mut record, xid, &Getport(mapping));
        } else {
            let netid = Text(Netid::Udp6.name().as_bytes());
            let (address, owner) = (Text(b""), Text(b""));
            let rpcb = Rpcb { program, version, netid, address, owner };
            caller.call(&mut record, xid, &Getaddr(rpcb));
        }
        record.get(RECORD_MARK_BYTES..).map(<[u8]>::to_vec)
    }

    /// The port that the client's portmapper names, if it names one.
    fn port_in(&self, reply: &Reply<'_>) -> Option<u16> {
        let port = if self.target.address.is_ipv4() {
            u16::try_from(reply.results::<Getport>().ok()?).ok()?
        } else {
            Universal::parse(reply.results::<Getaddr<'_>>().ok()?.0)?.0.port()
        };
        Some(port).filter(|port| *port != 0)
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "instants saturate")]
fn after(now: Mono, pause: Duration) -> Mono {
    now + pause
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rpc::{AcceptError, Call, reply};
    use crate::xdr::Encode;

    const TARGET: Target =
        Target { address: IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 2)), local: LOCAL };
    const LOCAL: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(10, 0, 0, 1));
    const WHAT: What<'static> =
        What { program: 100_021, version: 4, procedure: 5, args: &[0; 8], answered: true };
    const MINUTE: Duration = Duration::from_secs(60);

    fn at(seconds: u64) -> Mono {
        Mono(seconds * 1_000_000_000)
    }

    fn client(port: u16) -> SocketAddr {
        SocketAddr::new(TARGET.address, port)
    }

    fn begun() -> Outgoing<&'static str> {
        let mut outgoing = Outgoing::new(7);
        outgoing.begin(TARGET, &WHAT, "purpose", at(0), MINUTE).unwrap();
        outgoing
    }

    /// The only datagram due, as the call it is; nothing may have ended.
    fn sent(outgoing: &mut Outgoing<&'static str>, now: Mono) -> (Call, Datagram) {
        let mut out = Vec::new();
        assert_eq!(outgoing.send_due(now, &mut out, |_| true), []);
        let [datagram] = &out[..] else { panic!("{out:?}") };
        (Call::parse(datagram.bytes.clone().into()).unwrap(), datagram.clone())
    }

    fn results(xid: u32, value: &impl Encode) -> Vec<u8> {
        let mut out = reply::begin(Vec::new(), xid);
        value.encode(&mut out);
        reply::finish(out).split_off(4)
    }

    #[test]
    fn finds_the_port_and_then_calls() {
        let mut outgoing = begun();
        let (ask, datagram) = sent(&mut outgoing, at(0));
        assert_eq!((ask.program, ask.version, ask.procedure), (100_000, 2, 3));
        assert_eq!((datagram.to, datagram.from), (client(111), LOCAL));
        assert_eq!(outgoing.answer(client(111), &results(ask.xid, &700u32), at(0)), None);
        let (call, datagram) = sent(&mut outgoing, at(0));
        assert_eq!((call.program, call.version, call.procedure), (100_021, 4, 5));
        assert_eq!(&*call.args, WHAT.args);
        assert_eq!((datagram.to, datagram.from), (client(700), LOCAL));
        let ended = outgoing.answer(client(700), &results(call.xid, &9u32), at(0));
        assert_eq!(ended, Some(("purpose", Ended::Answered(vec![0, 0, 0, 9]))));
        assert_eq!(outgoing.next_due(), None);
        assert_eq!(outgoing.answer(client(700), &results(call.xid, &9u32), at(0)), None);
    }

    #[test]
    fn answers_from_elsewhere_are_dropped() {
        let mut outgoing = begun();
        let (ask, _) = sent(&mut outgoing, at(0));
        let other = "10.0.0.3:111".parse().unwrap();
        for from in [other, client(112)] {
            assert_eq!(outgoing.answer(from, &results(ask.xid, &700u32), at(0)), None);
        }
        assert_eq!(outgoing.next_due(), Some(at(1)), "the forged port was believed");
        outgoing.answer(client(111), &results(ask.xid, &700u32), at(0));
        let (call, _) = sent(&mut outgoing, at(0));
        for from in ["10.0.0.3:700".parse().unwrap(), client(111)] {
            assert_eq!(outgoing.answer(from, &results(call.xid, &()), at(0)), None);
        }
        assert!(outgoing.answer(client(700), &results(call.xid, &()), at(0)).is_some());
    }

    #[test]
    fn sends_again_with_growing_pauses_and_gives_up() {
        let mut outgoing = begun();
        let (mut now, mut times) = (at(0), Vec::new());
        let ended = loop {
            let mut out = Vec::new();
            let ended = outgoing.send_due(now, &mut out, |_| true);
            if !ended.is_empty() {
                break ended;
            }
            times.push(now.0 / 1_000_000_000);
            now = outgoing.next_due().unwrap();
        };
        assert_eq!(times, [0, 1, 3, 7, 15, 31]);
        assert_eq!(ended, [("purpose", Ended::Silent { heard: false })]);
        assert_eq!(now, at(61));
    }

    #[test]
    fn a_port_that_stays_silent_is_asked_for_again() {
        let mut outgoing = begun();
        let (ask, _) = sent(&mut outgoing, at(0));
        outgoing.answer(client(111), &results(ask.xid, &700u32), at(0));
        let mut ports = Vec::new();
        for _ in 0..4 {
            let now = outgoing.next_due().unwrap();
            ports.push(sent(&mut outgoing, now).1.to.port());
        }
        assert_eq!(ports, [700, 700, 700, 111]);
        let ended = outgoing.send_due(at(61), &mut Vec::new(), |_| true);
        assert_eq!(ended, [("purpose", Ended::Silent { heard: true })]);
    }

    #[test]
    fn a_call_that_is_not_wanted_any_more_is_not_sent_again() {
        let mut outgoing = begun();
        let (ask, _) = sent(&mut outgoing, at(0));
        outgoing.answer(client(111), &results(ask.xid, &700u32), at(0));
        sent(&mut outgoing, at(0));
        let mut out = Vec::new();
        assert_eq!(outgoing.send_due(at(1), &mut out, |_| false), []);
        assert_eq!((out, outgoing.next_due(), outgoing.to.total()), (Vec::new(), None, 0));
    }

    #[test]
    fn no_port_and_a_refusal() {
        let mut outgoing = begun();
        let (ask, _) = sent(&mut outgoing, at(0));
        assert_eq!(outgoing.answer(client(111), &results(ask.xid, &0u32), at(0)), None);
        assert_eq!(outgoing.next_due(), Some(at(1)), "asked again, as the program may come");
        outgoing.answer(client(111), &results(ask.xid, &700u32), at(0));
        let (call, _) = sent(&mut outgoing, at(0));
        let no = reply::error(Vec::new(), call.xid, AcceptError::ProgramUnavailable).split_off(4);
        assert_eq!(outgoing.answer(client(700), &no, at(0)), Some(("purpose", Ended::Refused)));
    }

    #[test]
    fn ipv6_is_asked_by_rpcbind_and_a_call_without_answer_ends_when_sent() {
        let mut outgoing = Outgoing::new(0);
        let target = Target { address: "::2".parse().unwrap(), local: "::1".parse().unwrap() };
        outgoing.begin(target, &What { answered: false, ..WHAT }, "told", at(0), MINUTE).unwrap();
        let (ask, datagram) = sent(&mut outgoing, at(0));
        assert_eq!((ask.version, ask.procedure), (4, 3));
        outgoing.answer(datagram.to, &results(ask.xid, &Text(b"::2.2.188")), at(0));
        let mut out = Vec::new();
        let ended = outgoing.send_due(at(0), &mut out, |_| true);
        assert_eq!(ended, [("told", Ended::Answered(Vec::new()))]);
        assert_eq!(out[0].to, "[::2]:700".parse().unwrap());
        assert_eq!(outgoing.next_due(), None);
    }

    #[test]
    fn the_number_of_calls_is_bounded_and_one_origin_leaves_room_for_others() {
        let mut outgoing = Outgoing::new(0);
        for _ in 0..OUTGOING_MAX / OUTGOING_ORIGIN_ONE_IN {
            outgoing.begin(TARGET, &WHAT, 1, at(0), MINUTE).unwrap();
        }
        assert_eq!(outgoing.begin(TARGET, &WHAT, 2, at(0), MINUTE), Err(2));
        let other = |last| Target { address: [10, 1, 0, last].into(), ..TARGET };
        for last in 0..100 {
            while outgoing.begin(other(last), &WHAT, 1, at(0), MINUTE).is_ok() {}
        }
        assert_eq!(outgoing.calls.len(), OUTGOING_MAX);
        outgoing.send_due(at(0), &mut Vec::new(), |_| true);
        assert_eq!(outgoing.send_due(at(100), &mut Vec::new(), |_| true).len(), OUTGOING_MAX);
        assert_eq!(outgoing.to.total(), 0);
    }
}
