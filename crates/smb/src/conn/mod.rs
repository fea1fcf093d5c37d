//! The state of one connection (MS-SMB2 §3.3.1.7): what was negotiated, and the message ids that
//! the client may use.

mod credits;
mod negotiate;
mod throttle;

pub use credits::{CREDITS_MAX, Credits, NotGranted};
pub use negotiate::{Greeting, Negotiated, upgrade};
pub use throttle::{LONGEST, Throttle};
