//! The commands of SMB2.

/// The commands by their numbers (MS-SMB2 §2.2.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
#[expect(missing_docs, reason = "the names are those of MS-SMB2 §2.2.1.2")]
pub enum Command {
    Negotiate = 0,
    SessionSetup = 1,
    Logoff = 2,
    TreeConnect = 3,
    TreeDisconnect = 4,
    Create = 5,
    Close = 6,
    Flush = 7,
    Read = 8,
    Write = 9,
    Lock = 10,
    Ioctl = 11,
    Cancel = 12,
    Echo = 13,
    QueryDirectory = 14,
    ChangeNotify = 15,
    QueryInfo = 16,
    SetInfo = 17,
    OplockBreak = 18,
}

/// A number that no command has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the command {0:#06x} does not exist")]
pub struct UnknownCommand(pub u16);

impl Command {
    /// Every command, at the index that is its number.
    pub const ALL: [Self; 19] = [
        Self::Negotiate,
        Self::SessionSetup,
        Self::Logoff,
        Self::TreeConnect,
        Self::TreeDisconnect,
        Self::Create,
        Self::Close,
        Self::Flush,
        Self::Read,
        Self::Write,
        Self::Lock,
        Self::Ioctl,
        Self::Cancel,
        Self::Echo,
        Self::QueryDirectory,
        Self::ChangeNotify,
        Self::QueryInfo,
        Self::SetInfo,
        Self::OplockBreak,
    ];

    /// The command with this number.
    ///
    /// # Errors
    /// [`UnknownCommand`] if there is none.
    #[inline]
    pub fn of(number: u16) -> Result<Self, UnknownCommand> {
        Self::ALL.get(usize::from(number)).copied().ok_or(UnknownCommand(number))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_found_by_its_number() {
        for (number, command) in (0..).zip(Command::ALL) {
            assert_eq!(command as u16, number);
            assert_eq!(Command::of(number), Ok(command));
        }
        assert_eq!(Command::of(19), Err(UnknownCommand(19)));
        assert_eq!(Command::of(u16::MAX), Err(UnknownCommand(u16::MAX)));
    }
}
