//! The records of a cluster as rows of etcd: keys, values, and transactions with their guards.
//!
//! All keys of a cluster begin with its prefix ([`Keys`]). Values are JSON, so that an operator can
//! read them with etcd's own tools; each carries the version in which it is written. A row that is
//! damaged, foreign, or of a newer version is refused with its key and the reason ([`RowError`]):
//! nothing is guessed, and nothing is written over it.
//!
//! | key below the prefix | value |
//! |---|---|
//! | `cluster/generation` | the number of the changes so far; all changes are guarded by it |
//! | `cluster/format` | the version in which all rows are written |
//! | `cluster/gateway/00007` | a gateway that has joined: its life, its fences |
//! | `cluster/group/0000000012` | volumes and addresses that move together: weight, home |
//! | `cluster/life/00007` | the number of the life that has a lease; gone with the lease |
//! | `cluster/knows/00007` | the generation that a gateway acknowledged |
//!
//! With the feature `client` there is the connection to etcd too (`Connection`,
//! `RecordsClient`). Not here: the rules (`weir-cluster`).
#![forbid(unsafe_code)]

#[cfg(feature = "catalog")]
mod catalog;
#[cfg(feature = "client")]
mod client;
mod keys;
mod read;
mod row;
#[cfg(test)]
mod testing;
mod write;

#[cfg(feature = "catalog")]
pub use catalog::EtcdStore;
#[cfg(feature = "client")]
pub use client::{
    CALL_WITHIN, Changes, Committed, Condition, Connection, EtcdError, Event, Follower, Listing,
    Login, NEXT_MEMBER, Pair, RecordsClient, RecordsError, Settings, SettingsError, Tls, Watch,
    Write,
};
pub use keys::{InvalidPrefix, Keys};
pub use read::{RowError, Rows};
pub use write::{Guard, OPERATIONS_MAX, Operation, TooMany, Writes};
