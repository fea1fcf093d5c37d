//! Comparing what the server has with what a client knows of its tree.

use super::content::{BLOCK, BLOCKS_MAX};
use super::op::Source;
use super::tree::{Handle, Id, Object, ObjectKind, TOP, Tree};
use std::collections::BTreeMap;
use weir_load::engine::Session;
use weir_load::error::BenchError;
use weir_nfs::v3::wire::{
    Fattr3, FileHandle3, FileType, GetattrArgs, ReadArgs, ReaddirplusArgs, ReadlinkArgs, Res,
    Status,
};

/// One more block than any file has, to see data where none should be.
const READ_BYTES: u64 = BLOCK * (BLOCKS_MAX as u64 + 1);
const PAGE_BYTES: u32 = 64 << 10;

/// Why an observation could not be made.
#[derive(Debug)]
pub(super) enum Blind {
    /// The connection or its answers.
    Session(BenchError),
    /// The server refused, to do what.
    Refused(&'static str, Status),
}

impl From<BenchError> for Blind {
    fn from(error: BenchError) -> Self {
        Self::Session(error)
    }
}

/// An object of the server.
#[derive(Clone, Debug)]
struct ServerObject {
    handle: Handle,
    attributes: Fattr3,
    /// The target of a symbolic link.
    target: String,
}

/// The server's tree: its directories by their paths, and the data of files by id.
#[derive(Clone, Debug, Default)]
pub(super) struct Observed {
    directories: BTreeMap<String, BTreeMap<String, ServerObject>>,
    data: BTreeMap<u64, Vec<u8>>,
}

/// An object as it was observed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen<'a> {
    pub(super) handle: &'a [u8],
    pub(super) fileid: u64,
    pub(super) is_directory: bool,
    /// Permission bits.
    pub(super) mode: u32,
    /// Size in bytes.
    pub(super) size: u64,
    /// The data of a file.
    pub(super) data: &'a [u8],
}

impl Observed {
    /// The object at a path from the top directory on.
    pub(super) fn at(&self, path: &str) -> Option<Seen<'_>> {
        let cut = path.rfind('/').map_or(0, |slash| slash + 1);
        let (dir, name) = path.split_at_checked(cut)?;
        Some(self.seen(self.directories.get(dir)?.get(name)?))
    }

    /// All objects by their paths, directories before what is in them.
    pub(super) fn all(&self) -> impl Iterator<Item = (String, Seen<'_>)> {
        self.directories.iter().flat_map(move |(dir, names)| {
            names.iter().map(move |(name, object)| (format!("{dir}{name}"), self.seen(object)))
        })
    }

    fn seen<'a>(&'a self, object: &'a ServerObject) -> Seen<'a> {
        let Fattr3 { fileid, file_type, mode, size, .. } = object.attributes;
        let data = self.data.get(&fileid).map_or(&[][..], Vec::as_slice);
        let is_directory = file_type == FileType::DIR;
        Seen { handle: &object.handle, fileid, is_directory, mode, size, data }
    }
}

#[cfg(test)]
impl Observed {
    /// Empty files of these names in the top directory.
    pub(super) fn of_empty_files(names: &[&str]) -> Self {
        let file = |(fileid, name): (u64, &&str)| {
            use weir_nfs::v3::wire::{NfsTime3, SpecData3};
            let time = NfsTime3 { seconds: 0, nseconds: 0 };
            let attributes = Fattr3 {
                file_type: FileType::REG,
                mode: 0,
                nlink: 1,
                uid: 0,
                gid: 0,
                size: 0,
                used: 0,
                rdev: SpecData3 { specdata1: 0, specdata2: 0 },
                fsid: 0,
                fileid,
                atime: time,
                mtime: time,
                ctime: time,
            };
            let (handle, target) = (Handle::from(name.as_bytes()), String::new());
            ((*name).to_owned(), ServerObject { handle, attributes, target })
        };
        let directories = BTreeMap::from([(String::new(), (1..).zip(names).map(file).collect())]);
        Self { directories, data: BTreeMap::new() }
    }
}

/// The amount of data compared.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize)]
pub(super) struct Compared {
    pub(super) names: u64,
    pub(super) blocks: u64,
}

impl Compared {
    pub(super) const fn add(&mut self, other: Self) {
        self.names += other.names;
        self.blocks += other.blocks;
    }
}

/// Looks at everything below the directory `top`.
pub(super) fn observe(session: &mut Session, top: &[u8]) -> Result<Observed, Blind> {
    let mut observed = Observed::default();
    let mut pending = vec![(String::new(), Handle::from(top))];
    while let Some((path, dir)) = pending.pop() {
        let mut names = list(session, &dir)?;
        for (name, seen) in &mut names {
            let handle = FileHandle3(&seen.handle);
            match seen.attributes.file_type {
                FileType::DIR => pending.push((format!("{path}{name}/"), seen.handle.clone())),
                FileType::LNK => seen.target = target(session, handle)?,
                _ if observed.data.contains_key(&seen.attributes.fileid) => {}
                _ => {
                    let data = data(session, handle)?;
                    observed.data.insert(seen.attributes.fileid, data);
                }
            }
        }
        observed.directories.insert(path, names);
    }
    Ok(observed)
}

fn list(session: &mut Session, dir: &[u8]) -> Result<BTreeMap<String, ServerObject>, Blind> {
    let mut names = BTreeMap::new();
    let (mut cookie, mut cookie_verifier) = (0, [0; 8]);
    loop {
        let args = ReaddirplusArgs {
            dir: FileHandle3(dir),
            cookie,
            cookie_verifier,
            dir_count: PAGE_BYTES,
            max_count: PAGE_BYTES,
        };
        let more = session.call(&args, |result| match result {
            Res::Fail(status, _) => Err(Blind::Refused("READDIRPLUS", status)),
            Res::Ok(page) => {
                cookie_verifier = page.cookie_verifier;
                for entry in page.entries.iter() {
                    cookie = entry.cookie;
                    let (Some(attributes), Some(handle)) = (entry.attributes, entry.handle) else {
                        continue;
                    };
                    if entry.name != b"." && entry.name != b".." {
                        let name = String::from_utf8_lossy(entry.name).into_owned();
                        let target = String::new();
                        names.insert(
                            name,
                            ServerObject { handle: handle.0.into(), attributes, target },
                        );
                    }
                }
                Ok(!page.eof)
            }
        })??;
        if !more {
            return Ok(names);
        }
    }
}

fn target(session: &mut Session, symlink: FileHandle3<'_>) -> Result<String, Blind> {
    session.call(&ReadlinkArgs { symlink }, |result| match result {
        Res::Ok(ok) => Ok(String::from_utf8_lossy(ok.data).into_owned()),
        Res::Fail(status, _) => Err(Blind::Refused("READLINK", status)),
    })?
}

fn data(session: &mut Session, file: FileHandle3<'_>) -> Result<Vec<u8>, Blind> {
    let count = u32::try_from(READ_BYTES).unwrap_or(0);
    session.call(&ReadArgs { file, offset: 0, count }, |result| match result {
        Res::Ok(ok) => Ok(ok.data.to_vec()),
        Res::Fail(status, _) => Err(Blind::Refused("READ", status)),
    })?
}

/// Everything in which `observed` differs from `tree`; nothing, and how much was compared, if they
/// agree.
pub(super) fn compare(
    tree: &Tree,
    observed: &Observed,
    source: Source<'_>,
) -> Result<Compared, Vec<String>> {
    let mut comparison =
        Comparison { tree, observed, source, compared: Compared::default(), wrong: Vec::new() };
    comparison.directory(TOP, "");
    if comparison.wrong.is_empty() { Ok(comparison.compared) } else { Err(comparison.wrong) }
}

struct Comparison<'a> {
    tree: &'a Tree,
    observed: &'a Observed,
    source: Source<'a>,
    compared: Compared,
    wrong: Vec<String>,
}

impl Comparison<'_> {
    fn directory(&mut self, dir: Id, path: &str) {
        let nothing = BTreeMap::new();
        let seen = self.observed.directories.get(path).unwrap_or(&nothing);
        let known: BTreeMap<&String, Id> = self.tree.names(dir).collect();
        for name in seen.keys().filter(|name| !known.contains_key(name)) {
            self.wrong.push(format!("{path}{name} is there and should not be"));
        }
        for (name, id) in known {
            self.compared.names += 1;
            match (seen.get(name), self.tree.objects.get(&id)) {
                (Some(seen), Some(object)) => {
                    self.object(id, object, seen, &format!("{path}{name}"));
                }
                _ => self.wrong.push(format!("{path}{name} is gone")),
            }
        }
    }

    fn object(&mut self, id: Id, object: &Object, seen: &ServerObject, path: &str) {
        let attributes = &seen.attributes;
        if object.handle.as_ref().is_some_and(|handle| *handle != seen.handle) {
            self.wrong.push(format!("{path} is another object than it was"));
        }
        if object.mode.is_some_and(|mode| mode != attributes.mode) {
            let mode = object.mode.unwrap_or_default();
            self.wrong.push(format!("{path} has mode {:o}, not {mode:o}", attributes.mode));
        }
        match (&object.kind, attributes.file_type) {
            (ObjectKind::Directory(_), FileType::DIR) => self.directory(id, &format!("{path}/")),
            (ObjectKind::Symlink(target), FileType::LNK) if *target == seen.target => {}
            (ObjectKind::Symlink(target), FileType::LNK) => {
                self.wrong.push(format!("{path} leads to {:?}, not {target:?}", seen.target));
            }
            (ObjectKind::File(content), FileType::REG) => {
                let links = self.tree.links(id) as u64;
                if u64::from(attributes.nlink) != links {
                    self.wrong.push(format!("{path} has {} links, not {links}", attributes.nlink));
                }
                let data =
                    self.observed.data.get(&attributes.fileid).map_or(&[][..], Vec::as_slice);
                let from = (self.source.run, self.source.payload);
                match content.compare(self.source.file_base + id, attributes.size, data, from) {
                    Ok(blocks) => self.compared.blocks += blocks,
                    Err(what) => self.wrong.push(format!("{path}: {what}")),
                }
            }
            (_, kind) => self.wrong.push(format!("{path} is of the wrong kind ({})", kind.0)),
        }
    }
}

/// Which of the handles that should be stale are not.
pub(super) fn revived(session: &mut Session, gone: &[Handle]) -> Result<Vec<String>, Blind> {
    let mut wrong = Vec::new();
    for handle in gone {
        let object = FileHandle3(handle);
        let status = session.call(&GetattrArgs { object }, |result| result.status())?;
        if status != Status::STALE {
            wrong.push(format!("the handle of a removed object gives {}", status.0));
        }
    }
    Ok(wrong)
}

/// Compares the files of `tree` by their handles alone: what holds where names may be lost. A file
/// of which nothing was ever stable may be gone.
pub(super) fn compare_files(
    session: &mut Session,
    tree: &Tree,
    source: Source<'_>,
) -> Result<Result<Compared, Vec<String>>, Blind> {
    let (mut compared, mut wrong) = (Compared::default(), Vec::new());
    for (id, object) in &tree.objects {
        let (ObjectKind::File(content), Some(handle)) = (&object.kind, &object.handle) else {
            continue;
        };
        let file = FileHandle3(handle);
        let found = session.call(&GetattrArgs { object: file }, |result| match result {
            Res::Ok(ok) => Ok(ok.attributes.size),
            Res::Fail(status, ()) => Err(status),
        })?;
        let size = match found {
            Ok(size) => size,
            Err(Status::STALE) if !content.anchored => continue,
            Err(Status::STALE) => {
                wrong.push(format!("file {id} is gone, and something of it was stable"));
                continue;
            }
            Err(status) => return Err(Blind::Refused("GETATTR", status)),
        };
        let bytes = data(session, file)?;
        let from = (source.run, source.payload);
        match content.compare(source.file_base + id, size, &bytes, from) {
            Ok(blocks) => compared.add(Compared { names: 1, blocks }),
            Err(what) => wrong.push(format!("file {id}: {what}")),
        }
    }
    Ok(if wrong.is_empty() { Ok(compared) } else { Err(wrong) })
}
