//! The contexts of NEGOTIATE (MS-SMB2 §2.2.3.1, §2.2.4.1). Not here: which of them are chosen.

use super::WireError;
use super::codec::{Cursor, Field, bits, named};
use crate::le::{align, length, patch};
use crate::limits::{ALGORITHMS_MAX, NEGOTIATE_CONTEXTS_MAX};
use alloc::vec::Vec;

named! {
    /// The type of a negotiate context.
    pub struct ContextType: u16 {
        /// Hashes for pre-authentication integrity.
        PREAUTH_INTEGRITY = 1,
        /// Ciphers.
        ENCRYPTION = 2,
        /// Algorithms of compression.
        COMPRESSION = 3,
        /// The name by which the client reached the server.
        NETNAME = 5,
        /// Security of the transport.
        TRANSPORT = 6,
        /// Transforms of RDMA.
        RDMA_TRANSFORM = 7,
        /// Algorithms of signing.
        SIGNING = 8,
    }

    /// A hash for pre-authentication integrity.
    pub struct HashAlgorithm: u16 {
        /// SHA-512.
        SHA_512 = 1,
    }
}

bits! {
    /// The flags of the context [`ContextType::COMPRESSION`].
    pub struct CompressionFlags: u32 {
        /// Several algorithms may be used in one message.
        const CHAINED = 1;
    }

    /// The flags of the context [`ContextType::TRANSPORT`].
    pub struct TransportFlags: u32 {
        /// The transport encrypts: messages need not.
        const ACCEPT_TRANSPORT_LEVEL_SECURITY = 1;
    }
}

/// A list of numbers of two bytes, still in its wire form: dialects or identifiers of algorithms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Numbers<'a>(&'a [u8]);

impl<'a> Numbers<'a> {
    /// The list that has these bytes, a number in each two.
    #[must_use]
    pub const fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    /// The number of numbers.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.0.len() / 2
    }

    /// Are there none?
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The numbers in their order, which is the sender's preference.
    pub fn iter(&self) -> impl Iterator<Item = u16> + use<'a> {
        self.0.as_chunks().0.iter().copied().map(u16::from_le_bytes)
    }

    /// Is `number` in the list?
    #[must_use]
    pub fn contains(&self, number: u16) -> bool {
        self.iter().any(|one| one == number)
    }

    /// A list of `count` numbers, called `what` in the error, of at most `max`.
    pub(super) fn get(
        from: &mut Cursor<'a>,
        what: &'static str,
        count: u16,
        max: usize,
    ) -> Result<Self, WireError> {
        let len = usize::from(count);
        match len {
            0 => Err(WireError::BadValue { what, value: 0 }),
            _ if len > max => Err(WireError::TooLong { what, len, max }),
            _ => from.bytes(len.saturating_mul(2)).map(Self),
        }
    }

    pub(super) fn count(&self) -> u16 {
        length(self.len())
    }

    #[cfg(any(test, feature = "client"))]
    pub(super) const fn as_bytes(&self) -> &'a [u8] {
        self.0
    }
}

/// A negotiate context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NegotiateContext<'a> {
    /// Hashes ([`HashAlgorithm`]) and salt.
    PreauthIntegrity {
        /// The hashes.
        hashes: Numbers<'a>,
        /// The salt.
        salt: &'a [u8],
    },
    /// Ciphers ([`crypto::Cipher`](crate::crypto::Cipher)).
    Encryption(Numbers<'a>),
    /// Algorithms of compression.
    Compression {
        /// The flags.
        flags: CompressionFlags,
        /// The algorithms.
        algorithms: Numbers<'a>,
    },
    /// The server's name as the client knows it, in UTF-16.
    NetName(&'a [u8]),
    /// Security of the transport.
    Transport(TransportFlags),
    /// Transforms of RDMA.
    RdmaTransform(Numbers<'a>),
    /// Algorithms of signing ([`crypto::SigningAlgorithm`](crate::crypto::SigningAlgorithm)).
    Signing(Numbers<'a>),
    /// Any other context, which is ignored.
    Other {
        /// The type.
        kind: ContextType,
        /// The data.
        data: &'a [u8],
    },
}

impl<'a> NegotiateContext<'a> {
    /// The type.
    #[must_use]
    pub const fn kind(&self) -> ContextType {
        match self {
            Self::PreauthIntegrity { .. } => ContextType::PREAUTH_INTEGRITY,
            Self::Encryption(_) => ContextType::ENCRYPTION,
            Self::Compression { .. } => ContextType::COMPRESSION,
            Self::NetName(_) => ContextType::NETNAME,
            Self::Transport(_) => ContextType::TRANSPORT,
            Self::RdmaTransform(_) => ContextType::RDMA_TRANSFORM,
            Self::Signing(_) => ContextType::SIGNING,
            Self::Other { kind, .. } => *kind,
        }
    }

    fn get(from: &mut Cursor<'a>) -> Result<Self, WireError> {
        let kind = from.get()?;
        let len: u16 = from.get()?;
        from.skip(4)?;
        Self::of(kind, from.bytes(len.into())?)
    }

    fn of(kind: ContextType, data: &'a [u8]) -> Result<Self, WireError> {
        let mut input = Cursor::new(data, 0);
        let list =
            |input: &mut Cursor<'a>, what, count| Numbers::get(input, what, count, ALGORITHMS_MAX);
        Ok(match kind {
            ContextType::PREAUTH_INTEGRITY => {
                let (count, salt_len): (u16, u16) = (input.get()?, input.get()?);
                let hashes = list(&mut input, "hash algorithms", count)?;
                Self::PreauthIntegrity { hashes, salt: input.bytes(salt_len.into())? }
            }
            ContextType::ENCRYPTION => {
                let count = input.get()?;
                Self::Encryption(list(&mut input, "ciphers", count)?)
            }
            ContextType::COMPRESSION => {
                let count = input.get()?;
                input.skip(2)?;
                let flags = input.get()?;
                let algorithms = list(&mut input, "compression algorithms", count)?;
                Self::Compression { flags, algorithms }
            }
            ContextType::NETNAME => Self::NetName(data),
            ContextType::TRANSPORT => Self::Transport(input.get()?),
            ContextType::RDMA_TRANSFORM => {
                let count = input.get()?;
                input.skip(6)?;
                Self::RdmaTransform(list(&mut input, "RDMA transforms", count)?)
            }
            ContextType::SIGNING => {
                let count = input.get()?;
                Self::Signing(list(&mut input, "signing algorithms", count)?)
            }
            kind => Self::Other { kind, data },
        })
    }

    fn put_data(&self, out: &mut Vec<u8>) {
        match self {
            Self::PreauthIntegrity { hashes, salt } => {
                hashes.count().put(out);
                length::<u16>(salt.len()).put(out);
                out.extend_from_slice(hashes.0);
                out.extend_from_slice(salt);
            }
            Self::Encryption(list) | Self::Signing(list) => {
                list.count().put(out);
                out.extend_from_slice(list.0);
            }
            Self::Compression { flags, algorithms } => {
                algorithms.count().put(out);
                0u16.put(out);
                flags.put(out);
                out.extend_from_slice(algorithms.0);
            }
            Self::Transport(flags) => flags.put(out),
            Self::RdmaTransform(list) => {
                list.count().put(out);
                0u16.put(out);
                0u32.put(out);
                out.extend_from_slice(list.0);
            }
            Self::NetName(data) | Self::Other { data, .. } => out.extend_from_slice(data),
        }
    }
}

/// The contexts of one NEGOTIATE, still in their wire form but proved well formed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NegotiateContexts<'a> {
    count: u16,
    /// From the first context on; whatever follows the last is ignored.
    bytes: &'a [u8],
}

impl<'a> NegotiateContexts<'a> {
    /// The list of `count` contexts at the front of `bytes`.
    pub(super) fn decode(count: u16, bytes: &'a [u8]) -> Result<Self, WireError> {
        let (len, max) = (usize::from(count), NEGOTIATE_CONTEXTS_MAX);
        if len > max {
            return Err(WireError::TooLong { what: "negotiate contexts", len, max });
        }
        let mut rest = bytes;
        let mut end = 0usize;
        for _ in 0..count {
            let (_, len) = first(rest)?;
            end = bytes.len().saturating_sub(rest.len()).saturating_add(len);
            // The last need not be padded.
            rest = rest.get(len.next_multiple_of(8)..).unwrap_or_default();
        }
        Ok(Self { count, bytes: bytes.get(..end).unwrap_or_default() })
    }

    /// Replaces `buffer` by the wire form of `contexts`, and gives them back as a list.
    pub fn build<'c>(
        buffer: &'a mut Vec<u8>,
        contexts: impl IntoIterator<Item = NegotiateContext<'c>>,
    ) -> Self {
        buffer.clear();
        let mut count = 0u16;
        for context in contexts {
            align(buffer, 0, 8);
            count = count.saturating_add(1);
            context.kind().put(buffer);
            let len_at = buffer.len();
            buffer.extend_from_slice(&[0; 6]);
            let data_at = buffer.len();
            context.put_data(buffer);
            let len: u16 = length(buffer.len().saturating_sub(data_at));
            patch(buffer, len_at, &len.to_le_bytes());
        }
        Self { count, bytes: buffer }
    }

    /// The contexts in their order.
    pub fn iter(&self) -> impl Iterator<Item = NegotiateContext<'a>> + use<'a> {
        let mut rest = self.bytes;
        (0..self.count).map_while(move |_| {
            let (context, len) = first(rest).ok()?;
            rest = rest.get(len.next_multiple_of(8)..).unwrap_or_default();
            Some(context)
        })
    }

    /// A type defined here that more than one context has, which the server must refuse (§3.3.5.4).
    #[must_use]
    pub fn repeated(&self) -> Option<ContextType> {
        let mut kinds = self.iter().filter(|one| !matches!(one, NegotiateContext::Other { .. }));
        kinds
            .find(|one| self.iter().filter(|other| other.kind() == one.kind()).count() > 1)
            .map(|one| one.kind())
    }

    pub(super) const fn count(&self) -> u16 {
        self.count
    }

    pub(super) const fn as_bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

/// The context at the front of `bytes`, and its length without padding.
fn first(bytes: &[u8]) -> Result<(NegotiateContext<'_>, usize), WireError> {
    let mut input = Cursor::new(bytes, 0);
    let context = NegotiateContext::get(&mut input)?;
    Ok((context, bytes.len().saturating_sub(input.left())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::wire::samples::hex;

    fn decode(count: u16, text: &str) -> Result<Vec<ContextType>, WireError> {
        let bytes = hex(text);
        NegotiateContexts::decode(count, &bytes)
            .map(|contexts| contexts.iter().map(|one| one.kind()).collect())
    }

    const ENCRYPTION: &str = "0200 0600 00000000 0200 0200 0100 0000";
    const OTHER: &str = "0001 0300 00000000 abcdef 0000000000";

    #[test]
    fn contexts_come_in_any_order_and_unknown_ones_survive() {
        let text = [OTHER, ENCRYPTION, OTHER].concat();
        let other = ContextType(0x0100);
        let all = alloc::vec![other, ContextType::ENCRYPTION, other];
        assert_eq!(decode(3, &text), Ok(all.clone()));
        assert_eq!(decode(2, &text), Ok(all[..2].to_vec()), "the rest is ignored");
        assert_eq!(decode(0, &text), Ok(Vec::new()));
        assert!(decode(4, &text).is_err());
    }

    #[test]
    fn a_type_that_is_there_twice_is_found() {
        let repeated = |text: &str, count| {
            let bytes = hex(text);
            NegotiateContexts::decode(count, &bytes).unwrap().repeated()
        };
        let twice = [ENCRYPTION, OTHER, ENCRYPTION].concat();
        assert_eq!(repeated(&twice, 3), Some(ContextType::ENCRYPTION));
        assert_eq!(repeated(&twice, 2), None);
        assert_eq!(repeated(&[OTHER, OTHER].concat(), 2), None);
    }

    #[test]
    fn empty_and_overlong_lists_are_refused() {
        assert!(decode(1, "0200 0200 00000000 0000").is_err(), "no cipher");
        assert!(decode(1, "0200 0400 00000000 0200 0200").is_err(), "two announced");
        assert!(decode(1, "0800 0200 00000000 0000").is_err(), "no signing algorithm");
        assert!(decode(1, "0100 0400 00000000 0000 0000").is_err(), "no hash");
        let many = ALGORITHMS_MAX + 1;
        let mut bytes = hex("0200 8400 00000000 4100");
        bytes.extend(core::iter::repeat_n(1, 2 * many));
        let error = WireError::TooLong { what: "ciphers", len: many, max: ALGORITHMS_MAX };
        assert_eq!(NegotiateContexts::decode(1, &bytes), Err(error));
        assert!(matches!(
            NegotiateContexts::decode(u16::MAX, &[0; 8]),
            Err(WireError::TooLong { .. })
        ));
    }
}
