//! The requests of a job as they are sent, and operations as they are counted.

use crate::stats::OpKind;

/// One request. Files are numbers; what the job makes has serial numbers of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Read {
        file: u32,
        offset: u64,
        bytes: u32,
    },
    Write {
        file: u32,
        offset: u64,
        bytes: u32,
        generation: u32,
    },
    Commit {
        file: u32,
        /// The writes of the file that were answered when it was sent, if that is kept track of.
        covers: u32,
    },
    Null,
    Getattr {
        file: u32,
    },
    Access {
        file: u32,
    },
    Lookup {
        file: u32,
    },
    Setattr {
        file: u32,
    },
    Create {
        serial: u64,
    },
    /// Writes so many bytes to a file that was just created.
    Fill {
        serial: u64,
        offset: u64,
        bytes: u32,
    },
    Remove {
        serial: u64,
    },
    /// REMOVE of a laid-out file.
    Unlink {
        file: u32,
    },
    Mkdir {
        serial: u64,
    },
    Rmdir {
        serial: u64,
    },
}

impl Request {
    /// The kind under which it counts where it stands alone.
    pub(crate) const fn kind(&self) -> OpKind {
        match self {
            Self::Read { .. } => OpKind::Read,
            Self::Write { .. } | Self::Fill { .. } => OpKind::Write,
            Self::Commit { .. } => OpKind::Commit,
            Self::Null => OpKind::Null,
            Self::Getattr { .. } => OpKind::Getattr,
            Self::Access { .. } => OpKind::Access,
            Self::Lookup { .. } => OpKind::Lookup,
            Self::Setattr { .. } => OpKind::Setattr,
            Self::Create { .. } => OpKind::Create,
            Self::Remove { .. } | Self::Unlink { .. } => OpKind::Remove,
            Self::Mkdir { .. } => OpKind::Mkdir,
            Self::Rmdir { .. } => OpKind::Rmdir,
        }
    }

    /// Payload bytes that it moves.
    pub(crate) const fn bytes(&self) -> u32 {
        match self {
            Self::Read { bytes, .. } | Self::Write { bytes, .. } | Self::Fill { bytes, .. } => {
                *bytes
            }
            _ => 0,
        }
    }

    /// The request for the rest once the first `moved` of its bytes are moved.
    const fn rest(mut self, moved: u32) -> Self {
        if let Self::Read { offset, bytes, .. }
        | Self::Write { offset, bytes, .. }
        | Self::Fill { offset, bytes, .. } = &mut self
        {
            *offset += moved as u64;
            *bytes = bytes.saturating_sub(moved);
        }
        self
    }
}

/// A request, what it counts as, and what follows when it has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Op {
    pub request: Request,
    pub kind: OpKind,
    pub(super) follow: Follow,
}

/// The request that follows another, which itself says on what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Follow {
    Nothing,
    /// The rest of the file is read as part of the same operation.
    ReadOn,
    /// The rest of the file is written, and all of it committed.
    WriteOn,
    /// Another operation: filling what was created, and removing it then.
    Fill,
    /// Another operation: removing what was created.
    Remove,
    /// Another operation: removing the directory that was made.
    Rmdir,
    /// Another operation: creating a file, for which there is room now.
    Create,
    /// Another operation: making a directory, for which there is room now.
    Mkdir,
}

impl Op {
    /// An operation of one request.
    pub(super) const fn alone(request: Request) -> Self {
        Self { request, kind: request.kind(), follow: Follow::Nothing }
    }

    /// Is there nothing to be done when it has succeeded, neither by the job nor in its slot?
    pub(crate) const fn leaves_no_trace(&self) -> bool {
        let plain = matches!(
            self.request,
            Request::Read { .. }
                | Request::Write { generation: 0, .. }
                | Request::Null
                | Request::Getattr { .. }
                | Request::Access { .. }
                | Request::Lookup { .. }
                | Request::Unlink { .. }
        );
        plain && matches!(self.follow, Follow::Nothing)
    }

    /// Will what it creates be filled?
    pub(crate) const fn fills(&self) -> bool {
        matches!(self.follow, Follow::Fill)
    }

    /// The same operation with the request for the rest, once the first `moved` bytes of its
    /// request are moved.
    pub(super) const fn rest(&self, moved: u32) -> Self {
        Self { request: self.request.rest(moved), ..*self }
    }

    /// A request after which something follows.
    pub(super) const fn then(request: Request, follow: Follow) -> Self {
        Self { request, kind: request.kind(), follow }
    }
}

/// A job's answer to a slot that asks for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// This, at once or when it is due, in nanoseconds since the start.
    Op(Op, Option<u64>),
    /// Nothing before this time.
    Wait(u64),
    /// Nothing before requests of the job are answered that are in flight.
    Held,
    /// Nothing any more.
    Done,
}

/// The work after a request that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum After {
    /// The next request of the same operation.
    Part(Op),
    /// The operation is complete, and another one belongs to it, which is due at this time.
    Then(Op, Option<u64>),
    /// The operation is complete.
    Whole,
}

/// An answer to an operation, as far as it regulates what a job does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Answer {
    /// The time of the answer, in nanoseconds since the start of the step.
    pub now_ns: u64,
    /// The time at which the operation was due; `None` if it failed.
    pub queued_ns: Option<u64>,
    /// Payload bytes that it moved.
    pub bytes: u64,
}
