//! SET_INFO (MS-SMB2 §2.2.39, §2.2.40).

#[cfg(any(test, feature = "client"))]
use super::codec::Field;
use super::codec::{Cursor, Payload, layout};
use super::{FileId, InfoType, SecurityInformation, WireError};
#[cfg(any(test, feature = "client"))]
use crate::le::length;
#[cfg(any(test, feature = "client"))]
use alloc::vec::Vec;

/// SET_INFO request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetInfoRequest<'a> {
    /// The kind of information.
    pub info_type: InfoType,
    /// The class of the information, by its number (MS-FSCC §2.4, §2.5).
    pub class: u8,
    /// The information.
    pub info: Payload<'a>,
    /// The parts of a security descriptor.
    pub security: SecurityInformation,
    /// The open.
    pub file: FileId,
}

const REQUEST: u16 = 33;

impl<'a> SetInfoRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let info_type = body.get()?;
        let class = body.get()?;
        let (len, at): (u32, u16) = (body.get()?, body.get()?);
        body.skip(2)?;
        let security = body.get()?;
        let file = body.get()?;
        let info = body.part("information to set", at.into(), len as usize)?;
        Ok(Self { info_type, class, info, security, file })
    }

    /// Appends the body. The place in `info` is not used.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        const INFO_AT: u16 = 96;
        REQUEST.put(out);
        self.info_type.put(out);
        self.class.put(out);
        length::<u32>(self.info.bytes.len()).put(out);
        INFO_AT.put(out);
        0u16.put(out);
        self.security.put(out);
        self.file.put(out);
        out.extend_from_slice(self.info.bytes);
    }

    /// The larger payload of request and response, in bytes, by which the request is charged.
    #[must_use]
    pub fn payload_bytes(&self) -> u32 {
        u32::try_from(self.info.bytes.len()).unwrap_or(u32::MAX)
    }
}

/// SET_INFO response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SetInfoResponse;

layout!(response SetInfoResponse = 2: );
