//! Load from several processes, on one machine or many: workers that apply it and one coordinator
//! that has them start together and makes one result of theirs.
//!
//! [`Worker`] and [`Coordinator`] speak over any pair of byte streams ([`Halves`]): sockets
//! ([`listen()`], [`Launch`]) and pipes of children, ssh among them. What is *not* here: how load
//! is applied, which is the engine's, and which steps there are, which is the suite's.

mod auth;
mod clock;
mod coordinator;
mod greet;
mod launch;
mod link;
mod listen;
mod machine;
mod wire;
mod worker;

pub use auth::{Nonce, Role, Tag, Token};
pub use clock::{Clock, Exchange, Reading};
pub use coordinator::Coordinator;
pub use greet::{GreetError, Identity, greet, welcome};
pub use launch::{Connected, Launch, Offspring, PORT, Place, Wanted};
pub use link::{Halves, Patience};
pub use listen::{Happened, listen};
pub use machine::this as this_machine;
pub use wire::{Assigned, Kind, Message, Order, PROTOCOL, Preparation, Report, Welcome, WireError};
pub use wire::{encode, receive, send};
pub use worker::{Farewell, Worker};
