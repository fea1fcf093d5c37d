//! This machine, for the report.

use crate::results::Machine;
use std::fs::read_to_string;

/// What this machine is; what can't be read is left empty.
#[must_use]
pub fn machine() -> Machine {
    let line = |path: &str| read_to_string(path).map(|text| text.trim().to_owned());
    let cpuinfo = read_to_string("/proc/cpuinfo").unwrap_or_default();
    let release = read_to_string("/etc/os-release").unwrap_or_default();
    let processors = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    Machine {
        name: line("/proc/sys/kernel/hostname").unwrap_or_default(),
        processor: field(&cpuinfo, "model name", ':'),
        processors: u32::try_from(processors).unwrap_or(u32::MAX),
        memory_bytes: memory_bytes(),
        kernel: line("/proc/sys/kernel/osrelease")
            .map(|release| format!("Linux {release}"))
            .unwrap_or_default(),
        system: field(&release, "PRETTY_NAME", '='),
    }
}

/// Bytes of memory of this machine; zero if that can't be read.
#[must_use]
pub fn memory_bytes() -> u64 {
    let text = read_to_string("/proc/meminfo").unwrap_or_default();
    let kibibytes = field(&text, "MemTotal", ':');
    let number = kibibytes.split_whitespace().next().and_then(|word| word.parse::<u64>().ok());
    number.unwrap_or(0).saturating_mul(1024)
}

fn field(text: &str, name: &str, separator: char) -> String {
    let value = text.lines().find_map(|line| {
        let (key, value) = line.split_once(separator)?;
        (key.trim() == name).then(|| value.trim().trim_matches('"').to_owned())
    });
    value.unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_and_unquoted() {
        let text = "NAME=\"Debian\"\nPRETTY_NAME=\"Debian GNU/Linux 12 (bookworm)\"\n";
        assert_eq!(field(text, "PRETTY_NAME", '='), "Debian GNU/Linux 12 (bookworm)");
        assert_eq!(field("model name\t: A: B\n", "model name", ':'), "A: B");
        assert_eq!(field(text, "ID", '='), "");
    }

    #[test]
    fn this_machine_has_memory_and_processors() {
        let machine = machine();
        assert!(machine.memory_bytes > 0 && machine.processors > 0, "{machine:?}");
    }
}
