//! SESSION_SETUP (MS-SMB2 §2.2.5, §2.2.6). Not here: the tokens it carries.

use super::codec::{Cursor, Field, Payload, bits, offset_in};
use super::{Capabilities, SecurityMode, WireError};
use crate::le::length;
use alloc::vec::Vec;

bits! {
    /// The flags of a SESSION_SETUP request.
    pub struct SessionSetupFlags: u8 {
        /// The connection joins an existing session as a channel.
        const BINDING = 1;
    }

    /// The flags of a SESSION_SETUP response.
    pub struct SessionFlags: u16 {
        /// The user is a guest.
        const IS_GUEST = 1;
        /// The user is anonymous.
        const IS_NULL = 2;
        /// The session's messages must be sealed.
        const ENCRYPT_DATA = 4;
    }
}

/// SESSION_SETUP request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSetupRequest<'a> {
    /// The flags.
    pub flags: SessionSetupFlags,
    /// Signing, from the client's side. The field has one byte here.
    pub security_mode: SecurityMode,
    /// The client's capabilities.
    pub capabilities: Capabilities,
    /// A session of the same client on an earlier connection, to be ended; zero for none.
    pub previous_session_id: u64,
    /// The token.
    pub token: Payload<'a>,
}

/// Bytes of the fixed parts.
const REQUEST: u16 = 25;
const RESPONSE: u16 = 9;

impl<'a> SessionSetupRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let flags = body.get()?;
        let security_mode = SecurityMode::from_bits_retain(u16::from(body.get::<u8>()?));
        let capabilities = body.get()?;
        body.skip(4)?;
        let (offset, len): (u16, u16) = (body.get()?, body.get()?);
        let previous_session_id = body.get()?;
        let token = body.part("security buffer", offset.into(), len.into())?;
        Ok(Self { flags, security_mode, capabilities, previous_session_id, token })
    }

    /// Appends the body.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let [security_mode, _] = self.security_mode.bits().to_le_bytes();
        REQUEST.put(out);
        self.flags.put(out);
        security_mode.put(out);
        self.capabilities.put(out);
        0u32.put(out);
        88u16.put(out);
        length::<u16>(self.token.bytes.len()).put(out);
        self.previous_session_id.put(out);
        out.extend_from_slice(self.token.bytes);
    }
}

/// SESSION_SETUP response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SessionSetupResponse<'a> {
    /// The flags.
    pub flags: SessionFlags,
    /// The token.
    pub token: &'a [u8],
}

impl<'a> SessionSetupResponse<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    #[cfg(any(test, feature = "client"))]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, RESPONSE)?;
        let flags = body.get()?;
        let (offset, len): (u16, u16) = (body.get()?, body.get()?);
        let token = body.part("security buffer", offset.into(), len.into())?.bytes;
        Ok(Self { flags, token })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        let body = out.len();
        RESPONSE.put(out);
        self.flags.put(out);
        length::<u16>(offset_in(out, body).saturating_add(4)).put(out);
        length::<u16>(self.token.len()).put(out);
        out.extend_from_slice(self.token);
    }
}
