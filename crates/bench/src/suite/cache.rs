//! Caches: what a step wants of them, what is done about that, and what remains open.

use super::data;
use super::options::CacheOptions;
use std::process::{Command, Stdio};
use weir_core::units::Bytes;
use weir_load::error::BenchError;
use weir_load::workload::{Layout, Length, Operation, Pattern, Workload};
use weir_results::CacheProof;
use weir_scenario::scenario::{Cache, Scenario};

/// The file that makes the kernel drop its caches (proc_sys_vm(5)).
const DROP: &str = "/proc/sys/vm/drop_caches";
/// Directory of the data that is read to push other data out.
pub(super) const FLUSH_DIRECTORY: &str = "weir-bench-flush";
/// Bytes of one read of a pass over files: every NFS server takes it.
const PASS_BLOCK: u32 = 64 << 10;
/// Lines of the errors of a command that are told.
const LINES_MAX: usize = 3;
/// A data set so many times the cache's size answers at most a tenth of random reads from it.
const TIMES_AMPLE: f64 = 10.0;
const MEMORY_UNKNOWN: &str = "the server's memory is unknown, so its cache may contain the data set; \
                              set it with --server-memory";

/// The known state before the step of `loads` begins.
pub(super) fn proof(wanted: Cache, loads: &[Workload], options: &CacheOptions) -> CacheProof {
    let mut proof = CacheProof {
        wanted,
        data_bytes: data::bytes(loads),
        client_memory_bytes: options.client_memory,
        server_memory_bytes: options.server_memory,
        done: Vec::new(),
        open: Vec::new(),
    };
    if wanted == Cache::Excluded {
        client(&mut proof, loads, options);
        server(&mut proof, options);
    }
    proof
}

fn client(proof: &mut CacheProof, loads: &[Workload], options: &CacheOptions) {
    let memory = proof.client_memory_bytes;
    if !options.on_path {
        let what = "the client is Weir's own in user space, and does not cache data";
        proof.done.push(what.to_owned());
    } else if loads.iter().all(|load| load.direct) {
        proof.done.push("files are opened with O_DIRECT, past the client's page cache".to_owned());
    } else if proof.data_bytes < memory {
        proof.open.push(format!(
            "the data set ({}) fits into the client's memory ({}): repeated reads may be served \
             from its page cache; use --direct or a larger --max-data",
            Bytes(proof.data_bytes),
            Bytes(memory)
        ));
    } else {
        compare(proof, memory, "the client's memory");
    }
}

fn server(proof: &mut CacheProof, options: &CacheOptions) {
    match proof.server_memory_bytes {
        None => proof.open.push(MEMORY_UNKNOWN.to_owned()),
        Some(memory) if proof.data_bytes < memory => proof.open.push(format!(
            "the data set ({}) fits into the server's memory ({}): repeated reads may be served \
             from it; use a larger --max-data",
            Bytes(proof.data_bytes),
            Bytes(memory)
        )),
        Some(memory) => compare(proof, memory, "the server's memory"),
    }
    if !options.emptied_by().is_empty() {
        return;
    }
    match options.ineffective() {
        none if none.is_empty() => proof.open.push(
            "the server's caches were not emptied before the step; see --invalidate-command, \
             --drop-caches and --flush-read"
                .to_owned(),
        ),
        reasons => proof.open.extend(reasons),
    }
}

/// A data set larger than a memory.
#[expect(clippy::cast_precision_loss, reason = "a ratio needs no more than 52 bits")]
fn compare(proof: &mut CacheProof, memory: u64, whose: &str) {
    let times = proof.data_bytes as f64 / memory.max(1) as f64;
    proof.done.push(format!("the data set is {times:.1} times {whose}"));
    if times < TIMES_AMPLE {
        let percent = 100.0 / times;
        proof
            .open
            .push(format!("up to {percent:.0} % of the data set can be in {whose} nevertheless"));
    }
}

/// Sentences about the caches of `scenarios` that are to be excluded, known before anything is run.
#[must_use]
pub fn cache_remarks(scenarios: &[Scenario], options: &CacheOptions) -> Vec<String> {
    if !excludes_caches(scenarios) {
        return Vec::new();
    }
    let mut all = options.ineffective();
    if options.server_memory.is_none() {
        all.push(MEMORY_UNKNOWN.to_owned());
    }
    all
}

/// Runs the command that is to empty caches, if it is needed: one that fails would be noticed only
/// after the files are laid out, and be of no use in any step.
///
/// # Errors
/// [`BenchError::Workload`] if the command fails.
pub(super) fn try_command(
    scenarios: &[Scenario],
    options: &CacheOptions,
) -> Result<(), BenchError> {
    let Some(command) = options.command.as_ref().filter(|_| excludes_caches(scenarios)) else {
        return Ok(());
    };
    run(command).map_err(|why| {
        BenchError::Workload(format!(
            "`{command}`, given by --invalidate-command, does not empty caches: {why}"
        ))
    })
}

fn excludes_caches(scenarios: &[Scenario]) -> bool {
    let mut runnable = scenarios.iter().filter(|scenario| scenario.waiting.is_none());
    runnable.any(|one| one.steps.iter().any(|step| step.cache == Cache::Excluded))
}

/// Empties what can be emptied, once the files are laid out.
pub(super) fn empty(proof: &mut CacheProof, options: &CacheOptions) {
    if proof.wanted != Cache::Excluded {
        return;
    }
    if options.on_path {
        note(&mut proof.done, "files were dropped from the client's page cache when opened");
    }
    if options.drops() {
        rustix::fs::sync();
        match std::fs::write(DROP, "3") {
            Ok(()) => note(&mut proof.done, "the kernel caches of this machine were dropped"),
            Err(error) => note(&mut proof.open, &format!("cannot write to {DROP}: {error}")),
        }
    }
    if let Some(command) = &options.command {
        match run(command) {
            Ok(()) => note(&mut proof.done, &format!("caches were emptied by `{command}`")),
            Err(why) => {
                note(
                    &mut proof.open,
                    &format!("`{command}` was to empty caches and failed: {why}"),
                );
            }
        }
    }
}

fn run(command: &str) -> Result<(), String> {
    let output = Command::new("sh")
        .args(["-c", command])
        .stdin(Stdio::null())
        .output()
        .map_err(|error| error.to_string())?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let all: Vec<&str> = said.trim().lines().collect();
    let last = all.get(all.len().saturating_sub(LINES_MAX)..).unwrap_or_default();
    Err(format!("{} {}", output.status, last.join("; ")).trim().to_owned())
}

fn note(list: &mut Vec<String>, sentence: &str) {
    if !list.iter().any(|said| said == sentence) {
        list.push(sentence.to_owned());
    }
}

/// The load as it is applied where caches are to be empty.
pub(super) fn without_caches(load: &mut Workload, wanted: Cache, options: &CacheOptions) {
    if wanted == Cache::Excluded && options.on_path {
        load.invalidate = true;
    }
}

/// A pass over all data of `load`, front to back, once: it lays the files out and fills caches. It
/// has the files of `load` and nothing of its order, rates or limits, which could end it early.
pub(super) fn pass(load: &Workload) -> Workload {
    let jobs = load.files.min(16);
    let per_job = load.file_bytes.saturating_mul(u64::from(load.files.div_ceil(jobs)));
    let most = u32::try_from(load.file_bytes).unwrap_or(u32::MAX);
    // Data that is to be verified later is laid out in stamped blocks of its own size.
    let block = if load.verifies() { load.block_bytes } else { PASS_BLOCK };
    Workload {
        name: load.name.clone(),
        operation: Operation::Data { pattern: Pattern::Sequential, read_percent: 100 },
        block_bytes: block.min(most).max(1),
        jobs,
        connections: jobs.min(4),
        depth: 8,
        threads: load.threads,
        length: Length::Bytes { per_job, at_most_s: None },
        warmup_s: 0.0,
        target: load.target.clone(),
        directory: load.directory.clone(),
        files: load.files,
        file_bytes: load.file_bytes,
        names: load.names.clone(),
        layout: load.layout,
        // Reads through the client's page cache may not reach the server's.
        direct: load.direct,
        verify_reads: load.verifies(),
        keep: load.keep,
        hosts: load.hosts.clone(),
        ..Workload::default()
    }
}

/// A pass as it can be applied: a mount has the connections with which it was mounted.
pub(super) fn as_mounted(load: Workload, options: &CacheOptions) -> Workload {
    if options.on_path { Workload { connections: 1, ..load } } else { load }
}

/// A load that only lays out the files of `load`: one read of each job of a pass.
pub(super) fn lay_out(load: &Workload) -> Workload {
    let pass = pass(load);
    Workload { length: Length::Operations(u64::from(pass.jobs)), ..pass }
}

/// Passes over `bytes` of other data on each target of `loads`.
pub(super) fn flushes(loads: &[Workload], bytes: u64) -> Vec<Workload> {
    data::targets(loads).into_iter().map(|target| flush(target, bytes)).collect()
}

/// A pass over `bytes` of other data on `target`.
fn flush(target: String, bytes: u64) -> Workload {
    let files = 4;
    pass(&Workload {
        name: "flush".to_owned(),
        target,
        directory: FLUSH_DIRECTORY.to_owned(),
        files,
        file_bytes: bytes.div_ceil(u64::from(files)).max(u64::from(PASS_BLOCK)),
        layout: Layout::Written { block_bytes: 1 << 20 },
        ..Workload::default()
    })
}

#[cfg(test)]
mod tests {
    use super::super::testing::scenario;
    use super::*;
    use weir_load::workload::{
        Draw, FileOrder, Flow, LatencyTarget, MinRate, Pacing, Positions, Rate, Starts, Visit,
    };

    fn of(data_gib: u64, options: &CacheOptions) -> CacheProof {
        let load = Workload { files: 1, file_bytes: data_gib << 30, ..Workload::default() };
        proof(Cache::Excluded, &[load], options)
    }

    fn known() -> CacheOptions {
        CacheOptions {
            client_memory: 8 << 30,
            server_memory: Some(16 << 30),
            server_is_here: false,
            command: Some("true".to_owned()),
            ..CacheOptions::default()
        }
    }

    #[test]
    fn a_client_in_user_space_caches_nothing_and_a_path_may() {
        let small = of(1, &known());
        assert!(small.done[0].contains("in user space"), "{small:?}");
        let path = of(1, &CacheOptions { on_path: true, ..known() });
        assert!(path.open[0].contains("client's memory (8 GiB)"), "{path:?}");
        let direct = Workload { direct: true, ..Workload::default() };
        let options = CacheOptions { on_path: true, ..known() };
        let direct = proof(Cache::Excluded, &[direct], &options);
        assert!(direct.done[0].contains("O_DIRECT"), "{direct:?}");
    }

    #[test]
    fn the_data_set_is_held_against_the_servers_memory() {
        let small = of(15, &known());
        assert!(small.open[0].contains("fits into the server's memory (16 GiB)"), "{small:?}");
        let twice = of(32, &known());
        assert!(twice.done[1].contains("2.0 times the server's memory"), "{twice:?}");
        assert!(twice.open[0].contains("50 %"), "{twice:?}");
        assert_eq!(of(160, &known()).open, Vec::<String>::new());
        let unknown = of(160, &CacheOptions { server_memory: None, ..known() });
        assert!(unknown.open[0].contains("--server-memory"), "{unknown:?}");
        let kept = of(160, &CacheOptions { command: None, ..known() });
        assert!(kept.open[0].contains("not emptied"), "{kept:?}");
    }

    #[test]
    fn other_data_empties_caches_only_if_it_is_as_large_as_the_memory() {
        let read = |bytes: u64, memory: Option<u64>| CacheOptions {
            command: None,
            read_bytes: Some(bytes),
            server_memory: memory,
            ..known()
        };
        let all = read(16 << 30, Some(16 << 30));
        assert_eq!(all.emptied_by(), ["reading 16 GiB of other data"]);
        assert_eq!((all.ineffective(), of(160, &all).open), (Vec::new(), Vec::new()));
        let little = read(1 << 20, Some(16 << 30));
        assert_eq!(little.emptied_by(), [""; 0]);
        let [told] = of(160, &little).open.try_into().unwrap();
        for part in ["--flush-read 1 MiB does not empty", "less than the server's memory (16 GiB)"]
        {
            assert!(told.contains(part), "{told}");
        }
        let unknown = read(1 << 40, None);
        assert_eq!(unknown.emptied_by(), [""; 0]);
        let open = of(160, &unknown).open;
        assert!(open[1].contains("unknown whether --flush-read 1 TiB empties"), "{open:?}");
        let both = CacheOptions { command: Some("true".to_owned()), ..little };
        assert_eq!(of(160, &both).open, [""; 0], "the command empties them");
        assert_eq!(both.ineffective().len(), 1);
    }

    #[test]
    fn caches_of_another_machine_are_not_dropped_here() {
        let drop = CacheOptions { drop: true, command: None, ..known() };
        let mut remote = of(160, &drop);
        let open = remote.open.clone();
        assert!(
            open[0].contains("--drop-caches empties no caches, because the server"),
            "{open:?}"
        );
        empty(&mut remote, &drop);
        assert_eq!(remote.open, open, "nothing was tried");
        assert!(!remote.done.iter().any(|done| done.contains("dropped")), "{remote:?}");
        let path = of(160, &CacheOptions { on_path: true, ..drop.clone() });
        assert!(path.open[0].contains("the client's caches alone"), "{path:?}");
        let here = CacheOptions { server_is_here: true, ..drop };
        assert!(here.drops() && of(160, &here).open.is_empty());
    }

    #[test]
    fn remarks_are_made_for_steps_that_exclude_caches() {
        let mut excluding = scenario(&["a"]);
        excluding.steps[0].cache = Cache::Excluded;
        let options = CacheOptions { drop: true, server_memory: None, command: None, ..known() };
        let told = cache_remarks(std::slice::from_ref(&excluding), &options);
        assert!(
            told[0].contains("--drop-caches") && told[1].contains("--server-memory"),
            "{told:?}"
        );
        assert_eq!(cache_remarks(std::slice::from_ref(&excluding), &known()), [""; 0]);
        excluding.waiting = Some("SMB".to_owned());
        assert_eq!(cache_remarks(&[excluding, scenario(&["b"])], &options), [""; 0]);
    }

    #[test]
    fn a_command_that_fails_is_told_and_one_that_succeeds_too() {
        let mut proof = of(160, &known());
        empty(&mut proof, &known());
        empty(&mut proof, &known());
        assert_eq!(proof.done.iter().filter(|done| done.contains("`true`")).count(), 1);
        let failing =
            CacheOptions { command: Some("echo no way >&2; exit 3".to_owned()), ..known() };
        empty(&mut proof, &failing);
        assert!(proof.open[0].contains("no way"), "{proof:?}");
        let command = Some("seq 1 9 >&2; false".to_owned());
        empty(&mut proof, &CacheOptions { command, ..known() });
        assert!(proof.open[1].ends_with("exit status: 1 7; 8; 9"), "{proof:?}");
    }

    #[test]
    fn nothing_is_emptied_unless_it_is_wanted() {
        let place = tempfile::tempdir().unwrap();
        let mark = place.path().join("ran");
        let options =
            CacheOptions { command: Some(format!("touch {}", mark.display())), ..known() };
        let mut any = proof(Cache::Any, &[], &options);
        empty(&mut any, &options);
        assert!(!mark.exists() && any.open.is_empty());
        let mut wanted = proof(Cache::Excluded, &[], &options);
        empty(&mut wanted, &options);
        assert!(mark.exists());
    }

    #[test]
    fn a_pass_reads_all_of_every_file_once() {
        let load = Workload { files: 40, file_bytes: 1 << 20, ..Workload::default() };
        let pass = pass(&load);
        pass.check().unwrap();
        // Sixteen jobs, of which some have three files and none more.
        assert_eq!(pass.jobs, 16);
        assert_eq!(pass.length, Length::Bytes { per_job: 3 << 20, at_most_s: None });
        let tiny = Workload { files: 1, file_bytes: 512, ..Workload::default() };
        super::pass(&tiny).check().unwrap();
        lay_out(&tiny).check().unwrap();
        flush(String::new(), 1).check().unwrap();
        flush(String::new(), 1 << 40).check().unwrap();
        let mounted = CacheOptions { on_path: true, ..known() };
        for pass in [super::pass(&load), flush(String::new(), 1 << 30)] {
            assert_eq!(as_mounted(pass.clone(), &known()).connections, 4);
            assert_eq!(as_mounted(pass, &mounted).connections, 1, "any mount has one");
        }
    }

    #[test]
    fn a_pass_has_the_files_of_its_load_and_nothing_that_ends_it_early() {
        let files = Workload {
            name: "files".to_owned(),
            target: "vol1".to_owned(),
            directory: "own".to_owned(),
            names: vec!["a".to_owned(), "b".to_owned()],
            files: 2,
            file_bytes: 1 << 20,
            hosts: vec!["h1".to_owned()],
            layout: Layout::Sparse,
            direct: true,
            ..Workload::default()
        };
        let restless = Workload {
            latency_target: Some(LatencyTarget {
                us: 1,
                window_us: 1,
                percent: 99.0,
                goes_on: false,
            }),
            visit: Some(Visit { requests: 2, again: true }),
            skip_bytes: 4096,
            min_rate: Some(MinRate::Operations(1e9)),
            flow: Some(Flow { group: 1, weight: 3, sleep_us: 0 }),
            file_order: FileOrder::InTurn,
            starts: Starts::Interlocked,
            positions: Positions::ByDirection,
            draw: Draw::Zipf { theta: 0.5 },
            pacing: Pacing::Poisson,
            rate: Rate::Operations(1.0),
            cooldown_s: 9.0,
            ..files.clone()
        };
        assert_eq!(pass(&restless), pass(&files));
        let pass = pass(&files);
        let of = |load: &Workload| {
            (load.location(), load.names.clone(), load.hosts.clone(), load.layout, load.direct)
        };
        assert_eq!(of(&pass), of(&files));
        assert_eq!((pass.files, pass.file_bytes), (2, 1 << 20));
        pass.check().unwrap();
    }
}
