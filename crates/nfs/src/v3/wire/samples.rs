//! Values for the tests of wire types, each in three forms: ours, that of the `nfs3_types` crate
//! (a second opinion, written by others), and bytes written by hand from RFC 1813.

use super::{
    DirOpArgs3, Fattr3, FileHandle3, FileType, NfsTime3, Sattr3, SetTime3, SpecData3, WccAttr,
    WccData,
};
use crate::xdr::{Encode, Writer};
use alloc::vec::Vec;
pub(crate) use nfs3_types::nfs3 as theirs;
use nfs3_types::xdr_codec::{Opaque, Pack};

/// Checks one value: both encoders give `$hex`, decoding gives the value back and takes every
/// byte, every shorter input is refused, and whatever a changed byte decodes to is written and
/// read again unchanged.
macro_rules! check {
    ($value:expr, $theirs:expr, $hex:expr) => {{
        use crate::v3::wire::samples::{encoded, hex, packed};
        use crate::xdr::{Decode, Reader, decode};
        let value = $value;
        let bytes = hex(&$hex);
        assert_eq!(encoded(&value), bytes, "our encoder");
        assert_eq!(packed(&$theirs), bytes, "the other encoder");
        let mut input = Reader::new(&bytes);
        let mut read = Ok(value);
        assert_eq!(core::mem::replace(&mut read, Decode::decode(&mut input)), read);
        assert_eq!(input.finish(), Ok(()));
        for end in 0..bytes.len() {
            read = decode(&bytes[..end]);
            assert!(read.is_err(), "cut to {end} bytes: {read:?}");
        }
        for (at, byte) in (0..bytes.len()).flat_map(|at| [0, 1, 2, 0x7f, 0xff].map(|b| (at, b))) {
            let mut changed = bytes.clone();
            changed[at] = byte;
            let mut read = Ok(value);
            assert!(read.is_ok());
            read = decode(&changed);
            if let Ok(first) = read {
                let again = encoded(&first);
                assert_eq!(decode(&again), Ok(first), "byte {at} = {byte}");
            }
        }
    }};
}
pub(crate) use check;

pub(crate) fn encoded(value: &impl Encode) -> Vec<u8> {
    let mut out = Writer::default();
    value.encode(&mut out);
    out.into_vec()
}

pub(crate) fn packed(value: &impl Pack) -> Vec<u8> {
    let mut out = Vec::new();
    value.pack(&mut out).unwrap();
    out
}

/// Bytes from hexadecimal digits; spaces don't matter.
pub(crate) fn hex(parts: &[&str]) -> Vec<u8> {
    let digits: Vec<u8> = parts
        .iter()
        .flat_map(|part| part.chars())
        .filter(|digit| !digit.is_whitespace())
        .map(|digit| digit.to_digit(16).unwrap().try_into().unwrap())
        .collect();
    digits.chunks(2).map(|pair| pair[0] << 4 | pair[1]).collect()
}

pub(crate) const FH: &str = "00000005 66682d3031 000000";
pub(crate) const FH_B: &str = "00000004 66682d32";
pub(crate) const NAME: &str = "00000006 6e616d652121 0000";
pub(crate) const NAME_B: &str = "00000001 62 000000";
pub(crate) const SOME: &str = "00000001";
pub(crate) const NONE: &str = "00000000";
pub(crate) const FATTR: &str = "00000001 000001a4 00000002 000003e8 00000064
    0000001122334455 0000000000002000 00000003 00000004 0000000000000506 0000000000000708
    00000010 00000011 00000012 00000013 00000014 00000015";
pub(crate) const WCC: &str = "00000001 0000000000000999 00000021 00000022 00000023 00000024
    00000001
    00000001 000001a4 00000002 000003e8 00000064
    0000001122334455 0000000000002000 00000003 00000004 0000000000000506 0000000000000708
    00000010 00000011 00000012 00000013 00000014 00000015";
pub(crate) const SATTR: &str = "00000001 000001ed 00000001 000003e9 00000001 00000065
    00000001 0000000000000777 00000001 00000002 00000031 00000032";
pub(crate) const VERF: &str = "0102030405060708";
pub(crate) const VERIFIER: [u8; 8] = [1, 2, 3, 4, 5, 6, 7, 8];

pub(crate) const fn fh() -> FileHandle3<'static> {
    FileHandle3(b"fh-01")
}

pub(crate) const fn dir_op() -> DirOpArgs3<'static> {
    DirOpArgs3 { dir: fh(), name: b"name!!" }
}

pub(crate) const fn dir_op_b() -> DirOpArgs3<'static> {
    DirOpArgs3 { dir: FileHandle3(b"fh-2"), name: b"b" }
}

const fn time(seconds: u32, nseconds: u32) -> NfsTime3 {
    NfsTime3 { seconds, nseconds }
}

pub(crate) const fn fattr() -> Fattr3 {
    Fattr3 {
        file_type: FileType::REG,
        mode: 0o644,
        nlink: 2,
        uid: 1000,
        gid: 100,
        size: 0x11_2233_4455,
        used: 8192,
        rdev: SpecData3 { specdata1: 3, specdata2: 4 },
        fsid: 0x506,
        fileid: 0x708,
        atime: time(0x10, 0x11),
        mtime: time(0x12, 0x13),
        ctime: time(0x14, 0x15),
    }
}

pub(crate) const fn wcc() -> WccData {
    let before = WccAttr { size: 0x999, mtime: time(0x21, 0x22), ctime: time(0x23, 0x24) };
    WccData { before: Some(before), after: Some(fattr()) }
}

pub(crate) const fn sattr() -> Sattr3 {
    Sattr3 {
        mode: Some(0o755),
        uid: Some(1001),
        gid: Some(101),
        size: Some(0x777),
        atime: SetTime3::ToServerTime,
        mtime: SetTime3::ToClientTime(time(0x31, 0x32)),
    }
}

/// The sample values as `nfs3_types` has them.
pub(crate) mod other {
    use super::theirs::{
        Nfs3Option, diropargs3, fattr3, ftype3, nfs_fh3, nfstime3, post_op_attr, sattr3, set_atime,
        set_mtime, specdata3, wcc_attr, wcc_data,
    };
    use super::{Opaque, Vec};

    pub(crate) const fn fh() -> nfs_fh3 {
        nfs_fh3 { data: Opaque::borrowed(b"fh-01") }
    }

    pub(crate) fn dir_op() -> diropargs3<'static> {
        diropargs3 { dir: fh(), name: Vec::from(b"name!!").into() }
    }

    pub(crate) fn dir_op_b() -> diropargs3<'static> {
        diropargs3 {
            dir: nfs_fh3 { data: Opaque::borrowed(b"fh-2") },
            name: Vec::from(b"b").into(),
        }
    }

    const fn time(seconds: u32, nseconds: u32) -> nfstime3 {
        nfstime3 { seconds, nseconds }
    }

    pub(crate) const fn fattr() -> fattr3 {
        fattr3 {
            type_: ftype3::NF3REG,
            mode: 0o644,
            nlink: 2,
            uid: 1000,
            gid: 100,
            size: 0x11_2233_4455,
            used: 8192,
            rdev: specdata3 { specdata1: 3, specdata2: 4 },
            fsid: 0x506,
            fileid: 0x708,
            atime: time(0x10, 0x11),
            mtime: time(0x12, 0x13),
            ctime: time(0x14, 0x15),
        }
    }

    pub(crate) const fn post_op() -> post_op_attr {
        Nfs3Option::Some(fattr())
    }

    pub(crate) const fn wcc() -> wcc_data {
        let before = wcc_attr { size: 0x999, mtime: time(0x21, 0x22), ctime: time(0x23, 0x24) };
        wcc_data { before: Nfs3Option::Some(before), after: post_op() }
    }

    pub(crate) const fn sattr() -> sattr3 {
        sattr3 {
            mode: Nfs3Option::Some(0o755),
            uid: Nfs3Option::Some(1001),
            gid: Nfs3Option::Some(101),
            size: Nfs3Option::Some(0x777),
            atime: set_atime::SET_TO_SERVER_TIME,
            mtime: set_mtime::SET_TO_CLIENT_TIME(time(0x31, 0x32)),
        }
    }
}
