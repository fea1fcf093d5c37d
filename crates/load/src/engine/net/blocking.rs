//! A connection for calls outside the measured interval. Reads and writes block, end when the run
//! is stopped, and report long waits.

use crate::control::Control;
use crate::error::BenchError;
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

/// A throttled volume may delay a window of large writes by tens of seconds.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(120);
/// Time that an answer may take once the run is stopped, where the server has to be tidied up: a
/// throttled volume still has the requests of the load before it.
const STOPPED_TIMEOUT: Duration = Duration::from_secs(30);
/// Time between two looks for a stop.
const LOOK: Duration = Duration::from_millis(100);
/// Time between two messages about a wait.
const TELL: Duration = Duration::from_secs(10);

/// The time limits for answers of a server.
#[derive(Clone)]
pub struct Waits {
    control: Control,
    answer: Duration,
    stopped: Duration,
}

impl Default for Waits {
    /// Two minutes for each answer; nothing stops the wait.
    fn default() -> Self {
        Self::working(&Control::new())
    }
}

impl Waits {
    /// For calls that change nothing at the server: a stop by `control` ends the wait at once.
    #[must_use]
    pub fn checking(control: &Control) -> Self {
        Self { control: control.clone(), answer: ANSWER_TIMEOUT, stopped: Duration::ZERO }
    }

    /// For calls that change something at the server: after a stop by `control` the wait goes on
    /// for up to half a minute, so that nothing happens at the server afterwards. Once an answer
    /// has not come in that time, no further one of the run gets it.
    #[must_use]
    pub fn working(control: &Control) -> Self {
        Self { stopped: STOPPED_TIMEOUT, ..Self::checking(control) }
    }

    /// The same, but at most `answer` for each answer.
    #[must_use]
    pub fn at_most(&self, answer: Duration) -> Self {
        Self { answer: answer.min(self.answer), ..self.clone() }
    }

    /// Is the time over that a stop leaves to an answer, which has been awaited for `since`?
    fn stopped(&self, since: Duration) -> bool {
        let is_over = self.control.stopped() && (since >= self.stopped || self.control.gave_up());
        if is_over && self.stopped > Duration::ZERO {
            self.control.give_up();
        }
        is_over
    }
}

/// A connection to `service` of a server.
pub(in crate::engine) struct Blocking {
    stream: TcpStream,
    address: SocketAddr,
    service: &'static str,
    waits: Waits,
    /// The wait for the next answer, if a part of it was asked for.
    wait: Option<Wait>,
}

/// A wait that has not ended.
struct Wait {
    began: Instant,
    told: Duration,
}

impl Wait {
    fn begin() -> Self {
        Self { began: Instant::now(), told: TELL }
    }
}

impl Blocking {
    pub(in crate::engine) fn new(
        stream: TcpStream,
        (address, service): (SocketAddr, &'static str),
        waits: &Waits,
    ) -> Result<Self, BenchError> {
        stream
            .set_read_timeout(Some(LOOK))
            .and_then(|()| stream.set_write_timeout(Some(LOOK)))
            .map_err(|source| BenchError::Connection { address, source })?;
        Ok(Self { stream, address, service, waits: waits.clone(), wait: None })
    }

    /// The server's address.
    pub(in crate::engine) const fn address(&self) -> SocketAddr {
        self.address
    }

    /// The called program or protocol.
    pub(in crate::engine) const fn service(&self) -> &'static str {
        self.service
    }

    /// The connection itself, for the load.
    pub(in crate::engine) fn into_stream(self) -> TcpStream {
        self.stream
    }

    /// Changes the time limits for answers.
    pub(in crate::engine) fn set_waits(&mut self, waits: Waits) {
        self.waits = waits;
    }

    /// Reads at least one byte of the next answer, and waits for it. The time limits are those of
    /// the whole answer, which ends with [`Blocking::answered`]: a server that sends it byte by
    /// byte does not extend them.
    pub(in crate::engine) fn read(&mut self, space: &mut [u8]) -> Result<usize, BenchError> {
        let mut wait = self.wait.take().unwrap_or_else(Wait::begin);
        loop {
            self.check(&mut wait, Instant::now())?;
            match self.stream.read(space) {
                Ok(0) => return Err(self.lost(io::Error::from(io::ErrorKind::UnexpectedEof))),
                Ok(count) => {
                    self.wait = Some(wait);
                    return Ok(count);
                }
                Err(error) => self.blocked(error)?,
            }
        }
    }

    /// Notes that an answer was received in full.
    pub(in crate::engine) fn answered(&mut self) {
        self.wait = None;
    }

    /// Writes all of `bytes`. Every byte that the server takes extends the time limit, but none
    /// extends the time that a stop leaves.
    pub(in crate::engine) fn write_all(&mut self, mut bytes: &[u8]) -> Result<(), BenchError> {
        let mut wait = Wait::begin();
        while !bytes.is_empty() {
            self.check(&mut wait, Instant::now())?;
            match self.stream.write(bytes) {
                Ok(0) => return Err(self.lost(io::Error::from(io::ErrorKind::WriteZero))),
                Ok(count) => {
                    if !self.waits.control.stopped() {
                        wait = Wait::begin();
                    }
                    bytes = bytes.get(count..).unwrap_or(&[]);
                }
                Err(error) => self.blocked(error)?,
            }
        }
        Ok(())
    }

    /// Fails unless `error` only tells that nothing moved for a while.
    fn blocked(&self, error: io::Error) -> Result<(), BenchError> {
        // A socket with a timeout is not read on after a signal (signal(7)).
        let goes_on =
            [io::ErrorKind::WouldBlock, io::ErrorKind::TimedOut, io::ErrorKind::Interrupted];
        if goes_on.contains(&error.kind()) { Ok(()) } else { Err(self.lost(error)) }
    }

    /// Fails if `wait` has reached a limit at `now`, and reports a long one. An answer that comes
    /// at once is taken in any case.
    fn check(&self, wait: &mut Wait, now: Instant) -> Result<(), BenchError> {
        let (address, service, waits) = (self.address, self.service, &self.waits);
        let since = now.saturating_duration_since(wait.began);
        if since < LOOK {
            return Ok(());
        }
        if waits.stopped(since) {
            return Err(BenchError::Stopped { address, service });
        }
        if since >= waits.answer {
            let said = format!("no answer for {} s", waits.answer.as_secs());
            return Err(self.lost(io::Error::new(io::ErrorKind::TimedOut, said)));
        }
        if since >= wait.told {
            let seconds = since.as_secs();
            let sentence =
                format!("waiting for an answer of {address} ({service}), {seconds} s ...");
            waits.control.tell_wait(&sentence);
            wait.told = since + TELL;
        }
        Ok(())
    }

    fn lost(&self, source: io::Error) -> BenchError {
        BenchError::Connection { address: self.address, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;
    use std::sync::mpsc::channel;

    /// A connection to a server that says nothing, and the server's end.
    fn silent(waits: &Waits) -> (Blocking, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let stream = TcpStream::connect(address).unwrap();
        let (server, _) = listener.accept().unwrap();
        (Blocking::new(stream, (address, "MOUNT"), waits).unwrap(), server)
    }

    #[test]
    fn a_stop_ends_a_wait_in_either_direction_and_says_what_was_waited_for() {
        let control = Control::new();
        for writes in [false, true] {
            let (mut blocking, _server) = silent(&Waits::checking(&control));
            control.stop();
            // Far more than both ends of a connection hold.
            let outcome = if writes {
                blocking.write_all(&vec![0; 256 << 20])
            } else {
                blocking.read(&mut [0; 10]).map(drop)
            };
            let address = blocking.address();
            let told = format!("stopped while waiting for an answer of {address} (MOUNT)");
            assert_eq!(outcome.unwrap_err().to_string(), told);
        }
    }

    #[test]
    fn an_answer_that_is_there_is_taken_after_a_stop_too() {
        let control = Control::new();
        let (mut blocking, mut server) = silent(&Waits::checking(&control));
        control.stop();
        server.write_all(b"reply").unwrap();
        assert_eq!(blocking.read(&mut [0; 10]).unwrap(), 5);
    }

    /// A wait that began `seconds` before `now`.
    fn since(seconds: u64, now: Instant) -> Wait {
        Wait { began: now.checked_sub(Duration::from_secs(seconds)).unwrap(), told: TELL }
    }

    #[test]
    fn work_at_the_server_is_waited_for_after_a_stop_until_an_answer_does_not_come() {
        let (control, now) = (Control::new(), Instant::now());
        let (mut blocking, mut server) = silent(&Waits::working(&control));
        control.stop();
        blocking.check(&mut since(29, now), now).unwrap();
        server.write_all(b"reply").unwrap();
        assert_eq!(blocking.read(&mut [0; 10]).unwrap(), 5);
        let over = blocking.check(&mut since(30, now), now);
        assert!(matches!(over, Err(BenchError::Stopped { .. })));
        let (other, _server) = silent(&Waits::working(&control));
        let next = other.check(&mut since(1, now), now);
        assert!(matches!(next, Err(BenchError::Stopped { .. })), "no second answer is awaited");
        other.check(&mut since(0, now), now).unwrap();
    }

    #[test]
    fn a_look_at_the_server_that_was_stopped_leaves_time_to_the_work_after_it() {
        let (control, now) = (Control::new(), Instant::now());
        let (looking, _server) = silent(&Waits::checking(&control));
        let (working, _other) = silent(&Waits::working(&control));
        control.stop();
        assert!(looking.check(&mut since(1, now), now).is_err());
        working.check(&mut since(29, now), now).unwrap();
    }

    #[test]
    fn an_answer_in_pieces_has_the_time_of_one() {
        let control = Control::new();
        let (mut blocking, mut server) = silent(&Waits::checking(&control));
        server.write_all(b"re").unwrap();
        assert_eq!(blocking.read(&mut [0; 10]).unwrap(), 2);
        // The first piece came two minutes ago.
        let began = &mut blocking.wait.as_mut().unwrap().began;
        *began = began.checked_sub(ANSWER_TIMEOUT).unwrap();
        server.write_all(b"ply").unwrap();
        let error = blocking.read(&mut [0; 10]).unwrap_err().in_full();
        assert!(error.contains("no answer for 120 s"), "{error}");
        blocking.answered();
        assert_eq!(blocking.read(&mut [0; 10]).unwrap(), 3, "the next answer has its own time");
    }

    #[test]
    fn a_long_wait_is_told_every_ten_seconds_and_ends() {
        let (control, now) = (Control::new(), Instant::now());
        let (sender, told) = channel();
        control.on_wait(move |sentence| sender.send(sentence.to_owned()).unwrap());
        let (blocking, _server) = silent(&Waits::checking(&control));
        let mut wait = since(10, now);
        blocking.check(&mut wait, now).unwrap();
        blocking.check(&mut wait, now + Duration::from_secs(9)).unwrap();
        let told: Vec<String> = told.try_iter().collect();
        let address = blocking.address();
        assert_eq!(told, [format!("waiting for an answer of {address} (MOUNT), 10 s ...")]);
        let error = blocking.check(&mut since(120, now), now).unwrap_err().in_full();
        assert!(error.contains("no answer for 120 s"), "{error}");
    }
}
