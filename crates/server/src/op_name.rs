//! [`OpName`]: the operations of all protocols, by which a volume's statistics count.
//!
//! The set is closed and belongs to no protocol: the session of a protocol names the operation of
//! each request. Calls that are not for a volume (MOUNT, NLM, rpcbind) have no name here.

use weir_core::OpClass;
use weir_smb::wire::Command;

/// An operation of a protocol. A small number, by which counters are indexed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OpName(u8);

struct Entry {
    protocol: &'static str,
    name: &'static str,
    class: OpClass,
}

const fn nfs3(name: &'static str, class: OpClass) -> Entry {
    Entry { protocol: "nfs3", name, class }
}

const fn nfsacl(name: &'static str, class: OpClass) -> Entry {
    Entry { protocol: "nfsacl", name, class }
}

const fn smb(name: &'static str, class: OpClass) -> Entry {
    Entry { protocol: "smb", name, class }
}

#[cfg(test)]
const fn toy(name: &'static str, class: OpClass) -> Entry {
    Entry { protocol: "toy", name, class }
}

use OpClass::{Commit, Metadata, Null, Read, Write};

/// Every operation at its index: the procedures of NFSv3 (RFC 1813 §3.3) by their numbers, then the
/// procedures of NFSACL, then the commands of SMB on volumes (MS-SMB2 §2.2.1) and the two halves of
/// its server-side copy.
const TABLE: [Entry; OpName::COUNT] = [
    nfs3("NULL", Null),
    nfs3("GETATTR", Metadata),
    nfs3("SETATTR", Metadata),
    nfs3("LOOKUP", Metadata),
    nfs3("ACCESS", Metadata),
    nfs3("READLINK", Metadata),
    nfs3("READ", Read),
    nfs3("WRITE", Write),
    nfs3("CREATE", Metadata),
    nfs3("MKDIR", Metadata),
    nfs3("SYMLINK", Metadata),
    nfs3("MKNOD", Metadata),
    nfs3("REMOVE", Metadata),
    nfs3("RMDIR", Metadata),
    nfs3("RENAME", Metadata),
    nfs3("LINK", Metadata),
    nfs3("READDIR", Metadata),
    nfs3("READDIRPLUS", Metadata),
    nfs3("FSSTAT", Metadata),
    nfs3("FSINFO", Metadata),
    nfs3("PATHCONF", Metadata),
    nfs3("COMMIT", Commit),
    nfsacl("NULL", Null),
    nfsacl("GETACL", Metadata),
    nfsacl("SETACL", Metadata),
    smb("CREATE", Metadata),
    smb("CLOSE", Metadata),
    smb("FLUSH", Commit),
    smb("READ", Read),
    smb("WRITE", Write),
    smb("LOCK", Metadata),
    smb("IOCTL", Metadata),
    smb("QUERY_DIRECTORY", Metadata),
    smb("CHANGE_NOTIFY", Metadata),
    smb("QUERY_INFO", Metadata),
    smb("SET_INFO", Metadata),
    smb("OPLOCK_BREAK", Metadata),
    smb("COPYCHUNK_READ", Read),
    smb("COPYCHUNK_WRITE", Write),
    #[cfg(test)]
    toy("OPEN", Metadata),
    #[cfg(test)]
    toy("READ", Read),
    #[cfg(test)]
    toy("WRITE", Write),
    #[cfg(test)]
    toy("CHAIN", Metadata),
    #[cfg(test)]
    toy("LOCK", Metadata),
    #[cfg(test)]
    toy("UNLOCK", Metadata),
];

/// Procedures of NFSv3, of NFSACL, commands of SMB, and commands of the protocol for tests.
const NFS3: u8 = 22;
const NFSACL: u8 = 3;
const SMB: u8 = 14;
const TOY: u8 = if cfg!(test) { 6 } else { 0 };

impl OpName {
    /// The number of operations.
    pub(crate) const COUNT: usize = (NFS3 + NFSACL + SMB + TOY) as usize;

    /// The procedure of NFSv3 with this number.
    #[inline]
    pub(crate) fn nfs3(procedure: u32) -> Option<Self> {
        u8::try_from(procedure).ok().filter(|number| *number < NFS3).map(Self)
    }

    /// The procedure of NFSACL with this number.
    pub(crate) fn nfsacl(procedure: u32) -> Option<Self> {
        let number = u8::try_from(procedure).ok().filter(|number| *number < NFSACL)?;
        Some(Self(NFS3 + number))
    }

    /// The READ of a server-side copy of SMB (MS-SMB2 §3.3.5.15.6).
    pub(crate) const SMB_COPY_READ: Self = Self(NFS3 + NFSACL + 12);
    /// The WRITE of a server-side copy of SMB.
    pub(crate) const SMB_COPY_WRITE: Self = Self(NFS3 + NFSACL + 13);

    /// The command of SMB, if it is one on volumes.
    #[inline]
    pub(crate) fn smb(command: Command) -> Option<Self> {
        let at = match command {
            Command::Create => 0,
            Command::Close => 1,
            Command::Flush => 2,
            Command::Read => 3,
            Command::Write => 4,
            Command::Lock => 5,
            Command::Ioctl => 6,
            Command::QueryDirectory => 7,
            Command::ChangeNotify => 8,
            Command::QueryInfo => 9,
            Command::SetInfo => 10,
            Command::OplockBreak => 11,
            Command::Negotiate
            | Command::SessionSetup
            | Command::Logoff
            | Command::TreeConnect
            | Command::TreeDisconnect
            | Command::Cancel
            | Command::Echo => return None,
        };
        Some(Self(NFS3 + NFSACL + at))
    }

    /// Every operation, by its index.
    pub(crate) fn all() -> impl Iterator<Item = Self> {
        (0..NFS3 + NFSACL + SMB + TOY).map(Self)
    }

    /// A number below [`COUNT`](Self::COUNT) that no other operation has.
    #[inline]
    pub(crate) fn index(self) -> usize {
        self.0.into()
    }

    /// The protocol: `nfs3`, `nfsacl` or `smb`.
    pub(crate) fn protocol(self) -> &'static str {
        TABLE[self.index()].protocol
    }

    /// The name that the protocol's standard gives the operation, such as `GETATTR`.
    pub(crate) fn name(self) -> &'static str {
        TABLE[self.index()].name
    }

    /// The kind of the operation.
    pub(crate) fn class(self) -> OpClass {
        TABLE[self.index()].class
    }
}

#[cfg(test)]
impl OpName {
    pub(crate) const TOY_OPEN: Self = Self(NFS3 + NFSACL + SMB);
    pub(crate) const TOY_READ: Self = Self(NFS3 + NFSACL + SMB + 1);
    pub(crate) const TOY_WRITE: Self = Self(NFS3 + NFSACL + SMB + 2);
    pub(crate) const TOY_CHAIN: Self = Self(NFS3 + NFSACL + SMB + 3);
    pub(crate) const TOY_LOCK: Self = Self(NFS3 + NFSACL + SMB + 4);
    pub(crate) const TOY_UNLOCK: Self = Self(NFS3 + NFSACL + SMB + 5);
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_nfs::acl;
    use weir_nfs::v3::Route;
    use weir_nfs::v3::wire::Procedure;

    #[test]
    fn operations_of_nfs_have_the_names_and_classes_of_their_procedures() {
        // A handle of no bytes, and words enough for the arguments of READ and WRITE.
        let args = [0; 64];
        for procedure in Procedure::ALL {
            let op = OpName::nfs3(procedure as u32).unwrap();
            assert_eq!(op.name(), format!("{procedure:?}").to_uppercase());
            assert_eq!(op.protocol(), "nfs3");
            assert_eq!(op.class(), Route::of(procedure as u32, &args).unwrap().class, "{op:?}");
        }
        for number in 0..3 {
            let (op, procedure) = (OpName::nfsacl(number), acl::wire::Procedure::of(number));
            assert_eq!(op.unwrap().name(), format!("{:?}", procedure.unwrap()).to_uppercase());
            assert_eq!(op.unwrap().protocol(), "nfsacl");
        }
        assert_eq!((OpName::nfs3(22), OpName::nfsacl(3)), (None, None));
        assert_eq!((OpName::nfs3(256), OpName::nfsacl(u32::MAX)), (None, None));
    }

    #[test]
    fn each_operation_has_an_index_of_its_own() {
        let smb = Command::ALL.into_iter().filter_map(OpName::smb);
        let copies = [OpName::SMB_COPY_READ, OpName::SMB_COPY_WRITE];
        let named = (0..22).filter_map(OpName::nfs3).chain((0..3).filter_map(OpName::nfsacl));
        let named = named.chain(smb).chain(copies);
        assert!(named.eq(OpName::all().filter(|op| op.protocol() != "toy")));
        assert!(OpName::all().map(OpName::index).eq(0..OpName::COUNT));
    }
}
