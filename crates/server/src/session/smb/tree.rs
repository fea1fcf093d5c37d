//! Tree connects: which share a client means, what the rules of its volume let the user do, and
//! the end of opens with the tree connect or the session.

use super::names::NamesLock;
use super::server::SmbServer;
use super::user_session::{FileOpen, Tree, UserSession};
use crate::engine::{Served, ServedSet, ServedVolume};
use crate::session::deliver;
use crate::sync::{Arc, lock};
use crate::worker::give_way;
use arc_swap::ArcSwap;
use weir_catalog::{Access, User as Account, Volume};
use weir_core::{ObjectKey, VolumeId};
use weir_smb::host::{Share, User};
use weir_smb::open::{Closing, Ending, Place};
use weir_smb::ops::end;
use weir_smb::utf16::from_utf16;
use weir_smb::wire::{
    AccessMask, ShareCapabilities, ShareFlags, ShareType, Status, TreeConnectRequest,
    TreeConnectResponse,
};
use weir_state::{File, OpenId};
use weir_store::{VolumeObject, VolumeStore};

/// Opens that are closed before other connections of the worker have their turn.
const CLOSES_TURN_MAX: usize = 256;

/// The share of named pipes, as clients name it.
const PIPES: &str = "IPC$";

/// The access that changes something.
const WRITES: AccessMask = AccessMask::WRITE_DATA
    .union(AccessMask::APPEND_DATA)
    .union(AccessMask::WRITE_EA)
    .union(AccessMask::DELETE_CHILD)
    .union(AccessMask::WRITE_ATTRIBUTES)
    .union(AccessMask::DELETE)
    .union(AccessMask::WRITE_DAC)
    .union(AccessMask::WRITE_OWNER);

/// A tree connect to a volume.
pub(crate) struct DiskTree {
    volume: VolumeId,
    /// The rights at the last request.
    rights: ArcSwap<Rights>,
}

/// The rights of a user on a share under one state of the catalogue.
struct Rights {
    /// The generation of the catalogue.
    generation: u64,
    config: Arc<Volume>,
    /// None if no rule lets the user in.
    granted: Option<Granted>,
}

/// A share as a user may use it.
#[derive(Clone)]
struct Granted {
    share: Arc<Share>,
    user: Arc<User>,
}

/// A share that a request may use now.
pub(super) struct Usable {
    pub(super) volume: Arc<ServedVolume>,
    pub(super) share: Arc<Share>,
    pub(super) user: Arc<User>,
}

/// The user of a session, if the catalogue still lets the user in.
pub(super) fn user_of<'a>(
    served: &'a ServedSet,
    session: &UserSession,
) -> Option<&'a Arc<Account>> {
    served.snapshot().user_by_rid(session.rid).filter(|user| user.enabled)
}

impl Rights {
    fn of(config: &Arc<Volume>, served: &ServedSet, session: &UserSession) -> Self {
        let granted = user_of(served, session).and_then(|user| {
            let access = config.share_access(session.peer, user)?;
            let share = Share {
                volume: config.id,
                name: config.name.clone(),
                maximal: match access {
                    Access::ReadWrite => AccessMask::FILE_ALL_ACCESS,
                    Access::ReadOnly => AccessMask::FILE_ALL_ACCESS.difference(WRITES),
                },
                access_based_enumeration: config.smb.abe,
            };
            let user = User { credentials: user.credentials() };
            Some(Granted { share: Arc::new(share), user: Arc::new(user) })
        });
        let generation = served.snapshot().generation;
        Self { generation, config: Arc::clone(config), granted }
    }

    /// Are these the rights under the present state of the catalogue?
    fn are_current(&self, config: &Arc<Volume>, served: &ServedSet) -> bool {
        self.generation == served.snapshot().generation && Arc::ptr_eq(&self.config, config)
    }
}

impl DiskTree {
    /// The volume.
    pub(super) fn volume(&self) -> VolumeId {
        self.volume
    }

    /// The share for a request of `session` that came sealed or not.
    ///
    /// # Errors
    /// [`Status::NETWORK_NAME_DELETED`] if the volume is gone, [`Status::ACCESS_DENIED`] if its
    /// rules let the user in no more or only sealed, or the user is disabled or gone.
    pub(super) fn usable(
        &self,
        served: &ServedSet,
        session: &UserSession,
        sealed: bool,
    ) -> Result<Usable, Status> {
        let Served { volume, config, .. } =
            served.by_id(self.volume).ok_or(Status::NETWORK_NAME_DELETED)?;
        let mut rights = self.rights.load_full();
        if !rights.are_current(config, served) {
            rights = Arc::new(Rights::of(config, served, session));
            self.rights.store(Arc::clone(&rights));
        }
        let Granted { share, user } = rights.granted.clone().ok_or(Status::ACCESS_DENIED)?;
        if config.smb.encrypt && !sealed {
            return Err(Status::ACCESS_DENIED);
        }
        Ok(Usable { volume: Arc::clone(volume), share, user })
    }
}

/// Answers a TREE_CONNECT (MS-SMB2 §3.3.5.7): the body goes to `out`. Gives the tree's id.
///
/// # Errors
/// A [`Status`] to answer.
pub(super) fn connect(
    session: &UserSession,
    served: &ServedSet,
    message: &[u8],
    out: &mut Vec<u8>,
) -> Result<u32, Status> {
    let request = TreeConnectRequest::decode(message).map_err(|_| Status::INVALID_PARAMETER)?;
    let name = share_name(request.path).ok_or(Status::INVALID_PARAMETER)?;
    user_of(served, session).ok_or(Status::ACCESS_DENIED)?;
    let (tree, response) = if name.eq_ignore_ascii_case(PIPES) {
        let response = TreeConnectResponse {
            share_type: ShareType::PIPE,
            share_flags: ShareFlags::NO_CACHING,
            capabilities: ShareCapabilities::empty(),
            maximal_access: AccessMask::FILE_ALL_ACCESS,
        };
        (Tree::Pipes, response)
    } else {
        disk(session, served, &name)?
    };
    let id = session.connect(tree).ok_or(Status::INSUFFICIENT_RESOURCES)?;
    response.encode(out);
    Ok(id)
}

fn disk(
    session: &UserSession,
    served: &ServedSet,
    name: &str,
) -> Result<(Tree, TreeConnectResponse), Status> {
    let volume = served.snapshot().share_named(name).ok_or(Status::BAD_NETWORK_NAME)?;
    let config = &served.by_id(volume.id).ok_or(Status::BAD_NETWORK_NAME)?.config;
    if config.smb.encrypt && session.sealing.is_none() {
        return Err(Status::ACCESS_DENIED);
    }
    let rights = Rights::of(config, served, session);
    let maximal_access = match &rights.granted {
        Some(granted) => granted.share.maximal,
        None => return Err(Status::ACCESS_DENIED),
    };
    let mut share_flags = ShareFlags::NO_CACHING;
    share_flags.set(ShareFlags::ENCRYPT_DATA, config.smb.encrypt);
    share_flags.set(ShareFlags::ACCESS_BASED_DIRECTORY_ENUM, config.smb.abe);
    let response = TreeConnectResponse {
        share_type: ShareType::DISK,
        share_flags,
        capabilities: ShareCapabilities::empty(),
        maximal_access,
    };
    let tree = DiskTree { volume: config.id, rights: ArcSwap::from_pointee(rights) };
    Ok((Tree::Disk(tree), response))
}

/// The name of the share in `\\server\share`, in UTF-16.
fn share_name(path: &[u8]) -> Option<String> {
    let path = from_utf16(path)?;
    let path = path.strip_prefix(r"\\")?;
    let (server, share) = path.split_once('\\')?;
    (!server.is_empty() && !share.is_empty() && !share.contains('\\')).then(|| share.to_owned())
}

/// A volume with what ends its opens.
pub(super) struct OpenVolume<'a> {
    pub(super) smb: &'a SmbServer,
    /// The session of the opens.
    pub(super) session: &'a UserSession,
    pub(super) volume: &'a ServedVolume,
}

impl OpenVolume<'_> {
    /// Gives up the locks of an open that is to be closed, aside if that takes long.
    async fn release(&self, open: OpenId) {
        if self.volume.locks.tables_when_free().await.is_quick_open(open) {
            return;
        }
        let released = self.volume.locks.aside(move |door| {
            let mut grants = Vec::new();
            let waiters = door.tables().release_open(open, &mut grants);
            deliver(grants);
            drop(waiters);
        });
        // Otherwise its close does it.
        let _left = released.await;
    }

    /// Forgets an open that is closed in the tables. The session goes with the last one, if it is
    /// over.
    fn forget(&self, open: OpenId) {
        self.session.forget(open);
        self.smb.remove_if_empty(self.session);
    }
}

impl weir_smb::host::Volume for OpenVolume<'_> {
    type Store = VolumeStore;

    fn store(&self) -> &VolumeStore {
        self.volume.unsynced()
    }

    type NamesLock<'a>
        = NamesLock<'a>
    where
        Self: 'a;

    async fn lock_names(&self, key: &ObjectKey) -> NamesLock<'_> {
        self.volume.names.lock(key).await
    }

    async fn begin_close(
        &self,
        open: OpenId,
        key: &ObjectKey,
        place: impl Fn() -> Option<Place<VolumeObject>>,
        names_locked: bool,
    ) -> Ending<VolumeObject> {
        self.release(open).await;
        let mut grants = Vec::new();
        let file = File { volume: self.volume.id, object: *key };
        let closing = Closing { open, file: &file, place, names_locked };
        let mut tables = self.volume.locks.tables_when_free().await;
        let (ending, closed) = lock(&self.smb.deletes).end(&mut tables, closing, &mut grants);
        drop(tables);
        deliver(grants);
        drop(closed);
        if matches!(ending, Ending::Closed) {
            self.forget(open);
        }
        ending
    }

    async fn close(&self, open: OpenId) {
        let mut grants = Vec::new();
        let closed = self.volume.locks.tables_when_free().await.close_file(open, &mut grants);
        deliver(grants);
        drop(closed);
        self.forget(open);
    }
}

/// Closes opens that were taken out of `session`. There may be many: other connections of the
/// worker have their turns meanwhile.
pub(super) async fn close_all(smb: &SmbServer, session: &UserSession, opens: Vec<Arc<FileOpen>>) {
    for (number, open) in opens.into_iter().enumerate() {
        if number > 0 && number.is_multiple_of(CLOSES_TURN_MAX) {
            give_way().await;
        }
        let shared = open.open.shared;
        if let Some(volume) = open.volume.upgrade() {
            let place = || open.with(|state| state.place.clone());
            let volume = OpenVolume { smb, session, volume: &volume };
            end(&volume, shared, &open.open.object, place).await;
        } else {
            session.forget(shared);
            smb.remove_if_empty(session);
        }
    }
}

/// Ends a session with all that it holds.
pub(super) async fn end_session(smb: &SmbServer, session: &UserSession) {
    let opens = session.end();
    smb.remove_if_empty(session);
    close_all(smb, session, opens).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_smb::utf16::to_utf16;

    fn share(path: &str) -> Option<String> {
        share_name(&to_utf16(path))
    }

    #[test]
    fn a_share_is_the_last_of_two_names() {
        assert_eq!(share(r"\\server\data"), Some("data".to_owned()));
        assert_eq!(share(r"\\10.0.0.1\IPC$"), Some("IPC$".to_owned()));
        for wrong in ["", "data", r"\data", r"\\server", r"\\server\", r"\\\data", r"\\s\a\b"] {
            assert_eq!(share(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn a_share_for_readers_leaves_no_access_that_changes_anything() {
        let left = AccessMask::FILE_ALL_ACCESS.difference(WRITES);
        assert!(
            left.contains(AccessMask::READ_DATA | AccessMask::EXECUTE | AccessMask::READ_CONTROL)
        );
        assert!(!left.intersects(WRITES));
    }
}
