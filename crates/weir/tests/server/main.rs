//! The built program as its clients meet it: each test starts a server of its own on loopback.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod again;
mod api;
mod backup;
mod bench;
mod calibrate;
mod contracts;
mod delete;
mod gateways;
mod hardening;
mod held;
mod hostile;
mod identity;
mod notify;
mod ownership;
mod peer;
mod rust_client;
mod shown;
mod sizes;
mod smb_faults;
mod smb_hostile;
mod smb_load;
mod smb_relay;
mod smb_share;
mod test_server;
mod verified;
mod wide;
