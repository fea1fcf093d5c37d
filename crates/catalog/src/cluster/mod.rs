//! The catalogue of a cluster: what several gateways share through a store such as etcd.
//!
//! Each gateway runs the rules on a database of its own, in memory. A change runs there first, in a
//! transaction; the rows that it touched then go to the shared store as [documents](document), in
//! one transaction that is guarded by the [head](envelope::Head), and only after that the local
//! transaction is committed. The other gateways apply the documents that they are told of
//! ([`link`]). A change that is too large for one transaction of the store is staged in chunks
//! under an intent, and becomes valid with one last transaction ([`large`]).
//!
//! The keys in the store, all under `/weir/CLUSTER/catalog/`:
//!
//! | key | value |
//! |---|---|
//! | `head` | format, generation, instance and counters of ids; every guarded change replaces it |
//! | `last/GATEWAY` | the last change of each gateway, by which it finds a lost answer |
//! | `rows/TABLE/KEY` | a row with the rows that belong to it |
//! | `secrets/NAME` | a secret, sealed by the key of the cluster ([`key`]) |
//! | `intent`, `staged/CHANGE/NUMBER` | a large change that is under way |
//! | `clock` | written with each transaction by a store that needs it, and seen by no other |
//!
//! Beside them, at `/weir/CLUSTER/follows/GATEWAY`, stands how far each gateway follows
//! ([`follows`]).
//!
//! Not here: the client of etcd, which implements [`ClusterStore`]; membership and homes; and the
//! trees of volumes.

mod capture;
mod document;
mod envelope;
mod follows;
mod key;
mod large;
mod link;
mod store;
mod tables;
mod vault;

pub use follows::Followed;
pub use key::ClusterKey;
pub use link::{ClusterPlace, LifeGuard};
pub use store::{
    Changes, ClusterStore, Decision, Event, Guard, Listing, OPERATIONS_MAX, Operation, Pair,
    StoreError, TRANSACTION_BYTES_MAX,
};

pub(crate) use capture::{clear, counters, install, set_counters, whole};
pub(crate) use envelope::{Head, write};
pub(crate) use key::Secret;
pub(crate) use link::{Link, Reach, State, copy, prefix_of};
pub(crate) use tables::COUNTED;
pub(crate) use vault::Vault;
