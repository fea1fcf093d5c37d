//! CREATE (RFC 1813 §3.3.8).

use super::{DirOpArgs3, NewObject, Res, Sattr3, WccData};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

xdr_struct! {
    /// `CREATE3args`.
    pub struct CreateArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// How, and with which attributes.
        pub how: CreateHow3,
    }
}

/// How to treat an existing name (`createhow3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CreateHow3 {
    /// UNCHECKED: an existing file is not an error.
    Unchecked(Sattr3),
    /// GUARDED: an existing name is an error.
    Guarded(Sattr3),
    /// EXCLUSIVE: as guarded, but a retransmission with the same verifier succeeds.
    Exclusive([u8; 8]),
}

impl Decode<'_> for CreateHow3 {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        match input.u32()? {
            0 => Sattr3::decode(input).map(Self::Unchecked),
            1 => Sattr3::decode(input).map(Self::Guarded),
            2 => Decode::decode(input).map(Self::Exclusive),
            value => Err(XdrError::BadDiscriminant { what: "createmode3", value }),
        }
    }
}

impl Encode for CreateHow3 {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Unchecked(attributes) => {
                out.u32(0);
                attributes.encode(out);
            }
            Self::Guarded(attributes) => {
                out.u32(1);
                attributes.encode(out);
            }
            Self::Exclusive(verifier) => {
                out.u32(2);
                verifier.encode(out);
            }
        }
    }
}

/// `CREATE3res`; a failure gives the directory around the operation.
pub type CreateRes<'a> = Res<NewObject<'a>, WccData>;
