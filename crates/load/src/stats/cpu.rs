//! Processor time from `/proc`: of a server's process, of the kernel's own threads, and of the
//! calling thread.

use rustix::time::{ClockId, clock_gettime};
use std::io;
use std::path::Path;
use std::time::Duration;

/// Processor time of process `pid` so far, user and system, all its threads, also those that
/// have ended. Its resolution is the kernel's clock tick (10 ms).
///
/// # Errors
/// The error of reading `/proc/PID/stat`: `NotFound` if there is no such process.
pub fn process(pid: u32) -> io::Result<Duration> {
    let stat = std::fs::read(format!("/proc/{pid}/stat"))?;
    let stat = ProcStat::parse(&stat).ok_or_else(|| malformed(pid))?;
    Ok(ticks(stat.ticks))
}

/// Processor time that the kernel's own threads (children of `kthreadd`) have used so far:
/// writeback, journal commits, block completion. The difference over a run includes what the
/// rest of the machine caused.
///
/// # Errors
/// The error of reading the directory `/proc`. Threads that end meanwhile are passed over.
pub fn kernel_threads() -> io::Result<Duration> {
    let mut sum = 0;
    for entry in std::fs::read_dir("/proc")? {
        let path = entry?.path();
        if !is_process(&path) {
            continue;
        }
        let Ok(bytes) = std::fs::read(path.join("stat")) else { continue };
        if let Some(stat) = ProcStat::parse(&bytes)
            && stat.parent == KTHREADD
        {
            sum += stat.ticks;
        }
    }
    Ok(ticks(sum))
}

/// Processor time of the calling thread so far.
#[must_use]
pub fn this_thread() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// The time that all processors of the machine together were busy, and their total time, in ticks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MachineTime {
    busy: u64,
    all: u64,
    /// The processors that are online.
    processors: u32,
}

/// The time of all processors so far, from `/proc/stat`.
pub fn machine() -> io::Result<MachineTime> {
    let stat = std::fs::read_to_string("/proc/stat")?;
    MachineTime::parse(&stat).ok_or_else(|| {
        io::Error::new(io::ErrorKind::InvalidData, "/proc/stat is not as proc(5) says")
    })
}

impl MachineTime {
    fn parse(stat: &str) -> Option<Self> {
        let line = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
        // user, nice, system, idle, iowait, irq, softirq, steal; guests are part of the users.
        let ticks = line.split_ascii_whitespace().take(8).map(str::parse::<u64>);
        let ticks = ticks.collect::<Result<Vec<_>, _>>().ok()?;
        let all = ticks.iter().sum();
        let idle: u64 = ticks.iter().skip(3).take(2).sum();
        let is_one = |line: &&str| {
            let number = line.strip_prefix("cpu").unwrap_or_default();
            number.starts_with(|first: char| first.is_ascii_digit())
        };
        let processors = u32::try_from(stat.lines().filter(is_one).count()).unwrap_or(u32::MAX);
        (ticks.len() >= 5).then(|| Self { busy: all - idle, all, processors })
    }

    /// The number of processors.
    pub const fn processors(self) -> u32 {
        self.processors
    }

    /// Share of the time since `before` that they were busy, 0 to 100.
    #[expect(clippy::cast_precision_loss, reason = "a percentage")]
    pub fn busy_percent_since(self, before: Self) -> f64 {
        let all = self.all.saturating_sub(before.all);
        let busy = self.busy.saturating_sub(before.busy);
        if all == 0 { 0.0 } else { busy as f64 * 100.0 / all as f64 }
    }
}

/// The process whose children are the kernel's threads.
const KTHREADD: u32 = 2;

fn is_process(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or("");
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_digit())
}

fn ticks(count: u64) -> Duration {
    let per_second = rustix::param::clock_ticks_per_second().max(1);
    Duration::from_nanos(count.saturating_mul(1_000_000_000 / per_second))
}

fn malformed(pid: u32) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("/proc/{pid}/stat is not as proc(5) says"))
}

/// The fields of `/proc/PID/stat` that matter here (proc(5)).
#[derive(Debug, PartialEq, Eq)]
struct ProcStat {
    parent: u32,
    ticks: u64,
}

impl ProcStat {
    fn parse(stat: &[u8]) -> Option<Self> {
        // The name is in parentheses and may itself hold spaces and parentheses.
        let after_name = stat.iter().rposition(|byte| *byte == b')')? + 1;
        let rest = std::str::from_utf8(stat.get(after_name..)?).ok()?;
        let mut fields = rest.split_ascii_whitespace();
        let parent = fields.nth(1)?.parse().ok()?;
        let user: u64 = fields.nth(9)?.parse().ok()?;
        let system: u64 = fields.next()?.parse().ok()?;
        Some(Self { parent, ticks: user + system })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_behind_a_hostile_name() {
        let line = b"42 (a) b (c)) S 7 42 42 0 -1 4194560 1 2 3 4 100 23 5 6 20 0 4 0 9 9 9";
        assert_eq!(ProcStat::parse(line), Some(ProcStat { parent: 7, ticks: 123 }));
        assert_eq!(ProcStat::parse(b"42 (x) S 7"), None);
        assert_eq!(ProcStat::parse(b""), None);
    }

    #[test]
    fn waiting_for_a_disk_is_no_work_of_a_processor() {
        let before = MachineTime::parse("cpu  10 0 10 70 10 0 0 0 0 0\ncpu0 1 2 3").unwrap();
        let after = MachineTime::parse("cpu  40 0 30 90 40 0 0 0 0 0").unwrap();
        assert!((after.busy_percent_since(before) - 50.0).abs() < 1e-9);
        let two = MachineTime::parse("cpu  4 0 4 7 1\ncpu0 2 0 2 3 1\ncpu1 2 0 2 4 0\nintr 9\n");
        assert_eq!([before.processors(), two.unwrap().processors()], [1, 2]);
        assert!(before.busy_percent_since(before).abs() < 1e-9);
        assert_eq!(MachineTime::parse("cpu  1 2"), None);
        assert!(machine().is_ok());
    }

    #[test]
    fn own_process_and_kernel_threads_can_be_read() {
        process(std::process::id()).unwrap();
        kernel_threads().unwrap();
        assert_eq!(process(u32::MAX).unwrap_err().kind(), io::ErrorKind::NotFound);
    }

    #[test]
    fn the_thread_clock_advances_with_work() {
        let before = this_thread();
        let mut sum = 0_u64;
        while this_thread() == before {
            sum = std::hint::black_box(sum + 1);
        }
        assert!(this_thread() > before);
    }
}
