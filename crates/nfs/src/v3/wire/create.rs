//! CREATE (RFC 1813 §3.3.8).

use super::{DirOpArgs3, NewObject, Res, Sattr3, WccData};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

xdr_struct! {
    /// `CREATE3args`.
    pub struct CreateArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// The mode of creation, with the attributes.
        pub how: CreateHow3,
    }
}

/// The treatment of an existing name (`createhow3`).
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            CreateArgs { location: dir_op(), how: CreateHow3::Unchecked(sattr()) },
            theirs::CREATE3args {
                where_: other::dir_op(),
                how: theirs::createhow3::UNCHECKED(other::sattr())
            },
            [FH, NAME, "00000000", SATTR]
        );
        check!(
            CreateArgs { location: dir_op(), how: CreateHow3::Guarded(sattr()) },
            theirs::CREATE3args {
                where_: other::dir_op(),
                how: theirs::createhow3::GUARDED(other::sattr())
            },
            [FH, NAME, "00000001", SATTR]
        );
        check!(
            CreateArgs { location: dir_op(), how: CreateHow3::Exclusive(VERIFIER) },
            theirs::CREATE3args {
                where_: other::dir_op(),
                how: theirs::createhow3::EXCLUSIVE(theirs::createverf3(VERIFIER))
            },
            [FH, NAME, "00000002", VERF]
        );
    }

    #[test]
    fn results() {
        check!(
            CreateRes::Ok(NewObject {
                object: Some(fh()),
                attributes: Some(fattr()),
                dir_wcc: wcc()
            }),
            theirs::CREATE3res::Ok(theirs::CREATE3resok {
                obj: theirs::Nfs3Option::Some(other::fh()),
                obj_attributes: other::post_op(),
                dir_wcc: other::wcc()
            }),
            ["00000000", SOME, FH, SOME, FATTR, WCC]
        );
        check!(
            CreateRes::Ok(NewObject { object: None, attributes: None, dir_wcc: WccData::NONE }),
            theirs::CREATE3res::Ok(theirs::CREATE3resok {
                obj: theirs::Nfs3Option::None,
                obj_attributes: theirs::Nfs3Option::None,
                dir_wcc: theirs::wcc_data::default()
            }),
            ["00000000", NONE, NONE, NONE, NONE]
        );
        check!(
            CreateRes::Fail(Status::EXIST, wcc()),
            theirs::CREATE3res::Err((
                theirs::nfsstat3::NFS3ERR_EXIST,
                theirs::CREATE3resfail { dir_wcc: other::wcc() }
            )),
            ["00000011", WCC]
        );
    }

    #[test]
    fn an_unknown_mode_is_named() {
        let bytes = hex(&[FH, NAME, "00000003", SATTR]);
        let error = XdrError::BadDiscriminant { what: "createmode3", value: 3 };
        assert_eq!(crate::xdr::decode::<CreateArgs<'_>>(&bytes), Err(error));
    }
}
