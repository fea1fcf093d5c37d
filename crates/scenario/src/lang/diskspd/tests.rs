use super::*;
use crate::lang::{Map, command as any_command};
use proptest::prelude::*;

fn words(line: &str) -> Vec<String> {
    shell::split(line).unwrap()
}

fn read(line: &str) -> Result<Scenario, LangError> {
    command(&words(&format!("diskspd.exe {line}")), &Options::default())
}

fn load(line: &str) -> Workload {
    let scenario = read(line).unwrap();
    assert_eq!(scenario.steps.len(), 1, "{line}");
    scenario.steps[0].loads[0].clone()
}

fn error(line: &str) -> String {
    read(line).unwrap_err().to_string()
}

fn operation(line: &str) -> (Pattern, u8) {
    match load(line).operation {
        Operation::Data { pattern, read_percent } => (pattern, read_percent),
        other => panic!("{other:?}"),
    }
}

/// The published command line, over ten files.
#[test]
fn the_published_command_drives_what_it_says() {
    let targets: Vec<String> = (1..=10).map(|n| format!("z:\\test{n}.io")).collect();
    let line = format!(
        "diskspd.exe -W300 -C5 -r -w100 -b4k -t8 -o8 -Sh -d60 -L -c2G -Z1G {}",
        targets.join(" ")
    );
    let options = Options { maps: vec![Map::parse("z:=data").unwrap()], ..Options::default() };
    let scenario = any_command(&words(&line), &options).unwrap();
    assert_eq!(scenario.language, Language::Diskspd);
    assert_eq!((scenario.steps.len(), scenario.steps[0].loads.len()), (1, 1));
    let load = &scenario.steps[0].loads[0];
    let random_writes = Operation::Data { pattern: Pattern::Random, read_percent: 0 };
    assert_eq!(load.operation, random_writes);
    assert_eq!((load.files, load.jobs, load.depth), (10, 80, 8));
    assert_eq!((load.block_bytes, load.file_bytes), (4096, 2 << 30));
    assert_eq!(load.length, Length::Seconds(60.0));
    assert_eq!((load.warmup_s, load.cooldown_s), (300.0, 5.0));
    assert_eq!(load.layout, Layout::Written { block_bytes: 1 << 20 });
    assert!(load.direct);
    assert_eq!(load.stability, Stability::FileSync);
    assert_eq!(
        (load.draw.clone(), load.rate.clone(), load.think),
        (Default::default(), Rate::Unlimited, None)
    );
    assert_eq!(load.directory, "data");
    assert_eq!(load.names.first().unwrap(), "test1.io");
    assert_eq!(load.names.last().unwrap(), "test10.io");
    let zeros = "-Z1G has no effect here: every block contains unique, non-zero data that cannot be compressed";
    assert!(scenario.changes.iter().any(|change| change == zeros), "{:?}", scenario.changes);
}

#[test]
fn defaults_are_those_of_diskspd() {
    let load = load("-c1G a.dat");
    assert_eq!((load.block_bytes, load.depth, load.jobs, load.files), (65_536, 2, 1, 1));
    assert_eq!((load.warmup_s, load.cooldown_s), (5.0, 0.0));
    assert_eq!(load.length, Length::Seconds(10.0));
    let reads = Operation::Data { pattern: Pattern::Sequential, read_percent: 100 };
    assert_eq!((load.operation, load.starts), (reads, Starts::Together));
    assert_eq!((load.direct, load.stability, load.seed), (false, Stability::Unstable, 0));
    assert_eq!(load.directory, Workload::default().directory);
}

#[test]
fn order_and_starts() {
    assert_eq!(operation("-c1G -r a"), (Pattern::Random, 100));
    assert_eq!(load("-c1G -b8K -r4K a").align_bytes, Some(4096));
    assert_eq!(load("-c1G -r2b -b8K a").align_bytes, Some(16_384));
    assert_eq!(load("-c1G -r a").align_bytes, None);
    assert_eq!(operation("-c1G -rs30 a"), (Pattern::Mixed { random_percent: 30 }, 100));
    assert_eq!(operation("-c1G -rs100 a").0, Pattern::Random);
    assert_eq!(operation("-c1G -rs0 a").0, Pattern::Sequential);
    assert_eq!(operation("-c1G -rs30 -r8K a").0, Pattern::Mixed { random_percent: 30 });
    assert_eq!(load("-c1G -si -t4 a").starts, Starts::Interlocked);
    assert_eq!(load("-c1G -s1b -t4 a").starts, Starts::Together);
    assert_eq!(load("-c1G -b8K -s8K a").starts, Starts::Together);
    assert_eq!(load("-c1G -T1M -t4 a").starts, Starts::Stride { bytes: 1 << 20 });
    assert_eq!(load("-c1G -b64K -T2b -t4 a").starts, Starts::Stride { bytes: 128 << 10 });
    // -r counts before -s, whichever comes first.
    assert_eq!(operation("-c1G -s -r a").0, Pattern::Random);
    assert_eq!(operation("-c1G -r -s128K a").0, Pattern::Random);
    assert!(error("-c1G -s128K a").contains("-s128K: only the block size"));
    assert!(error("-c1G -si -T1M -t2 a").contains("-T: threads that share"));
}

#[test]
fn mix_and_places() {
    assert_eq!(operation("-c1G -w30 a").1, 70);
    assert_eq!(operation("-c1G -w a").1, 100);
    let part = load("-c1G -B1M -f100M a");
    assert_eq!(part.file_bytes, 1 << 30);
    assert_eq!((part.region.offset, part.region.bytes), (1 << 20, Some(99 << 20)));
    let existing = load("-f2G a");
    assert_eq!((existing.layout, existing.file_bytes), (Layout::Existing, 2 << 30));
    assert_eq!(existing.region, Region::default());
    assert_eq!(load("-c100b -b4K a").file_bytes, 409_600);
    assert!(error("-r a").contains("-c: the files' size is missing"));
    assert!(error("-c1M -B1M a").contains("-B: it leaves nothing"));
    assert!(error("-c1G -w101 a").contains("-w101"));
}

#[test]
fn threads_depth_and_files() {
    let several = load("-c1G -t3 -o5 a b");
    assert_eq!((several.jobs, several.files, several.depth), (6, 2, 5));
    let fixed = load("-c1G -F4 -o5 a b");
    assert_eq!((fixed.jobs, fixed.files, fixed.depth), (8, 2, 5));
    let each = load("-c1G -F4 -O16 a");
    assert_eq!((each.jobs, each.depth), (4, 16));
    assert!(error("-c1G -F4 -t4 a").contains("-F: threads are said"));
    assert!(error("-c1G -F4 -O4 a b").contains("-O: with several files"));
    assert!(error("-c1G -O4 a").contains("needs -F"));
    assert!(error("-c1G -F4 -O4 -o2 a").contains("not by both"));
    assert!(error("-c1G -t0 a").contains("-t0"));
}

#[test]
fn limits_and_pauses_are_of_each_thread_on_each_file() {
    assert_eq!(load("-c1G -t4 -g100 a b").rate, Rate::Bytes(800_000.0));
    assert_eq!(load("-c1G -t4 -g500i a b").rate, Rate::Operations(4000.0));
    assert_eq!(load("-c1G -i20 -j5 a").think, Some(Think { us: 5000, every: 20 }));
    assert!(error("-c1G -i20 a").contains("-i: it needs -j"));
    assert!(error("-c1G -j20 a").contains("-j: it needs -i"));
    assert!(error("-c1G -j20 -i1 -g5 a").contains("-g: limits and pauses"));
    assert!(error("-c1G -g0 a").contains("-g0"));
}

#[test]
fn caching() {
    for (line, direct, stability) in [
        ("-S", true, Stability::Unstable),
        ("-Su", true, Stability::Unstable),
        ("-Sr", true, Stability::Unstable),
        ("-Sb", false, Stability::Unstable),
        ("-Sw", false, Stability::FileSync),
        ("-Sbw", false, Stability::FileSync),
        ("-Suw", true, Stability::FileSync),
        ("-Sh", true, Stability::FileSync),
        ("-h", true, Stability::FileSync),
        ("-Su -Sw", true, Stability::FileSync),
    ] {
        let load = load(&format!("-c1G {line} a"));
        assert_eq!((load.direct, load.stability), (direct, stability), "{line}");
    }
    for line in ["-Sub", "-h -Sw", "-Sx", "-Sm", "-Shu"] {
        assert!(error(&format!("-c1G {line} a")).contains("-S"), "{line}");
    }
}

#[test]
fn seeds_times_and_reports() {
    assert_eq!(load("-c1G -z42 a").seed, 42);
    assert_eq!(load("-c1G -z a").seed, 0);
    let plain = load("-c1G a");
    assert_eq!(load("-c1G -L -D500 -Rxml -P1000 -v a"), plain);
    let noted = read("-c1G -a0,1,2 -n -l -x -I3 -frs -Zr a").unwrap();
    assert_eq!(noted.steps[0].loads[0], plain);
    for option in ["-a0,1,2", "-n", "-l", "-x", "-I3", "-frs", "-Zr"] {
        let begins = format!("{option} has no effect here: ");
        assert!(noted.changes.iter().any(|change| change.starts_with(&begins)), "{option}");
    }
}

#[test]
fn what_can_not_be_applied_is_named() {
    for (line, wanted) in [
        ("-c1G -Xprofile.xml a", "-Xprofile.xml: XML profiles are not read"),
        ("-c1G -ysname a", "-ysname: Windows events are not supported"),
        ("-c1G -rdpct60/10 a", "-rdpct60/10: non-uniform distributions"),
        ("-c1G -p a", "-p: requests to a single offset"),
        ("-c1G -Nv a", "-Nv: files cannot be mapped"),
        ("-c1G -Rpxml a", "-Rpxml: profiles"),
        ("-c1G -q a", "-q: it is not known here"),
        ("-c1G -d 10 a", "it is not a whole number of seconds"),
        ("-c1G #1", "#1: it is a disk"),
        ("-c1G z:", "z:: it is a disk"),
        ("-c1G a -d10", "-d10: options stand before the files"),
        ("-c1G a a", "a: it is named twice"),
        ("-c1G", "it names no file"),
        ("-c1G -bx a", "-bx: it is not a size"),
        ("-c1G -b2M a", "block size"),
        ("-c99999999999T a", "it is not a size"),
    ] {
        let error = error(line);
        assert!(error.contains(wanted), "{line}: {error}");
        assert!(error.starts_with("the command line"), "{line}: {error}");
    }
}

#[test]
fn files_in_several_directories_are_several_loads() {
    let maps = vec![Map::parse("y:=one").unwrap(), Map::parse("z:=two").unwrap()];
    let options = Options { maps, ..Options::default() };
    let scenario = command(&words("diskspd -c1G -t2 y:\\a z:\\a z:\\b"), &options).unwrap();
    let loads = &scenario.steps[0].loads;
    let seen: Vec<_> = loads.iter().map(|l| (l.directory.as_str(), l.files, l.jobs)).collect();
    assert_eq!(seen, [("one", 1, 2), ("two", 2, 4)]);
}

#[test]
fn files_hold_one_command_line() {
    let source = |text: &str| Source {
        name: "dir/smb.diskspd".to_owned(),
        text: text.to_owned(),
        language: Language::Diskspd,
    };
    let options = Options::default();
    let scenario = scenario(&source("# published\n-c1G -b4K \\\n  -r a.io\n"), &options).unwrap();
    assert_eq!((scenario.name.as_str(), scenario.steps[0].loads[0].block_bytes), ("smb", 4096));
    let error = super::scenario(&source("diskspd -c1G a\ndiskspd -c1G b\n"), &options);
    assert!(error.unwrap_err().to_string().contains("several command lines"));
    let error = super::scenario(&source("diskspd -q a"), &options).unwrap_err().to_string();
    assert_eq!(error, "dir/smb.diskspd: -q: it is not known here; see docs/bench-diskspd.md");
}

/// Command lines of chance are read or refused, and never end the program.
#[test]
fn no_command_line_ends_the_program() {
    const PIECES: &[&str] = &[
        "-",
        "-b",
        "-c",
        "-C",
        "-d",
        "-f",
        "-F",
        "-g",
        "-h",
        "-i",
        "-j",
        "-o",
        "-O",
        "-r",
        "-rs",
        "-s",
        "-si",
        "-S",
        "-t",
        "-T",
        "-w",
        "-W",
        "-z",
        "-Z",
        "-a",
        "-X",
        "-y",
        "0",
        "1",
        "4K",
        "2G",
        "b",
        "i",
        "18446744073709551615",
        "99999",
        "t",
        "uw",
        "a.io",
        "z:\\a",
        "é",
        "\u{0}",
        ",",
        "..",
        "/",
        "*",
    ];
    let mut rng = weir_core::rng::Rng::new(11);
    let mut read_well = 0;
    for _ in 0..20_000 {
        let mut words = vec!["diskspd".to_owned(), "-c1G".to_owned()];
        for _ in 0..rng.below(5) {
            let mut word = String::new();
            for _ in 0..=rng.below(2) {
                word.push_str(PIECES[usize::try_from(rng.below(PIECES.len() as u64)).unwrap()]);
            }
            words.push(word);
        }
        words.push("last.io".to_owned());
        read_well += usize::from(command(&words, &Options::default()).is_ok());
    }
    assert!(read_well > 500, "{read_well}");
}

proptest! {
    #[test]
    fn arbitrary_words_are_read_or_refused(one in "-?\\PC{0,12}", two in "-[a-zA-Z]\\PC{0,12}") {
        let words = ["diskspd", &two, &one, "-c1G", "a"].map(str::to_owned);
        drop(command(&words, &Options::default()));
        let text = words.join(" ");
        drop(scenario(
            &Source { name: "a.diskspd".to_owned(), text, language: Language::Diskspd },
            &Options::default(),
        ));
    }
}
