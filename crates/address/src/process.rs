//! The server's process, seen from the helper: whether it has ended, by a pidfd. Not here: the
//! link to it.

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::sockopt::socket_peercred;
use rustix::process::{PidfdFlags, pidfd_open};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// The process at the other end of a link.
///
/// Its end is certain: the kernel tells of it only when no thread of the process runs any more, so
/// that it will never send again.
#[derive(Debug)]
pub struct ServerProcess {
    pidfd: OwnedFd,
}

impl ServerProcess {
    /// The process that made the link (`SO_PEERCRED`).
    ///
    /// # Errors
    /// If there is no such process any more, or the kernel has no pidfds (before Linux 5.3).
    pub fn of_link(link: impl AsFd) -> io::Result<Self> {
        let peer = socket_peercred(link)?;
        Ok(Self { pidfd: pidfd_open(peer.pid, PidfdFlags::empty())? })
    }

    /// Has the process ended?
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn has_ended(&self) -> io::Result<bool> {
        self.wait(Duration::ZERO)
    }

    /// Waits until the process has ended, for `patience` at most. Returns whether it has.
    ///
    /// # Errors
    /// If the kernel does not tell.
    pub fn wait(&self, patience: Duration) -> io::Result<bool> {
        let patience = Timespec::try_from(patience).map_err(|_| Errno::INVAL)?;
        let mut ends = [PollFd::new(&self.pidfd, PollFlags::IN)];
        Ok(retry_on_intr(|| poll(&mut ends, Some(&patience)))? > 0)
    }
}

impl AsFd for ServerProcess {
    /// Readable once the process has ended.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pidfd.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_process_that_runs_has_not_ended() {
        let (_ours, theirs) = UnixStream::pair().unwrap();
        let process = ServerProcess::of_link(&theirs).unwrap();
        assert!(!process.has_ended().unwrap(), "it is this one");
        assert!(!process.wait(Duration::from_millis(1)).unwrap());
    }

    #[test]
    fn the_end_of_a_process_is_told() {
        let mut child = std::process::Command::new("sleep").arg("1000").spawn().unwrap();
        let pid = rustix::process::Pid::from_child(&child);
        let process = ServerProcess { pidfd: pidfd_open(pid, PidfdFlags::empty()).unwrap() };
        assert!(!process.has_ended().unwrap());
        child.kill().unwrap();
        assert!(process.wait(Duration::from_secs(60)).unwrap());
        child.wait().unwrap();
        assert!(process.has_ended().unwrap());
    }
}
