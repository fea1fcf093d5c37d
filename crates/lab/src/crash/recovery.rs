//! Time until a server serves again after a kill, by the number of files it has.

use super::watcher::{self, session};
use crate::server::{Settings, TestServer};
use crate::stop::Stop;
use anyhow::{Result, bail};
use serde::Serialize;
use std::time::Instant;
use weir_load::engine::Session;
use weir_nfs::v3::wire::{
    CreateArgs, CreateHow3, DirOpArgs3, FileHandle3, MkdirArgs, Res, Sattr3, StableHow, Status,
    WriteArgs,
};
use weir_results::median;

/// Files of one directory.
const DIRECTORY_FILES: u64 = 1000;
/// Kills for each number of files; the median counts.
const KILLS: usize = 5;
/// Size of each file: one unit of usage.
const FILE_BYTES: u64 = 4096;

/// The measurement for one number of files.
#[derive(Clone, Copy, Debug, Serialize)]
pub(super) struct Recovery {
    pub(super) files: u64,
    /// From the start of the process to the first answer.
    pub(super) serving_ms: f64,
    /// To the end of the recount, as FSSTAT shows it.
    pub(super) counted_ms: f64,
}

/// Measures for each number of files, which must grow.
///
/// # Errors
/// If the server or the machine fails.
pub(super) fn measure(settings: Settings, numbers: &[u64], stop: &Stop) -> Result<Vec<Recovery>> {
    let (mut server, operator) = TestServer::start_new(settings)?;
    operator.make_pool("many", 256, None)?;
    operator.make_volume("many", "many", 32 * 1024)?;
    let root = server.mount("/many", &watcher::caller())?;
    let (mut present, mut out) = (0, Vec::new());
    for &files in numbers {
        let mut session = session(server.address())?;
        while present < files {
            let count = DIRECTORY_FILES.min(files - present);
            fill(&mut session, &root, present, count)?;
            present += count;
        }
        let (mut serving, mut counted) = (Vec::new(), Vec::new());
        for _ in 0..KILLS {
            stop.check()?;
            server.kill()?;
            let begun = Instant::now();
            server.start()?;
            serving.push(watcher::serving(&mut server, &root)?.as_secs_f64() * 1e3);
            while watcher::space(server.address(), &root)? != files * FILE_BYTES {
                std::thread::sleep(super::world::TICK);
            }
            counted.push(begun.elapsed().as_secs_f64() * 1e3);
        }
        out.push(Recovery { files, serving_ms: median(serving), counted_ms: median(counted) });
    }
    Ok(out)
}

/// Makes a directory of `count` files with one block each.
fn fill(session: &mut Session, root: &[u8], number: u64, count: u64) -> Result<()> {
    let name = format!("from-{number}");
    let location = DirOpArgs3 { dir: FileHandle3(root), name: name.as_bytes() };
    let args = MkdirArgs { location, attributes: Sattr3 { mode: Some(0o755), ..Sattr3::NONE } };
    let dir = done(session.call(&args, |result| made(&result))?)?;
    let with_mode = Sattr3 { mode: Some(0o644), ..Sattr3::NONE };
    for file in 0..count {
        let name = format!("file-{file}");
        let location = DirOpArgs3 { dir: FileHandle3(&dir), name: name.as_bytes() };
        let args = CreateArgs { location, how: CreateHow3::Guarded(with_mode) };
        session.queue(|caller, out, xid| caller.call(out, xid, &args));
    }
    let mut handles = Vec::new();
    for _ in 0..count {
        let made = session.answer(|reply| {
            let results = reply.results::<CreateArgs<'_>>();
            Ok(results.map_or(Err(Status::SERVERFAULT), |result| made(&result)))
        })?;
        handles.push(done(made)?);
    }
    let data = vec![7; usize::try_from(FILE_BYTES)?];
    for file in &handles {
        let (count, stable) = (u32::try_from(FILE_BYTES)?, StableHow::Unstable);
        let args = WriteArgs { file: FileHandle3(file), offset: 0, count, stable, data: &data };
        session.queue(|caller, out, xid| caller.call(out, xid, &args));
    }
    for _ in &handles {
        let written = session.answer(|reply| {
            let results = reply.results::<WriteArgs<'_>>();
            Ok(results.map_or(Status::SERVERFAULT, |result| result.status()))
        })?;
        if written != Status::OK {
            bail!("WRITE: status {}", written.0);
        }
    }
    Ok(())
}

type Made<'a> = Res<weir_nfs::v3::wire::NewObject<'a>, weir_nfs::v3::wire::WccData>;

fn made(result: &Made<'_>) -> Result<Option<Box<[u8]>>, Status> {
    match result {
        Res::Ok(made) => Ok(made.object.map(|handle| handle.0.into())),
        Res::Fail(status, _) => Err(*status),
    }
}

fn done(made: Result<Option<Box<[u8]>>, Status>) -> Result<Box<[u8]>> {
    match made {
        Ok(Some(handle)) => Ok(handle),
        Ok(None) => bail!("the server gave no handle"),
        Err(status) => bail!("making a file: status {}", status.0),
    }
}
