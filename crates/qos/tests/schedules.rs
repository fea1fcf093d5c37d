//! Threads at one meter and at one queue, under many schedules: every atomic access is a point
//! where another thread may go on. Time stands still unless a test moves it.

#![expect(clippy::unwrap_used, reason = "a helper that fails is a test that fails")]

mod schedules {
    use std::sync::Arc;

    use shuttle::sync::Mutex;
    use shuttle::sync::atomic::{AtomicU64, Ordering};
    use shuttle::thread;
    use weir_core::Mono;
    use weir_qos::{
        BytesPerSecond, ClientKey, Cost, Departure, Iops, Limits, Meter, Meters, Queue, RateSlice,
    };

    const SCHEDULES: usize = 2_000;
    const NOW: Mono = Mono::from_secs(1);
    /// The 50 ms of a meter are five requests.
    const RATE: u64 = 100;
    const AT_ONCE: u64 = 6;

    fn explore(test: impl Fn() + Send + Sync + 'static) {
        shuttle::check_random(test, SCHEDULES);
    }

    fn meter() -> Arc<Meter> {
        Arc::new(Meter::new(RateSlice::owned(BytesPerSecond(RATE))))
    }

    fn spawn<R: Send + 'static>(
        work: impl FnOnce() -> R + Send + 'static,
    ) -> thread::JoinHandle<R> {
        thread::spawn(work)
    }

    fn admitted(meter: &Meter, tries: u64) -> u64 {
        (0..tries).map(|_| u64::from(meter.try_take(1, NOW))).sum()
    }

    #[test]
    fn threads_together_get_no_more_than_one() {
        explore(|| {
            let meter = meter();
            let threads = [4, 4].map(|tries| {
                let meter = Arc::clone(&meter);
                spawn(move || admitted(&meter, tries))
            });
            let sum: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
            assert_eq!(sum, AT_ONCE);
        });
    }

    #[test]
    fn a_refund_beside_admissions_is_neither_lost_nor_doubled() {
        explore(|| {
            let meter = meter();
            let refunding = Arc::clone(&meter);
            let refunds = spawn(move || {
                for _ in 0..2 {
                    if refunding.try_take(1, NOW) {
                        refunding.refund(1, NOW, NOW);
                    }
                }
            });
            let taking = Arc::clone(&meter);
            let taken = spawn(move || admitted(&taking, 3)).join().unwrap();
            refunds.join().unwrap();
            assert_eq!(taken + admitted(&meter, 10), AT_ONCE);
        });
    }

    #[test]
    fn a_change_of_the_rate_loses_no_charge_and_no_flag() {
        explore(|| {
            let meter = meter();
            let changing = Arc::clone(&meter);
            let changes = spawn(move || {
                for times in [2, 4] {
                    changing.set_slice(RateSlice::owned(BytesPerSecond(RATE * times)), NOW);
                }
            });
            let threads = [2, 2].map(|tries| {
                let meter = Arc::clone(&meter);
                spawn(move || admitted(&meter, tries))
            });
            let sum: u64 = threads.map(|thread| thread.join().unwrap()).iter().sum();
            changes.join().unwrap();
            // An unused credit keeps its bytes at a higher rate.
            assert_eq!(sum + admitted(&meter, 10), AT_ONCE);
        });
    }

    /// The waiting requests of a volume, as a gate holds them.
    struct Volume {
        meters: Meters,
        queue: Mutex<Queue<u64>>,
        /// The time of the next poll; the maximum for none.
        poll_at: AtomicU64,
        went: AtomicU64,
    }

    impl Volume {
        fn new(iops: Option<u64>) -> Arc<Self> {
            let limits = Limits { iops: iops.map(Iops), ..Limits::of(BytesPerSecond(RATE)) };
            Arc::new(Self {
                meters: Meters::new(limits),
                queue: Mutex::new(Queue::new()),
                poll_at: AtomicU64::new(u64::MAX),
                went: AtomicU64::new(0),
            })
        }

        /// Admits or parks a request, as a worker does.
        fn arrive(&self, client: u64) {
            if self.meters.try_take(Cost::of(1), NOW).is_some() {
                self.went.fetch_add(1, Ordering::SeqCst);
                return;
            }
            let mut queue = self.queue.lock().unwrap();
            let key = ClientKey(client.into());
            let ask = queue.push(&self.meters, key, client, Cost::of(1), client);
            drop(queue);
            if ask {
                self.poll(NOW);
            }
        }

        fn poll(&self, now: Mono) {
            let mut queue = self.queue.lock().unwrap();
            let next = queue.poll(&self.meters, now, &mut |_, _| {
                self.went.fetch_add(1, Ordering::SeqCst);
                Departure::Went
            });
            assert_eq!(self.meters.is_waiting(), queue.ready() > 0);
            self.poll_at.store(next.map_or(u64::MAX, |at| at.0), Ordering::SeqCst);
        }

        /// Polls when told to, until no request waits.
        fn finish(&self, requests: u64) {
            for _ in 0..=requests {
                if self.queue.lock().unwrap().is_empty() {
                    break;
                }
                let at = self.poll_at.load(Ordering::SeqCst);
                assert!(at != u64::MAX, "requests wait and nobody is going to poll");
                self.poll(Mono(at));
            }
            assert_eq!(self.went.load(Ordering::SeqCst), requests);
            assert!(!self.meters.is_waiting());
        }
    }

    fn arrivals(iops: Option<u64>) -> Arc<Volume> {
        let volume = Volume::new(iops);
        let threads = [1, 2].map(|client| {
            let volume = Arc::clone(&volume);
            spawn(move || (0..4).for_each(|_| volume.arrive(client)))
        });
        for thread in threads {
            thread.join().unwrap();
        }
        volume
    }

    #[test]
    fn no_parked_request_is_forgotten() {
        explore(|| {
            let volume = arrivals(None);
            assert_eq!(volume.went.load(Ordering::SeqCst), AT_ONCE, "those that may go at once");
            volume.finish(8);
        });
    }

    #[test]
    fn no_parked_request_is_forgotten_where_operations_are_counted_too() {
        explore(|| arrivals(Some(RATE / 2)).finish(8));
    }
}
