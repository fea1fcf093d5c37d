//! Every option of fio (3.33) and what becomes of it here: the one table from which options are
//! read, refused and documented (`docs/bench-languages.md`).

use OptionKind::{Flag, Value};
use Treatment::{Drives, NoEffect, Only, Refused, Reporting};

/// Does an option need a value?
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OptionKind {
    /// The option may stand alone.
    Flag,
    /// The option needs a value.
    Value,
}

/// The treatment of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Treatment {
    /// The option decides about the load: the property, in a few words.
    Drives(&'static str),
    /// The option only says how fio reports.
    Reporting,
    /// The option is accepted and changes nothing here, for this reason.
    NoEffect(&'static str),
    /// Only these values, which change nothing, are accepted; others are refused: why.
    Only(&'static [&'static str], &'static str),
    /// The option is refused: the reason, or the remedy.
    Refused(&'static str),
}

/// One option.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Known {
    /// The option's name.
    pub name: &'static str,
    /// Other names of it.
    pub aliases: &'static [&'static str],
    /// Does it need a value?
    pub kind: OptionKind,
    /// The option's treatment.
    pub treatment: Treatment,
}

const fn row(
    name: &'static str,
    aliases: &'static [&'static str],
    kind: OptionKind,
    treatment: Treatment,
) -> Known {
    Known { name, aliases, kind, treatment }
}

const fn drives(name: &'static str, what: &'static str) -> Known {
    row(name, &[], Value, Drives(what))
}

const fn reports(name: &'static str) -> Known {
    row(name, &[], Value, Reporting)
}

const fn nothing(name: &'static str, because: &'static str) -> Known {
    row(name, &[], Value, NoEffect(because))
}

const fn only(name: &'static str, values: &'static [&'static str], because: &'static str) -> Known {
    row(name, &[], Value, Only(values, because))
}

const fn refused(name: &'static str, because: &'static str) -> Known {
    row(name, &[], Value, Refused(because))
}

const ZONES: &str = "zones are a matter of devices, and Weir measures files";
const TRIM: &str = "TRIM is a matter of devices, and Weir measures files";
const TRACE: &str = "traces are not played or written";
const OVERLAP: &str = "requests leave one by one as earlier ones are answered";
const PLACE: &str = "where the generator's threads run is left to the system; start it under taskset, numactl or nice";
const MEMORY: &str = "buffers are the generator's own";
const HONEST: &str = "data is always of chance, so that nothing can compress or deduplicate it";
const ONE_VERIFY: &str =
    "Weir has its own verification, of every block by address, generation and checksum";
const PRIORITY: &str = "requests carry no priorities over NFS and SMB";
const ENGINE: &str = "it is a detail of fio's engine";
const ERRORS: &str = "failed requests are counted and the load goes on";

/// Options of jobs.
pub(crate) const JOB: &[Known] = &[
    drives("name", "name of the load; on a command line a new job"),
    drives("description", "description of the scenario"),
    drives("directory", "directory of the files"),
    drives("filename", "names of the files, shared by all clones of the job"),
    drives("filename_format", "pattern for generated file names"),
    drives("nrfiles", "files of each clone"),
    drives("numjobs", "jobs of the load"),
    row(
        "rw",
        &["readwrite"],
        Value,
        Drives(
            "order of the blocks, reads or writes or both; read:8k leaves 8k out after each request, read:-8k goes backwards, randread:8 sends 8 requests from each place",
        ),
    ),
    drives("rwmixread", "percentage of reads"),
    drives("rwmixwrite", "percentage of writes"),
    row("bs", &["blocksize"], Value, Drives("block size, for reads and for writes")),
    drives("bssplit", "sizes and their shares, of reads and of writes"),
    row(
        "bsrange",
        &["blocksize_range"],
        Value,
        Drives(
            "bytes of a request, if both ends are the same; a range is refused: its sizes are not equally likely in fio; use bssplit",
        ),
    ),
    row(
        "ba",
        &["blockalign"],
        Value,
        Drives("alignment of random offsets; blocks may then be accessed more than once per pass"),
    ),
    drives("size", "total size of a job's files, and the bytes that it transfers"),
    drives("filesize", "bytes of each file"),
    row("io_size", &["io_limit"], Value, Drives("bytes that a job transfers")),
    drives("offset", "start of the accessed part of each file"),
    drives("offset_increment", "additional offset of each following clone"),
    drives("number_ios", "requests that a job sends"),
    drives("loops", "number of times that a job transfers its bytes"),
    drives("iodepth", "requests in flight per job; 1 with synchronous engines"),
    drives(
        "ioengine",
        "whether iodepth applies; filecreate, filestat and filedelete create, look up and remove files; nfs takes its target from nfs_url",
    ),
    drives(
        "io_submit_mode",
        "offload: iodepth applies with synchronous engines, too; requests of a rate are due at their time in both modes",
    ),
    drives("nfs_url", "the target, unless another is given"),
    drives(
        "direct",
        "O_DIRECT on a path; FILE_SYNC writes over NFS, as the Linux kernel sends them",
    ),
    drives("buffered", "the opposite of direct"),
    drives("sync", "stability of writes"),
    drives(
        "invalidate",
        "whether files are dropped from the page cache first, for a path (the default, as in fio)",
    ),
    drives("pre_read", "fill caches before the step"),
    drives("fsync", "number of writes after which a COMMIT is sent (fdatasync on a path)"),
    drives("fdatasync", "number of writes after which a COMMIT is sent (fdatasync on a path)"),
    drives("end_fsync", "a COMMIT (fsync on a path) of each file at the end"),
    drives("fsync_on_close", "as end_fsync: files are closed at the end"),
    row("runtime", &["timeout"], Value, Drives("seconds of load")),
    row("time_based", &[], Flag, Drives("whether the load continues until its time has passed")),
    drives("ramp_time", "seconds of warm-up; needs time_based"),
    drives("startdelay", "delay of the load in seconds"),
    row("stonewall", &["wait_for_previous"], Flag, Drives("a new step")),
    drives("randrepeat", "whether the order of blocks differs each time the file is read"),
    drives("allrandrepeat", "as randrepeat"),
    drives("randseed", "the seed"),
    row(
        "norandommap",
        &[],
        Flag,
        Drives("every block has the same probability each time, instead of once per pass"),
    ),
    drives("random_generator", "lfsr accesses each block once per pass"),
    drives(
        "random_distribution",
        "random, zipf:THETA, pareto:H, normal:DEVIATION, zoned:… or zoned_abs:…; the most wanted blocks lie elsewhere than in fio",
    ),
    drives(
        "rw_sequencer",
        "whether rw=randread:N sends N requests for blocks one behind the other, or for the same",
    ),
    drives("percentage_random", "percentage of requests at a random offset"),
    drives("rate", "bytes per second of each job; reads and writes of a mix become separate loads"),
    drives("rate_iops", "requests per second of each job; as rate"),
    drives("rate_process", "even intervals or a Poisson process"),
    row(
        "rate_min",
        &["ratemin"],
        Value,
        Drives(
            "bytes per second below which a job ends, which is an error; from 2 s on, every second",
        ),
    ),
    drives("rate_iops_min", "requests per second below which a job ends; as rate_min"),
    drives(
        "latency_target",
        "latency that a job keeps by adjusting its requests in flight, up to iodepth; the results name the largest number",
    ),
    drives("latency_window", "time for which each number of requests is tried; needed"),
    drives(
        "latency_percentile",
        "percentage of the requests that keep the latency; 100 by default",
    ),
    drives("latency_run", "whether the job goes on when it has found the number"),
    drives(
        "flow",
        "weight of each job: requests of jobs of one flow_id are in this proportion; a mix with rates divides it between its two loads",
    ),
    drives("flow_id", "the jobs that keep a proportion"),
    drives("flow_sleep", "microseconds after which a job that is ahead looks again"),
    drives("wait_for", "a new step; the job must be the only one of the step before"),
    drives("thinktime", "pause of a job"),
    drives("thinktime_blocks", "requests between two pauses"),
    drives("overwrite", "whether the files of a write-only job are written before the load"),
    drives(
        "verify",
        "read back and verify written data, with Weir's method; accepts any checksum of fio",
    ),
    drives("do_verify", "whether written data is read back"),
    drives(
        "file_service_type",
        "order of a job's files: roundrobin (the default) alternates; sequential applies to sequential order, random to random order, and others are noted",
    ),
    drives("kb_base", "meaning of k, m and g"),
    row(
        "exitall",
        &[],
        Flag,
        Drives("nothing where all loads of a step end together; refused otherwise"),
    ),
    // Reporting.
    row("group_reporting", &[], Flag, Reporting),
    row("new_group", &[], Flag, Reporting),
    reports("unified_rw_reporting"),
    reports("lat_percentiles"),
    reports("clat_percentiles"),
    reports("slat_percentiles"),
    reports("percentile_list"),
    reports("significant_figures"),
    reports("disable_lat"),
    reports("disable_clat"),
    reports("disable_slat"),
    row("disable_bw_measurement", &["disable_bw"], Value, Reporting),
    reports("gtod_reduce"),
    reports("stats"),
    reports("disk_util"),
    reports("unit_base"),
    row("write_bw_log", &[], Flag, Reporting),
    row("write_lat_log", &[], Flag, Reporting),
    row("write_iops_log", &[], Flag, Reporting),
    row("write_hist_log", &[], Flag, Reporting),
    reports("per_job_logs"),
    reports("log_entries"),
    reports("log_avg_msec"),
    reports("log_hist_msec"),
    reports("log_hist_coarseness"),
    reports("log_max_value"),
    reports("log_offset"),
    reports("log_prio"),
    reports("log_compression"),
    reports("log_compression_cpus"),
    reports("log_store_compressed"),
    reports("log_unix_epoch"),
    reports("log_alternate_epoch"),
    reports("log_alternate_epoch_clock_id"),
    reports("bwavgtime"),
    reports("iopsavgtime"),
    reports("block_error_percentiles"),
    reports("error_dump"),
    // Accepted, no effect.
    row(
        "thread",
        &["threads"],
        Flag,
        NoEffect("jobs are streams of requests here, neither threads nor processes"),
    ),
    row("refill_buffers", &[], Flag, NoEffect(HONEST)),
    nothing("scramble_buffers", HONEST),
    row(
        "softrandommap",
        &[],
        Value,
        NoEffect("which blocks were visited is known without a map in memory"),
    ),
    nothing("fallocate", "files of jobs that only write begin as holes, the others are written"),
    nothing("fadvise_hint", "the kernel is given no advice"),
    nothing("write_hint", "the kernel is given no advice"),
    nothing("create_serialize", "one thread lays all files out"),
    nothing("create_fsync", "laying out is over before the load begins"),
    nothing("allow_file_create", "files are laid out before the load begins"),
    nothing("allow_mounted_write", "Weir measures files"),
    nothing("unlink", "files are removed after the run unless they are to be kept"),
    nothing("unique_filename", "names are chosen by the coordinator"),
    nothing("openfiles", "files stay open"),
    row("mem", &["iomem"], Value, NoEffect(MEMORY)),
    row("mem_align", &["iomem_align"], Value, NoEffect(MEMORY)),
    nothing("hugepage-size", MEMORY),
    nothing("nice", PLACE),
    nothing("prio", PLACE),
    nothing("prioclass", PLACE),
    nothing("cpus_allowed", PLACE),
    nothing("cpus_allowed_policy", PLACE),
    nothing("cpumask", PLACE),
    nothing("numa_cpu_nodes", PLACE),
    nothing("numa_mem_policy", PLACE),
    nothing("clocksource", "the clock is the system's monotonic one"),
    nothing("gtod_cpu", "no processor is set aside for the clock"),
    nothing(
        "rate_cycle",
        "rates are kept from request to request, and a minimum is judged over 1000 ms: other periods are refused beside one",
    ),
    row("iodepth_batch", &["iodepth_batch_submit"], Value, NoEffect(OVERLAP)),
    nothing("iodepth_batch_complete_max", OVERLAP),
    nothing("continue_on_error", ERRORS),
    row("exitall_on_error", &[], Flag, NoEffect(ERRORS)),
    nothing("verify_fatal", ONE_VERIFY),
    nothing("verify_dump", ONE_VERIFY),
    nothing("verify_async", ONE_VERIFY),
    nothing("verify_async_cpus", ONE_VERIFY),
    nothing("verify_state_save", ONE_VERIFY),
    nothing("verify_backlog", ONE_VERIFY),
    nothing("verify_backlog_batch", ONE_VERIFY),
    nothing("verify_interval", ONE_VERIFY),
    nothing("verify_offset", ONE_VERIFY),
    row("experimental_verify", &[], Value, NoEffect(ONE_VERIFY)),
    nothing("cmdprio_percentage", PRIORITY),
    nothing("cmdprio_class", PRIORITY),
    nothing("cmdprio", PRIORITY),
    nothing("cmdprio_bssplit", PRIORITY),
    row("hipri", &[], Flag, NoEffect(ENGINE)),
    row("fixedbufs", &[], Flag, NoEffect(ENGINE)),
    row("registerfiles", &[], Flag, NoEffect(ENGINE)),
    row("sqthread_poll", &[], Flag, NoEffect(ENGINE)),
    row("userspace_reap", &[], Flag, NoEffect(ENGINE)),
    nothing("nonvectored", ENGINE),
    // Accepted at values that change nothing.
    only("iodepth_batch_complete_min", &["0", "1"], OVERLAP),
    row("iodepth_batch_complete", &[], Value, Only(&["0", "1"], OVERLAP)),
    only("serialize_overlap", &["0"], "requests may overlap"),
    only("buffer_compress_percentage", &["0"], HONEST),
    only("dedupe_percentage", &["0"], HONEST),
    only("zonemode", &["none"], ZONES),
    only("lockfile", &["none"], "files are not locked"),
    only("thinktime_blocks_type", &["complete"], "pauses count completed requests"),
    only(
        "rate_ignore_thinktime",
        &["0"],
        "a rate is kept in spite of pauses, as fio does by default",
    ),
    only(
        "create_only",
        &["0"],
        "laying out alone is no load; write the files with a job that writes",
    ),
    nothing("create_on_open", "files are made before the load begins, except by filecreate"),
    only("unlink_each_loop", &["0"], "files stay from loop to loop"),
    only("atomic", &["0"], "there are no atomic writes over NFS"),
    only("verify_state_load", &["0"], ONE_VERIFY),
    only("trim_percentage", &["0"], TRIM),
    only("bs_is_seq_rand", &["0"], "sizes go by direction, not by order"),
    // Refused.
    row(
        "bs_unaligned",
        &["blocksize_unaligned"],
        Flag,
        Refused("requests keep to their alignment"),
    ),
    refused("iodepth_low", OVERLAP),
    refused("thinktime_spin", "pauses use no processor time; omit it"),
    refused("thinktime_iotime", "pauses come after requests; use thinktime_blocks"),
    refused("offset_align", "it goes with percentages of a file's size; give bytes"),
    refused("opendir", "name the files by filename"),
    refused("file_append", "a load stays within the size of its files"),
    row(
        "fill_device",
        &["fill_fs"],
        Value,
        Refused(
            "Weir never fills a target on purpose, which harms everybody who uses it; give size",
        ),
    ),
    refused("write_barrier", "NFS has no barriers; use fsync"),
    refused("sync_file_range", "NFS has no such call; use fdatasync"),
    row("zero_buffers", &[], Flag, Refused(HONEST)),
    refused("buffer_pattern", HONEST),
    refused("buffer_compress_chunk", HONEST),
    refused("dedupe_mode", HONEST),
    refused("dedupe_working_set_percentage", HONEST),
    refused("dedupe_global", HONEST),
    refused("lockmem", "take memory from the system by other means"),
    refused("ioscheduler", "set it on the server before the run"),
    refused("max_latency", "a load is not ended for being slow; read the figures"),
    row(
        "steadystate",
        &["ss"],
        Value,
        Refused("the suite itself finds out whether a rate is steady"),
    ),
    row(
        "steadystate_duration",
        &["ss_dur"],
        Value,
        Refused("the suite itself finds out whether a rate is steady"),
    ),
    row(
        "steadystate_ramp_time",
        &["ss_ramp"],
        Value,
        Refused("the suite itself finds out whether a rate is steady"),
    ),
    refused("write_iolog", TRACE),
    refused("read_iolog", TRACE),
    refused("read_iolog_chunked", TRACE),
    refused("merge_blktrace_file", TRACE),
    refused("merge_blktrace_scalars", TRACE),
    refused("merge_blktrace_iters", TRACE),
    refused("replay_no_stall", TRACE),
    refused("replay_time_scale", TRACE),
    refused("replay_redirect", TRACE),
    refused("replay_align", TRACE),
    refused("replay_scale", TRACE),
    refused("replay_skip", TRACE),
    refused("exit_what", "it goes with exitall of several groups; omit it"),
    refused("exec_prerun", "run the command yourself; nothing in a job file is executed"),
    refused("exec_postrun", "run the command yourself; nothing in a job file is executed"),
    refused("uid", "say it in the target: nfs://HOST/EXPORT?uid=N"),
    refused("gid", "say it in the target: nfs://HOST/EXPORT?gid=N"),
    refused("cgroup", "put the generator in a group of the system's yourself"),
    refused("cgroup_weight", "put the generator in a group of the system's yourself"),
    refused("cgroup_nodelete", "put the generator in a group of the system's yourself"),
    refused("profile", "write the jobs out"),
    row("verify_only", &[], Flag, Refused("what an earlier run wrote is not known")),
    refused("verify_pattern", ONE_VERIFY),
    refused("ignore_error", ERRORS),
    refused("trim_verify_zero", TRIM),
    refused("trim_backlog", TRIM),
    refused("trim_backlog_batch", TRIM),
    refused("zonerange", ZONES),
    refused("zonesize", ZONES),
    refused("zonecapacity", ZONES),
    refused("zoneskip", ZONES),
    refused("read_beyond_wp", ZONES),
    refused("max_open_zones", ZONES),
    refused("job_max_open_zones", ZONES),
    refused("ignore_zone_limits", ZONES),
    refused("zone_reset_threshold", ZONES),
    refused("zone_reset_frequency", ZONES),
];

const NETWORK: &str = "spread the load with weir bench worker";
const QUERY: &str = "it asks fio about itself; run fio for that";

/// Options of the program alone, on command lines.
pub(crate) const PROGRAM: &[Known] = &[
    drives("section", "only these sections run"),
    row("output", &["o"], Value, Reporting),
    row("output-format", &["f"], Value, Reporting),
    row("minimal", &["m"], Flag, Reporting),
    row("append-terse", &[], Flag, Reporting),
    reports("terse-version"),
    row("bandwidth-log", &[], Flag, Reporting),
    row("latency-log", &[], Flag, Reporting),
    reports("eta"),
    reports("eta-interval"),
    reports("eta-newline"),
    reports("status-interval"),
    reports("idle-prof"),
    reports("debug"),
    row("warnings-fatal", &[], Flag, NoEffect("what is not understood is always an error")),
    nothing("alloc-size", MEMORY),
    nothing("max-jobs", "jobs have bounds of their own"),
    nothing("aux-path", "no state files are written"),
    row(
        "readonly",
        &["r"],
        Flag,
        Refused(
            "it would have to hold for laying out files, too; omit it, or name files that exist",
        ),
    ),
    refused("server", NETWORK),
    refused("client", NETWORK),
    refused("daemonize", NETWORK),
    refused("remote-config", NETWORK),
    refused("trigger-file", "nothing in a job is executed"),
    refused("trigger-timeout", "nothing in a job is executed"),
    refused("trigger", "nothing in a job is executed"),
    refused("trigger-remote", "nothing in a job is executed"),
    refused("inflate-log", QUERY),
    row("merge-blktrace-only", &[], Flag, Refused(TRACE)),
    row("parse-only", &["P"], Flag, Refused("use --dry-run of weir bench")),
    row("showcmd", &["s"], Flag, Refused(QUERY)),
    row("version", &["v"], Flag, Refused(QUERY)),
    row("help", &["h"], Flag, Refused(QUERY)),
    row("cpuclock-test", &[], Flag, Refused(QUERY)),
    row("crctest", &[], Flag, Refused(QUERY)),
    refused("cmdhelp", QUERY),
    refused("enghelp", QUERY),
];

/// The option of that name in `table`.
pub(crate) fn find(table: &'static [Known], name: &str) -> Option<&'static Known> {
    table.iter().find(|known| known.name == name || known.aliases.contains(&name))
}

/// The option whose name is nearest to `name`, if one is near.
pub(crate) fn nearest(name: &str) -> Option<&'static str> {
    let names =
        JOB.iter().flat_map(|known| known.aliases.iter().chain(std::iter::once(&known.name)));
    crate::lang::nearest(name, names.copied())
}
