//! Locks and deny modes of other protocols against NFSv3: a READ, a WRITE or a change of size that
//! conflicts with one is answered NFS3ERR_JUKEBOX. The client asks again later, and keeps its dirty
//! pages until then.
//!
//! Not here: NLM, whose locks are advisory to NFS.

use crate::engine::ServedVolume;
use crate::sync::Arc;
use weir_core::{FsResult, Name, ObjectKey, Store};
use weir_nfs::v3::Uses;
use weir_state::{File, Io, Span};

/// The last byte that a file can have, as a length.
const TO_THE_END: u64 = u64::MAX;

/// Is it certain that nothing conflicts with a call that uses data of `object`?
pub(super) fn is_free(volume: &ServedVolume, object: &ObjectKey, uses: &Uses<'_>) -> bool {
    match uses {
        Uses::Truncate { .. } => volume.filters.without_open.is_unused(),
        _ => !volume.filters.without_open.may_stand_on(object),
    }
}

/// Does a call that uses data of `object` conflict with a lock or a deny mode?
pub(super) async fn conflicts(
    volume: &Arc<ServedVolume>,
    object: &ObjectKey,
    uses: &Uses<'_>,
) -> bool {
    let (file, span, io) = match uses {
        Uses::Read { offset, count } => (*object, span(*offset, (*count).into()), Io::Read),
        Uses::Write { offset, count } => (*object, span(*offset, (*count).into()), Io::Write),
        Uses::Resize { size } => match size_of(volume, object).await {
            Ok(now) => (*object, resized(now, *size), Io::Write),
            // The call will say what is wrong.
            Err(_) => return false,
        },
        Uses::Truncate { name } => match existing(volume, object, name).await {
            Ok(file) => (file, span(0, TO_THE_END), Io::Write),
            // There is nothing to truncate, or the call will say what is wrong.
            Err(_) => return false,
        },
    };
    let file = File { volume: volume.id, object: file };
    let tables = volume.locks.tables_when_free().await;
    span.is_some_and(|span| tables.io(&file, None, span, io).is_err())
}

async fn existing(volume: &ServedVolume, dir: &ObjectKey, name: &[u8]) -> FsResult<ObjectKey> {
    let store = &volume.store;
    let dir = store.resolve(dir).await?;
    let (object, _) = store.lookup(&dir, Name::new(name)?).await?;
    Ok(store.key(&object))
}

async fn size_of(volume: &ServedVolume, object: &ObjectKey) -> FsResult<u64> {
    let store = &volume.store;
    Ok(store.attr(&store.resolve(object).await?).await?.size)
}

/// The bytes that a change of the size from `now` to `size` writes: all that it adds, or all from
/// the new end on, because the file may grow meanwhile.
fn resized(now: u64, size: u64) -> Option<Span> {
    if size > now { span(now, size - now) } else { span(size, TO_THE_END) }
}

/// The bytes from `offset` on, as far as offsets reach.
fn span(offset: u64, length: u64) -> Option<Span> {
    Span::new(offset, length.min(TO_THE_END - offset))
}
