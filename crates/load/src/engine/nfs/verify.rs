//! Reading back what was written, many READs at a time.

use super::Files;
use super::ahead::{Answered, FollowUp};
use super::status::name;
use crate::control::Control;
use crate::error::BenchError;
use crate::verify::Checker;
use weir_nfs::v3::wire::{ReadArgs, Res};

/// A block to be read, and what of it is there already: a server may give less than was asked for
/// (RFC 1813 §3.3.6).
struct Wanted {
    file: u32,
    block: u64,
    got: Vec<u8>,
}

impl Files {
    /// Reads `blocks` (file and block number) back and has them compared, until all are, the run
    /// is stopped, or the server can't be reached.
    pub(in crate::engine) fn verify(
        &self,
        checker: &mut Checker<'_>,
        blocks: Vec<(u32, u64)>,
        control: &Control,
    ) -> Result<(), BenchError> {
        let mut session = self.session()?;
        let block_bytes = checker.block_bytes();
        let wanted =
            blocks.into_iter().map(|(file, block)| Wanted { file, block, got: Vec::new() });
        session.ahead(
            control,
            wanted,
            |session, wanted| {
                let got = u32::try_from(wanted.got.len()).unwrap_or(u32::MAX);
                let args = ReadArgs {
                    file: self.handles.file(wanted.file),
                    offset: wanted.block * u64::from(block_bytes) + u64::from(got),
                    count: block_bytes.saturating_sub(got),
                };
                session.queue(|caller, out, xid| caller.call(out, xid, &args))
            },
            |wanted, answer| judge(wanted, &answer, checker),
        )
    }
}

fn judge(
    mut wanted: Wanted,
    answer: &Answered<'_>,
    checker: &mut Checker<'_>,
) -> Result<FollowUp<Wanted>, BenchError> {
    let length = usize::try_from(checker.block_bytes()).unwrap_or(usize::MAX);
    let Wanted { file, block, .. } = wanted;
    match answer.results::<ReadArgs<'_>>()? {
        Res::Ok(ok) => {
            let there = wanted.got.len() + ok.data.len();
            if there < length && !ok.eof && !ok.data.is_empty() {
                wanted.got.extend_from_slice(ok.data);
                return Ok(FollowUp::More(wanted));
            }
            if wanted.got.is_empty() {
                checker.compare(file, block, ok.data);
            } else {
                wanted.got.extend_from_slice(ok.data);
                checker.compare(file, block, &wanted.got);
            }
        }
        Res::Fail(status, _) => checker.unreadable(file, block, &name(status)),
    }
    Ok(FollowUp::Done)
}
