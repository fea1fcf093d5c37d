//! Reading back what was written, many READs at a time.

use super::Files;
use super::session::{Session, malformed};
use super::status::name;
use crate::control::Control;
use crate::error::BenchError;
use crate::verify::Checker;
use std::collections::HashMap;
use weir_nfs::v3::wire::{ReadArgs, Res};

/// READs sent ahead.
const WINDOW: usize = 32;

impl Files {
    /// Reads `blocks` (file and block number) back and has them compared, until all are, the run
    /// is stopped, or the server can't be reached.
    pub(in crate::engine) fn verify(
        &self,
        checker: &mut Checker<'_>,
        blocks: Vec<(u32, u64)>,
        control: &Control,
    ) -> Result<(), BenchError> {
        let count = checker.block_bytes();
        let mut session = self.session()?;
        let mut pending = HashMap::with_capacity(WINDOW);
        let mut left = blocks.into_iter();
        loop {
            while pending.len() < WINDOW
                && !control.stopped()
                && let Some((file, block)) = left.next()
            {
                let offset = checker.offset(block);
                let args = ReadArgs { file: self.handles.file(file), offset, count };
                let xid = session.queue(|caller, out, xid| caller.call(out, xid, &args));
                pending.insert(xid, (file, block));
            }
            if pending.is_empty() {
                return Ok(());
            }
            compare(&mut session, &mut pending, checker)?;
        }
    }
}

fn compare(
    session: &mut Session,
    pending: &mut HashMap<u32, (u32, u64)>,
    checker: &mut Checker<'_>,
) -> Result<(), BenchError> {
    let address = session.address();
    session.answer(|reply| {
        let Some((file, block)) = pending.remove(&reply.xid) else {
            let detail = format!("a reply to nothing that was asked (xid {:#010x})", reply.xid);
            return Err(BenchError::Protocol { address, detail });
        };
        match reply.results::<ReadArgs<'_>>().map_err(|error| malformed(address, &error))? {
            Res::Ok(ok) => checker.compare(file, block, ok.data),
            Res::Fail(status, _) => checker.unreadable(file, block, &name(status)),
        }
        Ok(())
    })
}
