//! Three gateways, each a process of its own, over a real etcd of three members, while processes
//! are killed and stopped, etcd is stopped, and links are cut.
//!
//! Each gateway notes every few milliseconds for which groups it may reply. In the end the notes of
//! all are laid beside each other: no two lives may ever have replied for one group at a time, a
//! stopped one counted until the end of its right ([`checks`]).
//!
//! `WEIR_GATEWAY_TIMES=50` runs each scenario so often.
#![cfg(test)]

mod bed;
mod checks;
#[path = "../../../etcd/tests/members/etcd.rs"]
mod etcd;
mod helper;
mod process;
mod proxy;
mod scenarios;
