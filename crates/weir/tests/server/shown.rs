//! Texts that others chose, as they reach a terminal: through every command that shows them.

use crate::test_server::TestServer;
use serde_json::Value;
use std::fs::File;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

const WEIR: &str = env!("CARGO_BIN_EXE_weir");

/// Escape sequences, ends of lines, and characters that turn text or are not seen.
const EVIL: &str = "x\u{1b}[31m\nFAKE pool\r\u{9b}2J\u{202e}\u{2028}\u{200b}\u{7f}\tz";

/// [`EVIL`] as commands show it.
const SHOWN: &str = r"x\u{1b}[31m\nFAKE pool\r\u{9b}2J\u{202e}\u{2028}\u{200b}\u{7f}\tz";

fn harmful(letter: char) -> bool {
    letter != '\n' && (letter.is_control() || "\u{202e}\u{2028}\u{200b}".contains(letter))
}

/// The output of a command, which must be harmless and have no line that begins with a value's.
fn harmless(what: &str, printed: &[u8]) -> String {
    let text = String::from_utf8(printed.to_vec()).unwrap();
    assert!(!text.contains(harmful), "{what}: {text:?}");
    assert!(text.lines().all(|line| !line.starts_with("FAKE")), "{what}: {text}");
    text
}

/// Both outputs of a command, however it ends.
fn both(what: &str, output: &Output) -> (String, String) {
    (harmless(what, &output.stdout), harmless(what, &output.stderr))
}

#[test]
fn nothing_that_others_chose_commands_a_terminal_or_makes_a_line() {
    let server = TestServer::start();
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join(EVIL);
    std::fs::create_dir(&place).unwrap();
    let place = place.to_str().unwrap();
    let run = |args: &[&str]| both(&args.join(" "), &server.try_weir(args));
    let (made, complaint) =
        run(&["pool", "create", "evil", "--level", "premium", "--size", "1TiB", "--path", place]);
    assert!(made.starts_with("pool evil"), "{made} {complaint}");
    run(&["volume", "create", "v", "--pool", "evil", "--quota", "1GiB"]);

    let (shown, _) = run(&["pool", "show", "evil"]);
    let directory = shown.lines().find(|line| line.starts_with("directory")).unwrap();
    assert!(directory.ends_with(SHOWN), "{directory}");
    assert_eq!(shown.lines().count(), 10, "{shown}");
    let (capacity, _) = run(&["capacity"]);
    assert!(!capacity.is_empty());
    for args in [
        &["pool", "list"][..],
        &["volume", "list"],
        &["volume", "show", "v"],
        &["volume", "why", "v"],
        &["volume", "report", "v"],
        &["export", "list", "v"],
        &["catalog", "check"],
        &["health"],
        &["audit"],
        &["top", "--once"],
        &["level", "list"],
        &["token", "list"],
    ] {
        let (out, complaint) = run(args);
        assert!(complaint.is_empty() && !out.is_empty(), "{args:?}: {complaint}");
        let json = server.try_weir(&[&["--output", "json"][..], args].concat());
        let (out, complaint) = both(&args.join(" "), &json);
        assert!(complaint.is_empty(), "{args:?}: {complaint}");
        for line in out.lines().filter(|_| args[0] == "audit") {
            serde_json::from_str::<Value>(line).unwrap();
        }
    }
    let json = server.weir(&["--output", "json", "pool", "show", "evil"]);
    assert_eq!(serde_json::from_str::<Value>(&json).unwrap()["directory"], place);
}

/// Errors, of the server, of files, and of the command line itself.
#[test]
fn nothing_in_an_error_commands_a_terminal_or_makes_a_line() {
    let server = TestServer::start();
    for args in [
        &["pool", "show", EVIL][..],
        &["volume", "delete", EVIL, "--yes"],
        &["pool", "create", EVIL, "--level", "premium", "--size", "1TiB"],
        &["pool", "create", "p", "--level", EVIL, "--size", "1TiB"],
        &["pool", "create", "p", "--level", "premium", "--size", EVIL],
        &["pool", "create", "p", "--level", "premium", "--size", "1TiB", "--qos", EVIL],
        &["catalog", "check", "--backup", EVIL],
        &["volume", "report", "--verify", EVIL],
        &["--server", EVIL, "pool", "list"],
        &["--data", EVIL, "pool", "list"],
        &["bench", EVIL, "--rw", "read"],
        &["bench", "run", EVIL, "/tmp", "--dry-run"],
        &["bench", "report", EVIL],
        &[EVIL],
        &["--x\u{1b}[2J\ny"],
        &["pool", EVIL],
    ] {
        let output = server.try_weir(args);
        let (_, complaint) = both(&args.join(" "), &output);
        assert!(!output.status.success(), "{args:?}");
        assert!(!complaint.is_empty(), "{args:?}");
        let json = server.try_weir(&[&["--output", "json"][..], args].concat());
        let (_, complaint) = both(&args.join(" "), &json);
        serde_json::from_str::<Value>(&complaint).unwrap();
    }
}

/// Help names variables and not their values; errors about them are one line.
#[test]
fn no_value_of_the_environment_commands_a_terminal_or_makes_a_line() {
    let mut help = Command::new(WEIR);
    help.args(["pool", "list", "--help"]).env("WEIR_DATA", EVIL);
    let (help, _) = both("--help", &help.output().unwrap());
    assert!(help.contains("[env: WEIR_DATA]"), "{help}");
    let mut config = Command::new(WEIR);
    config.args(["config", "show"]).env("WEIR_DATA", "/d\u{202e}\nFAKE\u{1b}[2J\u{7f}");
    let (config, complaint) = both("config show", &config.output().unwrap());
    assert!(
        config.contains(r#"data = "/d\u202e\u000aFAKE\u001b[2J\u007f""#),
        "{config}{complaint}"
    );
    let mut wrong = Command::new(WEIR);
    wrong.args(["pool", "list"]).env("WEIR_API_FINGERPRINT", EVIL);
    let wrong = wrong.output().unwrap();
    assert_eq!(wrong.status.code(), Some(2));
    let (_, complaint) = both("a wrong variable", &wrong);
    assert!(complaint.lines().count() == 1 && complaint.contains("FAKE"), "{complaint}");
}

/// A server whose pool is away says so in its log, with the pool's directory.
#[test]
fn a_line_of_the_log_is_one_line_in_each_format() {
    let mut server = TestServer::start();
    let base = tempfile::tempdir().unwrap();
    let place = base.path().join(EVIL);
    std::fs::create_dir(&place).unwrap();
    let (level, place) = (["--level", "premium", "--size", "1TiB"], place.to_str().unwrap());
    server.weir(&[&["pool", "create", "evil", "--path", place][..], &level].concat());
    server.weir(&["volume", "create", "v", "--pool", "evil", "--quota", "1GiB"]);
    server.stop("TERM");
    std::fs::rename(place, base.path().join("away")).unwrap();
    for format in ["text", "json"] {
        let log = log_of_a_start(server.data(), base.path(), format);
        let told: Vec<_> = log.lines().filter(|line| line.contains("FAKE")).collect();
        assert!(!told.is_empty(), "{log}");
        for line in log.lines() {
            match format {
                "json" => drop(serde_json::from_str::<Value>(line).unwrap()),
                _ => assert!(line.starts_with("20"), "{line}"),
            }
        }
    }
}

/// The log of a server on `data`, until it answers.
fn log_of_a_start(data: &Path, base: &Path, format: &str) -> String {
    let log = base.join(format!("{format}.log"));
    let mut server = Command::new(WEIR)
        .args(["serve", "--nfs", "127.0.0.1:0", "--api", "none", "--log-format", format, "--data"])
        .arg(data)
        .stdout(Stdio::null())
        .stderr(File::create(&log).unwrap())
        .spawn()
        .unwrap();
    let answers = || {
        let health = Command::new(WEIR).arg("--data").arg(data).args(["pool", "list"]).output();
        health.unwrap().status.success()
    };
    let answered = (0..600).any(|_| {
        std::thread::sleep(Duration::from_millis(100));
        answers()
    });
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(answered, "the server does not answer");
    harmless(format, &std::fs::read(&log).unwrap())
}
