//! Load from several processes, on one machine or many: workers apply it, and one coordinator
//! starts them at the same time and combines their results.
//!
//! [`Worker`] and [`Coordinator`] use any pair of byte streams ([`Halves`]): in practice the
//! pipes of children, ssh among them ([`Launch`]). Not here: the application of load, which is
//! the engine's, and the steps of a test, which are the suite's.

mod clock;
mod coordinator;
mod greet;
mod launch;
mod link;
mod machine;
mod wire;
mod worker;

pub use clock::{Clock, Exchange, Reading};
pub use coordinator::Coordinator;
pub(crate) use coordinator::{Hand, check_lengths, deal};
pub use greet::{GreetError, Identity, greet, welcome};
pub use launch::{Connected, Launch, Offspring, Program, Wanted, WorkerPlace};
pub use link::{Halves, Patience};
pub use machine::this as this_machine;
pub use wire::{Assigned, Kind, Message, Order, PROTOCOL, Preparation, Report, Welcome, WireError};
pub use wire::{encode, receive, send};
pub use worker::{Farewell, Worker};
