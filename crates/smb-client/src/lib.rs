//! The client's side of SMB 3.1.1 (MS-SMB2 §3.2): connecting to a share ([`Setup`]), and requests
//! and responses on it ([`Channel`]), signed, sealed or plain.
//!
//! Not here: sockets, clocks, threads, a provider of cryptography, and a cache of anything: no
//! oplock and no lease is ever asked for. Messages are those of `weir-smb`. A channel is one
//! connection with one session and one tree connect.
//!
//! A server is hostile here too: lengths are checked before they are used, a response is accepted
//! once and only if it answers a request, and memory is bounded by the requests in flight.
#![cfg_attr(not(test), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

extern crate alloc;

mod answer;
mod channel;
mod error;
mod negotiate;
mod request;
mod setup;
mod window;

#[cfg(test)]
mod tests;

pub use answer::{Answer, ReadData};
pub use channel::{Channel, Sizes};
pub use error::{ClientError, SetupError};
pub use request::{Data, Open, Request, Write};
pub use setup::{Login, Progress, Security, Setup};
