//! Tests of the capacity of disks, and of the promises on it.

use super::*;
use weir_api::{Calibration, CalibrationCell, CalibrationLoad, NewCalibration, Policy};

/// 20 MiB/s at 64 KiB and 800 IOPS at 8 KiB.
fn measured() -> NewCalibration {
    let cell = |block_bytes, iops: u64| CalibrationCell {
        read_percent: 0,
        block_bytes,
        bytes_per_second: iops * u64::from(block_bytes),
        iops,
        mean_nanos: 1_000_000,
        p99_nanos: 9_000_000,
        server_cpu_nanos: None,
        saturated: false,
    };
    let load = CalibrationLoad {
        jobs: 4,
        depth: 16,
        millis: 5000,
        data_bytes: 1 << 20,
        ..CalibrationLoad::default()
    };
    NewCalibration { cells: vec![cell(8192, 800), cell(65_536, 320)], load }
}

/// A manual pool of 64 MiB/s, a volume of 16 MiB/s, and what its file system holds.
async fn calibrated() -> (Running, Calibration) {
    let running = Running::with_volume(Qos::Manual).await;
    let directory = running.directory.path().join("pools");
    let directory = directory.to_str().unwrap();
    let kept = running.client.keep_calibration(directory, &measured(), Dry::No).await.unwrap();
    let kept = kept.item.unwrap();
    (running, kept)
}

fn given(mib: u64) -> VolumeChange {
    let throughput_bytes_per_second = Some(mib << 20);
    VolumeChange {
        terms: TermsChange { throughput_bytes_per_second, ..TermsChange::default() },
        ..VolumeChange::default()
    }
}

#[tokio::test]
async fn what_was_measured_is_kept_shown_and_forgotten() {
    let (running, kept) = calibrated().await;
    let client = &running.client;
    assert_eq!((kept.cells.len(), kept.load.jobs), (2, 4));
    assert!(kept.in_memory && kept.machine.memory_bytes > 0);
    assert_eq!((kept.machine.durability.as_str(), kept.at.len()), ("power", 20));
    assert_eq!(client.calibration(&kept.directory).await.unwrap(), kept);
    assert_eq!(client.calibrations().await.unwrap(), std::slice::from_ref(&kept));
    let capacity = client.capacity().await.unwrap();
    assert_eq!((capacity.policy, capacity.mix.as_str()), (Policy::Refuse, "worst"));
    let [there] = &capacity.filesystems[..] else { panic!("{capacity:?}") };
    assert_eq!((&there.directory, &there.pools[..]), (&kept.directory, &["p".to_owned()][..]));
    assert_eq!(there.committed_bytes_per_second, 16 << 20);
    assert_eq!((there.holds_bytes_per_second, there.holds_iops), (Some(20 << 20), Some(800)));
    assert_eq!(there.allowed_bytes_per_second, there.holds_bytes_per_second);
    assert_eq!(there.calibrated.as_ref(), Some(&kept.at));
    let metrics = client.metrics().await.unwrap();
    let line = format!(
        "weir_filesystem_holds_operations_per_second{{directory=\"{}\"}} 800",
        kept.directory
    );
    assert!(metrics.contains(&line), "{metrics}");
    // For one state only, as everything else.
    let late = client.if_match("0123");
    assert_eq!(refusal(late.forget_calibration(&kept.directory, Dry::No).await).0, 412);
    assert_eq!(refusal(late.keep_calibration(&kept.directory, &measured(), Dry::No).await).0, 412);
    let mine = client.if_match(&kept.etag);
    mine.forget_calibration(&kept.directory, Dry::Run).await.unwrap();
    mine.forget_calibration(&kept.directory, Dry::No).await.unwrap();
    let (status, error) = refusal(client.calibration(&kept.directory).await);
    assert_eq!((status, error.code.as_str()), (404, "no_such_calibration"));
    assert_eq!(refusal(mine.keep_calibration(&kept.directory, &measured(), Dry::No).await).0, 412);
    let there = &client.capacity().await.unwrap().filesystems[0];
    assert_eq!((there.holds_iops, &there.calibrated), (None, &None));
    let metrics = client.metrics().await.unwrap();
    assert!(!metrics.contains("weir_filesystem_holds"), "no head without a sample: {metrics}");
    running.stop().await;
}

#[tokio::test]
async fn what_can_not_be_kept_is_refused_with_the_reason() {
    let running = Running::start().await;
    let keep = |directory: &'static str, new: NewCalibration| {
        let client = running.client.clone();
        async move { refusal(client.keep_calibration(directory, &new, Dry::No).await) }
    };
    let (status, error) = keep("/nowhere/at/all", measured()).await;
    assert_eq!((status, error.code.as_str()), (400, "bad_path"));
    assert!(
        error.message.contains("cannot be calibrated: it is not a directory"),
        "{}",
        error.message
    );
    let (status, error) = keep("/", NewCalibration { cells: Vec::new(), ..measured() }).await;
    assert_eq!((status, error.code.as_str()), (400, "bad_calibration"));
    running.stop().await;
}

#[tokio::test]
async fn what_disks_do_not_hold_is_refused_unless_it_is_meant_and_that_is_recorded() {
    let (running, kept) = calibrated().await;
    let client = &running.client;
    for dry in [Dry::Run, Dry::No] {
        let (status, error) = refusal(client.change_volume("v", &given(21), dry).await);
        assert_eq!((status, error.code.as_str()), (422, "hardware_exceeded"));
        for part in
            ["21 MiB/s (now 16 MiB/s)", "capacity is 20 MiB/s", &kept.directory, "--overcommit"]
        {
            assert!(error.message.contains(part), "{}", error.message);
        }
    }
    let within = client.change_volume("v", &given(20), Dry::No).await.unwrap();
    assert!(within.warnings.is_empty());
    let meant = client.overcommitting();
    let shown = meant.change_volume("v", &given(30), Dry::Run).await.unwrap();
    assert_eq!((shown.dry_run, shown.warnings.len()), (true, 1));
    let changed = meant.change_volume("v", &given(30), Dry::No).await.unwrap();
    assert_eq!(changed.warnings[0].code, "hardware_exceeded");
    let told = &changed.warnings[0].message;
    assert!(told.contains("30 MiB/s (now 20 MiB/s)"), "{told}");
    let log = client.audit(&weir_api::AuditQuery::default()).await.unwrap();
    let [.., refused, within, last] = &log.items[..] else { panic!("{log:?}") };
    assert_eq!(refused.code.as_deref(), Some("hardware_exceeded"));
    assert_eq!(within.note, None);
    assert!(last.path.as_ref().unwrap().ends_with("/v?overcommit=true"), "{last:?}");
    assert_eq!(last.note.as_ref(), Some(told));
    assert!(client.capacity().await.unwrap().filesystems[0].overcommitted);
    // The volume shrinks and lives on.
    client.change_volume("v", &given(25), Dry::No).await.unwrap();
    running.stop().await;
}

#[tokio::test]
async fn looking_is_for_viewers_and_measuring_for_operators() {
    let (running, kept) = calibrated().await;
    let token = |role| {
        let new = weir_api::NewToken { name: format!("{role}"), role, expires: None };
        let client = running.client.clone();
        async move { client.create_token(&new).await.unwrap().secret }
    };
    let viewer = running.tcp(Some(token(weir_api::Role::Viewer).await));
    viewer.capacity().await.unwrap();
    assert_eq!(viewer.calibrations().await.unwrap().len(), 1);
    let refused = viewer.keep_calibration(&kept.directory, &measured(), Dry::No).await;
    assert_eq!(refusal(refused).0, 403);
    let operator = running.tcp(Some(token(weir_api::Role::Operator).await));
    operator.keep_calibration(&kept.directory, &measured(), Dry::No).await.unwrap();
    operator.forget_calibration(&kept.directory, Dry::No).await.unwrap();
    running.stop().await;
}
