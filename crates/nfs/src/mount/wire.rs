//! The types of MOUNT version 3 (RFC 1813 §5.1 and §5.2).

use crate::limits::{MOUNT_FLAVORS_MAX, MOUNT_NAME_BYTES_MAX, MOUNT_PATH_BYTES_MAX};
use crate::v3::wire::FileHandle3;
use crate::xdr::{
    Decode, Encode, List, Reader, Writer, XdrError, xdr_newtype, xdr_opaque, xdr_struct,
};

/// The procedures of MOUNT by their numbers (RFC 1813 §5.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u32)]
#[expect(missing_docs, reason = "the names are those of RFC 1813 §5.2.0 to §5.2.5")]
pub enum Procedure {
    Null = 0,
    Mnt = 1,
    Dump = 2,
    Umnt = 3,
    Umntall = 4,
    Export = 5,
}

impl Procedure {
    /// Every procedure, at the index that is its number.
    pub const ALL: [Self; 6] =
        [Self::Null, Self::Mnt, Self::Dump, Self::Umnt, Self::Umntall, Self::Export];

    /// The procedure with this number, if there is one.
    #[must_use]
    pub fn of(number: u32) -> Option<Self> {
        Self::ALL.get(number as usize).copied()
    }
}

xdr_newtype! {
    /// The outcome of MNT (RFC 1813 §5.1.5, `mountstat3`). Unknown values survive.
    pub struct MountStatus {
        /// The path was mounted.
        OK = 0,
        /// Not the owner.
        PERM = 1,
        /// No such path.
        NOENT = 2,
        /// A hard error of the device.
        IO = 5,
        /// Permission denied.
        ACCES = 13,
        /// Not a directory.
        NOTDIR = 20,
        /// An invalid argument.
        INVAL = 22,
        /// The path is too long.
        NAMETOOLONG = 63,
        /// The operation is not supported.
        NOTSUPP = 10_004,
        /// An error that maps to no other value.
        SERVERFAULT = 10_006,
    }
}

xdr_opaque! {
    /// A path on the server (RFC 1813 §5.1.4, `dirpath`): at most 1,024 bytes; more are cut off
    /// when it is written.
    MountPath, "dirpath", MOUNT_PATH_BYTES_MAX
}
xdr_opaque! {
    /// A host or group (RFC 1813 §5.1.4, `name`): at most 255 bytes; more are cut off when it is
    /// written.
    MountName, "mount name", MOUNT_NAME_BYTES_MAX
}

xdr_struct! {
    /// The argument of MNT and UMNT (RFC 1813 §5.2.1, §5.2.3).
    pub struct PathArgs<'a> {
        /// The export path.
        pub path: MountPath<'a>,
    }
}

/// RPC authentication flavors, in the order of the server's preference; at most
/// [`MOUNT_FLAVORS_MAX`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flavors {
    values: [u32; MOUNT_FLAVORS_MAX],
    count: usize,
}

impl Flavors {
    /// These flavors; those beyond [`MOUNT_FLAVORS_MAX`] are dropped.
    #[must_use]
    pub fn new(flavors: &[u32]) -> Self {
        let mut own = Self { count: flavors.len().min(MOUNT_FLAVORS_MAX), ..Self::default() };
        for (slot, flavor) in own.values.iter_mut().zip(flavors) {
            *slot = *flavor;
        }
        own
    }

    /// The flavors.
    #[must_use]
    pub fn as_slice(&self) -> &[u32] {
        self.values.get(..self.count).unwrap_or(&[])
    }
}

impl Decode<'_> for Flavors {
    fn decode(input: &mut Reader<'_>) -> Result<Self, XdrError> {
        let count = input.count("auth_flavors", MOUNT_FLAVORS_MAX)?;
        let mut own = Self { count, ..Self::default() };
        for slot in own.values.iter_mut().take(count) {
            *slot = input.u32()?;
        }
        Ok(own)
    }
}

impl Encode for Flavors {
    fn encode(&self, out: &mut Writer) {
        out.u32(u32::try_from(self.count).unwrap_or(0));
        for flavor in self.as_slice() {
            out.u32(*flavor);
        }
    }
}

xdr_struct! {
    /// The result of a successful MNT (RFC 1813 §5.2.1, `mountres3_ok`).
    pub struct MntOk<'a> {
        /// The handle of the top directory.
        pub handle: FileHandle3<'a>,
        /// The flavors that are accepted for it.
        pub flavors: Flavors,
    }
}

/// The result of MNT (RFC 1813 §5.2.1, `mountres3`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MntRes<'a> {
    /// MNT3_OK and what comes with it.
    Ok(MntOk<'a>),
    /// Another status, never [`MountStatus::OK`].
    Fail(MountStatus),
}

impl<'a> Decode<'a> for MntRes<'a> {
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        match MountStatus::decode(input)? {
            MountStatus::OK => MntOk::decode(input).map(Self::Ok),
            status => Ok(Self::Fail(status)),
        }
    }
}

impl Encode for MntRes<'_> {
    fn encode(&self, out: &mut Writer) {
        match self {
            Self::Ok(ok) => {
                MountStatus::OK.encode(out);
                ok.encode(out);
            }
            Self::Fail(status) => status.encode(out),
        }
    }
}

xdr_struct! {
    /// One mount in the result of DUMP (RFC 1813 §5.2.2, `mountbody`).
    pub struct MountEntry<'a> {
        /// The client.
        pub host: MountName<'a>,
        /// The mounted directory.
        pub directory: MountPath<'a>,
    }
}

xdr_struct! {
    /// One export in the result of EXPORT (RFC 1813 §5.2.5, `exportnode`).
    pub struct ExportEntry<'a> {
        /// The export path.
        pub directory: MountPath<'a>,
        /// The clients that may mount it; empty means everybody.
        pub groups: List<'a, MountName<'a>>,
    }
}

xdr_struct! {
    /// The result of DUMP (RFC 1813 §5.2.2, `mountlist`).
    pub struct DumpRes<'a> {
        /// The mounts the server believes in.
        pub mounts: List<'a, MountEntry<'a>>,
    }
}

xdr_struct! {
    /// The result of EXPORT (RFC 1813 §5.2.5, `exports`).
    pub struct ExportRes<'a> {
        /// The exports.
        pub exports: List<'a, ExportEntry<'a>>,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::{FH, check, fh};
    use crate::xdr::decode;
    use nfs3_types::mount as theirs;
    use nfs3_types::xdr_codec::{List as TheirList, Opaque};

    const PATH: &str = "00000004 2f766f6c";

    const fn their_path() -> theirs::dirpath<'static> {
        theirs::dirpath(Opaque::borrowed(b"/vol"))
    }

    #[test]
    fn a_path() {
        check!(PathArgs { path: MountPath(b"/vol") }, their_path(), [PATH]);
    }

    #[test]
    fn mnt_results() {
        let fhandle = theirs::fhandle3(Opaque::borrowed(b"fh-01"));
        check!(
            MntRes::Ok(MntOk { handle: fh(), flavors: Flavors::new(&[1, 0]) }),
            theirs::mountres3::Ok(theirs::mountres3_ok { fhandle, auth_flavors: [1, 0].into() }),
            ["00000000", FH, "00000002 00000001 00000000"]
        );
        check!(
            MntRes::Fail(MountStatus::ACCES),
            theirs::mountres3::Err(theirs::mountstat3::MNT3ERR_ACCES),
            ["0000000d"]
        );
    }

    #[test]
    fn dump_results() {
        let list = ["00000001 00000006 31302e302e31 0000", PATH, "00000000"];
        let bytes = crate::v3::wire::samples::hex(&list);
        let res: DumpRes<'_> = decode(&bytes).unwrap();
        let entry = MountEntry { host: MountName(b"10.0.1"), directory: MountPath(b"/vol") };
        assert!(res.mounts.iter().eq([entry]));
        let body = theirs::mountbody {
            ml_hostname: theirs::name(Opaque::borrowed(b"10.0.1")),
            ml_directory: their_path(),
        };
        check!(res, TheirList([body].into()), list);
    }

    #[test]
    fn export_results() {
        let list = [
            "00000001",
            PATH,
            "00000001 00000001 61 000000 00000001 00000001 62 000000 00000000",
            "00000001",
            PATH,
            "00000000 00000000",
        ];
        let bytes = crate::v3::wire::samples::hex(&list);
        let res: ExportRes<'_> = decode(&bytes).unwrap();
        let groups: Vec<usize> =
            res.exports.iter().map(|export| export.groups.iter().count()).collect();
        assert_eq!(groups, [2, 0]);
        let name = |name| theirs::name(Opaque::borrowed(name));
        let node = |groups: Vec<theirs::name<'static>>| theirs::export_node {
            ex_dir: their_path(),
            ex_groups: TheirList(groups),
        };
        let other = [node([name(b"a"), name(b"b")].into()), node([].into())];
        check!(res, TheirList(other.into()), list);
    }

    #[test]
    fn bounds_are_kept_in_both_directions() {
        let long = [b'x'; 1025];
        let mut out = Writer::default();
        MountPath(&long).encode(&mut out);
        assert_eq!(decode::<MountPath<'_>>(out.as_bytes()), Ok(MountPath(&long[..1024])));
        let mut out = Writer::default();
        out.opaque(&long);
        let error = XdrError::TooLong { what: "dirpath", len: 1025, max: 1024 };
        assert_eq!(decode::<MountPath<'_>>(out.as_bytes()), Err(error));
        let error = XdrError::TooLong { what: "mount name", len: 1025, max: 255 };
        assert_eq!(decode::<MountName<'_>>(out.as_bytes()), Err(error));
        assert_eq!(Flavors::new(&[7; 17]).as_slice(), [7; 16]);
        let error = XdrError::TooLong { what: "auth_flavors", len: 17, max: 16 };
        assert_eq!(decode::<Flavors>(&17u32.to_be_bytes()), Err(error));
    }
}
