//! READDIR (RFC 1813 §3.3.16), and what it shares with READDIRPLUS.
//!
//! The store's cookies stay valid for the life of the directory, so there is one cookie verifier,
//! all zeros, and it never changes. Another one comes with cookies this server never gave:
//! NFS3ERR_BAD_COOKIE.

use super::fsinfo::DIR_BYTES_PREFERRED;
use super::{Context, Outcome, directory, fail};
use crate::v3::wire::{Entry3, Fattr3, ListWriter, ReaddirArgs, Status};
use crate::xdr::Writer;
use weir_core::store::Want;
use weir_core::{Access, Acl, Attr, Store, access};

pub(super) const COOKIE_VERIFIER: [u8; 8] = [0; 8];

/// The part of every result besides entries: the directory's attributes with their flag, the cookie
/// verifier, the flag that ends the list, and the end-of-directory flag.
const FRAME_BYTES: usize = 4 + Fattr3::BYTES + 8 + 4 + 4;

/// The shortest entry: the flag in front of it, file id, a name of one byte with its length and
/// padding, cookie.
const ENTRY_BYTES_MIN: usize = 4 + 8 + 4 + 4 + 8;

pub(in crate::v3) async fn readdir<S: Store>(
    cx: &Context<'_, S>,
    args: ReaddirArgs<'_>,
    out: &mut Writer,
) -> Outcome {
    let (dir, attr) = match cx.subject().await {
        Ok(subject) => subject,
        Err(error) => return fail(out, error, false),
    };
    let from = Position { cookie: args.cookie, verifier: args.cookie_verifier };
    let by = |attr: &Attr, acl: Option<&Acl>| listable(cx, attr, acl, from, args.count);
    let space = match cx.decide(&dir, &attr, by).await {
        Ok(space) => space,
        Err(status) => return fail(out, status, Some(cx.fattr(&attr))),
    };
    let entries_max = space.entries(ENTRY_BYTES_MIN);
    let store = &cx.volume.store;
    let page =
        match store.read_dir(&dir, args.cookie, entries_max, space.names(), Want::Names).await {
            Ok(page) => page,
            Err(error) => return fail(out, error, Some(cx.fattr(&attr))),
        };
    let dir_attributes = Some(cx.fattr(&page.attr));
    let start = out.position();
    let mut list = ListWriter::begin(out, dir_attributes, COOKIE_VERIFIER, space.bytes());
    let fitted = page.entries.iter().take_while(|entry| {
        list.push(&Entry3 { fileid: entry.fileid, name: &entry.name, cookie: entry.cookie })
    });
    let fitted = fitted.count();
    if fitted == 0 && !page.entries.is_empty() {
        out.truncate(start);
        return fail(out, Status::TOOSMALL, dir_attributes);
    }
    list.finish(page.eof && fitted == page.entries.len());
    Status::OK.into()
}

/// The position in a directory from which a client wants to go on.
#[derive(Clone, Copy)]
pub(super) struct Position {
    pub(super) cookie: u64,
    pub(super) verifier: [u8; 8],
}

/// The size a result may have, at least that of one without entries.
#[derive(Clone, Copy)]
pub(super) struct Space(usize);

impl Space {
    /// The bytes for everything after the status.
    pub(super) fn bytes(self) -> usize {
        self.0
    }

    /// Entries of at least `bytes_min` that can fit; one is asked for in any case, to know whether
    /// there is one that does not.
    pub(super) fn entries(self, bytes_min: usize) -> usize {
        self.names().checked_div(bytes_min).unwrap_or(0).max(1)
    }

    /// Bytes of names that can fit.
    pub(super) fn names(self) -> usize {
        self.0.saturating_sub(FRAME_BYTES)
    }
}

/// May the caller list this directory from there, in at most `bytes_max`?
pub(super) fn listable<S>(
    cx: &Context<'_, S>,
    attr: &Attr,
    acl: Option<&Acl>,
    from: Position,
    bytes_max: u32,
) -> Result<Space, Status> {
    directory(attr)?;
    if !access::allows(attr, acl, &cx.rights.cred, Access::READ) {
        return Err(Status::ACCES);
    }
    if from.cookie != 0 && from.verifier != COOKIE_VERIFIER {
        return Err(Status::BAD_COOKIE);
    }
    let space = bytes_max.min(DIR_BYTES_PREFERRED) as usize;
    if space < FRAME_BYTES { Err(Status::TOOSMALL) } else { Ok(Space(space)) }
}
