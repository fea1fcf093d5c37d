//! OPLOCK_BREAK (MS-SMB2 §2.2.23 to §2.2.25). Not here: notifications of leases, because none is
//! granted; an acknowledgement of one is still read, to be refused.

use super::codec::{Cursor, layout};
use super::header::HEADER_BYTES;
use super::{FileId, LeaseState, OplockLevel, WireError};

/// The break of an oplock: notification (§2.2.23.1), acknowledgement (§2.2.24.1) and response
/// (§2.2.25.1) have the same form.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OplockBreak {
    /// The level to which the oplock goes down.
    pub level: OplockLevel,
    /// The open.
    pub file: FileId,
}

layout!(both OplockBreak = 24: level, 5 file);

/// The acknowledgement that a lease is broken (§2.2.24.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LeaseBreakAck {
    /// The client's key for the file.
    pub key: [u8; 16],
    /// The caching that is left.
    pub state: LeaseState,
}

layout!(request LeaseBreakAck = 36: 6 key, state; 8);

/// An OPLOCK_BREAK request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OplockBreakRequest {
    /// An oplock is broken.
    Oplock(OplockBreak),
    /// A lease is broken.
    Lease(LeaseBreakAck),
}

impl OplockBreakRequest {
    /// Reads the message, which begins at its header; its structure size distinguishes the two
    /// (MS-SMB2 §2.2.24).
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut input = Cursor::new(message, 0);
        input.skip(HEADER_BYTES)?;
        match input.get::<u16>()? {
            36 => LeaseBreakAck::decode(message).map(Self::Lease),
            _ => OplockBreak::decode(message).map(Self::Oplock),
        }
    }
}
