//! Processor time of a server: all its threads, and the kernel's own threads that work for it.

use anyhow::{Context, Result};
use rustix::param::clock_ticks_per_second;
use std::collections::HashMap;
use std::fs::{read_dir, read_to_string};

/// Flag of the kernel's own threads in the ninth field of `/proc/PID/stat` (`PF_KTHREAD`).
const KERNEL_THREAD: u64 = 0x0020_0000;
/// Most generations between a server and one of its processes.
const GENERATIONS_MAX: u32 = 8;

/// Processor time used until now.
#[derive(Clone, Debug, Default)]
pub struct Reading {
    /// By each process of the server with all its threads, those that ended included, known by its
    /// id and when it began, in seconds.
    processes_s: HashMap<(u32, u64), f64>,
    /// By each kernel thread, known by its id and when it began, in seconds.
    kernel_s: HashMap<(u32, u64), f64>,
}

/// Processor time between two readings.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Used {
    /// By the server's processes, in seconds.
    pub process_s: f64,
    /// By kernel threads, in seconds: write-back, the loop device, journals.
    pub kernel_s: f64,
}

impl Reading {
    /// Reads the clocks of process `pid`, of its descendants (a server may have a process for each
    /// connection) and of all kernel threads.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn take(pid: u32) -> Result<Self> {
        stat(pid).with_context(|| format!("process {pid} is gone"))?;
        let (mut all, mut kernel_s) = (HashMap::new(), HashMap::new());
        for entry in read_dir("/proc").context("can't read /proc")?.flatten() {
            let Some(number) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else {
                continue;
            };
            match stat(number) {
                Some(thread) if thread.flags & KERNEL_THREAD != 0 => {
                    kernel_s.insert((number, thread.began), thread.used_s);
                }
                Some(process) => drop(all.insert(number, process)),
                None => {}
            }
        }
        let own = all.iter().filter(|(number, _)| descends(&all, **number, pid));
        let processes_s = own.map(|(number, stat)| ((*number, stat.began), stat.used_s)).collect();
        Ok(Self { processes_s, kernel_s })
    }

    /// The use from `earlier` to this reading. Processes and kernel threads that were not there
    /// earlier count whole; those that have ended since are lost.
    pub fn since(&self, earlier: &Self) -> Used {
        Used {
            process_s: rise(&earlier.processes_s, &self.processes_s),
            kernel_s: rise(&earlier.kernel_s, &self.kernel_s),
        }
    }
}

/// Processor time of each thread of one process until now.
#[derive(Clone, Debug, Default)]
pub struct Threads(HashMap<(u32, u64), f64>);

impl Threads {
    /// Reads the clocks of all threads of process `pid`.
    ///
    /// # Errors
    /// If there is no such process.
    pub fn take(pid: u32) -> Result<Self> {
        let tasks = format!("/proc/{pid}/task");
        let entries = read_dir(&tasks).with_context(|| format!("process {pid} is gone"))?;
        let ids = entries.flatten().filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        let clock = |id: u32| {
            let stat = stat_in(&format!("{tasks}/{id}/stat"))?;
            Some(((id, stat.began), stat.used_s))
        };
        Ok(Self(ids.filter_map(clock).collect()))
    }

    /// The time of the thread that used most from `earlier` to this reading, in seconds.
    pub fn busiest_since(&self, earlier: &Self) -> f64 {
        let used = |(one, used): (&(u32, u64), &f64)| used - earlier.0.get(one).unwrap_or(&0.0);
        self.0.iter().map(used).fold(0.0, f64::max)
    }
}

fn rise(earlier: &HashMap<(u32, u64), f64>, later: &HashMap<(u32, u64), f64>) -> f64 {
    later.iter().map(|(one, used)| used - earlier.get(one).copied().unwrap_or(0.0)).sum()
}

/// Is `number` the process `ancestor` or one that it started, or its children did?
fn descends(all: &HashMap<u32, Stat>, number: u32, ancestor: u32) -> bool {
    let mut at = number;
    // Parents are looked up one by one in a table that changes meanwhile: the way is bounded.
    for _ in 0..GENERATIONS_MAX {
        if at == ancestor {
            return true;
        }
        match all.get(&at) {
            Some(stat) if stat.parent != 0 => at = stat.parent,
            _ => return false,
        }
    }
    false
}

struct Stat {
    parent: u32,
    flags: u64,
    used_s: f64,
    began: u64,
}

fn stat(pid: u32) -> Option<Stat> {
    stat_in(&format!("/proc/{pid}/stat"))
}

fn stat_in(path: &str) -> Option<Stat> {
    parse(&read_to_string(path).ok()?, clock_ticks_per_second())
}

/// Reads a line of `/proc/PID/stat` (proc(5)); the name in parentheses may hold anything.
#[expect(clippy::cast_precision_loss, reason = "ticks stay far below 2^52")]
fn parse(line: &str, ticks_per_second: u64) -> Option<Stat> {
    let (_, rest) = line.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    let number = |field: usize| fields.get(field - 3)?.parse::<u64>().ok();
    let ticks = number(14)? + number(15)?;
    Some(Stat {
        parent: u32::try_from(number(4)?).ok()?,
        flags: number(9)?,
        used_s: ticks as f64 / ticks_per_second as f64,
        began: number(22)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_line_whatever_the_name() {
        let line = "7 (odd) name) S 2 0 0 0 -1 2129984 0 0 0 0 150 50 9 9 20 0 1 0 4242 0 0";
        let stat = parse(line, 100).unwrap();
        assert_eq!((stat.used_s, stat.began, stat.parent), (2.0, 4242, 2));
        assert_ne!(stat.flags & KERNEL_THREAD, 0);
        assert!(parse("7 (short) S 2", 100).is_none());
    }

    #[test]
    fn new_kernel_threads_count_whole_and_ended_ones_not_at_all() {
        let reading = |process_s, kernel: &[((u32, u64), f64)]| Reading {
            processes_s: [((9, 9), process_s)].into(),
            kernel_s: kernel.iter().copied().collect(),
        };
        let earlier = reading(1.0, &[((5, 1), 10.0), ((6, 1), 3.0)]);
        let later = reading(2.5, &[((5, 1), 10.25), ((6, 9), 0.5)]);
        assert_eq!(later.since(&earlier), Used { process_s: 1.5, kernel_s: 0.75 });
    }

    #[test]
    fn the_busiest_thread_counts_alone() {
        let reading = |clocks: &[(u32, f64)]| {
            Threads(clocks.iter().map(|(id, used)| ((*id, 7), *used)).collect())
        };
        let earlier = reading(&[(1, 10.0), (2, 1.0)]);
        let later = reading(&[(1, 10.5), (2, 1.75), (3, 0.25)]);
        assert_eq!(later.busiest_since(&earlier), 0.75);
        assert!(!Threads::take(std::process::id()).unwrap().0.is_empty());
        assert!(Threads::take(u32::MAX).is_err());
    }

    #[test]
    fn a_busy_process_is_seen() {
        let before = Reading::take(std::process::id()).unwrap();
        let mut after = before.clone();
        let mut sum = 0u64;
        while after.since(&before).process_s <= 0.0 {
            sum = (0..1_000_000u64).fold(sum, |sum, x| sum.wrapping_add(x * x));
            after = Reading::take(std::process::id()).unwrap();
        }
        assert!(std::hint::black_box(sum) > 0 && !after.kernel_s.is_empty());
    }

    #[test]
    fn children_of_a_server_count_and_strangers_do_not() {
        let process = |parent| Stat { parent, flags: 0, used_s: 1.0, began: 7 };
        let all = [(1, 0), (10, 1), (11, 10), (12, 11), (20, 1)].map(|(n, p)| (n, process(p)));
        let all = HashMap::from(all);
        let own = [1, 10, 11, 12, 20, 99].map(|number| descends(&all, number, 10));
        assert_eq!(own, [false, true, true, true, false, false]);
        let circle = HashMap::from([(5, process(6)), (6, process(5))]);
        assert!(!descends(&circle, 5, 10));
    }
}
