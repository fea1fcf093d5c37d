//! Links: connections over which the gateways of a cluster exchange messages.
//!
//! A link is TCP with mutual TLS 1.3. All gateways of a cluster have the same key file
//! ([`KeyFile`]); whoever has it is trusted as any gateway. From its key each gateway derives the
//! same certificate authority, and makes a certificate of its own for each of its lives
//! ([`Identity`]). Certificates do not depend on the time of day, so that a clock that jumps cuts
//! no link. After the handshake the gateway that dialled introduces itself ([`Hello`]), and both
//! agree on the newest version of the messages that both know. Then either sends frames
//! ([`Frames`]) with messages, such as the words on which the right to reply rests ([`Word`]). A
//! gateway keeps a link to each other one ([`Mesh`]).
//!
//! The helper on a gateway's machine has links, too: others ask it, and it tells them by itself.
//! Its certificate is another than that of the gateway ([`Role`]), and each accepts from the other
//! the words alone that are the other's to say.
//!
//! A gateway also asks others for what they alone know, such as their metrics ([`Link::ask`]). That
//! is a connection of its own, of the same kind and to the same address, so that answers delay no
//! word.
//!
//! Every length is checked before memory is allocated for it. A peer that has not introduced itself
//! within [`HANDSHAKE_TIME`] is refused, and one that begins a frame has [`FRAME_TIME`] to
//! complete it.
//!
//! Not here: what the words mean, which links there are, and when a gateway is believed dead
//! (`weir-cluster`). A link that breaks says nothing about the life of the peer.
#![forbid(unsafe_code)]

mod bytes;
mod frames;
mod hello;
#[cfg(feature = "net")]
mod identity;
#[cfg(feature = "net")]
mod key_file;
#[cfg(feature = "net")]
mod link;
#[cfg(feature = "net")]
mod mesh;
mod name;
#[cfg(feature = "net")]
mod places;
mod words;

pub use frames::{FRAME_BYTES_MAX, Frames, TooLong, framed};
pub use hello::{Answer, Hello, Malformed, VERSION_OLDEST};
#[cfg(feature = "net")]
pub use identity::Identity;
#[cfg(feature = "net")]
pub use key_file::{KeyFile, KeyFileError};
#[cfg(feature = "net")]
pub use link::{FRAME_TIME, HANDSHAKE_TIME, Incoming, Link, LinkError, Outgoing, Peer, Stream};
#[cfg(feature = "net")]
pub use mesh::{HANDSHAKES_ADDRESS_MAX, Heard, LINKS_MAX, Mesh, QUESTIONS_MAX, QUEUED_MAX, Reply};
pub use name::{Name, Role};
pub use words::{Word, WordError};
