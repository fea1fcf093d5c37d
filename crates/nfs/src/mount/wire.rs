//! The types of MOUNT version 3 (RFC 1813 §5.1 and §5.2).

use crate::limits::{MOUNT_FLAVORS_MAX, MOUNT_NAME_BYTES_MAX, MOUNT_PATH_BYTES_MAX};
use crate::v3::wire::FileHandle3;
use crate::xdr::{Decode, Encode, List, Reader, Writer, XdrError, xdr_newtype, xdr_struct};

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

macro_rules! bounded_string {
    ($(#[$doc:meta])* $name:ident, $what:literal, $max:expr) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub struct $name<'a>(pub &'a [u8]);

        impl<'a> Decode<'a> for $name<'a> {
            fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
                input.opaque($what, $max).map(Self)
            }
        }

        impl Encode for $name<'_> {
            fn encode(&self, out: &mut Writer) {
                out.opaque(self.0.get(..$max).unwrap_or(self.0));
            }
        }
    };
}

bounded_string! {
    /// A path on the server (RFC 1813 §5.1.4, `dirpath`): at most 1,024 bytes; more are cut off
    /// when it is written.
    MountPath, "dirpath", MOUNT_PATH_BYTES_MAX
}
bounded_string! {
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
    /// What a successful MNT gives (RFC 1813 §5.2.1, `mountres3_ok`).
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
        /// What it mounted.
        pub directory: MountPath<'a>,
    }
}

xdr_struct! {
    /// One export in the result of EXPORT (RFC 1813 §5.2.5, `exportnode`).
    pub struct ExportEntry<'a> {
        /// The export path.
        pub directory: MountPath<'a>,
        /// Who may mount it; empty means everybody.
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
        /// Everything that is exported.
        pub exports: List<'a, ExportEntry<'a>>,
    }
}
