//! The server's end of the link to the helper. Not here: who starts the helper, and when.

use crate::wire::{FrameError, Frames, Numbered, Report, Request};
use std::io::{self, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::process::{Child, Command, Stdio};

/// The server's end of the link. All addresses are removed when the server's process ends, and soon
/// after this was dropped.
#[derive(Debug)]
pub struct HelperLink {
    stream: UnixStream,
    frames: Frames,
    last_number: u32,
}

/// Why there are no more reports.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The socket failed, or the helper's end is closed (`UnexpectedEof`).
    #[error("the link to the helper for addresses: {0}")]
    Io(#[from] io::Error),
    /// The helper sent something that is no report.
    #[error("the link to the helper for addresses: {0}")]
    Frame(#[from] FrameError),
}

impl HelperLink {
    /// Starts `command`, a helper whose standard input is its end of the link.
    ///
    /// # Errors
    /// If it cannot be started.
    pub fn spawn(command: &mut Command) -> io::Result<(Self, Child)> {
        let (ours, theirs) = UnixStream::pair()?;
        let child = command.stdin(Stdio::from(OwnedFd::from(theirs))).spawn()?;
        // The command keeps its copy of the helper's end otherwise, and the link would stay open
        // after the helper's death.
        command.stdin(Stdio::null());
        Ok((Self::new(ours), child))
    }

    /// The link over a connected socket.
    #[must_use]
    pub fn new(stream: UnixStream) -> Self {
        Self { stream, frames: Frames::default(), last_number: 0 }
    }

    /// The socket, for timeouts, and for waiting until there is a report.
    #[must_use]
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Sends a request. Returns its number, which its report will have.
    ///
    /// # Errors
    /// The socket's; a request that was sent in part makes the link unusable.
    pub fn send(&mut self, request: Request) -> io::Result<u32> {
        // 0 is the number of reports that answer none.
        self.last_number = self.last_number.checked_add(1).unwrap_or(1);
        let number = self.last_number;
        self.stream.write_all(&Numbered { number, message: request }.frame())?;
        Ok(number)
    }

    /// The next report, when it has come.
    ///
    /// # Errors
    /// [`LinkError`]; with a timeout on the socket, `WouldBlock` when there was none in time.
    pub fn receive(&mut self) -> Result<Report, LinkError> {
        let mut received = [0; 4096];
        loop {
            if let Some(report) = self.frames.report()? {
                return Ok(report);
            }
            match self.stream.read(&mut received) {
                Ok(0) => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
                Ok(length) => self.frames.push(received.get(..length).unwrap_or_default()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_core::Mono;

    #[test]
    fn requests_are_numbered_and_reports_are_received() {
        let (ours, mut theirs) = UnixStream::pair().unwrap();
        let mut link = HelperLink::new(ours);
        assert_eq!(link.send(Request::Renew { until: Mono(1) }).unwrap(), 1);
        assert_eq!(link.send(Request::Renew { until: Mono(2) }).unwrap(), 2);
        let mut bytes = vec![0; 100];
        let length = theirs.read(&mut bytes).unwrap();
        let mut frames = Frames::default();
        frames.push(&bytes[..length]);
        assert_eq!(frames.request().unwrap().unwrap().number, 1);
        assert_eq!(frames.request().unwrap().unwrap().number, 2);
        theirs.write_all(&Report::Done { number: 2 }.frame()).unwrap();
        assert_eq!(link.receive().unwrap(), Report::Done { number: 2 });
        drop(theirs);
        let LinkError::Io(error) = link.receive().unwrap_err() else { panic!() };
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
