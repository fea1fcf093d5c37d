//! The client of etcd: one connection to all members, and the records of a cluster over it.
//!
//! - [`Connection`] is the part that everything shares which stands in etcd: reads, transactions
//!   ([`Condition`], [`Write`]), watches ([`Watch`]). It knows no row.
//! - [`RecordsClient`] carries out what the rules ask of etcd (`weir-cluster`): views, changes, the
//!   lease, acknowledgements. [`Follower`] tells every new view.
//!
//! Every call ends by itself. It begins at the member that answered last; while that one is silent,
//! the others are asked beside it, so that a member that is down or stopped costs [`NEXT_MEMBER`].
//!
//! Not here: rules, and the encoding of rows.

mod connection;
mod error;
mod lease;
mod read;
mod records;
mod settings;
mod watch;

pub use connection::{CALL_WITHIN, Committed, Condition, Connection, NEXT_MEMBER, Write};
pub use error::EtcdError;
pub use read::{Listing, Pair};
pub use records::{Follower, RecordsClient, RecordsError};
pub use settings::{Login, Settings, SettingsError, Tls};
pub use watch::{Changes, Event, Watch};
