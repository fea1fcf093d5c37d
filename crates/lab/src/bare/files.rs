//! The open files behind the handles, shared by the workers; each keeps a copy so that the hot
//! path takes no lock.

use rustix::fs::{CWD, FileType, Mode, OFlags, Stat, fstat, openat};
use rustix::io::{Errno, Result};
use std::collections::HashMap;
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of `fattr3` (RFC 1813 §2.6).
pub(crate) const ATTR: usize = 84;
/// The served directory's number.
pub(crate) const ROOT: u32 = 0;
/// Files and directories that may be held open.
const FILES_MAX: usize = 4096;

/// One open file or directory and the attributes it had when it was opened.
pub(crate) struct File {
    /// The descriptor.
    pub(crate) fd: OwnedFd,
    /// The template of its attributes.
    pub(crate) attr: [u8; ATTR],
    /// The file's size when it was opened, in bytes.
    pub(crate) size: u64,
}

impl File {
    fn open(dir: impl std::os::fd::AsFd, name: impl rustix::path::Arg + Copy) -> Result<Self> {
        let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW;
        let fd = match openat(&dir, name, flags, Mode::empty()) {
            Err(Errno::ISDIR) => openat(
                dir,
                name,
                OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC,
                Mode::empty(),
            )?,
            other => other?,
        };
        let stat = fstat(&fd)?;
        Ok(Self { fd, attr: attributes(&stat), size: u64::try_from(stat.st_size).unwrap_or(0) })
    }
}

/// All files that were ever looked up.
pub(crate) struct Files {
    shared: Mutex<Shared>,
}

struct Shared {
    files: Vec<Arc<File>>,
    names: HashMap<(u32, Vec<u8>), u32>,
}

impl Files {
    /// Opens the served directory.
    pub(crate) fn open(dir: &Path) -> Result<Self> {
        let root = Arc::new(File::open(CWD, dir)?);
        Ok(Self { shared: Mutex::new(Shared { files: vec![root], names: HashMap::new() }) })
    }

    fn find(&self, dir: u32, name: &[u8]) -> Result<u32> {
        let mut shared = self.shared.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(&known) = shared.names.get(&(dir, name.to_vec())) {
            return Ok(known);
        }
        if shared.files.len() >= FILES_MAX {
            return Err(Errno::MFILE);
        }
        let parent = shared.files.get(dir as usize).ok_or(Errno::STALE)?;
        let file = File::open(&parent.fd, name)?;
        let number = u32::try_from(shared.files.len()).map_err(|_| Errno::MFILE)?;
        shared.files.push(Arc::new(file));
        shared.names.insert((dir, name.to_vec()), number);
        Ok(number)
    }
}

/// One worker's cache of open files.
pub(crate) struct Known {
    source: Arc<Files>,
    files: Vec<Arc<File>>,
    names: HashMap<Vec<u8>, (u32, u32)>,
}

impl Known {
    /// Nothing met yet.
    pub(crate) fn new(source: Arc<Files>) -> Self {
        Self { source, files: Vec::new(), names: HashMap::new() }
    }

    /// The file with this number.
    pub(crate) fn get(&mut self, number: u32) -> Option<&File> {
        if number as usize >= self.files.len() {
            let shared = self.source.shared.lock().unwrap_or_else(PoisonError::into_inner);
            self.files.extend(shared.files.iter().skip(self.files.len()).cloned());
        }
        self.files.get(number as usize).map(|file| &**file)
    }

    /// The number of the file called `name` in `dir`, opened on first sight.
    pub(crate) fn lookup(&mut self, dir: u32, name: &[u8]) -> Result<u32> {
        if let Some(&(known_dir, number)) = self.names.get(name)
            && known_dir == dir
        {
            return Ok(number);
        }
        let number = self.source.find(dir, name)?;
        self.names.insert(name.to_vec(), (dir, number));
        Ok(number)
    }
}

fn attributes(stat: &Stat) -> [u8; ATTR] {
    let kind: u32 = match FileType::from_raw_mode(stat.st_mode) {
        FileType::Directory => 2,
        _ => 1,
    };
    let size = stat.st_size.to_be_bytes();
    let mut attr = [0; ATTR];
    let fields: [(usize, &[u8]); 8] = [
        (0, &kind.to_be_bytes()),
        (4, &(stat.st_mode & 0o7777).to_be_bytes()),
        (8, &1u32.to_be_bytes()),
        (12, &stat.st_uid.to_be_bytes()),
        (16, &stat.st_gid.to_be_bytes()),
        (20, &size),
        (28, &size),
        (52, &stat.st_ino.to_be_bytes()),
    ];
    for (at, bytes) in fields {
        attr[at..at + bytes.len()].copy_from_slice(bytes);
    }
    attr
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_its_number_for_every_worker() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("sub")).unwrap();
        std::fs::write(dir.path().join("sub/a"), b"12345").unwrap();
        let files = Arc::new(Files::open(dir.path()).unwrap());
        let (mut one, mut two) = (Known::new(Arc::clone(&files)), Known::new(files));
        let sub = one.lookup(ROOT, b"sub").unwrap();
        let file = one.lookup(sub, b"a").unwrap();
        assert_eq!(two.lookup(sub, b"a").unwrap(), file);
        let opened = two.get(file).unwrap();
        assert_eq!((opened.size, &opened.attr[20..28]), (5, &5u64.to_be_bytes()[..]));
        assert_eq!(one.lookup(ROOT, b"a"), Err(Errno::NOENT));
        assert!(one.get(99).is_none());
    }
}
