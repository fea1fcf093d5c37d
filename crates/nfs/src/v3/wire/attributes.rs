//! `fattr3`, `wcc_data` and how they come from the store's attributes.

use super::time::NfsTime3;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_newtype, xdr_struct};
use weir_core::attr::Change;
use weir_core::{Attr, DeviceNumber, FileKind};

xdr_newtype! {
    /// The type of an object (RFC 1813 §2.6, `ftype3`). Unknown values survive.
    pub struct FileType {
        /// A regular file.
        REG = 1,
        /// A directory.
        DIR = 2,
        /// A block device node.
        BLK = 3,
        /// A character device node.
        CHR = 4,
        /// A symbolic link.
        LNK = 5,
        /// A socket.
        SOCK = 6,
        /// A named pipe.
        FIFO = 7,
    }
}

impl From<FileKind> for FileType {
    #[inline]
    fn from(kind: FileKind) -> Self {
        match kind {
            FileKind::Regular => Self::REG,
            FileKind::Directory => Self::DIR,
            FileKind::BlockDevice => Self::BLK,
            FileKind::CharDevice => Self::CHR,
            FileKind::Symlink => Self::LNK,
            FileKind::Socket => Self::SOCK,
            FileKind::Fifo => Self::FIFO,
        }
    }
}

xdr_struct! {
    /// Device numbers (RFC 1813 §2.6, `specdata3`).
    pub struct SpecData3 {
        /// The major number.
        pub specdata1: u32,
        /// The minor number.
        pub specdata2: u32,
    }
}

impl From<DeviceNumber> for SpecData3 {
    #[inline]
    fn from(device: DeviceNumber) -> Self {
        Self { specdata1: device.major, specdata2: device.minor }
    }
}

impl From<SpecData3> for DeviceNumber {
    #[inline]
    fn from(spec: SpecData3) -> Self {
        Self { major: spec.specdata1, minor: spec.specdata2 }
    }
}

/// The attributes of an object (RFC 1813 §2.6, `fattr3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fattr3 {
    /// The object's type.
    pub file_type: FileType,
    /// Permission bits, setuid, setgid and sticky.
    pub mode: u32,
    /// Number of names.
    pub nlink: u32,
    /// Owner.
    pub uid: u32,
    /// Group.
    pub gid: u32,
    /// Size in bytes.
    pub size: u64,
    /// Space allocated, in bytes.
    pub used: u64,
    /// Device numbers of a special file.
    pub rdev: SpecData3,
    /// The file system it is in.
    pub fsid: u64,
    /// Unique within that file system.
    pub fileid: u64,
    /// Last access.
    pub atime: NfsTime3,
    /// Last change of the data.
    pub mtime: NfsTime3,
    /// Last change of data or attributes.
    pub ctime: NfsTime3,
}

impl Fattr3 {
    /// The attributes' size on the wire, in bytes.
    pub const BYTES: usize = 84;

    /// The store's attributes of an object in the file system `fsid`.
    #[inline]
    #[must_use]
    pub fn new(attr: &Attr, fsid: u64) -> Self {
        Self {
            file_type: attr.kind.into(),
            mode: attr.mode,
            nlink: attr.nlink,
            uid: attr.uid,
            gid: attr.gid,
            size: attr.size,
            used: attr.used,
            rdev: attr.rdev.into(),
            fsid,
            fileid: attr.fileid,
            atime: attr.atime.into(),
            mtime: attr.mtime.into(),
            ctime: attr.ctime.into(),
        }
    }

    /// The wire form as one block.
    #[inline]
    #[must_use]
    pub fn to_block(&self) -> [u8; Self::BYTES] {
        let mut block = [0; Self::BYTES];
        block[0..4].copy_from_slice(&self.file_type.0.to_be_bytes());
        block[4..8].copy_from_slice(&self.mode.to_be_bytes());
        block[8..12].copy_from_slice(&self.nlink.to_be_bytes());
        block[12..16].copy_from_slice(&self.uid.to_be_bytes());
        block[16..20].copy_from_slice(&self.gid.to_be_bytes());
        block[20..28].copy_from_slice(&self.size.to_be_bytes());
        block[28..36].copy_from_slice(&self.used.to_be_bytes());
        block[36..40].copy_from_slice(&self.rdev.specdata1.to_be_bytes());
        block[40..44].copy_from_slice(&self.rdev.specdata2.to_be_bytes());
        block[44..52].copy_from_slice(&self.fsid.to_be_bytes());
        block[52..60].copy_from_slice(&self.fileid.to_be_bytes());
        block[60..64].copy_from_slice(&self.atime.seconds.to_be_bytes());
        block[64..68].copy_from_slice(&self.atime.nseconds.to_be_bytes());
        block[68..72].copy_from_slice(&self.mtime.seconds.to_be_bytes());
        block[72..76].copy_from_slice(&self.mtime.nseconds.to_be_bytes());
        block[76..80].copy_from_slice(&self.ctime.seconds.to_be_bytes());
        block[80..84].copy_from_slice(&self.ctime.nseconds.to_be_bytes());
        block
    }
}

impl Decode<'_> for Fattr3 {
    #[inline]
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        let input = &mut Reader::new(input.array::<{ Self::BYTES }>()?);
        Ok(Self {
            file_type: FileType::decode(input)?,
            mode: input.u32()?,
            nlink: input.u32()?,
            uid: input.u32()?,
            gid: input.u32()?,
            size: input.u64()?,
            used: input.u64()?,
            rdev: SpecData3::decode(input)?,
            fsid: input.u64()?,
            fileid: input.u64()?,
            atime: NfsTime3::decode(input)?,
            mtime: NfsTime3::decode(input)?,
            ctime: NfsTime3::decode(input)?,
        })
    }
}

impl Encode for Fattr3 {
    #[inline]
    fn encode(&self, out: &mut Writer) {
        out.bytes(&self.to_block());
    }
}

xdr_struct! {
    /// The attributes that show a change, as they were before an operation (RFC 1813 §2.6,
    /// `wcc_attr`).
    pub struct WccAttr {
        /// Size in bytes.
        pub size: u64,
        /// Last change of the data.
        pub mtime: NfsTime3,
        /// Last change of data or attributes.
        pub ctime: NfsTime3,
    }
}

impl From<&Attr> for WccAttr {
    #[inline]
    fn from(attr: &Attr) -> Self {
        Self { size: attr.size, mtime: attr.mtime.into(), ctime: attr.ctime.into() }
    }
}

xdr_struct! {
    /// Weak cache consistency data: an object around an operation (RFC 1813 §2.6, `wcc_data`).
    pub struct WccData {
        /// Just before it.
        pub before: Option<WccAttr>,
        /// Just after it.
        pub after: Option<Fattr3>,
    }
}

impl WccData {
    /// Nothing is known.
    pub const NONE: Self = Self { before: None, after: None };

    /// The weak cache consistency data of a change to an object in the file system `fsid`.
    #[inline]
    #[must_use]
    pub fn new(change: &Change, fsid: u64) -> Self {
        Self {
            before: change.before.as_ref().map(WccAttr::from),
            after: change.after.as_ref().map(|attr| Fattr3::new(attr, fsid)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::{FATTR, SOME, WCC, check, fattr, other, wcc};
    use nfs3_types::nfs3 as theirs;
    use weir_core::Timestamp;

    fn attr(kind: FileKind) -> Attr {
        let at = |secs, nanos| Timestamp { secs, nanos };
        Attr {
            kind,
            mode: 0o644,
            has_acl: false,
            nlink: 2,
            uid: 1000,
            gid: 100,
            size: 0x11_2233_4455,
            used: 8192,
            rdev: DeviceNumber { major: 3, minor: 4 },
            fileid: 0x708,
            atime: at(0x10, 0x11),
            mtime: at(0x12, 0x13),
            ctime: at(0x14, 0x15),
        }
    }

    #[test]
    fn the_block_is_what_the_standard_says() {
        check!(fattr(), other::fattr(), [FATTR]);
        check!(Some(fattr()), other::post_op(), [SOME, FATTR]);
        check!(wcc(), other::wcc(), [WCC]);
    }

    #[test]
    fn the_store_s_attributes_keep_their_values() {
        assert_eq!(Fattr3::new(&attr(FileKind::Regular), 0x506), fattr());
        for (kind, number) in [
            (FileKind::Regular, theirs::ftype3::NF3REG),
            (FileKind::Directory, theirs::ftype3::NF3DIR),
            (FileKind::BlockDevice, theirs::ftype3::NF3BLK),
            (FileKind::CharDevice, theirs::ftype3::NF3CHR),
            (FileKind::Symlink, theirs::ftype3::NF3LNK),
            (FileKind::Socket, theirs::ftype3::NF3SOCK),
            (FileKind::Fifo, theirs::ftype3::NF3FIFO),
        ] {
            assert_eq!(Fattr3::new(&attr(kind), 1).file_type.0, number as u32);
        }
        let spec = SpecData3 { specdata1: 3, specdata2: 4 };
        assert_eq!(DeviceNumber::from(spec), attr(FileKind::Regular).rdev);
    }

    #[test]
    fn a_change_keeps_what_is_known_of_it() {
        let known = attr(FileKind::Regular);
        assert_eq!(WccData::new(&Change::default(), 1), WccData::NONE);
        let change = Change { before: Some(known), after: Some(known) };
        let data = WccData::new(&change, 0x506);
        assert_eq!(data.after, Some(fattr()));
        let fattr = fattr();
        let before = WccAttr { size: fattr.size, mtime: fattr.mtime, ctime: fattr.ctime };
        assert_eq!(data.before, Some(before));
    }
}
