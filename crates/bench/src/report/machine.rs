//! On what machine a report's figures were taken.

use std::fs::read_to_string;

/// Processor, number of cores, memory and kernel, in one line; what can't be read is left out.
#[must_use]
pub fn describe() -> String {
    let processor = read_to_string("/proc/cpuinfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("model name"))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    });
    let cores = std::thread::available_parallelism().ok().map(|count| format!("{count} cores"));
    let memory = read_to_string("/proc/meminfo").ok().and_then(|text| {
        let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
        let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(format!("{} GiB of memory", (kibibytes + (1 << 19)) >> 20))
    });
    let kernel = read_to_string("/proc/sys/kernel/osrelease")
        .ok()
        .map(|release| format!("Linux {}", release.trim()));
    [processor, cores, memory, kernel].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    #[test]
    fn names_the_cores_in_one_line() {
        let text = super::describe();
        assert!(text.contains("cores") && !text.contains('\n'), "{text}");
    }
}
