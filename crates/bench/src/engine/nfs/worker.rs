//! One thread of the load: an epoll loop over its connections.
//!
//! All replies that are there are taken first, then everything that follows from them leaves in
//! one send, so that the batches of the server come back as batches.

use super::calls::{Encoder, Handles};
use super::conn::{Conn, Expected, Fault, InFlight};
use super::reply::Outcome as ReplyOutcome;
use crate::control::Control;
use crate::engine::job::{Job, Request};
use crate::engine::schedule::Schedule;
use crate::engine::usage::{Usage, UsageMeter};
use crate::engine::{Outcome, Plan};
use crate::error::BenchError;
use crate::stats::{Recorder, Span};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use std::net::SocketAddr;
use std::sync::Arc;
use weir_nfs::client::Caller;

/// Events taken at once.
const EVENTS: usize = 256;
/// Receive buffer where replies are small, or their data is looked at in passing.
const BUFFER_BYTES: usize = 256 * 1024;
/// Receive buffer where replies carry much data: enough for heads, so that the data itself is
/// dropped in the kernel.
const BUFFER_BYTES_LARGE_READS: usize = 4096;
/// Reads from this size on are large.
const LARGE_READ_BYTES: u32 = 32 * 1024;

/// Events after which a connection has no others.
const ENDS: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);

/// A thread's part of the load.
pub(super) struct NfsWorker {
    pub(super) plan: Plan,
    pub(super) address: SocketAddr,
    pub(super) caller: Caller,
    pub(super) handles: Arc<Handles>,
    pub(super) jobs: Vec<Job>,
    pub(super) conns: Vec<Conn>,
}

/// The state of the loop.
struct Loop<'a> {
    plan: &'a Plan,
    encoder: Encoder<'a>,
    jobs: Vec<Job>,
    recorder: Recorder,
    meter: UsageMeter,
    schedule: Schedule,
    outstanding: usize,
    lost: u64,
    fault: Option<Fault>,
    ended: Option<Ended>,
}

#[derive(Clone, Copy)]
struct Ended {
    at_ns: u64,
    usage: Usage,
}

impl NfsWorker {
    /// Applies the load until it is over.
    pub(super) fn run(self, schedule: Schedule, control: &Control, recorder: Recorder) -> Outcome {
        let Self { plan, address, caller, handles, jobs, mut conns } = self;
        let mut run = Loop {
            plan: &plan,
            encoder: Encoder { plan: &plan, caller: &caller, handles: &handles, turn: 0 },
            jobs,
            recorder,
            meter: UsageMeter::new(schedule.measure_ns),
            schedule,
            outstanding: 0,
            lost: 0,
            fault: None,
            ended: None,
        };
        let result = run.drive(&mut conns, control);
        run.finish(result.err(), address)
    }
}

impl Loop<'_> {
    fn drive(&mut self, conns: &mut [Conn], control: &Control) -> Result<(), Errno> {
        let epoll = register(conns)?;
        let mut events = vec![
            epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0)
            };
            EVENTS
        ];
        let mut buffer = vec![0; self.buffer_bytes()];
        self.start(conns);
        loop {
            let now_ns = self.schedule.now_ns();
            self.meter.tick(now_ns);
            self.recorder.tick(now_ns);
            if self.ended.is_none() && (now_ns >= self.schedule.end_ns || control.stopped()) {
                self.end(now_ns);
            }
            if self.outstanding == 0 || self.drained(now_ns) {
                return Ok(());
            }
            let count = self.wait(&epoll, &mut events, now_ns)?;
            for event in events.iter().take(count) {
                let index = usize::try_from(event.data.u64()).unwrap_or(usize::MAX);
                let Some(conn) = conns.get_mut(index) else { continue };
                let flags = event.flags;
                if flags.contains(epoll::EventFlags::OUT) {
                    conn.set_writable();
                }
                if flags.intersects(ENDS) {
                    conn.set_closing();
                }
                if let Err(fault) = self.serve(conn, &mut buffer) {
                    self.lose(conn, fault, control);
                }
            }
        }
    }

    fn buffer_bytes(&self) -> usize {
        let workload = &self.plan.workload;
        let large = workload.operation.reads() && workload.block_bytes >= LARGE_READ_BYTES;
        if large { BUFFER_BYTES_LARGE_READS } else { BUFFER_BYTES }
    }

    /// Fills every slot.
    fn start(&mut self, conns: &mut [Conn]) {
        for conn in conns {
            let now_ns = self.schedule.now_ns();
            for index in 0..conn.slots.len() {
                self.send_next(conn, index, None, now_ns);
            }
            if let Err(fault) = conn.flush(&self.plan.payload) {
                self.bury(conn, fault);
            }
        }
    }

    /// Takes every reply that is there and sends what follows from them.
    fn serve(&mut self, conn: &mut Conn, buffer: &mut [u8]) -> Result<(), Fault> {
        if !conn.alive {
            return Ok(());
        }
        let workload = &self.plan.workload;
        let expected = Expected { block: workload.block_bytes, stability: workload.stability };
        let mut finished = std::mem::take(&mut conn.finished);
        let received = conn.receive(buffer, &expected, |index, sent, outcome| {
            finished.push((index, *sent, outcome));
        });
        let now_ns = self.schedule.now_ns();
        for (index, sent, outcome) in finished.drain(..) {
            let job = conn.slots.get(index).map_or(0, |slot| slot.job);
            let succeeded = self.settle(job, &sent, outcome, now_ns);
            self.send_next(conn, index, succeeded.then_some(&sent.request), now_ns);
        }
        conn.finished = finished;
        received?;
        conn.flush(&self.plan.payload)
    }

    /// Notes what became of a request; says whether it succeeded.
    fn settle(&mut self, job: usize, sent: &InFlight, outcome: ReplyOutcome, now_ns: u64) -> bool {
        self.outstanding -= 1;
        let bytes = match outcome {
            ReplyOutcome::Done(bytes) => bytes,
            ReplyOutcome::Failed(status) => {
                self.recorder.fail(&status);
                return false;
            }
        };
        if let (Request::Write { file, block, .. }, Some(ledger)) =
            (sent.request, &self.plan.ledger)
        {
            ledger.done(file, block);
        }
        let number = self.jobs.get(job).map_or(u32::MAX, Job::index);
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        let span = Span { queued_ns: sent.queued_ns, done_ns: now_ns };
        self.recorder.complete(sent.request.kind(), number, span, bytes);
        true
    }

    /// Sends what the job of slot `index` does next, if anything.
    fn send_next(
        &mut self,
        conn: &mut Conn,
        index: usize,
        previous: Option<&Request>,
        now_ns: u64,
    ) {
        let ending = self.ended.is_some();
        let Some(job) = conn.slots.get(index).and_then(|slot| self.jobs.get_mut(slot.job)) else {
            return;
        };
        let Some(request) = job.next(previous, ending) else { return };
        let number = job.index();
        let xid = conn.occupy(index, request, now_ns);
        self.encoder.encode(&mut conn.outbox, xid, number, &request);
        self.outstanding += 1;
    }

    fn end(&mut self, now_ns: u64) {
        let at_ns = now_ns.min(self.schedule.end_ns);
        self.recorder.close(at_ns);
        self.ended = Some(Ended { at_ns, usage: self.meter.finish(at_ns) });
    }

    /// Is the time over in which late replies are waited for?
    fn drained(&self, now_ns: u64) -> bool {
        let limit = self.schedule.drain_ns;
        self.ended.is_some_and(|ended| now_ns >= ended.at_ns.saturating_add(limit))
    }

    /// Waits for events. A wait that has to sleep counts as time spent waiting for the server.
    fn wait(
        &mut self,
        epoll: &OwnedFd,
        events: &mut [epoll::Event],
        now_ns: u64,
    ) -> Result<usize, Errno> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = epoll::wait(epoll, &mut *events, Some(&zero))?;
        if ready > 0 {
            return Ok(ready);
        }
        let before_ns = self.schedule.now_ns();
        let mut due_ns = self.recorder.window_end_ns();
        if self.ended.is_none() {
            due_ns = due_ns.min(self.schedule.end_ns);
        }
        let timeout = timespec(due_ns.saturating_sub(now_ns));
        let ready = match epoll::wait(epoll, events, Some(&timeout)) {
            Err(Errno::INTR) => 0,
            other => other?,
        };
        self.meter.waited(self.schedule.now_ns().saturating_sub(before_ns));
        Ok(ready)
    }

    /// Gives a connection up, and with it the run: what it had in flight is lost.
    fn lose(&mut self, conn: &mut Conn, fault: Fault, control: &Control) {
        self.bury(conn, fault);
        control.stop();
    }

    fn bury(&mut self, conn: &mut Conn, fault: Fault) {
        if !conn.alive {
            return;
        }
        conn.alive = false;
        self.lost += 1;
        self.outstanding -= conn.in_flight();
        self.fault.get_or_insert(fault);
    }

    fn finish(self, local: Option<Errno>, address: SocketAddr) -> Outcome {
        let now_ns = self.schedule.now_ns().min(self.schedule.end_ns);
        let ended =
            self.ended.unwrap_or_else(|| Ended { at_ns: now_ns, usage: self.meter.finish(now_ns) });
        let fault = self.fault.map(|fault| match fault {
            Fault::Io(source) => BenchError::Connection { address, source },
            other => BenchError::Protocol { address, detail: other.to_string() },
        });
        let local = local.map(|source| BenchError::Local {
            what: "waiting for the server",
            source: source.into(),
        });
        Outcome {
            notes: self.recorder.finish(),
            usage: ended.usage,
            ended_ns: ended.at_ns,
            lost: self.lost,
            unanswered: self.outstanding as u64,
            fault: fault.or(local),
        }
    }
}

fn register(conns: &[Conn]) -> Result<OwnedFd, Errno> {
    let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
    let flags = epoll::EventFlags::IN
        | epoll::EventFlags::OUT
        | epoll::EventFlags::RDHUP
        | epoll::EventFlags::ET;
    for (index, conn) in conns.iter().enumerate() {
        epoll::add(&epoll, conn.stream(), epoll::EventData::new_u64(index as u64), flags)?;
    }
    Ok(epoll)
}

fn timespec(ns: u64) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(ns / 1_000_000_000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ns % 1_000_000_000).unwrap_or(0),
    }
}
