//! QUERY_INFO (MS-SMB2 §2.2.37). The response is [`super::OutputReply`].

#[cfg(any(test, feature = "client"))]
use super::codec::Field;
use super::codec::{Cursor, Payload, bits, named};
use super::{FileId, WireError};
#[cfg(any(test, feature = "client"))]
use crate::le::length;
#[cfg(any(test, feature = "client"))]
use alloc::vec::Vec;

named! {
    /// The kind of information, in QUERY_INFO and SET_INFO.
    pub struct InfoType: u8 {
        /// Of a file.
        FILE = 1,
        /// Of a file system.
        FILESYSTEM = 2,
        /// A security descriptor.
        SECURITY = 3,
        /// Quotas.
        QUOTA = 4,
    }
}

bits! {
    /// The parts of a security descriptor, in QUERY_INFO and SET_INFO (MS-SMB2 §2.2.37,
    /// §2.2.39; MS-DTYP §2.4.7).
    pub struct SecurityInformation: u32 {
        /// The owner.
        const OWNER = 0x0000_0001;
        /// The group.
        const GROUP = 0x0000_0002;
        /// The DACL.
        const DACL = 0x0000_0004;
        /// The SACL.
        const SACL = 0x0000_0008;
        /// The integrity label.
        const LABEL = 0x0000_0010;
        /// The resource attributes.
        const ATTRIBUTE = 0x0000_0020;
        /// The central access policy.
        const SCOPE = 0x0000_0040;
        /// Everything, for a backup.
        const BACKUP = 0x0001_0000;
    }

    /// The flags of QUERY_INFO, for extended attributes.
    pub struct QueryInfoFlags: u32 {
        /// The listing begins again.
        const RESTART_SCAN = 1;
        /// One entry is enough.
        const RETURN_SINGLE_ENTRY = 2;
        /// The listing begins at an index.
        const INDEX_SPECIFIED = 4;
    }
}

/// QUERY_INFO request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueryInfoRequest<'a> {
    /// The kind of information.
    pub info_type: InfoType,
    /// The class of the information, by its number (MS-FSCC §2.4, §2.5).
    pub class: u8,
    /// The most bytes to come back.
    pub max_output: u32,
    /// The input, for quotas and extended attributes.
    pub input: Payload<'a>,
    /// The parts of a security descriptor.
    pub security: SecurityInformation,
    /// The flags.
    pub flags: QueryInfoFlags,
    /// The open.
    pub file: FileId,
}

const REQUEST: u16 = 41;

impl<'a> QueryInfoRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let info_type = body.get()?;
        let class = body.get()?;
        let max_output = body.get()?;
        let input_at: u16 = body.get()?;
        body.skip(2)?;
        let input_len: u32 = body.get()?;
        let security = body.get()?;
        let flags = body.get()?;
        let file = body.get()?;
        let input = body.part("input buffer", input_at.into(), input_len as usize)?;
        Ok(Self { info_type, class, max_output, input, security, flags, file })
    }

    /// Appends the body. The place in `input` is not used.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        const INPUT_AT: u16 = 104;
        REQUEST.put(out);
        self.info_type.put(out);
        self.class.put(out);
        self.max_output.put(out);
        INPUT_AT.put(out);
        0u16.put(out);
        length::<u32>(self.input.bytes.len()).put(out);
        self.security.put(out);
        self.flags.put(out);
        self.file.put(out);
        out.extend_from_slice(self.input.bytes);
    }

    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        let input = u32::try_from(self.input.bytes.len()).unwrap_or(u32::MAX);
        input.max(self.max_output)
    }
}
