//! A child process that ends with its owner.

use anyhow::{Context, Result, bail};
use rustix::process::{Pid, Signal, kill_process};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::time::{Duration, Instant};

/// Longest time that a process may take to begin, and to end before it is killed.
const PATIENCE: Duration = Duration::from_secs(20);

/// A child process. Dropping it asks the process to end, and kills it if it does not.
#[derive(Debug)]
pub struct Process {
    name: String,
    child: Child,
}

impl Process {
    /// Starts `command`, out of the terminal's process group: an interrupt reaches the owner alone,
    /// which then ends the child in order.
    ///
    /// # Errors
    /// If the program can't be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        let name = command.get_program().to_string_lossy().into_owned();
        let child =
            command.process_group(0).spawn().with_context(|| format!("cannot start {name}"))?;
        Ok(Self { name, child })
    }

    /// The process id.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// The process's exit status, if it has ended.
    ///
    /// # Errors
    /// If the system can't tell.
    pub fn ended(&mut self) -> Result<Option<ExitStatus>> {
        self.child.try_wait().with_context(|| format!("can't watch {}", self.name))
    }

    /// Waits until the process accepts connections on `address`; `log` is the file with its
    /// messages.
    ///
    /// # Errors
    /// If it ends, or does not answer within 20 s.
    pub fn wait_for_port(&mut self, address: SocketAddr, log: &Path) -> Result<()> {
        let begun = Instant::now();
        while TcpStream::connect_timeout(&address, Duration::from_secs(1)).is_err() {
            if let Some(status) = self.ended()? {
                bail!("{} exited immediately ({status}); see {}", self.name, log.display());
            }
            if begun.elapsed() > PATIENCE {
                bail!("{} does not respond on {address}; see {}", self.name, log.display());
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    /// The child itself, to take its output from.
    pub const fn child(&mut self) -> &mut Child {
        &mut self.child
    }

    /// Ends it at once (SIGKILL), and waits until nothing of it is left.
    pub fn kill(&mut self) -> Result<()> {
        let name = &self.name;
        self.child.kill().with_context(|| format!("cannot kill {name}"))?;
        self.child.wait().with_context(|| format!("cannot wait for {name}"))?;
        Ok(())
    }

    /// Asks it to end (SIGTERM), and waits until it has. It is killed if it takes longer than 20 s.
    ///
    /// # Errors
    /// If the system can't.
    pub fn end(&mut self) -> Result<ExitStatus> {
        if let Some(status) = self.ended()? {
            return Ok(status);
        }
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            kill_process(pid, Signal::TERM)?;
        }
        let begun = Instant::now();
        while begun.elapsed() < PATIENCE {
            if let Some(status) = self.ended()? {
                return Ok(status);
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        self.child.kill()?;
        Ok(self.child.wait()?)
    }
}

/// The directories in `/proc` of the threads of process `pid` whose names begin with `prefix`.
pub fn threads_named(pid: u32, prefix: &str) -> Vec<PathBuf> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten();
    let paths = tasks.filter_map(|task| Some(task.ok()?.path()));
    let named = |path: &PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with(prefix))
    };
    paths.filter(named).collect()
}

/// Memory of process `pid`, in MiB (`VmRSS` of proc(5)).
#[expect(clippy::cast_precision_loss, reason = "memory stays far below 2^52 KiB")]
pub fn resident_mib(pid: u32) -> Result<f64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .with_context(|| format!("process {pid} is gone"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kibibytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
    Ok(kibibytes.context("the system does not tell how much memory a process holds")? as f64
        / 1024.0)
}

/// Runs a program to its end; its own words are the error.
pub fn run(command: &mut Command) -> Result<()> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().with_context(|| format!("cannot run {name}"))?;
    if !output.status.success() {
        bail!("{name} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    Ok(())
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Err(error) = self.end() {
            weir_report::errln!(
                "{} (process {}) could not be ended: {error}",
                self.name,
                self.child.id()
            );
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ends_with_its_owner() {
        let mut process = Process::start(Command::new("sleep").arg("1000")).unwrap();
        assert_eq!(process.ended().unwrap(), None);
        let path = format!("/proc/{}", process.pid());
        assert!(Path::new(&path).exists());
        drop(process);
        assert!(!Path::new(&path).exists());
        let mut process = Process::start(Command::new("sleep").arg("1000")).unwrap();
        assert!(!process.end().unwrap().success(), "by the signal");
    }

    #[test]
    fn threads_are_found_by_their_names() {
        let (stop, stopped) = std::sync::mpsc::channel::<()>();
        let (started, starting) = std::sync::mpsc::channel();
        let thread = std::thread::Builder::new().name("found-by-name".to_owned());
        let thread = thread.spawn(move || {
            started.send(()).unwrap();
            stopped.recv().unwrap_err();
        });
        starting.recv().unwrap();
        let pid = std::process::id();
        assert_eq!(threads_named(pid, "found-by-").len(), 1);
        assert_eq!(threads_named(pid, "no-such-").len(), 0);
        drop(stop);
        thread.unwrap().join().unwrap();
    }

    #[test]
    fn memory_of_this_process_is_seen() {
        assert!(resident_mib(std::process::id()).unwrap() > 0.5);
        assert!(resident_mib(u32::MAX).is_err());
    }

    #[test]
    fn a_failing_program_is_quoted() {
        let error = run(Command::new("ls").arg("/no/such/place")).unwrap_err().to_string();
        assert!(error.starts_with("ls failed:") && error.contains("/no/such/place"), "{error}");
        assert!(run(&mut Command::new("true")).is_ok());
    }

    #[test]
    fn a_missing_program_is_named() {
        let error = Process::start(&mut Command::new("no-such-program-here")).unwrap_err();
        assert!(error.to_string().contains("no-such-program-here"));
    }
}
