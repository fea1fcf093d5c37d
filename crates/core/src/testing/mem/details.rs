//! Details, and the operations on data that the right to write was decided for before.

use super::rules;
use super::tree::Tree;
use crate::attr::{Attr, Change, FileKind};
use crate::cred::Credentials;
use crate::details::{Details, SetDetails};
use crate::error::{FsError, FsResult};
use crate::limits::FILE_BYTES_MAX;
use crate::store::Allocated;

impl Tree {
    pub(super) fn details(&self, ino: u64) -> FsResult<(Attr, Details)> {
        let node = self.node(ino)?;
        Ok((node.attr(ino), node.details()))
    }

    pub(super) fn set_details(
        &mut self,
        ino: u64,
        set: &SetDetails,
        cred: &Credentials,
    ) -> FsResult<(Attr, Details)> {
        let (attr, found) = self.details(ino)?;
        if !matches!(attr.kind, FileKind::Regular | FileKind::Directory) {
            return Err(FsError::NotSupported);
        }
        rules::may_set_details(self.node(ino)?, cred)?;
        let (birth, dos) = (set.birth.unwrap_or(found.birth), set.dos.unwrap_or(found.dos));
        if (birth, dos) != (found.birth, found.dos) {
            let now = self.tick();
            let node = self.node_mut(ino)?;
            (node.birth, node.dos, node.ctime) = (birth, dos, now);
        }
        self.details(ino)
    }

    pub(super) fn set_size(&mut self, ino: u64, size: u64) -> FsResult<Change> {
        let before = self.attr(ino)?;
        self.file(ino)?;
        if size > FILE_BYTES_MAX {
            return Err(FsError::TooLarge);
        }
        self.file_mut(ino)?.set_size(size);
        self.data_changed(ino)?;
        Ok(Change { before: Some(before), after: Some(self.attr(ino)?) })
    }

    pub(super) fn zero_range(&mut self, ino: u64, from: u64, to: u64) -> FsResult<Change> {
        let before = self.attr(ino)?;
        let to = to.min(self.file(ino)?.size());
        if from < to {
            self.file_mut(ino)?.zero(from, to);
            self.data_changed(ino)?;
        }
        Ok(Change { before: Some(before), after: Some(self.attr(ino)?) })
    }

    pub(super) fn allocated_ranges(
        &self,
        ino: u64,
        (mut from, to): (u64, u64),
        ranges_max: usize,
    ) -> FsResult<Allocated> {
        let file = self.file(ino)?;
        let mut found = Allocated::default();
        while let Some(range) = file.data(from, to) {
            if found.ranges.len() >= ranges_max {
                found.more = true;
                break;
            }
            from = range.end;
            found.ranges.push(range);
        }
        Ok(found)
    }
}
