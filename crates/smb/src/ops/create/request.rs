//! A CREATE request, checked as far as that goes without looking at any file
//! (MS-SMB2 §3.3.5.9, MS-FSA §2.1.5.1).

use super::contexts::Contexts;
use crate::names::Path;
use crate::ops::Failure;
use crate::ops::access::Desired;
use crate::ops::info::settable;
use crate::ops::walk::Last;
use crate::wire::{
    AccessMask, CreateDisposition, CreateOptions, CreateRequest, FileAttributes,
    ImpersonationLevel, ShareAccess, Status,
};
use weir_core::{DosAttributes, FileKind};
use weir_state::Sharing;

/// Options that do not exist.
const INVALID_OPTIONS: CreateOptions = CreateOptions::from_bits_retain(0xff00_0000);

/// Options that no SMB server carries out: FILE_CREATE_TREE_CONNECTION among them.
const UNSUPPORTED_OPTIONS: CreateOptions = CreateOptions::OPEN_BY_FILE_ID
    .union(CreateOptions::RESERVE_OPFILTER)
    .union(CreateOptions::from_bits_retain(0x80));

/// Attributes that do not exist, or that no client may ask for.
const INVALID_ATTRIBUTES: FileAttributes = FileAttributes::from_bits_retain(0xffff_8048);

/// The request.
pub(super) struct Ask {
    /// The path.
    pub(super) path: Path,
    /// The access.
    pub(super) desired: Desired,
    /// The access that others may have meanwhile.
    pub(super) share: Sharing,
    /// The attributes of a new file.
    pub(super) attributes: FileAttributes,
    /// The behaviour by whether the name exists.
    pub(super) disposition: CreateDisposition,
    /// The options.
    pub(super) options: CreateOptions,
    /// The contexts.
    pub(super) contexts: Contexts,
}

impl Ask {
    /// Checks a request.
    pub(super) fn of(request: &CreateRequest<'_>) -> Result<Self, Failure> {
        let CreateRequest { share_access, options, attributes, disposition, .. } = *request;
        if request.impersonation.0 > ImpersonationLevel::DELEGATE.0 {
            return Err(Status::BAD_IMPERSONATION_LEVEL.into());
        }
        // The access is looked at before attributes and options (MS-FSA §2.1.5.1).
        let desired = Desired::of(request.desired_access)?;
        if options.intersects(INVALID_OPTIONS)
            || attributes.intersects(INVALID_ATTRIBUTES)
            || !ShareAccess::all().contains(share_access)
        {
            return Err(Status::INVALID_PARAMETER.into());
        }
        if options.intersects(UNSUPPORTED_OPTIONS) {
            return Err(Status::NOT_SUPPORTED.into());
        }
        combinations(request)?;
        let path = Path::parse(request.name)?;
        if path.names_directory() && options.contains(CreateOptions::NON_DIRECTORY_FILE) {
            return Err(Status::OBJECT_NAME_INVALID.into());
        }
        let contexts = Contexts::of(&request.contexts)?;
        let share = sharing(share_access);
        Ok(Self { path, desired, share, attributes, disposition, options, contexts })
    }

    /// Must it be a directory?
    pub(super) fn wants_directory(&self) -> bool {
        self.options.contains(CreateOptions::DIRECTORY_FILE) || self.path.names_directory()
    }

    /// Is a file that exists emptied?
    pub(super) fn overwrites(&self) -> bool {
        overwrites(self.disposition)
    }

    /// Is the object deleted when the open is closed?
    pub(super) fn deletes(&self) -> bool {
        self.options.contains(CreateOptions::DELETE_ON_CLOSE)
    }

    /// A link as the last name of the path is followed unless it is asked for itself. A file that
    /// must not exist is not made at the other end of a link either, as open(2) has it.
    pub(super) fn last(&self) -> Last {
        let itself = self.options.contains(CreateOptions::OPEN_REPARSE_POINT);
        if itself || self.disposition == CreateDisposition::Create {
            Last::Stay
        } else {
            Last::Follow
        }
    }

    /// The attributes that an object of this kind begins with, or begins anew.
    pub(super) fn dos(&self, kind: FileKind) -> DosAttributes {
        DosAttributes::of_new(kind) | settable(self.attributes)
    }
}

const fn overwrites(disposition: CreateDisposition) -> bool {
    use CreateDisposition::{Overwrite, OverwriteIf, Supersede};
    matches!(disposition, Supersede | Overwrite | OverwriteIf)
}

/// Options that contradict each other, the disposition or the access.
fn combinations(request: &CreateRequest<'_>) -> Result<(), Status> {
    let options = request.options;
    let directory = options.contains(CreateOptions::DIRECTORY_FILE);
    let file = options.contains(CreateOptions::NON_DIRECTORY_FILE);
    let deletes = options.contains(CreateOptions::DELETE_ON_CLOSE);
    let may_delete = AccessMask::DELETE | AccessMask::GENERIC_ALL;
    if (directory && (file || overwrites(request.disposition)))
        || (deletes && !request.desired_access.intersects(may_delete))
    {
        return Err(Status::INVALID_PARAMETER);
    }
    Ok(())
}

fn sharing(share: ShareAccess) -> Sharing {
    let mut sharing = Sharing::empty();
    sharing.set(Sharing::READ, share.contains(ShareAccess::READ));
    sharing.set(Sharing::WRITE, share.contains(ShareAccess::WRITE));
    sharing.set(Sharing::DELETE, share.contains(ShareAccess::DELETE));
    sharing
}
