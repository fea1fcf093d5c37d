//! Log lines on standard error.

use anyhow::{Context, Result, anyhow};
use std::io::IsTerminal;
use tracing_subscriber::EnvFilter;
use weir_server::ServerConfig;
use weir_server::config::LogFormat;

/// Starts logging as `config` says.
///
/// # Errors
/// If logging has started before.
pub(crate) fn start(config: &ServerConfig) -> Result<()> {
    let level = &config.log_level;
    let filter = EnvFilter::try_new(level).with_context(|| format!("log.level: {level:?}"))?;
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    let started = match config.log_format {
        LogFormat::Text => builder.with_ansi(std::io::stderr().is_terminal()).try_init(),
        LogFormat::Json => builder.json().try_init(),
    };
    started.map_err(|error| anyhow!("logging: {error}"))
}
