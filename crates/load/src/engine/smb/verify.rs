//! Reading back what was written, many READs at a time.

use super::Files;
use super::files::{self, File};
use super::session::outcome;
use crate::control::Control;
use crate::engine::{Plan, Waits};
use crate::error::BenchError;
use crate::verify::{Checker, Wanted};
use weir_smb::wire::{AccessMask, FileId, Status};
use weir_smb_client::Request;

impl Files {
    /// Reads `blocks` (file and block number) back and has them compared, until all are, the run
    /// is stopped, or the server can't be reached.
    pub(in crate::engine) fn verify(
        &self,
        plan: &Plan,
        checker: &mut Checker<'_>,
        blocks: &[(u32, u64)],
        control: &Control,
    ) -> Result<(), BenchError> {
        let mut session = self.session(&Waits::checking(control))?;
        let mut names = self.names(plan);
        let block_bytes = checker.block_bytes();
        // Blocks of a file stand together, so that few files are open at a time.
        for group in blocks.chunk_by(|(one, _), (other, _)| one == other) {
            let Some((number, _)) = group.first() else { continue };
            let wanted = usize::try_from(*number).ok().and_then(|index| {
                plan.files.get(index).map(|spec| (File { index, spec }, *number))
            });
            let access = AccessMask::READ_DATA;
            let opens = files::open(&mut session, &mut names, wanted.into_iter(), access)?;
            let open = opens.first().map_or(FileId::PREVIOUS, |(_, open)| *open);
            let mut malformed = None;
            session.ahead(
                control,
                group.iter().copied().map(Wanted::new),
                |session, token, wanted| {
                    let (_, offset, length) = wanted.left(block_bytes);
                    session.queue(token, &[Request::Read { file: open, offset, length }])
                },
                |wanted, replies| {
                    let data = replies.first().map(|reply| reply.data());
                    Ok(match (outcome(&replies), data) {
                        (Status::SUCCESS, Some(Ok(data))) => wanted.take(data, false, checker),
                        (Status::SUCCESS, Some(Err(error))) => {
                            malformed = Some(error);
                            None
                        }
                        (Status::END_OF_FILE, _) => wanted.take(&[], true, checker),
                        (status, _) => {
                            wanted.unreadable(&status.to_string(), checker);
                            None
                        }
                    })
                },
            )?;
            if let Some(error) = malformed {
                return Err(session.wrong(error));
            }
            session.call(&[Request::Close(open)])?;
        }
        Ok(())
    }
}
