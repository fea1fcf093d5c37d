//! The queue of log lines between the threads that write them and the one thread that hands them to
//! the kernel.

use crate::limits::{LOG_DIRECT_WAIT, LOG_QUEUE_BYTES_MAX};
use crate::sync::{AtomicU64, Condvar, Mutex, Ordering, lock, wait_for};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::thread::ThreadId;
use std::time::{Duration, Instant};
use tracing::Level;

/// Bytes handed to the kernel at once. A pipe that can be written to takes as many without
/// blocking (pipe(7), `PIPE_BUF`).
const CHUNK_BYTES: usize = 4096;

/// Memory that a line in the queue takes beside its bytes.
const LINE_OVERHEAD: usize = 64;

/// The queue, and the file that lines go to.
pub(super) struct Queue {
    lines: Mutex<Lines>,
    changed: Condvar,
    /// The log file. The writer thread writes to it, and callers before there is one.
    out: Mutex<File>,
    dropped: AtomicU64,
}

#[derive(Default)]
struct Lines {
    waiting: VecDeque<Vec<u8>>,
    /// Memory of the waiting lines and of those being written, and whether some are being written.
    bytes: usize,
    writing: bool,
    /// The writer thread, once it runs.
    writer: Option<ThreadId>,
    /// Lines dropped since they were last reported.
    dropped: u64,
    /// Total time that callers waited for the reader before the writer thread ran.
    waited: Duration,
}

impl Queue {
    pub(super) fn new(out: File) -> Self {
        let (lines, out) = (Mutex::default(), Mutex::new(out));
        Self { lines, changed: Condvar::new(), out, dropped: AtomicU64::new(0) }
    }

    /// All lines that were ever dropped.
    pub(super) fn dropped(&self) -> u64 {
        self.dropped.load(Ordering::Relaxed)
    }

    /// The number of dropped lines not reported yet.
    pub(super) fn take_dropped(&self) -> u64 {
        std::mem::take(&mut lock(&self.lines).dropped)
    }

    /// Takes a line, or drops it: if the queue is full, and lines of the levels debug and trace if
    /// it is half full. Without a thread that writes, the line is written at once, or dropped if
    /// lines have waited for [`LOG_DIRECT_WAIT`] in all.
    pub(super) fn push(&self, level: Level, line: Vec<u8>) {
        let bytes = line.len() + LINE_OVERHEAD;
        let most = if level > Level::INFO { LOG_QUEUE_BYTES_MAX / 2 } else { LOG_QUEUE_BYTES_MAX };
        let mut lines = lock(&self.lines);
        let kept = match lines.writer {
            None => {
                let left = LOG_DIRECT_WAIT.saturating_sub(lines.waited);
                drop(lines);
                let begun = Instant::now();
                let written = write(&lock(&self.out), &line, Some(left)).is_ok();
                lines = lock(&self.lines);
                lines.waited += if written { Duration::ZERO } else { begun.elapsed() };
                written
            }
            // The writer's own lines report dropped lines, so they always fit.
            Some(writer) => {
                let own = writer == std::thread::current().id();
                let fits = own || lines.bytes + bytes <= most;
                if fits {
                    lines.bytes += bytes;
                    lines.waiting.push_back(line);
                    self.changed.notify_all();
                }
                fits
            }
        };
        if !kept {
            lines.dropped += 1;
            self.dropped.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Makes the calling thread the writer.
    pub(super) fn adopt(&self) {
        lock(&self.lines).writer = Some(std::thread::current().id());
    }

    /// Writes some lines, after waiting for at most `patience` until there are any; `true` if none
    /// are left.
    pub(super) fn write_out(&self, patience: Duration) -> bool {
        let mut lines = lock(&self.lines);
        if lines.waiting.is_empty() {
            lines = wait_for(&self.changed, lines, patience);
        }
        let Some(mut chunk) = lines.waiting.pop_front() else { return false };
        let mut taken = vec![chunk.len() + LINE_OVERHEAD];
        while let Some(next) = lines.waiting.front()
            && chunk.len() + next.len() <= CHUNK_BYTES
        {
            taken.push(next.len() + LINE_OVERHEAD);
            chunk.extend(lines.waiting.pop_front().unwrap_or_default());
        }
        lines.writing = true;
        drop(lines);
        let written = write(&lock(&self.out), &chunk, None).is_ok();
        let mut lines = lock(&self.lines);
        lines.writing = false;
        lines.bytes -= taken.iter().sum::<usize>();
        if !written {
            lines.dropped += taken.len() as u64;
            self.dropped.fetch_add(taken.len() as u64, Ordering::Relaxed);
        }
        self.changed.notify_all();
        written && lines.waiting.is_empty()
    }

    /// Waits until all lines are written, for at most `patience`.
    pub(super) fn flush(&self, patience: Duration) {
        let begun = Instant::now();
        let mut lines = lock(&self.lines);
        while lines.writer.is_some_and(|writer| writer != std::thread::current().id())
            && (lines.writing || !lines.waiting.is_empty())
        {
            let left = patience.saturating_sub(begun.elapsed());
            if left.is_zero() {
                return;
            }
            lines = wait_for(&self.changed, lines, left);
        }
    }
}

/// Writes `bytes`, after waiting until the file can take them: for `patience` at most in all, or
/// for as long as it takes.
fn write(out: &File, bytes: &[u8], patience: Option<Duration>) -> io::Result<()> {
    let begun = Instant::now();
    let mut left = bytes;
    while !left.is_empty() {
        let patience = patience.map(|patience| patience.saturating_sub(begun.elapsed()));
        let timeout = patience.and_then(|patience| Timespec::try_from(patience).ok());
        let mut ready = [PollFd::new(out, PollFlags::OUT)];
        match poll(&mut ready, timeout.as_ref()) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => {}
            Err(Errno::INTR) => continue,
            Err(error) => return Err(error.into()),
        }
        let chunk = left.get(..CHUNK_BYTES).unwrap_or(left);
        match rustix::io::write(out, chunk) {
            Ok(written) => left = left.get(written..).unwrap_or(&[]),
            // Others may have made the file non-blocking, and filled it meanwhile.
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sync::Arc;
    use std::io::{BufRead, BufReader};
    use std::os::fd::OwnedFd;

    fn pipe() -> (BufReader<File>, Arc<Queue>) {
        let (reader, writer) = io::pipe().unwrap();
        let (reader, writer) = (OwnedFd::from(reader), OwnedFd::from(writer));
        (BufReader::new(reader.into()), Arc::new(Queue::new(writer.into())))
    }

    fn start(queue: &Arc<Queue>) {
        let writing = Arc::clone(queue);
        std::thread::spawn(move || {
            writing.adopt();
            loop {
                if writing.write_out(Duration::from_secs(1)) {
                    let dropped = writing.take_dropped();
                    if dropped > 0 {
                        writing.push(Level::WARN, format!("dropped {dropped}\n").into_bytes());
                    }
                }
            }
        });
        while lock(&queue.lines).writer.is_none() {
            std::thread::yield_now();
        }
    }

    fn line(number: usize) -> Vec<u8> {
        format!("{number:0100}\n").into_bytes()
    }

    #[test]
    fn a_reader_that_stops_holds_up_nobody_and_is_told_how_much_it_missed() {
        let (mut reader, queue) = pipe();
        start(&queue);
        let lines = 50_000;
        // The test hangs, and so fails, if a caller waits for the reader.
        for number in 0..lines {
            queue.push(Level::INFO, line(number));
        }
        assert!(lock(&queue.lines).bytes <= LOG_QUEUE_BYTES_MAX);
        let dropped = queue.dropped();
        assert!(dropped > 0);
        let (mut text, mut seen, mut next) = (String::new(), 0, 0);
        while reader.read_line(&mut text).unwrap() > 0 {
            if let Some(said) = text.strip_prefix("dropped ") {
                assert_eq!(said.trim().parse(), Ok(dropped));
                break;
            }
            let number: usize = text.trim().parse().unwrap();
            assert!(number >= next, "out of order");
            (next, seen) = (number + 1, seen + 1);
            text.clear();
        }
        assert_eq!(seen + dropped, lines as u64);
        queue.push(Level::INFO, b"it goes on\n".to_vec());
        text.clear();
        reader.read_line(&mut text).unwrap();
        assert_eq!(text, "it goes on\n");
    }

    #[test]
    fn details_leave_room_for_warnings() {
        let (_reader, queue) = pipe();
        start(&queue);
        for number in 0..50_000 {
            queue.push(Level::DEBUG, line(number));
        }
        let before = queue.dropped();
        assert!(before > 0);
        for number in 0..1000 {
            queue.push(Level::WARN, line(number));
        }
        assert_eq!(queue.dropped(), before);
    }

    #[test]
    fn a_flush_waits_for_a_reader_and_not_for_one_that_is_not_there() {
        let (mut reader, queue) = pipe();
        queue.push(Level::INFO, b"before there is a thread\n".to_vec());
        start(&queue);
        queue.push(Level::INFO, b"the last\n".to_vec());
        queue.flush(Duration::from_secs(60));
        let mut text = String::new();
        reader.read_line(&mut text).unwrap();
        reader.read_line(&mut text).unwrap();
        assert_eq!(text, "before there is a thread\nthe last\n");
        for number in 0..50_000 {
            queue.push(Level::INFO, line(number));
        }
        // The test hangs, and so fails, if `flush` waits for longer than it should.
        queue.flush(Duration::from_millis(10));
        assert!(!lock(&queue.lines).waiting.is_empty());
    }

    #[test]
    fn before_there_is_a_thread_a_full_pipe_costs_lines() {
        let (reader, queue) = pipe();
        let out = lock(&queue.out).try_clone().unwrap();
        while write(&out, &[b'x'; CHUNK_BYTES], Some(Duration::ZERO)).is_ok() {}
        queue.push(Level::ERROR, line(1));
        assert_eq!(queue.dropped(), 1);
        drop(reader);
        queue.push(Level::ERROR, line(2));
        assert_eq!(queue.dropped(), 2, "nobody can ever read it");
    }
}
