//! Log lines on standard error. Where that is the journal, each begins with its priority, as
//! sd-daemon(3) has it, and leaves the time to the journal.

use super::log_fields::{EscapedJson, escaped};
use anyhow::{Context, Result, anyhow};
use std::fs::File;
use std::io::{IsTerminal, Stderr, Write, stderr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use tracing::{Level, Metadata};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::MakeWriter;
use weir_server::ServerConfig;
use weir_server::config::LogFormat;

/// Starts logging as `config` says.
///
/// # Errors
/// If logging has started before.
pub(crate) fn start(config: &ServerConfig) -> Result<()> {
    let level = &config.log_level;
    let filter = EnvFilter::try_new(level).with_context(|| format!("log.level: {level:?}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter);
    let started = match (config.log_format, is_journal()) {
        (LogFormat::Text, true) => builder
            .with_ansi(false)
            .without_time()
            .with_level(false)
            .fmt_fields(escaped())
            .with_writer(Journal)
            .try_init(),
        (LogFormat::Text, false) => builder
            .with_ansi(stderr().is_terminal())
            .fmt_fields(escaped())
            .with_writer(stderr)
            .try_init(),
        (LogFormat::Json, true) => {
            builder.json().map_event_format(EscapedJson).with_writer(Journal).try_init()
        }
        (LogFormat::Json, false) => {
            builder.json().map_event_format(EscapedJson).with_writer(stderr).try_init()
        }
    };
    started.map_err(|error| anyhow!("logging: {error}"))
}

/// Is standard error connected to the journal? systemd says which file the journal's is; what was
/// redirected since is another.
fn is_journal() -> bool {
    let same = || {
        let told = std::env::var("JOURNAL_STREAM").ok()?;
        let ours = File::from(stderr().as_fd().try_clone_to_owned().ok()?).metadata().ok()?;
        Some(told == format!("{}:{}", ours.dev(), ours.ino()))
    };
    same().unwrap_or(false)
}

/// Writes lines for the journal.
struct Journal;

impl<'a> MakeWriter<'a> for Journal {
    type Writer = Line<Stderr>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { prefix: prefix(Level::INFO), to: stderr() }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Self::Writer {
        Line { prefix: prefix(*meta.level()), to: stderr() }
    }
}

/// The priority of syslog(3) that a level is.
fn prefix(level: Level) -> &'static str {
    match level {
        Level::ERROR => "<3>",
        Level::WARN => "<4>",
        Level::INFO => "<6>",
        _ => "<7>",
    }
}

/// A line with its priority before it, in one write: lines of several threads must not mix.
struct Line<W> {
    prefix: &'static str,
    to: W,
}

impl<W: Write> Write for Line<W> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        self.to.write_all(&[self.prefix.as_bytes(), line].concat())?;
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.to.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_its_priority_before_it() {
        let mut written = Vec::new();
        let mut line = Line { prefix: prefix(Level::WARN), to: &mut written };
        line.write_all(b"loose modes\n").unwrap();
        assert_eq!(written, b"<4>loose modes\n");
        let [error, info, trace] = [Level::ERROR, Level::INFO, Level::TRACE].map(prefix);
        assert_eq!([error, info, trace], ["<3>", "<6>", "<7>"]);
    }
}
