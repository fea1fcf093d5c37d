//! Directories of a share besides the load: whether there is room, and those that the suite makes
//! and removes.

use super::files::{self, remove_directory};
use super::path;
use super::requests::{self, Names};
use super::session::Session;
use super::status::{is_absent, refused};
use crate::engine::{Limits, Waits};
use crate::error::BenchError;
use crate::target::SmbTarget;
use weir_smb::fscc::DirectoryClass;
use weir_smb::fscc::client::DirectoryEntries;
use weir_smb::utf16::to_utf16;
use weir_smb::wire::{
    AccessMask, CreateDisposition, CreateOptions, FileId, QueryDirectoryFlags,
    QueryDirectoryRequest, Status,
};
use weir_smb_client::Request;

/// Bytes of one listing.
const LIST_BYTES: u32 = 64 << 10;
/// Directories within directories that are removed: no load makes more than a few.
const NESTED_MAX: u32 = 32;
/// The class of entries with names and attributes, and its number (MS-FSCC §2.4).
const CLASS: DirectoryClass = DirectoryClass::Directory;
const CLASS_NUMBER: u8 = 1;

/// An entry: its name, and whether it is a directory.
type Entry = (String, bool);

/// The directory of a target.
pub struct SmbTop {
    session: Session,
    target: SmbTarget,
}

impl SmbTop {
    /// Connects to the share; responses are waited for as `waits` says.
    ///
    /// # Errors
    /// [`BenchError`] says why not, and what to do.
    pub fn open(target: &SmbTarget, waits: &Waits) -> Result<Self, BenchError> {
        let session = Session::of(target, waits)?;
        Ok(Self { session, target: target.clone() })
    }

    /// Bytes that the user may still write; `None` if the server does not tell.
    ///
    /// # Errors
    /// [`BenchError`] if the server can't be asked.
    pub fn room(&mut self) -> Result<Option<u64>, BenchError> {
        files::room(&mut self.session, &path(&self.target, ""))
    }

    /// The limits of the share.
    #[must_use]
    pub fn limits(&self) -> Limits {
        self.session.limits()
    }

    /// Makes `directory`, a path with `/` between its parts; `false` if it is there.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be made.
    pub fn make(&mut self, directory: &str) -> Result<bool, BenchError> {
        files::directory(&mut self.session, &path(&self.target, directory))
    }

    /// The first names in `directory`, `.` and `..` left out; none if it is not there.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be looked at.
    pub fn names(&mut self, directory: &str) -> Result<Vec<String>, BenchError> {
        let entries = self.list(&path(&self.target, directory))?.unwrap_or_default();
        Ok(entries.into_iter().map(|(name, _)| name).collect())
    }

    /// Removes everything in `directory`, but for the entry `except` of it. A directory that is not
    /// there is empty already.
    ///
    /// # Errors
    /// [`BenchError`] names what could not be removed.
    pub fn empty(&mut self, directory: &str, except: &str) -> Result<(), BenchError> {
        self.drain(&path(&self.target, directory), except, 0)
    }

    /// Removes the empty directory `directory`; `false` if it is not empty. One that is not there
    /// is removed already.
    ///
    /// # Errors
    /// [`BenchError`] if it can't be removed for another reason.
    pub fn remove(&mut self, directory: &str) -> Result<bool, BenchError> {
        remove_directory(&mut self.session, &path(&self.target, directory)).map(|full| !full)
    }

    fn drain(&mut self, path: &str, except: &str, nested: u32) -> Result<(), BenchError> {
        let what = format!("emptying the directory {path}");
        if nested > NESTED_MAX {
            return Err(refused(&what, Status::NAME_TOO_LONG));
        }
        let mut before = Vec::new();
        loop {
            let mut entries = self.list(path)?.unwrap_or_default();
            entries.retain(|(name, _)| name != except);
            if entries.is_empty() {
                return Ok(());
            }
            // A server that removes nothing and says it did would be asked forever.
            if entries == before {
                return Err(refused(&what, Status::DIRECTORY_NOT_EMPTY));
            }
            before.clone_from(&entries);
            for (name, _) in entries.iter().filter(|(_, is_directory)| *is_directory) {
                self.drain(&format!("{path}\\{name}"), "", nested + 1)?;
            }
            files::remove(&mut self.session, &mut Names::below(path), entries.into_iter())?;
        }
    }

    /// The first names in a directory, `.` and `..` left out; `None` if it is not there.
    fn list(&mut self, path: &str) -> Result<Option<Vec<Entry>>, BenchError> {
        let what = format!("listing the directory {path}");
        let (name, pattern) = (to_utf16(path), to_utf16("*"));
        let options = CreateOptions::DIRECTORY_FILE;
        let access = AccessMask::LIST_DIRECTORY;
        let open = requests::open(&name, access, CreateDisposition::Open, options);
        let query = Request::QueryDirectory(QueryDirectoryRequest {
            class: CLASS_NUMBER,
            flags: QueryDirectoryFlags::RESTART_SCANS,
            file_index: 0,
            file: FileId::PREVIOUS,
            pattern: &pattern,
            max_output: LIST_BYTES,
        });
        let replies = self.session.call(&[open, query, Request::Close(FileId::PREVIOUS)])?;
        match replies.first().map(|reply| reply.status) {
            Some(Status::SUCCESS) => {}
            Some(status) if is_absent(status) => return Ok(None),
            Some(status) => return Err(refused(&what, status)),
            None => return Ok(None),
        }
        let Some(listing) = replies.get(1) else { return Ok(None) };
        match listing.status {
            Status::SUCCESS => {}
            Status::NO_MORE_FILES | Status::NO_SUCH_FILE => return Ok(Some(Vec::new())),
            status => return Err(refused(&what, status)),
        }
        let bytes = listing.output().map_err(|error| self.session.wrong(error))?;
        let entries = DirectoryEntries::new(CLASS, bytes).map_while(Result::ok).map(|entry| {
            let units: Vec<u16> =
                entry.name.as_chunks().0.iter().copied().map(u16::from_le_bytes).collect();
            (String::from_utf16_lossy(&units), entry.file.directory)
        });
        Ok(Some(entries.filter(|(name, _)| name != "." && name != "..").collect()))
    }
}
