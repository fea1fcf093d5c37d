use super::*;

fn map(text: &str) -> Map {
    Map::parse(text).unwrap()
}

#[test]
fn languages_are_told_by_ending_content_and_program() {
    for (name, text, wanted) in [
        ("a.toml", "", Language::Native),
        ("a.fio", "", Language::Fio),
        ("a.job", "", Language::Fio),
        ("a.vdb", "", Language::Vdbench),
        ("A.PARM", "", Language::Vdbench),
        ("script", "# c\n[[step]]\n", Language::Native),
        ("script", "; c\n[global]\nrw=read\n", Language::Fio),
        ("script", "* c\nsd=sd1,lun=/a\n", Language::Vdbench),
        ("run.txt", "# published\ndiskspd.exe -b4k z:\\a\n", Language::Diskspd),
        ("run.txt", "fio --name=a \\\n  --rw=read\n", Language::Fio),
    ] {
        assert_eq!(detect(name, text), Some(wanted), "{name} {text}");
    }
    assert_eq!(detect("notes.txt", "hello\n"), None);
    assert_eq!(detect("two.txt", "fio --name=a\nfio --name=b\n"), None);
    assert_eq!(program("C:\\tools\\DiskSpd.EXE"), Some(Language::Diskspd));
    assert_eq!(program("./vdbench"), Some(Language::Vdbench));
    assert_eq!(program("/usr/bin/fio"), Some(Language::Fio));
    assert_eq!(program("fiona"), None);
}

#[test]
fn a_command_line_must_begin_with_a_known_program() {
    let error = command(&["dd".to_owned()], &Options::default()).unwrap_err().to_string();
    assert_eq!(error, "the command line: dd: it must start with fio, vdbench or diskspd");
}

#[test]
fn words_are_cut_as_a_shell_does() {
    let words = words::split("fio --name='a b' \"c\"d \\\n e z:\\x").unwrap();
    assert_eq!(words, ["fio", "--name=a b", "cd", "e", "z:\\x"]);
    assert_eq!(words::split("fio 'open"), None);
    assert_eq!(words::split("a ''"), Some(vec!["a".to_owned(), String::new()]));
}

#[test]
fn maps_say_where_prefixes_lie() {
    let on = |from: &str, target: &str, to: &str| Map {
        from: from.into(),
        target: target.into(),
        to: to.into(),
    };
    assert_eq!(map("z:=data"), on("z", "", "data"));
    assert_eq!(map("/mnt/vol/:="), on("/mnt/vol", "", ""));
    assert_eq!(map("/mnt/a:=nfs://h/v?uid=5"), on("/mnt/a", "nfs://h/v?uid=5", ""));
    assert_eq!(map("/mnt/a:=/mnt/b"), on("/mnt/a", "/mnt/b", ""));
    let mut named = map("/mnt/a:=a");
    named.name_target(["b"].into_iter());
    assert_eq!(named, on("/mnt/a", "", "a"));
    named.name_target(["b", "a"].into_iter());
    assert_eq!(named, on("/mnt/a", "a", ""));
    for wrong in ["z", "z:=a/b", ":=a", "/x:=..", "z=:a"] {
        assert!(Map::parse(wrong).unwrap_err().contains("FROM:=DIRECTORY"), "{wrong}");
    }
}

#[test]
fn paths_become_names_and_the_change_is_noted() {
    let options = Options::default();
    let mut places = paths::Places::new(&options, "weir-bench");
    let place = places.place("/mnt/vol/test1").unwrap();
    assert_eq!((place.at.directory.as_str(), place.name.as_str()), ("weir-bench", "test1"));
    assert_eq!(places.place("/mnt/vol/test1").unwrap(), place);
    assert_eq!(places.place("/mnt/other/test1").unwrap().name, "mnt_other_test1");
    assert_eq!(places.place("z:\\test1").unwrap().name, "z_test1");
    assert_eq!(places.place("plain").unwrap().name, "plain");
    assert_eq!(places.place("/mnt/more/f2").unwrap().name, "f2");
    assert_eq!(places.place("/mnt/more/f3").unwrap().name, "f3");
    assert_eq!(
        places.changes(),
        [
            "/mnt/more/f2 is f2 in the target's directory weir-bench, and so is 1 more from beside it",
            "/mnt/vol/test1 is test1 in the target's directory weir-bench",
            "/mnt/other/test1 is mnt_other_test1 in the target's directory weir-bench",
            "z:\\test1 is z_test1 in the target's directory weir-bench",
        ]
    );
    for wrong in ["/", "a/..", "/dev/sdb", "", "#1"] {
        places.place(wrong).unwrap_err();
    }
}

#[test]
fn mapped_prefixes_are_directories_of_the_target() {
    let options = Options {
        maps: vec![map("z:=data"), map("/mnt/vol:="), map("/mnt:=other")],
        ..Options::default()
    };
    let mut places = paths::Places::new(&options, "weir-bench");
    for (path, directory, name) in [
        ("Z:\\io\\a.dat", "data", "io_a.dat"),
        ("/mnt/vol/set/f1", "set", "f1"),
        ("/mnt/vol/f1", "weir-bench", "f1"),
        ("/mnt/volume/f1", "other", "volume_f1"),
        ("/elsewhere/f1", "weir-bench", "elsewhere_f1"),
    ] {
        let place = places.place(path).unwrap();
        assert_eq!((place.at.directory.as_str(), place.name.as_str()), (directory, name), "{path}");
    }
}

#[test]
fn mapped_prefixes_are_targets() {
    let maps = vec![map("/mnt/a:=nfs://h/a"), map("/mnt/b:=nfs://h/b")];
    let options = Options { maps, ..Options::default() };
    let mut places = paths::Places::new(&options, "weir-bench");
    for (path, target, directory, name) in [
        ("/mnt/a/file1", "nfs://h/a", "weir-bench", "file1"),
        ("/mnt/b/file1", "nfs://h/b", "weir-bench", "file1"),
        ("/mnt/b/set/file1", "nfs://h/b", "set", "file1"),
        ("/mnt/c/file1", "", "weir-bench", "file1"),
    ] {
        let place = places.place(path).unwrap();
        let at = (place.at.target.as_str(), place.at.directory.as_str(), place.name.as_str());
        assert_eq!(at, (target, directory, name), "{path}");
    }
    let changes = places.changes().join("; ");
    assert!(
        changes.contains("file1 in the directory weir-bench of the target nfs://h/b"),
        "{changes}"
    );
}

#[test]
fn what_can_not_be_read_is_named() {
    let error = read(Path::new("/no/such/jobs.fio"), &Options::default()).unwrap_err();
    assert!(error.to_string().starts_with("/no/such/jobs.fio: cannot be read"), "{error}");
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("what.txt");
    std::fs::write(&path, "hello").unwrap();
    let error = read(&path, &Options::default()).unwrap_err().to_string();
    assert!(error.contains("what.txt: its language cannot be determined"), "{error}");
}

/// `WEIR_LANGUAGES=write` writes the tables into the page.
#[test]
fn the_page_prints_the_tables_by_which_languages_are_read() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/bench-languages.md");
    let mut text = std::fs::read_to_string(&page).unwrap();
    for (name, table) in [("native", reference::native()), ("fio", reference::fio())] {
        let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("\n<!-- {name}: end -->"));
        let (before, rest) = text.split_once(&begin).expect(name);
        let (printed, after) = rest.split_once(&end).expect(name);
        if std::env::var_os("WEIR_LANGUAGES").is_some_and(|what| what == "write") {
            text = format!("{before}{begin}{table}{end}{after}");
            std::fs::write(&page, &text).unwrap();
        } else {
            assert_eq!(printed, table, "run this test with WEIR_LANGUAGES=write");
        }
    }
}

#[test]
fn a_command_line_in_a_file_is_called_by_the_file() {
    let source = |text: &str| Source {
        name: "dir/smb.diskspd".to_owned(),
        text: text.to_owned(),
        language: Language::Diskspd,
    };
    let read = |text: &str| scenario(&source(text), &Options::default());
    let error = read("diskspd.exe -c2G -q7 z:\\a.dat").unwrap_err().to_string();
    assert!(error.starts_with("dir/smb.diskspd: -q7:"), "{error}");
    assert_eq!(read("diskspd.exe -c2G z:\\a.dat").unwrap().name, "smb");
}

#[test]
fn what_is_no_text_is_told_apart() {
    let dir = tempfile::tempdir().unwrap();
    let told = |name: &str| read(&dir.path().join(name), &Options::default()).unwrap_err().message;
    std::fs::write(dir.path().join("a.fio"), [0xff, 0xfe, 0x00]).unwrap();
    assert_eq!(told("a.fio"), "is not valid UTF-8 text");
    let large = std::fs::File::create(dir.path().join("b.fio")).unwrap();
    large.set_len(1 << 30).unwrap();
    assert_eq!(told("b.fio"), "holds 1 GiB, and the longest text that is read 4 MiB");
    std::fs::create_dir(dir.path().join("c.fio")).unwrap();
    assert_eq!(told("c.fio"), "is not a regular file");
}
