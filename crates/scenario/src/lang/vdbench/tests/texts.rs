//! Tests of reading texts: comments, continued lines, includes, variables, command lines, errors.

use super::*;
use crate::lang::Map;
use proptest::prelude::*;
use weir_core::rng::Rng;

#[test]
fn comments_blanks_and_lines_that_go_on() {
    let text = "* one\n# two\n/ three\n\n  SD=sd1,\n  LUN=/v/f1,size=1g  comment\nopenflags=o_direct\n\
                wd=wd1,\nsd=sd1,rdpct=30\nrd=rd1,wd=wd1,iorate=max,el=5 * elapsed=7\neof\nnonsense\n";
    let load = load(text);
    assert_eq!((operation(&load).1, load.direct, load.file_bytes), (30, true, 1 << 30));
    assert_eq!(load.length, weir_load::workload::Length::Seconds(5.0));
}

#[test]
fn what_a_blank_would_hide_is_an_error() {
    let error = error("sd=sd1,lun=/v/f1, size=1g\n");
    assert!(error.starts_with("dir/test.vdb:1: size=1g: what follows a blank"), "{error}");
}

#[test]
fn a_new_definition_needs_no_end_of_the_one_before() {
    // A comma too many at the end of a line.
    let text = "sd=sd1,lun=/v/f1,size=1g,\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n";
    assert_eq!(names(&steps(text)), ["rd1"]);
}

#[test]
fn quotes_keep_values_together() {
    let load = load("sd=sd1,lun=\"/v/a b,c\",size=1g\nwd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max\n");
    assert_eq!(load.names, ["a b,c"]);
}

#[test]
fn defaults_are_of_those_that_follow() {
    let text = "sd=sd0,lun=/v/f0,size=1g\nsd=default,size=2g,threads=3\nsd=sd1,lun=/v/f1\n\
                sd=default,threads=4\nsd=sd2,lun=/v/f2\nsd=sd3,lun=/v/f3,threads=5\n\
                wd=default,rdpct=40\nwd=wd1,sd=*\nrd=default,elapsed=7\nrd=rd1,wd=wd1,iorate=max\n";
    let mut steps = steps(text);
    let loads = &mut steps[0].loads;
    loads.sort_by(|one, two| one.names.cmp(&two.names));
    let seen: Vec<_> = loads
        .iter()
        .map(|load| (load.names[0].as_str(), load.jobs, load.file_bytes >> 30))
        .collect();
    assert_eq!(seen, [("f0", 8, 1), ("f1", 3, 2), ("f2", 4, 2), ("f3", 5, 2)]);
    assert!(loads.iter().all(|load| operation(load).1 == 40));
    assert!(loads.iter().all(|load| load.length == weir_load::workload::Length::Seconds(7.0)));
}

fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    for (name, text) in files {
        std::fs::write(dir.path().join(name), text).unwrap();
    }
    dir
}

fn command_in(dir: &tempfile::TempDir, line: &str) -> Result<Scenario, LangError> {
    let line = line.replace("DIR", &dir.path().display().to_string());
    let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
    command(&words, &Options::default())
}

#[test]
fn includes_are_beside_their_file_and_never_endless() {
    let dir = directory(&[
        ("main.vdb", "include=sds.vdb\nwd=wd1,sd=sd*\ninclude=\"rds.vdb\"\n"),
        ("sds.vdb", "sd=sd1,lun=/v/f1,size=1g\neof\nnonsense\n"),
        ("rds.vdb", "rd=rd1,wd=wd1,iorate=max\n"),
        ("loop.vdb", "sd=sd1,lun=/v/f1,size=1g\ninclude=back.vdb\n"),
        ("back.vdb", "include=./loop.vdb\n"),
        ("lost.vdb", "include=no.vdb\n"),
        ("bad.vdb", "sd=sd1,lun=/v/f1,size=1g\n\ninclude=worse.vdb\n"),
        ("worse.vdb", "wd=wd1,sd=sd1\nnonsense=1\n"),
    ]);
    assert_eq!(names(&command_in(&dir, "vdbench -f DIR/main.vdb").unwrap().steps), ["rd1"]);
    let error = |line: &str| command_in(&dir, line).unwrap_err().to_string();
    let own = error("vdbench -f DIR/loop.vdb");
    assert!(own.contains("back.vdb:1: include: ./loop.vdb includes itself"), "{own}");
    let lost = error("vdbench -f DIR/lost.vdb");
    assert!(lost.contains("lost.vdb:1: include") && lost.contains("cannot be read"), "{lost}");
    let bad = error("vdbench -f DIR/bad.vdb");
    assert!(bad.contains("worse.vdb:2: nonsense: it is not known here"), "{bad}");
    for at in 0..9 {
        let next = format!("include=deep{}.vdb\n", at + 1);
        std::fs::write(dir.path().join(format!("deep{at}.vdb")), next).unwrap();
    }
    let deep = error("vdbench -f DIR/deep0.vdb");
    assert!(deep.contains("8 deep"), "{deep}");
}

#[test]
fn command_lines_override_and_give_variables() {
    let dir = directory(&[
        ("sds", "sd=sd1,lun=/v/$file,size=!size\n"),
        ("rest", "wd=wd1,sd=sd1\nrd=rd1,wd=wd1,iorate=max,warmup=9\nrd=rd2,wd=wd1,iorate=$rate\n"),
    ]);
    let line =
        "vdbench -f DIR/sds DIR/rest -o out+ -e5 -i 1 -w 2 -m 8 -r rd2 -vr file=f7 size=1g rate=70";
    let scenario = command_in(&dir, line).unwrap();
    assert_eq!(names(&scenario.steps), ["rd2"]);
    let load = &scenario.steps[0].loads[0];
    assert_eq!(load.names, ["f7"]);
    assert_eq!(load.rate, weir_load::workload::Rate::Operations(70.0));
    assert_eq!(load.length, weir_load::workload::Length::Seconds(5.0));
    assert_eq!((load.warmup_s, load.verify_reads), (2.0, true));
    assert!(scenario.changes.iter().any(|change| change.starts_with("-m has no effect here")));
    for (line, wanted) in [
        ("vdbench", "-f: it is missing"),
        ("vdbench -f", "-f: its value is missing"),
        ("vdbench DIR/sds", "follow -f"),
        ("vdbench -f DIR/sds DIR/rest", "sds:1: $file: it has no value; give one with file=VALUE"),
        ("vdbench -f DIR/sds DIR/rest file=a size=1g rate=1 x=2", "x=: no file asks for it"),
        ("vdbench -f DIR/sds DIR/rest file=a size=1g rate=1 -r rd9", "-r: there is no rd=rd9"),
        ("vdbench -f DIR/sds DIR/rest file=a size=1g rate=1 -e0", "-e0: a run of 0 s"),
        ("vdbench -f DIR/sds -s", "-s: use --dry-run"),
        ("vdbench -f DIR/sds -jn", "-jn: there are no journals"),
        ("vdbench -t", "-t: it is Vdbench's own test"),
        ("vdbench -f DIR/sds -vx", "-vx: -vx is not known"),
        ("vdbench -f DIR/sds -q", "-q: it is not known here"),
    ] {
        let error = command_in(&dir, line).unwrap_err().to_string();
        assert!(error.contains(wanted), "{line}: {error}");
    }
}

#[test]
fn maps_say_where_files_lie() {
    let maps = vec![Map::parse("/v:=set").unwrap()];
    let options = Options { maps, ..Options::default() };
    let text = format!("{BASE}rd=rd1,wd=wd1,iorate=max\n");
    let scenario = scenario(&source(&text), &options).unwrap();
    assert_eq!(scenario.steps[0].loads[0].directory, "set");
    assert_eq!(scenario.text, Some(text));
}

#[test]
fn errors_name_file_line_and_word() {
    for (text, wanted) in [
        ("nonsense=1\n", ":1: nonsense: it is not known here"),
        ("sd=sd1,lun=/a,sizes=1g\n", ":1: sizes: it is not known here; is size meant?"),
        ("sd=sd1,lun=/a,size\n", ":1: size: it has no value"),
        ("sd=sd1,lun=/a,size=1g\n\nsd=sd1,lun=/b,size=1g\n", ":3: sd=sd1: it is defined twice"),
        ("sd=sd1,lun=/a,size=1g\nsd=sd2,lun=/a,size=1g\n", ":2: sd=sd2: it is the file of sd=sd1"),
        ("sd=sd1,size=1g\n", ":1: sd=sd1: lun= is missing"),
        ("sd=sd1,lun=/a\n", ":1: sd=sd1: size= is missing"),
        ("sd=sd1,lun=/dev/sdb,size=1g\n", ":1: lun: \"/dev/sdb\" is a device"),
        ("sd=sd1,lun=/a,size=big\n", ":1: size: it is not a size"),
        ("sd=sd1,lun=/a,size=(1g\n", ":1: size: the parenthesis is not closed"),
        ("sd=sd1,lun=/a,size=(1g,(2))\n", ":1: size: parentheses within"),
        ("sd=sd1,lun=\"/a,size=1g\n", ":1: lun: the quote is not closed"),
        ("sd=sd1,lun=(/a)b,size=1g\n", ":1: lun: a comma is missing"),
        ("sd=sd1,lun=/a,size=1g,openflags=0x40\n", ":1: openflags: \"0x40\" cannot be applied"),
        ("sd=sd1,lun=/a,size=1g,hitarea=1m\n", ":1: hitarea: only 0"),
        ("sd=sd1,lun=/a,size=1g,count=(1,5)\n", ":1: lun: with count= it holds one %d"),
        ("sd=sd1,lun=/a,size=1g,journal=/tmp\n", ":1: journal: there are no journals"),
        ("sd=sd1,lun=/a,size=1g,range=(90,110)\n", ":1: range: it goes on at the beginning"),
        (
            "sd=sd1,lun=/a,size=1g\ndata_errors=1\n",
            ":2: data_errors: general parameters come before",
        ),
        ("wd=wd1,sd=sd1,hotband=(10,20)\n", ":1: hotband: its distribution"),
        ("wd=wd1,sd=sd1,stride=(1,2)\n", ":1: stride"),
        ("wd=wd1,sd=sd1,seekpct=poisson\n", ":1: seekpct: \"poisson\" cannot be applied"),
        ("wd=wd1,sd=sd1,seekpct=seqnz\n", ":1: seekpct: \"seqnz\" cannot be applied"),
        ("wd=wd1,sd=sd1,xfersize=1000\n", ":1: xfersize: sizes of requests are multiples of 512"),
        ("wd=wd1,sd=sd1,xfersize=(4k,50,8k,40)\n", ":1: xfersize: the percentages do not add up"),
        ("wd=wd1,sd=sd1,xfersize=(4k,16k,4608)\n", ":1: xfersize: sizes between two"),
        ("wd=wd1,sd=sd1,threads=4\n", ":1: threads: Vdbench takes it with concatenated"),
        ("wd=wd1,sd=sd1,rhpct=50\n", ":1: rhpct: only 0"),
        ("compratio=2\n", ":1: compratio: only 1"),
        ("dedupratio=1\ndedupsets=5\n", ":2: dedupsets: data here has no duplicates"),
        ("concatenatesds=yes\n", ":1: concatenatesds"),
        ("journal=yes\n", ":1: journal"),
        ("startcmd=\"rm -rf /\"\n", ":1: startcmd: Weir runs no commands"),
        ("loop=3\n", ":1: loop: omit it and repeat"),
        ("validate=maybe\n", ":1: validate: \"maybe\" is not one of"),
        ("fsd=fsd1,anchor=/a\n", ":1: fsd: file system workloads are not read"),
        ("fwd=fwd1,fsd=fsd1\n", ":1: fwd: file system workloads are not read"),
        ("rg=rg1,devices=1\n", ":1: rg: traces cannot be replayed"),
        ("hd=a\nhd=hd1,system=`id`\n", ":2: system: \"`id`\" is not a network name"),
        ("hd=hd1,system=\"a;b\"\n", ":1: system: \"a;b\" is not a network name"),
        ("hd=hd1,system=-oProxyCommand\n", ":1: system: \"-oProxyCommand\" is not"),
        ("hd=hd1,system=me@host\n", ":1: system: \"me@host\" is not a network name"),
        ("hd=hd1,user=`id`\n", ":1: user: \"`id`\" is not a user"),
        ("hd=hd1,user=a:b\n", ":1: user: \"a:b\" is not a user"),
        ("hd=hd1,user=a\\b\n", ":1: user: \"a\\\\b\" is not a user"),
        ("hd=hd1,user=-l\n", ":1: user: \"-l\" is not a user"),
        ("hd=hd1,mount=\"mount x\"\n", ":1: mount: nothing is mounted"),
        ("sd=(a,b),lun=/a\n", ":1: sd: a definition has one name"),
        ("wd=wd1,sd=sd1,s=1\n", ":1: s: it is not known here"),
        ("sd=sd1,lun=/a,size=1g\n", "dir/test.vdb: it defines no run"),
    ] {
        let error = error(text);
        assert!(error.starts_with("dir/test.vdb"), "{text}: {error}");
        assert!(error.contains(wanted), "{text}: {error}");
    }
}

#[test]
fn errors_of_runs_name_them_too() {
    for (run, wanted) in [
        ("rd=rd1,iorate=max", "rd=rd1: wd= is missing"),
        ("rd=rd1,wd=wd1", "rd=rd1: iorate= is missing"),
        ("rd=rd1,wd=wd9,iorate=max", "rd=rd1: there is no wd=wd9"),
        ("rd=rd1,wd=(wd1,wd*),iorate=max", "rd=rd1: wd=wd1 is named twice"),
        ("rd=rd1,wd=wd1,sd=sd9,iorate=max", "there is no sd=sd9"),
        ("rd=rd1,wd=wd1,iorate=fast", "iorate: \"fast\" is not a number"),
        ("rd=rd1,wd=wd1,iorate=max,elapsed=0", "elapsed: a run of 0 s"),
        ("rd=rd1,wd=wd1,iorate=max,elapsed=30d", "elapsed: \"30d\" is not a time"),
        (
            "rd=rd1,wd=wd1,iorate=5,distribution=uniform",
            "distribution: \"uniform\" cannot be applied",
        ),
        ("rd=rd1,wd=wd1,iorate=max,forthreads=(0,1)", "forthreads: 0 is not from 1"),
        ("rd=rd1,wd=wd1,iorate=max,forhitarea=(1m,2m)", "forhitarea: only 0"),
        ("rd=rd1,wd=wd1,iorate=max,format=yes", "format: file system workloads"),
        ("rd=rd1,wd=wd1,iorate=max,fwdrate=max", "fwdrate: file system workloads"),
        ("rd=rd1,wd=wd1,iorate=max,xfersize=2m", "rd=rd1 wd=wd1: block size"),
        ("rd=rd1,wd=wd1,iorate=max,forthreads=(1-999),forrdpct=(0-9)", "more than 2000 runs"),
        ("rd=rd1,wd=wd1,iorate=max,forr=5", "forr: it may be any of forrdpct, forrhpct"),
    ] {
        let error = error(&format!("{BASE}{run}\n"));
        assert!(error.starts_with("dir/test.vdb:3: ") && error.contains(wanted), "{run}: {error}");
    }
}

/// The pieces of texts.
const PIECES: &[&str] = &[
    "sd=",
    "wd=",
    "rd=",
    "hd=",
    "default",
    "sd1",
    "wd1",
    "rd1",
    ",",
    ",",
    "\n",
    "\n",
    "(",
    ")",
    "\"",
    "-",
    "*",
    "$",
    "!",
    "$x",
    "=",
    " ",
    "lun=/a",
    "lun=/b%03d",
    "count=(1,3)",
    "size=1g",
    "size=1",
    "xfersize=",
    "4k",
    "(4k,50,8k,50)",
    "seekpct=eof",
    "seekpct=",
    "rdpct=0",
    "iorate=max",
    "iorate=curve",
    "iorate=(1-5,2)",
    "forthreads=(1-8,d)",
    "18446744073709551615",
    "é",
    "\u{0}",
    "sd=*",
    "wd=*",
    "skew=60",
    "range=(0,50)",
    "range=(1,2)",
    "offset=18446744073709551615",
    "streams=8",
    "maxdata=5",
    "include=/",
    "threads=4294967295",
    "validate=yes",
    "forrdpct=(0-100)",
    "%",
    "curve=(1-9)",
    "warmup=1",
    "host=*",
    "clients=9",
    "align=512",
    "openflags=fsync",
];

/// Texts of chance, made of what texts are made of: they are read or refused, and never end the
/// program.
#[test]
fn no_text_ends_the_program() {
    let mut rng = Rng::new(7);
    let mut read_well = 0;
    for round in 0..6000_u64 {
        let mut text = String::new();
        if round % 2 == 0 {
            text.push_str(BASE);
        }
        for _ in 0..rng.below(24) {
            let piece = usize::try_from(rng.below(PIECES.len() as u64)).unwrap();
            text.push_str(PIECES[piece]);
            if rng.below(3) == 0 {
                text.push(',');
            }
        }
        if round % 2 == 0 {
            text.push_str("\nrd=last,wd=wd1,iorate=max\n");
        }
        read_well += usize::from(read(&text).is_ok());
    }
    assert!(read_well > 100, "{read_well}");
}

proptest! {
    #[test]
    fn arbitrary_texts_are_read_or_refused(text in "(\\PC|\n){0,200}", name in "\\PC{0,20}") {
        drop(read(&text));
        drop(read(&format!("{BASE}rd={name},wd=wd1,iorate={text}\n")));
        let words = ["vdbench".to_owned(), name, text];
        drop(command(&words, &Options::default()));
    }
}
