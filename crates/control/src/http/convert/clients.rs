//! Conversions of sessions, opens and locks.

use crate::plane::{Lock, LockOwner, Object, SmbOpen, SmbSession, Uses};
use std::net::IpAddr;
use std::time::SystemTime;
use weir_api::{FileLock, FileUse, LockMode, Protocol};
use weir_catalog::Snapshot;
use weir_core::VolumeId;

/// The dialect that is served.
const DIALECT: &str = "3.1.1";

/// The share of named pipes.
const PIPES: &str = "IPC$";

/// A session for a response.
pub(in super::super) fn smb_session(
    snapshot: &Snapshot,
    session: &SmbSession,
) -> weir_api::SmbSession {
    let share =
        |tree: &Option<VolumeId>| tree.map_or_else(|| PIPES.to_owned(), |id| name(snapshot, id));
    let mut shares: Vec<String> = session.trees.iter().map(share).collect();
    shares.sort_unstable();
    shares.dedup();
    weir_api::SmbSession {
        id: session.id,
        user: session.user.clone(),
        client: session.client.to_string(),
        connection: session.connection,
        dialect: DIALECT.to_owned(),
        signing: session.signing.to_owned(),
        signing_required: session.must_sign,
        cipher: session.cipher.map(str::to_owned),
        encrypted: session.encrypts,
        since: time(session.since),
        idle_seconds: session.idle_seconds,
        shares,
        opens: session.opens,
    }
}

/// An open for a response.
pub(in super::super) fn smb_open(snapshot: &Snapshot, open: &SmbOpen) -> weir_api::SmbOpen {
    let (user, client) = holder(open.holder.as_ref());
    weir_api::SmbOpen {
        id: open.id,
        volume: name(snapshot, open.volume),
        path: path(&open.object),
        file: open.object.key.clone(),
        session: open.session,
        user,
        client,
        access: uses(open.access),
        access_mask: open.mask,
        sharing: uses(open.sharing),
        delete_pending: open.delete_pending,
        since: open.since.map(time),
    }
}

/// A lock for a response.
pub(in super::super) fn file_lock(snapshot: &Snapshot, lock: &Lock) -> FileLock {
    let shown = FileLock {
        id: lock.id.clone(),
        volume: name(snapshot, lock.volume),
        path: path(&lock.object),
        file: lock.object.key.clone(),
        protocol: Protocol::Nfs,
        client: None,
        host: None,
        process: None,
        user: None,
        session: None,
        open: None,
        offset: lock.offset,
        length: lock.length,
        mode: if lock.exclusive { LockMode::Exclusive } else { LockMode::Shared },
        waiting: lock.waits,
    };
    match &lock.owner {
        LockOwner::Nlm { address, host, process } => FileLock {
            client: Some(address.to_string()),
            host: Some(String::from_utf8_lossy(host).into_owned()),
            process: *process,
            ..shown
        },
        LockOwner::Smb { open, session, holder: who } => {
            let (user, client) = holder(who.as_ref());
            let (session, open) = (Some(*session), Some(*open));
            FileLock { protocol: Protocol::Smb, client, user, session, open, ..shown }
        }
    }
}

/// The name of a volume; a deleted one is named by its number.
fn name(snapshot: &Snapshot, id: VolumeId) -> String {
    snapshot.volume(id).map_or_else(|| format!("#{}", id.0), |volume| volume.name.clone())
}

fn path(object: &Object) -> Option<String> {
    object.path.as_ref().map(|path| String::from_utf8_lossy(path).into_owned())
}

fn holder(holder: Option<&(String, IpAddr)>) -> (Option<String>, Option<String>) {
    holder.map(|(user, client)| (user.clone(), client.to_string())).unzip()
}

fn uses(Uses { read, write, delete }: Uses) -> Vec<FileUse> {
    let kinds = [(read, FileUse::Read), (write, FileUse::Write), (delete, FileUse::Delete)];
    kinds.into_iter().filter_map(|(is, kind)| is.then_some(kind)).collect()
}

fn time(at: SystemTime) -> String {
    humantime::format_rfc3339_seconds(at).to_string()
}
