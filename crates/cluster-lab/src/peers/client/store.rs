//! Weir's store on CephFS, through the calls that a protocol makes.

use super::super::plan::{FILE_BYTES, IN_FLIGHT, Kind, LAYOUT_BYTES};
use super::Order;
use super::serve::{Job, Side};
use anyhow::{Context, Result, ensure};
use std::sync::Arc;
use tokio::runtime::Runtime;
use weir_core::rng::step;
use weir_core::store::{CreateHow, Stability, Store as _};
use weir_core::{Credentials, Name, SetAttr, Shared};
use weir_store::{Ceph, CephObject, CephStore, Descriptors, Durability, Options, Pool};

/// The most bytes that a volume may take.
const QUOTA_BYTES: u64 = 1 << 40;
/// Objects that the store keeps, as a server's volume does.
const OBJECTS: usize = 1024;

const MODE: u32 = 0o644;

/// A volume with a file for each thread.
pub(super) struct Store {
    volume: CephStore,
    files: Vec<Arc<CephObject>>,
}

impl Store {
    /// Makes the volume in the directory `name`, with files.
    pub(super) fn new(ceph: &Ceph, name: &str) -> Result<Self> {
        let options = Options {
            quota_bytes: QUOTA_BYTES,
            namespace_durability: Durability::Process,
            metadata_cache: true,
            cached_objects_max: OBJECTS,
            descriptors: Descriptors::new(OBJECTS),
            // As many as a server has by default, and as the library's side has threads.
            pool: Pool::new(IN_FLIGHT as usize)?,
        };
        let volume = CephStore::open(ceph, &format!("/{name}"), &options)?;
        let waiting = waiting()?;
        let files = (0..IN_FLIGHT as usize)
            .map(|thread| waiting.block_on(make_file(&volume, &file_name(thread))));
        let files = files.collect::<Result<_>>()?;
        Ok(Self { volume, files })
    }
}

/// Makes a file of the whole size.
async fn make_file(volume: &CephStore, name: &str) -> Result<Arc<CephObject>> {
    let how = CreateHow::Unchecked(SetAttr { mode: Some(MODE), ..SetAttr::default() });
    let name = Name::new(name.as_bytes())?;
    let file = volume.create(&volume.root(), name, &how, &Credentials::ROOT).await?.object;
    let data = Shared::from(vec![7; LAYOUT_BYTES as usize]);
    for at in (0..FILE_BYTES).step_by(LAYOUT_BYTES as usize) {
        let written = volume.write(&file, at, data.clone(), Stability::Unstable).await?;
        ensure!(written.count == LAYOUT_BYTES, "a short write");
    }
    volume.commit(&file).await?;
    Ok(file)
}

/// A thread's way to wait for the store: without sockets and timers.
fn waiting() -> Result<Runtime> {
    Ok(tokio::runtime::Builder::new_current_thread().build()?)
}

fn file_name(thread: usize) -> String {
    format!("file.{thread}")
}

/// Makes a file and removes it: two operations.
async fn create_and_remove(volume: &CephStore, name: &str) -> Result<u64> {
    let (root, name) = (volume.root(), Name::new(name.as_bytes())?);
    let how = CreateHow::Unchecked(SetAttr { mode: Some(MODE), ..SetAttr::default() });
    drop(volume.create(&root, name, &how, &Credentials::ROOT).await?);
    volume.remove(&root, name, &Credentials::ROOT).await?;
    Ok(2)
}

impl Side for Store {
    fn job<'a>(&'a self, thread: usize, order: &Order) -> Result<Box<Job<'a>>> {
        ensure!(order.mounts == 1, "a volume has one mount");
        let file = self.files.get(thread).context("there are not as many files")?;
        let (volume, bytes) = (&self.volume, order.work.block_bytes);
        let mut random = order.seed.wrapping_mul(1000) + thread as u64 + 1;
        let blocks = FILE_BYTES / u64::from(bytes);
        let mut offset = move || step(&mut random) % blocks * u64::from(bytes);
        let waiting = waiting()?;
        Ok(match order.work.kind {
            Kind::Getattr => Box::new(move || {
                ensure!(waiting.block_on(volume.attr(file))?.size == FILE_BYTES, "another size");
                Ok(1)
            }),
            Kind::Lookup => {
                let name = file_name(thread);
                Box::new(move || {
                    let name = Name::new(name.as_bytes())?;
                    let (_, found) = waiting.block_on(volume.lookup(&volume.root(), name))?;
                    ensure!(found.size == FILE_BYTES, "another size");
                    Ok(1)
                })
            }
            Kind::Read => {
                let mut buffer = Vec::with_capacity(bytes as usize);
                Box::new(move || {
                    buffer.clear();
                    let read = volume.read(file, offset(), bytes, std::mem::take(&mut buffer));
                    let done = waiting.block_on(read)?;
                    ensure!(done.count == bytes, "a short read");
                    buffer = done.out;
                    Ok(1)
                })
            }
            Kind::Write => {
                let data = Shared::from(vec![8; bytes as usize]);
                Box::new(move || {
                    let write = volume.write(file, offset(), data.clone(), Stability::FileSync);
                    ensure!(waiting.block_on(write)?.count == bytes, "a short write");
                    Ok(1)
                })
            }
            Kind::CreateRemove => {
                let name = format!("new.{thread}");
                Box::new(move || waiting.block_on(create_and_remove(volume, &name)))
            }
        })
    }
}
