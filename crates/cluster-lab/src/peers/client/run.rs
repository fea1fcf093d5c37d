//! Threads that do the same again and again, counted for a while.

use super::serve::Side;
use super::{Counted, Order};
use anyhow::{Result, anyhow};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

/// A count of one thread, in a cache line of its own.
#[derive(Debug, Default)]
#[repr(align(128))]
struct Count(AtomicU64);

/// Applies the load of `order` and counts its measured part; calls `begun` when that begins.
///
/// # Errors
/// The first of an operation; those of `begun`.
pub(super) fn run(
    side: &dyn Side,
    order: &Order,
    begun: impl FnOnce() -> Result<()>,
) -> Result<Counted> {
    let counts: Vec<Count> = (0..order.threads).map(|_| Count::default()).collect();
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let threads: Vec<_> = counts
            .iter()
            .enumerate()
            .map(|(thread, count)| {
                let stop = &stop;
                scope.spawn(move || {
                    let ended = repeat(side, thread, order, (stop, count));
                    // One that cannot go on ends the others.
                    stop.store(true, Relaxed);
                    ended
                })
            })
            .collect();
        let counted = count(&counts, order, begun);
        stop.store(true, Relaxed);
        for thread in threads {
            thread.join().map_err(|_| anyhow!("a thread ended abnormally"))??;
        }
        counted
    })
}

fn repeat(
    side: &dyn Side,
    thread: usize,
    order: &Order,
    (stop, count): (&AtomicBool, &Count),
) -> Result<()> {
    let mut job = side.job(thread, order)?;
    while !stop.load(Relaxed) {
        count.0.fetch_add(job()?, Relaxed);
    }
    Ok(())
}

fn count(counts: &[Count], order: &Order, begun: impl FnOnce() -> Result<()>) -> Result<Counted> {
    let sum = || counts.iter().map(|count| count.0.load(Relaxed)).sum::<u64>();
    std::thread::sleep(Duration::from_secs_f64(order.warmup_s));
    begun()?;
    let (from, before) = (Instant::now(), sum());
    std::thread::sleep(Duration::from_secs_f64(order.measured_s));
    let operations = sum() - before;
    Ok(Counted { operations, seconds: from.elapsed().as_secs_f64() })
}

#[cfg(test)]
mod tests {
    use super::super::serve::Job;
    use super::*;
    use crate::peers::plan::WORKS;
    use anyhow::bail;

    /// Two operations at a time; the thread with this number fails.
    struct Stub(Option<usize>);

    impl Side for Stub {
        fn job<'a>(&'a self, thread: usize, _: &Order) -> Result<Box<Job<'a>>> {
            Ok(Box::new(move || {
                if self.0 == Some(thread) {
                    bail!("thread {thread}")
                }
                std::thread::sleep(Duration::from_millis(1));
                Ok(2)
            }))
        }
    }

    const ORDER: Order =
        Order { work: WORKS[0], threads: 3, mounts: 1, warmup_s: 0.01, measured_s: 0.1, seed: 1 };

    #[test]
    fn operations_of_all_threads_are_counted_after_the_warm_up() {
        let mut begun = 0;
        let counted = run(&Stub(None), &ORDER, || {
            begun += 1;
            Ok(())
        });
        let counted = counted.unwrap();
        assert!(begun == 1 && counted.operations > 0 && counted.operations % 2 == 0);
        assert!(counted.seconds >= 0.1);
    }

    #[test]
    fn the_failure_of_a_thread_ends_the_measurement() {
        let error = run(&Stub(Some(1)), &ORDER, || Ok(())).unwrap_err();
        assert_eq!(error.to_string(), "thread 1");
        assert!(run(&Stub(None), &ORDER, || bail!("no listener")).is_err());
    }
}
