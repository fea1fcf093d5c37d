//! The hook: a program that is run when an address comes and goes, for networks that do not learn
//! it by ARP (a router's or a cloud's interface of control). Its time is bounded, and nothing is
//! delayed by it; the runs of one address follow each other. Not here: what it does.

use crate::place::Place;
use rustix::process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use weir_core::Mono;

/// A program that is run as `PROGRAM add|remove ADDRESS INTERFACE`, with an empty environment but
/// for `PATH`.
#[derive(Clone, Debug)]
pub struct Hook {
    /// The program.
    pub program: PathBuf,
    /// The longest that it may run; then it and its children are killed, which is a failure.
    pub patience: Duration,
}

/// An event of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Event {
    Added,
    Removed,
}

/// The runs of the hook, at most one for each address at a time.
#[derive(Debug)]
pub(crate) struct Runs {
    hook: Option<Hook>,
    /// Removed when its last run has ended, so that there are no more than addresses that were held
    /// within the hook's patience.
    of_address: BTreeMap<IpAddr, Run>,
}

#[derive(Debug)]
struct Run {
    place: Place,
    child: Child,
    pidfd: OwnedFd,
    kill_at: Mono,
    /// The latest event since it was started, for the next run.
    next: Option<Event>,
}

/// A run that failed: the address, and the failure for a person.
pub(crate) type Failure = (IpAddr, String);

impl Runs {
    pub(crate) fn new(hook: Option<Hook>) -> Self {
        Self { hook, of_address: BTreeMap::new() }
    }

    /// Runs the hook for an event, now or when the address's present run has ended. Events between
    /// are left out: only the last counts.
    pub(crate) fn tell(&mut self, event: Event, place: &Place, now: Mono) -> Result<(), Failure> {
        let Some(hook) = &self.hook else { return Ok(()) };
        let address = place.address();
        if let Some(run) = self.of_address.get_mut(&address) {
            run.next = Some(event);
            run.place = place.clone();
            return Ok(());
        }
        let run = start(hook, event, place, now).map_err(|error| {
            let program = hook.program.display();
            (address, format!("the hook {program} cannot be run: {error}"))
        })?;
        self.of_address.insert(address, run);
        Ok(())
    }

    /// Ends runs that take too long, and collects all that have ended: their failures, and those of
    /// the runs after them.
    pub(crate) fn attend(&mut self, now: Mono) -> Vec<Failure> {
        let mut failures = Vec::new();
        let mut ended = Vec::new();
        for (address, run) in &mut self.of_address {
            let outcome = match run.child.try_wait() {
                Ok(None) if now < run.kill_at => continue,
                Ok(None) => {
                    run.kill();
                    Err("took too long and was killed".to_owned())
                }
                Ok(Some(status)) if status.success() => Ok(()),
                Ok(Some(status)) => Err(format!("failed: {status}")),
                Err(error) => Err(format!("cannot be waited for: {error}")),
            };
            if let Err(words) = outcome {
                let program = self.hook.iter().map(|hook| hook.program.display().to_string());
                let program: String = program.collect();
                failures.push((*address, format!("the hook {program} {words}")));
            }
            ended.push(*address);
        }
        for address in ended {
            let Some(run) = self.of_address.remove(&address) else { continue };
            if let Some(event) = run.next {
                failures.extend(self.tell(event, &run.place, now).err());
            }
        }
        failures
    }

    /// The moment at which a run is to be ended next.
    pub(crate) fn wake_at(&self) -> Option<Mono> {
        self.of_address.values().map(|run| run.kill_at).min()
    }

    /// Are all runs complete?
    pub(crate) fn are_complete(&self) -> bool {
        self.of_address.is_empty()
    }

    /// Readable when a run has ended.
    pub(crate) fn ends(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.of_address.values().map(|run| run.pidfd.as_fd())
    }
}

impl Run {
    /// Kills the program with all that it started in its process group, and collects it.
    fn kill(&mut self) {
        let group = Pid::from_child(&self.child);
        if let Err(error) = kill_process_group(group, Signal::KILL) {
            tracing::warn!(%error, "cannot kill a hook that takes too long");
            return;
        }
        if let Err(error) = self.child.wait() {
            tracing::warn!(%error, "cannot collect a hook that was killed");
        }
    }
}

impl Drop for Run {
    fn drop(&mut self) {
        if let Ok(None) = self.child.try_wait() {
            self.kill();
        }
    }
}

fn start(hook: &Hook, event: Event, place: &Place, now: Mono) -> io::Result<Run> {
    let verb = match event {
        Event::Added => "add",
        Event::Removed => "remove",
    };
    let mut command = Command::new(&hook.program);
    command.arg(verb).arg(place.address().to_string()).arg(place.interface().name());
    command.env_clear().env("PATH", "/usr/sbin:/usr/bin:/sbin:/bin");
    // Standard error stays: the words of the program are in the log of the helper.
    command.stdin(Stdio::null()).stdout(Stdio::null()).process_group(0);
    let mut child = command.spawn()?;
    match pidfd_open(Pid::from_child(&child), PidfdFlags::empty()) {
        Ok(pidfd) => {
            let kill_at = now + hook.patience;
            Ok(Run { place: place.clone(), child, pidfd, kill_at, next: None })
        }
        Err(error) => {
            child.kill()?;
            child.wait()?;
            Err(error.into())
        }
    }
}
