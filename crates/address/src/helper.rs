//! The helper: waits for requests, for the ends of leases and for the end of the server, and does
//! in the kernel what they ask for. One thread; nothing that it waits for keeps it from the rest,
//! except the end of a server's process that has closed the link: that process requests nothing any
//! more, and the kernel ends the leases in time.

use crate::announce::{announce, tickle};
use crate::holdings::{Due, Holding, Holdings, Refusal, check_end};
use crate::hook::{Event, Hook, Runs};
use crate::limits::OUTBOX_BYTES_MAX;
use crate::netlink::{addresses, connections, guard};
use crate::place::Place;
use crate::process::ServerProcess;
use crate::wire::{FrameError, Frames, Numbered, Report, Request};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::retry_on_intr;
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixListener, UnixStream};
use std::time::Duration;
use weir_core::Mono;

/// The name by which a helper shows that it is there, in the abstract namespace of Unix sockets:
/// each network namespace has one of its own.
const NAME: &str = "weir-address-helper";

/// Bytes that are received at a time.
const RECEIVE_BYTES: usize = 64 * 1024;

/// How the helper does its work.
#[derive(Clone, Debug)]
pub struct Options {
    /// A program that is run when an address comes and goes.
    pub hook: Option<Hook>,
    /// Longest wait for the end of a server's process that has closed the link; the addresses stay
    /// meanwhile. The kernel closes the sockets of an ended process one after the other. Clients
    /// whose connections are closed may connect anew while the listener is open, and the resets
    /// that the kernel sends when it closes the listener have to reach them.
    pub ending: Duration,
}

impl Default for Options {
    fn default() -> Self {
        Self { hook: None, ending: Duration::from_secs(1) }
    }
}

/// Why the helper ended. All addresses were removed then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The server's process has ended.
    Process,
    /// The server closed the link; its process may still run.
    Link,
    /// The link carried something that is no frame.
    Frame(FrameError),
}

/// Why the helper cannot do its work.
#[derive(Debug, thiserror::Error)]
pub enum HelperError {
    /// There is another helper in this network namespace.
    #[error("another helper owns the addresses of this machine: a machine has one gateway")]
    Another,
    /// The name of the helper cannot be claimed.
    #[error("cannot claim the name of the helper: {0}")]
    Name(#[source] io::Error),
    /// The kernel's rules that end the use of addresses cannot be made.
    #[error("cannot set up the guard over addresses (nftables, in the kernel): {0}")]
    Guard(#[source] io::Error),
    /// The link or the waiting for it failed.
    #[error("cannot wait for the server: {0}")]
    Wait(#[source] io::Error),
}

/// Serves the requests of the server at the other end of `link` until that or the server's process
/// ends. When it returns, on any way, all addresses are removed; if the kernel refuses that, all
/// leases have ended.
///
/// # Errors
/// [`HelperError`]
pub fn run(link: UnixStream, server: &ServerProcess, options: Options) -> Result<End, HelperError> {
    let name = claim_name()?;
    guard::set_up().map_err(HelperError::Guard)?;
    let mut helper = Helper {
        link,
        server,
        frames: Frames::default(),
        outbox: Vec::new(),
        holdings: Holdings::default(),
        hooks: Runs::new(options.hook),
        connections_ended: true,
    };
    let end = helper.serve();
    if matches!(end, Ok(End::Link)) {
        helper.let_end(options.ending);
    }
    helper.give_up();
    // Before the link is closed, so that a helper that is started after that finds it free.
    drop(name);
    end.map_err(HelperError::Wait)
}

/// Claims the name of the helper in this network namespace, for as long as the socket is open.
fn claim_name() -> Result<UnixListener, HelperError> {
    let name = SocketAddr::from_abstract_name(NAME).map_err(HelperError::Name)?;
    UnixListener::bind_addr(&name).map_err(|error| match error.kind() {
        ErrorKind::AddrInUse => HelperError::Another,
        _ => HelperError::Name(error),
    })
}

struct Helper<'a> {
    link: UnixStream,
    server: &'a ServerProcess,
    frames: Frames,
    /// Reports that the server has not received yet.
    outbox: Vec<u8>,
    holdings: Holdings,
    hooks: Runs,
    /// The connections of all removed addresses could be ended.
    connections_ended: bool,
}

/// The reasons for which a wait ended.
struct Ready {
    server_ended: bool,
    requests: bool,
}

impl Helper<'_> {
    fn serve(&mut self) -> io::Result<End> {
        self.link.set_nonblocking(true)?;
        loop {
            self.do_due();
            if !self.send()? {
                return Ok(End::Link);
            }
            let ready = self.wait()?;
            if ready.server_ended {
                return Ok(End::Process);
            }
            if ready.requests
                && let Some(end) = self.receive()?
            {
                return Ok(end);
            }
        }
    }

    /// Waits until there is something to do.
    fn wait(&self) -> io::Result<Ready> {
        let mut interest = PollFlags::empty();
        if self.outbox.len() < OUTBOX_BYTES_MAX {
            interest |= PollFlags::IN;
        }
        if !self.outbox.is_empty() {
            interest |= PollFlags::OUT;
        }
        let mut ends =
            vec![PollFd::new(self.server, PollFlags::IN), PollFd::new(&self.link, interest)];
        ends.extend(self.hooks.ends().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN)));
        let wake_at = self.holdings.wake_at().into_iter().chain(self.hooks.wake_at()).min();
        let patience = wake_at.map(|at| at.since(crate::now()));
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        retry_on_intr(|| poll(&mut ends, patience.as_ref()))?;
        let is_ready = |at: usize, flags: PollFlags| {
            ends.get(at).is_some_and(|end| end.revents().intersects(flags))
        };
        let readable = PollFlags::IN | PollFlags::HUP | PollFlags::ERR;
        Ok(Ready { server_ended: is_ready(0, readable), requests: is_ready(1, readable) })
    }

    /// Receives requests and carries them out. Returns the end of the link, if it is there.
    fn receive(&mut self) -> io::Result<Option<End>> {
        let mut received = vec![0; RECEIVE_BYTES];
        let length = match self.link.read(&mut received) {
            Ok(0) => return Ok(Some(End::Link)),
            Ok(length) => length,
            Err(error) => {
                return match error.kind() {
                    ErrorKind::WouldBlock | ErrorKind::Interrupted => Ok(None),
                    ErrorKind::ConnectionReset => Ok(Some(End::Link)),
                    _ => Err(error),
                };
            }
        };
        self.frames.push(received.get(..length).unwrap_or_default());
        loop {
            let (number, outcome) = match self.frames.request() {
                Ok(None) => return Ok(None),
                Ok(Some(Numbered { number, message })) => (number, self.carry_out(message)),
                Err(FrameError::Message { number, words }) => (number, Err(words)),
                Err(error) => {
                    let refused = Report::Refused { number: 0, words: error.to_string() };
                    self.outbox.extend(refused.frame());
                    self.send()?;
                    return Ok(Some(End::Frame(error)));
                }
            };
            let report = match outcome {
                Ok(()) => Report::Done { number },
                Err(words) => {
                    tracing::warn!(%words, "refused a request for an address");
                    Report::Refused { number, words }
                }
            };
            self.outbox.extend(report.frame());
        }
    }

    /// Sends reports as far as the server takes them. Returns whether there is a link.
    fn send(&mut self) -> io::Result<bool> {
        while !self.outbox.is_empty() {
            match self.link.write(&self.outbox) {
                Ok(sent) => drop(self.outbox.drain(..sent.min(self.outbox.len()))),
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => return Ok(false),
                    _ => return Err(error),
                },
            }
        }
        Ok(true)
    }

    /// Tells the server of something that it did not ask for; dropped if it does not read.
    fn tell(&mut self, report: &Report) {
        tracing::warn!(?report, "about an address");
        if self.outbox.len() < OUTBOX_BYTES_MAX {
            self.outbox.extend(report.frame());
        }
    }

    fn tell_failure(&mut self, address: IpAddr, words: String) {
        self.tell(&Report::Failed { address, words });
    }

    fn carry_out(&mut self, request: Request) -> Result<(), String> {
        let now = crate::now();
        let refused = |refusal: Refusal| refusal.to_string();
        match request {
            Request::Hold { place, until } => {
                check_end(until, now).map_err(refused)?;
                match self.holdings.check(&place).map_err(refused)? {
                    Holding::New => self.add(place, until, now),
                    Holding::Present => {
                        self.holdings.extend(place.address(), until);
                        self.renew_in_kernel(now)
                    }
                }
            }
            Request::Renew { until } => {
                check_end(until, now).map_err(refused)?;
                // An address whose lease has ended is not revived: the server must ask for it.
                self.do_due();
                self.holdings.renew(until);
                self.renew_in_kernel(now)
            }
            Request::Silence { address } => {
                self.holdings.silence(address);
                let silenced = guard::lease(&self.leases());
                silenced.map_err(|error| format!("{address} cannot be silenced: {error}"))
            }
            Request::Release { address } => {
                // One whose lease has ended is gone already.
                let Some(place) = self.holdings.release(address) else { return Ok(()) };
                joined(&self.remove(&place, now))
            }
            Request::Tickle { local, clients } => {
                self.holdings.tickle(local, &clients, now).map_err(refused)
            }
        }
    }

    /// Adds an address: the guard over it first, so that it is never without.
    fn add(&mut self, place: Place, until: Mono, now: Mono) -> Result<(), String> {
        let address = place.address();
        let words = |error: io::Error| format!("{place} cannot be added: {error}");
        let interface = interface_of(&place)?;
        for listed in addresses::find(address).map_err(words)? {
            if listed.permanent {
                return Err(format!("{address} is configured on this machine already"));
            }
            // A leftover of an earlier helper.
            if listed.interface != interface || listed.prefix != place.prefix() {
                addresses::remove(address, listed.prefix, listed.interface).map_err(words)?;
            }
        }
        guard::manage(address).map_err(words)?;
        let mut leases = self.leases();
        leases.push((address, until.since(crate::now())));
        let added = guard::lease(&leases)
            .and_then(|()| addresses::add(&place, interface, whole_seconds(until, now)));
        if let Err(error) = added {
            if let Err(error) = guard::lease(&self.leases()) {
                tracing::warn!(%error, "cannot end the lease of an address that was not added");
            }
            return Err(words(error));
        }
        tracing::info!(%place, "added an address");
        if let Err((address, words)) = self.hooks.tell(Event::Added, &place, now) {
            self.tell_failure(address, words);
        }
        self.holdings.hold(place, until, now);
        Ok(())
    }

    /// Removes an address that is no longer held, and ends its connections. Returns the failures.
    fn remove(&mut self, place: &Place, now: Mono) -> Vec<String> {
        let address = place.address();
        let mut failures = Vec::new();
        // The guard first: not even a reset of its connections leaves after the lease.
        if let Err(error) = guard::lease(&self.leases()) {
            failures.push(format!("the lease of {place} cannot be ended at once: {error}"));
        }
        let removed = interface_of(place).and_then(|interface| {
            addresses::remove(address, place.prefix(), interface)
                .map_err(|error| format!("{place} cannot be removed: {error}"))
        });
        match removed {
            Ok(_) => tracing::info!(%place, "removed an address"),
            Err(words) => failures.push(words),
        }
        if let Err(error) = connections::end_all(address) {
            self.connections_ended = false;
            failures.push(format!("the connections of {address} cannot be ended: {error}"));
        }
        if let Err((_, words)) = self.hooks.tell(Event::Removed, place, now) {
            failures.push(words);
        }
        failures
    }

    /// Brings guard and lifetimes in the kernel to the ends of the leases. An address that somebody
    /// removed is there again then.
    fn renew_in_kernel(&mut self, now: Mono) -> Result<(), String> {
        let mut failures = Vec::new();
        if let Err(error) = guard::lease(&self.leases()) {
            failures.push(format!("the leases cannot be renewed: {error}"));
        }
        for (place, until) in self.holdings.all() {
            let renewed = interface_of(place).and_then(|interface| {
                addresses::add(place, interface, whole_seconds(until, now))
                    .map_err(|error| format!("{place} cannot be renewed: {error}"))
            });
            failures.extend(renewed.err());
        }
        joined(&failures)
    }

    /// Does everything that is due now.
    fn do_due(&mut self) {
        loop {
            // Read anew each time: a helper that was stopped since must not announce an address
            // whose lease has ended meanwhile.
            let now = crate::now();
            let mut ended = None;
            let failure = match self.holdings.due(now) {
                None => break,
                Some(Due::Ended(place)) => {
                    ended = Some(place);
                    None
                }
                Some(Due::Announce(place)) => announce(place)
                    .err()
                    .map(|error| (place.address(), format!("cannot be announced: {error}"))),
                Some(Due::Tickle(address, connections)) => tickle(connections)
                    .err()
                    .map(|error| (address, format!("clients cannot be tickled: {error}"))),
            };
            if let Some(place) = ended {
                self.tell(&Report::Ended { address: place.address() });
                for words in self.remove(&place, now) {
                    self.tell_failure(place.address(), words);
                }
            }
            if let Some((address, words)) = failure {
                self.tell_failure(address, words);
            }
        }
        for (address, words) in self.hooks.attend(crate::now()) {
            self.tell_failure(address, words);
        }
    }

    /// Waits for the end of the server's process, while the leases go on.
    fn let_end(&self, patience: Duration) {
        if let Err(error) = self.server.wait(patience) {
            tracing::error!(%error, "cannot wait for the end of the server's process");
        }
    }

    /// Removes all addresses, and waits for the hooks.
    fn give_up(&mut self) {
        let now = crate::now();
        let silenced = guard::lease(&[]);
        let last_end = self.holdings.all().map(|(_, until)| until).max();
        let places: Vec<Place> = self.holdings.all().map(|(place, _)| place.clone()).collect();
        for place in &places {
            self.holdings.release(place.address());
            for words in self.remove(place, now) {
                tracing::error!(%words, "while all addresses are removed");
            }
        }
        if let Err(error) = silenced {
            tracing::error!(%error, "cannot end all leases at once");
            let is_left = |place: &Place| {
                addresses::find(place.address()).map_or(true, |listed| !listed.is_empty())
            };
            if let Some(end) = last_end.filter(|_| places.iter().any(is_left)) {
                // The kernel ends them by itself. Until then nobody may be told that they are gone.
                std::thread::sleep(end.since(crate::now()));
            }
        }
        while !self.hooks.are_complete() {
            for (address, words) in self.hooks.attend(crate::now()) {
                tracing::error!(%address, %words, "while all addresses are removed");
            }
            if let Err(error) = self.wait_for_hook() {
                tracing::error!(%error, "cannot wait for hooks");
                break;
            }
        }
        // While a connection of a removed address is left, only the guard keeps it silent.
        if self.connections_ended
            && let Err(error) = guard::take_down()
        {
            tracing::warn!(%error, "cannot remove the guard over addresses");
        }
    }

    fn wait_for_hook(&self) -> io::Result<()> {
        let ends = self.hooks.ends().map(|end| PollFd::from_borrowed_fd(end, PollFlags::IN));
        let mut ends: Vec<PollFd<'_>> = ends.collect();
        let patience = self.hooks.wake_at().map(|at| at.since(crate::now()));
        let patience = patience.and_then(|patience| Timespec::try_from(patience).ok());
        if !ends.is_empty() {
            retry_on_intr(|| poll(&mut ends, patience.as_ref()))?;
        }
        Ok(())
    }

    /// The leased addresses with the time that each lease has left. The clock is read here, next to
    /// the call of the kernel that takes the time: a helper that was stopped revives none.
    fn leases(&self) -> Vec<(IpAddr, Duration)> {
        let now = crate::now();
        let leased = self.holdings.leased().filter(|(_, until)| *until > now);
        leased.map(|(address, until)| (address, until.since(now))).collect()
    }
}

fn interface_of(place: &Place) -> Result<u32, String> {
    addresses::index_of(place.interface()).map_err(|error| {
        format!("the interface {} cannot be used: {error}", place.interface().name())
    })
}

/// The kernel ends the lifetime of an address up to this much too early
/// (`ADDRCONF_TIMER_FUZZ_MINUS`, a fiftieth of a second).
const EARLY_MS: u128 = 20;

/// The lifetime that the kernel is told, in whole seconds that reach to the end of the lease: the
/// guard is exact, and an address that vanished before would be missed.
fn whole_seconds(until: Mono, now: Mono) -> u32 {
    let seconds = (until.since(now).as_millis() + EARLY_MS).div_ceil(1000);
    u32::try_from(seconds).unwrap_or(u32::MAX).max(1)
}

fn joined(failures: &[String]) -> Result<(), String> {
    if failures.is_empty() { Ok(()) } else { Err(failures.join("; ")) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lifetime_reaches_to_the_end_of_the_lease() {
        let now = Mono::from_secs(100);
        for (millis, seconds) in [(0, 1), (980, 1), (981, 2), (1_980, 2), (2_999, 4)] {
            assert_eq!(whole_seconds(Mono::from_millis(100_000 + millis), now), seconds);
        }
    }
}
