//! The SMB engine of `weir bench` against the server: plain, signed and sealed; data that is
//! verified, metadata, and the words where it can't begin.

use crate::bench::killed_runs_leave_what_is_not_theirs;
use crate::smb_share::{PASSWORD, Share};
use std::path::PathBuf;
use std::process::{Command, Output};
use weir_load::engine::{SmbTop, Waits};
use weir_load::{
    Control, Layout, Length, MixOp, OpShare, Operation, Password, Pattern, RunResult, SmbSecurity,
    SmbTarget, Stability, Target, VerifyScope, Workload, prepare,
};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const ALL: [SmbSecurity; 3] = [SmbSecurity::None, SmbSecurity::Sign, SmbSecurity::Seal];

impl Share {
    fn tree(&self) -> PathBuf {
        self.server.data().join("pools/1/volumes/1/root")
    }

    /// Names in the volume.
    fn left(&self) -> Vec<String> {
        let names = std::fs::read_dir(self.tree()).unwrap();
        names.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect()
    }

    /// Applies `load`, which has to go well and leave nothing.
    fn run(&self, security: SmbSecurity, load: &Workload) -> RunResult {
        let prepared = prepare(&Target::Smb(self.target(security)), load).unwrap();
        let result = prepared.run(&Control::new(), |_| {}).unwrap();
        assert!(result.is_clean(), "{security:?}: {result:?}");
        assert_eq!(self.left(), Vec::<String>::new(), "{security:?}");
        result
    }

    fn bench(&self, password: &str, args: &[&str]) -> Output {
        let url = format!("smb://ada@{}/vol", self.address);
        Command::new(WEIR)
            .args(["bench", &url])
            .args(args)
            .env("WEIR_SMB_PASSWORD", password)
            .output()
            .unwrap()
    }
}

fn load(operation: Operation, operations: u64) -> Workload {
    Workload {
        operation,
        length: Length::Operations(operations),
        file_bytes: 1 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..Workload::default()
    }
}

#[test]
fn what_is_written_is_read_back_under_every_protection() {
    let share = Share::new("offered");
    for security in ALL {
        for block_bytes in [4096, 256 << 10] {
            let mixed = Operation::Data { pattern: Pattern::Random, read_percent: 50 };
            let load = Workload {
                block_bytes,
                file_bytes: 64 * u64::from(block_bytes),
                jobs: 4,
                files: 4,
                clients: 2,
                connections: 2,
                depth: 8,
                verify: Some(VerifyScope::All),
                verify_reads: true,
                commit_every: Some(50),
                stability: Stability::FileSync,
                end_sync: true,
                ..load(mixed, 600)
            };
            let result = share.run(security, &load);
            let verify = result.verify.unwrap();
            assert!(verify.checked > 0 && verify.in_passing > 0, "{verify:?}");
            assert_eq!((verify.mismatches, verify.unread), (0, 0));
            assert_eq!(result.connections.opened, 4);
        }
    }
}

#[test]
fn a_killed_run_is_cleaned_up_by_the_next_over_smb() {
    let share = Share::new("offered");
    let place = tempfile::TempDir::new().unwrap();
    let job = place.path().join("job.fio");
    let text = "[one]\nrw=randread\nbs=4k\nsize=4m\nnumjobs=2\ntime_based\nruntime=600\n";
    std::fs::write(&job, text).unwrap();
    let url = format!("smb://ada@{}/vol", share.address);
    let make = |directory: &str| {
        let mut top = SmbTop::open(&share.target(SmbSecurity::Sign), &Waits::default()).unwrap();
        assert!(top.make(directory).unwrap());
    };
    killed_runs_leave_what_is_not_theirs((&url, &share.server), job.to_str().unwrap(), make);
}

#[test]
fn data_that_nobody_looks_at_is_counted_in_full() {
    let share = Share::new("offered");
    for security in ALL {
        for (read_percent, operations) in [(100, 400), (0, 100)] {
            let order = Operation::Data { pattern: Pattern::Sequential, read_percent };
            let load = Workload { block_bytes: 128 << 10, depth: 4, ..load(order, operations) };
            let result = share.run(security, &load);
            assert_eq!(result.total.operations, operations);
            assert_eq!(result.total.bytes, operations * (128 << 10));
        }
    }
}

#[test]
fn every_kind_of_metadata_load_leaves_nothing() {
    use MixOp::{
        Access, Chmod, Create, Lookup, Mkdir, ReadFile, ReadRandom, Rmdir, Stat, Unlink, Unlink2,
        WriteFile, WriteSequential,
    };
    let share = Share::new("offered");
    let kinds = [
        Access,
        Chmod,
        Create,
        Lookup,
        Mkdir,
        ReadFile,
        ReadRandom,
        Rmdir,
        Stat,
        Unlink,
        Unlink2,
        WriteFile,
        WriteSequential,
    ];
    let mix = kinds.into_iter().zip([8_u8; 12].into_iter().chain([4]));
    let mix: Vec<OpShare> = mix.map(|(op, percent)| OpShare { op, percent }).collect();
    for security in ALL {
        let mixed = Workload {
            mix: mix.clone(),
            jobs: 2,
            files: 6,
            file_bytes: 64 << 10,
            block_bytes: 16 << 10,
            layout: Layout::Sparse,
            ..load(Operation::Mix, 800)
        };
        let result = share.run(security, &mixed);
        assert!(result.by_operation.len() >= 11, "{:?}", result.by_operation);
        for operation in [Operation::Null, Operation::Getattr, Operation::CreateRemove] {
            share.run(security, &load(operation, 200));
        }
    }
}

#[test]
fn a_step_of_several_loads_shares_files_and_existing_files_are_used() {
    let share = Share::new("offered");
    let random = |read_percent| Operation::Data { pattern: Pattern::Random, read_percent };
    let kept = Workload { keep: true, ..load(random(0), 50) };
    let prepared = prepare(&Target::Smb(share.target(SmbSecurity::Sign)), &kept).unwrap();
    prepared.run(&Control::new(), |_| {}).unwrap();
    assert_eq!(share.left(), [kept.directory.as_str()]);
    let again = Workload { layout: Layout::Existing, ..load(random(100), 50) };
    let prepared = prepare(&Target::Smb(share.target(SmbSecurity::Sign)), &again).unwrap();
    assert!(prepared.run(&Control::new(), |_| {}).unwrap().is_clean());
    let larger = Workload { file_bytes: 2 << 20, ..again };
    let error =
        prepare(&Target::Smb(share.target(SmbSecurity::Sign)), &larger).err().unwrap().to_string();
    assert!(error.contains("2097152 are required"), "{error}");
}

#[test]
fn a_load_that_cannot_begin_says_why() {
    let share = Share::new("required");
    let load = load(Operation::Null, 1);
    let told = |target: &Target| prepare(target, &load).err().unwrap().to_string();
    let unsigned = told(&Target::Smb(share.target(SmbSecurity::None)));
    assert!(unsigned.contains("--smb-security sign"), "{unsigned}");
    let good = share.target(SmbSecurity::Sign);
    let wrong = SmbTarget { password: Password::new("wrong".to_owned()), ..good.clone() };
    let wrong = told(&Target::Smb(wrong));
    assert!(wrong.contains("LOGON_FAILURE") && wrong.contains("the password"), "{wrong}");
    let nowhere = told(&Target::Smb(SmbTarget { share: "none".to_owned(), ..good.clone() }));
    assert!(
        nowhere.contains("BAD_NETWORK_NAME") && nowhere.contains("does not exist"),
        "{nowhere}"
    );
    let silent = told(&Target::Smb(SmbTarget { password: Password::default(), ..good }));
    assert!(silent.contains("WEIR_SMB_PASSWORD"), "{silent}");
}

#[test]
fn the_command_line_measures_a_share_and_never_shows_the_password() {
    let share = Share::new("offered");
    let args = ["--rw", "randrw", "--ops", "300", "--size", "1MiB", "--verify", "--output", "json"];
    for security in ["none", "sign", "seal"] {
        let done = share.bench(PASSWORD, &[&args[..], &["--smb-security", security]].concat());
        let (out, told) = (String::from_utf8_lossy(&done.stdout), done.stderr);
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&told));
        assert!(out.contains("smb://ada@") && !out.contains("horse"), "{out}");
        assert!(!String::from_utf8_lossy(&told).contains("horse"));
    }
    let refused = share.bench("wrong", &args);
    let told = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && told.contains("LOGON_FAILURE"), "{told}");
    assert_eq!(share.left(), Vec::<String>::new());
}
