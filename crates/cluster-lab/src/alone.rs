//! The campaign in namespaces of its own: networks, mounts and processes. Whatever it starts ends
//! with it, however it ends, and two campaigns do not see each other. Not here: what is in there.

use anyhow::{Context, Result};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;
use weir_lab::campaign::this_program;
use weir_lab::process::run as run_program;
use weir_lab::stop::Stop;

/// The parent of the directories for etcd, Ceph and the gateways: on a disk, and with a short path,
/// as sockets are in there.
const PARENT: &str = "/var/tmp";
/// Nice value of everything in there. The processes stand for machines of their own: beside a busy
/// one, gateways that get no processor for seconds lose their leases, rightly.
const PRIORITY: &str = "-10";
/// Time between two looks at the campaign.
const LOOK: Duration = Duration::from_millis(50);

/// A directory that goes away with this.
struct Work(PathBuf);

impl Work {
    fn new(parent: &Path) -> Result<Self> {
        let number = std::hash::BuildHasher::hash_one(&std::hash::RandomState::new(), 0);
        let path = parent.join(format!("weir-cluster-{number:016x}"));
        std::fs::create_dir(&path).with_context(|| format!("cannot create {}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Work {
    fn drop(&mut self) {
        if let Err(error) = std::fs::remove_dir_all(&self.0) {
            weir_report::errln!("cannot remove {}: {error}", self.0.display());
        }
    }
}

/// Runs this program again with the same arguments, in new namespaces, until it ends. When it is
/// asked to stop, the campaign inside stops in order. Returns its exit status.
///
/// # Errors
/// If it cannot be started.
pub(crate) fn run(stop: &Stop) -> Result<u8> {
    let work = Work::new(Path::new(PARENT))?;
    // In a session of its own: see `keep_priority`.
    let mut inside = Command::new("setsid");
    inside
        .args(["nice", "-n", PRIORITY, "unshare"])
        .args(["--net", "--mount", "--propagation", "private"])
        .args(["--pid", "--fork", "--kill-child", "--mount-proc", "--"])
        .arg(this_program()?)
        .args(std::env::args_os().skip(1))
        .arg("--inside")
        .arg(&work.0)
        .stdin(Stdio::piped());
    let mut inside = inside.spawn().context("cannot run setsid, of util-linux")?;
    let status = watch(&mut inside, stop)?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(2))
}

/// Waits for the end of the process. Once `stop` is asked, its standard input ends.
fn watch(inside: &mut Child, stop: &Stop) -> Result<ExitStatus> {
    loop {
        if let Some(status) = inside.try_wait().context("cannot watch the campaign")? {
            return Ok(status);
        }
        if stop.asked() {
            // unshare ignores signals: the end of the input is the sign.
            inside.stdin = None;
        }
        std::thread::sleep(LOOK);
    }
}

/// Inside: prepares the namespaces, and asks `stop` when the caller ends or wants an end.
///
/// # Errors
/// If the mounts or the thread are refused.
pub(crate) fn end_with_the_caller(stop: &Stop) -> Result<()> {
    keep_priority();
    // Names of network namespaces are in /run.
    run_program(Command::new("mount").args(["-t", "tmpfs", "-o", "mode=755", "tmpfs", "/run"]))?;
    let stop = stop.clone();
    std::thread::Builder::new().name("input".to_owned()).spawn(move || {
        let mut input = std::io::stdin();
        while input.read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        stop.ask();
    })?;
    Ok(())
}

/// Gives the session of this process its priority beside other sessions. Where the kernel groups
/// processes by sessions (`sched_autogroup_enabled`), a nice value counts within one only.
fn keep_priority() {
    // A kernel without such groups has no such file.
    let _absent = std::fs::write("/proc/self/autogroup", PRIORITY);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_directory_goes_away_and_two_of_them_are_not_one() {
        let parent = tempfile::tempdir().unwrap();
        let (one, other) = (Work::new(parent.path()).unwrap(), Work::new(parent.path()).unwrap());
        assert_ne!(one.0, other.0);
        std::fs::write(one.0.join("file"), "content").unwrap();
        drop((one, other));
        assert_eq!(parent.path().read_dir().unwrap().count(), 0);
    }

    #[test]
    fn a_stop_ends_the_input_of_the_campaign() {
        let mut cat = Command::new("cat").stdin(Stdio::piped()).spawn().unwrap();
        let stop = Stop::default();
        stop.ask();
        assert!(watch(&mut cat, &stop).unwrap().success());
    }
}
