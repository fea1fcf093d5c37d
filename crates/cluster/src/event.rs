//! The interface to the driver: events in, actions out, and the messages between gateways. Not
//! here: how messages and records are encoded, and how peers prove who they are.

use crate::change::Transaction;
use crate::command::{Command, Refusal};
use crate::id::{
    Barrier, GatewayId, Generation, GroupId, Life, MachineId, RequestId, SessionId, Version,
};
use crate::records::{Came, View};
use alloc::sync::Arc;
use alloc::vec::Vec;
use weir_core::Mono;

/// A life, as its driver begins it.
#[derive(Clone, Debug)]
pub struct Start {
    /// The life. Its number is greater than that of any earlier life in the local state, where it
    /// is synced before, and greater than that in the gateway's record.
    pub life: Life,
    /// The local state. The process holds the lock on it.
    pub machine: MachineId,
    /// The newest version that the program understands.
    pub speaks: Version,
    /// The sessions with Ceph, all open. A session that is lost ends the life.
    pub sessions: Vec<SessionId>,
}

/// Something that happened, for [`Cluster::step`](crate::Cluster::step).
#[derive(Clone, Debug)]
pub enum Event {
    /// Time passed: at least every [`TICK`](crate::timing::TICK).
    Tick,
    /// The state of etcd, complete, after a change of it or a new start of the watch.
    View(Arc<View>),
    /// etcd has a row in a newer version than this program understands, so there will be no view.
    Newer,
    /// The helper on this machine knows the life, and says from now on that it runs.
    Announced,
    /// etcd answered a request about the lease.
    Lease {
        /// The request.
        request: RequestId,
        /// The answer.
        answer: Kept,
    },
    /// etcd answered a change. A change without an answer gets no event.
    Changed {
        /// The request.
        request: RequestId,
        /// The guards held, and the change happened.
        applied: bool,
    },
    /// A message from another gateway, whose identity the link has proved.
    Message(Message),
    /// A word of the helper on another gateway's machine.
    Helper(HelperWord),
    /// The blocklist of a life's sessions is in force: every OSD and MDS that takes a request of a
    /// client with this epoch refuses those sessions.
    InForce {
        /// The life.
        life: Life,
        /// The epoch.
        barrier: Barrier,
    },
    /// A group is ready to be served: its volumes are open, their usage and credits known, their
    /// grace period begun.
    Adopted(GroupId),
    /// The addresses of a group are on this machine.
    Addressed(GroupId),
    /// A group is served no more: its addresses are gone, no reply is under way, all data are
    /// flushed, files are closed, and its locks and replies are with its next home if it has one.
    Stopped(GroupId),
    /// Ceph says that this life's sessions are blocklisted, or lost.
    Blocklisted,
    /// An operator's command, answered by [`Action::Answer`].
    Command {
        /// A number for the answer.
        number: u64,
        /// The command.
        command: Command,
    },
}

/// An answer of etcd about a lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kept {
    /// The lease is there, for its whole length from a moment after the request was sent.
    Yes,
    /// There is no lease, or the life is no member.
    No,
}

/// A request about this life's lease.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Take a lease and write the row that lives with it, guarded by this life being a member.
    Attach,
    /// Renew the lease. The answer has to come from the leader of a quorum: a leader that lost its
    /// followers goes on answering for up to an election's time. So the driver then reads the row
    /// linearizably, and takes the answer if the row is there and both answers have one term.
    Renew,
}

/// A task of the driver. It carries tasks out in the order of the actions. Before the first of them
/// it publishes [`Cluster::right`](crate::Cluster::right).
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Tell the helper on this machine the life, then report [`Event::Announced`].
    Announce(Life),
    /// Send a request about the lease to etcd.
    Lease {
        /// The number for the answer.
        request: RequestId,
        /// The request.
        kind: LeaseRequest,
    },
    /// Send a change to etcd.
    Change {
        /// The number for the answer.
        request: RequestId,
        /// The change with its guards.
        transaction: Transaction,
    },
    /// Write to etcd, without a guard, that this gateway knows this generation.
    Acknowledge(Generation),
    /// Send a message to a gateway. It may be lost.
    Send {
        /// The gateway.
        to: GatewayId,
        /// The message.
        message: Message,
    },
    /// Ask the helper on a gateway's machine whether a life of it runs. The question may be lost.
    AskHelper {
        /// The gateway.
        gateway: GatewayId,
        /// The time to return with the answer.
        asked: Mono,
    },
    /// Tell the helper on this machine that a life of another gateway is being condemned. The next
    /// action waits until the helper has it; if the helper can't be told, or does not know this
    /// life, the next action is dropped.
    Note(Life),
    /// Tell the helper on this machine that this is over.
    Unnote(Life),
    /// Blocklist the sessions of an ended life, then report [`Event::InForce`].
    Blocklist {
        /// The life.
        life: Life,
        /// Its sessions.
        sessions: Vec<SessionId>,
    },
    /// Make a group ready, then report [`Event::Adopted`].
    Adopt {
        /// The group.
        group: GroupId,
        /// How it came here: with a grace period or not, and after which epoch.
        came: Came,
    },
    /// Bring the addresses of a group to this machine, then report [`Event::Addressed`].
    Address(GroupId),
    /// Tell the clients that held locks on a group's volumes that it restarted (`SM_NOTIFY`).
    Notify(GroupId),
    /// Stop to serve a group, then report [`Event::Stopped`].
    Stop {
        /// The group.
        group: GroupId,
        /// The life that gets its locks and replies; none if the group is deleted.
        to: Option<Life>,
    },
    /// Serve a stopped group again.
    Resume(GroupId),
    /// Answer a command.
    Answer {
        /// The number of the command.
        number: u64,
        /// The answer.
        answer: Result<(), Refusal>,
    },
    /// End the process. There are no further actions.
    End(Reason),
}

/// Why a life has to end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Reason {
    /// It was condemned, or a later life of the gateway is a member.
    #[error("this life of the gateway was taken for dead, and its volumes are served elsewhere")]
    Condemned,
    /// Its sessions are blocklisted or lost.
    #[error("Ceph refuses the sessions of this gateway")]
    Blocklisted,
    /// The gateway's name belongs to another machine.
    #[error("another machine has this gateway's name; remove that gateway, or choose another name")]
    NameTaken,
    /// The records are in a newer version.
    #[error("the cluster's records are newer than this program; install a newer version")]
    Format,
    /// The cluster has as many gateways as it can.
    #[error("the cluster has as many gateways as it can; remove one")]
    Full,
    /// The records give a group away that this life serves.
    #[error("the cluster's records name another home for a volume that is served here")]
    HomesTaken,
}

/// A message from one gateway to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// The version of the message. One of a newer version than this program's is ignored.
    pub version: Version,
    /// The sender.
    pub from: Life,
    /// The content.
    pub body: Body,
}

/// The content of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Body {
    /// The sender is cut from etcd and asks for a promise.
    Ask {
        /// The time on the sender's clock, to return with the promise.
        asked: Mono,
        /// The sender has had no right to reply for some time.
        in_vain: bool,
    },
    /// The sender takes nothing over from a life for [`PROMISE`](crate::timing::PROMISE), from the
    /// arrival of the question.
    Promise {
        /// The life that asked.
        to: Life,
        /// The time that came with the question.
        asked: Mono,
    },
}

/// A word of the helper on a gateway's machine. The helper holds descriptors of the processes that
/// announced themselves to it; a helper that began later knows nothing, and says nothing. Before it
/// says that a life has ended, it removes the life's addresses from the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HelperWord {
    /// The version of the word.
    pub version: Version,
    /// The local state that the life has, so that a machine with another's name has no say.
    pub machine: MachineId,
    /// The gateway, and the latest life that was announced.
    pub life: Life,
    /// This life runs; otherwise it has ended, with all before it.
    pub runs: bool,
    /// The question that the word answers; none if the helper spoke by itself.
    pub answers: Option<Asked>,
}

/// A question to a helper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// The life that asked.
    pub by: Life,
    /// The time that came with the question.
    pub at: Mono,
    /// The ended life had begun to condemn the life that asked ([`Action::Note`]).
    pub noted: bool,
}
