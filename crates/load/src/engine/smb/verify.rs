//! Reading back what was written, many READs at a time.

use super::Files;
use super::files::{self, File};
use super::session::outcome;
use crate::control::Control;
use crate::engine::Plan;
use crate::error::BenchError;
use crate::verify::Checker;
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
        let mut session = self.session()?;
        let mut names = self.names(plan);
        let length = checker.block_bytes();
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
            let at = |block: u64| block * u64::from(length);
            session.ahead(
                control,
                group.iter(),
                |session, token, (_, block)| {
                    let offset = at(*block);
                    session.queue(token, &[Request::Read { file: open, offset, length }])
                },
                |(file, block), replies| {
                    match (outcome(&replies), replies.first().map(|reply| reply.data())) {
                        (Status::SUCCESS, Some(Ok(data))) => checker.compare(*file, *block, data),
                        (Status::SUCCESS, Some(Err(error))) => malformed = Some(error),
                        (Status::END_OF_FILE, _) => checker.compare(*file, *block, &[]),
                        (status, _) => checker.unreadable(*file, *block, &status.to_string()),
                    }
                    Ok(None)
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
