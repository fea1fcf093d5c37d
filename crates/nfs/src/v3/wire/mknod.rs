//! MKNOD (RFC 1813 §3.3.11).

use super::{DirOpArgs3, FileType, NewObject, Res, Sattr3, SpecData3, WccData};
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_struct};

xdr_struct! {
    /// `MKNOD3args`.
    pub struct MknodArgs<'a> {
        /// The name to create.
        pub location: DirOpArgs3<'a>,
        /// What to create.
        pub what: MknodData3,
    }
}

xdr_struct! {
    /// A device node (`devicedata3`).
    pub struct DeviceData3 {
        /// Its attributes.
        pub attributes: Sattr3,
        /// Its device numbers.
        pub spec: SpecData3,
    }
}

/// What to create (`mknoddata3`).
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
