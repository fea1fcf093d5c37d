//! A calibration: the measured capacity of a file system with its conditions, and its rows.

use crate::error::Result;
use crate::limits::CONDITION_CHARS_MAX;
use rusqlite::{Connection, params};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use weir_qos::admission::Cell;
use weir_qos::rate::{BytesPerSecond, Iops};

/// The name of the pool in which a calibration measures, and that is for nothing else: its contract
/// binds nowhere, and what it promises is not counted as committed.
pub const CALIBRATION_POOL: &str = "weir-calibration";

/// The measured capacity of a file system, and the conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calibration {
    /// A directory on it.
    pub directory: PathBuf,
    /// Time at which the calibration was stored, in seconds since 1970.
    pub at: u64,
    /// The measurements, one for each mix and block size.
    pub cells: Vec<Measured>,
    /// The load with which.
    pub load: Load,
    /// The machine on which.
    pub machine: Machine,
}

/// The measurement with one mix and one block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Measured {
    /// The measured performance.
    pub cell: Cell,
    /// Mean latency of a READ or WRITE, nanoseconds.
    pub mean_nanos: u64,
    /// The latency that one in a hundred went beyond, nanoseconds.
    pub p99_nanos: u64,
    /// Time that an operation took of the server's processors (ns), where that is known.
    pub server_cpu_nanos: Option<u64>,
    /// Was it what generates load that could do no more?
    pub saturated: bool,
}

/// The load of a calibration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Load {
    /// Streams of requests.
    pub jobs: u32,
    /// Requests that each kept in flight.
    pub depth: u32,
    /// Duration of the measurement for each mix and block size (ms).
    pub millis: u64,
    /// Size of all files together, bytes.
    pub data_bytes: u64,
    /// The most bytes a second that other volumes moved meanwhile.
    pub others_rate: BytesPerSecond,
    /// The READs and WRITEs of other volumes.
    pub others_iops: Iops,
}

/// The machine of a calibration; texts are empty and numbers 0 where something is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// The version of Weir.
    pub version: String,
    /// The machine's name.
    pub host: String,
    /// The kernel's release.
    pub kernel: String,
    /// The model of its processors.
    pub processor: String,
    /// The number of processors.
    pub processors: u32,
    /// The machine's memory, in bytes.
    pub memory_bytes: u64,
    /// Kind and source of the file system.
    pub file_system: String,
    /// The durability of answered changes of names.
    pub durability: String,
}

/// Deletes the calibration of `directory`.
pub(crate) fn remove(db: &Connection, directory: &Path) -> Result<()> {
    db.execute("DELETE FROM calibrations WHERE directory = ?1", [directory.to_string_lossy()])?;
    Ok(())
}

/// Stores a new calibration.
pub(crate) fn store(db: &Connection, new: &Calibration) -> Result<()> {
    let Calibration { at, cells, load, machine, .. } = new;
    let directory = new.directory.to_string_lossy();
    let short = |text: &str| text.chars().take(CONDITION_CHARS_MAX).collect::<String>();
    db.execute(
        "INSERT INTO calibrations VALUES
         (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15, ?16)",
        params![
            directory,
            at,
            short(&machine.version),
            short(&machine.host),
            short(&machine.kernel),
            short(&machine.processor),
            machine.processors,
            machine.memory_bytes,
            short(&machine.file_system),
            short(&machine.durability),
            load.jobs,
            load.depth,
            load.millis,
            load.data_bytes,
            load.others_rate.0,
            load.others_iops.0
        ],
    )?;
    let mut insert =
        db.prepare("INSERT INTO calibrated_cells VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)")?;
    for Measured { cell, mean_nanos, p99_nanos, server_cpu_nanos, saturated } in cells {
        insert.execute(params![
            directory,
            cell.read_percent,
            cell.block_bytes,
            cell.rate.0,
            cell.iops.0,
            mean_nanos,
            p99_nanos,
            server_cpu_nanos,
            saturated
        ])?;
    }
    Ok(())
}

/// Reads all calibrations, by directory.
pub(crate) fn load(db: &Connection) -> Result<Vec<Arc<Calibration>>> {
    let mut cells = cells(db)?;
    let mut query = db.prepare(
        "SELECT directory, at, version, host, kernel, processor, processors, memory_bytes,
         file_system, durability, jobs, depth, millis, data_bytes, others_rate, others_iops
         FROM calibrations ORDER BY directory",
    )?;
    let rows = query.query_map([], |row| {
        let directory: String = row.get(0)?;
        Ok(Arc::new(Calibration {
            cells: cells.remove(&directory).unwrap_or_default(),
            directory: directory.into(),
            at: row.get(1)?,
            machine: Machine {
                version: row.get(2)?,
                host: row.get(3)?,
                kernel: row.get(4)?,
                processor: row.get(5)?,
                processors: row.get(6)?,
                memory_bytes: row.get(7)?,
                file_system: row.get(8)?,
                durability: row.get(9)?,
            },
            load: Load {
                jobs: row.get(10)?,
                depth: row.get(11)?,
                millis: row.get(12)?,
                data_bytes: row.get(13)?,
                others_rate: BytesPerSecond(row.get(14)?),
                others_iops: Iops(row.get(15)?),
            },
        }))
    })?;
    Ok(rows.collect::<rusqlite::Result<_>>()?)
}

fn cells(db: &Connection) -> Result<BTreeMap<String, Vec<Measured>>> {
    let mut query = db.prepare(
        "SELECT directory, read_percent, block_bytes, rate, iops, mean_nanos, p99_nanos,
         server_cpu_nanos, saturated
         FROM calibrated_cells ORDER BY read_percent DESC, block_bytes",
    )?;
    let mut rows = query.query([])?;
    let mut cells: BTreeMap<String, Vec<Measured>> = BTreeMap::new();
    while let Some(row) = rows.next()? {
        let cell = Cell {
            read_percent: row.get(1)?,
            block_bytes: row.get(2)?,
            rate: BytesPerSecond(row.get(3)?),
            iops: Iops(row.get(4)?),
        };
        cells.entry(row.get(0)?).or_default().push(Measured {
            cell,
            mean_nanos: row.get(5)?,
            p99_nanos: row.get(6)?,
            server_cpu_nanos: row.get(7)?,
            saturated: row.get(8)?,
        });
    }
    Ok(cells)
}
