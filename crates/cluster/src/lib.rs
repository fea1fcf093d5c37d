//! The rules by which several gateways serve the volumes of one CephFS, with one catalogue in etcd.
//!
//! # The protocol
//!
//! Volumes and addresses that belong together are a [group](GroupId), and each group has one
//! [home](Home): one [life](Life) of one gateway, which alone replies for it. The homes stand in
//! etcd, in [`Records`]; every [change](Change) of them is guarded by their generation.
//!
//! **The right to reply.** A gateway may reply until an instant ([`Right`]), checked before every
//! send. It is the later of two:
//!
//! - its *lease* in etcd, counted from before the request that renewed it;
//! - the *words* of all other members that it knows, each counted from before the question. A word
//!   is a member's promise to take nothing over, or its machine's helper saying that no life of it
//!   runs. A gateway asks for words while it is cut from etcd. A gateway that is the only member
//!   needs none.
//!
//! **Death.** A member is *condemned* by a change, which holds for good. There are two reasons: the
//! helper on its machine says that the process has ended; or it has no lease, and another member
//! *vouches* that it has no words either. A member vouches by itself: it has promised nothing and
//! refuses to from now on, and the dead life had acknowledged its membership, so it needs that
//! member's word. While a change that condemns a life is under way, or its outcome unknown, its
//! author refuses to promise to that life, and so does the author's helper after the author's end
//! ([`Action::Note`]). A life of a gateway that follows another waits as long as a promise binds
//! before it vouches, and gives words only as a member.
//!
//! **Takeover.** A condemned life leaves a [`Fence`]: its sessions with Ceph are blocklisted, until
//! it is known to be gone; when the blocklist is in force, its groups get new homes; these make the
//! volumes ready, bring the addresses, then notify the clients. Any live gateway may do this common
//! work; the first begins at once, the next later.
//!
//! **Moves.** A home that is to give a group away stops to reply for it, hands over its locks and
//! replies, and then writes the new home.
//!
//! **A new life** registers as a member and makes a fence of the one before. A life that sees
//! itself condemned, or that Ceph refuses, [ends](Action::End); the gateway starts anew.
//!
//! # The interface
//!
//! [`Cluster::step`] takes an [`Event`] and the time, and returns [`Action`]s. Not here: I/O,
//! clocks, threads, encodings, and knowledge of volumes beyond a group's weight. The crate is
//! `no_std`, so the compiler holds that line. The tests simulate whole clusters (`sim`).
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]

extern crate alloc;

mod change;
mod cluster;
mod command;
mod event;
mod fencing;
mod hosting;
mod id;
mod lease;
mod peers;
mod placement;
mod records;
mod right;
#[cfg(test)]
mod sim;
mod steward;
pub mod timing;
mod words;

pub use change::{Change, Registration, Transaction};
pub use cluster::Cluster;
pub use command::{Command, Refusal};
pub use event::{
    Action, Asked, Body, Event, HelperWord, Kept, LeaseRequest, Message, Reason, Start,
};
pub use id::{
    Barrier, GatewayId, Generation, GroupId, InvalidSession, Life, MachineId, RequestId, SessionId,
    Version,
};
pub use records::{Came, Fence, Gateway, Group, Home, Member, Records, Standing, View};
pub use right::{Right, SharedRight};
