//! Reading back what was written, many READs at a time.

use super::Files;
use super::ahead::{Answered, FollowUp};
use super::status::name;
use crate::control::Control;
use crate::engine::Waits;
use crate::error::BenchError;
use crate::verify::{Checker, Wanted};
use weir_nfs::v3::wire::{ReadArgs, Res};

impl Files {
    /// Reads `blocks` (file and block number) back and has them compared, until all are, the run
    /// is stopped, or the server can't be reached.
    pub(in crate::engine) fn verify(
        &self,
        checker: &mut Checker<'_>,
        blocks: Vec<(u32, u64)>,
        control: &Control,
    ) -> Result<(), BenchError> {
        let mut session = self.session(&Waits::checking(control))?;
        let block_bytes = checker.block_bytes();
        session.ahead(
            control,
            blocks.into_iter().map(Wanted::new),
            |session, wanted| {
                let (file, offset, count) = wanted.left(block_bytes);
                let args = ReadArgs { file: self.handles.file(file), offset, count };
                session.queue(|caller, out, xid| caller.call(out, xid, &args))
            },
            |wanted, answer| judge(wanted, &answer, checker),
        )
    }
}

fn judge(
    wanted: Wanted,
    answer: &Answered<'_>,
    checker: &mut Checker<'_>,
) -> Result<FollowUp<Wanted>, BenchError> {
    let left = match answer.results::<ReadArgs<'_>>()? {
        Res::Ok(ok) => wanted.take(ok.data, ok.eof, checker),
        Res::Fail(status, _) => {
            wanted.unreadable(&name(status), checker);
            None
        }
    };
    Ok(left.map_or(FollowUp::Done, FollowUp::More))
}
