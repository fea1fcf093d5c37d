//! SMB 3.1.1 as bytes and rules (MS-SMB2): messages, authentication, signing and sealing, sessions
//! and operations over a [`Store`](weir_core::Store).
//!
//! Not here: sockets, clocks, threads, a runtime, a provider of cryptography (it reaches this crate
//! as a trait), share rules and performance contracts. Bytes come in as slices, replies go out as
//! `Vec<u8>`; the crate is `no_std` + `alloc`, so the compiler holds that line.
//!
//! Everything a peer sends is hostile: lengths, counts and offsets are checked against what is left
//! and against a named bound ([`limits`]) before anything is allocated, and nothing here panics on
//! input.
#![cfg_attr(not(any(test, feature = "testing")), no_std)]
#![forbid(unsafe_code)]
#![cfg_attr(not(test), deny(clippy::indexing_slicing, clippy::arithmetic_side_effects))]

extern crate alloc;

pub mod auth;
pub mod conn;
pub mod crypto;
pub mod frame;
pub mod fscc;
pub mod host;
pub mod le;
pub mod limits;
pub mod open;
pub mod ops;
pub mod pipe;
pub mod route;
pub mod security;
pub mod utf16;
pub mod wire;

pub use weir_smb_names as names;
