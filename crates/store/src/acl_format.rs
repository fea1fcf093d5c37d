//! The form in which Linux passes access control lists as extended attributes: a version word,
//! then for each entry a tag and its rights (16 bits each) and an id (32 bits), all little-endian
//! (`include/uapi/linux/posix_acl_xattr.h`, version 2).

use weir_core::acl::{Entry, Who};
use weir_core::limits::ACL_ENTRIES_MAX;
use weir_core::{Access, Acl, FsError, FsResult};

/// Largest form of a list, in bytes: the most that an extended attribute holds.
pub(crate) const BYTES_MAX: usize = 64 << 10;

const VERSION: [u8; 4] = 2u32.to_le_bytes();
const ENTRY_BYTES: usize = 8;
/// The id of entries that name nobody.
const NO_ID: u32 = u32::MAX;

const USER_OBJ: u16 = 0x01;
const USER: u16 = 0x02;
const GROUP_OBJ: u16 = 0x04;
const GROUP: u16 = 0x08;
const MASK: u16 = 0x10;
const OTHER: u16 = 0x20;

const _: () = assert!(VERSION.len() + ACL_ENTRIES_MAX * ENTRY_BYTES <= BYTES_MAX);

/// Reads a list.
///
/// # Errors
/// `Io` for anything but a valid list: the attribute is damaged.
pub(crate) fn read(bytes: &[u8]) -> FsResult<Acl> {
    let (entries, rest) = bytes.strip_prefix(&VERSION).ok_or(FsError::Io)?.as_chunks();
    if !rest.is_empty() || entries.len() > ACL_ENTRIES_MAX {
        return Err(FsError::Io);
    }
    let entries = entries.iter().map(entry).collect::<FsResult<_>>()?;
    Acl::new(entries).map_err(|_| FsError::Io)
}

fn entry(bytes: &[u8; ENTRY_BYTES]) -> FsResult<Entry> {
    let [tag0, tag1, rights0, rights1, id @ ..] = *bytes;
    let id = u32::from_le_bytes(id);
    let who = match u16::from_le_bytes([tag0, tag1]) {
        USER_OBJ => Who::Owner,
        USER => Who::User(id),
        GROUP_OBJ => Who::OwningGroup,
        GROUP => Who::Group(id),
        MASK => Who::Mask,
        OTHER => Who::Others,
        _ => return Err(FsError::Io),
    };
    let rights = u8::try_from(u16::from_le_bytes([rights0, rights1])).ok();
    let rights = rights.and_then(Access::from_bits).ok_or(FsError::Io)?;
    Ok(Entry { who, rights })
}

/// Writes a list.
pub(crate) fn write(acl: &Acl) -> Vec<u8> {
    let mut out = Vec::with_capacity(VERSION.len() + acl.entries().len() * ENTRY_BYTES);
    out.extend(VERSION);
    for Entry { who, rights } in acl.entries() {
        let (tag, id) = match who {
            Who::Owner => (USER_OBJ, NO_ID),
            Who::User(id) => (USER, *id),
            Who::OwningGroup => (GROUP_OBJ, NO_ID),
            Who::Group(id) => (GROUP, *id),
            Who::Mask => (MASK, NO_ID),
            Who::Others => (OTHER, NO_ID),
        };
        out.extend(tag.to_le_bytes());
        out.extend(u16::from(rights.bits()).to_le_bytes());
        out.extend(id.to_le_bytes());
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn list() -> Acl {
        let entry = |who, rights| Entry { who, rights };
        let entries = vec![
            entry(Who::Owner, Access::READ | Access::WRITE),
            entry(Who::User(0x0102), Access::all()),
            entry(Who::OwningGroup, Access::READ),
            entry(Who::Group(7), Access::empty()),
            entry(Who::Mask, Access::EXECUTE),
            entry(Who::Others, Access::empty()),
        ];
        Acl::new(entries).unwrap()
    }

    #[test]
    fn the_form_is_the_kernel_s() {
        let bytes = [
            &[2, 0, 0, 0][..],
            &[1, 0, 6, 0, 255, 255, 255, 255],
            &[2, 0, 7, 0, 2, 1, 0, 0],
            &[4, 0, 4, 0, 255, 255, 255, 255],
            &[8, 0, 0, 0, 7, 0, 0, 0],
            &[16, 0, 1, 0, 255, 255, 255, 255],
            &[32, 0, 0, 0, 255, 255, 255, 255],
        ]
        .concat();
        assert_eq!(write(&list()), bytes);
        assert_eq!(read(&bytes), Ok(list()));
        for end in 0..bytes.len() {
            assert_eq!(read(&bytes[..end]), Err(FsError::Io), "cut to {end} bytes");
        }
        for (at, value) in [(0, 1), (4, 64), (6, 8), (7, 1)] {
            let mut bad = bytes.clone();
            bad[at] = value;
            assert_eq!(read(&bad), Err(FsError::Io), "byte {at} = {value}");
        }
    }

    proptest! {
        #[test]
        fn never_panics(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&[&VERSION[..], &bytes].concat());
        }
    }
}
