//! The common part of CREATE, MKDIR, SYMLINK and MKNOD: new objects and their attributes.

use super::{Context, Outcome, answer};
use crate::v3::wire::{NewObject, Res, Sattr3, Status, WccData};
use crate::xdr::Writer;
use weir_core::store::Made;
use weir_core::{Credentials, SetAttr, Store};

/// Attributes of an object to be made by `cred`.
///
/// Owners that `cred` could not give by SETATTR are left out rather than refused, as other servers
/// do: some clients always send the ids they believe they have, whatever the export squashes.
pub(super) fn attributes(wire: &Sattr3, cred: &Credentials) -> Result<SetAttr, Status> {
    let mut set = wire.to_set_attr()?;
    if !cred.is_root() {
        set.uid = None;
        set.gid = set.gid.filter(|gid| cred.in_group(*gid));
    }
    Ok(set)
}

/// The attributes of a new object that has no size of its own to set.
pub(super) fn sizeless(wire: &Sattr3, cred: &Credentials) -> Result<SetAttr, Status> {
    Ok(SetAttr { size: None, ..attributes(wire, cred)? })
}

/// Writes the new object.
pub(super) fn answer_made<S: Store>(
    cx: &Context<'_, S>,
    made: &Made<S::Object>,
    out: &mut Writer,
) -> Outcome {
    let sealed = cx.volume.seal(cx.volume.store.key(&made.object));
    let result: Res<_, WccData> = Res::Ok(NewObject {
        object: Some((&sealed).into()),
        attributes: Some(cx.fattr(&made.attr)),
        dir_wcc: cx.wcc(&made.dir),
    });
    answer(out, &result)
}
