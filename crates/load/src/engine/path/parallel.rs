//! The same work on many files, on several threads: a file system over a network serves one thread
//! at the speed of its round trips.

use crate::error::BenchError;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::Builder;

/// Most threads.
const THREADS_MAX: usize = 16;

/// The reports of a thread to the one that started it.
pub(super) struct Reports<'a> {
    sender: Sender<Result<u64, BenchError>>,
    stop: &'a AtomicBool,
}

impl Reports<'_> {
    /// Reports that this much more is done.
    ///
    /// # Errors
    /// If the work is to end: another thread failed, or somebody stopped it.
    pub(super) fn done(&self, more: u64) -> Result<(), BenchError> {
        // The receiver is there until all senders have gone.
        drop(self.sender.send(Ok(more)));
        if self.stop.load(Ordering::Relaxed) { Err(BenchError::Worker) } else { Ok(()) }
    }
}

/// Does `act` with each of `items`, and passes what is reported to `observe`, on the thread of the
/// caller. The first failure ends the work, and is returned.
pub(super) fn each<T: Sync>(
    items: &[T],
    act: impl Fn(&T, &Reports<'_>) -> Result<(), BenchError> + Sync,
    mut observe: impl FnMut(u64) -> Result<(), BenchError>,
) -> Result<(), BenchError> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, receiver) = channel();
    let work = |reports: &Reports<'_>| {
        while !stop.load(Ordering::Relaxed)
            && let Some(item) = items.get(next.fetch_add(1, Ordering::Relaxed))
        {
            let outcome = act(item, reports).and_then(|()| reports.done(0));
            if let Err(error) = outcome {
                drop(reports.sender.send(Err(error)));
                return;
            }
        }
    };
    std::thread::scope(|scope| {
        let mut failure = None;
        for _ in 0..items.len().min(THREADS_MAX) {
            let reports = Reports { sender: sender.clone(), stop: &stop };
            let named = Builder::new().name("bench-files".to_owned());
            let started = named.spawn_scoped(scope, move || work(&reports));
            if let Err(source) = started {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(BenchError::Local { what: "starting a thread", source });
            }
        }
        drop(sender);
        for report in receiver {
            if let Err(error) = report.and_then(&mut observe) {
                stop.store(true, Ordering::Relaxed);
                failure.get_or_insert(error);
            }
        }
        failure.map_or(Ok(()), Err)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::sync::{Barrier, Mutex};

    #[test]
    fn every_item_is_worked_on_once_and_several_at_a_time() {
        let items: Vec<u64> = (0..100).collect();
        let (seen, mut sum) = (Mutex::new(Vec::new()), 0);
        // Nobody passes it alone.
        let barrier = Barrier::new(4);
        let act = |item: &u64, reports: &Reports<'_>| {
            barrier.wait();
            seen.lock().unwrap().push(*item);
            reports.done(*item)
        };
        let observe = |more: u64| {
            sum += more;
            Ok(())
        };
        each(&items, act, observe).unwrap();
        let seen = seen.into_inner().unwrap();
        assert_eq!((seen.len(), sum), (100, 4950));
        assert_eq!(seen.into_iter().collect::<BTreeSet<_>>().len(), 100);
    }

    #[test]
    fn the_first_failure_ends_the_work() {
        let items: Vec<u64> = (0..10_000).collect();
        let worked = AtomicUsize::new(0);
        let act = |item: &u64, reports: &Reports<'_>| {
            worked.fetch_add(1, Ordering::Relaxed);
            if *item == 3 {
                return Err(BenchError::Workload("number three".to_owned()));
            }
            reports.done(1)
        };
        let error = each(&items, act, |_| Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "number three");
        let refuses = each(
            &items,
            |_, reports| reports.done(1),
            |_| Err(BenchError::Workload("stopped".to_owned())),
        );
        assert_eq!(refuses.unwrap_err().to_string(), "stopped");
    }
}
