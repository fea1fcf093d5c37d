//! A directory that is listed a page at a time while everything goes on around it.
//!
//! Which names a page has is each side's own business, and so are those that come or go meanwhile.
//! But what is there throughout must be seen once, whatever happens in between (a restart too).

use crate::step::Op;
use std::collections::BTreeSet;

/// A listing under way, of the directory that a side knows as `K`.
#[derive(Debug)]
pub(crate) struct Cursor<K> {
    pub(crate) dir: K,
    pub(crate) cookie: u64,
    pub(crate) verifier: [u8; 8],
    /// There since the beginning, and not seen yet.
    due: BTreeSet<Vec<u8>>,
    seen: BTreeSet<Vec<u8>>,
    /// Something was done to them since the beginning, in this directory or another.
    touched: BTreeSet<Vec<u8>>,
}

impl<K> Cursor<K> {
    /// Begins to list a directory with these names.
    pub(crate) fn new(dir: K, names: impl Iterator<Item = Vec<u8>>) -> Self {
        let (seen, touched) = (BTreeSet::new(), BTreeSet::new());
        Self { dir, cookie: 0, verifier: [0; 8], due: names.collect(), seen, touched }
    }

    /// Takes note of what is done elsewhere.
    pub(crate) fn touch(&mut self, op: &Op) {
        for name in op.changed_names() {
            self.due.remove(name);
            self.touched.insert(name.to_vec());
        }
    }

    /// Takes note of an entry. Says what is wrong with it.
    pub(crate) fn note(&mut self, name: &[u8], cookie: u64) -> Option<String> {
        self.cookie = cookie;
        self.due.remove(name);
        let twice = !self.seen.insert(name.to_vec()) && !self.touched.contains(name);
        twice.then(|| format!("in pages, {} is listed twice", name.escape_ascii()))
    }

    /// The directory is at its end. Says what is wrong with that.
    pub(crate) fn end(self) -> Option<String> {
        let missed: Vec<_> = self.due.iter().map(|name| name.escape_ascii().to_string()).collect();
        (!missed.is_empty()).then(|| format!("in pages, {missed:?} are not listed"))
    }
}
