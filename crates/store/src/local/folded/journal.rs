//! The changes of a directory's names that come while its index is being built.

use super::index::{Full, Index};
use crate::index_memory::{Charge, IndexMemory};
use crate::sync::Arc;

/// Most changes of a journal: more than come while a million names are listed.
const CHANGES_MAX: usize = 1 << 17;
/// Bytes that the allocation of a name takes beside it, at most.
const NAME_EXTRA_BYTES: usize = 16;

/// Changes in their order.
#[derive(Debug)]
pub(super) struct Journal {
    changes: Vec<Change>,
    /// Bytes of the names.
    name_bytes: usize,
    charge: Charge,
    /// Changes are missing: no index can be made of this.
    incomplete: bool,
}

#[derive(Debug)]
struct Change {
    name: Box<[u8]>,
    /// Is the name there afterwards?
    there: bool,
    /// The directory's count of changes then.
    count: u64,
}

impl Journal {
    /// One without changes, whose bytes will be accounted for in `memory`.
    pub(super) fn new(memory: &Arc<IndexMemory>) -> Self {
        let charge = Charge::new(memory);
        Self { changes: Vec::new(), name_bytes: 0, charge, incomplete: false }
    }

    pub(super) fn push(&mut self, name: &[u8], there: bool, count: u64) {
        let follows = self.changes.last().is_none_or(|last| last.count + 1 == count);
        if self.incomplete || !follows || self.changes.len() >= CHANGES_MAX {
            return self.give_up();
        }
        self.changes.push(Change { name: name.into(), there, count });
        self.name_bytes += name.len() + NAME_EXTRA_BYTES;
        let list = self.changes.capacity() * size_of::<Change>();
        if !self.charge.cover(list + self.name_bytes) {
            self.give_up();
        }
    }

    /// Notes that changes are missing.
    pub(super) fn give_up(&mut self) {
        let memory = self.charge.memory();
        *self = Self { incomplete: true, ..Self::new(&memory) };
    }

    /// Takes the changes out.
    pub(super) fn take(&mut self) -> Self {
        let memory = self.charge.memory();
        std::mem::replace(self, Self::new(&memory))
    }

    pub(super) fn len(&self) -> usize {
        self.changes.len()
    }

    /// Carries the changes out, the first of which follows `count`, if that is known. Gives the
    /// count after them.
    pub(super) fn play(
        self,
        index: &mut Index,
        mut count: Option<u64>,
    ) -> Result<Option<u64>, Unusable> {
        if self.incomplete {
            return Err(Unusable::Incomplete);
        }
        for change in self.changes {
            if count.is_some_and(|last| last + 1 != change.count) {
                return Err(Unusable::Incomplete);
            }
            count = Some(change.count);
            if change.there {
                index.insert(&change.name)?;
            } else {
                index.remove(&change.name);
            }
        }
        Ok(count)
    }
}

/// Why an index can't be put into use.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unusable {
    /// The directory has too many names.
    Full,
    /// Changes are missing.
    Incomplete,
    /// Other indexes that are being built take the memory now.
    NoMemory,
}

impl From<Full> for Unusable {
    fn from(_: Full) -> Self {
        Self::Full
    }
}

#[cfg(test)]
mod tests {
    use super::super::index::Matches;
    use super::*;

    fn empty() -> Journal {
        Journal::new(&IndexMemory::new(64 << 20))
    }

    fn has(index: &Index, name: &[u8]) -> bool {
        let mut found = Matches::default();
        index.gather(name, None, 100, &mut found);
        found.exact
    }

    #[test]
    fn the_last_change_of_a_name_counts() {
        let (mut index, mut journal) = (Index::default(), empty());
        index.insert(b"a").unwrap();
        for (count, (name, there)) in
            [(b"a", false), (b"b", true), (b"b", false), (b"c", true)].into_iter().enumerate()
        {
            journal.push(name, there, 7 + count as u64);
        }
        assert_eq!(journal.len(), 4);
        assert_eq!(journal.play(&mut index, Some(6)), Ok(Some(10)));
        assert_eq!([b"a", b"b", b"c"].map(|name| has(&index, name)), [false, false, true]);
        assert_eq!(empty().play(&mut index, Some(3)), Ok(Some(3)));
    }

    #[test]
    fn a_journal_that_lacks_a_change_is_of_no_use() {
        let of = |counts: &[u64]| {
            let mut journal = empty();
            counts.iter().for_each(|count| journal.push(b"a", true, *count));
            journal
        };
        let play = |journal: Journal, count| journal.play(&mut Index::default(), count);
        assert_eq!(play(of(&[1, 2]), None), Ok(Some(2)));
        assert_eq!(play(of(&[1, 3]), None), Err(Unusable::Incomplete));
        assert_eq!(play(of(&[2, 3]), Some(0)), Err(Unusable::Incomplete));
        let many: Vec<_> = (0..=CHANGES_MAX as u64).collect();
        assert_eq!(play(of(&many), None), Err(Unusable::Incomplete));
        assert!(play(of(&many[..CHANGES_MAX]), None).is_ok());
    }

    #[test]
    fn a_journal_is_accounted_for_and_given_up_where_there_is_no_memory() {
        let memory = IndexMemory::new(10_000);
        let mut journal = Journal::new(&memory);
        for count in 0..10 {
            journal.push(&[b'n'; 255], true, count);
        }
        let bytes = memory.taken();
        assert!((2550..5000).contains(&bytes), "{bytes}");
        let taken = journal.take();
        assert_eq!((taken.len(), journal.len(), memory.taken()), (10, 0, bytes));
        taken.play(&mut Index::default(), None).unwrap();
        assert_eq!(memory.taken(), 0);
        for count in 10..100 {
            journal.push(&[b'n'; 255], true, count);
            assert!(memory.taken() <= 10_000);
        }
        assert_eq!(memory.taken(), 0);
        assert_eq!(journal.play(&mut Index::default(), None), Err(Unusable::Incomplete));
    }
}
