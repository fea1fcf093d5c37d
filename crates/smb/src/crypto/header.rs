//! The fields of the SMB2 header that signing reads and writes in place (MS-SMB2 §2.2.1). Not its
//! codec, which is [`wire::Header`](crate::wire::Header).

use super::CryptoError;
use crate::le::{array_at, patch, u16_at, u32_at, u64_at};
use crate::wire::{Command, HEADER_BYTES, HeaderFlags, SIGNATURE_AT, Status};

const STATUS_AT: usize = 8;
const COMMAND_AT: usize = 12;
const FLAGS_AT: usize = 16;
const MESSAGE_ID_AT: usize = 24;

/// The message id of a notification, which answers no request.
const UNSOLICITED: u64 = u64::MAX;

/// The header of a message, for signing. Every field is there: the offsets are constants.
pub(super) struct Header<'a>(&'a mut [u8; HEADER_BYTES]);

impl<'a> Header<'a> {
    pub(super) fn of(message: &'a mut [u8]) -> Result<Self, CryptoError> {
        message.first_chunk_mut().map(Self).ok_or(CryptoError::TooShort)
    }

    pub(super) fn message_id(&self) -> u64 {
        u64_at(self.0, MESSAGE_ID_AT).unwrap_or_default()
    }

    pub(super) fn is_cancel(&self) -> bool {
        u16_at(self.0, COMMAND_AT) == Some(Command::Cancel as u16)
    }

    /// Is it a response before the final one, or a notification?
    pub(super) fn is_never_signed(&self) -> bool {
        let is_pending = u32_at(self.0, STATUS_AT) == Some(Status::PENDING.0);
        self.message_id() == UNSOLICITED || is_pending && self.flags().contains(HeaderFlags::ASYNC)
    }

    pub(super) fn set_signed(&mut self) {
        let flags = self.flags() | HeaderFlags::SIGNED;
        patch(self.0, FLAGS_AT, &flags.bits().to_le_bytes());
    }

    pub(super) fn signature(&self) -> [u8; 16] {
        array_at(self.0, SIGNATURE_AT.start).unwrap_or_default()
    }

    pub(super) fn set_signature(&mut self, signature: [u8; 16]) {
        patch(self.0, SIGNATURE_AT.start, &signature);
    }

    fn flags(&self) -> HeaderFlags {
        HeaderFlags::from_bits_retain(u32_at(self.0, FLAGS_AT).unwrap_or_default())
    }
}
