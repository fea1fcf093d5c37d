//! Users, groups, passwords and shares on the command line, as an operator uses it.

use crate::test_server::TestServer;
use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
use serde_json::Value;
use std::fs::{File, OpenOptions};
use std::io::{Read, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

const WEIR: &str = env!("CARGO_BIN_EXE_weir");
const SECRET: &str = "correct horse battery";

/// Runs the command line with `input` on its standard input.
fn with_input(server: &TestServer, args: &[&str], input: &str) -> Output {
    let mut command = Command::new(WEIR);
    command.arg("--data").arg(server.data()).args(args);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = command.spawn().unwrap();
    // A command that is refused before it reads has closed the pipe.
    drop(process.stdin.take().unwrap().write_all(input.as_bytes()));
    process.wait_with_output().unwrap()
}

fn done(output: &Output) -> String {
    let complaint = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{complaint}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

/// The lines of a command's output, with single blanks between the columns.
fn rows(server: &TestServer, args: &[&str]) -> Vec<String> {
    let text = server.weir(args);
    text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect()
}

/// The complaint of a command that must fail with `status`.
fn refused(output: &Output, status: i32) -> String {
    let complaint = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{complaint}");
    complaint
}

#[test]
fn an_operator_has_users_and_groups() {
    let server = TestServer::start();
    server.weir(&["group", "create", "staff", "--gid", "50"]);
    let create = ["user", "create", "alice", "--uid", "1000", "--group", "staff"];
    let made = done(&with_input(&server, &create, &format!("{SECRET}\n")));
    let expected = "user alice: uid 1000, gid 1000, groups staff, enabled, password: set\n";
    assert_eq!(made, expected);
    let made = server.weir(&["user", "create", "Bob B", "--uid", "1001", "--no-password"]);
    assert_eq!(made, "user Bob B: uid 1001, gid 1001, enabled, password: none\n");
    assert_eq!(
        server.weir(&["group", "add", "staff", "bob b"]),
        "group staff: gid 50, 2 member(s)\n"
    );
    let list = rows(&server, &["user", "list"]);
    assert_eq!(list[1], "alice 1000 1000 staff set enabled");
    let off = server.weir(&["user", "set", "alice", "--disable", "--no-groups", "--gid", "7"]);
    assert_eq!(off, "user alice: uid 1000, gid 7, disabled, password: set\n");
    let plan = server.weir(&["user", "set", "alice", "--enable", "--dry-run"]);
    assert!(plan.starts_with("Dry run, nothing is changed: user alice"), "{plan}");
    let shown = server.weir(&["--output", "json", "user", "show", "ALICE"]);
    let shown: Value = serde_json::from_str(&shown).unwrap();
    assert_eq!((&shown["name"], &shown["enabled"]), (&"alice".into(), &false.into()));
    assert!(shown["sid"].as_str().unwrap().ends_with("-1001"), "{shown}");
    assert_eq!(rows(&server, &["group", "show", "staff"])[2], "members Bob B");
    server.weir(&["group", "remove", "staff", "Bob B"]);
    server.weir(&["group", "delete", "staff"]);
    server.weir(&["user", "delete", "alice"]);
    assert_eq!(server.weir(&["--output", "json", "group", "list"]), "[]\n");
    let root = server.try_weir(&["user", "create", "root", "--uid", "0", "--no-password"]);
    assert!(refused(&root, 1).contains("root has no access over SMB"));
    let nothing = server.try_weir(&["user", "set", "Bob B"]);
    assert!(refused(&nothing, 2).contains("required"));
    let findings = server.weir(&["--output", "json", "catalog", "check"]);
    assert!(findings.contains("\"findings\": []"), "{findings}");
}

#[test]
fn a_password_is_a_line_of_standard_input_and_never_an_argument() {
    let server = TestServer::start();
    server.weir(&["user", "create", "alice", "--uid", "1000", "--no-password"]);
    let password = ["user", "password", "alice"];
    let set = done(&with_input(&server, &password, &format!("{SECRET}\r\nanother\n")));
    assert!(set.ends_with("password: set\n"), "{set}");
    let short = with_input(&server, &password, "short");
    done(&short);
    assert!(String::from_utf8_lossy(&short.stderr).contains("fewer than 12 characters"));
    for wrong in ["", "\n", &"x".repeat(257)] {
        let complaint = refused(&with_input(&server, &password, wrong), 1);
        assert!(complaint.contains("1 to 256 characters"), "{complaint}");
    }
    refused(&server.try_weir(&["user", "password", "alice", SECRET]), 2);
    let unknown = with_input(&server, &["user", "password", "bob"], SECRET);
    assert!(refused(&unknown, 1).contains("user \"bob\" does not exist"));
    // A user that can't be made is refused before the password is read.
    let taken = ["user", "create", "ALICE", "--uid", "1001"];
    assert!(refused(&with_input(&server, &taken, SECRET), 1).contains("already exists"));
    let log = std::fs::read_to_string(server.data().join("audit.log")).unwrap();
    assert!(log.contains("/v1/users/alice/password") && !log.contains(SECRET));
}

/// Damage to a file.
type Fault = fn(&Path);

#[test]
fn a_start_with_a_key_of_passwords_that_is_of_no_use_is_told() {
    let mut server = TestServer::start();
    let create = ["user", "create", "alice", "--uid", "1000"];
    done(&with_input(&server, &create, SECRET));
    let (key, place) = (server.data().join("smb.key"), tempfile::tempdir().unwrap());
    let whole = std::fs::read(&key).unwrap();
    let faults: [(&str, Fault); 3] = [
        ("smb.key is missing", |key| std::fs::remove_file(key).unwrap()),
        ("smb.key is not a key", |key| std::fs::write(key, "damaged").unwrap()),
        ("smb.key cannot be read", |key| {
            std::fs::remove_file(key).unwrap();
            std::fs::create_dir(key).unwrap();
        }),
    ];
    server.stop("TERM");
    for (told, damage) in faults {
        damage(&key);
        let log = place.path().join("log");
        let settings = [("WEIR_LOG_LEVEL", "warn")];
        server.serve_again_logging(&settings, File::create(&log).unwrap().into());
        let listed = server.weir(&["user", "list"]);
        assert!(listed.contains("unreadable"), "{listed}");
        // The log is whole when the server has ended.
        server.stop("TERM");
        let log = std::fs::read_to_string(log).unwrap();
        let line = log.lines().find(|line| line.contains("users cannot log in over SMB"));
        assert!(line.is_some_and(|line| line.contains(told)), "{told}: {log}");
    }
    std::fs::remove_dir(&key).unwrap();
    std::fs::write(&key, whole).unwrap();
    server.serve_again();
    assert!(!server.weir(&["user", "list"]).contains("unreadable"));
}

/// A terminal: its controlling end, and the end of a program.
fn terminal() -> (File, File) {
    let controlling = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
    grantpt(&controlling).unwrap();
    unlockpt(&controlling).unwrap();
    let path = ptsname(&controlling, Vec::new()).unwrap().into_string().unwrap();
    let programs = OpenOptions::new().read(true).write(true).open(path).unwrap();
    (File::from(controlling), programs)
}

/// Types `answers` at a terminal, one for each question, and gives all that the terminal showed.
fn typed(server: &TestServer, answers: &[&str]) -> (bool, String) {
    let (mut keys, programs) = terminal();
    let mut command = Command::new(WEIR);
    command.arg("--data").arg(server.data()).args(["user", "password", "alice"]);
    command.stdin(programs.try_clone().unwrap());
    command.stdout(programs.try_clone().unwrap()).stderr(programs);
    let mut process = command.spawn().unwrap();
    // Its copies of the program's end would keep the terminal open.
    drop(command);
    let (mut shown, mut answers) = (String::new(), answers.iter());
    let mut part = [0; 1024];
    while let Ok(count) = keys.read(&mut part)
        && count > 0
    {
        shown += &String::from_utf8_lossy(&part[..count]);
        if shown.ends_with(": ")
            && let Some(answer) = answers.next()
        {
            keys.write_all(answer.as_bytes()).unwrap();
        }
    }
    (process.wait().unwrap().success(), shown)
}

#[test]
fn a_terminal_is_asked_twice_and_shows_nothing() {
    let server = TestServer::start();
    server.weir(&["user", "create", "alice", "--uid", "1000", "--no-password"]);
    let line = format!("{SECRET}\r");
    let (succeeded, shown) = typed(&server, &[&line, &line]);
    assert!(succeeded && shown.contains("password: set"), "{shown}");
    assert!(shown.contains("New password for alice: ") && !shown.contains("horse"), "{shown}");
    let (succeeded, shown) = typed(&server, &[&line, "another one\r"]);
    assert!(!succeeded && shown.contains("the passwords differ"), "{shown}");
    let (succeeded, shown) = typed(&server, &["half\u{3}"]);
    assert!(!succeeded && shown.contains("no password was given"), "{shown}");
}

#[test]
fn an_operator_shares_a_volume() {
    let server = TestServer::start();
    server.weir(&["user", "create", "alice", "--uid", "1000", "--no-password"]);
    server.weir(&["group", "create", "staff", "--gid", "50"]);
    server.volume("home", "1GiB");
    let shown = |name: &str| rows(&server, &["volume", "show", name]);
    assert!(shown("home").contains(&"protocols nfs".to_owned()));
    let set = ["volume", "set", "home", "--protocols", "nfs,smb", "--smb-encrypt", "on"];
    let told = server.weir(&set);
    assert!(told.contains("The server does not serve SMB: start it with --smb"), "{told}");
    assert!(rows(&server, &["health"]).contains(&"smb off".to_owned()));
    for row in ["protocols nfs, smb", "share encryption required", "127.0.0.0/8 every user rw"] {
        assert!(shown("home").contains(&row.to_owned()), "{:?}", shown("home"));
    }
    let add = ["share", "add", "home", "--network", "10.0.0.0/8", "--group", "staff"];
    server.weir(&add);
    let rules = rows(
        &server,
        &["share", "add", "home", "--network", "any", "--user", "alice", "--access", "ro"],
    );
    assert_eq!(rules[0], "share rules of volume home:");
    assert_eq!(
        rules[2..],
        [
            "::1/128 every user rw",
            "10.0.0.0/8 group staff rw",
            "127.0.0.0/8 every user rw",
            "any user alice ro"
        ]
    );
    server.weir(&["share", "remove", "home", "--network", "10.0.0.0/8", "--group", "staff"]);
    for command in ["add", "set", "remove"] {
        let open = server.try_weir(&["share", command, "home"]);
        assert!(refused(&open, 2).contains("--network"), "{command}");
    }
    server.weir(&["share", "set", "home", "--network", "any"]);
    assert_eq!(rows(&server, &["share", "list", "home"])[1..], ["any every user rw"]);
    let none = server.try_weir(&["share", "remove", "home", "--network", "any", "--user", "alice"]);
    assert!(refused(&none, 1).contains("no share rule for user \"alice\" from any network"));
    let both = server.try_weir(&[
        "share",
        "add",
        "home",
        "--network",
        "any",
        "--user",
        "a",
        "--group",
        "b",
    ]);
    refused(&both, 2);
    refused(&server.try_weir(&["volume", "set", "home", "--protocols", "ftp"]), 2);
    refused(&server.try_weir(&["volume", "set", "home"]), 2);
    let contract = ["--pool", "pool", "--quota", "1GiB", "--throughput", "1MiB/s"];
    let only = [&["volume", "create", "win", "--protocols", "smb"][..], &contract].concat();
    let made = server.weir(&only);
    assert!(!made.contains("mount"), "{made}");
    let shown_of = |name: &str, start: &str| shown(name).iter().any(|row| row.starts_with(start));
    assert!(shown("win").contains(&"protocols smb".to_owned()));
    assert!(shown("home").contains(&"export /home".to_owned()));
    for row in ["export ", "NETWORK ACCESS SQUASH"] {
        assert!(shown_of("home", row) && !shown_of("win", row), "{row}: {:?}", shown("win"));
    }
}
