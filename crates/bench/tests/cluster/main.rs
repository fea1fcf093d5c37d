//! Workers and their coordinator over pipes and sockets, on a small server: what they do together
//! adds up, and whatever happens to one of them the result says so.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crew;
mod links;
mod losses;
mod relay;
#[expect(dead_code, reason = "shared with the tests of the engines, which use all of it")]
#[path = "../../../load/tests/engine/responder.rs"]
mod responder;
mod together;
