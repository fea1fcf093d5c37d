//! READDIRPLUS (RFC 1813 §3.3.17): READDIR with attributes and handles.

use super::readdir::{COOKIE_VERIFIER, Position, listable};
use super::{Context, Outcome, fail};
use crate::v3::wire::{EntryPlus3, Fattr3, ListWriter, ReaddirplusArgs, Status};
use crate::xdr::Writer;
use weir_core::store::{DirEntry, Want};
use weir_core::{Access, Acl, Attr, Store, access};

/// The shortest entry that has everything: the flag in front of it, file id, name, cookie,
/// attributes and a handle, which is 19 bytes or more.
const ENTRY_BYTES_MIN: usize = 4 + 8 + (4 + 4) + 8 + (4 + Fattr3::BYTES) + (4 + 4 + 20);

/// The bytes of an entry that count against `dircount`, besides its name: file id, length of the
/// name, cookie.
const DIR_ENTRY_BYTES: usize = 8 + 4 + 8;

pub(in crate::v3) async fn readdirplus<S: Store>(
    cx: &Context<'_, S>,
    args: ReaddirplusArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (dir, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    let from = Position { cookie: args.cookie, verifier: args.cookie_verifier };
    let by = |attr: &Attr, acl: Option<&Acl>| {
        let space = listable(cx, attr, acl, from, args.max_count)?;
        // A caller who may list but not search gets names only: a handle is what a LOOKUP would
        // give.
        let may_search = access::allows(attr, acl, &cx.rights.cred, Access::EXECUTE);
        Ok::<_, Status>((space, if may_search { Want::Attributes } else { Want::Names }))
    };
    let (space, want) = match cx.decide(&dir, &attr, by).await {
        Ok(decided) => decided,
        Err(status) => return fail(out, status, Some(cx.fattr(&attr))),
    };
    let entries_max = space.entries(ENTRY_BYTES_MIN);
    let names_max = space.names().min(args.dir_count as usize);
    let store = &cx.volume.store;
    let page = match store.read_dir(&dir, args.cookie, entries_max, names_max, want).await {
        Ok(page) => page,
        Err(error) => return fail(out, error, Some(cx.fattr(&attr))),
    };
    let dir_attributes = Some(cx.fattr(&page.attr));
    let start = out.position();
    let mut list = ListWriter::begin(out, dir_attributes, COOKIE_VERIFIER, space.bytes());
    let mut dir_left = args.dir_count as usize;
    let mut fitted = 0usize;
    for entry in &page.entries {
        let dir_bytes = DIR_ENTRY_BYTES.saturating_add(entry.name.len().next_multiple_of(4));
        // The first entry is bound by `maxcount` alone: `dircount` is a hint, and a client that
        // sets it too low must get on all the same.
        if (fitted > 0 && dir_bytes > dir_left) || !push(cx, &mut list, entry) {
            break;
        }
        dir_left = dir_left.saturating_sub(dir_bytes);
        fitted = fitted.saturating_add(1);
    }
    if fitted == 0 && !page.entries.is_empty() {
        out.truncate(start);
        return fail(out, Status::TOOSMALL, dir_attributes);
    }
    list.finish(page.eof && fitted == page.entries.len());
    Status::OK.into()
}

fn push<S: Store>(cx: &Context<'_, S>, list: &mut ListWriter<'_>, entry: &DirEntry) -> bool {
    let object = entry.object.as_ref().map(|(key, attr)| (cx.volume.seal(*key), attr));
    list.push(&EntryPlus3 {
        fileid: entry.fileid,
        name: &entry.name,
        cookie: entry.cookie,
        attributes: object.as_ref().map(|(_, attr)| cx.fattr(attr)),
        handle: object.as_ref().map(|(sealed, _)| sealed.into()),
    })
}
