//! The one door to atomics in this crate. Nothing else imports `core::sync`; the box of a
//! [history](crate::history) comes from `once_cell`, and the meter's lock guards it. With the
//! feature `schedules`, which only tests set, a scheduler that explores interleavings is behind
//! it.

#[cfg(not(feature = "schedules"))]
pub(crate) use core::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
};
#[cfg(feature = "schedules")]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::atomic::{AtomicBool, AtomicU8, AtomicU32, AtomicU64, Ordering},
};
