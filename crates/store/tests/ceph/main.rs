//! The store on CephFS: the promises of every store, random operations against the model, and what
//! only CephFS has. They need a cluster, whose configuration file `WEIR_CEPH_CONF` names; without
//! one they say so and do nothing. `tests/cluster/ceph-store.sh` starts one and runs them.
#![cfg(test)]

#[path = "../store/acl.rs"]
mod acl;
mod common;
mod details;
mod faults;
mod gateways;
mod hard_links;
mod model;
mod names;
mod operations;
#[path = "../store/player.rs"]
mod player;
#[path = "../store/promises.rs"]
mod promises;
#[path = "../store/this.rs"]
mod this;
mod usage;
mod user;
