//! The I/O engines of fio: those whose loads are applied here, and why others are refused.

use super::bag::Bag;
use crate::lang::LangError;
use weir_load::workload::Operation;

/// Engines that keep `iodepth` requests in flight.
const ASYNCHRONOUS: &[&str] =
    &["libaio", "io_uring", "posixaio", "windowsaio", "solarisaio", "nfs"];
/// Engines with one request at a time.
const SYNCHRONOUS: &[&str] = &["sync", "psync", "vsync", "pvsync", "pvsync2"];

/// Reasons for refusals, each with the engines that it is about.
const REFUSED: &[(&str, &[&str])] = &[
    (
        "works with a device, and Weir measures files: put ioengine=libaio and a file in its place",
        &[
            "sg",
            "mtd",
            "libzbc",
            "dev-dax",
            "libpmem",
            "pmemblk",
            "io_uring_cmd",
            "libblkio",
            "xnvme",
            "libcufile",
            "libhipfile",
            "nvme",
        ],
    ),
    (
        "has a protocol of its own that is none of a file system: Weir measures NFS, SMB and \
         mounted paths",
        &[
            "http",
            "rados",
            "rbd",
            "gfapi",
            "gfapi_async",
            "libhdfs",
            "dfs",
            "rdma",
            "net",
            "netsplice",
            "nbd",
            "libiscsi",
            "ime_psync",
            "ime_psyncv",
            "ime_aio",
            "librpma_apm_client",
            "librpma_apm_server",
            "librpma_gpspm_client",
            "librpma_gpspm_server",
        ],
    ),
    (
        "does no I/O: put ioengine=libaio in its place to apply the load to the target",
        &["null", "cpp_null", "cpuio", "exec"],
    ),
    (
        "does something else than reading and writing: leave the job out, or put ioengine=psync in \
         its place",
        &["falloc", "ftruncate", "e4defrag", "splice", "mmap"],
    ),
];

/// The load of an engine that works on names alone, one operation for each file; `None` for those
/// that read and write.
pub(super) fn of_names(bag: &Bag) -> Option<Operation> {
    match bag.text("ioengine") {
        Some("filecreate") => Some(Operation::Create),
        Some("filestat") => Some(Operation::Lookup),
        Some("filedelete") => Some(Operation::Remove),
        _ => None,
    }
}

/// Is the engine one whose loads are applied?
///
/// # Errors
/// The reason why it is not.
pub(super) fn check(bag: &Bag) -> Result<(), LangError> {
    let name = bag.text("ioengine").unwrap_or("psync");
    let known = ASYNCHRONOUS.contains(&name) || SYNCHRONOUS.contains(&name);
    if known || of_names(bag).is_some() {
        return Ok(());
    }
    let why = REFUSED.iter().find(|(_, names)| names.contains(&name)).map_or_else(
        || {
            format!(
                "is {name:?}; supported are {} (iodepth counts), {} (one at a time), and \
                 filecreate, filestat and filedelete",
                ASYNCHRONOUS.join(", "),
                SYNCHRONOUS.join(", ")
            )
        },
        |(why, _)| format!("{name} {why}"),
    );
    Err(bag.error("ioengine", why))
}

/// `ioengine`, `iodepth`, `io_submit_mode`: requests in flight, and whether the engine waits for
/// each.
pub(super) fn depth(bag: &Bag) -> Result<(u32, bool), LangError> {
    let depth = bag.count("iodepth", 1)?.unwrap_or(1);
    let offload = match bag.text("io_submit_mode") {
        None | Some("inline") => false,
        Some("offload") => true,
        Some(other) => {
            let why = format!("is {other:?}; it must be inline or offload");
            return Err(bag.error("io_submit_mode", why));
        }
    };
    let name = bag.text("ioengine").unwrap_or("psync");
    if offload || ASYNCHRONOUS.contains(&name) { Ok((depth, false)) } else { Ok((1, depth > 1)) }
}
