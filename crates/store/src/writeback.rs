//! Early writeback: data that was written goes to the disk a second later, one file after the
//! other, instead of that of all files at once when the kernel's 30 seconds are over.
//!
//! The kernel writes back whole files when their oldest data is 30 s old. Under a steady load that
//! is what came in 30 s, and its threads take so much of the processors meanwhile that all volumes
//! are short of their contracts for a second (docs/decisions/0039-the-rare-second.md). Early
//! writeback promises nothing to clients: what COMMIT makes stable is not its business, and a file
//! that it leaves out is written back by the kernel.

use crate::sync::{Arc, Condvar, Guard, Mutex, Weak, now, spawn, wait, wait_at_most};
use std::collections::VecDeque;
use std::time::Duration;
use weir_core::Mono;

/// From the first write to a file that has nothing to be written back to the start of its
/// writeback.
const WRITEBACK_AFTER: Duration = Duration::from_secs(1);
/// The files that are due are taken in so many parts, one each tick, so that files that were first
/// written at the same time are not written back at the same time for ever.
const PARTS: usize = 50;
const TICK: Duration = Duration::from_millis(20);
/// Files listed for writeback. More are left to the kernel.
const FILES_MAX: usize = 16 * 1024;

/// A file that can have data to be written back.
pub(crate) trait Dirty: Send + Sync {
    /// Starts the writeback of what was written before this call. May block. Failures are reported
    /// by the next sync of the file, which the kernel tells.
    fn write_back(&self);
}

/// The files to be written back, and the thread that does it. The thread ends with the last handle.
#[derive(Clone)]
pub(crate) struct Writeback(Arc<Handle>);

struct Handle(Arc<Shared>);

#[derive(Default)]
struct Shared {
    queue: Mutex<Queue>,
    work: Condvar,
}

#[derive(Default)]
struct Queue {
    /// In the order in which they are due.
    files: VecDeque<Entry>,
    stopping: bool,
}

struct Entry {
    file: Weak<dyn Dirty>,
    due: Mono,
}

impl std::fmt::Debug for Writeback {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} files listed for writeback", self.files())
    }
}

impl Writeback {
    /// Starts the thread. Without one, writeback is left to the kernel.
    pub(crate) fn new() -> Self {
        let shared = Arc::new(Shared::default());
        let own = Arc::clone(&shared);
        if let Err(error) = spawn("weir-writeback".to_owned(), move || own.serve()) {
            tracing::warn!(%error, "no thread for early writeback: it is left to the kernel");
            shared.queue.lock().stopping = true;
        }
        Self(Arc::new(Handle(shared)))
    }

    /// How many files are listed.
    pub(crate) fn files(&self) -> usize {
        self.0.0.queue.lock().files.len()
    }

    /// Lists a file, which must not be listed. False if there is no room.
    pub(crate) fn list(&self, file: Weak<dyn Dirty>) -> bool {
        let shared = &self.0.0;
        let mut queue = shared.queue.lock();
        let first = queue.files.is_empty();
        let listed = queue.list(Entry { file, due: now() + WRITEBACK_AFTER });
        drop(queue);
        if first && listed {
            shared.work.notify_one();
        }
        listed
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        self.0.queue.lock().stopping = true;
        self.0.work.notify_one();
    }
}

impl Shared {
    fn serve(&self) {
        let mut queue = self.queue.lock();
        while !queue.stopping {
            queue = match queue.wait_for(now()) {
                None => wait(&self.work, queue),
                Some(time) if time > Duration::ZERO => wait_at_most(&self.work, queue, time),
                Some(_) => self.tick(queue),
            };
        }
    }

    /// Writes back a part of the files that are due, and waits for the next tick.
    fn tick<'a>(&'a self, mut queue: Guard<'a, Queue>) -> Guard<'a, Queue> {
        let files = queue.take_part(now());
        drop(queue);
        for file in files {
            if let Some(file) = file.upgrade() {
                file.write_back();
            }
        }
        wait_at_most(&self.work, self.queue.lock(), TICK)
    }
}

impl Queue {
    fn list(&mut self, entry: Entry) -> bool {
        let room = self.files.len() < FILES_MAX && !self.stopping;
        if room {
            self.files.push_back(entry);
        }
        room
    }

    /// The time until a file is due; `None` without files.
    fn wait_for(&self, now: Mono) -> Option<Duration> {
        Some(self.files.front()?.due.since(now))
    }

    /// The files to be written back in this tick.
    fn take_part(&mut self, now: Mono) -> Vec<Weak<dyn Dirty>> {
        let part = self.files.len().div_ceil(PARTS);
        let due = self.files.iter().take(part).take_while(|entry| entry.due <= now).count();
        self.files.drain(..due).map(|entry| entry.file).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::{Sender, channel};

    struct File(Sender<()>);

    impl Dirty for File {
        fn write_back(&self) {
            self.0.send(()).unwrap();
        }
    }

    fn entry(file: &Arc<dyn Dirty>, due: Duration) -> Entry {
        Entry { file: Arc::downgrade(file), due: Mono::ZERO + due }
    }

    #[test]
    fn files_written_at_the_same_time_are_written_back_a_part_each_tick() {
        let file: Arc<dyn Dirty> = Arc::new(File(channel().0));
        let (mut queue, start) = (Queue::default(), Mono::ZERO);
        assert_eq!(queue.wait_for(start), None);
        for _ in 0..200 {
            assert!(queue.list(entry(&file, WRITEBACK_AFTER)));
        }
        assert_eq!(queue.wait_for(start + TICK), Some(WRITEBACK_AFTER - TICK));
        assert!(queue.take_part(start + TICK).is_empty());
        let (mut now, mut parts) = (start + WRITEBACK_AFTER, Vec::new());
        while let Some(Duration::ZERO) = queue.wait_for(now) {
            parts.push(queue.take_part(now).len());
            now = now + TICK;
        }
        assert_eq!(parts.iter().sum::<usize>(), 200);
        assert!(parts.iter().all(|part| (1..=4).contains(part)), "{parts:?}");
    }

    #[test]
    fn files_beyond_the_bound_are_left_to_the_kernel() {
        let file: Arc<dyn Dirty> = Arc::new(File(channel().0));
        let mut queue = Queue::default();
        assert!((0..FILES_MAX).all(|_| queue.list(entry(&file, WRITEBACK_AFTER))));
        assert!(!queue.list(entry(&file, WRITEBACK_AFTER)));
        assert!(!queue.take_part(Mono::ZERO + WRITEBACK_AFTER).is_empty());
        assert!(queue.list(entry(&file, WRITEBACK_AFTER)));
    }

    #[test]
    fn the_thread_writes_back_files_that_exist_still() {
        let writeback = Writeback::new();
        let shared = &writeback.0.0;
        let (first, gone) = channel();
        let (second, written) = channel();
        let list = |queue: &mut Queue, file: &Arc<dyn Dirty>| {
            assert!(queue.list(entry(file, Duration::ZERO)));
        };
        let file: Arc<dyn Dirty> = Arc::new(File(second));
        let mut queue = shared.queue.lock();
        list(&mut queue, &(Arc::new(File(first)) as Arc<dyn Dirty>));
        list(&mut queue, &file);
        drop(queue);
        shared.work.notify_one();
        assert_eq!(written.recv(), Ok(()));
        assert!(gone.recv().is_err(), "a file that is gone is not written back");
    }
}
