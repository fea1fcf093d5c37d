//! The content of an image, and the reasons for which one is not used.

use crate::limits::IMAGE_BYTES_MAX;
use weir_cluster::Life;
use weir_core::VolumeId;
use weir_drc::Answered;
use weir_nfs::nlm::Host;
use weir_state::VolumeLocks;

/// One move of one volume.
///
/// A gateway removes the image of an earlier move before it gives the volume up again. So an image
/// that is there, and names the life that gave the volume up last, is of that life's last move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// The volume.
    pub volume: VolumeId,
    /// The life that gives it up.
    pub from: Life,
    /// The life that gets it.
    pub to: Life,
}

/// The state of a volume's clients that moves with it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Image {
    /// The hosts of all clients in `locks`, and others that are owed a notice of a restart.
    pub hosts: Vec<MovedHost>,
    /// The locks of clients of NLM.
    pub locks: VolumeLocks<Blocked>,
    /// The cached replies to calls of the volume: for each client the oldest first.
    pub replies: Vec<Answered>,
}

/// A client of NLM, as the next home has to know it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MovedHost {
    /// The host.
    pub host: Host,
    /// The last state number that was heard of it; 0 if none is known.
    pub state: u32,
    /// It is to be told of an earlier restart and was not yet.
    pub owed: bool,
}

/// The data by which a client hears that the lock for which it waits is its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Blocked {
    /// The handle of the file as the client sent it, at most 1,024 bytes.
    pub handle: Box<[u8]>,
    /// It is told by GRANTED_MSG.
    pub by_message: bool,
}

/// There is more than an image may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("locks and waiting requests take more than {} MiB", IMAGE_BYTES_MAX >> 20)]
pub struct TooLarge;

/// The reason for which an image is not used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// There is none.
    #[error("the gateway before has left none")]
    Missing,
    /// It is longer than [`IMAGE_BYTES_MAX`].
    #[error("it is too long")]
    TooLong,
    /// It is written in a later version.
    #[error("it is written in version {0}, which this program does not know")]
    Newer(u16),
    /// It is no image, or not whole.
    #[error("it is damaged: {0}")]
    Damaged(&'static str),
    /// It is of another move.
    #[error("it is of another move: of volume {}, from {} to {}", .0.volume, .0.from, .0.to)]
    OtherMove(Move),
    /// It cannot be read, or not be removed.
    #[error("{0}")]
    Unread(String),
}
