//! An SMB client's next operations: random, but always ones that must succeed.

use super::super::choose::{
    a_file, below, directories, free_place, is_directory, pick, place_of_directory, taken_place,
};
use super::super::content::BLOCKS_MAX;
use super::super::op::DirEntry;
use super::super::tree::{Id, Tree};
use super::op::SmbOp;
use weir_core::rng::Rng;

/// Directories below a client's top.
const DIRECTORIES_MAX: usize = 4;
/// Files that a client has open at most.
pub(super) const OPENS_MAX: usize = 6;
/// Most WRITEs sent at once.
const BURST_MAX: u64 = 6;
/// Most blocks of one WRITE.
const WRITE_BLOCKS_MAX: u64 = 4;

/// The next operations, one after another; WRITEs that follow each other are sent at once. `open`
/// are the files that the client has open.
pub(super) fn choose(tree: &mut Tree, open: &[Id], rng: &mut Rng) -> Vec<SmbOp> {
    loop {
        let chosen = match rng.below(100) {
            0..34 => writes(tree, open, rng),
            34..42 => flush(tree, rng),
            42..44 => flush_directory(tree, rng),
            44..49 => size(tree, rng),
            49..61 => make(tree, open, rng),
            61..67 => open_one(tree, open, rng),
            67..72 => close(open, rng),
            72..74 => overwrite(tree, rng),
            74..83 => rename(tree, open, rng),
            83..86 => link(tree, rng),
            86..93 => delete(tree, open, rng),
            93..96 => locked(tree, open, rng),
            96..98 => mkdir(tree, rng),
            _ => rmdir(tree, rng),
        };
        if let Some(ops) = chosen.filter(|ops| !ops.is_empty()) {
            return ops;
        }
    }
}

fn writes(tree: &mut Tree, open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let mut burst: Vec<SmbOp> = Vec::new();
    for _ in 0..=rng.below(BURST_MAX) {
        let file = pick(rng, open.to_vec())?;
        let first = below(rng, u64::from(BLOCKS_MAX));
        let count = (below(rng, WRITE_BLOCKS_MAX) + 1).min(BLOCKS_MAX - first);
        let touches = burst.iter().any(|op| {
            matches!(op, SmbOp::Write { file: other, first: at, count: many, .. }
                if *other == file && first < at + many && *at < first + count)
        });
        if touches {
            continue;
        }
        let through = rng.below(6) == 0;
        let number = tree.content(file)?.next_write();
        burst.push(SmbOp::Write { file, first, count, number, through });
    }
    Some(burst)
}

fn flush(tree: &mut Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    Some(vec![SmbOp::Flush { file: a_file(tree, rng)? }])
}

fn flush_directory(tree: &Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    Some(vec![SmbOp::FlushDirectory { dir: pick(rng, directories(tree))? }])
}

fn size(tree: &mut Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let file = a_file(tree, rng)?;
    // Shorter more often than longer.
    let most = if rng.below(3) == 0 { BLOCKS_MAX } else { tree.content(file)?.blocks_max() };
    Some(vec![SmbOp::Size { file, blocks: below(rng, u64::from(most) + 1) }])
}

fn make(tree: &mut Tree, open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let at = free_place(tree, rng)?;
    let make = SmbOp::Make { at, id: tree.next_id(), through: rng.below(4) == 0 };
    let mut ops = room(open, rng);
    ops.push(make);
    Some(ops)
}

fn open_one(tree: &Tree, open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let file = a_file(tree, rng).filter(|file| !open.contains(file))?;
    let mut ops = room(open, rng);
    ops.push(SmbOp::Open { file, through: rng.below(4) == 0 });
    Some(ops)
}

/// Closes a file, if the client has as many open as it may.
fn room(open: &[Id], rng: &mut Rng) -> Vec<SmbOp> {
    if open.len() < OPENS_MAX { Vec::new() } else { close(open, rng).unwrap_or_default() }
}

fn close(open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    Some(vec![SmbOp::Close { file: pick(rng, open.to_vec())? }])
}

fn overwrite(tree: &Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    Some(vec![SmbOp::Overwrite { file: a_file(tree, rng)? }])
}

/// To a free name, or over a file, which must not be open.
fn rename(tree: &Tree, open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let from = taken_place(tree, rng, |kind| !is_directory(kind))?;
    let over = rng.below(2) == 0;
    let to = if over {
        taken_place(tree, rng, |kind| !is_directory(kind))?
    } else {
        free_place(tree, rng)?
    };
    let (moved, replaced) = (tree.find(&from), tree.find(&to));
    if from == to || moved == replaced {
        return None;
    }
    let mut ops = closed(replaced, open);
    ops.push(SmbOp::Rename { from, to });
    Some(ops)
}

fn link(tree: &Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let file = a_file(tree, rng)?;
    Some(vec![SmbOp::Link { file, at: free_place(tree, rng)? }])
}

fn delete(tree: &Tree, open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let at = taken_place(tree, rng, |kind| !is_directory(kind))?;
    let mut ops = closed(tree.find(&at), open);
    ops.push(SmbOp::Delete { at, on_close: rng.below(2) == 0 });
    Some(ops)
}

/// Closes a file if it is open.
fn closed(file: Option<Id>, open: &[Id]) -> Vec<SmbOp> {
    let file = file.filter(|file| open.contains(file));
    file.map(|file| SmbOp::Close { file }).into_iter().collect()
}

/// A write under a lock.
fn locked(tree: &mut Tree, open: &[Id], rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let file = pick(rng, open.to_vec())?;
    let first = below(rng, u64::from(BLOCKS_MAX));
    let number = tree.content(file)?.next_write();
    Some(vec![
        SmbOp::Lock { file, first, count: 1 },
        SmbOp::Write { file, first, count: 1, number, through: false },
        SmbOp::Unlock { file, first, count: 1 },
    ])
}

fn mkdir(tree: &mut Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    if directories(tree).len() > DIRECTORIES_MAX {
        return None;
    }
    let at = place_of_directory(rng);
    let is_free = tree.find(&at).is_none();
    is_free.then(|| vec![SmbOp::Mkdir { at, id: tree.next_id() }])
}

fn rmdir(tree: &Tree, rng: &mut Rng) -> Option<Vec<SmbOp>> {
    let at: DirEntry = taken_place(tree, rng, is_directory)?;
    let empty = tree.find(&at).is_some_and(|dir| tree.names(dir).next().is_none());
    empty.then(|| vec![SmbOp::Rmdir { at }])
}

#[cfg(test)]
mod tests {
    use super::super::super::op::OpReply;
    use super::super::super::tree::TOP;
    use super::*;
    use std::collections::BTreeSet;

    /// Notes an operation that succeeded. Fails for one that must not.
    fn carry_out(tree: &mut Tree, open: &mut Vec<Id>, op: &SmbOp) {
        match op {
            SmbOp::Make { id: file, .. } | SmbOp::Open { file, .. } => {
                assert!(!open.contains(file) && open.len() < OPENS_MAX);
                open.push(*file);
            }
            SmbOp::Close { file } => {
                assert!(open.contains(file));
                open.retain(|other| other != file);
            }
            SmbOp::Write { file, .. } | SmbOp::Lock { file, .. } | SmbOp::Unlock { file, .. } => {
                assert!(open.contains(file));
            }
            SmbOp::Delete { at, .. } | SmbOp::Rename { to: at, .. } => {
                assert!(!tree.find(at).is_some_and(|file| open.contains(&file)));
            }
            SmbOp::FlushDirectory { dir } => {
                assert!(*dir == TOP || !tree.paths(*dir).is_empty());
            }
            _ => {}
        }
        if let Some(change) = op.change() {
            tree.sent(&change);
            tree.done(&change, &OpReply::default(), None, false);
        }
    }

    #[test]
    fn every_operation_comes_up_and_none_that_must_fail() {
        let mut tree = Tree::new(Box::from(*b"top"), 1);
        let (mut rng, mut words, mut open) = (Rng::new(1), BTreeSet::new(), Vec::new());
        for _ in 0..20_000 {
            for op in choose(&mut tree, &open, &mut rng) {
                words.insert(op.word());
                carry_out(&mut tree, &mut open, &op);
            }
            assert!(tree.objects.len() < 70);
        }
        assert_eq!(words.len(), 18, "{words:?}");
    }
}
