//! The lock manager beside NFSv3 (NLM) and the status monitor (NSM) on a thread of their own.
//!
//! The thread owns the table of locks, so no lock of ours guards it and READ and WRITE never meet
//! it. Calls come from the workers' TCP connections through a bounded queue and over UDP; it calls
//! clients back, tells them of a restart, and may wait for the catalogue's disk. What a call means
//! is decided in `weir_nfs::nlm`; here are the sockets, the clock and the memory of hosts.

mod counters;
mod hosts;
mod outgoing;
mod proof;
mod service;
mod thread;

pub(crate) use counters::LockCounters;
pub(crate) use outgoing::Datagram;
pub(crate) use service::{Life, Service};
pub(crate) use thread::LockThread;

use crate::conn_id::ConnId;
use crate::inbox::Inbox;
use crate::limits::{LOCK_CALLS_MAX, LOCK_CALLS_ORIGIN_MIN, LOCK_CALLS_ORIGIN_ONE_IN};
use crate::sync::{Arc, Mutex, lock, mpsc};
use std::net::{IpAddr, SocketAddr};
use weir_core::origin::Counts;
use weir_core::{Origin, VolumeId};
use weir_nfs::nlm::Peer;
use weir_nfs::rpc::Call;

/// A call to NLM or NSM.
#[derive(Debug)]
pub(crate) struct Asked {
    /// The call; its arguments are its own.
    pub(crate) call: Call,
    /// The two ends of the call's connection.
    pub(crate) peer: Peer,
    /// The destination of the answer.
    pub(crate) by: AskedBy,
}

/// The way in which a call came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum AskedBy {
    /// The call came on a connection of a worker.
    Connection(ConnId),
    /// The call came in a datagram.
    Datagram {
        /// The sender's address.
        from: SocketAddr,
        /// The datagram's length, in bytes.
        bytes: usize,
    },
}

/// A message to the lock manager.
pub(crate) enum Message {
    /// A call.
    Call(Asked),
    /// The proof in this slot can make progress.
    Wake(usize),
    /// A volume is gone.
    VolumeGone(VolumeId),
    /// Drop this, as a sign of life.
    RollCall(mpsc::Sender<()>),
}

/// The lock manager's thread as others see it.
pub(crate) struct LockDoor {
    inbox: Arc<Inbox<Message>>,
    calls: Mutex<Counts>,
    /// The lock manager's counters for the metrics.
    pub(crate) counters: LockCounters,
}

impl LockDoor {
    /// A door behind which nobody is yet.
    ///
    /// # Errors
    /// The kernel gives no eventfd.
    pub(crate) fn new() -> std::io::Result<Arc<Self>> {
        let (inbox, calls) = (Inbox::new()?, Mutex::default());
        Ok(Arc::new(Self { inbox, calls, counters: LockCounters::default() }))
    }

    /// Hands a call over, unless [`LOCK_CALLS_MAX`] wait for their answers, or its origin has its
    /// part of them: then `false`.
    pub(crate) fn ask(&self, asked: Asked) -> bool {
        if !self.admits(Origin::of(asked.peer.address)) {
            return false;
        }
        self.inbox.post(Message::Call(asked));
        true
    }

    fn admits(&self, origin: Origin) -> bool {
        let mut calls = lock(&self.calls);
        let (one_in, least) = (LOCK_CALLS_ORIGIN_ONE_IN, LOCK_CALLS_ORIGIN_MIN);
        let admitted = calls.have_room(origin, LOCK_CALLS_MAX, one_in, least);
        if admitted {
            calls.add(origin);
        }
        admitted
    }

    /// A call from `peer` that was handed over is answered.
    pub(crate) fn answered(&self, peer: IpAddr) {
        lock(&self.calls).remove(Origin::of(peer));
    }

    /// Has the thread drop `absent`, as a sign of life.
    pub(crate) fn roll_call(&self, absent: mpsc::Sender<()>) {
        self.inbox.post(Message::RollCall(absent));
    }

    /// A volume is gone, and all locks in it.
    pub(crate) fn volume_gone(&self, volume: VolumeId) {
        self.inbox.post(Message::VolumeGone(volume));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_address_leave_room_for_others() {
        let door = LockDoor::new().unwrap();
        let greedy = Origin::of([10, 0, 0, 1].into());
        let taken = (0..LOCK_CALLS_MAX).filter(|_| door.admits(greedy)).count();
        assert_eq!(taken, LOCK_CALLS_MAX / LOCK_CALLS_ORIGIN_ONE_IN);
        for _ in 0..LOCK_CALLS_ORIGIN_MIN {
            assert!(door.admits(Origin::of([10, 0, 0, 2].into())));
        }
        door.answered([10, 0, 0, 1].into());
        for _ in 0..100 {
            door.answered([10, 0, 0, 3].into());
        }
        assert_eq!(lock(&door.calls).total(), taken + LOCK_CALLS_ORIGIN_MIN - 1);
    }
}
