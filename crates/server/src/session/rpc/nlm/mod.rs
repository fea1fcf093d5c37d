//! The lock manager beside NFSv3 (NLM) with its status monitor (NSM): the way of a call to the
//! locks, the hosts that must hear of a restart, and the calls to clients.
//!
//! The meaning of a call is decided in `weir_nfs::nlm`. Not here: sockets, and the tables of locks
//! ([`crate::locks`]).

mod calls;
mod counters;
mod hosts;
mod monitored;
mod outgoing;
mod service;

pub(crate) use calls::{LockReply, lock_call};
pub(crate) use counters::LockCounters;
pub(crate) use hosts::Hosts;
pub(crate) use monitored::Monitored;
pub(crate) use outgoing::Datagram;
pub(crate) use service::{Life, Service};
