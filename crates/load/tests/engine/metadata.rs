//! The mixture of data and metadata, on both engines.

use crate::{Site, workload};
use weir_load::{Control, Layout, Length, MixOp, OpShare, Operation, Pattern, Workload, prepare};

fn mix(shares: &[(MixOp, u8)], operations: u64) -> Workload {
    let share = |(op, percent): &(MixOp, u8)| OpShare { op: *op, percent: *percent };
    Workload {
        operation: Operation::Mix,
        mix: shares.iter().map(share).collect(),
        files: 4,
        jobs: 2,
        depth: 4,
        file_bytes: 20_000,
        layout: Layout::Written { block_bytes: 4096 },
        ..workload(Pattern::Random, 100, operations)
    }
}

const ALL: [(MixOp, u8); 15] = [
    (MixOp::Stat, 10),
    (MixOp::Access, 10),
    (MixOp::Lookup, 10),
    (MixOp::ReadRandom, 5),
    (MixOp::WriteRandom, 5),
    (MixOp::ReadSequential, 5),
    (MixOp::WriteSequential, 5),
    (MixOp::ReadFile, 10),
    (MixOp::WriteFile, 10),
    (MixOp::Create, 5),
    (MixOp::Chmod, 5),
    (MixOp::Mkdir, 5),
    (MixOp::Rmdir, 5),
    (MixOp::Unlink, 5),
    (MixOp::Unlink2, 5),
];

#[test]
fn every_kind_is_done_counted_apart_and_cleared_away() {
    for site in Site::both() {
        let result = site.run(&mix(&ALL, 1000));
        let total = result.total.operations;
        assert!((1000..1010).contains(&total), "{total}: what belongs together is done to the end");
        let kinds: Vec<_> = result.by_operation.keys().map(String::as_str).collect();
        let wanted = [
            "access",
            "create",
            "getattr",
            "lookup",
            "mkdir",
            "read",
            "read-file",
            "remove",
            "rmdir",
            "setattr",
            "write",
            "write-file",
        ];
        assert_eq!(kinds, wanted);
        let files = &result.by_operation["read-file"];
        assert_eq!(files.bytes, files.operations * 20_000);
        let files = &result.by_operation["write-file"];
        assert_eq!(files.bytes, files.operations * 20_000);
        assert_eq!(site.names(), Vec::<String>::new());
    }
}

#[test]
fn what_jobs_made_goes_even_if_they_are_stopped_and_files_are_kept() {
    let load = Workload {
        length: Length::Seconds(3600.0),
        warmup_s: 0.0,
        keep: true,
        names: ["a", "b", "c", "d"].map(String::from).to_vec(),
        ..mix(&[(MixOp::Create, 50), (MixOp::Mkdir, 40), (MixOp::Unlink2, 10)], 0)
    };
    // Nothing of this mixture works on the files, so that there are none.
    for site in Site::both() {
        let control = Control::new();
        let hand = control.clone();
        let prepared = prepare(&site.target(), &load).unwrap();
        let result = prepared
            .run(&control, |window| {
                if window.operations > 0 {
                    hand.stop();
                }
            })
            .unwrap();
        assert!(result.is_clean(), "{:?}", result.errors);
        assert!(result.total.operations > 0);
        assert_eq!(site.names_in(&["weir-bench"]), Vec::<String>::new());
    }
}

#[test]
fn data_of_a_mixture_can_be_verified() {
    let shares = [(MixOp::ReadFile, 25), (MixOp::WriteFile, 25), (MixOp::ReadRandom, 50)];
    let load = Workload {
        verify_reads: true,
        verify: Some(weir_load::VerifyScope::All),
        file_bytes: 64 << 10,
        ..mix(&shares, 500)
    };
    for site in Site::both() {
        let verify = site.run(&load).verify.unwrap();
        assert_eq!(verify.checked + verify.unread, 64);
        assert!(verify.in_passing > 250, "{verify:?}");
    }
}

#[test]
fn files_are_created_without_being_removed_and_removed_without_being_created() {
    let load = |operation, operations| Workload {
        operation,
        jobs: 3,
        files: 30,
        depth: 2,
        file_bytes: 5000,
        layout: Layout::Written { block_bytes: 4096 },
        length: Length::Operations(operations),
        ..workload(Pattern::Random, 100, 1)
    };
    for site in Site::both() {
        for (operation, kind, operations) in
            [(Operation::Create, "create", 200), (Operation::Remove, "remove", 30)]
        {
            let result = site.run(&load(operation, operations));
            let kinds: Vec<_> = result.by_operation.iter().collect();
            assert_eq!(kinds.len(), 1);
            assert_eq!((kinds[0].0.as_str(), kinds[0].1.operations), (kind, operations));
            assert_eq!(site.names(), Vec::<String>::new());
        }
    }
}
