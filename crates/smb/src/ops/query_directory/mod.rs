//! QUERY_DIRECTORY (MS-SMB2 §3.3.5.18, MS-FSA §2.1.5.6.3): the entries of a directory that match a
//! pattern, as many at a time as the client takes.
//!
//! `.` and `..` come first, then the entries in the store's order. The pattern of the first request
//! stays until the client begins anew; one without wildcards is a look-up, without regard to case
//! if need be. All names that match are listed, also those that differ only in case. The user must
//! be allowed to search the directory to see more than names.

mod entries;
mod pause;
#[cfg(test)]
mod tests;
mod turn;

use super::access::allowed;
use super::info::granted;
use super::{Context, Done, Failure, Outcome};
use crate::fscc::DirectoryClass;
use crate::host::{Host, ObjectOf};
use crate::limits::IO_BYTES_MAX;
use crate::names::Pattern;
use crate::open::{Next, Open, Scan};
use crate::wire::{AccessMask, OutputReply, QueryDirectoryFlags, QueryDirectoryRequest, Status};
use alloc::vec::Vec;
use core::ops::ControlFlow;
use entries::{Entries, PAGE_NAME_BYTES_MAX};
use pause::pause;
use turn::Turn;
use weir_core::store::{Folded, Want};
use weir_core::{Access, FsError, Name, Store};

pub(super) async fn query_directory<H: Host>(cx: &Context<'_, H>, out: &mut Vec<u8>) -> Outcome {
    let request = QueryDirectoryRequest::decode(cx.message)?;
    let open = cx.open(request.file)?;
    let class = checked(&open, &request)?;
    let turn = Turn::wait(cx.host, &open).await;
    let (mut scan, first) = begun(turn.scan(), &request)?;
    turn.keep(scan.clone());
    let max =
        (request.max_output as usize).min(cx.response_max.saturating_sub(OutputReply::HEAD_BYTES));
    let single = request.flags.contains(QueryDirectoryFlags::RETURN_SINGLE_ENTRY);
    let reply = OutputReply::begin(out);
    let mut entries = Entries::new(cx.host, class, (max, single), out);
    entries.searchable = searchable(cx.host, &open).await?;
    let fits = listed(cx.host, &open, &mut scan, &mut entries).await;
    if entries.is_empty() {
        if !fits? {
            return Err(Status::INFO_LENGTH_MISMATCH.into());
        }
        turn.keep(scan);
        return Err(if first { Status::NO_SUCH_FILE } else { Status::NO_MORE_FILES }.into());
    }
    // Entries found before an error are returned; the next request meets the error again.
    turn.keep(scan);
    reply.finish(out);
    Ok(Done::on(open.id))
}

/// The checks before anything is looked for.
fn checked<O>(
    open: &Open<O>,
    request: &QueryDirectoryRequest<'_>,
) -> Result<DirectoryClass, Failure> {
    if !open.is_directory() || request.max_output > IO_BYTES_MAX {
        return Err(Status::INVALID_PARAMETER.into());
    }
    granted(open, AccessMask::LIST_DIRECTORY)?;
    let class = DirectoryClass::from_wire(request.class).ok_or(Status::INVALID_INFO_CLASS)?;
    if (request.max_output as usize) < class.fixed_bytes() {
        return Err(Status::INFO_LENGTH_MISMATCH.into());
    }
    Ok(class)
}

/// The listing to carry on, and whether it is the first time that anything is looked for. Begun
/// again, it keeps its pattern unless there is another; the empty pattern is every name.
fn begun(
    before: Option<Scan>,
    request: &QueryDirectoryRequest<'_>,
) -> Result<(Scan, bool), Failure> {
    const ALL: &[u8] = &[b'*', 0];
    let flags = request.flags;
    let before = before.filter(|_| !flags.contains(QueryDirectoryFlags::REOPEN));
    let asked = || {
        let pattern = if request.pattern.is_empty() { ALL } else { request.pattern };
        Ok::<_, Failure>(Scan { pattern: Pattern::parse(pattern)?, next: Next::Dot })
    };
    match before {
        None => Ok((asked()?, true)),
        Some(scan) if !flags.contains(QueryDirectoryFlags::RESTART_SCANS) => Ok((scan, false)),
        Some(scan) if request.pattern.is_empty() => Ok((Scan { next: Next::Dot, ..scan }, false)),
        Some(_) => Ok((asked()?, false)),
    }
}

/// May the user look names up in the directory?
async fn searchable<H: Host>(host: &H, dir: &Open<ObjectOf<H>>) -> Result<bool, Failure> {
    let (store, cred) = (host.store(), &host.user().credentials);
    let attr = store.attr(&dir.object).await?;
    Ok(allowed(store, &dir.object, &attr, cred, Access::EXECUTE).await?)
}

/// Appends entries from the listing's position on, and moves it behind them. False if one did not
/// fit.
async fn listed<H: Host>(
    host: &H,
    dir: &Open<ObjectOf<H>>,
    scan: &mut Scan,
    entries: &mut Entries<'_, H>,
) -> Result<bool, FsError> {
    loop {
        let (step, after) = match scan.next {
            Next::Dot => (special(host, dir, b".", scan, entries).await?, Next::DotDot),
            Next::DotDot => (special(host, dir, b"..", scan, entries).await?, Next::After(0)),
            Next::After(_) if scan.pattern.name().is_some() => {
                (named(host, dir, scan, entries).await?, Next::End)
            }
            Next::After(cookie) => {
                let page = page(host, dir, (scan, cookie), entries).await?;
                if let ControlFlow::Break(fits) = page {
                    return Ok(fits);
                }
                // A look of which not all is shown may be one of very many.
                if scan.next != Next::End && (!scan.pattern.is_all() || entries.hides()) {
                    pause().await;
                }
                continue;
            }
            Next::End => return Ok(true),
        };
        if step != ControlFlow::Break(false) {
            scan.next = after;
        }
        if let ControlFlow::Break(fits) = step {
            return Ok(fits);
        }
    }
}

/// Appends the directory itself, or its parent.
async fn special<H: Host>(
    host: &H,
    dir: &Open<ObjectOf<H>>,
    name: &[u8],
    scan: &Scan,
    entries: &mut Entries<'_, H>,
) -> Result<ControlFlow<bool>, FsError> {
    if !scan.pattern.matches(name) {
        return Ok(ControlFlow::Continue(()));
    }
    let (object, _) = host.store().lookup(&dir.object, Name::new(name)?).await?;
    let (attr, details) = host.store().details(&object).await?;
    Ok(entries.object(name, &attr, &details))
}

/// Appends the one entry that a pattern without wildcards stands for.
async fn named<H: Host>(
    host: &H,
    dir: &Open<ObjectOf<H>>,
    scan: &Scan,
    entries: &mut Entries<'_, H>,
) -> Result<ControlFlow<bool>, FsError> {
    let name = scan.pattern.name().and_then(|name| Name::new(name).ok());
    let Some(name) = name.filter(|name| !name.is_special()) else {
        return Ok(ControlFlow::Continue(()));
    };
    match host.store().lookup_folded(&dir.object, name).await {
        Ok(Folded { name, object, .. }) => entries.found(&name, &object).await,
        Err(FsError::NotFound) => Ok(ControlFlow::Continue(())),
        Err(error) => Err(error),
    }
}

/// Appends what matches of the next entries, and moves the position behind those that were seen to.
/// Where not every name matches, only names are read, and objects are looked at by name.
async fn page<H: Host>(
    host: &H,
    dir: &Open<ObjectOf<H>>,
    (scan, cookie): (&mut Scan, u64),
    entries: &mut Entries<'_, H>,
) -> Result<ControlFlow<bool>, FsError> {
    let store = host.store();
    let all = scan.pattern.is_all();
    let (want, count) = if all {
        (entries.want(), entries.page())
    } else {
        (Want::Names, Entries::<H>::page_of_some())
    };
    let page = store.read_dir(&dir.object, cookie, count, PAGE_NAME_BYTES_MAX, want).await?;
    for entry in &page.entries {
        let name = Name::new(&entry.name)?;
        let step = if name.is_special() || !scan.pattern.matches(&entry.name) {
            ControlFlow::Continue(())
        } else if want >= entries.want() {
            entries.entry(entry).await?
        } else {
            match store.lookup(&dir.object, name).await {
                Ok((object, _)) => entries.found(&entry.name, &object).await?,
                Err(FsError::NotFound | FsError::Stale) => ControlFlow::Continue(()),
                Err(error) => return Err(error),
            }
        };
        if step != ControlFlow::Break(false) {
            scan.next = Next::After(entry.cookie);
        }
        if step.is_break() {
            return Ok(step);
        }
    }
    if page.eof || page.entries.is_empty() {
        scan.next = Next::End;
    }
    Ok(ControlFlow::Continue(()))
}
