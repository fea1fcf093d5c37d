//! Reading and writing the parts of messages, and how structures get both directions from one
//! declaration. Everything is little-endian. Not here: any structure.

use super::WireError;
use super::header::HEADER_BYTES;
use crate::le::{Reader, Truncated};
use alloc::vec::Vec;
use core::ops::Range;

/// A value of fixed size.
pub(super) trait Field: Sized {
    /// Reads it from the front of the cursor's rest.
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError>;
    /// Appends it.
    fn put(&self, out: &mut Vec<u8>);
}

/// Reads the fixed part of a structure from front to back, and its variable parts by their offsets.
#[derive(Clone, Debug)]
pub(super) struct Cursor<'a> {
    whole: &'a [u8],
    rest: Reader<'a>,
    /// The first offset of variable parts.
    variable_at: usize,
}

impl<'a> Cursor<'a> {
    /// Starts at the front of `whole`, whose variable parts begin at `variable_at`.
    #[inline]
    pub(super) const fn new(whole: &'a [u8], variable_at: usize) -> Self {
        Self { whole, rest: Reader::new(whole), variable_at }
    }

    /// Starts in the body of `message`, which begins at its header, behind the structure size. That
    /// size counts one byte of the variable part where there is one, which makes it odd (MS-SMB2
    /// §2.2).
    #[inline]
    pub(super) fn body(message: &'a [u8], structure_size: u16) -> Result<Self, WireError> {
        let fixed = usize::from(structure_size & !1);
        let variable_at = HEADER_BYTES.saturating_add(fixed);
        let mut body = Self::new(message, variable_at);
        body.skip(HEADER_BYTES)?;
        match body.get()? {
            found if found != structure_size => {
                Err(WireError::StructureSize { expected: structure_size, found })
            }
            _ if message.len() < variable_at => {
                Err(Truncated { needed: variable_at, left: message.len() }.into())
            }
            _ => Ok(body),
        }
    }

    /// The next field.
    #[inline]
    pub(super) fn get<T: Field>(&mut self) -> Result<T, WireError> {
        T::get(self)
    }

    /// The next `N` bytes.
    #[inline]
    pub(super) fn array<const N: usize>(&mut self) -> Result<[u8; N], WireError> {
        Ok(self.rest.array()?)
    }

    /// The next `len` bytes.
    #[inline]
    pub(super) fn bytes(&mut self, len: usize) -> Result<&'a [u8], WireError> {
        Ok(self.rest.bytes(len)?)
    }

    /// The number of bytes not read yet.
    #[inline]
    pub(super) const fn left(&self) -> usize {
        self.rest.rest().len()
    }

    /// Passes over reserved bytes, whatever their value.
    #[inline]
    pub(super) fn skip(&mut self, len: usize) -> Result<(), WireError> {
        self.bytes(len).map(|_| ())
    }

    /// A variable part, called `what` in the error. One of no bytes may have any offset: peers
    /// leave zero there.
    #[inline]
    pub(super) fn part(
        &self,
        what: &'static str,
        offset: usize,
        len: usize,
    ) -> Result<Payload<'a>, WireError> {
        if len == 0 {
            return Ok(Payload { bytes: &[], at: self.variable_at });
        }
        let bytes = offset
            .checked_add(len)
            .filter(|_| offset >= self.variable_at)
            .and_then(|end| self.whole.get(offset..end))
            .ok_or(WireError::OutOfPlace { what, offset, len })?;
        Ok(Payload { bytes, at: offset })
    }

    /// Everything from `offset` on, of a variable part without a length field.
    #[inline]
    pub(super) fn tail(&self, what: &'static str, offset: u32) -> Result<&'a [u8], WireError> {
        let offset = offset as usize;
        if offset == 0 {
            return Ok(&[]);
        }
        self.whole
            .get(offset..)
            .filter(|_| offset >= self.variable_at)
            .ok_or(WireError::OutOfPlace { what, offset, len: 0 })
    }

    /// A variable part of UTF-16 code units.
    #[inline]
    pub(super) fn name(
        &self,
        what: &'static str,
        offset: u16,
        len: u16,
    ) -> Result<&'a [u8], WireError> {
        if !len.is_multiple_of(2) {
            return Err(WireError::BadLength { what, len: len.into() });
        }
        self.part(what, offset.into(), len.into()).map(|part| part.bytes)
    }
}

/// A variable part of a message, with its place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Payload<'a> {
    /// The bytes.
    pub bytes: &'a [u8],
    /// Their offset in the message, from the first byte of its header on.
    pub at: usize,
}

impl Payload<'_> {
    /// The place in the message, from the first byte of its header on. It lets a server keep the
    /// receive buffer instead of a copy.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.at..self.at.saturating_add(self.bytes.len())
    }
}

/// Appends `len` zeros.
#[inline]
pub(super) fn zeros(out: &mut Vec<u8>, len: usize) {
    out.resize(out.len().saturating_add(len), 0);
}

/// The offset, from the message's header on, of what is appended next to a body that began at
/// `body`.
#[inline]
pub(super) fn offset_in(out: &[u8], body: usize) -> usize {
    out.len().saturating_sub(body).saturating_add(HEADER_BYTES)
}

macro_rules! numbers {
    ($($type:ident)*) => {
        $(
            impl Field for $type {
                #[inline]
                fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
                    from.array().map(Self::from_le_bytes)
                }

                #[inline]
                fn put(&self, out: &mut Vec<u8>) {
                    out.extend_from_slice(&self.to_le_bytes());
                }
            }
        )*
    };
}
numbers!(u8 u16 u32 u64);

/// Identifiers and keys of sixteen bytes, kept as they come.
impl Field for [u8; 16] {
    #[inline]
    fn get(from: &mut Cursor<'_>) -> Result<Self, WireError> {
        from.array()
    }

    #[inline]
    fn put(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self);
    }
}

/// Declares sets of bits, of which bits without a name survive.
macro_rules! bits {
    ($($(#[$doc:meta])* pub struct $name:ident: $type:ident { $($body:tt)* })*) => {
        $(
            bitflags::bitflags! {
                $(#[$doc])*
                #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
                pub struct $name: $type { $($body)* }
            }

            impl $crate::wire::codec::Field for $name {
                #[inline]
                fn get(
                    from: &mut $crate::wire::codec::Cursor<'_>,
                ) -> Result<Self, $crate::wire::WireError> {
                    from.get().map(Self::from_bits_retain)
                }

                #[inline]
                fn put(&self, out: &mut alloc::vec::Vec<u8>) {
                    $crate::wire::codec::Field::put(&self.bits(), out);
                }
            }
        )*
    };
}
pub(super) use bits;

/// Declares numbers whose values have names, but of which values without a name survive.
macro_rules! named {
    ($($(#[$doc:meta])* pub struct $name:ident: $type:ident {
        $( $(#[$value_doc:meta])* $value_name:ident = $value:expr, )*
    })*) => {
        $(
            $(#[$doc])*
            #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
            pub struct $name(pub $type);

            impl $name {
                $( $(#[$value_doc])* pub const $value_name: Self = Self($value); )*
            }

            impl $crate::wire::codec::Field for $name {
                #[inline]
                fn get(
                    from: &mut $crate::wire::codec::Cursor<'_>,
                ) -> Result<Self, $crate::wire::WireError> {
                    from.get().map(Self)
                }

                #[inline]
                fn put(&self, out: &mut alloc::vec::Vec<u8>) {
                    $crate::wire::codec::Field::put(&self.0, out);
                }
            }
        )*
    };
}
pub(super) use named;

/// Gives structures of fixed size both directions: the structure size, then the fields, each after
/// the reserved bytes whose number stands before it, and reserved bytes at the end. `request` and
/// `response` say which direction only clients need.
macro_rules! layout {
    (request $name:ident = $($rest:tt)*) => {
        impl $name {
            $crate::wire::codec::layout! { @decode [] $($rest)* }
            $crate::wire::codec::layout! { @encode [#[cfg(any(test, feature = "client"))]] $($rest)* }
        }
    };
    (response $name:ident = $($rest:tt)*) => {
        impl $name {
            $crate::wire::codec::layout! { @decode [#[cfg(any(test, feature = "client"))]] $($rest)* }
            $crate::wire::codec::layout! { @encode [] $($rest)* }
        }
    };
    (both $name:ident = $($rest:tt)*) => {
        impl $name {
            $crate::wire::codec::layout! { @decode [] $($rest)* }
            $crate::wire::codec::layout! { @encode [] $($rest)* }
        }
    };
    (
        @decode [$($when:tt)*]
        $size:literal: $($($skip:literal)? $field:ident),* $(; $tail:literal)?
    ) => {
        /// Reads the message, which begins at its header.
        ///
        /// # Errors
        /// [`WireError`](super::WireError) if the bytes are no such message.
        $($when)*
        pub fn decode(message: &[u8]) -> Result<Self, $crate::wire::WireError> {
            let mut body = $crate::wire::codec::Cursor::body(message, $size)?;
            $( $(body.skip($skip)?;)? let $field = body.get()?; )*
            body.skip(0 $(+ $tail)?)?;
            Ok(Self { $($field),* })
        }
    };
    (
        @encode [$($when:tt)*]
        $size:literal: $($($skip:literal)? $field:ident),* $(; $tail:literal)?
    ) => {
        /// Appends the body.
        $($when)*
        pub fn encode(&self, out: &mut alloc::vec::Vec<u8>) {
            use $crate::wire::codec::Field as _;
            u16::put(&$size, out);
            $( $($crate::wire::codec::zeros(out, $skip);)? self.$field.put(out); )*
            $($crate::wire::codec::zeros(out, $tail);)?
        }
    };
}
pub(super) use layout;
