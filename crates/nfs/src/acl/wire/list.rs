//! One list on the wire: how many entries it has, then those that were asked for.

use crate::limits::ACL_ENTRIES_MAX;
use crate::xdr::{Decode, Encode, Reader, Writer, XdrError, xdr_bits};
use alloc::vec::Vec;
use weir_core::acl::{Entry, Who};
use weir_core::{Access, Acl, AclKind, Attr, FsError, FsResult};

bitflags::bitflags! {
    /// The lists, and the parts of them (`na_mask`). Unknown bits survive.
    #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
    pub struct AclMask: u32 {
        /// NA_ACL: the access list.
        const ACL = 0x1;
        /// NA_ACLCNT: the number of its entries.
        const ACLCNT = 0x2;
        /// NA_DFACL: the default list.
        const DFACL = 0x4;
        /// NA_DFACLCNT: the number of its entries.
        const DFACLCNT = 0x8;
    }
}
xdr_bits!(AclMask);

const USER_OBJ: u32 = 0x01;
const USER: u32 = 0x02;
const GROUP_OBJ: u32 = 0x04;
const GROUP: u32 = 0x08;
const MASK: u32 = 0x10;
const OTHER: u32 = 0x20;
/// Beside the kind of an entry of a default list (`NA_ACL_DEFAULT`).
const DEFAULT: u32 = 0x1000;

const RIGHTS: u32 = 7;
const ENTRY_BYTES: usize = 12;

/// One entry as it was sent (`posix_acl_entry`, `aclent`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AclEntry {
    /// The entry's kind, as one of the bits 0x01 to 0x20, with 0x1000 in a default list.
    pub kind: u32,
    /// The user or group; for the owner and the owning group the object's own.
    pub id: u32,
    /// Read 4, write 2, execute 1.
    pub rights: u32,
}

impl AclEntry {
    fn read(bytes: &[u8; ENTRY_BYTES]) -> Self {
        let [k0, k1, k2, k3, i0, i1, i2, i3, rights @ ..] = *bytes;
        Self {
            kind: u32::from_be_bytes([k0, k1, k2, k3]),
            id: u32::from_be_bytes([i0, i1, i2, i3]),
            rights: u32::from_be_bytes(rights),
        }
    }

    fn write(self, out: &mut Vec<u8>) {
        for word in [self.kind, self.id, self.rights] {
            out.extend_from_slice(&word.to_be_bytes());
        }
    }

    fn of(entry: Entry, attr: &Attr, flag: u32) -> Self {
        let (kind, id) = match entry.who {
            Who::Owner => (USER_OBJ, attr.uid),
            Who::User(id) => (USER, id),
            Who::OwningGroup => (GROUP_OBJ, attr.gid),
            Who::Group(id) => (GROUP, id),
            Who::Mask => (MASK, 0),
            Who::Others => (OTHER, 0),
        };
        Self { kind: kind | flag, id, rights: u32::from(entry.rights.bits()) }
    }

    fn to_entry(self) -> FsResult<Entry> {
        let who = match self.kind & !DEFAULT {
            USER_OBJ => Who::Owner,
            USER => Who::User(self.id),
            GROUP_OBJ => Who::OwningGroup,
            GROUP => Who::Group(self.id),
            MASK => Who::Mask,
            OTHER => Who::Others,
            _ => return Err(FsError::Invalid),
        };
        // Solaris sets more bits in a mask.
        let rights = if who == Who::Mask { self.rights & RIGHTS } else { self.rights };
        let rights = u8::try_from(rights).ok().and_then(Access::from_bits);
        Ok(Entry { who, rights: rights.ok_or(FsError::Invalid)? })
    }
}

/// The entries of a list in their wire form, to send from.
#[derive(Clone, Debug, Default)]
pub struct ListBytes(Vec<u8>);

impl ListBytes {
    /// The entries of `acl`, a list of the kind `kind` of an object with `attr`. One without a
    /// mask gets one that changes nothing, because Solaris expects four entries of every list.
    ///
    /// # Errors
    /// `TooLarge` beyond [`ACL_ENTRIES_MAX`] entries.
    pub fn new(acl: &Acl, kind: AclKind, attr: &Attr) -> FsResult<Self> {
        let flag = if kind == AclKind::Default { DEFAULT } else { 0 };
        let mut out = Vec::new();
        let masked = acl.entries().iter().any(|entry| entry.who == Who::Mask);
        for entry in acl.entries() {
            AclEntry::of(*entry, attr, flag).write(&mut out);
            if entry.who == Who::OwningGroup && !masked {
                let mask = Entry { who: Who::Mask, ..*entry };
                AclEntry::of(mask, attr, flag).write(&mut out);
            }
        }
        if out.len() > ACL_ENTRIES_MAX.saturating_mul(ENTRY_BYTES) {
            return Err(FsError::TooLarge);
        }
        Ok(Self(out))
    }

    /// The list to send: the number of entries, and with `entries` those too.
    #[must_use]
    pub fn list(&self, entries: bool) -> SecAcl<'_> {
        let (all, _) = self.0.as_chunks();
        let count = u32::try_from(all.len()).unwrap_or(0);
        SecAcl { count, entries: if entries { all } else { &[] } }
    }
}

/// A list as it is sent: `aclcnt` and `aclent<>`, or their equals for default lists.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SecAcl<'a> {
    count: u32,
    entries: &'a [[u8; ENTRY_BYTES]],
}

impl<'a> SecAcl<'a> {
    /// The number of entries, as it was told.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// The entries that were sent.
    pub fn entries(&self) -> impl Iterator<Item = AclEntry> + use<'a> {
        self.entries.iter().map(AclEntry::read)
    }

    /// The list that was sent; none where it has no entries.
    ///
    /// # Errors
    /// `Invalid` if not all entries came, or they are no list.
    pub fn to_acl(&self) -> FsResult<Option<Acl>> {
        if usize::try_from(self.count) != Ok(self.entries.len()) {
            return Err(FsError::Invalid);
        }
        if self.entries.is_empty() {
            return Ok(None);
        }
        let mut entries =
            self.entries().map(AclEntry::to_entry).collect::<FsResult<Vec<Entry>>>()?;
        let rights =
            |who| entries.iter().find(|entry: &&Entry| entry.who == who).map(|entry| entry.rights);
        // A mask that changes nothing: see `ListBytes::new`.
        if entries.len() == 4 && rights(Who::Mask) == rights(Who::OwningGroup) {
            entries.retain(|entry| entry.who != Who::Mask);
        }
        Acl::new(entries).map(Some)
    }
}

impl<'a> Decode<'a> for SecAcl<'a> {
    fn decode(input: &mut Reader<'a>) -> Result<Self, XdrError> {
        let count = input.count("NFSACL entries", ACL_ENTRIES_MAX)?;
        let sent = input.count("NFSACL entries", count)?;
        let (entries, _) = input.bytes(sent.saturating_mul(ENTRY_BYTES))?.as_chunks();
        Ok(Self { count: u32::try_from(count).unwrap_or(0), entries })
    }
}

impl Encode for SecAcl<'_> {
    fn encode(&self, out: &mut Writer) {
        out.u32(self.count);
        out.u32(u32::try_from(self.entries.len()).unwrap_or(0));
        out.bytes(self.entries.as_flattened());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::v3::wire::samples::{encoded, hex};
    use crate::xdr::decode;
    use proptest::prelude::*;
    use weir_core::{DeviceNumber, FileKind, Timestamp};

    fn attr() -> Attr {
        let time = Timestamp::default();
        Attr {
            kind: FileKind::Directory,
            mode: 0,
            has_acl: true,
            nlink: 2,
            uid: 1000,
            gid: 100,
            size: 0,
            used: 0,
            rdev: DeviceNumber::default(),
            fileid: 1,
            atime: time,
            mtime: time,
            ctime: time,
        }
    }

    fn named() -> Acl {
        let mut entries = Acl::from_mode(0o750).entries().to_vec();
        entries.push(Entry { who: Who::User(0x102), rights: Access::READ });
        entries.push(Entry { who: Who::Mask, rights: Access::all() });
        Acl::new(entries).unwrap()
    }

    const NAMED: [&str; 6] = [
        "00000005 00000005",
        "00000001 000003e8 00000007",
        "00000002 00000102 00000004",
        "00000004 00000064 00000005",
        "00000010 00000000 00000007",
        "00000020 00000000 00000000",
    ];

    #[test]
    fn a_list_is_sent_as_linux_sends_it() {
        let bytes = ListBytes::new(&named(), AclKind::Access, &attr()).unwrap();
        assert_eq!(encoded(&bytes.list(true)), hex(&NAMED));
        let read = hex(&NAMED);
        let read: SecAcl<'_> = decode(&read).unwrap();
        assert_eq!((read.count(), read.to_acl()), (5, Ok(Some(named()))));
        assert_eq!(encoded(&bytes.list(false)), hex(&["00000005 00000000"]));
        let bytes = ListBytes::new(&named(), AclKind::Default, &attr()).unwrap();
        assert_eq!(bytes.list(true).entries().next().unwrap().kind, 0x1001);
        assert_eq!(bytes.list(true).to_acl(), Ok(Some(named())));
    }

    #[test]
    fn a_mode_is_four_entries_on_the_wire_and_three_here() {
        let mode = Acl::from_mode(0o640);
        let bytes = ListBytes::new(&mode, AclKind::Access, &attr()).unwrap();
        assert_eq!(bytes.list(true).count(), 4);
        assert_eq!(bytes.list(true).entries().nth(2).unwrap().rights, 4, "the group's rights");
        assert_eq!(bytes.list(true).to_acl(), Ok(Some(mode)));
        assert_eq!(SecAcl::default().to_acl(), Ok(None));
    }

    #[test]
    fn what_is_no_list_is_invalid() {
        let with = |at: usize, line: &str| {
            let mut parts = NAMED;
            parts[at] = line;
            let bytes = hex(&parts);
            decode::<SecAcl<'_>>(&bytes).map(|list| list.to_acl())
        };
        assert_eq!(with(2, "00000003 00000102 00000004"), Ok(Err(FsError::Invalid)), "kind");
        assert_eq!(with(2, "00000002 00000102 00000008"), Ok(Err(FsError::Invalid)), "rights");
        assert_eq!(with(2, "00000001 00000102 00000004"), Ok(Err(FsError::Invalid)), "twice");
        assert!(with(4, "00000010 00000000 0000000f").unwrap().is_ok(), "Solaris's mask");
        assert_eq!(with(0, "00000006 00000005"), Ok(Err(FsError::Invalid)), "one is missing");
        assert!(with(0, "00000004 00000005").is_err(), "more than were told");
        assert!(with(0, "00000401 00000401").is_err(), "over the bound");
    }

    #[test]
    fn more_than_can_be_sent_is_refused() {
        let users = (0..u32::try_from(ACL_ENTRIES_MAX).unwrap())
            .map(|id| Entry { who: Who::User(id), rights: Access::READ });
        let acl = Acl::new(
            named()
                .entries()
                .iter()
                .copied()
                .skip(2)
                .chain(users)
                .chain([Entry { who: Who::Owner, rights: Access::READ }])
                .collect(),
        )
        .unwrap();
        let sent = ListBytes::new(&acl, AclKind::Access, &attr());
        assert_eq!(sent.err(), Some(FsError::TooLarge));
    }

    proptest! {
        #[test]
        fn whatever_is_read_is_written_again(bytes in proptest::collection::vec(any::<u8>(), 0..80)) {
            if let Ok(list) = decode::<SecAcl<'_>>(&bytes) {
                let again = encoded(&list);
                prop_assert_eq!(decode::<SecAcl<'_>>(&again), Ok(list));
                let _ = list.to_acl();
            }
        }
    }
}
