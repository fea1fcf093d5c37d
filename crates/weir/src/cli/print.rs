//! The output of commands to standard output and standard error, through the one door for both
//! ([`weir_report::terminal`]).

use super::Output;
use serde::Serialize;
use std::ffi::OsString;
use std::fmt::Display;
use std::process::ExitCode;
use weir_api::{ApiError, Changed, ClientError, LimitChange};
use weir_catalog::CatalogError;
use weir_core::units::Rate;
use weir_report::errln;
use weir_report::terminal::{self, Grid, Text};

/// The command line makes no sense, in a way that only shows once it runs.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub(crate) struct Usage(String);

/// An error that ends with status 2.
pub(crate) fn usage(message: &str) -> anyhow::Error {
    Usage(message.to_owned()).into()
}

/// Says why it failed, and how to end.
pub(crate) fn failure(error: &anyhow::Error, output: Output) -> ExitCode {
    let (code, status) = match error.is::<Usage>() {
        true => ("usage", ExitCode::from(2)),
        false => ("client", ExitCode::FAILURE),
    };
    match (output, error.downcast_ref()) {
        (Output::Json, Some(ClientError::Refused { error, .. })) => json_error(error),
        (Output::Json, _) => {
            let code = error.downcast_ref().map_or(code, CatalogError::code);
            json_error(&ApiError::new(code, in_full(error)));
        }
        (Output::Table, _) => tell(&Text::from_iter([format_args!("weir: {}", in_full(error))])),
    }
    status
}

/// Says why clap could not read the command line, and how to end. Help and version, which clap
/// treats alike, are printed as they are.
pub(crate) fn unread(error: &clap::Error) -> ExitCode {
    if error.use_stderr() && Output::asked(std::env::args_os()) == Output::Json {
        let text = error.render().to_string();
        let message = text.strip_prefix("error: ").unwrap_or(&text).trim();
        json_error(&ApiError::new("usage", message));
        return ExitCode::from(2);
    }
    let ours = |(name, value): (OsString, OsString)| {
        name.as_encoded_bytes().starts_with(b"WEIR_").then_some(value)
    };
    let given = std::env::args_os().skip(1).chain(std::env::vars_os().filter_map(ours));
    let given: Vec<_> = given.map(|text| text.to_string_lossy().into_owned()).collect();
    // Without a reader the status says enough.
    drop(terminal::usage(error, given.iter().map(String::as_str)));
    if error.use_stderr() { ExitCode::from(2) } else { ExitCode::SUCCESS }
}

/// Writes lines to standard error. A server's go through its log, which does not wait for a reader.
fn tell(lines: &Text) {
    if !weir_control::log::say(lines) {
        terminal::warn(lines);
    }
}

fn json_error(error: &ApiError) {
    tell(&terminal::json_text(error));
}

/// The message and its causes. Some libraries put a cause in their message, others leave it to
/// the chain; either way it is said once.
pub(crate) fn in_full(error: &anyhow::Error) -> String {
    let mut message = String::new();
    for cause in error.chain().map(ToString::to_string) {
        if message.is_empty() {
            message = cause;
        } else if !message.ends_with(&cause) {
            message = format!("{message}: {cause}");
        }
    }
    message
}

/// Prints a line.
pub(crate) fn line(line: impl Display) -> anyhow::Result<()> {
    Ok(terminal::line(line)?)
}

/// Prints lines.
pub(crate) fn lines(lines: impl IntoIterator<Item = impl Display>) -> anyhow::Result<()> {
    text(&lines.into_iter().collect())
}

/// Prints lines that are made already.
pub(crate) fn text(text: &Text) -> anyhow::Result<()> {
    Ok(terminal::print(text)?)
}

/// Prints JSON.
pub(crate) fn json(value: &impl Serialize) -> anyhow::Result<()> {
    Ok(terminal::json(value)?)
}

/// Prints rows under a header, in columns.
pub(crate) fn table(
    header: &[&str],
    rows: impl IntoIterator<Item = Vec<String>>,
) -> anyhow::Result<()> {
    text(&columns(header, rows))
}

/// Rows under a header, in columns.
pub(crate) fn columns(header: &[&str], rows: impl IntoIterator<Item = Vec<String>>) -> Text {
    let mut grid = Grid::columns();
    grid.head(header.iter().map(|name| name.to_uppercase()));
    rows.into_iter().for_each(|row| grid.row(row));
    grid.text()
}

/// Prints names and values, one a line.
pub(crate) fn fields(fields: &[(&str, String)]) -> anyhow::Result<()> {
    let mut grid = Grid::columns();
    fields.iter().for_each(|(name, value)| grid.row([*name, value]));
    text(&grid.text())
}

/// Prints the outcome of a change: whole as JSON, or `done` and the limits it changes; for a dry
/// run those that stay, too.
pub(crate) fn changed<T: Serialize>(
    output: Output,
    changed: &Changed<T>,
    done: &str,
) -> anyhow::Result<()> {
    if output == Output::Json {
        return json(changed);
    }
    match changed.dry_run {
        true => line(format_args!("Dry run, nothing is changed: {done}"))?,
        false => line(done)?,
    }
    for warning in &changed.warnings {
        errln!("weir: warning: {}", warning.message);
    }
    let is_told = |change: &&LimitChange| changed.dry_run || !stays(change);
    let rows: Vec<_> = changed.changes.iter().filter(is_told).map(limits).collect();
    if rows.is_empty() {
        return Ok(());
    }
    table(&["volume", "limit before", "limit after"], rows)
}

fn stays(change: &LimitChange) -> bool {
    change.before_bytes_per_second == change.after_bytes_per_second
        && change.before_iops == change.after_iops
        && change.before_base_iops == change.after_base_iops
}

fn limits(change: &LimitChange) -> Vec<String> {
    let before = limit(change.before_bytes_per_second, change.before_iops, change.before_base_iops);
    let after = limit(change.after_bytes_per_second, change.after_iops, change.after_base_iops);
    let note = if stays(change) { ", unchanged" } else { "" };
    vec![change.volume.clone(), before, format!("{after}{note}")]
}

/// All that limits a volume, as one text; `base` where the IOPS are those of bursts.
pub(crate) fn limit(bytes_per_second: u64, iops: Option<u64>, base: Option<u64>) -> String {
    let rate = Rate(bytes_per_second);
    match (iops, base) {
        (None, _) => rate.to_string(),
        (Some(iops), Some(base)) if base < iops => {
            format!("{rate}, {base} IOPS, bursts of {iops}")
        }
        (Some(iops), _) => format!("{rate}, {iops} IOPS"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn a_cause_is_said_once_whoever_says_it() {
        let cause = || std::io::Error::from_raw_os_error(98);
        let left_to_the_chain = anyhow::Error::new(cause()).context("can't listen");
        let in_the_message =
            anyhow::Error::new(cause()).context(format!("can't listen: {}", cause()));
        let wanted = format!("can't listen: {}", cause());
        assert_eq!(in_full(&left_to_the_chain), wanted);
        assert_eq!(in_full(&in_the_message), wanted);
        assert_eq!(in_full(&anyhow!("alone")), "alone");
    }

    #[test]
    fn a_limit_says_all_that_binds() {
        assert_eq!(limit(1 << 20, None, None), "1 MiB/s");
        assert_eq!(limit(1 << 20, Some(7), None), "1 MiB/s, 7 IOPS");
        assert_eq!(limit(1 << 20, Some(7), Some(3)), "1 MiB/s, 3 IOPS, bursts of 7");
        assert_eq!(limit(1 << 20, Some(7), Some(7)), "1 MiB/s, 7 IOPS");
    }

    #[test]
    fn columns_line_up_and_end_without_blanks() {
        let rows = [vec!["a".into(), "100 GiB".into()], vec!["volume".into(), "1 TiB".into()]];
        let text = columns(&["name", "quota"], rows);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.len(), 3);
        let at = lines[0].find("QUOTA").unwrap();
        assert_eq!((lines[1].find("100"), lines[2].find("1 TiB")), (Some(at), Some(at)));
        assert!(lines.iter().all(|line| line.trim_end() == *line));
    }
}
