//! The bare loop: what serving NFS requests costs when there is nothing but the socket pattern and
//! the bare system call. `make peers` measures Weir against it.
//!
//! The loop keeps the shape of Weir's workers: one thread per core, level-triggered epoll, one
//! large receive per wake, every complete request answered, one send for the whole batch. It is
//! *not* an NFS server: it reads the few words of a call that sit at fixed places, performs one
//! system call, and answers with a template that has the size of the real reply. No credential is
//! looked at, no attribute is fresh, nothing is checked beyond what keeps the loop itself from
//! failing.

mod call;
mod connection;
mod files;
mod reply;
mod worker;

use anyhow::{Context, Result};
use clap::Parser;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;

/// The bare loop, for `make peers`: framing and system calls, and nothing else.
#[derive(Debug, Parser)]
#[command(name = "weir-bare", version)]
struct Arguments {
    /// Where to listen; port 0 takes a free one. The address is printed when it is ready.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The directory whose files are served, whatever export path is asked for.
    #[arg(long)]
    dir: PathBuf,
    /// Worker threads; as many as there are processors unless told.
    #[arg(long)]
    workers: Option<usize>,
}

fn main() -> Result<()> {
    let arguments = Arguments::parse();
    let files = files::Files::open(&arguments.dir)
        .with_context(|| format!("can't open {}", arguments.dir.display()))?;
    let count = match arguments.workers {
        Some(count) => count.max(1),
        None => std::thread::available_parallelism()?.get(),
    };
    let files = Arc::new(files);
    let workers = (0..count)
        .map(|number| worker::start(number, Arc::clone(&files)))
        .collect::<Result<Vec<_>>>()?;
    let listener = TcpListener::bind(arguments.listen)
        .with_context(|| format!("can't listen on {}", arguments.listen))?;
    weir_bench::outln!("listening on {}", listener.local_addr()?);
    for (number, socket) in listener.incoming().enumerate() {
        workers[number % count].adopt(socket.context("can't accept a connection")?)?;
    }
    Ok(())
}
