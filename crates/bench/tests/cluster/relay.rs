//! A relay between a coordinator and a worker: it does to their messages what a network does, or
//! makes the worker's clock run at another speed.

use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use weir_bench::cluster::{Kind, Message, Order, Report, receive, send};

const ANY: [Kind; 4] = [Kind::Greeting, Kind::Control, Kind::Prepare, Kind::Record];

/// The treatment of messages on their way.
#[derive(Clone, Copy)]
pub(crate) struct Relay {
    /// Time for which orders are held back, at least.
    pub(crate) there: Duration,
    /// Time for which reports are held back, at least.
    pub(crate) back: Duration,
    /// Changes orders.
    pub(crate) order: fn(Order) -> Order,
    /// Changes reports.
    pub(crate) report: fn(Report) -> Report,
}

impl Default for Relay {
    fn default() -> Self {
        Self {
            there: Duration::ZERO,
            back: Duration::ZERO,
            order: |order| order,
            report: |report| report,
        }
    }
}

/// A relay at work.
pub(crate) struct Relayed {
    /// The coordinator's side of the connection.
    pub(crate) ours: UnixStream,
    /// The worker's side.
    pub(crate) theirs: UnixStream,
    cut: Arc<AtomicBool>,
    orders: Arc<Mutex<Vec<Order>>>,
}

impl Relay {
    pub(crate) fn start(self) -> Relayed {
        let (ours, near) = UnixStream::pair().unwrap();
        let (far, theirs) = UnixStream::pair().unwrap();
        let relayed = Relayed { ours, theirs, cut: Arc::default(), orders: Arc::default() };
        let seen = Arc::clone(&relayed.orders);
        let order = move |order: Order| {
            let passed = (self.order)(order);
            seen.lock().unwrap().push(passed.clone());
            passed
        };
        carry(&near, &far, (self.there, order), &relayed.cut);
        carry(&far, &near, (self.back, self.report), &relayed.cut);
        relayed
    }
}

impl Relayed {
    /// Lets nothing pass any more, and tells nobody.
    pub(crate) fn cut(&self) {
        self.cut.store(true, Ordering::Release);
    }

    /// The time of the start that the worker was told.
    pub(crate) fn start_ns(&self) -> u64 {
        let orders = self.orders.lock().unwrap();
        let start = orders.iter().find_map(|order| match order {
            Order::Start { at_ns, .. } => Some(*at_ns),
            _ => None,
        });
        start.unwrap()
    }
}

/// Carries messages in one direction, each held back for `delay` and changed.
fn carry<M: Message>(
    from: &UnixStream,
    to: &UnixStream,
    (delay, change): (Duration, impl Fn(M) -> M + Send + 'static),
    cut: &Arc<AtomicBool>,
) {
    let (mut from, to, cut) = (from.try_clone().unwrap(), to.try_clone().unwrap(), cut.clone());
    let (sender, held) = channel();
    std::thread::spawn(move || {
        while let Ok(message) = receive::<M>(&mut from, &ANY) {
            if sender.send((Instant::now() + delay, message)).is_err() {
                return;
            }
        }
    });
    std::thread::spawn(move || deliver(&held, to, change, &cut));
}

fn deliver<M: Message>(
    held: &Receiver<(Instant, M)>,
    mut to: UnixStream,
    change: impl Fn(M) -> M,
    cut: &AtomicBool,
) {
    while let Ok((due, message)) = held.recv() {
        std::thread::sleep(due.saturating_duration_since(Instant::now()));
        // The receiver may have hung up.
        if !cut.load(Ordering::Acquire) && send(&mut to, &change(message)).is_err() {
            break;
        }
    }
    if !cut.load(Ordering::Acquire) {
        drop(to.shutdown(Shutdown::Both));
    }
}
