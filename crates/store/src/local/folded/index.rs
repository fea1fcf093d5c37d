//! The names of one directory, to be found without regard to case: an ordered set of keys, each of
//! which is a hash of the folded name, a few bits of a hash of the name, and the place of the name.
//! So no step is longer than another, as it would be in a hash table that grows. A name of 20 bytes
//! is accounted for with 44.

use super::arena::{Arena, PLACE_BITS, Place};
use std::collections::BTreeSet;
use std::hash::{BuildHasher, Hasher, RandomState};
use weir_core::fold::{eq_folded, hash_folded};

/// Bits of the hash of the name itself: enough to find it among many that differ in case alone.
const NAME_BITS: u32 = 12;
const FOLDED_BITS: u32 = u64::BITS - NAME_BITS - PLACE_BITS;
/// Bytes of a key in the set, with what its nodes leave free.
const KEY_BYTES: usize = 20;

/// Names that a name may mean, the first by their bytes.
#[derive(Debug, Default)]
pub(super) struct Matches {
    /// The name itself, if it is there.
    pub(super) exact: bool,
    /// Others, in the order of their bytes, at most [`MATCHES_MAX`].
    pub(super) others: Vec<Box<[u8]>>,
}

/// Names kept of those that differ in case alone. The first of them counts; more are needed only
/// where names change meanwhile.
const MATCHES_MAX: usize = 8;

impl Matches {
    /// Notes a name of the directory that `wanted` may mean.
    pub(super) fn note(&mut self, wanted: &[u8], found: &[u8]) {
        if found == wanted {
            self.exact = true;
            return;
        }
        if !eq_folded(found, wanted) {
            return;
        }
        if let Err(at) = self.others.binary_search_by(|other| (**other).cmp(found))
            && at < MATCHES_MAX
        {
            self.others.insert(at, found.into());
            self.others.truncate(MATCHES_MAX);
        }
    }
}

/// The names of a directory.
#[derive(Debug, Default)]
pub(super) struct Index {
    seed: RandomState,
    keys: BTreeSet<u64>,
    names: Arena,
}

/// The directory has more names than an index can hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Full;

/// An index that is being made of names in any order.
#[derive(Debug, Default)]
pub(super) struct Builder {
    index: Index,
    keys: Vec<u64>,
}

impl Builder {
    /// Adds a name that was not added before.
    pub(super) fn add(&mut self, name: &[u8]) -> Result<(), Full> {
        let key = self.index.front(name);
        self.keys.push(key | u64::from(self.index.names.put(name).ok_or(Full)?));
        Ok(())
    }

    /// Bytes of the index, and of the list of its keys, which is there until [`Self::finish`] ends.
    pub(super) fn bytes(&self) -> usize {
        let list = self.keys.capacity() * size_of::<u64>();
        self.index.names.bytes() + self.keys.len() * KEY_BYTES + list
    }

    pub(super) fn finish(mut self) -> Index {
        self.keys.sort_unstable();
        Index { keys: self.keys.into_iter().collect(), ..self.index }
    }
}

impl Index {
    /// The part of a name's key before its place.
    fn front(&self, name: &[u8]) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hasher.write(name);
        let own = hasher.finish() & ((1 << NAME_BITS) - 1);
        self.group(name) | own << PLACE_BITS
    }

    /// The part of the key that all names have in common which differ from `name` in case alone.
    fn group(&self, name: &[u8]) -> u64 {
        let mut hasher = self.seed.build_hasher();
        hash_folded(name, &mut hasher);
        hasher.finish() >> (u64::BITS - FOLDED_BITS) << (NAME_BITS + PLACE_BITS)
    }

    /// The key of a name that is there.
    fn key(&self, name: &[u8]) -> Option<u64> {
        let front = self.front(name);
        let same = |key: &&u64| self.names.get(place(**key)) == name;
        self.keys.range(front..=front | ((1 << PLACE_BITS) - 1)).find(same).copied()
    }

    /// Adds a name, unless it is there.
    pub(super) fn insert(&mut self, name: &[u8]) -> Result<(), Full> {
        if self.key(name).is_none() {
            let place = self.names.put(name).ok_or(Full)?;
            self.keys.insert(self.front(name) | u64::from(place));
        }
        Ok(())
    }

    /// Removes a name, if it is there.
    pub(super) fn remove(&mut self, name: &[u8]) {
        // A listing during which names change may have had it twice.
        while let Some(key) = self.key(name) {
            self.keys.remove(&key);
            self.names.take_out(place(key));
        }
    }

    /// Notes the names that `wanted` may mean, looking at `looks` at most, from `begin` on or from
    /// the first. Gives where to go on.
    pub(super) fn gather(
        &self,
        wanted: &[u8],
        begin: Option<u64>,
        looks: usize,
        matches: &mut Matches,
    ) -> Option<u64> {
        let first = self.group(wanted);
        let last = first | ((1 << (NAME_BITS + PLACE_BITS)) - 1);
        let mut keys = self.keys.range(begin.unwrap_or(first)..=last);
        for key in keys.by_ref().take(looks) {
            matches.note(wanted, self.names.get(place(*key)));
        }
        keys.next().copied()
    }

    /// Is it to be made anew, because most of its memory serves no name?
    pub(super) fn is_wasteful(&self) -> bool {
        self.names.is_wasteful()
    }

    /// Bytes of memory.
    pub(super) fn bytes(&self) -> usize {
        self.names.bytes() + self.keys.len() * KEY_BYTES
    }
}

fn place(key: u64) -> Place {
    (key & ((1 << PLACE_BITS) - 1)) as Place
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet as Model;

    fn matches(index: &Index, wanted: &[u8], looks: usize) -> (bool, Vec<Vec<u8>>) {
        let (mut found, mut begin) = (Matches::default(), None);
        loop {
            begin = index.gather(wanted, begin, looks, &mut found);
            if begin.is_none() {
                break (found.exact, found.others.iter().map(|name| name.to_vec()).collect());
            }
        }
    }

    fn expected(model: &Model<Vec<u8>>, wanted: &[u8]) -> (bool, Vec<Vec<u8>>) {
        let others = model.iter().filter(|name| *name != wanted && eq_folded(name, wanted));
        (model.contains(wanted), others.take(MATCHES_MAX).cloned().collect())
    }

    fn name() -> impl Strategy<Value = Vec<u8>> {
        let letters = prop::sample::select(vec!["a", "A", "b", "ä", "Ä", "ß", "\u{2c6f}", "ɐ"]);
        prop_oneof![
            prop::collection::vec(letters, 1..4).prop_map(|parts| parts.concat().into_bytes()),
            prop::collection::vec(any::<u8>(), 1..4),
        ]
    }

    proptest! {
        #[test]
        fn it_has_what_the_directory_has(
            first in prop::collection::btree_set(name(), 0..30),
            changes in prop::collection::vec((any::<bool>(), name()), 0..60),
            looks in 1..5usize,
        ) {
            let mut builder = Builder::default();
            first.iter().for_each(|name| builder.add(name).unwrap());
            let (mut index, mut model) = (builder.finish(), first);
            for (there, name) in changes {
                if there {
                    index.insert(&name).unwrap();
                    model.insert(name.clone());
                } else {
                    index.remove(&name);
                    model.remove(&name);
                }
                prop_assert_eq!(matches(&index, &name, looks), expected(&model, &name));
            }
            prop_assert_eq!(index.keys.len(), model.len());
        }
    }

    #[test]
    fn a_name_that_was_listed_twice_goes_as_a_whole() {
        let mut builder = Builder::default();
        builder.add(b"a").unwrap();
        builder.add(b"a").unwrap();
        let mut index = builder.finish();
        index.insert(b"a").unwrap();
        index.remove(b"a");
        assert_eq!(matches(&index, b"A", 9), (false, vec![]));
    }

    #[test]
    fn names_that_come_and_go_make_it_wasteful_in_the_end() {
        let mut index = Index::default();
        let name = |number: u32| format!("name {number}").into_bytes();
        for number in 0..10_000 {
            index.insert(&name(number)).unwrap();
            assert!(!index.is_wasteful());
            index.remove(&name(number));
            if index.is_wasteful() {
                return;
            }
        }
        panic!("10,000 names took {} bytes", index.bytes());
    }

    #[test]
    fn a_million_names_of_20_bytes_take_less_than_48_mib() {
        let mut builder = Builder::default();
        for number in 0..1_000_000 {
            builder.add(format!("A file, no. {number:08}").as_bytes()).unwrap();
        }
        assert!(builder.bytes() < 64 << 20, "{}", builder.bytes());
        let index = builder.finish();
        assert!(index.bytes() < 48 << 20);
        let found = matches(&index, b"a FILE, NO. 00123456", 64);
        assert_eq!(found, (false, vec![b"A file, no. 00123456".to_vec()]));
    }
}
