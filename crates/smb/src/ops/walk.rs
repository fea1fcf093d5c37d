//! From a path to an object: the names one after another from the top directory on, exactly as they
//! are spelled or else without regard to case, and through symbolic links.
//!
//! The user must be allowed to search each directory. A link with a relative target is followed as
//! long as it stays in the volume; an absolute target means a place on the client's side, which
//! only NFS clients have, so here it leads nowhere. Not here: what may be done with the object.

use super::access::allowed;
use super::error::status;
use crate::host::{Host, ObjectOf};
use crate::limits::{LINKS_MAX, LOOKUPS_MAX};
use crate::names::Path;
use crate::wire::Status;
use alloc::boxed::Box;
use alloc::vec::Vec;
use core::iter::Peekable;
use weir_core::{Access, Attr, FileKind, FsError, Name, Store};

/// A name in a directory, whether there is such an object or not.
#[derive(Clone, Debug)]
pub(super) struct At<O> {
    /// The directory.
    pub(super) dir: O,
    /// The directory's attributes.
    pub(super) attr: Attr,
    /// The name: the directory's spelling, or the client's if there is no such object.
    pub(super) name: Box<[u8]>,
}

/// The object that a path leads to.
#[derive(Clone, Debug)]
pub(super) struct Found<O> {
    /// The object.
    pub(super) object: O,
    /// Its attributes.
    pub(super) attr: Attr,
    /// The place of the object; none for the top directory.
    pub(super) at: Option<At<O>>,
    /// The path to the object from the top directory on, with `/` between the names.
    pub(super) path: Vec<u8>,
}

/// A place where there is no object.
#[derive(Clone, Debug)]
pub(super) struct Missing<O> {
    /// The place.
    pub(super) at: At<O>,
    /// The path to it from the top directory on, with `/` between the names.
    pub(super) path: Vec<u8>,
}

/// The end of a path.
#[derive(Clone, Debug)]
pub(super) enum Walked<O> {
    /// There is an object.
    Found(Found<O>),
    /// Everything is there but the last name.
    Missing(Missing<O>),
}

/// The treatment of a symbolic link as the last name of a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Last {
    /// It is followed.
    Follow,
    /// It is the object.
    Stay,
}

/// Goes along `path`.
///
/// # Errors
/// [`Status::OBJECT_PATH_NOT_FOUND`] if it ends before its last name,
/// [`Status::OBJECT_NAME_NOT_FOUND`] if its last name is a link that leads nowhere,
/// [`Status::ACCESS_DENIED`] if a directory may not be searched.
pub(super) async fn walk<H: Host>(
    host: &H,
    path: &Path,
    last: Last,
) -> Result<Walked<ObjectOf<H>>, Status> {
    Walker::at_root(host, path.components()).await?.run(last).await
}

/// Goes along `path` to the directory that its last name is in, and does not look that one up.
/// Nothing for the top directory, which has no name.
///
/// # Errors
/// As [`walk`]; [`Status::OBJECT_PATH_NOT_FOUND`] also if the last name is not in a directory.
pub(super) async fn walk_parent<H: Host>(
    host: &H,
    path: &Path,
) -> Result<Option<Missing<ObjectOf<H>>>, Status> {
    let Some((directory, name)) = path.split_last() else { return Ok(None) };
    let walked = Walker::at_root(host, directory).await?.run(Last::Follow).await?;
    match walked {
        Walked::Found(Found { object, attr, path, .. }) if attr.kind == FileKind::Directory => {
            let at = At { dir: object, attr, name: name.as_bytes().into() };
            Ok(Some(Missing { path: joined(path, name.as_bytes()), at }))
        }
        _ => Err(Status::OBJECT_PATH_NOT_FOUND),
    }
}

/// A walk under way: an object, and the names that follow.
struct Walker<'h, H: Host, I: Iterator> {
    host: &'h H,
    object: ObjectOf<H>,
    attr: Attr,
    /// The object's place; none at the top, and none after `..`.
    at: Option<At<ObjectOf<H>>>,
    path: Vec<u8>,
    names: Names<I>,
    links: u32,
    lookups: u32,
}

impl<'h, 'p, H: Host, I: Iterator<Item = Name<'p>>> Walker<'h, H, I> {
    async fn at_root(host: &'h H, names: I) -> Result<Self, Status> {
        let object = host.store().root();
        let attr = host.store().attr(&object).await.map_err(status)?;
        let names = Names::new(names);
        Ok(Self { host, object, attr, at: None, path: Vec::new(), names, links: 0, lookups: 0 })
    }

    async fn run(mut self, last: Last) -> Result<Walked<ObjectOf<H>>, Status> {
        let mut name = Vec::new();
        while self.names.next_into(&mut name) {
            self.lookups = self.lookups.saturating_add(1);
            if self.lookups > LOOKUPS_MAX || self.attr.kind != FileKind::Directory {
                return Err(self.lost());
            }
            let name = Name::new(&name).map_err(|_| self.lost())?;
            if name.is_dot_dot() {
                self.up().await?;
            } else if let Some(missing) = self.down(name, last).await? {
                return Ok(Walked::Missing(missing));
            }
        }
        if self.at.is_none() && !self.path.is_empty() {
            self.at = Some(self.place().await?);
        }
        let Self { object, attr, at, path, .. } = self;
        Ok(Walked::Found(Found { object, attr, at, path }))
    }

    /// Goes to an object of the directory, or ends where there is none.
    async fn down(
        &mut self,
        name: Name<'_>,
        last: Last,
    ) -> Result<Option<Missing<ObjectOf<H>>>, Status> {
        let (store, dir) = (self.host.store(), self.object.clone());
        let cred = &self.host.user().credentials;
        if !allowed(store, &dir, &self.attr, cred, Access::EXECUTE).await.map_err(status)? {
            return Err(Status::ACCESS_DENIED);
        }
        let found = match store.lookup_folded(&dir, name).await {
            Ok(found) => found,
            Err(FsError::NotFound) if !self.names.more => {
                let at = At { dir, attr: self.attr, name: name.as_bytes().into() };
                let path = joined(core::mem::take(&mut self.path), name.as_bytes());
                return Ok(Some(Missing { at, path }));
            }
            Err(FsError::NotFound | FsError::NotDirectory | FsError::Stale) => {
                return Err(self.lost());
            }
            Err(error) => return Err(status(error)),
        };
        let link = found.attr.kind == FileKind::Symlink;
        if link && (last == Last::Follow || self.names.more) {
            self.follow(&found.object).await?;
            return Ok(None);
        }
        self.path = joined(core::mem::take(&mut self.path), &found.name);
        self.at = Some(At { dir, attr: self.attr, name: found.name });
        (self.object, self.attr) = (found.object, found.attr);
        Ok(None)
    }

    /// Goes on with the target of a link in this directory.
    async fn follow(&mut self, link: &ObjectOf<H>) -> Result<(), Status> {
        let target = self.host.store().read_link(link).await.map_err(status)?;
        self.links = self.links.saturating_add(1);
        if self.links > LINKS_MAX || target.starts_with(b"/") {
            return Err(lost(self.names.path_goes_on));
        }
        self.names.targets.push((target, 0));
        Ok(())
    }

    /// Goes to the parent, which only the target of a link can ask for.
    async fn up(&mut self) -> Result<(), Status> {
        if self.path.is_empty() {
            return Err(self.lost());
        }
        let up = At { name: Box::default(), ..self.place().await? };
        (self.object, self.attr, self.at) = (up.dir, up.attr, None);
        let end = self.path.iter().rposition(|byte| *byte == b'/').unwrap_or(0);
        self.path.truncate(end);
        Ok(())
    }

    /// The place of the directory that was reached.
    async fn place(&self) -> Result<At<ObjectOf<H>>, Status> {
        let parent = Name::new(b"..").map_err(status)?;
        let (dir, attr) =
            self.host.store().lookup(&self.object, parent).await.map_err(|_| self.lost())?;
        let name = self.path.rsplit(|byte| *byte == b'/').next().unwrap_or_default().into();
        Ok(At { dir, attr, name })
    }

    /// The status of a path that ends before the current name.
    fn lost(&self) -> Status {
        lost(self.names.of_path || self.names.path_goes_on)
    }
}

/// The status of a path that leads nowhere, before its last name or at it. The names in the target
/// of a link count as the name of the link.
const fn lost(before_last: bool) -> Status {
    if before_last { Status::OBJECT_PATH_NOT_FOUND } else { Status::OBJECT_NAME_NOT_FOUND }
}

/// The names still to come: those of the targets of links first, and then those of the path.
struct Names<I: Iterator> {
    path: Peekable<I>,
    /// Targets, the innermost last, each with the position that was reached in it.
    targets: Vec<(Vec<u8>, usize)>,
    /// Was the current name one of the path?
    of_path: bool,
    /// Does the path have names after it?
    path_goes_on: bool,
    /// Is there any name after it?
    more: bool,
}

impl<'p, I: Iterator<Item = Name<'p>>> Names<I> {
    fn new(path: I) -> Self {
        let path = path.peekable();
        Self { path, targets: Vec::new(), of_path: true, path_goes_on: false, more: false }
    }

    /// Puts the next name into `name`; false if there is none.
    fn next_into(&mut self, name: &mut Vec<u8>) -> bool {
        name.clear();
        while let Some((target, at)) = self.targets.last_mut() {
            if let Some((component, end)) = component(target, *at) {
                name.extend_from_slice(component);
                *at = end;
                break;
            }
            self.targets.pop();
        }
        self.of_path = name.is_empty();
        if let Some(next) = self.of_path.then(|| self.path.next()).flatten() {
            name.extend_from_slice(next.as_bytes());
        }
        self.path_goes_on = self.path.peek().is_some();
        let mut targets = self.targets.iter();
        self.more =
            self.path_goes_on || targets.any(|(target, at)| component(target, *at).is_some());
        !name.is_empty()
    }
}

/// The first name in `target` from `at` on, and the position after it. `.` is none: it leads
/// nowhere else.
fn component(target: &[u8], mut at: usize) -> Option<(&[u8], usize)> {
    loop {
        let rest = target.get(at..).filter(|rest| !rest.is_empty())?;
        let name = rest.split(|byte| *byte == b'/').next()?;
        let end = at.saturating_add(name.len());
        if !name.is_empty() && name != b"." {
            return Some((name, end));
        }
        at = end.saturating_add(1);
    }
}

/// The path with a name after it.
fn joined(mut path: Vec<u8>, name: &[u8]) -> Vec<u8> {
    if !path.is_empty() {
        path.push(b'/');
    }
    path.extend_from_slice(name);
    path
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ops::testing::{TestHost, TestServer, wire_path};
    use std::rc::Rc;
    use std::string::String;
    use weir_core::testing::{MemObject, block_on};

    fn go(host: &TestHost, path: &str, last: Last) -> Result<Walked<MemObject>, Status> {
        block_on(walk(host, &Path::parse(&wire_path(path)).unwrap(), last))
    }

    /// The path to the object that is found, with `?` behind a place that is empty.
    fn at(host: &TestHost, path: &str) -> Result<String, Status> {
        go(host, path, Last::Follow).map(|walked| match walked {
            Walked::Found(found) => {
                let path = String::from_utf8(found.path).unwrap();
                assert_eq!(found.object, host.server.object(&path).0);
                let name = path.rsplit('/').next().unwrap_or_default();
                assert_eq!(found.at.as_ref().map_or(&b""[..], |at| &at.name), name.as_bytes());
                if let Some(at) = found.at {
                    let dir = path.rsplit_once('/').map_or("", |(dir, _)| dir);
                    assert_eq!((at.dir, at.attr), host.server.object(dir));
                }
                path
            }
            Walked::Missing(missing) => {
                assert!(missing.path.ends_with(&missing.at.name));
                String::from_utf8(missing.path).unwrap() + "?"
            }
        })
    }

    const NO_PATH: Result<String, Status> = Err(Status::OBJECT_PATH_NOT_FOUND);
    const NO_NAME: Result<String, Status> = Err(Status::OBJECT_NAME_NOT_FOUND);

    fn found(path: &str) -> Result<String, Status> {
        Ok(path.into())
    }

    fn tree() -> (Rc<TestServer>, TestHost) {
        let server = TestServer::new();
        server.dir("Dir", 0o755, 7);
        server.dir("Dir/Sub", 0o755, 7);
        server.file("Dir/Größe", b"", 0o644, 7);
        server.file("Dir/größe", b"", 0o644, 7);
        let ann = server.session(7);
        (server, ann)
    }

    #[test]
    fn a_path_is_exact_or_folded_and_keeps_the_directory_s_spelling() {
        let (_server, ann) = tree();
        assert_eq!(at(&ann, ""), found(""));
        assert_eq!(at(&ann, "Dir"), found("Dir"));
        assert_eq!(at(&ann, "dIR/GRÖSSE"), found("Dir/GRÖSSE?"));
        assert_eq!(at(&ann, "dIR/GRÖßE"), found("Dir/Größe"));
        assert_eq!(at(&ann, "dir/größe"), found("Dir/größe"));
        assert_eq!(at(&ann, "DIR/SUB/"), found("Dir/Sub"));
        assert_eq!(at(&ann, "DIR/new"), found("Dir/new?"));
    }

    #[test]
    fn only_the_last_name_may_be_missing_and_only_directories_lead_on() {
        let (_server, ann) = tree();
        assert_eq!(at(&ann, "no/x"), NO_PATH);
        assert_eq!(at(&ann, "Dir/no/x"), NO_PATH);
        assert_eq!(at(&ann, "Dir/größe/x"), NO_PATH);
        assert_eq!(at(&ann, "Dir/größe/x/y"), NO_PATH);
    }

    #[test]
    fn directories_on_the_way_must_be_searchable() {
        let (server, ann) = tree();
        server.dir("closed", 0o700, 8);
        server.file("closed/a", b"", 0o666, 7);
        server.dir("through", 0o711, 8);
        server.file("through/a", b"", 0o600, 8);
        assert_eq!(at(&ann, "closed"), found("closed"), "it is only what is in it");
        assert_eq!(at(&ann, "closed/a"), Err(Status::ACCESS_DENIED));
        assert_eq!(at(&ann, "closed/none"), Err(Status::ACCESS_DENIED));
        assert_eq!(at(&ann, "through/a"), found("through/a"));
        assert_eq!(at(&server.session(8), "closed/a"), found("closed/a"));
    }

    #[test]
    fn links_lead_within_the_volume() {
        let (server, ann) = tree();
        server.symlink("to_dir", "./Dir//");
        server.symlink("Dir/up", "../Dir/Sub/../größe");
        server.symlink("Dir/top", "..");
        server.symlink("Dir/Sub/parent", "../.");
        server.symlink("chain", "to_dir/up");
        server.symlink("empty", "Dir/gone");
        assert_eq!(at(&ann, "to_dir"), found("Dir"));
        assert_eq!(at(&ann, "TO_DIR/sub"), found("Dir/Sub"));
        assert_eq!(at(&ann, "Dir/up"), found("Dir/größe"));
        assert_eq!(at(&ann, "Dir/top"), found(""));
        assert_eq!(at(&ann, "Dir/top/to_dir/top/Dir"), found("Dir"));
        assert_eq!(at(&ann, "Dir/Sub/parent"), found("Dir"));
        assert_eq!(at(&ann, "Dir/Sub/parent/Sub"), found("Dir/Sub"));
        assert_eq!(at(&ann, "chain"), found("Dir/größe"));
        assert_eq!(at(&ann, "empty"), found("Dir/gone?"), "as open(2) has it");
    }

    #[test]
    fn links_that_lead_out_or_nowhere_are_dangling() {
        let (server, ann) = tree();
        server.symlink("abs", "/Dir");
        server.symlink("out", "../vol/Dir");
        server.symlink("Dir/out", "../../Dir");
        server.symlink("gone", "none/x");
        server.symlink("under_file", "Dir/größe/x");
        server.symlink("self", "self");
        server.symlink("deep", &("Dir/../".repeat(512) + "Dir"));
        for link in ["abs", "out", "Dir/out", "gone", "under_file", "self", "deep"] {
            assert_eq!(at(&ann, link), NO_NAME, "{link}");
            assert_eq!(at(&ann, &(String::from(link) + "/x")), NO_PATH, "{link}");
        }
    }

    #[test]
    fn a_chain_of_links_has_a_bound() {
        let (server, ann) = tree();
        server.symlink("l1", "Dir");
        for number in 2..=LINKS_MAX + 1 {
            let target = std::format!("l{}", number - 1);
            server.symlink(&std::format!("l{number}"), &target);
        }
        assert_eq!(at(&ann, &std::format!("l{LINKS_MAX}")), found("Dir"));
        assert_eq!(at(&ann, &std::format!("l{}", LINKS_MAX + 1)), NO_NAME);
    }

    #[test]
    fn the_last_link_is_the_object_if_asked_for() {
        let (server, ann) = tree();
        server.symlink("link", "Dir");
        let stay = |path| match go(&ann, path, Last::Stay) {
            Ok(Walked::Found(found)) => (found.attr.kind, found.path),
            other => panic!("{other:?}"),
        };
        assert_eq!(stay("link"), (FileKind::Symlink, b"link".to_vec()));
        assert_eq!(stay("link/Sub"), (FileKind::Directory, b"Dir/Sub".to_vec()));
    }

    #[test]
    fn the_parent_of_a_name_is_found_without_the_name() {
        let (server, ann) = tree();
        server.symlink("to_dir", "Dir");
        let parent =
            |path: &str| block_on(walk_parent(&ann, &Path::parse(&wire_path(path)).unwrap()));
        let place = parent("TO_dir/Größe").unwrap().unwrap();
        assert_eq!(place.at.dir, server.object("Dir").0);
        assert_eq!((&*place.at.name, &*place.path), ("Größe".as_bytes(), "Dir/Größe".as_bytes()));
        assert!(parent("").unwrap().is_none());
        assert_eq!(parent("a").unwrap().unwrap().path, b"a");
        for path in ["no/a", "Dir/größe/a", "no/no/a"] {
            assert_eq!(parent(path).unwrap_err(), Status::OBJECT_PATH_NOT_FOUND, "{path}");
        }
    }

    #[test]
    fn errors_of_the_store_are_told() {
        let (server, ann) = tree();
        server.store.fail_after(1, FsError::Io);
        assert_eq!(at(&ann, "Dir"), Err(Status::UNEXPECTED_IO_ERROR));
    }
}
