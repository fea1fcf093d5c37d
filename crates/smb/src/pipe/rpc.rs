//! Fragments of connection-oriented RPC (C706 §12.6, MS-RPCE §2.2.2): header, request, response and
//! fault.

use super::PipeError;
use super::limits::FRAGMENT_BYTES_MAX;
use crate::le::{Reader, Truncated, length, patch, put};
use alloc::collections::VecDeque;
use alloc::vec::Vec;

/// The type of a fragment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(pub(super) u8);

impl Kind {
    pub(super) const REQUEST: Self = Self(0);
    pub(super) const RESPONSE: Self = Self(2);
    pub(super) const FAULT: Self = Self(3);
    pub(super) const BIND: Self = Self(11);
    pub(super) const BIND_ACK: Self = Self(12);
    pub(super) const BIND_NAK: Self = Self(13);
    pub(super) const ALTER_CONTEXT: Self = Self(14);
    pub(super) const ALTER_CONTEXT_RESPONSE: Self = Self(15);
    pub(super) const CANCEL: Self = Self(18);
    pub(super) const ORPHANED: Self = Self(19);
}

bitflags::bitflags! {
    /// Flags of a fragment.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub(super) struct Flags: u8 {
        /// The first of its call.
        const FIRST = 0x01;
        /// The last of its call.
        const LAST = 0x02;
        /// The call was not carried out.
        const DID_NOT_EXECUTE = 0x20;
        /// The request names an object.
        const OBJECT = 0x80;

        const _ = !0;
    }
}

/// The beginning of every fragment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Header {
    pub(super) kind: Kind,
    pub(super) flags: Flags,
    /// Bytes of the fragment, the header's among them.
    pub(super) length: u16,
    /// Bytes of the security trailer.
    pub(super) security: u16,
    pub(super) call: u32,
}

const VERSION: u8 = 5;
/// Little-endian, ASCII, IEEE.
const REPRESENTATION: [u8; 4] = [0x10, 0, 0, 0];

impl Header {
    pub(super) const BYTES: usize = 16;
    const LENGTH_AT: usize = 8;

    /// Reads a header and checks it against its bounds.
    pub(super) fn decode(bytes: &[u8; Self::BYTES]) -> Result<Self, PipeError> {
        let mut input = Reader::new(bytes);
        let (version, _minor) = (input.u8()?, input.u8()?);
        let (kind, flags) = (Kind(input.u8()?), Flags::from_bits_retain(input.u8()?));
        let representation: [u8; 4] = input.array()?;
        let (length, security, call) = (input.u16()?, input.u16()?, input.u32()?);
        if version != VERSION || representation != REPRESENTATION {
            return Err(PipeError::Protocol);
        }
        if usize::from(length) < Self::BYTES {
            return Err(PipeError::Protocol);
        }
        if length > FRAGMENT_BYTES_MAX {
            return Err(PipeError::TooMuch);
        }
        Ok(Self { kind, flags, length, security, call })
    }

    /// Appends a header whose length is filled in by [`Header::finish`] to the empty `out`.
    pub(super) fn begin(kind: Kind, flags: Flags, call: u32, out: &mut Vec<u8>) {
        put!(out; VERSION, 0u8, kind.0, flags.bits());
        out.extend_from_slice(&REPRESENTATION);
        put!(out; 0u16, 0u16, call);
    }

    pub(super) fn finish(out: &mut [u8]) {
        let length = u16::try_from(out.len()).unwrap_or(u16::MAX);
        patch(out, Self::LENGTH_AT, &length.to_le_bytes());
    }
}

/// A fragment of a call.
#[derive(Clone, Copy, Debug)]
pub(super) struct Request<'a> {
    pub(super) context: u16,
    pub(super) operation: u16,
    pub(super) input: &'a [u8],
}

impl<'a> Request<'a> {
    pub(super) fn decode(header: &Header, body: &'a [u8]) -> Result<Self, Truncated> {
        let mut input = Reader::new(body);
        let (_hint, context, operation) = (input.u32()?, input.u16()?, input.u16()?);
        if header.flags.contains(Flags::OBJECT) {
            input.array::<16>()?;
        }
        Ok(Self { context, operation, input: input.rest() })
    }
}

/// Header, hint, context, count of cancellations, reserved.
const RESPONSE_HEAD_BYTES: u16 = 24;

/// Appends the fragments of an answer, none beyond `fragment` bytes.
pub(super) fn encode_response(
    call: u32,
    context: u16,
    output: &[u8],
    fragment: u16,
    fragments: &mut VecDeque<Vec<u8>>,
) {
    // All but the last carry a multiple of eight bytes (C706 §12.6.2).
    let most = usize::from(fragment.saturating_sub(RESPONSE_HEAD_BYTES)) & !7;
    let mut rest = output;
    let mut flags = Flags::FIRST;
    loop {
        let (part, after) = rest.split_at_checked(most.max(8)).unwrap_or((rest, &[]));
        if after.is_empty() {
            flags |= Flags::LAST;
        }
        let mut out = Vec::new();
        Header::begin(Kind::RESPONSE, flags, call, &mut out);
        put!(out; length::<u32>(rest.len()), context, 0u16);
        out.extend_from_slice(part);
        Header::finish(&mut out);
        fragments.push_back(out);
        if after.is_empty() {
            return;
        }
        (rest, flags) = (after, Flags::empty());
    }
}

/// Why a call was not answered (C706 appendix E).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Fault(pub(super) u32);

impl Fault {
    /// No such operation (nca_s_op_rng_error).
    pub(super) const UNKNOWN_OPERATION: Self = Self(0x1C01_0002);
    /// The context is none that was accepted (nca_s_unk_if).
    pub(super) const UNKNOWN_INTERFACE: Self = Self(0x1C01_0003);
    /// The request is not as the protocol has it (nca_s_proto_error).
    pub(super) const PROTOCOL: Self = Self(0x1C01_000B);
    /// The input is not that of the operation (RPC_X_BAD_STUB_DATA).
    pub(super) const BAD_INPUT: Self = Self(0x0000_06F7);

    pub(super) fn encode(self, call: u32, context: u16) -> Vec<u8> {
        let mut out = Vec::new();
        let flags = Flags::FIRST | Flags::LAST | Flags::DID_NOT_EXECUTE;
        Header::begin(Kind::FAULT, flags, call, &mut out);
        put!(out; 0u32, context, 0u16, self.0, 0u32);
        Header::finish(&mut out);
        out
    }
}

impl From<Truncated> for Fault {
    fn from(_: Truncated) -> Self {
        Self::BAD_INPUT
    }
}
