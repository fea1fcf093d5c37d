//! From the responses of a frame's requests to the frame that goes out: headers, chaining,
//! signatures or the seal, and the prefix of the transport (MS-SMB2 §3.3.4.1).
//!
//! Each response is built in a buffer of its own, after room for all that comes in front, so that a
//! single one (nearly all are) is never copied. Not here: bodies, and what is signed or sealed.

use crate::crypto::{Crypto, CryptoError, SealKeys, SigningKey, TRANSFORM_BYTES};
use crate::le::{align, length, patch};
use crate::wire::netbios::PREFIX_BYTES;
use crate::wire::{HEADER_BYTES, Header, HeaderFlags, NEXT_COMMAND_AT, Status, TreeOrAsync};
use alloc::vec::Vec;

/// Room in front of the header of a response, in bytes.
const fn front_bytes(sealed: bool) -> usize {
    if sealed { PREFIX_BYTES + TRANSFORM_BYTES } else { PREFIX_BYTES }
}

/// Alignment of the messages of a chain.
const ALIGNMENT: usize = 8;

/// Begins a response in `buffer`, of which the content is dropped: makes room for all that comes in
/// front of the body, in a frame that will be `sealed` or not.
#[must_use]
pub fn begin(mut buffer: Vec<u8>, sealed: bool) -> Vec<u8> {
    buffer.clear();
    buffer.resize(front_bytes(sealed).saturating_add(HEADER_BYTES), 0);
    buffer
}

/// A response with its body.
pub struct Response<'a, C: Crypto> {
    /// The header, without flags that this module sets.
    pub header: Header,
    /// The buffer from [`begin`], with the body.
    pub bytes: Vec<u8>,
    /// The key to sign it with, if it is to be signed.
    pub key: Option<&'a SigningKey<C>>,
}

/// The header of the response to the request `header`, without flags.
#[must_use]
pub fn answer(header: &Header, status: Status, credits: u16) -> Header {
    Header {
        credit_charge: header.credit_charge,
        status,
        command: header.command,
        credits,
        flags: HeaderFlags::RESPONSE | (header.flags & HeaderFlags::RELATED),
        next_command: 0,
        message_id: header.message_id,
        // A client sends the asynchronous form in CANCEL alone, which has no response.
        tree: TreeOrAsync::Tree(header.tree_id()),
        session_id: header.session_id,
        signature: [0; 16],
    }
}

/// The frame of these responses, each from [`begin`], in their order; sealed as a whole with
/// `seal`, the keys and the id of a session, or each signed with its key.
///
/// # Errors
/// [`CryptoError`]; nothing may be sent then, and the connection must end.
pub fn finish<C: Crypto>(
    responses: Vec<Response<'_, C>>,
    seal: Option<(&SealKeys<C>, u64)>,
) -> Result<Vec<u8>, CryptoError> {
    let front = front_bytes(seal.is_some());
    let mut responses = responses.into_iter().peekable();
    let mut frame = Vec::new();
    while let Some(Response { header, mut bytes, key }) = responses.next() {
        patch(&mut bytes, front, &header.to_bytes());
        let at = if frame.is_empty() {
            frame = bytes;
            front
        } else {
            let at = frame.len();
            frame.extend_from_slice(bytes.get(front..).unwrap_or(&[]));
            at
        };
        let is_last = responses.peek().is_none();
        // The last response of a chain is padded too (MS-SMB2 §3.3.4.1.3).
        if !is_last || at > front {
            align(&mut frame, at, ALIGNMENT);
        }
        if !is_last {
            let next = length::<u32>(frame.len().saturating_sub(at));
            patch(&mut frame, at.saturating_add(NEXT_COMMAND_AT), &next.to_le_bytes());
        }
        if let Some(key) = key.filter(|_| seal.is_none()) {
            key.sign(frame.get_mut(at..).unwrap_or(&mut []))?;
        }
    }
    if let Some((keys, session)) = seal {
        keys.seal(session, frame.get_mut(PREFIX_BYTES..).unwrap_or(&mut []))?;
    }
    // The first of the four bytes is zero, the others are the length (MS-SMB2 §2.1).
    let length = length::<u32>(frame.len().saturating_sub(PREFIX_BYTES));
    patch(&mut frame, 0, &length.to_be_bytes());
    Ok(frame)
}
