//! MKNOD (RFC 1813 §3.3.11).

use super::{DirOpArgs3, FileType, NewObject, Res, Sattr3, SpecData3, WccData};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

xdr_struct! {
    /// `MKNOD3args`.
    pub struct MknodArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// The object to create.
        pub what: MknodData3,
    }
}

xdr_struct! {
    /// A device node (`devicedata3`).
    pub struct DeviceData3 {
        /// The device's attributes.
        pub attributes: Sattr3,
        /// The device numbers.
        pub spec: SpecData3,
    }
}

/// The object to create (`mknoddata3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MknodData3 {
    /// A character device node.
    CharDevice(DeviceData3),
    /// A block device node.
    BlockDevice(DeviceData3),
    /// A socket.
    Socket(Sattr3),
    /// A named pipe.
    Fifo(Sattr3),
    /// A type that MKNOD does not make: the answer is NFS3ERR_BADTYPE.
    Other(FileType),
}

impl Decode<'_> for MknodData3 {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        match FileType::decode(input)? {
            FileType::CHR => DeviceData3::decode(input).map(Self::CharDevice),
            FileType::BLK => DeviceData3::decode(input).map(Self::BlockDevice),
            FileType::SOCK => Sattr3::decode(input).map(Self::Socket),
            FileType::FIFO => Sattr3::decode(input).map(Self::Fifo),
            other => Ok(Self::Other(other)),
        }
    }
}

impl Encode for MknodData3 {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::CharDevice(device) => {
                FileType::CHR.encode(out);
                device.encode(out);
            }
            Self::BlockDevice(device) => {
                FileType::BLK.encode(out);
                device.encode(out);
            }
            Self::Socket(attributes) => {
                FileType::SOCK.encode(out);
                attributes.encode(out);
            }
            Self::Fifo(attributes) => {
                FileType::FIFO.encode(out);
                attributes.encode(out);
            }
            Self::Other(file_type) => file_type.encode(out),
        }
    }
}

/// `MKNOD3res`; a failure gives the directory around the operation.
pub type MknodRes<'a> = Res<NewObject<'a>, WccData>;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::Status;
    use crate::v3::wire::samples::*;
    use nfs3_types::nfs3 as theirs;

    #[test]
    fn arguments() {
        check!(
            MknodArgs {
                location: dir_op(),
                what: MknodData3::CharDevice(DeviceData3 {
                    attributes: sattr(),
                    spec: SpecData3 { specdata1: 8, specdata2: 1 }
                })
            },
            theirs::MKNOD3args {
                where_: other::dir_op(),
                what: theirs::mknoddata3::NF3CHR(theirs::devicedata3 {
                    dev_attributes: other::sattr(),
                    spec: theirs::specdata3 { specdata1: 8, specdata2: 1 }
                })
            },
            [FH, NAME, "00000004", SATTR, "00000008 00000001"]
        );
        check!(
            MknodArgs {
                location: dir_op(),
                what: MknodData3::BlockDevice(DeviceData3 {
                    attributes: sattr(),
                    spec: SpecData3 { specdata1: 8, specdata2: 1 }
                })
            },
            theirs::MKNOD3args {
                where_: other::dir_op(),
                what: theirs::mknoddata3::NF3BLK(theirs::devicedata3 {
                    dev_attributes: other::sattr(),
                    spec: theirs::specdata3 { specdata1: 8, specdata2: 1 }
                })
            },
            [FH, NAME, "00000003", SATTR, "00000008 00000001"]
        );
        check!(
            MknodArgs { location: dir_op(), what: MknodData3::Socket(sattr()) },
            theirs::MKNOD3args {
                where_: other::dir_op(),
                what: theirs::mknoddata3::NF3SOCK(other::sattr())
            },
            [FH, NAME, "00000006", SATTR]
        );
        check!(
            MknodArgs { location: dir_op(), what: MknodData3::Fifo(sattr()) },
            theirs::MKNOD3args {
                where_: other::dir_op(),
                what: theirs::mknoddata3::NF3FIFO(other::sattr())
            },
            [FH, NAME, "00000007", SATTR]
        );
    }

    #[test]
    fn a_type_it_does_not_make_survives() {
        for number in [1, 2, 5, 0, 99] {
            let bytes = hex(&[FH, NAME, &alloc::format!("{number:08x}")]);
            let args: MknodArgs<'_> = crate::xdr::decode(&bytes).unwrap();
            assert_eq!(args.what, MknodData3::Other(FileType(number)));
            assert_eq!(encoded(&args), bytes);
        }
    }

    #[test]
    fn results() {
        check!(
            MknodRes::Ok(NewObject {
                object: Some(fh()),
                attributes: Some(fattr()),
                dir_wcc: wcc()
            }),
            theirs::MKNOD3res::Ok(theirs::MKNOD3resok {
                obj: theirs::Nfs3Option::Some(other::fh()),
                obj_attributes: other::post_op(),
                dir_wcc: other::wcc()
            }),
            ["00000000", SOME, FH, SOME, FATTR, WCC]
        );
        check!(
            MknodRes::Fail(Status::BADTYPE, wcc()),
            theirs::MKNOD3res::Err((
                theirs::nfsstat3::NFS3ERR_BADTYPE,
                theirs::MKNOD3resfail { dir_wcc: other::wcc() }
            )),
            ["00002717", WCC]
        );
    }
}
