//! FileBasicInformation (MS-FSA §2.1.5.15.2): times and attributes.
//!
//! The time of the last change of data or attributes is the store's own: it is never set. A client
//! can ask that operations through its open leave a time as it is (-1); times move with the file
//! all the same, as NFS clients see them too, and so -1 and -2 change nothing.

use crate::fscc::{SetBasic, TimeChange};
use crate::host::{Host, ObjectOf};
use crate::open::Open;
use crate::ops::Failure;
use crate::ops::info::{granted, settable};
use crate::wire::{AccessMask, FileAttributes, Status};
use weir_core::{Credentials, DosAttributes, SetAttr, SetDetails, SetTime, Store, Timestamp};

pub(super) async fn set<H: Host>(
    host: &H,
    open: &Open<ObjectOf<H>>,
    set: &SetBasic,
) -> Result<(), Failure> {
    granted(open, AccessMask::WRITE_ATTRIBUTES)?;
    if let Some(attributes) = set.attributes {
        let directory = open.is_directory();
        let wrong = if directory { FileAttributes::TEMPORARY } else { FileAttributes::DIRECTORY };
        if attributes.intersects(wrong) {
            return Err(Status::INVALID_PARAMETER.into());
        }
    }
    let store = host.store();
    let times = SetAttr {
        atime: change(set.accessed).map_or(SetTime::Keep, SetTime::To),
        mtime: change(set.written).map_or(SetTime::Keep, SetTime::To),
        ..SetAttr::default()
    };
    // Whether this client may was decided when the file was opened.
    let cred = &Credentials::ROOT;
    if times != SetAttr::default() {
        store.set_attr(&open.object, &times, None, cred).await?;
    }
    let birth = change(set.created);
    if birth.is_some() || set.attributes.is_some() {
        let dos = match set.attributes {
            Some(attributes) => Some(kept(attributes, store.details(&open.object).await?.1.dos)),
            None => None,
        };
        store.set_details(&open.object, &SetDetails { birth, dos }, cred).await?;
    }
    Ok(())
}

fn change(time: TimeChange) -> Option<Timestamp> {
    match time {
        TimeChange::To(time) => Some(time.into()),
        TimeChange::Keep | TimeChange::Stop | TimeChange::Resume => None,
    }
}

/// The attributes of a file after a client has set `attributes`. Whether the file is sparse stays.
fn kept(attributes: FileAttributes, before: DosAttributes) -> DosAttributes {
    settable(attributes) | (before & DosAttributes::SPARSE)
}
