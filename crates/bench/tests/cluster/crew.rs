//! Workers on threads of this process, each with a clock of its own.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::thread::JoinHandle;
use std::time::Duration;
use weir_bench::cluster::{
    Clock, Connected, Farewell, Halves, Identity, Patience, Worker, greet, this_machine, welcome,
};
use weir_bench::suite::{Applied, Context, Executor, Workers};
use weir_load::{
    BenchError, Control, Layout, Length, Operation, Pattern, Target, Window, Workload,
};

/// Clocks that disagree by as much.
const HOUR_NS: u64 = 3_600_000_000_000;

/// One worker, and the test's hands on it.
pub(crate) struct Hand {
    pub(crate) thread: JoinHandle<Farewell>,
    /// Tells it to end, as a signal would.
    pub(crate) end: Control,
    /// The worker's side of the connection.
    pub(crate) stream: UnixStream,
}

impl Hand {
    /// Cuts it off, as when its machine dies.
    pub(crate) fn kill(&self) {
        self.stream.shutdown(Shutdown::Both).unwrap();
    }
}

/// The write half, like that of a socket or a pipe: dropping it tells the other side.
struct WriteHalf(UnixStream);

impl std::io::Write for WriteHalf {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

impl Drop for WriteHalf {
    fn drop(&mut self) {
        drop(self.0.shutdown(Shutdown::Write));
    }
}

pub(crate) fn patience() -> Patience {
    Patience { alive: Duration::from_millis(50), ..Patience::default() }
}

pub(crate) fn halves(stream: &UnixStream) -> Halves {
    let clone = || stream.try_clone().unwrap();
    let close = clone();
    Halves {
        read: Box::new(clone()),
        write: Box::new(WriteHalf(clone())),
        close: Box::new(move || drop(close.shutdown(Shutdown::Both))),
    }
}

/// A worker's thread, and the coordinator's side of its connection.
pub(crate) fn worker(number: u64) -> (Connected, Hand) {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let hand = serve(&theirs, Clock::ahead(number * HOUR_NS), patience());
    (connected(&format!("w{number}"), &ours), hand)
}

/// The thread of a worker whose side of the connection is `stream`.
pub(crate) fn serve(stream: &UnixStream, clock: Clock, patience: Patience) -> Hand {
    let end = Control::new();
    let (own_end, stream) = (end.clone(), stream.try_clone().unwrap());
    let mut halves = halves(&stream);
    let thread = std::thread::spawn(move || {
        let identity = Identity { name: "unnamed".to_owned(), machine: this_machine() };
        let worker = Worker { identity, clock, patience };
        welcome(&mut halves, &worker.identity).unwrap();
        worker.serve(halves, &own_end).unwrap()
    });
    Hand { thread, end, stream }
}

/// The coordinator's side once the other has answered the greeting.
pub(crate) fn connected(name: &str, stream: &UnixStream) -> Connected {
    let mut halves = halves(stream);
    let welcome = greet(&mut halves).unwrap();
    Connected { name: name.to_owned(), welcome, halves, child: None }
}

/// `count` workers with one coordinator.
pub(crate) fn crew(target: Target, count: u64) -> (Workers, Vec<Hand>) {
    let (connected, hands) = (0..count).map(worker).unzip();
    (Workers::new(target, connected, patience()).unwrap(), hands)
}

/// Applies `loads`; `observe` sees the windows.
pub(crate) fn apply(
    workers: &mut Workers,
    loads: &[Workload],
    control: &Control,
    observe: impl FnMut(&Window),
) -> Result<Applied, BenchError> {
    within(control, observe, |context| workers.apply(loads, context))
}

/// Applies by `act`; `observe` sees the windows.
pub(crate) fn within(
    control: &Control,
    mut observe: impl FnMut(&Window),
    act: impl FnOnce(&mut Context<'_>) -> Result<Applied, BenchError>,
) -> Result<Applied, BenchError> {
    let mut began = false;
    let mut ready = 0;
    let mut context = Context {
        control,
        layout: &mut |_, _| {},
        ready: &mut || ready += 1,
        observe: &mut |window| {
            began = true;
            observe(window);
        },
    };
    let outcome = act(&mut context);
    assert!(ready == 1 || !began, "what empties caches is called once, before the load");
    outcome
}

/// GETATTR of small files, until it is stopped.
pub(crate) fn endless(jobs: u32) -> Workload {
    Workload {
        name: "load".to_owned(),
        operation: Operation::Null,
        jobs,
        clients: jobs,
        length: Length::Seconds(3600.0),
        warmup_s: 0.0,
        ..Workload::default()
    }
}

/// Data of one worker that goes on until it is stopped.
pub(crate) fn data() -> Workload {
    Workload {
        operation: Operation::Data { pattern: Pattern::Random, read_percent: 0 },
        file_bytes: 1 << 20,
        layout: Layout::Written { block_bytes: 64 << 10 },
        ..endless(1)
    }
}

/// A load for a count of operations.
pub(crate) fn counted(jobs: u32, operations: u64) -> Workload {
    Workload { length: Length::Operations(operations), ..endless(jobs) }
}
