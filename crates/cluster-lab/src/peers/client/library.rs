//! libcephfs itself, through the same calls that the store makes.

use super::super::plan::{FILE_BYTES, IN_FLIGHT, Kind, LAYOUT_BYTES};
use super::Order;
use super::serve::{Job, Side};
use anyhow::{Context, Result, ensure};
use std::ffi::CString;
use std::sync::Arc;
use weir_ceph::{Ceph, Dealt, FileRef, InodeRef, Mount, New, Perm};
use weir_core::Credentials;
use weir_core::rng::step;

const MODE: u32 = 0o644;
const DIRECTORY_MODE: u32 = 0o755;

/// libcephfs on several mounts, each with a directory of its own: two mounts that use one file wait
/// for each other.
pub(super) struct Library(Vec<Place>);

/// A directory with a file for each thread, on one mount.
struct Place {
    directory: InodeRef,
    files: Vec<File>,
    mount: Dealt,
}

struct File {
    name: CString,
    inode: InodeRef,
    file: FileRef,
}

impl Library {
    /// Makes the directories `name-0`, `name-1` and so on, with files.
    pub(super) fn new(ceph: &Ceph, name: &str) -> Result<Self> {
        // All are dealt first: each is another mount then.
        let dealt: Vec<Dealt> = (0..super::serve::MOUNTS).filter_map(|_| ceph.deal()).collect();
        let places = dealt.into_iter().enumerate().map(|(number, mount)| {
            // A thread of the second mount shares it with half of the threads.
            let files = if number == 0 { IN_FLIGHT } else { IN_FLIGHT / 2 };
            Place::new(mount, &format!("{name}-{number}"), files)
        });
        Ok(Self(places.collect::<Result<_>>()?))
    }
}

impl Place {
    fn new(dealt: Dealt, name: &str, files: u32) -> Result<Self> {
        let mount = dealt.mount();
        let (top, perm) = (mount.top()?, mount.identity(&Credentials::ROOT)?);
        let named = CString::new(name)?;
        let made = mount.make(&top, &named, (New::Directory, DIRECTORY_MODE), &perm);
        let directory = made.with_context(|| format!("making {name}"))?;
        let files = (0..files).map(|number| file(mount, &directory, number, &perm));
        let files = files.collect::<Result<_>>()?;
        Ok(Self { directory, files, mount: dealt })
    }
}

/// Makes a file of the whole size.
fn file(mount: &Arc<Mount>, directory: &InodeRef, number: u32, perm: &Perm) -> Result<File> {
    let name = CString::new(format!("file.{number}"))?;
    let (inode, file) = mount.create(directory, &name, MODE, perm)?;
    let data = vec![7; LAYOUT_BYTES as usize];
    for at in (0..FILE_BYTES).step_by(data.len()) {
        ensure!(mount.write(&file, at, &data)? == data.len(), "a short write");
    }
    mount.fsync(&file)?;
    Ok(File { name, inode, file })
}

impl Side for Library {
    fn job<'a>(&'a self, thread: usize, order: &Order) -> Result<Box<Job<'a>>> {
        let mounts = order.mounts as usize;
        let place = self.0.get(thread % mounts).context("there are not as many mounts")?;
        let file = place.files.get(thread / mounts).context("there are not as many files")?;
        let (mount, bytes) = (place.mount.mount(), order.work.block_bytes as usize);
        let mut random = order.seed.wrapping_mul(1000) + thread as u64 + 1;
        let mut offset = move || step(&mut random) % (FILE_BYTES / bytes as u64) * bytes as u64;
        Ok(match order.work.kind {
            Kind::Getattr => Box::new(|| {
                ensure!(mount.getattr(&file.inode)?.size == FILE_BYTES, "another size");
                Ok(1)
            }),
            Kind::Lookup => Box::new(|| {
                let (_, found) = mount.lookup(&place.directory, &file.name)?;
                ensure!(found.size == FILE_BYTES, "another size");
                Ok(1)
            }),
            Kind::Read => {
                let mut buffer = Vec::with_capacity(bytes);
                Box::new(move || {
                    buffer.clear();
                    ensure!(
                        mount.read(&file.file, offset(), bytes, &mut buffer)? == bytes,
                        "short"
                    );
                    Ok(1)
                })
            }
            Kind::Write => {
                let data = vec![8; bytes];
                Box::new(move || {
                    ensure!(mount.write(&file.file, offset(), &data)? == bytes, "short");
                    mount.fsync(&file.file)?;
                    Ok(1)
                })
            }
            Kind::CreateRemove => {
                let name = CString::new(format!("new.{thread}"))?;
                let perm = mount.identity(&Credentials::ROOT)?;
                Box::new(move || {
                    drop(mount.create(&place.directory, &name, MODE, &perm)?);
                    mount.remove(&place.directory, &name, false, &perm)?;
                    Ok(2)
                })
            }
        })
    }
}
