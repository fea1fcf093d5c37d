//! A doubly linked list whose nodes live in a slab, so that every step is O(1) and a node can
//! leave from the middle. Not a container: the slab owns the nodes.

use slab::Slab;

const NONE: usize = usize::MAX;

/// A node's neighbours, kept in the node.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    previous: usize,
    next: usize,
}

impl Link {
    /// In no list.
    pub(crate) const LOOSE: Self = Self { previous: NONE, next: NONE };
}

/// What can be in a list.
pub(crate) trait Node {
    fn link(&mut self) -> &mut Link;
}

/// The two ends. A node is in at most one list at a time.
#[derive(Debug)]
pub(crate) struct List {
    front: usize,
    back: usize,
}

impl List {
    pub(crate) const EMPTY: Self = Self { front: NONE, back: NONE };

    pub(crate) fn front(&self) -> Option<usize> {
        (self.front != NONE).then_some(self.front)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.front == NONE
    }

    /// Appends the loose node `at`.
    pub(crate) fn push_back<N: Node>(&mut self, nodes: &mut Slab<N>, at: usize) {
        *nodes[at].link() = Link { previous: self.back, next: NONE };
        match self.back {
            NONE => self.front = at,
            last => nodes[last].link().next = at,
        }
        self.back = at;
    }

    /// Takes the node `at` of this list out.
    pub(crate) fn unlink<N: Node>(&mut self, nodes: &mut Slab<N>, at: usize) {
        let Link { previous, next } = core::mem::replace(nodes[at].link(), Link::LOOSE);
        match previous {
            NONE => self.front = next,
            node => nodes[node].link().next = next,
        }
        match next {
            NONE => self.back = previous,
            node => nodes[node].link().previous = previous,
        }
    }

    /// Sends the first node to the back.
    pub(crate) fn rotate<N: Node>(&mut self, nodes: &mut Slab<N>) {
        if let Some(first) = self.front() {
            self.unlink(nodes, first);
            self.push_back(nodes, first);
        }
    }
}
