//! The header of every SMB2 message (MS-SMB2 §2.2.1), and the protocols by their first bytes.

use super::codec::{Cursor, bits};
use super::{Command, Status, UnknownCommand, WireError};
use alloc::vec::Vec;
use core::ops::Range;

/// Bytes of a header; bodies begin right after it.
pub const HEADER_BYTES: usize = 64;

/// The place of the signature in a message.
pub const SIGNATURE_AT: Range<usize> = 48..64;

/// The place of `NextCommand` in a message.
pub(crate) const NEXT_COMMAND_AT: usize = 20;

/// The first bytes of an SMB2 header.
pub(super) const SMB2: [u8; 4] = *b"\xfeSMB";

/// The first bytes of a sealed frame (MS-SMB2 §2.2.41).
pub(crate) const SEALED: [u8; 4] = *b"\xfdSMB";

/// The protocol of a frame, by its first four bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Protocol {
    /// SMB1: served only as the first message, to upgrade ([`super::Smb1Negotiate`]).
    Smb1,
    /// SMB2: a chain of messages ([`super::Chain`]).
    Smb2,
    /// A sealed frame ([`Transform`](crate::crypto::Transform)).
    Sealed,
    /// A compressed frame (§2.2.42). Compression is never negotiated, so it is refused.
    Compressed,
}

impl Protocol {
    /// The protocol of `frame`.
    ///
    /// # Errors
    /// [`WireError::Protocol`] if it is none of these, [`WireError::Truncated`].
    #[inline]
    pub fn of(frame: &[u8]) -> Result<Self, WireError> {
        match Cursor::new(frame, 0).array()? {
            SMB2 => Ok(Self::Smb2),
            [0xff, b'S', b'M', b'B'] => Ok(Self::Smb1),
            SEALED => Ok(Self::Sealed),
            [0xfc, b'S', b'M', b'B'] => Ok(Self::Compressed),
            found => Err(WireError::Protocol { found }),
        }
    }
}

bits! {
    /// The flags of a header (MS-SMB2 §2.2.1).
    pub struct HeaderFlags: u32 {
        /// The message is a response (`SMB2_FLAGS_SERVER_TO_REDIR`).
        const RESPONSE = 0x0000_0001;
        /// The header has the asynchronous form, [`TreeOrAsync::Async`].
        const ASYNC = 0x0000_0002;
        /// The message continues the one before it in its compound.
        const RELATED = 0x0000_0004;
        /// The message is signed.
        const SIGNED = 0x0000_0008;
        /// The priority of the request, three bits.
        const PRIORITY = 0x0000_0070;
        /// The path is one of DFS.
        const DFS = 0x1000_0000;
        /// The request repeats one whose reply was lost.
        const REPLAY = 0x2000_0000;
    }
}

/// The part of a header in which its two forms differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TreeOrAsync {
    /// The tree connect, by its id (§2.2.1.2). The process id before it is reserved.
    Tree(u32),
    /// The operation, by the id that its interim response gave it (§2.2.1.1).
    Async(u64),
}

/// The header of a message (MS-SMB2 §2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Credits that the request costs; zero counts as one.
    pub credit_charge: u16,
    /// The outcome, in responses. In requests its lower half is the channel sequence.
    pub status: Status,
    /// The command. An unknown number is kept: a server ends the connection for it (§3.3.5.2.6).
    pub command: Result<Command, UnknownCommand>,
    /// Credits requested or granted.
    pub credits: u16,
    /// The flags. [`HeaderFlags::ASYNC`] agrees with `tree`.
    pub flags: HeaderFlags,
    /// Bytes from this header to the next in a compound; zero in the last.
    pub next_command: u32,
    /// The number of the request on its connection.
    pub message_id: u64,
    /// The tree connect or the asynchronous operation.
    pub tree: TreeOrAsync,
    /// The session.
    pub session_id: u64,
    /// The signature, if [`HeaderFlags::SIGNED`].
    pub signature: [u8; 16],
}

impl Header {
    /// The tree connect; 0 in the asynchronous form, which has none.
    #[must_use]
    pub const fn tree_id(&self) -> u32 {
        match self.tree {
            TreeOrAsync::Tree(id) => id,
            TreeOrAsync::Async(_) => 0,
        }
    }

    /// Reads the header at the front of `message`.
    ///
    /// # Errors
    /// [`WireError::Protocol`], [`WireError::StructureSize`], [`WireError::Truncated`].
    #[inline]
    pub fn decode(message: &[u8]) -> Result<Self, WireError> {
        let mut input = Cursor::new(message, 0);
        match input.array()? {
            SMB2 => {}
            found => return Err(WireError::Protocol { found }),
        }
        let found = input.get()?;
        if usize::from(found) != HEADER_BYTES {
            return Err(WireError::StructureSize { expected: 64, found });
        }
        let credit_charge = input.get()?;
        let status = input.get()?;
        let command = Command::of(input.get()?);
        let credits = input.get()?;
        let flags: HeaderFlags = input.get()?;
        let next_command = input.get()?;
        let message_id = input.get()?;
        let tree = if flags.contains(HeaderFlags::ASYNC) {
            TreeOrAsync::Async(input.get()?)
        } else {
            input.skip(4)?;
            TreeOrAsync::Tree(input.get()?)
        };
        let session_id = input.get()?;
        let signature = input.get()?;
        Ok(Self {
            credit_charge,
            status,
            command,
            credits,
            flags,
            next_command,
            message_id,
            tree,
            session_id,
            signature,
        })
    }

    /// The header's bytes.
    #[inline]
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let command = match self.command {
            Ok(command) => command as u16,
            Err(UnknownCommand(number)) => number,
        };
        let (is_async, tree) = match self.tree {
            TreeOrAsync::Tree(id) => (false, u64::from(id) << 32),
            TreeOrAsync::Async(id) => (true, id),
        };
        let mut flags = self.flags;
        flags.set(HeaderFlags::ASYNC, is_async);
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..4].copy_from_slice(&SMB2);
        bytes[4..6].copy_from_slice(&[64, 0]);
        bytes[6..8].copy_from_slice(&self.credit_charge.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.status.0.to_le_bytes());
        bytes[12..14].copy_from_slice(&command.to_le_bytes());
        bytes[14..16].copy_from_slice(&self.credits.to_le_bytes());
        bytes[16..20].copy_from_slice(&flags.bits().to_le_bytes());
        bytes[20..24].copy_from_slice(&self.next_command.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.message_id.to_le_bytes());
        bytes[32..40].copy_from_slice(&tree.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.session_id.to_le_bytes());
        bytes[48..64].copy_from_slice(&self.signature);
        bytes
    }

    /// Appends the header.
    #[inline]
    pub fn encode(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.to_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::le::Truncated;
    use crate::wire::samples::hex;

    fn sync() -> (Header, Vec<u8>) {
        let header = Header {
            credit_charge: 2,
            status: Status(0x0000_0005),
            command: Ok(Command::Read),
            credits: 31,
            flags: HeaderFlags::SIGNED | HeaderFlags::RELATED,
            next_command: 0x78,
            message_id: 0x0102_0304_0506_0708,
            tree: TreeOrAsync::Tree(0x1122_3344),
            session_id: 0x0000_0400_0000_0001,
            signature: *b"0123456789abcdef",
        };
        let bytes = hex("fe534d42 4000 0200 05000000 0800 1f00 0c000000 78000000
             0807060504030201 00000000 44332211 0100000000040000
             30313233343536373839616263646566");
        (header, bytes)
    }

    #[test]
    fn a_synchronous_header_names_its_tree() {
        let (header, bytes) = sync();
        assert_eq!(Header::decode(&bytes), Ok(header));
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn an_asynchronous_header_has_one_id_of_eight_bytes() {
        let (mut header, mut bytes) = sync();
        header.tree = TreeOrAsync::Async(0x99aa_bbcc_1122_3344);
        header.flags = HeaderFlags::RESPONSE | HeaderFlags::ASYNC;
        header.status = Status::PENDING;
        bytes[8..12].copy_from_slice(&hex("03010000"));
        bytes[16..20].copy_from_slice(&hex("03000000"));
        bytes[32..40].copy_from_slice(&hex("44332211 ccbbaa99"));
        assert_eq!(Header::decode(&bytes), Ok(header));
        header.flags = HeaderFlags::RESPONSE;
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out, bytes, "the form sets the flag");
    }

    #[test]
    fn the_process_id_is_ignored() {
        let (header, mut bytes) = sync();
        bytes[32..36].copy_from_slice(&hex("fffe0000"));
        assert_eq!(Header::decode(&bytes), Ok(header));
    }

    #[test]
    fn an_unknown_command_survives() {
        let (mut header, mut bytes) = sync();
        bytes[12] = 19;
        header.command = Err(UnknownCommand(19));
        assert_eq!(Header::decode(&bytes), Ok(header));
        let mut out = Vec::new();
        header.encode(&mut out);
        assert_eq!(out, bytes);
    }

    #[test]
    fn other_protocols_and_sizes_are_refused() {
        let (_, bytes) = sync();
        for (at, value) in [(0, 0xff), (1, b's'), (4, 65), (5, 1)] {
            let mut bytes = bytes.clone();
            bytes[at] = value;
            assert!(Header::decode(&bytes).is_err(), "byte {at}");
        }
        for len in 0..64 {
            assert!(Header::decode(&bytes[..len]).is_err(), "{len} bytes");
        }
    }

    #[test]
    fn protocols_are_told_by_their_first_byte() {
        assert_eq!(Protocol::of(b"\xfeSMB@"), Ok(Protocol::Smb2));
        assert_eq!(Protocol::of(b"\xffSMBr"), Ok(Protocol::Smb1));
        assert_eq!(Protocol::of(b"\xfdSMB"), Ok(Protocol::Sealed));
        assert_eq!(Protocol::of(b"\xfcSMB"), Ok(Protocol::Compressed));
        assert_eq!(Protocol::of(b"GET / HTTP/1.1"), Err(WireError::Protocol { found: *b"GET " }));
        assert_eq!(Protocol::of(b"\xfeSM"), Err(Truncated { needed: 4, left: 3 }.into()));
    }
}
