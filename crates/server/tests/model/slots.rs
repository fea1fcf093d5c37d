//! The slots in which a side keeps the objects that it knows.

use crate::step::{DIRECTORIES, FILES, SLOTS};
use weir_core::FileKind;

/// Objects in a side's own terms, by slot.
#[derive(Debug)]
pub(crate) struct Slots<K> {
    held: Vec<K>,
}

impl<K: Clone + PartialEq> Slots<K> {
    /// All hold the root.
    pub(crate) fn new(root: &K) -> Self {
        Self { held: vec![root.clone(); SLOTS] }
    }

    pub(crate) fn get(&self, slot: usize) -> &K {
        &self.held[slot]
    }

    /// The first slot that holds `object`.
    pub(crate) fn find(&self, object: &K) -> Option<usize> {
        self.held.iter().position(|held| held == object)
    }

    /// Puts `object` into a slot, and into one of those for its kind. Says which slot held it
    /// before.
    pub(crate) fn fill(&mut self, into: usize, object: &K, kind: FileKind) -> Option<usize> {
        let known = self.find(object);
        if into >= self.held.len() {
            let root = self.held[0].clone();
            self.held.resize(into + 1, root);
        }
        self.held[into] = object.clone();
        if into < SLOTS {
            match kind {
                FileKind::Directory => self.held[1 + into % (DIRECTORIES - 1)] = object.clone(),
                FileKind::Regular => self.held[DIRECTORIES + into % FILES] = object.clone(),
                _ => {}
            }
        }
        known
    }
}
