//! Log lines on standard error, by way of the server's bounded queue. Where standard error is the
//! journal, each line begins with its priority, as sd-daemon(3) has it, and leaves the time to the
//! journal.

use super::log_fields::{EscapedJson, escaped};
use anyhow::{Context, Result, anyhow};
use std::backtrace::{Backtrace, BacktraceStatus};
use std::fs::File;
use std::io::{IsTerminal, Write, stderr};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use tracing::{Event, Level, Metadata, Subscriber};
use tracing_subscriber::fmt::{MakeWriter, layer};
use tracing_subscriber::layer::{Context as LayerContext, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{EnvFilter, Layer, Registry};
use weir_control::ServerConfig;
use weir_control::config::LogFormat;
use weir_control::log::Log;

/// Starts logging as `config` says.
///
/// # Errors
/// If logging has started before, or standard error can't be used.
pub(crate) fn start(config: &ServerConfig) -> Result<()> {
    let level = &config.log_level;
    let filter = EnvFilter::try_new(level).with_context(|| format!("log.level: {level:?}"))?;
    let out = stderr().as_fd().try_clone_to_owned().context("standard error")?;
    let log = Log::new(File::from(out));
    let journal = is_journal();
    let lines = layer().with_writer(Lines { log: Arc::clone(&log), journal });
    let lines: Box<dyn Layer<Registry> + Send + Sync> = match (config.log_format, journal) {
        (LogFormat::Text, true) => {
            let lines = lines.fmt_fields(escaped());
            lines.with_ansi(false).without_time().with_level(false).boxed()
        }
        (LogFormat::Text, false) => {
            lines.fmt_fields(escaped()).with_ansi(stderr().is_terminal()).boxed()
        }
        (LogFormat::Json, _) => lines.json().map_event_format(EscapedJson).boxed(),
    };
    // Both filter for all layers: a filter of one layer that refuses a line after its level has
    // passed leaves tracing-subscriber in doubt about the next one.
    let rates = AtARate(Arc::clone(&log));
    let started = tracing_subscriber::registry().with(lines).with(filter).with(rates).try_init();
    started.map_err(|error| anyhow!("logging: {error}"))?;
    log.install();
    std::panic::set_hook(Box::new(|panic| {
        let backtrace = Backtrace::capture();
        match backtrace.status() {
            BacktraceStatus::Captured => tracing::error!("{panic}\n{backtrace}"),
            _ => tracing::error!("{panic}"),
        }
        weir_control::log::flush();
    }));
    Ok(())
}

/// Passes the lines that the log's rates admit.
struct AtARate(Arc<Log>);

impl<S: Subscriber> Layer<S> for AtARate {
    fn event_enabled(&self, event: &Event<'_>, _: LayerContext<'_, S>) -> bool {
        self.0.admits(event)
    }
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

/// Writes lines to the log, with their priorities for the journal.
struct Lines {
    log: Arc<Log>,
    journal: bool,
}

impl<'a> MakeWriter<'a> for Lines {
    type Writer = Line<'a>;

    fn make_writer(&'a self) -> Self::Writer {
        Line { lines: self, level: Level::INFO }
    }

    fn make_writer_for(&'a self, meta: &Metadata<'_>) -> Self::Writer {
        Line { lines: self, level: *meta.level() }
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

/// One line on its way; it comes in one piece.
struct Line<'a> {
    lines: &'a Lines,
    level: Level,
}

impl Write for Line<'_> {
    fn write(&mut self, line: &[u8]) -> std::io::Result<usize> {
        let prefix = if self.lines.journal { prefix(self.level) } else { "" };
        self.lines.log.write(self.level, [prefix.as_bytes(), line].concat());
        Ok(line.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{BufRead, BufReader};

    #[test]
    fn a_line_has_its_priority_before_it() {
        let (reader, writer) = std::io::pipe().unwrap();
        let log = Log::new(File::from(std::os::fd::OwnedFd::from(writer)));
        for journal in [true, false] {
            let lines = Lines { log: Arc::clone(&log), journal };
            Line { lines: &lines, level: Level::WARN }.write_all(b"loose modes\n").unwrap();
        }
        let mut written = String::new();
        let mut reader = BufReader::new(reader);
        reader.read_line(&mut written).unwrap();
        reader.read_line(&mut written).unwrap();
        assert_eq!(written, "<4>loose modes\nloose modes\n");
        let [error, info, trace] = [Level::ERROR, Level::INFO, Level::TRACE].map(prefix);
        assert_eq!([error, info, trace], ["<3>", "<6>", "<7>"]);
    }
}
