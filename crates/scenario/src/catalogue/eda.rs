//! Design of chips (EDA): the public mix of operations, front end and back end.

use super::build::{GIB, KIB, step};
use super::{Head, Test};
use crate::scenario::{Bound, Chart, Published, Step};
use weir_load::workload::{Length, MixOp, OpShare, Operation, Stability, Workload};

const SOURCE: &str = "Google Cloud NetApp Volumes, large volume under an industry EDA mix (NFSv3), \
                      undated";

/// Operations of the front end among a hundred.
const FRONT_END: [(MixOp, u8); 11] = [
    (MixOp::Stat, 39),
    (MixOp::Access, 15),
    (MixOp::WriteRandom, 15),
    (MixOp::WriteFile, 10),
    (MixOp::ReadRandom, 8),
    (MixOp::ReadFile, 7),
    (MixOp::Create, 2),
    (MixOp::Chmod, 1),
    (MixOp::Mkdir, 1),
    (MixOp::Unlink, 1),
    (MixOp::Unlink2, 1),
];
/// Operations of the back end among a hundred.
const BACK_END: [(MixOp, u8); 2] = [(MixOp::ReadSequential, 50), (MixOp::WriteSequential, 50)];

/// Addresses of the server for the one volume.
const ADDRESSES: u32 = 6;

pub(super) fn tests() -> Vec<Test> {
    let head =
        |name, title, about| Head { name, title, about, source: Some(SOURCE), chart: Chart::Bars };
    let both = Step {
        loads: vec![
            Workload { name: "front-end".to_owned(), ..front_end() },
            Workload { name: "back-end".to_owned(), ..back_end() },
        ],
        published: Some(Published {
            who: "GCNV, one large volume, six addresses".to_owned(),
            iops: Some(1_350_000.0),
            mibps: Some(21.5 * 1024.0),
            bound: Bound::UpTo,
            ..Published::default()
        }),
        ..step("front-and-back-end", Workload::default())
    };
    vec![
        Test::nfs(
            &head(
                "eda",
                "EDA mix: front end and back end together",
                "Both parts at the same time on one large volume, twelve clients of each spread \
                 evenly over the server's addresses (six in the original). The published figures \
                 are of the whole mix; in which proportion its parts ran was not said, so here each \
                 runs as fast as it is answered. Sizes of files and requests, clients and requests \
                 in flight are our choices.",
            ),
            vec![both],
        )
        .on_addresses(ADDRESSES),
        Test::nfs(
            &head(
                "eda-frontend",
                "EDA mix: front end",
                "Many small files: stat 39 %, access 15, random write 15, write file 10, random \
                 read 8, read file 7, create 2, chmod, mkdir, unlink and unlink2 1 each; twelve \
                 clients spread evenly over the server's addresses (six in the original). Files of \
                 64 KiB in requests of 8 KiB are our choice. The published figures are of front and \
                 back end together: see eda.",
            ),
            vec![step("front-end", front_end())],
        )
        .on_addresses(ADDRESSES),
        Test::nfs(
            &head(
                "eda-backend",
                "EDA mix: back end",
                "Large files: sequential reads 50 %, sequential writes 50 %; twelve clients spread \
                 evenly over the server's addresses (six in the original). Files of 16 GiB in \
                 requests of 64 KiB are our choice. The published figures are of front and back end \
                 together: see eda.",
            ),
            vec![step("back-end", back_end())],
        )
        .on_addresses(ADDRESSES),
    ]
}

fn mix(shares: &[(MixOp, u8)], directory: &str) -> Workload {
    Workload {
        operation: Operation::Mix,
        mix: shares.iter().map(|&(op, percent)| OpShare { op, percent }).collect(),
        jobs: 96,
        clients: 12,
        connections: 8,
        // Direct writes would be FILE_SYNC over NFS.
        stability: Stability::Unstable,
        direct: false,
        threads: 8,
        length: Length::Seconds(120.0),
        warmup_s: 30.0,
        directory: directory.to_owned(),
        ..Workload::default()
    }
}

fn front_end() -> Workload {
    Workload {
        block_bytes: 8192,
        depth: 8,
        files: 49_152,
        file_bytes: 64 * KIB,
        ..mix(&FRONT_END, "weir-bench-front")
    }
}

fn back_end() -> Workload {
    Workload {
        block_bytes: 65_536,
        depth: 4,
        files: 96,
        file_bytes: 16 * GIB,
        ..mix(&BACK_END, "weir-bench-back")
    }
}
