//! The load of a campaign: a client for each volume, the account of what was acknowledged, and who
//! answered on the wire. Not here: what happens to the cluster, and what is expected of it then.

mod client;
mod course;
mod holding;
mod ledger;
mod names;
pub(crate) mod rules;
mod wire;

pub(crate) use client::{File, Outcome, Running, Target, Work};
pub(crate) use course::{Break, Course, Span};
pub(crate) use holding::Holding;
pub(crate) use names::{Named, Names, Naming};
pub(crate) use rules::{Owners, UNREACHABLE};
pub(crate) use wire::{Seen, Senders, Wire};
