//! The description of this machine, as a worker reports it.

use std::fs::read_to_string;
use weir_results::Machine;

/// This machine; what can't be read is left empty.
#[must_use]
pub fn this() -> Machine {
    let read = |path| read_to_string(path).unwrap_or_default();
    let (processors, memory) = (read("/proc/cpuinfo"), read("/proc/meminfo"));
    let kibibytes: u64 = field(&memory, "MemTotal", ':')
        .and_then(|text| text.split_whitespace().next()?.parse().ok())
        .unwrap_or(0);
    Machine {
        name: read("/proc/sys/kernel/hostname").trim().to_owned(),
        processor: field(&processors, "model name", ':').unwrap_or_default(),
        processors: std::thread::available_parallelism()
            .ok()
            .and_then(|count| u32::try_from(count.get()).ok())
            .unwrap_or(0),
        memory_bytes: kibibytes.saturating_mul(1024),
        kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
        system: field(&read("/etc/os-release"), "PRETTY_NAME", '=').unwrap_or_default(),
    }
}

/// The rest of the first line that begins with `name` and `separator`, without quotation marks.
fn field(text: &str, name: &str, separator: char) -> Option<String> {
    let line = text.lines().find(|line| line.starts_with(name))?;
    Some(line.split_once(separator)?.1.trim().trim_matches('"').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_whatever_stands_around_them() {
        let text = "processor\t: 0\nmodel name\t: Fast One\nmodel name\t: Slow\n";
        assert_eq!(field(text, "model name", ':').unwrap(), "Fast One");
        assert_eq!(field("A=\"x y\"\n", "A", '=').unwrap(), "x y");
        assert_eq!(field(text, "absent", ':'), None);
        assert!(this().processors > 0);
    }
}
