//! The names that a power cut may leave. Over SMB, an answered change of names survives a power cut
//! only if a FLUSH or a request of a write-through open has covered it.
//!
//! Each path has a set of values, any of which is correct after a power cut. Each file with a
//! stable name has a set of paths, and must be found at one of them. A change that is sent adds to
//! both sets; a change that is made stable reduces the set of its path to one value.

use super::super::audit::{Compared, Observed, Seen};
use super::super::content::Content;
use super::super::op::{Op, Source};
use super::super::tree::{Handle, Id, Object, ObjectKind, TOP, Tree};
use std::collections::{BTreeMap, BTreeSet};

/// The value of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Value {
    Absent,
    Directory,
    File(Id),
}

/// The names of one client's tree.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The possible values of each path that was ever in use. All others are absent.
    values: BTreeMap<String, BTreeSet<Value>>,
    /// The possible paths of each file that has a stable name; `None` among them if it may be gone.
    places: BTreeMap<Id, BTreeSet<Option<String>>>,
    /// The contents of removed files that a power cut may bring back.
    gone: BTreeMap<Id, Content>,
}

impl Names {
    /// Records a change of the names in `tree` that is sent.
    pub(super) fn sent(&mut self, tree: &Tree, op: &Op) {
        match op {
            Op::Create { at, id, .. } => self.may(tree.path(at), Value::File(*id)),
            Op::Mkdir { at, .. } => self.may(tree.path(at), Value::Directory),
            Op::Link { object, at } => self.may_be_at(*object, tree.path(at)),
            Op::Rename { from, to } => {
                let (moved, replaced) = (tree.find(from), tree.find(to));
                self.may(tree.path(from), Value::Absent);
                self.may_be_removed(tree, replaced);
                if let Some(moved) = moved {
                    self.may_be_at(moved, tree.path(to));
                }
            }
            Op::Remove { at } => {
                self.may(tree.path(at), Value::Absent);
                self.may_be_removed(tree, tree.find(at));
            }
            Op::Rmdir { at } => self.may(tree.path(at), Value::Absent),
            _ => {}
        }
    }

    fn may(&mut self, path: String, value: Value) {
        let absent = || BTreeSet::from([Value::Absent]);
        self.values.entry(path).or_insert_with(absent).insert(value);
    }

    /// Adds a path at which a file may be found.
    fn may_be_at(&mut self, file: Id, path: String) {
        if let Some(places) = self.places.get_mut(&file) {
            places.insert(Some(path.clone()));
        }
        self.may(path, Value::File(file));
    }

    /// Records that a name of a file, which may be its last, is removed.
    fn may_be_removed(&mut self, tree: &Tree, file: Option<Id>) {
        let Some(file) = file else { return };
        if let Some(places) = self.places.get_mut(&file) {
            places.insert(None);
        }
        if let Some(ObjectKind::File(content)) = tree.objects.get(&file).map(|object| &object.kind)
        {
            self.gone.insert(file, content.clone());
        }
        let wanted: BTreeSet<_> = self.values.values().flatten().copied().collect();
        self.gone.retain(|id, _| *id == file || wanted.contains(&Value::File(*id)));
    }

    /// Records that the name `path` of a file in `tree` is stable.
    pub(super) fn stable(&mut self, tree: &Tree, file: Id, path: &str) {
        self.values.insert(path.to_owned(), BTreeSet::from([Value::File(file)]));
        self.places.insert(file, tree.paths(file).into_iter().map(Some).collect());
    }

    /// Records that the removal of a name is stable.
    pub(super) fn stable_removal(&mut self, path: &str) {
        self.values.insert(path.to_owned(), BTreeSet::from([Value::Absent]));
    }

    /// Records that the names in a directory of `tree`, and the name of the directory, are stable.
    pub(super) fn stable_directory(&mut self, tree: &Tree, dir: Id) {
        let own = tree.paths(dir).into_iter().next();
        let prefix = own.as_ref().map(|own| format!("{own}/")).unwrap_or_default();
        let known: BTreeMap<&str, Id> =
            tree.names(dir).map(|(name, id)| (name.as_str(), id)).collect();
        for (path, values) in &mut self.values {
            let Some(name) = path.strip_prefix(&prefix).filter(|name| !name.contains('/')) else {
                continue;
            };
            let value = known.get(name).map_or(Value::Absent, |id| value_of(tree, *id));
            *values = BTreeSet::from([value]);
        }
        for &id in known.values() {
            if let Value::File(file) = value_of(tree, id) {
                self.places.insert(file, tree.paths(file).into_iter().map(Some).collect());
            }
        }
        if let Some(own) = own {
            self.values.insert(own, BTreeSet::from([Value::Directory]));
        }
    }

    /// Records a power cut.
    pub(super) fn power_cut(&mut self) {
        self.gone.values_mut().for_each(Content::power_cut);
    }

    /// Compares what the server shows with what a power cut may leave.
    ///
    /// # Errors
    /// A sentence for each difference.
    pub(super) fn compare(
        &self,
        tree: &Tree,
        observed: &Observed,
        source: Source<'_>,
    ) -> Result<Compared, Vec<String>> {
        let (mut compared, mut wrong) = (Compared::default(), Vec::new());
        for (path, seen) in observed.all() {
            compared.names += 1;
            match self.fits(tree, &path, &seen, source) {
                Ok(blocks) => compared.blocks += blocks,
                Err(what) => wrong.push(what),
            }
        }
        for (path, values) in &self.values {
            let parent = path.rsplit_once('/').is_none_or(|(dir, _)| observed.at(dir).is_some());
            if parent && observed.at(path).is_none() && !values.contains(&Value::Absent) {
                wrong.push(format!("{path} is gone, and its name was stable"));
            }
        }
        for (file, places) in &self.places {
            let is_there = |place: &Option<String>| {
                let Some(path) = place else { return true };
                let seen = observed.at(path);
                seen.is_some_and(|seen| self.content(tree, *file, &seen, source).is_ok())
            };
            if !places.iter().any(is_there) {
                wrong.push(format!("file {file} is at none of {places:?}, and was flushed"));
            }
        }
        if wrong.is_empty() { Ok(compared) } else { Err(wrong) }
    }

    /// The number of blocks of the object at `path`, if a power cut may leave it there.
    fn fits(
        &self,
        tree: &Tree,
        path: &str,
        seen: &Seen<'_>,
        source: Source<'_>,
    ) -> Result<u64, String> {
        let values = self.values.get(path).ok_or_else(|| format!("{path} was never made"))?;
        if seen.is_directory {
            let may = values.contains(&Value::Directory);
            return if may { Ok(0) } else { Err(format!("{path} is a directory, not {values:?}")) };
        }
        let mut mistakes = vec![format!("{path} is a file, not {values:?}")];
        for value in values {
            let Value::File(file) = value else { continue };
            match self.content(tree, *file, seen, source) {
                Ok(blocks) => return Ok(blocks),
                Err(what) => mistakes.push(format!("file {file}: {what}")),
            }
        }
        Err(mistakes.join("; "))
    }

    fn content(
        &self,
        tree: &Tree,
        file: Id,
        seen: &Seen<'_>,
        source: Source<'_>,
    ) -> Result<u64, String> {
        let from = (source.run, source.payload);
        self.known(tree, file).compare(source.file_base + file, seen.size, seen.data, from)
    }

    /// Makes the tree that the server shows after a power cut. All of it is stable.
    pub(super) fn adopt(&mut self, tree: &Tree, observed: &Observed, source: Source<'_>) -> Tree {
        let mut found = Tree::new(Handle::from(tree.handle(TOP)), tree.next);
        let mut known = BTreeMap::new();
        // Directories come before what is in them.
        for (path, seen) in observed.all() {
            let id = match known.get(&seen.fileid) {
                Some(id) => *id,
                None => {
                    let (id, kind) = self.identify(tree, &path, &seen, &mut found, source);
                    let (handle, mode) = (Some(Handle::from(seen.handle)), Some(seen.mode));
                    found.objects.insert(id, Object { handle, mode, kind });
                    id
                }
            };
            known.insert(seen.fileid, id);
            found.name(&path, id);
        }
        *self = Self::default();
        for id in found.objects.keys() {
            for path in found.paths(*id) {
                self.values.insert(path, BTreeSet::from([value_of(&found, *id)]));
            }
            if let Value::File(file) = value_of(&found, *id) {
                self.places.insert(file, found.paths(file).into_iter().map(Some).collect());
            }
        }
        found
    }

    /// An object that was seen, and its number: a file with data is known by it.
    fn identify(
        &self,
        tree: &Tree,
        path: &str,
        seen: &Seen<'_>,
        found: &mut Tree,
        source: Source<'_>,
    ) -> (Id, ObjectKind) {
        if seen.is_directory {
            return (found.next_id(), ObjectKind::Directory(BTreeMap::new()));
        }
        let own = self.values.get(path).into_iter().flatten().find_map(|value| match value {
            Value::File(file) if seen.data.iter().any(|byte| *byte != 0) => {
                self.content(tree, *file, seen, source).is_ok().then_some(*file)
            }
            _ => None,
        });
        let (id, mut content) = match own {
            Some(file) => (file, self.known(tree, file)),
            None => (found.next_id(), Content::default()),
        };
        content.found(source.file_base + id, seen.data, (source.run, source.payload));
        (id, ObjectKind::File(content))
    }

    /// The possible content of a file. A file whose CREATE was not answered is empty.
    fn known(&self, tree: &Tree, file: Id) -> Content {
        match tree.objects.get(&file).map(|object| &object.kind) {
            Some(ObjectKind::File(content)) => content.clone(),
            _ => self.gone.get(&file).cloned().unwrap_or_default(),
        }
    }
}

fn value_of(tree: &Tree, id: Id) -> Value {
    match tree.objects.get(&id).map(|object| &object.kind) {
        Some(ObjectKind::Directory(_)) => Value::Directory,
        Some(_) => Value::File(id),
        None => Value::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::op::{DirEntry, How};
    use super::*;
    use weir_load::payload::Payload;

    fn at(name: &str) -> DirEntry {
        DirEntry { dir: TOP, name: name.to_owned() }
    }

    struct Bench {
        tree: Tree,
        names: Names,
        payload: Payload,
    }

    impl Bench {
        /// A tree with the files `a` (1) and `b` (2), of which the first is flushed.
        fn new() -> Self {
            let (tree, names) = (Tree::new(Box::from(*b"top"), 1), Names::default());
            let mut bench = Self { tree, names, payload: Payload::new() };
            for name in ["a", "b"] {
                let id = bench.tree.next_id();
                bench.change(&Op::Create { at: at(name), how: How::Guarded, id });
            }
            bench.names.stable(&bench.tree, 1, "a");
            bench
        }

        fn change(&mut self, op: &Op) {
            self.names.sent(&self.tree, op);
            self.tree.apply(op, None);
        }

        fn fits(&self, names: &[&str]) -> bool {
            let source = Source { run: 1, payload: &self.payload, file_base: 0 };
            self.names.compare(&self.tree, &Observed::of_empty_files(names), source).is_ok()
        }
    }

    #[test]
    fn a_flushed_file_has_its_name_and_no_other_needs_one() {
        let bench = Bench::new();
        assert!(bench.fits(&["a"]) && bench.fits(&["a", "b"]));
        assert!(!bench.fits(&["b"]) && !bench.fits(&[]) && !bench.fits(&["a", "c"]));
    }

    #[test]
    fn a_file_whose_making_was_not_answered_may_be_there_and_empty() {
        let mut bench = Bench::new();
        let id = bench.tree.next_id();
        let op = Op::Create { at: at("c"), how: How::Guarded, id };
        bench.names.sent(&bench.tree, &op);
        assert!(bench.fits(&["a"]) && bench.fits(&["a", "c"]));
    }

    #[test]
    fn a_later_rename_may_be_lost_and_the_next_flush_decides() {
        let mut bench = Bench::new();
        bench.change(&Op::Rename { from: at("a"), to: at("c") });
        assert!(bench.fits(&["a"]) && bench.fits(&["c"]));
        assert!(!bench.fits(&["b"]), "a rename loses no file");
        bench.names.stable(&bench.tree, 1, "c");
        assert!(!bench.fits(&["a"]) && bench.fits(&["c"]));
        bench.names.stable_removal("a");
        assert!(!bench.fits(&["a", "c"]));
    }

    #[test]
    fn a_file_that_was_removed_or_replaced_may_be_gone_until_its_directory_is_flushed() {
        let mut bench = Bench::new();
        bench.change(&Op::Rename { from: at("b"), to: at("a") });
        assert!(bench.fits(&["a"]) && bench.fits(&["a", "b"]) && !bench.fits(&["b"]));
        let mut bench = Bench::new();
        bench.change(&Op::Remove { at: at("a") });
        assert!(bench.fits(&[]) && bench.fits(&["a"]));
        bench.names.stable_directory(&bench.tree, TOP);
        assert!(bench.fits(&["b"]) && !bench.fits(&[]) && !bench.fits(&["a", "b"]));
    }

    #[test]
    fn a_tree_that_was_found_is_stable() {
        let mut bench = Bench::new();
        bench.change(&Op::Link { object: 1, at: at("c") });
        let source = Source { run: 1, payload: &bench.payload, file_base: 0 };
        let observed = Observed::of_empty_files(&["a", "c"]);
        bench.tree = bench.names.adopt(&bench.tree, &observed, source);
        assert!(bench.fits(&["a", "c"]) && !bench.fits(&["a"]) && !bench.fits(&["a", "b", "c"]));
        assert_eq!(bench.tree.names(TOP).count(), 2);
    }
}
