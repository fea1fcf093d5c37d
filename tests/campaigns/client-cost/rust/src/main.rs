//! One load through clients from crates.io: READ, WRITE or GETATTR with so many requests in flight.
//! `nfs-rs` sends them on one connection; `nfs3_client` waits for each answer before the next call,
//! so it gets a connection for each.
//!
//! Arguments: nfs-rs|nfs3_client read|write|getattr BLOCK PORT EXPORT PATH FILE_BYTES DEPTH
//! WARMUP_S SECONDS. Prints what came of it as JSON.

mod nfs3;
mod nfs_rs_crate;

use std::cell::Cell;
use std::future::Future;
use std::rc::Rc;
use std::time::{Duration, Instant};
use tokio::task::LocalSet;

pub type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

/// The load to apply.
pub struct Load {
    pub operation: String,
    pub block: u32,
    pub port: u16,
    pub export: String,
    pub path: String,
    blocks: u64,
    pub depth: u32,
    warmup: Duration,
    measured: Duration,
    state: Cell<u64>,
    all: Cell<u64>,
    running: Cell<bool>,
}

impl Load {
    fn read(words: &[String]) -> Outcome<Self> {
        let [operation, block, port, export, path, bytes, depth, warmup, measured] = words else {
            return Err("CLIENT OPERATION BLOCK PORT EXPORT PATH FILE_BYTES DEPTH WARMUP_S SECONDS".into());
        };
        let block: u32 = block.parse()?;
        Ok(Self {
            operation: operation.clone(),
            block,
            port: port.parse()?,
            export: export.clone(),
            path: path.clone(),
            blocks: bytes.parse::<u64>()? / u64::from(block),
            depth: depth.parse()?,
            warmup: Duration::from_secs_f64(warmup.parse()?),
            measured: Duration::from_secs_f64(measured.parse()?),
            state: Cell::new(1),
            all: Cell::new(0),
            running: Cell::new(true),
        })
    }

    /// A place in the file.
    pub fn place(&self) -> u64 {
        let mut state = self.state.get();
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        self.state.set(state);
        state % self.blocks * u64::from(self.block)
    }

    /// Another one is done: is there to be a next?
    pub fn done(&self) -> bool {
        self.all.set(self.all.get() + 1);
        self.running.get()
    }
}

fn cpu_s() -> f64 {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}

/// Runs `streams` beside each other and prints what they did in the measured time.
pub async fn measure<F>(load: Rc<Load>, streams: Vec<F>) -> Outcome<()>
where
    F: Future<Output = Outcome<()>> + 'static,
{
    let set = LocalSet::new();
    let tasks: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            set.spawn_local(async move {
                if let Err(error) = stream.await {
                    eprintln!("an operation failed: {error}");
                    std::process::exit(1);
                }
            })
        })
        .collect();
    set.run_until(async {
        tokio::time::sleep(load.warmup).await;
        let (before, cpu_before, began) = (load.all.get(), cpu_s(), Instant::now());
        tokio::time::sleep(load.measured).await;
        println!(
            "{{\"operations\": {}, \"cpu_s\": {:.6}, \"seconds\": {:.6}, \"all\": {}}}",
            load.all.get() - before,
            cpu_s() - cpu_before,
            began.elapsed().as_secs_f64(),
            load.all.get()
        );
        load.running.set(false);
        for task in tasks {
            task.await?;
        }
        Ok(())
    })
    .await
}

fn main() -> Outcome<()> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (client, rest) = words.split_first().ok_or("which client?")?;
    let load = Rc::new(Load::read(rest)?);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    match client.as_str() {
        "nfs-rs" => runtime.block_on(nfs_rs_crate::run(load)),
        "nfs3_client" => runtime.block_on(nfs3::run(load)),
        other => Err(format!("no client {other}").into()),
    }
}
