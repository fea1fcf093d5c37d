//! The agreement on interfaces and transfer syntaxes at the beginning of a pipe, and later changes
//! of it (C706 §12.6.4.3, §12.6.4.4).
//!
//! A client proposes contexts; accepted are those of the pipe's interface that allow for NDR.
//! Rejected are all others: those for NDR64, and those by which a client asks for features (bind
//! time feature negotiation, MS-RPCE §2.2.2.14), of which there are none.

use super::Interface;
use super::limits::{CONTEXTS_MAX, FRAGMENT_BYTES_MAX};
use super::rpc::{Fault, Flags, Header, Kind};
use crate::le::{Reader, Truncated, align, put};
use alloc::vec::Vec;

/// An identifier and its version, major in the low half.
type Syntax = [u8; 20];

/// 8a885d04-1ceb-11c9-9fe8-08002b104860, 2.0.
pub(super) const NDR: Syntax = [
    0x04, 0x5D, 0x88, 0x8A, 0xEB, 0x1C, 0xC9, 0x11, 0x9F, 0xE8, 0x08, 0x00, 0x2B, 0x10, 0x48, 0x60,
    2, 0, 0, 0,
];

/// 4b324fc8-1670-01d3-1278-5a47bf6ee188, 3.0.
pub(super) const SRVSVC: Syntax = [
    0xC8, 0x4F, 0x32, 0x4B, 0x70, 0x16, 0xD3, 0x01, 0x12, 0x78, 0x5A, 0x47, 0xBF, 0x6E, 0xE1, 0x88,
    3, 0, 0, 0,
];

/// 6bffd098-a112-3610-9833-46c3f87e345a, 1.0.
pub(super) const WKSSVC: Syntax = [
    0x98, 0xD0, 0xFF, 0x6B, 0x12, 0xA1, 0x10, 0x36, 0x98, 0x33, 0x46, 0xC3, 0xF8, 0x7E, 0x34, 0x5A,
    1, 0, 0, 0,
];

/// provider_rejection.
const REJECTED: u16 = 2;
/// abstract_syntax_not_supported.
const NO_INTERFACE: u16 = 1;
/// proposed_transfer_syntaxes_not_supported.
const NO_TRANSFER_SYNTAX: u16 = 2;
/// local_limit_exceeded.
const NO_ROOM: u16 = 3;
/// authentication_type_not_recognized.
const NO_SECURITY: u16 = 8;

/// The proposals of a client.
#[derive(Clone, Debug)]
pub(super) struct Bind {
    /// The largest fragment that the client takes.
    pub(super) fragment: u16,
    group: u32,
    contexts: Vec<Context>,
}

#[derive(Clone, Copy, Debug)]
struct Context {
    id: u16,
    interface: Syntax,
    ndr: bool,
}

impl Bind {
    /// Reads a bind or alter_context; nothing if there are too many contexts.
    pub(super) fn decode(body: &[u8]) -> Result<Option<Self>, Truncated> {
        let mut input = Reader::new(body);
        let (_theirs, fragment, group) = (input.u16()?, input.u16()?, input.u32()?);
        let [count, ..] = input.array::<4>()?;
        if usize::from(count) > CONTEXTS_MAX {
            return Ok(None);
        }
        let mut contexts = Vec::with_capacity(usize::from(count));
        for _ in 0..count {
            let id = input.u16()?;
            let [syntaxes, _reserved] = input.array()?;
            let interface = input.array()?;
            let mut ndr = false;
            for _ in 0..syntaxes {
                ndr |= input.array()? == NDR;
            }
            contexts.push(Context { id, interface, ndr });
        }
        Ok(Some(Self { fragment, group, contexts }))
    }

    /// Adds the contexts of `interface` to those `accepted`, and appends the answer. No fragment
    /// that the pipe sends has more than `sends` bytes.
    pub(super) fn encode_answer(
        &self,
        header: &Header,
        interface: Interface,
        sends: u16,
        accepted: &mut Vec<u16>,
        out: &mut Vec<u8>,
    ) {
        let first = header.kind == Kind::BIND;
        let kind = if first { Kind::BIND_ACK } else { Kind::ALTER_CONTEXT_RESPONSE };
        Header::begin(kind, Flags::FIRST | Flags::LAST, header.call, out);
        // An association that groups several connections has no meaning here; it has a number.
        put!(out; sends, FRAGMENT_BYTES_MAX, self.group.max(1));
        let name = if first { interface.name() } else { "" };
        address(name, out);
        align(out, 0, 4);
        put!(out; u8::try_from(self.contexts.len()).unwrap_or(u8::MAX), 0u8, 0u16);
        let own = match interface {
            Interface::Srvsvc => SRVSVC,
            Interface::Wkssvc => WKSSVC,
        };
        for context in &self.contexts {
            let known = accepted.contains(&context.id);
            let refusal = match context {
                Context { interface, .. } if *interface != own => Some(NO_INTERFACE),
                Context { ndr: false, .. } => Some(NO_TRANSFER_SYNTAX),
                _ if !known && accepted.len() >= CONTEXTS_MAX => Some(NO_ROOM),
                _ => None,
            };
            let Some(reason) = refusal else {
                if !known {
                    accepted.push(context.id);
                }
                put!(out; 0u16, 0u16);
                out.extend_from_slice(&NDR);
                continue;
            };
            put!(out; REJECTED, reason);
            out.extend_from_slice(&[0; 20]);
        }
        Header::finish(out);
    }
}

/// The name of the pipe with its length and a NUL, as in `\PIPE\srvsvc`; empty without a name.
fn address(name: &str, out: &mut Vec<u8>) {
    if name.is_empty() {
        put!(out; 0u16);
        return;
    }
    let prefix = b"\\PIPE\\";
    let length = prefix.len().saturating_add(name.len()).saturating_add(1);
    put!(out; u16::try_from(length).unwrap_or(0));
    out.extend_from_slice(prefix);
    out.extend_from_slice(name.as_bytes());
    out.push(0);
}

/// Appends the refusal of a bind as a whole: it asks for security within RPC, or for more contexts
/// than there may be. The refusal of further contexts is a fault (C706 §12.6.4.1, §12.6.4.2).
pub(super) fn encode_refusal(header: &Header, out: &mut Vec<u8>) {
    if header.kind == Kind::ALTER_CONTEXT {
        out.extend_from_slice(&Fault::PROTOCOL.encode(header.call, 0));
        return;
    }
    let reason = if header.security == 0 { NO_ROOM } else { NO_SECURITY };
    Header::begin(Kind::BIND_NAK, Flags::FIRST | Flags::LAST, header.call, out);
    // One version is spoken, 5.0.
    put!(out; reason, 1u8, 5u8, 0u8);
    Header::finish(out);
}
