//! The process itself: it reads orders and carries them out. Not here: what a thread of each side
//! does.

use super::{MEASURING, Order, READY, Through, library, run, store};
use anyhow::Result;
use clap::Args;
use std::io::{BufRead, Write};
use std::path::PathBuf;
use weir_store::{Ceph, CephOptions};

/// Mounts of this process.
pub(super) const MOUNTS: usize = 2;
/// Silence after which the metadata server takes what a session holds, and longest wait for the
/// cluster, in seconds.
const SESSION_SECONDS: u32 = 60;
const MOUNT_SECONDS: u32 = 30;

/// Use CephFS without a protocol, as a side of `peers`.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct CephClient {
    /// Configuration of Ceph.
    #[arg(long)]
    conf: PathBuf,
    /// The name of this side's directory at the top of CephFS.
    #[arg(long)]
    directory: String,
    /// The way to CephFS.
    #[arg(long, value_enum)]
    through: Through,
    /// Use libcephfs's object cache.
    #[arg(long)]
    object_cache: bool,
}

/// A side: it makes what each thread does again and again.
pub(super) trait Side: Sync {
    /// The operation of one thread, which gives how many operations it was.
    fn job<'a>(&'a self, thread: usize, order: &Order) -> Result<Box<Job<'a>>>;
}

/// The operation of a thread.
pub(super) type Job<'a> = dyn FnMut() -> Result<u64> + 'a;

impl CephClient {
    /// Carries out orders until there are no more.
    ///
    /// # Errors
    /// If Ceph refuses something, or an order is none.
    pub(crate) fn serve(&self) -> Result<()> {
        weir_store::prepare_process()?;
        let ceph = Ceph::connect(&CephOptions {
            conf: self.conf.clone(),
            user: "admin".to_owned(),
            file_system: None,
            top: "/".to_owned(),
            mounts: MOUNTS,
            object_cache: self.object_cache,
            session_seconds: SESSION_SECONDS,
            mount_seconds: MOUNT_SECONDS,
        })?;
        let side: Box<dyn Side> = match self.through {
            Through::Library => Box::new(library::Library::new(&ceph, &self.directory)?),
            Through::Store => Box::new(store::Store::new(&ceph, &self.directory)?),
        };
        let mut out = std::io::stdout();
        writeln!(out, "{READY}")?;
        for line in std::io::stdin().lock().lines() {
            let order = line?.parse()?;
            let counted = run::run(side.as_ref(), &order, || Ok(writeln!(out, "{MEASURING}")?))?;
            writeln!(out, "{counted}")?;
        }
        drop(side);
        ceph.disconnect();
        Ok(())
    }
}
