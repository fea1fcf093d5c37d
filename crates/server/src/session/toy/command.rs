//! The commands of the protocol for tests.

use crate::op_name::OpName;
use weir_qos::Cost;

/// A command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command {
    Open { volume: String, name: String },
    Read { handle: usize, offset: u64, count: u32 },
    Write { handle: usize, offset: u64, text: String },
    Break { handle: usize },
    Lock { handle: usize },
    Unlock { handle: usize },
}

impl Command {
    /// The command that `text` says, if it is one.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let words: Vec<&str> = text.split(' ').collect();
        Some(match words.as_slice() {
            ["open", volume, name] => {
                Self::Open { volume: (*volume).to_owned(), name: (*name).to_owned() }
            }
            ["read", handle, offset, count] => Self::Read {
                handle: handle.parse().ok()?,
                offset: offset.parse().ok()?,
                count: count.parse().ok()?,
            },
            ["write", handle, offset, text] => Self::Write {
                handle: handle.parse().ok()?,
                offset: offset.parse().ok()?,
                text: (*text).to_owned(),
            },
            ["break", handle] => Self::Break { handle: handle.parse().ok()? },
            ["lock", handle] => Self::Lock { handle: handle.parse().ok()? },
            ["unlock", handle] => Self::Unlock { handle: handle.parse().ok()? },
            _ => return None,
        })
    }

    /// The handle that the command is about.
    pub(super) fn handle(&self) -> Option<usize> {
        match self {
            Self::Open { .. } => None,
            Self::Read { handle, .. }
            | Self::Write { handle, .. }
            | Self::Break { handle }
            | Self::Lock { handle }
            | Self::Unlock { handle } => Some(*handle),
        }
    }

    pub(super) fn op(&self) -> OpName {
        match self {
            Self::Open { .. } => OpName::TOY_OPEN,
            Self::Read { .. } | Self::Break { .. } => OpName::TOY_READ,
            Self::Write { .. } => OpName::TOY_WRITE,
            Self::Lock { .. } => OpName::TOY_LOCK,
            Self::Unlock { .. } => OpName::TOY_UNLOCK,
        }
    }

    /// The most that the command can use of a contract.
    pub(super) fn cost(&self) -> Cost {
        match self {
            Self::Open { .. } | Self::Break { .. } | Self::Lock { .. } | Self::Unlock { .. } => {
                Cost::ZERO
            }
            Self::Read { count, .. } => Cost::of((*count).into()),
            Self::Write { text, .. } => Cost::of(text.len() as u64),
        }
    }
}
