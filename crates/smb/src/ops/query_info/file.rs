//! Information classes of a file (MS-SMB2 §3.3.5.20.1, MS-FSA §2.1.5.12).

use super::{cut, fits};
use crate::fscc::{FileClass, OpenInfo};
use crate::host::Host;
use crate::le::{length, put};
use crate::names::to_wire;
use crate::open::Open;
use crate::ops::Failure;
use crate::ops::info::{FULL_EA, granted, of_open, wire_path};
use crate::wire::{AccessMask, Status};
use alloc::vec::Vec;

/// FileAlternateNameInformation.
const ALTERNATE_NAME: u8 = 21;

/// The least room for a short name: its length.
const ALTERNATE_NAME_BYTES_LEAST: usize = 4;

/// Appends the information of class `class`, at most `max` bytes.
pub(super) async fn query<H: Host>(
    host: &H,
    open: &H::Open,
    class: u8,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    if class == ALTERNATE_NAME {
        return alternate_name(host, open, max, out);
    }
    let Some(class) = FileClass::from_wire(class) else {
        return Err(without(open, class).into());
    };
    granted(open, needed(class))?;
    fits(least_bytes(class), max)?;
    let file = of_open(host, open).await?;
    let start = out.len();
    let (position, path) = host.with(open, |state| (state.position, wire_path(state.path())));
    let info = OpenInfo {
        access: open.granted,
        position,
        mode: open.mode.get().bits(),
        name: &path,
        volume: host.share().volume.0.into(),
    };
    class.encode(&file, &info, out);
    Ok(cut(start, max, out))
}

/// Appends the short name of an object (MS-FSCC §2.4.5): a name that has the form of one is its
/// own, and other names have none.
fn alternate_name<H: Host>(
    host: &H,
    open: &H::Open,
    max: usize,
    out: &mut Vec<u8>,
) -> Result<Status, Failure> {
    fits(ALTERNATE_NAME_BYTES_LEAST, max)?;
    let name = host.with(open, |state| state.place.as_ref().map(|place| place.name.clone()));
    let name = name.filter(|name| is_short(name)).ok_or(Status::OBJECT_NAME_NOT_FOUND)?;
    let mut wire = Vec::new();
    to_wire(&name, &mut wire);
    let start = out.len();
    put!(out; length::<u32>(wire.len()));
    out.extend_from_slice(&wire);
    Ok(cut(start, max, out))
}

/// Has a name the form of a short one: up to eight characters, and up to three after a dot
/// (MS-FSCC §2.1.5.2.1)?
fn is_short(name: &[u8]) -> bool {
    let allowed = |byte: &u8| byte.is_ascii_alphanumeric() || b"!#$%&'()-@^_`{}~".contains(byte);
    let mut parts = name.split(|byte| *byte == b'.');
    let (base, extension) = (parts.next().unwrap_or(&[]), parts.next());
    parts.next().is_none()
        && (1..=8).contains(&base.len())
        && base.iter().all(allowed)
        && extension.is_none_or(|extension| {
            (1..=3).contains(&extension.len()) && extension.iter().all(allowed)
        })
}

/// The status of a class without information for any file: there are no extended attributes.
fn without<O>(open: &Open<O>, class: u8) -> Status {
    match class {
        FULL_EA => granted(open, AccessMask::READ_EA).err().unwrap_or(Status::NO_EAS_ON_FILE),
        _ => Status::INVALID_INFO_CLASS,
    }
}

/// The access that the open must have.
const fn needed(class: FileClass) -> AccessMask {
    match class {
        FileClass::Basic | FileClass::All | FileClass::NetworkOpen | FileClass::AttributeTag => {
            AccessMask::READ_ATTRIBUTES
        }
        _ => AccessMask::empty(),
    }
}

/// The least room that clients must leave. Windows counts its structures with one character of the
/// name, and aligned.
const fn least_bytes(class: FileClass) -> usize {
    match class {
        FileClass::All => 104,
        FileClass::Stream => 32,
        FileClass::NormalizedName => 8,
        _ => class.fixed_bytes(),
    }
}
