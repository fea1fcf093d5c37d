//! The values that an object shows in listings, queries, and the responses of CREATE and CLOSE. Not
//! here: their forms on the wire.

use crate::fscc::FileInfo;
use crate::host::{Host, ObjectOf};
use crate::open::Open;
use crate::wire;
use crate::wire::{AccessMask, FileAttributes, REPARSE_TAG_SYMLINK, Status};
use alloc::vec::Vec;
use weir_core::{Attr, Details, DosAttributes, FileKind, FsResult, Store, Timestamp};

/// FileFullEaInformation (MS-FSCC §2.4.15).
pub(super) const FULL_EA: u8 = 15;

/// The values of an object. Only files have a size here, and the number of links does not count a
/// name that is to be deleted.
pub(super) fn file_info(attr: &Attr, details: &Details, delete_pending: bool) -> FileInfo {
    let (directory, link) = (attr.kind == FileKind::Directory, attr.kind == FileKind::Symlink);
    let mut attributes = FileAttributes::from_bits_retain(u32::from(details.dos.bits()));
    attributes.set(FileAttributes::DIRECTORY, directory);
    attributes.set(FileAttributes::REPARSE_POINT, link);
    let regular = attr.kind == FileKind::Regular;
    let links = if directory { 1 } else { attr.nlink };
    FileInfo {
        created: details.birth.into(),
        accessed: attr.atime.into(),
        written: attr.mtime.into(),
        changed: attr.ctime.into(),
        attributes,
        size: if regular { attr.size } else { 0 },
        allocated: if regular { attr.used } else { 0 },
        links: links.saturating_sub(u32::from(delete_pending)),
        delete_pending,
        directory,
        index: attr.fileid,
        ea_size: 0,
        reparse_tag: if link { REPARSE_TAG_SYMLINK } else { 0 },
    }
}

/// The attributes that a store keeps of those that a client sets. The others follow from the
/// object, and SPARSE is set by FSCTL_SET_SPARSE alone.
pub(super) fn settable(attributes: FileAttributes) -> DosAttributes {
    let low = u16::try_from(attributes.bits() & 0xffff).unwrap_or(0);
    DosAttributes::from_bits_truncate(low).difference(DosAttributes::SPARSE)
}

/// The identifier of an object (MS-FSCC §2.1.3.1) of this number, made at the time of which `birth`
/// is a digest: it is not that of an earlier object of the same number.
pub(super) fn object_id(number: u64, birth: u32) -> [u8; 16] {
    (u128::from(birth) << 64 | u128::from(number)).to_le_bytes()
}

/// The identifier of a volume, and the time at which it was made, which is its top directory's.
pub(super) async fn volume_id<H: Host>(host: &H) -> FsResult<([u8; 16], Timestamp)> {
    let store = host.store();
    let root = store.root();
    let (_, details) = store.details(&root).await?;
    let volume = host.share().volume.0;
    Ok((object_id(volume.into(), store.key(&root).birth()), details.birth))
}

/// The present values of an open object.
pub(super) async fn of_open<H: Host>(host: &H, open: &Open<ObjectOf<H>>) -> FsResult<FileInfo> {
    let (attr, details) = host.store().details(&open.object).await?;
    Ok(file_info(&attr, &details, host.is_delete_pending(&open.key).await))
}

/// The values as CREATE and CLOSE give them.
impl From<&FileInfo> for wire::NetworkOpenInfo {
    fn from(file: &FileInfo) -> Self {
        let time = |time: crate::fscc::NtTime| u64::try_from(time.0).unwrap_or(0);
        Self {
            creation_time: time(file.created),
            last_access_time: time(file.accessed),
            last_write_time: time(file.written),
            change_time: time(file.changed),
            allocation_size: crate::fscc::whole_clusters(file.allocated),
            end_of_file: file.size,
            attributes: file.attributes.shown(),
        }
    }
}

/// The path of an open, `/` between the names, as it is on the wire.
pub(super) fn wire_path(path: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(path.len().saturating_mul(2));
    for (at, name) in path.split(|byte| *byte == b'/').enumerate() {
        if at > 0 {
            out.extend_from_slice(&[b'\\', 0]);
        }
        crate::names::to_wire(name, &mut out);
    }
    out
}

/// Fails unless the open was granted all of `needed`.
///
/// # Errors
/// [`Status::ACCESS_DENIED`].
pub(super) fn granted<O>(open: &Open<O>, needed: AccessMask) -> Result<(), Status> {
    if open.granted.contains(needed) { Ok(()) } else { Err(Status::ACCESS_DENIED) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fscc::NtTime;
    use crate::ops::testing::{TestServer, utf16};
    use weir_core::testing::block_on;
    use weir_core::{Credentials, SetDetails, Timestamp};

    #[test]
    fn a_file_a_directory_and_a_link_show_what_they_are() {
        let server = TestServer::new();
        let file = server.file("f", &[1; 5000], 0o644, 7);
        server.dir("d", 0o755, 7);
        server.symlink("l", "somewhere");
        let birth = Timestamp { secs: 0, nanos: 100 };
        let dos = Some(DosAttributes::HIDDEN | DosAttributes::SPARSE);
        let set = SetDetails { birth: Some(birth), dos };
        block_on(server.store.set_details(&file, &set, &Credentials::ROOT)).unwrap();
        let of = |path: &str, deleted| {
            let (attr, details) = block_on(server.store.details(&server.object(path).0)).unwrap();
            (file_info(&attr, &details, deleted), attr)
        };
        let (info, attr) = of("f", false);
        assert_eq!(info.attributes, FileAttributes::HIDDEN | FileAttributes::SPARSE_FILE);
        assert_eq!((info.size, info.allocated, info.links), (5000, 8192, 1));
        assert_eq!((info.index, info.created), (attr.fileid, NtTime(116_444_736_000_000_001)));
        assert_eq!(of("f", true).0, FileInfo { links: 0, delete_pending: true, ..info });
        let (dir, _) = of("d", false);
        assert_eq!((dir.attributes, dir.size, dir.links), (FileAttributes::DIRECTORY, 0, 1));
        let (link, _) = of("l", false);
        assert_eq!((link.attributes, link.size), (FileAttributes::REPARSE_POINT, 0));
        assert_eq!((link.reparse_tag, info.reparse_tag), (0xA000_000C, 0));
    }

    #[test]
    fn clients_set_attributes_that_a_store_keeps_but_not_whether_a_file_is_sparse() {
        let kept = FileAttributes::READONLY
            | FileAttributes::HIDDEN
            | FileAttributes::SYSTEM
            | FileAttributes::ARCHIVE;
        assert_eq!(u32::from(settable(kept).bits()), kept.bits());
        assert_eq!(settable(FileAttributes::all()).bits(), settable(kept).bits());
        assert_eq!(settable(FileAttributes::SPARSE_FILE), DosAttributes::empty());
    }

    #[test]
    fn create_and_close_give_the_same_values() {
        let info = FileInfo {
            created: NtTime(1),
            accessed: NtTime(2),
            written: NtTime(3),
            changed: NtTime(4),
            size: 5,
            allocated: 6,
            ..FileInfo::default()
        };
        let sent = wire::NetworkOpenInfo::from(&info);
        assert_eq!((sent.creation_time, sent.last_access_time), (1, 2));
        assert_eq!((sent.last_write_time, sent.change_time), (3, 4));
        assert_eq!((sent.end_of_file, sent.allocation_size), (5, 4096));
        assert_eq!(sent.attributes, FileAttributes::NORMAL);
    }

    #[test]
    fn an_open_shows_that_it_is_to_be_deleted() {
        let server = TestServer::new();
        server.file("f", b"", 0o644, 7);
        let ann = server.session(7);
        let open = ann.opened(ann.open("f", AccessMask::DELETE));
        block_on(ann.set_delete_pending(open.shared, true)).unwrap();
        assert!(block_on(of_open(&ann, &open)).unwrap().delete_pending);
    }

    #[test]
    fn a_path_has_the_separators_of_the_wire() {
        assert_eq!(wire_path(b""), b"");
        assert_eq!(wire_path(b"a/b:/c"), utf16("a\\b\u{F022}\\c"));
    }
}
