//! NLM as a client sees it: every call goes as a record through RPC, `Request` and `LockManager`,
//! and comes back as one; callbacks are read as a client reads them.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod callbacks;
mod hostile;
mod hosts;
mod locking;
mod world;
