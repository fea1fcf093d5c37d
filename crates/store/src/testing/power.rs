//! The disk's content after a power cut: of every file the data that its last sync covered, and of
//! every directory the names. POSIX promises that and no more. The file systems under us keep more
//! than that, because they write their journals in order; so a store that passes here owes nothing
//! to them. A failed sync loses the data that it should have covered: the kernel holds the pages
//! for written from then on, and a later sync does not cover them unless they are written again.
//! For cuts of a real device see `make crash`.

use super::call::{Kind, Seen};
use super::rules::Fault;
use crate::sync::Mutex;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ffi::OsString;
use std::fs::{self, File, FileTimes, Metadata, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

/// Size of a page, in which the kernel reads and writes. Pages of zeros become holes again.
const PAGE: usize = 4096;

/// The directory tree below one place as a power cut would leave it.
#[derive(Debug)]
pub struct PowerCut {
    top: PathBuf,
    stable: Mutex<Stable>,
}

/// An object for all its life: inode numbers are used again.
type Id = (u64, Option<SystemTime>);

#[derive(Debug, Default)]
struct Stable {
    cut: bool,
    /// The power goes with this many more syncs.
    syncs_left: Option<u64>,
    data: HashMap<Id, Vec<u8>>,
    /// Pages of files that a failed sync has lost and nobody has written since.
    lost: HashMap<Id, BTreeSet<usize>>,
    names: HashMap<Id, BTreeMap<OsString, Entry>>,
    attributes: HashMap<Id, Metadata>,
}

#[derive(Clone, Debug)]
struct Entry {
    id: Id,
    kind: EntryKind,
}

#[derive(Clone, Debug)]
enum EntryKind {
    File,
    Directory,
    Link(PathBuf),
    /// Pipes and the like: kept where they are still there.
    Other,
}

fn id(of: &Metadata) -> Id {
    (of.ino(), of.created().ok())
}

impl PowerCut {
    /// Watches everything below `top`, all of which counts as stable now.
    ///
    /// # Errors
    /// If it can't be read.
    pub fn new(top: &Path) -> io::Result<Self> {
        let mut stable = Stable::default();
        stable.cover_all(top)?;
        Ok(Self { top: top.to_owned(), stable: Mutex::new(stable) })
    }

    /// A call comes to `fault`, or is carried out.
    pub(super) fn sees(&self, seen: &Seen, fault: Option<Fault>) {
        let mut stable = self.stable.lock();
        if stable.cut || !(seen.path.starts_with(&self.top) || seen.is_of_everything()) {
            return;
        }
        let failed = matches!(fault, Some(Fault::Fail(_)));
        if seen.kind == Kind::Sync && !failed && stable.goes_now() {
            return;
        }
        let followed = match seen.kind {
            Kind::Write if !failed => stable.written(seen),
            Kind::Sync if failed => stable.lose(&seen.open()),
            // The sync covers the changes before it, and nothing else has to be covered.
            Kind::Sync if seen.is_of_everything() => stable.cover_all(&self.top),
            Kind::Sync => stable.cover(&seen.open(), seen.is_of_data_alone()),
            _ => Ok(()),
        };
        if let Err(error) = followed {
            tracing::error!(%error, path = %seen.path.display(), "a call could not be followed");
        }
    }

    /// The power is cut: what is done from now on is lost.
    pub fn cut(&self) {
        self.stable.lock().cut = true;
    }

    /// The power goes when `syncs` more have been carried out, with the next.
    pub fn cut_after(&self, syncs: u64) {
        self.stable.lock().syncs_left = Some(syncs);
    }

    /// Is it? What a server said before that it has promised.
    pub fn is_cut(&self) -> bool {
        self.stable.lock().cut
    }

    /// Makes the tree what the cut has left. Nobody may use it meanwhile. Objects that are left
    /// are the same as before, so that their handles go on; the power is on again.
    ///
    /// # Errors
    /// If the file system refuses anything.
    pub fn restore(&self) -> io::Result<()> {
        let mut stable = self.stable.lock();
        let aside = self.top.with_extension("aside");
        fs::create_dir(&aside)?;
        let mut left = HashMap::new();
        move_aside(&self.top, &aside, &mut left)?;
        let top = id(&fs::metadata(&self.top)?);
        stable.build(&self.top, top, &mut left, &mut HashMap::new())?;
        fs::remove_dir_all(&aside)?;
        *stable = Stable::default();
        stable.cover_all(&self.top)
    }
}

impl Stable {
    /// Does the power go with the sync that comes now?
    fn goes_now(&mut self) -> bool {
        match &mut self.syncs_left {
            Some(0) => self.cut = true,
            Some(left) => *left -= 1,
            None => {}
        }
        self.cut
    }

    fn cover_all(&mut self, at: &Path) -> io::Result<()> {
        self.cover(at, false)?;
        for entry in fs::read_dir(at)? {
            let entry = entry?;
            match entry.file_type()? {
                kind if kind.is_dir() => self.cover_all(&entry.path())?,
                kind if kind.is_file() => self.cover(&entry.path(), false)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// The object at `path` is stable as it is now.
    fn cover(&mut self, path: &Path, data_alone: bool) -> io::Result<()> {
        let attributes = fs::metadata(path)?;
        let id = id(&attributes);
        if attributes.is_dir() {
            let names = fs::read_dir(path)?.map(|entry| {
                let entry = entry?;
                Ok((entry.file_name(), Entry::of(&entry.path())?))
            });
            self.names.insert(id, names.collect::<io::Result<_>>()?);
        } else if attributes.is_file() {
            self.cover_data(id, fs::read(path)?);
        }
        if !data_alone {
            self.attributes.insert(id, attributes);
        }
        Ok(())
    }

    /// A sync covers a file that holds `data`.
    fn cover_data(&mut self, id: Id, mut data: Vec<u8>) {
        let before = self.data.remove(&id).unwrap_or_default();
        for page in self.lost.get(&id).into_iter().flatten() {
            let (from, to) = (page * PAGE, data.len().min((page + 1) * PAGE));
            let Some(part) = data.get_mut(from..to) else { continue };
            part.fill(0);
            let old = before.get(from..to.min(before.len())).unwrap_or(&[]);
            part[..old.len()].copy_from_slice(old);
        }
        self.data.insert(id, data);
    }

    /// A sync of the object at `path` fails.
    fn lose(&mut self, path: &Path) -> io::Result<()> {
        let attributes = fs::metadata(path)?;
        if attributes.is_file() {
            let (id, data) = (id(&attributes), fs::read(path)?);
            let before = self.data.get(&id).map_or(&[][..], Vec::as_slice);
            let old = |page: usize| before.chunks(PAGE).nth(page);
            let dirty = data.chunks(PAGE).enumerate().filter(|(page, new)| old(*page) != Some(new));
            self.lost.entry(id).or_default().extend(dirty.map(|(page, _)| page));
        }
        Ok(())
    }

    /// Pages are written, for the first time or again.
    fn written(&mut self, seen: &Seen) -> io::Result<()> {
        let Some((offset, count)) = seen.range else { return Ok(()) };
        let lost = self.lost.get_mut(&id(&fs::metadata(seen.open())?));
        if let (Some(lost), Ok(from)) = (lost, usize::try_from(offset)) {
            let to = from.saturating_add(count).div_ceil(PAGE);
            lost.retain(|page| !(from / PAGE..to).contains(page));
        }
        Ok(())
    }

    /// Puts together the directory at `path` from what was `left`, noting what is `placed`.
    fn build(
        &self,
        path: &Path,
        id: Id,
        left: &mut HashMap<Id, PathBuf>,
        placed: &mut HashMap<Id, PathBuf>,
    ) -> io::Result<()> {
        for (name, Entry { id, kind }) in self.names.get(&id).into_iter().flatten() {
            let to = path.join(name);
            if let Some(first) = placed.get(id) {
                fs::hard_link(first, &to)?;
                continue;
            }
            placed.insert(*id, to.clone());
            let there = left.remove(id).map(|from| fs::rename(from, &to)).transpose()?.is_some();
            match kind {
                EntryKind::Directory => {
                    if !there {
                        fs::create_dir(&to)?;
                    }
                    self.build(&to, *id, left, placed)?;
                }
                EntryKind::File => self.refill(&to, *id)?,
                EntryKind::Link(target) if !there => symlink(target, &to)?,
                EntryKind::Link(_) | EntryKind::Other => {}
            }
        }
        match self.attributes.get(&id) {
            Some(attributes) => dress(path, attributes),
            None => Ok(()),
        }
    }

    fn refill(&self, path: &Path, id: Id) -> io::Result<()> {
        let data = self.data.get(&id).map_or(&[][..], Vec::as_slice);
        let file = OpenOptions::new().write(true).create(true).truncate(true).open(path)?;
        for (number, block) in data.chunks(PAGE).enumerate() {
            if block.iter().any(|&byte| byte != 0) {
                file.write_all_at(block, (number * PAGE) as u64)?;
            }
        }
        file.set_len(data.len() as u64)?;
        // Nothing of it was kept in memory.
        crate::sys::witness(&file, false)?;
        self.attributes.get(&id).map_or(Ok(()), |attributes| dress(path, attributes))
    }
}

impl Entry {
    fn of(path: &Path) -> io::Result<Self> {
        let found = fs::symlink_metadata(path)?;
        let kind = match found.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Directory,
            kind if kind.is_symlink() => EntryKind::Link(fs::read_link(path)?),
            _ => EntryKind::Other,
        };
        Ok(Self { id: id(&found), kind })
    }
}

/// Empties `directory`, and says where everything went.
fn move_aside(directory: &Path, aside: &Path, left: &mut HashMap<Id, PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let found = fs::symlink_metadata(&path)?;
        if found.is_dir() {
            move_aside(&path, aside, left)?;
        }
        if left.contains_key(&id(&found)) {
            fs::remove_file(&path)?;
            continue;
        }
        let to = aside.join(left.len().to_string());
        fs::rename(&path, &to)?;
        left.insert(id(&found), to);
    }
    Ok(())
}

fn dress(path: &Path, attributes: &Metadata) -> io::Result<()> {
    chown(path, Some(attributes.uid()), Some(attributes.gid()))?;
    fs::set_permissions(path, Permissions::from_mode(attributes.mode()))?;
    let times = FileTimes::new().set_accessed(attributes.accessed()?);
    File::open(path)?.set_times(times.set_modified(attributes.modified()?))
}
