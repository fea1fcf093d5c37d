//! The fields of the SMB2 header that signing reads and writes (MS-SMB2 §2.2.1). Not its codec:
//! that is of the messages' module.

use super::CryptoError;

/// Length of the header, and the offset of the signature that ends it.
pub(super) const HEADER_BYTES: usize = 64;
const STATUS_AT: usize = 8;
const COMMAND_AT: usize = 12;
const FLAGS_AT: usize = 16;
const MESSAGE_ID_AT: usize = 24;
const SIGNATURE_AT: usize = 48;

const ASYNC: u32 = 0x2;
const SIGNED: u32 = 0x8;
const CANCEL: u16 = 0x000C;
const STATUS_PENDING: u32 = 0x0000_0103;
/// The message id of a notification, which answers no request.
const UNSOLICITED: u64 = u64::MAX;

/// The header of a message, for signing.
pub(super) struct Header<'a>(&'a mut [u8; HEADER_BYTES]);

impl<'a> Header<'a> {
    pub(super) fn of(message: &'a mut [u8]) -> Result<Self, CryptoError> {
        message.first_chunk_mut().map(Self).ok_or(CryptoError::TooShort)
    }

    pub(super) fn message_id(&self) -> u64 {
        u64::from_le_bytes(self.field(MESSAGE_ID_AT))
    }

    pub(super) fn is_cancel(&self) -> bool {
        u16::from_le_bytes(self.field(COMMAND_AT)) == CANCEL
    }

    /// Is it a response before the final one, or a notification?
    pub(super) fn is_never_signed(&self) -> bool {
        let is_pending = u32::from_le_bytes(self.field(STATUS_AT)) == STATUS_PENDING;
        self.message_id() == UNSOLICITED || is_pending && self.flags() & ASYNC != 0
    }

    pub(super) fn set_signed(&mut self) {
        let flags = self.flags() | SIGNED;
        self.set(FLAGS_AT, flags.to_le_bytes());
    }

    pub(super) fn signature(&self) -> [u8; 16] {
        self.field(SIGNATURE_AT)
    }

    pub(super) fn set_signature(&mut self, signature: [u8; 16]) {
        self.set(SIGNATURE_AT, signature);
    }

    fn flags(&self) -> u32 {
        u32::from_le_bytes(self.field(FLAGS_AT))
    }

    fn field<const N: usize>(&self, at: usize) -> [u8; N] {
        self.0.get(at..).and_then(|rest| rest.first_chunk()).copied().unwrap_or([0; N])
    }

    fn set<const N: usize>(&mut self, at: usize, value: [u8; N]) {
        if let Some(field) = self.0.get_mut(at..).and_then(|rest| rest.first_chunk_mut()) {
            *field = value;
        }
    }
}
