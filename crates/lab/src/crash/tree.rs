//! One client's knowledge of its part of the volume: names, handles, modes and contents.

use super::audit::Observed;
use super::content::Content;
use super::op::{DirEntry, Op, OpReply, Source};
use std::collections::BTreeMap;
use weir_nfs::v3::wire::StableHow;

/// Numbers an object of one client; never used twice.
pub(super) type Id = u32;
/// A file handle as the server gave it.
pub(super) type Handle = Box<[u8]>;

/// The client's top directory.
pub(super) const TOP: Id = 0;
/// Handles of removed objects that are kept, to see that they stay removed.
const GONE_KEPT: usize = 8;

/// An object.
#[derive(Clone, Debug)]
pub(super) struct Object {
    /// Unknown only where making it is in doubt.
    pub(super) handle: Option<Handle>,
    /// Permission bits; unknown where it never was set.
    pub(super) mode: Option<u32>,
    pub(super) kind: ObjectKind,
}

/// The kind of an object.
#[derive(Clone, Debug)]
pub(super) enum ObjectKind {
    Directory(BTreeMap<String, Id>),
    File(Content),
    Symlink(String),
}

/// The tree of one client.
#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) objects: BTreeMap<Id, Object>,
    /// Handles of the latest removed objects, newest last.
    pub(super) gone: Vec<Handle>,
    pub(super) next: Id,
}

impl Tree {
    /// An empty directory; numbers of objects begin at `next`, after [`TOP`].
    pub(super) fn new(top: Handle, next: Id) -> Self {
        let kind = ObjectKind::Directory(BTreeMap::new());
        let objects = BTreeMap::from([(TOP, Object { handle: Some(top), mode: None, kind })]);
        Self { objects, gone: Vec::new(), next }
    }

    /// A number for an object to be made.
    pub(super) const fn next_id(&mut self) -> Id {
        let id = self.next;
        self.next += 1;
        id
    }

    pub(super) fn handle(&self, id: Id) -> &[u8] {
        self.objects.get(&id).and_then(|object| object.handle.as_deref()).unwrap_or(&[])
    }

    pub(super) fn content(&mut self, id: Id) -> Option<&mut Content> {
        match &mut self.objects.get_mut(&id)?.kind {
            ObjectKind::File(content) => Some(content),
            _ => None,
        }
    }

    /// The names in a directory; none if it is none.
    pub(super) fn names(&self, dir: Id) -> impl Iterator<Item = (&String, Id)> {
        let names = match self.objects.get(&dir).map(|object| &object.kind) {
            Some(ObjectKind::Directory(names)) => Some(names),
            _ => None,
        };
        names.into_iter().flatten().map(|(name, id)| (name, *id))
    }

    /// The object that a name leads to.
    pub(super) fn find(&self, place: &DirEntry) -> Option<Id> {
        self.names(place.dir).find(|(name, _)| **name == place.name).map(|(_, id)| id)
    }

    /// The path of a name, from the top directory on.
    pub(super) fn path(&self, at: &DirEntry) -> String {
        let dir = self.paths(at.dir).into_iter().next();
        dir.map_or_else(|| at.name.clone(), |dir| format!("{dir}/{}", at.name))
    }

    /// The paths of an object; none of the top directory.
    pub(super) fn paths(&self, id: Id) -> Vec<String> {
        let places = self.objects.keys().flat_map(|&dir| {
            let names = self.names(dir).filter(|(_, to)| *to == id);
            names.map(move |(name, _)| DirEntry { dir, name: name.clone() })
        });
        places.map(|at| self.path(&at)).collect()
    }

    /// Takes over what a look that found nothing wrong has shown: handles, and which of several
    /// contents is there.
    pub(super) fn learn(&mut self, observed: &Observed, source: Source<'_>) {
        let paths: Vec<_> =
            self.objects.keys().filter_map(|&id| Some((id, self.paths(id).pop()?))).collect();
        for (id, path) in paths {
            let (Some(seen), Some(object)) = (observed.at(&path), self.objects.get_mut(&id)) else {
                continue;
            };
            object.handle.get_or_insert_with(|| seen.handle.into());
            if let ObjectKind::File(content) = &mut object.kind {
                content.seen(source.file_base + id, seen.data, (source.run, source.payload));
            }
        }
    }

    /// Gives an object the name `path`, the directory of which is there.
    pub(super) fn name(&mut self, path: &str, id: Id) {
        let (dir, name) = match path.rsplit_once('/') {
            Some((dir, name)) => {
                let named = |other: &&Id| self.paths(**other).iter().any(|path| path == dir);
                (self.objects.keys().find(named).copied(), name)
            }
            None => (Some(TOP), path),
        };
        if let Some(dir) = dir {
            self.put(&DirEntry { dir, name: name.to_owned() }, id);
        }
    }

    /// The number of names of an object.
    pub(super) fn links(&self, id: Id) -> usize {
        self.objects.keys().map(|&dir| self.names(dir).filter(|(_, to)| *to == id).count()).sum()
    }

    /// Notes that `op` is sent: its changes of contents are in doubt from now on.
    pub(super) fn sent(&mut self, op: &Op) {
        match *op {
            Op::Write { file, first, count, number, .. } => {
                if let Some(content) = self.content(file) {
                    content.write_sent(first, count, number);
                }
            }
            Op::Size { file, blocks } => {
                if let Some(content) = self.content(file) {
                    content.size_sent(blocks);
                }
            }
            _ => {}
        }
    }

    /// Notes that `op` was answered with success. A new size survives a power cut if
    /// `durable_names`. Gives what of the file of a COMMIT must be sent again.
    pub(super) fn done(
        &mut self,
        op: &Op,
        answer: &OpReply,
        handle: Option<Handle>,
        durable_names: bool,
    ) -> Vec<(u32, u32)> {
        match *op {
            Op::Write { file, first, count, number, .. } => {
                let stable = answer.committed.is_some_and(|(how, _)| how != StableHow::Unstable);
                let unstable = (!stable).then_some(answer.verifier);
                if let Some(content) = self.content(file) {
                    content.write_done((first, count), number, unstable);
                }
            }
            Op::Size { file, blocks } => {
                if let Some(content) = self.content(file) {
                    content.size_done(blocks, durable_names);
                }
            }
            Op::Commit { file } => {
                let committed = |content: &mut Content| content.committed(answer.verifier);
                return self.content(file).map(committed).unwrap_or_default();
            }
            _ => self.apply(op, handle),
        }
        Vec::new()
    }

    /// The machine lost its power.
    pub(super) fn power_cut(&mut self) {
        for object in self.objects.values_mut() {
            if let ObjectKind::File(content) = &mut object.kind {
                content.power_cut();
            }
        }
    }

    /// Blocks with data in all files, if that is certain.
    pub(super) fn used_blocks(&self) -> Option<u64> {
        let used = |object: &Object| match &object.kind {
            ObjectKind::File(content) => content.used_blocks(),
            _ => Some(0),
        };
        self.objects.values().map(used).sum()
    }

    /// Carries out a change of names or modes. Writes, sizes and commits change contents, which
    /// keep doubt themselves.
    pub(super) fn apply(&mut self, op: &Op, handle: Option<Handle>) {
        match op {
            Op::Create { at, id, .. } => {
                self.make(at, *id, handle, op.mode(), ObjectKind::File(Content::default()));
            }
            Op::Mkdir { at, id } => {
                self.make(at, *id, handle, op.mode(), ObjectKind::Directory(BTreeMap::new()));
            }
            Op::Symlink { at, id, target } => {
                self.make(at, *id, handle, None, ObjectKind::Symlink(target.clone()));
            }
            Op::Link { object, at } => self.put(at, *object),
            Op::Rename { from, to } => {
                let (moved, replaced) = (self.find(from), self.find(to));
                let Some(moved) = moved.filter(|_| moved != replaced) else { return };
                self.take(to);
                self.take(from);
                self.put(to, moved);
                self.forget_unnamed(replaced);
            }
            Op::Remove { at } | Op::Rmdir { at } => {
                let removed = self.take(at);
                self.forget_unnamed(removed);
            }
            Op::Mode { object, mode } => {
                if let Some(object) = self.objects.get_mut(object) {
                    object.mode = Some(*mode);
                }
            }
            Op::Write { .. } | Op::Commit { .. } | Op::Size { .. } => {}
        }
    }

    fn make(
        &mut self,
        at: &DirEntry,
        id: Id,
        handle: Option<Handle>,
        mode: Option<u32>,
        kind: ObjectKind,
    ) {
        self.objects.insert(id, Object { handle, mode, kind });
        self.put(at, id);
    }

    fn put(&mut self, at: &DirEntry, id: Id) {
        if let Some(Object { kind: ObjectKind::Directory(names), .. }) =
            self.objects.get_mut(&at.dir)
        {
            names.insert(at.name.clone(), id);
        }
    }

    fn take(&mut self, at: &DirEntry) -> Option<Id> {
        match self.objects.get_mut(&at.dir) {
            Some(Object { kind: ObjectKind::Directory(names), .. }) => names.remove(&at.name),
            _ => None,
        }
    }

    fn forget_unnamed(&mut self, id: Option<Id>) {
        let Some(id) = id.filter(|&id| self.links(id) == 0) else { return };
        if let Some(handle) = self.objects.remove(&id).and_then(|object| object.handle) {
            self.gone.push(handle);
            if self.gone.len() > GONE_KEPT {
                self.gone.remove(0);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::crash::op::How;

    fn at(dir: Id, name: &str) -> DirEntry {
        DirEntry { dir, name: name.to_owned() }
    }

    fn tree_with(names: &[&str]) -> Tree {
        let mut tree = Tree::new(Box::from(*b"top"), 1);
        for name in names {
            let id = tree.next_id();
            let op = Op::Create { at: at(TOP, name), how: How::Guarded, id };
            tree.apply(&op, Some(name.as_bytes().into()));
        }
        tree
    }

    #[test]
    fn a_rename_over_a_file_leaves_one_and_removes_the_other_for_good() {
        let mut tree = tree_with(&["a", "b"]);
        tree.apply(&Op::Rename { from: at(TOP, "a"), to: at(TOP, "b") }, None);
        assert_eq!(tree.names(TOP).collect::<Vec<_>>(), [(&"b".to_owned(), 1)]);
        assert_eq!(tree.gone, [Box::from(*b"b")]);
        assert!(!tree.objects.contains_key(&2));
    }

    #[test]
    fn an_object_has_a_path_for_each_of_its_names() {
        let mut tree = tree_with(&["a"]);
        let id = tree.next_id();
        tree.apply(&Op::Mkdir { at: at(TOP, "d"), id }, None);
        tree.apply(&Op::Link { object: 1, at: at(id, "b") }, None);
        assert_eq!(tree.paths(1), ["a", "d/b"]);
        assert_eq!((tree.path(&at(id, "b")), tree.path(&at(TOP, "x"))), ("d/b".into(), "x".into()));
        assert!(tree.paths(TOP).is_empty());
    }

    #[test]
    fn of_two_names_of_one_object_a_rename_leaves_both_and_a_remove_one() {
        let mut tree = tree_with(&["a"]);
        tree.apply(&Op::Link { object: 1, at: at(TOP, "b") }, None);
        tree.apply(&Op::Rename { from: at(TOP, "a"), to: at(TOP, "b") }, None);
        assert_eq!(tree.links(1), 2);
        tree.apply(&Op::Remove { at: at(TOP, "a") }, None);
        assert!(tree.gone.is_empty() && tree.find(&at(TOP, "b")) == Some(1));
        tree.apply(&Op::Remove { at: at(TOP, "b") }, None);
        assert_eq!(tree.gone.len(), 1);
    }
}
