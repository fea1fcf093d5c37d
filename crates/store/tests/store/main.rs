//! The store on real file systems: each promise, random operations against the model, coherence
//! of the caches under threads, and life without privilege.
#![cfg(test)]

mod acl;
mod acl_kernel;
mod alone;
mod births;
mod calls;
mod closing;
mod coherence;
mod common;
mod descriptors;
mod details;
mod failing;
mod folded;
mod formats;
mod idle;
mod model;
mod player;
mod promises;
mod semantics;
mod sparse;
mod this;
mod this_failing;
mod top;
mod usage;
