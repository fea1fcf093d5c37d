//! NFSv3 as a client sees it: every call goes as a record through framing, RPC, routing and
//! `serve` over the reference store, and comes back as one.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod acl;
mod cost;
mod files;
mod hostile;
mod listing;
mod names;
mod volume;
mod world;
