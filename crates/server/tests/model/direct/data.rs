//! READ, WRITE and COMMIT.

use super::{Direct, Told, after, need, seen, size_before};
use crate::answer::Body;
use crate::step::{Op, Stable, data};
use weir_core::limits::{FILE_BYTES_MAX, IO_BYTES_MAX};
use weir_core::store::Stability;
use weir_core::testing::block_on;
use weir_core::{Credentials, Shared, Store};
use weir_nfs::v3::wire::Status;

impl<S: Store> Direct<S> {
    pub(super) fn read(
        &self,
        slot: usize,
        offset: u64,
        count: u32,
        cred: &Credentials,
    ) -> Result<Told, Status> {
        let found = self.found(slot)?;
        found.need_file()?;
        need(found.to(cred).may_read_data())?;
        let (offset, count) = (offset.min(FILE_BYTES_MAX), count.min(IO_BYTES_MAX));
        let done = block_on(self.store.read(&found.object, offset, count, Vec::new()))?;
        assert_eq!(done.out.len(), done.count as usize);
        Ok((vec![seen(&done.attr)], Body::Data(done.out, done.eof)))
    }

    pub(super) fn write(&self, op: &Op, cred: &Credentials) -> Result<Told, Status> {
        let &Op::Write { object, offset, length, fill, how } = op else { unreachable!() };
        let found = self.found(object)?;
        found.need_file()?;
        need(found.to(cred).may_write_data())?;
        if offset.saturating_add(length as u64) > FILE_BYTES_MAX {
            return Err(Status::FBIG);
        }
        let asked = match how {
            Stable::Unstable => Stability::Unstable,
            Stable::DataSync => Stability::DataSync,
            Stable::FileSync => Stability::FileSync,
        };
        let data = Shared::from(data(fill, offset, length));
        let done = block_on(self.store.write(&found.object, offset, data, asked))?;
        assert!(done.committed >= asked, "{:?} for {asked:?}", done.committed);
        let before = size_before(&done.change);
        Ok((vec![after(&done.change)], Body::Written { count: done.count, before }))
    }

    pub(super) fn commit(&self, slot: usize) -> Result<Told, Status> {
        let found = self.found(slot)?;
        found.need_file()?;
        let change = block_on(self.store.commit(&found.object))?;
        Ok((vec![after(&change)], Body::Nothing))
    }
}
