//! The bare loop: the cost of serving NFS requests with only the socket pattern and the bare system
//! call. `make peers` compares Weir with it.
//!
//! The loop has the shape of Weir's workers: one thread per core, level-triggered epoll, one large
//! receive per wake-up, every complete request answered, one send for the whole batch. It is *not*
//! an NFS server: it reads the few words of a call at fixed offsets, performs one system call, and
//! answers with a template of the size of the real reply. It ignores credentials, returns stale
//! attributes, and checks only what is necessary to keep the loop itself from failing.

mod call;
mod connection;
mod files;
mod reply;
mod worker;

use anyhow::{Context, Result};
use clap::Args;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

/// Run the bare loop for `make peers`: framing and system calls only.
#[derive(Debug, Args)]
pub(crate) struct Bare {
    /// Listen address; port 0 selects a free port. The address is printed when the loop is ready.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Directory with the served files; the requested export path is ignored.
    #[arg(long)]
    dir: PathBuf,
    /// Number of worker threads [default: number of processors].
    #[arg(long)]
    workers: Option<usize>,
}

impl Bare {
    /// Serves until the program is ended.
    pub(crate) fn serve(self) -> Result<()> {
        let files = files::Files::open(&self.dir)
            .with_context(|| format!("can't open {}", self.dir.display()))?;
        let count = match self.workers {
            Some(count) => count.max(1),
            None => std::thread::available_parallelism()?.get(),
        };
        let files = Arc::new(files);
        let workers = (0..count)
            .map(|number| worker::start(number, Arc::clone(&files)))
            .collect::<Result<Vec<_>>>()?;
        let listener = TcpListener::bind(self.listen)
            .with_context(|| format!("can't listen on {}", self.listen))?;
        weir_report::outln!("listening on {}", listener.local_addr()?);
        for (number, socket) in listener.incoming().enumerate() {
            workers[number % count].adopt(socket.context("can't accept a connection")?)?;
        }
        Ok(())
    }
}
