//! The corpus of the targets for SMB.

mod frames;
mod logins;
mod messages;
mod pipes;
mod sequences;

use std::io::Result;

pub(super) fn all() -> Result<()> {
    messages::messages()?;
    messages::payloads()?;
    pipes::pipes()?;
    frames::frames()?;
    sequences::sequences()?;
    logins::ntlm()?;
    logins::spnego()
}
