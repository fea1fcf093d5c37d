//! A time of day of a gateway's own, which can jump: a library that is loaded before the server's
//! own and changes what the clock says. The machine's clock is left alone, as all machines of the
//! campaign, and everything else on this one, share it. Not here: timers that wait already.

use anyhow::{Context, Result};
use std::path::{Path, PathBuf};
use std::process::Command;
use weir_lab::process::run;

const SOURCE: &str = include_str!("clock.c");
/// The variable that names the file to the library.
const FILE: &str = "WEIR_LAB_CLOCK";

/// The clock of one gateway.
#[derive(Debug)]
pub(super) struct Clock {
    library: PathBuf,
    file: PathBuf,
}

/// Builds the library in this directory.
///
/// # Errors
/// In the words of the compiler.
pub(crate) fn build(work: &Path) -> Result<PathBuf> {
    let (source, library) = (work.join("clock.c"), work.join("clock.so"));
    std::fs::write(&source, SOURCE)?;
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-O1", "-o"]).arg(&library).arg(&source);
    run(&mut cc).context("the clock of gateways does not build")?;
    Ok(library)
}

impl Clock {
    /// A clock that is right, with this file.
    pub(super) fn new(library: &Path, file: PathBuf) -> Result<Self> {
        let clock = Self { library: library.to_owned(), file };
        std::fs::write(&clock.file, 0_i64.to_ne_bytes())?;
        Ok(clock)
    }

    /// Has a command that is about to start go by this clock.
    pub(super) fn give_to(&self, command: &mut Command) {
        command.env("LD_PRELOAD", &self.library).env(FILE, &self.file);
    }

    /// Sets it this many seconds ahead of the machine's clock; behind it, if negative.
    pub(super) fn set(&self, ahead_s: i64) -> Result<()> {
        // In place: the server has the file mapped.
        let file = std::fs::File::options().write(true).open(&self.file)?;
        std::os::unix::fs::FileExt::write_all_at(&file, &ahead_s.to_ne_bytes(), 0)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, SystemTime, UNIX_EPOCH};

    #[test]
    fn a_process_goes_by_its_own_clock() {
        let work = tempfile::tempdir().unwrap();
        let library = build(work.path()).unwrap();
        let clock = Clock::new(&library, work.path().join("clock")).unwrap();
        let read = |ahead_s| {
            clock.set(ahead_s).unwrap();
            let mut date = Command::new("date");
            clock.give_to(date.arg("+%s"));
            let said = String::from_utf8(date.output().unwrap().stdout).unwrap();
            UNIX_EPOCH + Duration::from_secs(said.trim().parse().unwrap())
        };
        let hour = Duration::from_secs(3600);
        let (before, ahead, behind) = (SystemTime::now(), read(7200), read(-7200));
        assert!(ahead > before + hour && behind < before - hour, "{ahead:?} {behind:?}");
    }
}
