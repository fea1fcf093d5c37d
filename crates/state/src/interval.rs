//! A set of ranges that may overlap, each with a key: finds those that overlap a given one in
//! O(log n) for each found. A balanced tree (AVL) in which every node knows how far the ranges
//! below it reach, and whether all of them are one open's; balance does not depend on what is put
//! in, so no peer can make it slow.

use crate::owner::{OpenId, Owner};
use crate::range::Range;
use core::cmp::Ordering;
use slab::Slab;

#[derive(Debug)]
pub(crate) struct Intervals<K> {
    nodes: Slab<Node<K>>,
    root: Option<usize>,
}

#[derive(Debug)]
struct Node<K> {
    range: Range,
    key: K,
    /// The greatest last byte in this subtree.
    reach: u64,
    /// The open that has every range of this subtree, if there is one.
    sole: Option<OpenId>,
    height: u8,
    below: [Option<usize>; 2],
}

/// The key of a range.
pub(crate) trait Key: Ord {
    /// The open that has the range, if it is one of an open.
    fn open(&self) -> Option<OpenId>;
}

impl Key for Owner {
    fn open(&self) -> Option<OpenId> {
        Self::open(self)
    }
}

impl Key for (Owner, u64) {
    fn open(&self) -> Option<OpenId> {
        self.0.open()
    }
}

const LOW: usize = 0;
const HIGH: usize = 1;

impl<K> Default for Intervals<K> {
    fn default() -> Self {
        Self { nodes: Slab::new(), root: None }
    }
}

impl<K: Key> Intervals<K> {
    /// Puts `range` in. No two may have the same key and the same first byte.
    pub(crate) fn insert(&mut self, range: Range, key: K) {
        let (reach, sole) = (range.last(), key.open());
        let node = Node { range, key, reach, sole, height: 1, below: [None; 2] };
        if self.nodes.capacity() == 0 {
            // Most sets have one range; a slab makes room for four by itself.
            self.nodes = Slab::with_capacity(1);
        }
        let new = self.nodes.insert(node);
        self.root = Some(self.insert_below(self.root, new));
    }

    /// Takes out the range that was put in with `key` and begins at `first`.
    pub(crate) fn remove(&mut self, first: u64, key: &K) {
        self.root = self.remove_below(self.root, first, key);
    }

    /// The first range, by its first byte, that overlaps `range` and whose key is wanted.
    pub(crate) fn find<'a>(
        &'a self,
        range: Range,
        want: &mut dyn FnMut(Range, &'a K) -> bool,
    ) -> Option<(Range, &'a K)> {
        self.find_below(self.root?, range, None, want)
    }

    /// The first range, by its first byte, that overlaps `range` and that `open` has not. The many
    /// that `open` may have cost nothing.
    pub(crate) fn find_but(&self, range: Range, open: OpenId) -> Option<(Range, &K)> {
        let mut others = |_, key: &K| key.open() != Some(open);
        self.find_below(self.root?, range, Some(open), &mut others)
    }

    fn find_below<'a>(
        &'a self,
        at: usize,
        range: Range,
        but: Option<OpenId>,
        want: &mut dyn FnMut(Range, &'a K) -> bool,
    ) -> Option<(Range, &'a K)> {
        let node = &self.nodes[at];
        if node.reach < range.first() || but.is_some() && node.sole == but {
            return None;
        }
        if let Some(low) = node.below[LOW]
            && let Some(found) = self.find_below(low, range, but, want)
        {
            return Some(found);
        }
        if node.range.first() > range.last() {
            return None;
        }
        if node.range.overlaps(range) && want(node.range, &node.key) {
            return Some((node.range, &node.key));
        }
        self.find_below(node.below[HIGH]?, range, but, want)
    }

    /// The side of the node `at` on which a range that begins at `first` with `key` stands.
    fn side(&self, at: usize, first: u64, key: &K) -> Ordering {
        let node = &self.nodes[at];
        first.cmp(&node.range.first()).then_with(|| key.cmp(&node.key))
    }

    fn insert_below(&mut self, at: Option<usize>, new: usize) -> usize {
        let Some(at) = at else { return new };
        let Node { range, key, .. } = &self.nodes[new];
        let side = if self.side(at, range.first(), key).is_lt() { LOW } else { HIGH };
        let below = self.insert_below(self.nodes[at].below[side], new);
        self.nodes[at].below[side] = Some(below);
        self.balance(at)
    }

    fn remove_below(&mut self, at: Option<usize>, first: u64, key: &K) -> Option<usize> {
        let at = at?;
        let side = match self.side(at, first, key) {
            Ordering::Equal => return self.unlink(at),
            Ordering::Less => LOW,
            Ordering::Greater => HIGH,
        };
        let below = self.remove_below(self.nodes[at].below[side], first, key);
        self.nodes[at].below[side] = below;
        Some(self.balance(at))
    }

    /// Takes the node `at` out and gives the node that replaces it.
    fn unlink(&mut self, at: usize) -> Option<usize> {
        let Node { below: [low, high], .. } = self.nodes.remove(at);
        let (Some(_), Some(high)) = (low, high) else { return low.or(high) };
        let (next, rest) = self.split_lowest(high);
        self.nodes[next].below = [low, rest];
        Some(self.balance(next))
    }

    /// The lowest node of the subtree `at`, and the subtree without it.
    fn split_lowest(&mut self, at: usize) -> (usize, Option<usize>) {
        let [low, high] = self.nodes[at].below;
        let Some(low) = low else { return (at, high) };
        let (lowest, rest) = self.split_lowest(low);
        self.nodes[at].below[LOW] = rest;
        (lowest, Some(self.balance(at)))
    }

    /// Restores the balance at `at`, whose subtrees are balanced and differ by two at most, and
    /// gives the node that now stands there.
    fn balance(&mut self, at: usize) -> usize {
        let [low, high] = self.nodes[at].below;
        let (low, high) = (self.height(low), self.height(high));
        let heavy = match low.abs_diff(high) {
            0 | 1 => {
                self.measure(at);
                return at;
            }
            _ if low > high => LOW,
            _ => HIGH,
        };
        let Some(child) = self.nodes[at].below[heavy] else { return at };
        let [inner, outer] = [1 - heavy, heavy].map(|side| self.nodes[child].below[side]);
        if self.height(inner) > self.height(outer) {
            let raised = self.rotate(child, 1 - heavy);
            self.nodes[at].below[heavy] = Some(raised);
        }
        self.rotate(at, heavy)
    }

    /// Raises the child of `at` on `side` into its place and gives that child.
    fn rotate(&mut self, at: usize, side: usize) -> usize {
        let Some(child) = self.nodes[at].below[side] else { return at };
        self.nodes[at].below[side] = self.nodes[child].below[1 - side];
        self.nodes[child].below[1 - side] = Some(at);
        self.measure(at);
        self.measure(child);
        child
    }

    /// Sets height, reach and sole owner of `at` from what is below it.
    fn measure(&mut self, at: usize) {
        let mut reach = self.nodes[at].range.last();
        let mut sole = self.nodes[at].key.open();
        let mut height = 0;
        for below in self.nodes[at].below.into_iter().flatten() {
            let below = &self.nodes[below];
            reach = reach.max(below.reach);
            sole = sole.filter(|open| below.sole == Some(*open));
            height = height.max(below.height);
        }
        let node = &mut self.nodes[at];
        (node.reach, node.sole) = (reach, sole);
        node.height = height + 1;
    }

    fn height(&self, at: Option<usize>) -> u8 {
        at.map_or(0, |at| self.nodes[at].height)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;
    use proptest::prelude::*;

    /// The key of a range of no open, or of an open.
    impl Key for u8 {
        fn open(&self) -> Option<OpenId> {
            (!(*self).is_multiple_of(3)).then(|| OpenId(u64::from(*self % 3)))
        }
    }

    impl<K: Key> Intervals<K> {
        /// Checks order, balance, heights, reaches and sole owners; gives the height.
        fn check(&self, at: Option<usize>) -> u8 {
            let Some(at) = at else { return 0 };
            let node = &self.nodes[at];
            let heights = node.below.map(|below| self.check(below));
            assert!(heights[LOW].abs_diff(heights[HIGH]) <= 1);
            assert_eq!(node.height, heights[LOW].max(heights[HIGH]) + 1);
            let reaches = node.below.iter().flatten().map(|below| self.nodes[*below].reach);
            assert_eq!(node.reach, reaches.fold(node.range.last(), u64::max));
            let soles = node.below.iter().flatten().map(|below| self.nodes[*below].sole);
            let own = node.key.open();
            assert_eq!(node.sole, own.filter(|_| soles.clone().all(|sole| sole == own)));
            for (side, below) in node.below.iter().enumerate() {
                let Some(below) = below.map(|below| &self.nodes[below]) else { continue };
                let stands = self.side(at, below.range.first(), &below.key);
                assert_eq!(stands, if side == LOW { Ordering::Less } else { Ordering::Greater });
            }
            node.height
        }
    }

    proptest! {
        #[test]
        fn finds_what_a_list_finds(
            steps in prop::collection::vec((any::<bool>(), 0u64..60, 0u64..12, 0u8..4), 1..200),
            asked in (0u64..60, 0u64..12),
        ) {
            let (mut tree, mut list) = (Intervals::default(), Vec::new());
            for (insert, first, more, key) in steps {
                let at = list.iter().position(|(r, k): &(Range, u8)| (r.first(), *k) == (first, key));
                match (insert, at) {
                    (true, None) => {
                        let range = Range::between(first, first + more);
                        tree.insert(range, key);
                        list.push((range, key));
                    }
                    (false, Some(at)) => {
                        list.remove(at);
                        tree.remove(first, &key);
                    }
                    _ => {}
                }
                tree.check(tree.root);
            }
            list.sort_by_key(|(range, key)| (range.first(), *key));
            let asked = Range::between(asked.0, asked.0 + asked.1);
            let mut all = Vec::new();
            tree.find(asked, &mut |range, key| {
                all.push((range, *key));
                false
            });
            list.retain(|(range, _)| range.overlaps(asked));
            prop_assert_eq!(&all, &list);
            for open in [1, 2].map(OpenId) {
                let found = tree.find_but(asked, open).map(|(range, key)| (range, *key));
                let mut others = list.iter().filter(|(_, key)| key.open() != Some(open));
                prop_assert_eq!(found, others.next().copied());
            }
            let even = tree.find(asked, &mut |_, key| key % 2 == 0).map(|(range, key)| (range, *key));
            prop_assert_eq!(even, list.into_iter().find(|(_, key)| key % 2 == 0));
        }
    }

    /// The number of nodes that are looked at: each search compares every key that it meets.
    #[test]
    fn the_ranges_of_an_open_are_passed_over_all_at_once() {
        use core::cell::Cell;

        std::thread_local! {
            static LOOKED_AT: Cell<usize> = const { Cell::new(0) };
        }

        #[derive(PartialEq, Eq, PartialOrd, Ord)]
        struct Counted(u64);

        impl Key for Counted {
            fn open(&self) -> Option<OpenId> {
                LOOKED_AT.set(LOOKED_AT.get() + 1);
                Some(OpenId(self.0))
            }
        }

        let mut tree = Intervals::default();
        for at in 0..65_536 {
            tree.insert(Range::between(2 * at, 2 * at), Counted(1));
        }
        tree.insert(Range::between(1 << 20, 1 << 20), Counted(2));
        let looks = |range, open| {
            LOOKED_AT.set(0);
            let found = tree.find_but(range, OpenId(open)).map(|(range, _)| range.first());
            (found, LOOKED_AT.get())
        };
        let (found, looked_at) = looks(Range::ALL, 1);
        assert!(found == Some(1 << 20) && looked_at <= 32, "{found:?} after {looked_at}");
        let (found, looked_at) = looks(Range::between(0, 1 << 19), 1);
        assert!(found.is_none() && looked_at <= 32, "{found:?} after {looked_at}");
        assert_eq!(looks(Range::ALL, 2).0, Some(0));
    }

    #[test]
    fn removing_what_is_not_there_changes_nothing() {
        let mut tree = Intervals::default();
        tree.insert(Range::ALL, 1u8);
        tree.remove(0, &2);
        tree.remove(1, &1);
        assert!(tree.find(Range::ALL, &mut |_, _| true).is_some());
        tree.remove(0, &1);
        assert!(tree.find(Range::ALL, &mut |_, _| true).is_none());
    }
}
