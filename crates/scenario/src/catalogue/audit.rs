//! The published pages, item by item, and what became of each: what the suite measures as
//! published, and what it measures otherwise, with the reason.

/// The end of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    /// As published; where it is.
    Works(&'static str),
    /// Otherwise, or not yet; why.
    Differs(&'static str),
}

/// An item of a published page.
pub(super) struct Item {
    pub(super) what: &'static str,
    pub(super) end: End,
}

/// A published page.
pub(super) struct Page {
    pub(super) title: &'static str,
    pub(super) items: &'static [Item],
}

const fn works(what: &'static str, place: &'static str) -> Item {
    Item { what, end: End::Works(place) }
}

const fn differs(what: &'static str, why: &'static str) -> Item {
    Item { what, end: End::Differs(why) }
}

pub(super) const PAGES: [Page; 6] = [
    Page {
        title: "ANF regular volume on Linux",
        items: &[
            differs(
                "32 clients in the scale-out tests",
                "six run, which the English edition lists with their machines and the volume; the French edition says 32 without either. Every test says so",
            ),
            works(
                "a cache-excluded run visits another random sequence each time (`randrepeat=0`)",
                "each step and each repeat has a seed of its own, which the results record; `--seed` repeats them",
            ),
            works(
                "sequential mixes have two positions in each file (`rw=rw`)",
                "all sequential mixes of tests by fio",
            ),
            works(
                "cache excluded against included: writes about −8 %, reads about −17 %",
                "pairs `anf-uncached-4k-writes`, `anf-uncached-4k-reads`",
            ),
            works(
                "charts side by side with and without caches",
                "pairs `anf-uncached-…`, with the chart of the report",
            ),
            works(
                "half writes: 64 KiB as fast as reads, 256 KiB faster; 256 KiB against 64 KiB in each mix",
                "published beside step `reads-50`; pairs `anf-half-writes-…`, `anf-256k-…`",
            ),
            works(
                "one client, 4 KiB random writes, with and without nconnect",
                "`anf-nconnect-4k-random-writes`",
            ),
            works(
                "one client, 64 KiB sequential writes, with and without nconnect",
                "`anf-nconnect-64k-sequential-writes`",
            ),
            works(
                "tests of nconnect exclude caches",
                "all `anf-nconnect-…`; a pair for each compares the two",
            ),
        ],
    },
    Page {
        title: "GCNV performance",
        items: &[
            differs(
                "a level has a ceiling for a single volume, whatever its size",
                "a ceiling is set for each volume (`weir volume create --max-throughput`), or follows from the calibration of the server (`weir calibrate`)",
            ),
            differs(
                "the volume's own limit is above the tested rate",
                "the suite does not read the contract of a Weir volume: compare the measured rate with `weir volume show`, and use `weir volume why`",
            ),
            works(
                "sequential mixes by fio at 75, 50 and 25 % reads have two positions in each file",
                "all `gcnv-…-sequential` tests, over NFS and SMB",
            ),
            works(
                "EDA: up to 21.5 GiB/s and 1,350,000 IOPS",
                "`eda`: both stand beside the measured figures",
            ),
        ],
    },
    Page {
        title: "ANF by Vdbench, 2019",
        items: &[
            works("at most 4,500 MiB/s of a single volume", "`anf-vdbench`"),
            differs(
                "quota or pool for a wanted rate",
                "refusals of `weir volume create` name the pool that would be large enough; there is no command that asks",
            ),
            differs(
                "a fixture with the parameters of the published script",
                "the files of the test of the Vdbench language have other parameters than the published ones, and the published ones are not part of the repository",
            ),
            differs(
                "24 hosts, started over ssh (`hd=` with `shell`, `system`, `user`)",
                "hosts are workers that the user names (`--worker vm1=ssh:HOST`); without workers one process applies all loads",
            ),
            differs(
                "`openflags=o_direct` makes writes stable",
                "over nfs:// the script's writes are unstable; those of `anf-vdbench` are FILE_SYNC, as a Linux client sends direct writes",
            ),
            differs(
                "six mount points, six volumes at once",
                "`--map` gives each its directory on paths; nfs:// has one export for a run",
            ),
            differs(
                "threads = latency × wanted IOPS (Little's law)",
                "no command calculates it; the tests' requests in flight follow it",
            ),
            differs(
                "TCP windows that grow with the round trip",
                "the kernel tunes them on both sides; no command calculates a limit",
            ),
        ],
    },
    Page {
        title: "ANF, accuracy of an enforced limit",
        items: &[
            differs(
                "the published fio command itself",
                "`anf-qos-…` is its load; that its command line is read has no test",
            ),
            works(
                "IOPS of the seven volumes beside their MiB/s",
                "`anf-qos-…`, and the report of `make demo`",
            ),
            works(
                "one client, one connection, 1,280 writes in flight, FILE_SYNC, 1,000 MiB files, 180 s",
                "`anf-qos-…`, and the last step of `weir-contract-accuracy`; `make demo` has shorter loads of its own on all seven volumes at once",
            ),
            differs(
                "two volumes under load at the same time",
                "a run has one target: start `anf-qos-pair-1tib` and `anf-qos-pair-3tib` at the same time, on a volume each; `make demo` loads both",
            ),
            works("date of the measurement", "the source of `anf-qos-…`"),
        ],
    },
    Page {
        title: "Azure Files premium",
        items: &[
            differs(
                "limits of egress and of ingress",
                "a provisioned volume has the sum of both as one limit",
            ),
            differs(
                "connections of each client",
                "the server counts the connections of all clients (`weir_connections`)",
            ),
            works("5 s of cool-down (`-C5`)", "`azure-files-…`; `cooldown` in Weir scenarios"),
            works("I/O depth of 10", "`azure-multichannel-…`; the sample command has 8"),
            works("ten files, various I/O sizes", "`azure-multichannel-many-files`"),
            works("one file of 128 GiB", "`azure-files-singlefile`, `azure-multichannel-one-file`"),
            works(
                "one file: reads and writes gain above about 16 KiB",
                "`azure-multichannel-one-file`; pairs `azure-channels-file-…`",
            ),
            works(
                "reads above 2.7 GiB/s over four channels",
                "beside the largest block size of `azure-multichannel-many-files`, which waits for SMB Multichannel",
            ),
            works(
                "a single thread: about −10 % with four channels",
                "`azure-multichannel-one-thread`, with the depth of 10; pair `azure-channels-thread-one-file`",
            ),
            works(
                "a single thread, several files above 16 KiB: a small gain",
                "`azure-multichannel-one-thread`; pair `azure-channels-thread-ten-files`",
            ),
            works(
                "metadata cache: latency −30 %, IOPS and throughput +60 % or more",
                "pairs `azure-metadata-…`, of two results with `--setting metadata-cache=off` and `=on`",
            ),
            differs(
                "transactions by API, to see whether a load is mostly metadata",
                "the server counts reads, writes and other operations",
            ),
        ],
    },
    Page {
        title: "Method",
        items: &[
            differs(
                "tests with several clients from one machine",
                "clients of a target outside this machine need source addresses (`--source`) or workers",
            ),
            differs(
                "clients and connections on a mounted path",
                "the mount determines both, and the steps of a test that varies them are the same load",
            ),
            works(
                "`--dry-run` says that caches are emptied only where something empties them",
                "and names what does",
            ),
            works(
                "`--dry-run` and `weir bench list` count passes that fill caches, and data read to flush them",
                "and no layout of files that begin as holes",
            ),
        ],
    },
];
