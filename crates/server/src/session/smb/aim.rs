//! From a request on a tree connect to the operation on a volume that it asks for: its share, its
//! charge and its file. A request of its own and an element of a compound are both aimed here.
//!
//! Not here: the proof that the request is its session's, and the way through the gate.

use super::begin::Element;
use super::tree::{Usable, user_of};
use super::user_session::{Tree, UserSession};
use crate::engine::{ServedSet, ServedVolume};
use crate::op_name::OpName;
use crate::sync::Arc;
use weir_core::ObjectKey;
use weir_qos::Cost;
use weir_smb::host::{Share, User};
use weir_smb::route::Route;
use weir_smb::wire::{Command, FileId, Status};

/// A request of a session that has proved it.
#[derive(Clone, Copy)]
pub(super) struct OnTree<'a> {
    pub(super) served: &'a ServedSet,
    pub(super) session: &'a Arc<UserSession>,
    pub(super) element: &'a Element,
    /// The request came sealed.
    pub(super) sealed: bool,
    pub(super) command: Command,
    /// The open that the element before it hands on, or why there is none.
    pub(super) before: Option<Result<FileId, Status>>,
}

/// The target of a request.
pub(super) enum Target {
    /// A volume.
    Volume(Aim),
    /// The named pipes.
    Pipes,
}

/// An operation on a volume.
pub(super) struct Aim {
    pub(super) volume: Arc<ServedVolume>,
    pub(super) share: Arc<Share>,
    pub(super) user: Arc<User>,
    pub(super) op: OpName,
    pub(super) route: Route,
    /// The most that it can use of the contract.
    pub(super) cost: Cost,
    /// The file that it reads or writes.
    pub(super) file: Option<ObjectKey>,
    /// The open by which it reads or writes.
    pub(super) open: Option<FileId>,
}

impl OnTree<'_> {
    /// The open that the request takes over from the element before it.
    pub(super) fn related(&self) -> Option<FileId> {
        self.before.and_then(Result::ok)
    }

    /// The target.
    ///
    /// # Errors
    /// A [`Status`] to answer.
    pub(super) fn aim(&self) -> Result<Target, Status> {
        let Self { served, session, element, sealed, command, before } = *self;
        let route = Route::of(command, &element.header, &element.message)?;
        // A CREATE is for a name, and every other command for an open.
        if let Some(Err(status)) = before
            && command != Command::Create
        {
            return Err(status);
        }
        let tree_id = element.header.tree_id();
        let usable = match session.tree(tree_id).as_deref() {
            None => return Err(Status::NETWORK_NAME_DELETED),
            Some(Tree::Pipes) if user_of(served, session).is_none() => {
                return Err(Status::ACCESS_DENIED);
            }
            Some(Tree::Pipes) => return Ok(Target::Pipes),
            Some(Tree::Disk(disk)) => disk.usable(served, session, sealed),
        };
        let Usable { volume, share, user } = usable?;
        let op = OpName::smb(command).ok_or(Status::INVALID_PARAMETER)?;
        let named = |id| if id == FileId::PREVIOUS { self.related() } else { Some(id) };
        let open = route.file.and_then(named);
        let file = open.and_then(|id| session.file(id, tree_id)).map(|open| open.open.key);
        let cost = volume.gate.cost(route.class, route.bytes.into());
        Ok(Target::Volume(Aim { volume, share, user, op, route, cost, file, open }))
    }
}
