//! The two directions of a wire type, and how structures get both from one declaration.

use super::error::XdrError;
use super::reader::Reader;
use super::writer::Writer;

/// A type that can be read from XDR. It may borrow from the input.
pub trait Decode<'a>: Sized {
    /// Reads one value from the front of `input`.
    ///
    /// # Errors
    /// [`XdrError`] if the bytes are no such value.
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError>;
}

/// A type that can be written as XDR.
pub trait Encode {
    /// Appends the value to `out`.
    fn encode(&self, out: &mut Writer);
}

/// Reads one value from the front of `input`. What follows it is ignored, as other servers do:
/// some clients round the last fragment up.
///
/// # Errors
/// [`XdrError`] if the bytes are no such value.
#[inline]
pub fn decode<'a, T: Decode<'a>>(input: &'a [u8]) -> Result<T, XdrError> {
    T::decode(&mut Reader::new(input))
}

/// Declares a structure whose XDR form is its fields in order.
macro_rules! xdr_struct {
    (
        $(#[$doc:meta])*
        pub struct $name:ident $(<$life:lifetime>)? {
            $( $(#[$field_doc:meta])* pub $field:ident : $type:ty, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name $(<$life>)? {
            $( $(#[$field_doc])* pub $field: $type, )*
        }

        $crate::xdr::xdr_struct!(@decode $name $($life)?, $($field)*);

        impl $(<$life>)? $crate::xdr::Encode for $name $(<$life>)? {
            #[inline]
            fn encode(&self, out: &mut $crate::xdr::Writer) {
                $( $crate::xdr::Encode::encode(&self.$field, out); )*
            }
        }
    };
    (@decode $name:ident $life:lifetime, $($field:ident)*) => {
        impl<$life> $crate::xdr::Decode<$life> for $name<$life> {
            #[inline]
            fn decode(
                input: &mut $crate::xdr::Reader<$life>,
            ) -> Result<Self, $crate::xdr::XdrError> {
                Ok(Self { $( $field: $crate::xdr::Decode::decode(input)?, )* })
            }
        }
    };
    (@decode $name:ident, $($field:ident)*) => {
        impl<'a> $crate::xdr::Decode<'a> for $name {
            #[inline]
            fn decode(
                input: &mut $crate::xdr::Reader<'a>,
            ) -> Result<Self, $crate::xdr::XdrError> {
                Ok(Self { $( $field: $crate::xdr::Decode::decode(input)?, )* })
            }
        }
    };
}
pub(crate) use xdr_struct;

/// Declares a number whose values have names, but of which values without a name survive.
macro_rules! xdr_newtype {
    (
        $(#[$doc:meta])*
        pub struct $name:ident {
            $( $(#[$value_doc:meta])* $value_name:ident = $value:expr, )*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub struct $name(pub u32);

        impl $name {
            $( $(#[$value_doc])* pub const $value_name: Self = Self($value); )*
        }

        impl $crate::xdr::Decode<'_> for $name {
            #[inline]
            fn decode(
                input: &mut $crate::xdr::Reader<'_>,
            ) -> Result<Self, $crate::xdr::XdrError> {
                input.u32().map(Self)
            }
        }

        impl $crate::xdr::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut $crate::xdr::Writer) {
                out.u32(self.0);
            }
        }
    };
}
pub(crate) use xdr_newtype;

/// Gives a type made by `bitflags!` over `u32` its wire form, in which bits without a name survive.
macro_rules! xdr_bits {
    ($name:ident) => {
        impl $crate::xdr::Decode<'_> for $name {
            #[inline]
            fn decode(input: &mut $crate::xdr::Reader<'_>) -> Result<Self, $crate::xdr::XdrError> {
                input.u32().map(Self::from_bits_retain)
            }
        }

        impl $crate::xdr::Encode for $name {
            #[inline]
            fn encode(&self, out: &mut $crate::xdr::Writer) {
                out.u32(self.bits());
            }
        }
    };
}
pub(crate) use xdr_bits;

/// Declares opaque data or a string with a bound of its own, `$what` in errors.
macro_rules! xdr_opaque {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(pub &'a [u8]);

        impl<'a> $crate::xdr::Decode<'a> for $name<'a> {
            fn decode(
                input: &mut $crate::xdr::Reader<'a>,
            ) -> Result<Self, $crate::xdr::XdrError> {
                input.opaque($what, $max).map(Self)
            }
        }

        impl $crate::xdr::Encode for $name<'_> {
            fn encode(&self, out: &mut $crate::xdr::Writer) {
                out.opaque(self.0.get(..$max).unwrap_or(self.0));
            }
        }
    };
}
pub(crate) use xdr_opaque;

macro_rules! scalar {
    ($($type:ident)*) => {
        $(
            impl Decode<'_> for $type {
                #[inline]
                fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
                    input.$type()
                }
            }

            impl Encode for $type {
                #[inline]
                fn encode(&self, out: &mut Writer) {
                    out.$type(*self);
                }
            }
        )*
    };
}
scalar!(u32 u64 bool);

/// No data (RFC 4506 §4.16).
impl Decode<'_> for () {
    #[inline]
    fn decode(_: &mut Reader<'_>) -> Result<Self, XdrError> {
        Ok(())
    }
}

impl Encode for () {
    #[inline]
    fn encode(&self, _: &mut Writer) {}
}

/// Variable-length opaque data without a bound of its own; the record bounds it.
impl<'a> Decode<'a> for &'a [u8] {
    #[inline]
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        input.opaque("opaque data", crate::limits::RECORD_BYTES_MAX)
    }
}

impl Encode for &[u8] {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        out.opaque(self);
    }
}

/// Fixed-length opaque data of eight bytes, the size of every verifier (RFC 4506 §4.9).
impl Decode<'_> for [u8; 8] {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        input.array().copied()
    }
}

impl Encode for [u8; 8] {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        out.bytes(self);
    }
}

/// Optional data (RFC 4506 §4.19), which is also how RFC 1813 writes `post_op_attr` and the like.
impl<'a, T: Decode<'a>> Decode<'a> for Option<T> {
    #[inline]
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        Ok(if input.bool()? { Some(T::decode(input)?) } else { None })
    }
}

impl<T: Encode> Encode for Option<T> {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        out.bool(self.is_some());
        if let Some(value) = self {
            value.encode(out);
        }
    }
}
