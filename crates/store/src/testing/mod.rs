//! A kernel that fails on demand, for tests: under the store instead of over it, so that what is
//! tested is the store that serves, with nothing in its way when it is not under test.
//!
//! [`Kernel::under`] runs a closure, and every thread it starts, such that the system calls by
//! which the store touches the disk come to this module first (seccomp's user notification). By
//! [`Rule`]s, which may change at any time, they then fail, move less than was asked, or wait; all
//! others go on to the real kernel. [`PowerCut`] watches the syncs among them and can take back
//! everything that none of them covered.
//!
//! Not here: faults of the real kernel (see `tests/store/failing.rs`), and anything that a server
//! runs with.

mod call;
mod kernel;
#[expect(unsafe_code, reason = "the system calls that rustix lacks")]
mod notify;
mod power;
mod rules;

pub use call::Kind;
pub use kernel::Kernel;
pub use power::PowerCut;
pub use rules::{Fault, Rule, RuleId, When};
