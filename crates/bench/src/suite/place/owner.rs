//! The run that a directory belongs to: each run leaves a name in the directories that it uses, so
//! that a later one recognizes the files of a killed run.

use rustix::io::Errno;
use rustix::process::{Pid, test_kill_process};
use std::fs::{read_link, read_to_string};
use std::path::Path;

/// The directory in a directory of the suite whose only name is that of its run.
pub(super) const MARK: &str = ".weir-bench-run";

/// Characters of the number of a start of a machine that are kept.
const BOOT_CHARS: usize = 13;

/// A run: a process of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Owner {
    /// The run made the directory.
    pub(super) made: bool,
    /// The number of the claim within the run.
    pub(super) number: usize,
    process: u32,
    /// When the process started, in ticks since the machine did.
    started: u64,
    /// The process's namespace of process numbers.
    namespace: u64,
    /// The beginning of the number that the machine drew when it started.
    pub(super) boot: String,
}

impl Owner {
    /// This process; `made` says whether it made the directory of the claim of this number.
    pub(super) fn this(made: bool, number: usize) -> Self {
        let process = std::process::id();
        let started = started(process).unwrap_or(0);
        Self { made, number, process, started, namespace: namespace(), boot: boot() }
    }

    /// Another process of this machine, which made the directory.
    #[cfg(test)]
    pub(super) fn of_process(process: u32) -> Self {
        Self { process, started: started(process).unwrap_or(0), ..Self::this(true, 0) }
    }

    /// Is it this process?
    pub(super) fn is_this(&self) -> bool {
        *self == Self::this(self.made, self.number)
    }

    /// The name that stands for it.
    pub(super) fn name(&self) -> String {
        let Self { made, number, process, started, namespace, boot } = self;
        format!("{}.{process}.{started}.{namespace}.{number}.{boot}", u8::from(*made))
    }

    /// The run that `name` stands for.
    pub(super) fn parse(name: &str) -> Option<Self> {
        let mut parts = name.splitn(6, '.');
        let made = match parts.next()? {
            "0" => false,
            "1" => true,
            _ => return None,
        };
        let process = parts.next()?.parse().ok()?;
        let started = parts.next()?.parse().ok()?;
        let namespace = parts.next()?.parse().ok()?;
        let number = parts.next()?.parse().ok()?;
        let boot = parts.next()?.to_owned();
        Some(Self { made, number, process, started, namespace, boot })
    }

    /// Has it ended? Only that of processes of this machine can be known, which has to be the same
    /// since: `None` for others.
    pub(super) fn has_ended(&self) -> Option<bool> {
        let here = !self.boot.is_empty() && self.boot == boot() && self.namespace == namespace();
        here.then(|| {
            // Of others' processes, a mount of /proc with `hidepid` shows nothing (proc(5)).
            let process = Pid::from_raw(i32::try_from(self.process).unwrap_or(0));
            let signal = process.map_or(Err(Errno::SRCH), test_kill_process);
            ended(self.started, started(self.process), signal)
        })
    }

    /// The number of its process.
    pub(super) const fn process(&self) -> u32 {
        self.process
    }
}

/// Has a process ended that started at `then`? `now` is the start of the process of its number, as
/// far as it can be seen, and `signal` the answer to a signal that nobody receives (kill(2)).
fn ended(then: u64, now: Option<u64>, signal: Result<(), Errno>) -> bool {
    match now {
        Some(now) => now != then,
        None => signal != Err(Errno::PERM),
    }
}

/// When a process started, in ticks since the machine did (proc_pid_stat(5)); `None` if there is no
/// such process.
fn started(process: u32) -> Option<u64> {
    let stat = read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The second field is a name in brackets, which may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    let mut fields = rest.split_whitespace();
    let state = fields.next()?;
    // A zombie has ended. The start is field 22, the 19th behind the state.
    fields.nth(18)?.parse().ok().filter(|_| state != "Z")
}

fn namespace() -> u64 {
    let link = read_link(Path::new("/proc/self/ns/pid")).unwrap_or_default();
    let digits: String = link.to_string_lossy().chars().filter(char::is_ascii_digit).collect();
    digits.parse().unwrap_or(0)
}

fn boot() -> String {
    let id = read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    id.trim().chars().take(BOOT_CHARS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_survives_its_name() {
        let own = Owner::this(true, 7);
        assert_eq!(Owner::parse(&own.name()), Some(own.clone()));
        assert_eq!(own.has_ended(), Some(false));
        for other in ["", "file.00000", "2.1.1.1.1.b", "1.x.1.1.1.b", "1.1.1", "1.1.1.1.b"] {
            assert_eq!(Owner::parse(other), None, "{other:?}");
        }
    }

    #[test]
    fn an_ended_process_and_its_number_used_again_are_told() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let owner = Owner::of_process(child.id());
        assert_eq!(owner.has_ended(), Some(false));
        let earlier = Owner { started: owner.started - 1, ..owner.clone() };
        assert_eq!(earlier.has_ended(), Some(true));
        child.kill().unwrap();
        assert!(child.wait().is_ok());
        assert_eq!(owner.has_ended(), Some(true));
    }

    #[test]
    fn nothing_is_known_of_other_machines() {
        let there = Owner { boot: "another".to_owned(), ..Owner::this(true, 0) };
        assert_eq!(there.has_ended(), None);
        let elsewhere = Owner { namespace: 1, ..Owner::this(true, 0) };
        assert_eq!(elsewhere.has_ended(), None);
    }

    #[test]
    fn a_process_that_cannot_be_seen_lives_if_it_may_not_be_signalled() {
        for (now, signal, has_ended) in [
            (Some(5), Ok(()), false),
            (Some(6), Ok(()), true),
            // A zombie of the same user.
            (None, Ok(()), true),
            (None, Err(Errno::SRCH), true),
            (None, Err(Errno::PERM), false),
        ] {
            assert_eq!(ended(5, now, signal), has_ended, "{now:?} {signal:?}");
        }
    }
}
