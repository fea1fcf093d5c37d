//! Tests of refused files of fio, and of the messages; and that no text panics.

use super::super::known::{JOB, OptionKind, PROGRAM, Treatment};
use super::{command_line, load, read, refusal};
use proptest::prelude::*;
use std::collections::BTreeSet;

#[test]
fn refusals_name_file_line_option_and_section() {
    for (options, wanted) in [
        ("rw=trim", "TRIM is a matter of devices"),
        ("rw=reed", "it must be read, write"),
        ("bs=1.5k", "jobs.fio:3: bs in [a]: \"1.5k\" is not a whole number"),
        ("bs=2m", "is over 1048576 bytes"),
        ("bsrange=4k-64k", "say sizes and shares with bssplit"),
        ("bssplit=4k/60:8k/60", "its shares add up to 120"),
        ("bssplit=4k/60", "its shares add up to 60"),
        ("size=20%", "size in [a]: is a part of files that exist"),
        ("filesize=1m-2m", "is a range"),
        ("size=2k", "is smaller than a block"),
        ("offset=2m filesize=1m", "is behind the end"),
        (
            "filename=x:y filesize=1m offset=4k numjobs=2 offset_increment=18446744073709551615",
            "begins at 18446744073709551615",
        ),
        ("iodepth=0", "iodepth in [a]: is 0; it must be at least 1"),
        ("sync=9", "it must be none, sync or dsync"),
        ("time_based", "time_based in [a]: needs runtime"),
        ("ramp_time=5", "ramp_time in [a]: needs time_based"),
        ("startdelay=1-5", "is a range"),
        ("random_generator=x", "it must be tausworthe"),
        ("rw=randrw percentage_random=10,20", "the same for reads and writes"),
        ("rw=randrw ba=1k,2k", "the same for reads and writes"),
        ("rate=1m rate_iops=5", "are both given"),
        ("rate_process=x", "linear or poisson"),
        ("fsync=1 fdatasync=1", "are both given"),
        ("verify=pattern", "patterns are not"),
        ("buffer_compress_percentage=50", "only buffer_compress_percentage=0 is"),
        ("zero_buffers", "zero_buffers in [a]: is not supported: data is always of chance"),
        ("direct=2", "it must be 0 or 1"),
        ("rwmixread=101", "from 0 to 100"),
        ("filename=/dev/sdb", "is a device; Weir measures files"),
        ("filename=../x", "without .."),
        ("filename=x:x", "names a file twice"),
        ("nrfiles=70000", "is over 65536"),
        ("nrfiles=2 filename_format=f", "needs $filenum"),
        ("file_service_type=zipf:1.2", "roundrobin, sequential and random"),
        ("numjobs=2 exitall", "needs time_based"),
        ("io_dept=4", "is not an option of a fio job that is known here; did you mean iodepth?"),
        ("client=host", "client in [a]: is not an option of a fio job"),
        ("iodepth", "jobs.fio:3: iodepth in [a]: needs a value"),
        ("bs=${NO_SUCH_VARIABLE_HERE}", "the variable NO_SUCH_VARIABLE_HERE is not set"),
        ("size=8*$mb_memory", "$mb_memory is not known"),
        ("number_ios=3 rw=randread bssplit=4k/50:8k/50", "needs requests of one size"),
    ] {
        let error = refusal(options);
        assert!(error.contains(wanted), "{options}: {error}");
    }
    let missing = read("[a]\nrw=read\n").unwrap_err();
    assert!(missing.starts_with("jobs.fio:1: size in [a]: is missing"), "{missing}");
}

#[test]
fn refusals_of_orders_engines_and_limits_say_what_to_do() {
    for (options, wanted) in [
        ("rw=read:x", "jobs.fio:3: rw in [a]: \"x\" is not a number"),
        ("rw=randread:-2", "rw in [a]: \"-2\" is not a number"),
        ("rw=read:2m", "leave the region of 1048576 bytes"),
        ("rw_sequencer=x", "it must be sequential or identical"),
        ("ioengine=mmap", "ioengine in [a]: mmap does something else than reading"),
        ("ioengine=rbd pool=x", "ioengine in [a]: rbd has a protocol of its own"),
        ("ioengine=sg sg_write_mode=x", "ioengine in [a]: sg works with a device"),
        ("ioengine=null", "ioengine in [a]: null does no I/O: put ioengine=libaio in its place"),
        ("ioengine=own", "ioengine in [a]: is \"own\"; supported are"),
        ("latency_target=5", "latency_target in [a]: needs latency_window"),
        ("latency_target=5 latency_window=5 latency_percentile=0", "must be over 0, at most 100"),
        ("latency_target=5 latency_window=5 thinktime=5", "and no pauses"),
        ("io_submit_mode=x", "it must be inline or offload"),
        ("rate_min=1 rate_iops_min=1", "are both given"),
        (
            "rate_min=1 rate_cycle=500",
            "rate_cycle in [a]: is the period of rate_min, which is 1000",
        ),
        ("rate_iops_min=1 rate_cycle=1001", "rate_cycle in [a]: is the period of rate_iops_min"),
        ("rw=randread random_distribution=even", "it must be random, zipf:THETA"),
        ("rw=randread random_distribution=pareto:1", "over 0 and below 1"),
        ("rw=randread random_distribution=normal:101", "from 0 to 100 percent"),
        ("rw=randread random_distribution=zipf:1", "zipf needs a theta"),
        ("rw=randread random_distribution=zipf:1.2:2", "zipf needs a theta"),
        ("rw=randread random_distribution=zoned:50/5", "add up to 50 %"),
        ("rw=randread random_distribution=zoned:x/5", "is no zone"),
        ("rw=randread random_distribution=zoned:60/50:40/60", "more than it has"),
        ("rw=randread random_distribution=zoned_abs:100/2m", "more than it has"),
        ("rw=randrw random_distribution=zoned:100/5,100/6", "the same for reads and writes"),
    ] {
        let error = refusal(options);
        assert!(error.contains(wanted), "{options}: {error}");
    }
}

#[test]
fn texts_without_form_are_refused() {
    for (text, wanted) in [
        ("", "holds no job"),
        ("[global]\nsize=1m\n", "holds no job"),
        ("rw=read\n[a]\n", "jobs.fio:1: rw: stands before the first section"),
        ("[a\n", "is not a section"),
        ("[]\n", "is not a section"),
        ("[a]\ninclude no-such-file\n", "jobs.fio:2: include: no-such-file: cannot be read"),
    ] {
        let error = read(text).unwrap_err();
        assert!(error.contains(wanted), "{text:?}: {error}");
    }
    for (line, wanted) in [
        ("fio", "the command line: holds no job"),
        ("fio --name=a --size=1m --client=x", "client: spread the load with weir bench worker"),
        ("fio --name=a --size=1m --bogus=1", "bogus in [a]: is not an option"),
        ("fio --name=a --bs --rw=read", "bs in [a]: needs a value"),
        ("fio --showcmd --name=a", "showcmd: it asks fio about itself"),
        ("fio no-such-file.fio", "no-such-file.fio: cannot be read"),
        ("fio --name --size=1m", "name: needs a value"),
    ] {
        let error = command_line(line).unwrap_err();
        assert!(error.contains(wanted), "{line}: {error}");
    }
}

#[test]
fn a_file_that_includes_itself_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("loop.fio");
    std::fs::write(&path, "[a]\ninclude loop.fio\n").unwrap();
    let error = crate::lang::read(&path, &crate::lang::Options::default()).unwrap_err();
    assert!(error.message.contains("too deeply"), "{error}");
}

/// A value that an option of this kind is written with.
fn example(kind: OptionKind, name: &str) -> String {
    match kind {
        OptionKind::Flag => name.to_owned(),
        OptionKind::Value => format!("{name}=7"),
    }
}

#[test]
fn every_row_of_the_table_is_treated_as_it_says() {
    let mut names = BTreeSet::new();
    for known in JOB {
        for name in known.aliases.iter().chain([&known.name]) {
            assert!(names.insert(*name), "{name} stands twice");
            let written = example(known.kind, name);
            match known.treatment {
                Treatment::Drives(_) => {}
                Treatment::Reporting | Treatment::NoEffect(_) => {
                    let scenario = read(&format!("[a]\nsize=1m\n{written}\n")).unwrap();
                    let told = scenario.changes.iter().any(|change| change.contains(known.name));
                    assert!(told, "{name} is not told: {:?}", scenario.changes);
                    assert_eq!(scenario.steps[0].loads[0], load(""), "{name} changes the load");
                }
                Treatment::Only(values, why) => {
                    for value in values {
                        assert_eq!(load(&format!("{name}={value}")), load(""), "{name}");
                    }
                    let error = refusal(&written);
                    assert!(error.contains(name) && error.contains(why), "{error}");
                }
                Treatment::Refused(why) => {
                    let error = refusal(&written);
                    assert!(error.starts_with("jobs.fio:3: "), "{error}");
                    assert!(error.contains(known.name) && error.contains(why), "{error}");
                }
            }
        }
    }
    for known in PROGRAM {
        assert!(names.insert(known.name), "{} stands twice", known.name);
    }
}

#[test]
fn every_option_of_the_program_is_in_the_table() {
    // The options that fio 3.33 --cmdhelp=all lists for jobs.
    let listed = include_str!("options.txt");
    for name in listed.split_whitespace() {
        assert!(super::super::known::find(JOB, name).is_some(), "{name}");
    }
}

proptest! {
    #[test]
    fn no_text_panics(text in "(\\[[a-z]*\\]\n|(rw|bs|size|numjobs|filename|bssplit|rate|offset|include|ba|random_distribution|flow|wait_for|ioengine)=[0-9a-z%:,/()$+*^-]{0,12}\n|\\PC{0,12}\n){0,12}") {
        let _ = read(&text);
        let _ = command_line(&text);
    }

    #[test]
    fn no_value_panics(index in 0..JOB.len(), value in "[0-9]{0,20}[kmgt%:,/()^.-]{0,3}[0-9a-z]{0,6}") {
        let known = &JOB[index];
        let _ = read(&format!("[a]\nsize=1m\nrw=randrw\n{}={value}\nnumjobs=3\n", known.name));
    }
}
