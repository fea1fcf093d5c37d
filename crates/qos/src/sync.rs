//! The door to atomics in this crate. Nothing else imports `core::sync`.

pub(crate) use core::sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering};
