//! NEGOTIATE (MS-SMB2 §2.2.3, §2.2.4). Not here: its contexts.

#[cfg(any(test, feature = "client"))]
use super::codec::zeros;
use super::codec::{Cursor, Field, bits, named, offset_in};
use super::{NegotiateContexts, Numbers, WireError};
use crate::le::{align, length, patch};
use crate::limits::DIALECTS_MAX;
use alloc::vec::Vec;

named! {
    /// A revision of the protocol.
    pub struct Dialect: u16 {
        /// SMB 3.1.1, the one that is served.
        SMB_3_1_1 = 0x0311,
        /// The answer to an SMB1 NEGOTIATE: the client negotiates again (§3.3.5.3.1).
        SMB_2_ANY = 0x02ff,
    }
}

bits! {
    /// Signing, as either side wants it.
    pub struct SecurityMode: u16 {
        /// Messages can be signed.
        const SIGNING_ENABLED = 1;
        /// Messages must be signed.
        const SIGNING_REQUIRED = 2;
    }

    /// The capabilities of either side.
    pub struct Capabilities: u32 {
        /// Distributed file systems.
        const DFS = 0x01;
        /// Leases.
        const LEASING = 0x02;
        /// Requests of more than one credit.
        const LARGE_MTU = 0x04;
        /// Sessions over several connections.
        const MULTI_CHANNEL = 0x08;
        /// Handles that outlive the server.
        const PERSISTENT_HANDLES = 0x10;
        /// Leases of directories.
        const DIRECTORY_LEASING = 0x20;
        /// Encryption, in dialects before 3.1.1.
        const ENCRYPTION = 0x40;
        /// Notifications from the server.
        const NOTIFICATIONS = 0x80;
    }
}

/// NEGOTIATE request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateRequest<'a> {
    /// Signing, from the client's side.
    pub security_mode: SecurityMode,
    /// The client's capabilities.
    pub capabilities: Capabilities,
    /// The client's identifier.
    pub client_guid: [u8; 16],
    /// The client's dialects ([`Dialect`]), at least one.
    pub dialects: Numbers<'a>,
    /// The contexts; none if [`Dialect::SMB_3_1_1`] is not in `dialects`.
    pub contexts: NegotiateContexts<'a>,
}

const REQUEST: u16 = 36;
const RESPONSE: u16 = 65;

impl<'a> NegotiateRequest<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, REQUEST)?;
        let dialect_count = body.get()?;
        let security_mode = body.get()?;
        body.skip(2)?;
        let capabilities = body.get()?;
        let client_guid = body.get()?;
        let (contexts_at, context_count): (u32, u16) = (body.get()?, body.get()?);
        body.skip(2)?;
        let dialects = Numbers::get(&mut body, "dialects", dialect_count, DIALECTS_MAX)?;
        // Without 3.1.1 the place of the contexts holds a time instead.
        let contexts = if dialects.contains(Dialect::SMB_3_1_1.0) {
            NegotiateContexts::decode(context_count, body.tail("negotiate contexts", contexts_at)?)?
        } else {
            NegotiateContexts::default()
        };
        Ok(Self { security_mode, capabilities, client_guid, dialects, contexts })
    }

    /// Appends the body.
    #[cfg(any(test, feature = "client"))]
    pub fn encode(&self, out: &mut Vec<u8>) {
        let body = out.len();
        REQUEST.put(out);
        self.dialects.count().put(out);
        self.security_mode.put(out);
        0u16.put(out);
        self.capabilities.put(out);
        self.client_guid.put(out);
        let contexts_at = out.len();
        zeros(out, 8);
        out.extend_from_slice(self.dialects.as_bytes());
        if self.dialects.contains(Dialect::SMB_3_1_1.0) {
            align(out, body, 8);
            let at: u32 = length(offset_in(out, body));
            patch(out, contexts_at, &at.to_le_bytes());
            patch(out, contexts_at.saturating_add(4), &self.contexts.count().to_le_bytes());
            out.extend_from_slice(self.contexts.as_bytes());
        }
    }
}

/// NEGOTIATE response. Sizes are in bytes; times are in units of 100 ns since 1601-01-01.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NegotiateResponse<'a> {
    /// Signing, from the server's side.
    pub security_mode: SecurityMode,
    /// The dialect chosen.
    pub dialect: Dialect,
    /// The server's identifier.
    pub server_guid: [u8; 16],
    /// The server's capabilities.
    pub capabilities: Capabilities,
    /// The largest buffer of QUERY_INFO, QUERY_DIRECTORY, SET_INFO, IOCTL and CHANGE_NOTIFY.
    pub max_transact_size: u32,
    /// The largest READ.
    pub max_read_size: u32,
    /// The largest WRITE.
    pub max_write_size: u32,
    /// The server's time.
    pub system_time: u64,
    /// The time of the server's start; zero if it is not disclosed.
    pub start_time: u64,
    /// The token that offers the mechanisms of authentication.
    pub token: &'a [u8],
    /// The contexts; none if `dialect` is not [`Dialect::SMB_3_1_1`].
    pub contexts: NegotiateContexts<'a>,
}

impl<'a> NegotiateResponse<'a> {
    /// Reads the message, which begins at its header.
    ///
    /// # Errors
    /// [`WireError`] if the bytes are no such message.
    #[cfg(any(test, feature = "client"))]
    pub fn decode(message: &'a [u8]) -> Result<Self, WireError> {
        let mut body = Cursor::body(message, RESPONSE)?;
        let security_mode = body.get()?;
        let dialect = body.get()?;
        let context_count = body.get()?;
        let server_guid = body.get()?;
        let capabilities = body.get()?;
        let max_transact_size = body.get()?;
        let max_read_size = body.get()?;
        let max_write_size = body.get()?;
        let (system_time, start_time) = (body.get()?, body.get()?);
        let (token_at, token_len): (u16, u16) = (body.get()?, body.get()?);
        let contexts_at = body.get()?;
        let token = body.part("security buffer", token_at.into(), token_len.into())?.bytes;
        let contexts = if dialect == Dialect::SMB_3_1_1 {
            NegotiateContexts::decode(context_count, body.tail("negotiate contexts", contexts_at)?)?
        } else {
            NegotiateContexts::default()
        };
        Ok(Self {
            security_mode,
            dialect,
            server_guid,
            capabilities,
            max_transact_size,
            max_read_size,
            max_write_size,
            system_time,
            start_time,
            token,
            contexts,
        })
    }

    /// Appends the body.
    pub fn encode(&self, out: &mut Vec<u8>) {
        const TOKEN_AT: u16 = 128;
        let body = out.len();
        RESPONSE.put(out);
        self.security_mode.put(out);
        self.dialect.put(out);
        self.contexts.count().put(out);
        self.server_guid.put(out);
        self.capabilities.put(out);
        self.max_transact_size.put(out);
        self.max_read_size.put(out);
        self.max_write_size.put(out);
        self.system_time.put(out);
        self.start_time.put(out);
        TOKEN_AT.put(out);
        length::<u16>(self.token.len()).put(out);
        let contexts_at = out.len();
        0u32.put(out);
        out.extend_from_slice(self.token);
        if self.contexts.count() > 0 {
            align(out, body, 8);
            let at: u32 = length(offset_in(out, body));
            patch(out, contexts_at, &at.to_le_bytes());
            out.extend_from_slice(self.contexts.as_bytes());
        }
    }
}
