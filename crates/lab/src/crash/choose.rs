//! A client's next operation: random, but always one that must succeed.

use super::content::BLOCKS_MAX;
use super::op::{DirEntry, How, Op};
use super::tree::{Id, ObjectKind, TOP, Tree};
use weir_core::rng::Rng;
use weir_nfs::v3::wire::StableHow;

/// Directories below a client's top.
const DIRECTORIES_MAX: usize = 4;
/// Names that a directory may have.
const NAMES_MAX: u64 = 12;
/// Most WRITEs sent at once.
const BURST_MAX: u64 = 6;
/// Most blocks of one WRITE.
const WRITE_BLOCKS_MAX: u64 = 4;

/// The next operations, to be sent at once: several WRITEs that do not touch each other, or one
/// operation of any other sort.
pub(super) fn choose(tree: &mut Tree, rng: &mut Rng) -> Vec<Op> {
    loop {
        let one = match rng.below(100) {
            0..38 => {
                let burst = writes(tree, rng);
                if burst.is_empty() { None } else { return burst }
            }
            38..46 => commit(tree, rng),
            46..51 => size(tree, rng),
            51..55 => mode(tree, rng),
            55..70 => create(tree, rng),
            70..72 => mkdir(tree, rng),
            72..74 => symlink(tree, rng),
            74..79 => link(tree, rng),
            79..89 => rename(tree, rng),
            89..98 => remove(tree, rng),
            _ => rmdir(tree, rng),
        };
        if let Some(op) = one {
            return vec![op];
        }
    }
}

fn writes(tree: &mut Tree, rng: &mut Rng) -> Vec<Op> {
    let mut burst: Vec<Op> = Vec::new();
    for _ in 0..=rng.below(BURST_MAX) {
        let Some(file) = a_file(tree, rng) else { break };
        let first = below(rng, u64::from(BLOCKS_MAX));
        let count = (below(rng, WRITE_BLOCKS_MAX) + 1).min(BLOCKS_MAX - first);
        let touches = burst.iter().any(|op| {
            matches!(op, Op::Write { file: other, first: at, count: many, .. }
                if *other == file && first < at + many && *at < first + count)
        });
        if touches {
            continue;
        }
        let stable = match rng.below(10) {
            0 => StableHow::FileSync,
            1 => StableHow::DataSync,
            _ => StableHow::Unstable,
        };
        let Some(content) = tree.content(file) else { break };
        let number = content.next_write();
        burst.push(Op::Write { file, first, count, number, stable });
    }
    burst
}

fn commit(tree: &mut Tree, rng: &mut Rng) -> Option<Op> {
    let file = a_file(tree, rng)?;
    tree.content(file)?.is_uncommitted().then_some(Op::Commit { file })
}

fn size(tree: &mut Tree, rng: &mut Rng) -> Option<Op> {
    let file = a_file(tree, rng)?;
    // Shorter more often than longer.
    let most = if rng.below(3) == 0 { BLOCKS_MAX } else { tree.content(file)?.blocks_max() };
    Some(Op::Size { file, blocks: below(rng, u64::from(most) + 1) })
}

fn mode(tree: &Tree, rng: &mut Rng) -> Option<Op> {
    let candidates = tree
        .objects
        .iter()
        .filter(|(id, object)| **id != TOP && !matches!(object.kind, ObjectKind::Symlink(_)));
    let object = pick(rng, candidates.map(|(id, _)| *id).collect())?;
    Some(Op::Mode { object, mode: 0o600 | below(rng, 0o100) })
}

fn create(tree: &mut Tree, rng: &mut Rng) -> Option<Op> {
    let at = free_place(tree, rng)?;
    let how = match rng.below(3) {
        0 => How::Unchecked,
        1 => How::Guarded,
        _ => How::Exclusive(rng.next().to_be_bytes()),
    };
    Some(Op::Create { at, how, id: tree.next_id() })
}

fn mkdir(tree: &mut Tree, rng: &mut Rng) -> Option<Op> {
    if directories(tree).len() > DIRECTORIES_MAX {
        return None;
    }
    let at = place_of_directory(rng);
    if tree.find(&at).is_some() { None } else { Some(Op::Mkdir { at, id: tree.next_id() }) }
}

fn symlink(tree: &mut Tree, rng: &mut Rng) -> Option<Op> {
    let at = free_place(tree, rng)?;
    let target = format!("../target-{}", rng.next());
    Some(Op::Symlink { at, id: tree.next_id(), target })
}

fn link(tree: &Tree, rng: &mut Rng) -> Option<Op> {
    let object = a_file(tree, rng)?;
    Some(Op::Link { object, at: free_place(tree, rng)? })
}

fn rename(tree: &Tree, rng: &mut Rng) -> Option<Op> {
    if rng.below(8) == 0 {
        return rename_directory(tree, rng);
    }
    let from = taken_place(tree, rng, |kind| !is_directory(kind))?;
    let over = rng.below(2) == 0;
    let to = if over {
        taken_place(tree, rng, |kind| !is_directory(kind))?
    } else {
        free_place(tree, rng)?
    };
    (from != to).then_some(Op::Rename { from, to })
}

/// To a free name, or over an empty directory.
fn rename_directory(tree: &Tree, rng: &mut Rng) -> Option<Op> {
    let from = taken_place(tree, rng, is_directory)?;
    let to = place_of_directory(rng);
    let possible = match tree.find(&to) {
        None => true,
        Some(other) => tree.names(other).next().is_none(),
    };
    (from != to && possible).then_some(Op::Rename { from, to })
}

fn remove(tree: &Tree, rng: &mut Rng) -> Option<Op> {
    Some(Op::Remove { at: taken_place(tree, rng, |kind| !is_directory(kind))? })
}

fn rmdir(tree: &Tree, rng: &mut Rng) -> Option<Op> {
    let at = taken_place(tree, rng, is_directory)?;
    let empty = tree.find(&at).is_some_and(|dir| tree.names(dir).next().is_none());
    empty.then_some(Op::Rmdir { at })
}

/// A place for a directory, which may be taken.
pub(super) fn place_of_directory(rng: &mut Rng) -> DirEntry {
    DirEntry { dir: TOP, name: format!("dir-{}", rng.below(100)) }
}

pub(super) fn directories(tree: &Tree) -> Vec<Id> {
    let all = tree.objects.iter().filter(|(_, object)| is_directory(&object.kind));
    all.map(|(id, _)| *id).collect()
}

pub(super) const fn is_directory(kind: &ObjectKind) -> bool {
    matches!(kind, ObjectKind::Directory(_))
}

pub(super) fn a_file(tree: &Tree, rng: &mut Rng) -> Option<Id> {
    let files =
        tree.objects.iter().filter(|(_, object)| matches!(object.kind, ObjectKind::File(_)));
    pick(rng, files.map(|(id, _)| *id).collect())
}

pub(super) fn free_place(tree: &Tree, rng: &mut Rng) -> Option<DirEntry> {
    let dir = pick(rng, directories(tree))?;
    let place = DirEntry { dir, name: format!("name-{}", rng.below(NAMES_MAX)) };
    tree.find(&place).is_none().then_some(place)
}

pub(super) fn taken_place(
    tree: &Tree,
    rng: &mut Rng,
    wanted: impl Fn(&ObjectKind) -> bool,
) -> Option<DirEntry> {
    let mut places = Vec::new();
    for dir in directories(tree) {
        let right = tree
            .names(dir)
            .filter(|(_, id)| tree.objects.get(id).is_some_and(|object| wanted(&object.kind)));
        places.extend(right.map(|(name, _)| DirEntry { dir, name: name.clone() }));
    }
    pick(rng, places)
}

pub(super) fn pick<T>(rng: &mut Rng, mut from: Vec<T>) -> Option<T> {
    if from.is_empty() {
        return None;
    }
    let at = rng.below(from.len() as u64);
    Some(from.swap_remove(usize::try_from(at).unwrap_or(0)))
}

pub(super) fn below(rng: &mut Rng, bound: u64) -> u32 {
    u32::try_from(rng.below(bound)).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_operation_comes_up_and_the_tree_stays_small() {
        let mut tree = Tree::new(Box::from(*b"top"), 1);
        let (mut rng, mut words) = (Rng::new(1), BTreeSet::new());
        for _ in 0..20_000 {
            for op in choose(&mut tree, &mut rng) {
                words.insert(op.word());
                match &op {
                    Op::Write { file, first, count, number, .. } => {
                        let content = tree.content(*file).unwrap();
                        content.write_sent(*first, *count, *number);
                        content.write_done((*first, *count), *number, Some([0; 8]));
                    }
                    Op::Size { file, blocks } => {
                        tree.content(*file).unwrap().size_done(*blocks, true);
                    }
                    Op::Commit { file } => {
                        tree.content(*file).unwrap().committed([0; 8]);
                    }
                    _ => tree.apply(&op, Some(Box::from(*b"handle"))),
                }
            }
            assert!(tree.objects.len() < 70);
        }
        assert_eq!(words.len(), 14, "{words:?}");
    }
}
