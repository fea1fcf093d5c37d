//! Deleting a volume at a terminal, which `script` of util-linux gives to a program.

use crate::test_server::TestServer;
use std::io::{Read, Write};
use std::process::{Child, ChildStdout, Command, Stdio};

/// `weir volume delete good` in front of somebody.
struct Asked {
    script: Child,
    screen: ChildStdout,
    seen: String,
}

impl Asked {
    /// Waits until it asks.
    fn begin(server: &TestServer) -> Self {
        let command = format!(
            "{} --data {} volume delete good",
            env!("CARGO_BIN_EXE_weir"),
            server.data().display()
        );
        let mut script = Command::new("script")
            .args(["--quiet", "--return", "--command", &command, "/dev/null"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut screen = script.stdout.take().unwrap();
        let mut seen = String::new();
        while !seen.contains("Type the name of the volume to continue: ") {
            let mut some = [0; 256];
            let count = screen.read(&mut some).unwrap();
            assert!(count > 0, "it ended without a question: {seen}");
            seen += &String::from_utf8_lossy(&some[..count]);
        }
        Self { script, screen, seen }
    }

    /// Types, and gives whether it succeeded and all that it said.
    fn answer(mut self, typed: &str) -> (bool, String) {
        let mut keyboard = self.script.stdin.take().unwrap();
        keyboard.write_all(typed.as_bytes()).unwrap();
        self.screen.read_to_string(&mut self.seen).unwrap();
        (self.script.wait().unwrap().success(), self.seen)
    }
}

#[test]
fn what_was_seen_is_deleted_and_nothing_else() {
    let server = TestServer::start();
    server.volume("good", "1TiB");
    let exists = || server.weir(&["volume", "list"]).contains("good");

    let (done, said) = Asked::begin(&server).answer("food\n");
    assert!(
        !done && said.contains("data (0 B)") && said.contains("not deleted") && exists(),
        "{said}"
    );

    // Somebody makes another of this name while the question stands.
    let asked = Asked::begin(&server);
    server.weir(&["volume", "delete", "good", "--yes"]);
    server.volume("good", "1TiB");
    let (done, said) = asked.answer("good\n");
    assert!(!done && said.contains("changed") && exists(), "{said}");

    let (done, said) = Asked::begin(&server).answer("good\n");
    assert!(done && said.contains("volume good deleted") && !exists(), "{said}");

    // Without a terminal nobody is asked, and nothing is deleted.
    server.volume("good", "1TiB");
    let refused = server.try_weir(&["volume", "delete", "good"]);
    assert!(String::from_utf8_lossy(&refused.stderr).contains("confirm with --yes") && exists());
    let late = server.try_weir(&["volume", "delete", "good", "--yes", "--if-match", "0123"]);
    assert!(String::from_utf8_lossy(&late.stderr).contains("changed") && exists());
}
