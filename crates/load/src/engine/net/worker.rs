//! One thread of the load: an epoll loop over its connections.
//!
//! All replies that are there are taken first, then everything that follows from them leaves in
//! one send, so that the batches of the server come back as batches. What leaves later (a limited
//! rate, a pause, an added distance) waits in its slot for a timer.

use super::conn::{Conn, InFlight, Work};
use super::inbox::MARK_BYTES;
use super::passing::Passing;
use super::timers::{SlotId, Timers};
use super::{Channel, Data, Fault, Outcome};
use crate::engine::halt::Halt;
use crate::engine::job::{After, Answer, Job, Next, Op};
use crate::engine::schedule::Schedule;
use crate::engine::usage::{Usage, UsageMeter};
use crate::engine::{Plan, WorkerOutcome};
use crate::error::BenchError;
use crate::stats::{Recorder, Span};
use crate::verify::{BlockState, Checker};
use rustix::event::epoll;
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use rustix::time::Timespec;
use std::net::SocketAddr;

/// Events taken at once.
const EVENTS: usize = 256;
/// Receive buffer; the more of a large reply it can drop at once the fewer calls it takes.
const BUFFER_BYTES: usize = 256 * 1024;
/// Bytes taken at once where replies carry much data.
const HEAD_BYTES: usize = 4096;
/// Reads from this size on are large.
const LARGE_READ_BYTES: u32 = 32 * 1024;

/// Events after which a connection has no others.
const ENDS: epoll::EventFlags =
    epoll::EventFlags::RDHUP.union(epoll::EventFlags::HUP).union(epoll::EventFlags::ERR);

/// A thread's part of the load.
pub(super) struct NetWorker<C: Channel> {
    pub(super) plan: Plan,
    pub(super) jobs: Vec<Job>,
    pub(super) conns: Vec<Conn<C>>,
}

/// The state of the loop.
struct Loop<'a> {
    plan: &'a Plan,
    /// The longest record where records are gathered whole.
    whole_bytes: Option<usize>,
    jobs: Vec<Job>,
    /// Slots that wait for their job's pause to begin, by job.
    parked: Vec<Vec<SlotId>>,
    timers: Timers,
    recorder: Recorder,
    passing: Option<Passing<'a>>,
    meter: UsageMeter,
    schedule: Schedule,
    halt: &'a Halt,
    outstanding: usize,
    lost: u64,
    fault: Option<(Fault, SocketAddr)>,
    ended: Option<Ended>,
}

#[derive(Clone, Copy)]
struct Ended {
    at_ns: u64,
    usage: Usage,
}

impl<C: Channel> NetWorker<C> {
    /// Applies the load until it is over.
    pub(super) fn run(self, schedule: Schedule, halt: &Halt, recorder: Recorder) -> WorkerOutcome {
        let Self { plan, jobs, mut conns } = self;
        let ledger = plan.common.ledger.as_deref().filter(|_| plan.workload.verify_reads);
        let mut run = Loop {
            plan: &plan,
            whole_bytes: conns.iter().find_map(|conn| conn.channel.whole_bytes()),
            parked: vec![Vec::new(); jobs.len()],
            jobs,
            timers: Timers::default(),
            recorder,
            passing: ledger.map(|ledger| {
                Passing::new(ledger, Checker::new(&plan.payload, ledger, plan.run, 0))
            }),
            meter: UsageMeter::new(schedule.measure_ns, schedule.end_ns),
            schedule,
            halt,
            outstanding: 0,
            lost: 0,
            fault: None,
            ended: None,
        };
        let result = run.drive(&mut conns);
        let stopped = halt.halted().is_some() && run.jobs.iter().any(|job| !job.is_done());
        WorkerOutcome { stopped, ..run.finish(result.err()) }
    }
}

impl Loop<'_> {
    fn drive(&mut self, conns: &mut [Conn<impl Channel>]) -> Result<(), Errno> {
        let epoll = register(conns)?;
        let mut events = vec![
            epoll::Event {
                flags: epoll::EventFlags::empty(),
                data: epoll::EventData::new_u64(0)
            };
            EVENTS
        ];
        let mut buffer = vec![0; self.buffer_bytes()];
        // A worker told to stop before the load begins sends nothing.
        if self.halt.halted().is_none() {
            self.start(conns);
        }
        loop {
            let now_ns = self.schedule.now_ns();
            self.meter.tick(now_ns);
            self.recorder.tick(now_ns);
            if self.ended.is_none() && self.is_over(now_ns) {
                self.end(now_ns, conns);
            }
            self.fire(now_ns, conns);
            if (self.outstanding == 0 && self.timers.is_empty()) || self.drained(now_ns) {
                return Ok(());
            }
            let count = self.wait(&epoll, &mut events)?;
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
                if let Err(fault) = self.serve(conn, index, &mut buffer) {
                    self.lose(conn, fault);
                }
            }
        }
    }

    fn buffer_bytes(&self) -> usize {
        // Room for a record that is nearly complete, and for a good part of the next ones.
        self.whole_bytes.map_or(BUFFER_BYTES, |most| most + MARK_BYTES + BUFFER_BYTES)
    }

    /// Bytes to take at once: if replies carry much data, only enough for heads, so that the data
    /// itself is dropped in the kernel.
    fn take_bytes(&self) -> usize {
        let workload = &self.plan.workload;
        let large = workload.reads() && workload.request_bytes_max() >= LARGE_READ_BYTES;
        if large && self.whole_bytes.is_none() { HEAD_BYTES } else { usize::MAX }
    }

    /// Fills every slot.
    fn start(&mut self, conns: &mut [Conn<impl Channel>]) {
        for (number, conn) in conns.iter_mut().enumerate() {
            let now_ns = self.schedule.now_ns();
            for slot in conn.first.clone() {
                self.send_next(conn, SlotId { conn: number, slot }, now_ns);
            }
            if let Err(fault) = conn.flush(&self.plan.payload) {
                self.lose(conn, fault);
            }
        }
    }

    /// Takes every reply that is there and sends what follows from them.
    fn serve(
        &mut self,
        conn: &mut Conn<impl Channel>,
        number: usize,
        buffer: &mut [u8],
    ) -> Result<(), Fault> {
        if !conn.alive {
            return Ok(());
        }
        let take_bytes = self.take_bytes();
        let mut finished = std::mem::take(&mut conn.finished);
        let passing = &mut self.passing;
        let look = |slot, work: &Work, data: Data<'_>| {
            if let Some(passing) = passing {
                passing.look(SlotId { conn: number, slot }, work, data);
            }
        };
        let received = conn.receive(buffer, take_bytes, look, |slot, sent, outcome| {
            finished.push((slot, *sent, outcome));
        });
        let now_ns = self.schedule.now_ns();
        for (slot, sent, outcome) in finished.drain(..) {
            self.settle(conn, SlotId { conn: number, slot }, &sent, outcome, now_ns);
        }
        conn.finished = finished;
        received?;
        self.send_held(conn);
        conn.flush(&self.plan.payload)
    }

    /// Notes what became of a request, and sends what its slot does next.
    fn settle(
        &mut self,
        conn: &mut Conn<impl Channel>,
        place: SlotId,
        sent: &InFlight,
        outcome: Outcome,
        now_ns: u64,
    ) {
        self.outstanding -= 1;
        let Some(index) = conn.slots.get(place.slot).map(|slot| slot.job) else { return };
        let Some(job) = self.jobs.get_mut(index) else { return };
        let work = &sent.work;
        let mut continued = work.continued;
        let (bytes, after) = match outcome {
            Outcome::Done(bytes) => (bytes, job.after(&work.op)),
            Outcome::Short(bytes) => {
                if !continued {
                    self.recorder.continues();
                }
                continued = true;
                (u64::from(bytes), job.rest(&work.op, bytes))
            }
            Outcome::Absent(status) => {
                self.recorder.fail(status);
                job.failed(&work.op, true);
                return self.free(conn, place, index, &failed(now_ns));
            }
            Outcome::Failed(status) => {
                self.recorder.fail(&status);
                job.failed(&work.op, false);
                return self.free(conn, place, index, &failed(now_ns));
            }
        };
        let moved = work.moved + bytes;
        let number = usize::try_from(job.index()).unwrap_or(usize::MAX);
        if let After::Part(op) = after {
            let work = Work { op, moved, continued, ..*work };
            return self.go_on(conn, place, index, work, now_ns);
        }
        let span = Span { queued_ns: work.queued_ns, done_ns: now_ns };
        self.recorder.complete(work.op.kind, number, span, moved);
        if let After::Then(op, due) = after {
            let work = fresh(op, due.unwrap_or(now_ns));
            return self.go_on(conn, place, index, work, now_ns);
        }
        let answer = Answer { now_ns, queued_ns: Some(work.queued_ns), bytes: moved };
        self.free(conn, place, index, &answer);
    }

    /// Sends what follows in the same slot, unless the load is over.
    fn go_on(
        &mut self,
        conn: &mut Conn<impl Channel>,
        place: SlotId,
        job: usize,
        work: Work,
        now_ns: u64,
    ) {
        if self.ended.is_none() {
            return self.dispatch(conn, place, work, now_ns);
        }
        if let Some(job) = self.jobs.get_mut(job) {
            job.dropped(&work.op);
        }
    }

    /// A slot of the job at this index has done what it had to do.
    #[inline]
    fn free(
        &mut self,
        conn: &mut Conn<impl Channel>,
        place: SlotId,
        index: usize,
        answer: &Answer,
    ) {
        let now_ns = answer.now_ns;
        if let Some(job) = self.jobs.get_mut(index) {
            if job.freed(answer)
                && let Some(parked) = self.parked.get_mut(index)
            {
                for place in parked.drain(..) {
                    self.timers.set(now_ns, place);
                }
            }
            if let Some(why) = job.complaint() {
                self.recorder.fail(&why);
            }
        }
        if conn.next == place.conn {
            return self.send_next(conn, place, now_ns);
        }
        self.timers.set(now_ns, SlotId { conn: conn.next, ..place });
    }

    /// Sends what the job of a free slot does next, if anything.
    #[inline]
    fn send_next(&mut self, conn: &mut Conn<impl Channel>, place: SlotId, now_ns: u64) {
        if self.ended.is_some() {
            return;
        }
        let Some(index) = conn.slots.get(place.slot).map(|slot| slot.job) else { return };
        let Some(job) = self.jobs.get_mut(index) else { return };
        match job.next(now_ns) {
            Next::Op(op, due) => {
                self.dispatch(conn, place, fresh(op, due.unwrap_or(now_ns)), now_ns);
            }
            Next::Wait(until_ns) => self.timers.set(until_ns, place),
            Next::Held => {
                if let Some(parked) = self.parked.get_mut(index) {
                    parked.push(place);
                }
            }
            Next::Done => {}
        }
    }

    /// Sends `work` when its time has come and it has gone the added distance.
    #[inline]
    fn dispatch(&mut self, conn: &mut Conn<impl Channel>, place: SlotId, work: Work, now_ns: u64) {
        let leaves_ns = work.queued_ns.max(now_ns).saturating_add(conn.delay_ns);
        if leaves_ns <= now_ns {
            return self.transmit(conn, place.slot, work);
        }
        if let Some(slot) = conn.slots.get_mut(place.slot) {
            slot.waiting = Some(work);
            self.timers.set(leaves_ns, place);
        }
    }

    #[inline]
    fn transmit(&mut self, conn: &mut Conn<impl Channel>, slot: usize, mut work: Work) {
        let Some(job) = conn.slots.get(slot).and_then(|slot| self.jobs.get(slot.job)) else {
            return;
        };
        if let Some(passing) = &self.passing {
            passing.begin(&mut work);
        }
        if conn.request(slot, job.index(), work) {
            self.outstanding += 1;
        }
    }

    /// Sends what waited for answers on its connection, as far as the channel takes it.
    #[inline]
    fn send_held(&mut self, conn: &mut Conn<impl Channel>) {
        for _ in 0..conn.held.len() {
            let Some(slot) = conn.held.pop_front() else { return };
            let waiting = conn.slots.get_mut(slot).and_then(|slot| slot.waiting.take());
            if let Some(work) = waiting {
                self.transmit(conn, slot, work);
            }
        }
    }

    /// Sends everything whose time has come.
    fn fire(&mut self, now_ns: u64, conns: &mut [Conn<impl Channel>]) {
        let mut last = None;
        while let Some(place) = self.timers.take(now_ns) {
            if last.is_some_and(|last| last != place.conn) {
                self.flush(conns, last);
            }
            last = Some(place.conn);
            let Some(conn) = conns.get_mut(place.conn) else { continue };
            let waiting = conn.slots.get_mut(place.slot).and_then(|slot| slot.waiting.take());
            match waiting {
                _ if !conn.alive => {}
                Some(work) => self.transmit(conn, place.slot, work),
                None => self.send_next(conn, place, now_ns),
            }
        }
        self.flush(conns, last);
    }

    fn flush(&mut self, conns: &mut [Conn<impl Channel>], number: Option<usize>) {
        if let Some(conn) = number.and_then(|number| conns.get_mut(number))
            && conn.alive
            && let Err(fault) = conn.flush(&self.plan.payload)
        {
            self.lose(conn, fault);
        }
    }

    /// Is no more to be sent?
    fn is_over(&self, now_ns: u64) -> bool {
        now_ns >= self.schedule.stop_ns || self.halt.halted().is_some()
    }

    /// Sends nothing more; what waits for its time is dropped.
    fn end(&mut self, now_ns: u64, conns: &mut [Conn<impl Channel>]) {
        let at_ns = now_ns.min(self.schedule.stop_ns);
        self.recorder.close(at_ns);
        self.ended = Some(Ended { at_ns, usage: self.meter.finish(at_ns) });
        self.timers.clear();
        for slot in conns.iter_mut().flat_map(|conn| &mut conn.slots) {
            if let (Some(work), Some(job)) = (slot.waiting.take(), self.jobs.get_mut(slot.job)) {
                job.dropped(&work.op);
            }
        }
    }

    /// Is the time over in which late replies are waited for?
    fn drained(&self, now_ns: u64) -> bool {
        let limit = self.schedule.drain_ns;
        self.ended.is_some_and(|ended| now_ns >= ended.at_ns.saturating_add(limit))
    }

    /// Waits for events. A wait that has to sleep counts as time spent waiting for the server.
    fn wait(&mut self, epoll: &OwnedFd, events: &mut [epoll::Event]) -> Result<usize, Errno> {
        let zero = Timespec { tv_sec: 0, tv_nsec: 0 };
        let ready = epoll::wait(epoll, &mut *events, Some(&zero))?;
        if ready > 0 {
            return Ok(ready);
        }
        let before_ns = self.schedule.now_ns();
        let mut due_ns = self.recorder.window_end_ns();
        if self.ended.is_none() {
            due_ns = due_ns.min(self.schedule.stop_ns);
        }
        if let Some(timer_ns) = self.timers.next_ns() {
            due_ns = due_ns.min(timer_ns);
        }
        let timeout = timespec(due_ns.saturating_sub(before_ns));
        let ready = match epoll::wait(epoll, events, Some(&timeout)) {
            Err(Errno::INTR) => 0,
            other => other?,
        };
        self.meter.waited(self.schedule.now_ns().saturating_sub(before_ns));
        Ok(ready)
    }

    /// Gives a connection up, and with it the load: what it had in flight is lost.
    fn lose(&mut self, conn: &mut Conn<impl Channel>, fault: Fault) {
        if !conn.alive {
            return;
        }
        self.halt.give_up();
        conn.alive = false;
        self.lost += 1;
        self.outstanding -= conn.in_flight();
        self.fault.get_or_insert((fault, conn.address));
    }

    fn finish(mut self, local: Option<Errno>) -> WorkerOutcome {
        for job in &self.jobs {
            if let Some(depth) = job.kept_depth() {
                let number = usize::try_from(job.index()).unwrap_or(usize::MAX);
                self.recorder.keep(number, depth);
            }
        }
        let now_ns = self.schedule.now_ns().min(self.schedule.stop_ns);
        let ended =
            self.ended.unwrap_or_else(|| Ended { at_ns: now_ns, usage: self.meter.finish(now_ns) });
        let fault = self.fault.map(|(fault, address)| match fault {
            Fault::Io(source) => BenchError::Connection { address, source },
            other => BenchError::Protocol { address, detail: other.to_string() },
        });
        let local = local.map(|source| BenchError::Local {
            what: "waiting for the server",
            source: source.into(),
        });
        WorkerOutcome {
            notes: self.recorder.finish(),
            usage: ended.usage,
            ended_ns: ended.at_ns,
            lost: self.lost,
            unanswered: self.outstanding as u64,
            stopped: false,
            verify: self.passing.map(Passing::finish),
            fault: fault.or(local),
        }
    }
}

/// The answer to an operation that failed.
const fn failed(now_ns: u64) -> Answer {
    Answer { now_ns, queued_ns: None, bytes: 0 }
}

/// An operation that has just been decided.
const fn fresh(op: Op, queued_ns: u64) -> Work {
    Work { op, queued_ns, moved: 0, continued: false, seen: BlockState::NONE }
}

fn register(conns: &[Conn<impl Channel>]) -> Result<OwnedFd, Errno> {
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
