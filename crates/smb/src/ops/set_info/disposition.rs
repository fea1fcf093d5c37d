//! FileDispositionInformation and FileDispositionInformationEx (MS-FSA §2.1.5.15.3): deletion on
//! close.
//!
//! To take the name away while others have the file open (FILE_DISPOSITION_POSIX_SEMANTICS) is
//! refused with NOT_SUPPORTED, by which clients know to delete in the ordinary way. The volume does
//! not claim the ability, so they hardly ever ask.

use crate::fscc::Disposition;
use crate::host::{Host, ObjectOf};
use crate::open::Open;
use crate::ops::Failure;
use crate::ops::info::granted;
use crate::wire::{AccessMask, CreateOptions, Status};
use weir_core::store::Want;
use weir_core::{DosAttributes, FsResult, Store};

/// Entries and bytes of names by which a directory with any entry beside `.` and `..` shows.
const LOOK: (usize, usize) = (3, 1024);

pub(super) async fn set<H: Host>(
    host: &H,
    open: &Open<ObjectOf<H>>,
    flags: Disposition,
) -> Result<(), Failure> {
    granted(open, AccessMask::DELETE)?;
    let delete = flags.contains(Disposition::DELETE);
    let of_open = flags.contains(Disposition::ON_CLOSE);
    let opened_so = open.options.contains(CreateOptions::DELETE_ON_CLOSE);
    if flags.contains(Disposition::POSIX_SEMANTICS) || (of_open && !opened_so) {
        return Err(Status::NOT_SUPPORTED.into());
    }
    if delete {
        deletable(host, open, flags).await?;
    }
    if of_open {
        host.set_delete_on_close(open.shared, delete).await?;
    } else {
        host.set_delete_pending(open.shared, delete).await?;
    }
    Ok(())
}

async fn deletable<H: Host>(
    host: &H,
    open: &Open<ObjectOf<H>>,
    flags: Disposition,
) -> Result<(), Failure> {
    let at_top = open.key == host.store().key(&host.store().root());
    let (_, details) = host.store().details(&open.object).await?;
    let ignored = flags.contains(Disposition::IGNORE_READONLY_ATTRIBUTE);
    if at_top || (details.dos.contains(DosAttributes::READONLY) && !ignored) {
        return Err(Status::CANNOT_DELETE.into());
    }
    if open.is_directory() && !is_empty(host.store(), &open.object).await? {
        return Err(Status::DIRECTORY_NOT_EMPTY.into());
    }
    Ok(())
}

async fn is_empty<S: Store>(store: &S, dir: &S::Object) -> FsResult<bool> {
    let (entries, name_bytes) = LOOK;
    let mut cookie = 0;
    loop {
        let page = store.read_dir(dir, cookie, entries, name_bytes, Want::Names).await?;
        if page.entries.iter().any(|entry| !matches!(&*entry.name, b"." | b"..")) {
            return Ok(false);
        }
        match page.entries.last() {
            Some(last) if !page.eof => cookie = last.cookie,
            _ => return Ok(true),
        }
    }
}
