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

/// The reason for items about channels of SMB.
const MULTICHANNEL: &str = "the tests `azure-multichannel-…` wait for SMB Multichannel; their forms `…-nfs` measure connections of NFS, for which nothing was published";

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
                "the total falls as writes rise",
                "pairs `anf-writes-…`, of writes against half writes; between reads and half writes the page has the two rows above",
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
            works(
                "a level has a ceiling for a single volume, whatever its size",
                "`weir level create --volume-ceiling`",
            ),
            works(
                "the volume's own limit is above the tested rate",
                "a run with `--data` or `--server` reads the contracts of its volumes: it says before it starts that a published rate is above one, and notes steps that reached one",
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
            works("quota or pool for a wanted rate", "`weir size`, and `GET /v1/sizing`"),
            works(
                "a fixture with the parameters of the published script",
                "the texts of the language tests have the published parameters; `make published` compares them with the published ones",
            ),
            works(
                "24 hosts, started over ssh (`hd=` with `shell`, `system`, `user`)",
                "workers are started over ssh as `hd=` says; hosts that cannot be reached are an error, or `--local-workers`",
            ),
            works(
                "`openflags=o_direct` makes writes stable",
                "direct writes are FILE_SYNC over nfs://, in all languages",
            ),
            works(
                "six mount points, six volumes at once",
                "`--map /mnt/vdb1:=nfs://…`, or targets with names; results of each target and in total",
            ),
            works(
                "threads = latency × wanted IOPS (Little's law)",
                "`weir size --latency`, or `--measured-on`",
            ),
            works("TCP windows that grow with the round trip", "`weir size --round-trip`"),
        ],
    },
    Page {
        title: "ANF, accuracy of an enforced limit",
        items: &[
            works(
                "the published fio command itself",
                "read by a test; `make published` compares it with the published one",
            ),
            works(
                "IOPS of the seven volumes beside their MiB/s",
                "`anf-qos-…`, and the report of `make demo`",
            ),
            works(
                "one client, one connection, 1,280 writes in flight, FILE_SYNC, 1,000 MiB files, 180 s",
                "`anf-qos-…`, and the last step of `weir-contract-accuracy`; `make demo` has shorter loads of its own on all seven volumes at once",
            ),
            works(
                "two volumes under load at the same time",
                "`--target NAME=…` twice: both are loaded at the same time, with results of each",
            ),
            works("date of the measurement", "the source of `anf-qos-…`"),
        ],
    },
    Page {
        title: "Azure Files premium",
        items: &[
            differs(
                "limits of egress and of ingress",
                "since 2021 the published formula is the sum of both, for reads, writes or any mix; the page of before limited them apart",
            ),
            works(
                "connections of each client",
                "`weir volume why`, `weir top`, `weir_volume_client_connections`",
            ),
            works("5 s of cool-down (`-C5`)", "`azure-files-…`; `cooldown` in Weir scenarios"),
            works("one file of 128 GiB", "`azure-files-singlefile`"),
            differs(
                "four channels, an I/O depth of 10: ten files over various I/O sizes, reads 2 to 3 and writes 3 to 4 times",
                MULTICHANNEL,
            ),
            differs("one file of 128 GiB: reads and writes gain above about 16 KiB", MULTICHANNEL),
            differs("reads above 2.7 GiB/s over four channels", MULTICHANNEL),
            differs("a single thread: about −10 % with four channels", MULTICHANNEL),
            differs("a single thread, several files above 16 KiB: a small gain", MULTICHANNEL),
            works(
                "metadata cache: latency −30 %, IOPS and throughput +60 % or more",
                "pairs `azure-metadata-…` over SMB, of two results with `--setting metadata-cache=off` and `=on`; over NFS the published ratios are for orientation, without a verdict",
            ),
            works(
                "transactions by API, to see whether a load is mostly metadata",
                "`weir volume why` shows operations by name, and says if the load is metadata-heavy",
            ),
        ],
    },
    Page {
        title: "Method",
        items: &[
            works(
                "tests with several clients from one machine",
                "each client has connections, ports and a machine name of its own; addresses of `--source` in turn, else one address, which the results say",
            ),
            works(
                "clients and connections on a mounted path",
                "other numbers than those of the mount are refused, with `--mounts` as clients; `nconnect` and SMB channels are read from the kernel. A load that sets no connections has those of the mount, which its results name; a published test of one connection is refused",
            ),
            works(
                "`--dry-run` says that caches are emptied only where something empties them",
                "and names what does",
            ),
            works(
                "`--dry-run` and `weir bench list` count passes that fill caches",
                "and no layout of files that begin as holes; `--dry-run` also counts data read to flush caches, which is an option of a run",
            ),
            differs(
                "`fill_device` of fio",
                "refused: a target that is filled up is of no use to anybody else; `size` says how much is written",
            ),
        ],
    },
];
