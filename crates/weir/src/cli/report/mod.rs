//! `weir volume report` and `weir volume why`.

mod html;
mod time;

use super::{Global, Output, connect, print};
use anyhow::{Context, Result};
use clap::Args;
use std::path::{Path, PathBuf};
use std::time::Duration;
use weir_api::{Cause, Client, Load, MissingGateway, Report, SignedReport, Verdict, Why, Window};
use weir_core::units::Rate;
use weir_core::units::{latency, parse_time};
use weir_report::percent;

pub(crate) use time::utc;

/// Maximum size of a signed report that is read, in bytes: 1,500 periods take less than 2 MiB.
const SIGNED_BYTES_MAX: u64 = 16 << 20;

/// Maximum number of broken periods listed in a terminal; the other formats contain all of them.
const BROKEN_MAX: usize = 20;

/// Options of a report.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir volume report home
  weir volume report home --since 7d --html home.html
  weir volume report home --signed home.json
  weir volume report --verify home.json --key 5f1c…")]
pub(crate) struct ReportArgs {
    /// Name of the volume
    #[arg(required_unless_present = "verify")]
    volume: Option<String>,
    /// Length of the reported period up to now, such as 30s, 24h or 14d; at most 14d
    #[arg(long, value_name = "TIME", default_value = "24h", value_parser = parse_time)]
    since: Duration,
    /// Write a self-contained HTML page with charts
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write a JSON report signed by the server
    #[arg(long, value_name = "FILE")]
    signed: Option<PathBuf>,
    /// Print JSON; same as --output json
    #[arg(long)]
    json: bool,
    /// Verify a signed report; no server is needed
    #[arg(long, value_name = "FILE", conflicts_with_all = ["volume", "html", "signed"])]
    verify: Option<PathBuf>,
    /// Public key that must have signed the report [default: key of the server, if one is named]
    #[arg(long, value_name = "HEX", requires = "verify")]
    key: Option<String>,
}

impl ReportArgs {
    /// Whether the command only verifies an existing report.
    pub(crate) const fn only_checks(&self) -> bool {
        self.verify.is_some()
    }

    const fn output(&self, output: Output) -> Output {
        if self.json { Output::Json } else { output }
    }
}

/// Creates a report.
pub(crate) async fn run(client: &Client, output: Output, args: &ReportArgs) -> Result<()> {
    let (name, seconds) = (args.volume.as_deref().unwrap_or_default(), args.since.as_secs().max(1));
    if let Some(path) = &args.signed {
        return sign(client, name, seconds, path).await;
    }
    let report = client.report(name, seconds).await?;
    if let Some(path) = &args.html {
        write(path, &html::page(&report))?;
        print::lines([sentence(&report), format!("{}: written", path.display())])?;
        return print::lines(missing(&report));
    }
    match args.output(output) {
        Output::Json => print::json(&report),
        Output::Table => show(&report),
    }
}

async fn sign(client: &Client, name: &str, seconds: u64, path: &Path) -> Result<()> {
    let signed = client.signed_report(name, seconds).await?;
    let report = signed.verify(None)?;
    write(path, &(serde_json::to_string_pretty(&signed)? + "\n"))?;
    let key = &signed.public_key;
    let written = format!("{}: written, signed by {key}", path.display());
    print::lines([sentence(&report), written])?;
    print::lines(missing(&report))
}

/// Verifies a signed report.
pub(crate) async fn check(global: &Global, args: &ReportArgs) -> Result<()> {
    let Some(path) = &args.verify else { return Ok(()) };
    let signed = read(path)?;
    let (key, trust) = match &args.key {
        Some(key) => (Some(key.clone()), "the key given by --key"),
        None if global.names_server() => {
            (Some(connect::client(global)?.server().await?.report_key), "the key of the server")
        }
        None => (None, "a key that was not verified: use --key, or name the server"),
    };
    let report = signed.verify(key.as_deref()).with_context(|| path.display().to_string())?;
    if args.output(global.output) == Output::Json {
        return print::json(&report);
    }
    print::lines([
        format!("The signature is valid. Signed by {}, {trust}.", signed.public_key),
        format!("Made {}. {}", utc(report.made_at), sentence(&report)),
    ])?;
    print::lines(missing(&report))
}

fn read(path: &Path) -> Result<SignedReport> {
    let named = || path.display().to_string();
    let length = path.metadata().with_context(named)?.len();
    anyhow::ensure!(length <= SIGNED_BYTES_MAX, "{}: too large for a signed report", named());
    let text = std::fs::read_to_string(path).with_context(named)?;
    serde_json::from_str(&text).with_context(|| format!("{} is not a signed report", named()))
}

fn write(path: &Path, text: &str) -> Result<()> {
    std::fs::write(path, text).with_context(|| path.display().to_string())
}

/// The report in one sentence.
fn sentence(report: &Report) -> String {
    let whole = &report.whole;
    let of = format!("Volume {}, {} since {}", report.volume, verdict(whole), utc(whole.start));
    let error = whole.error.map(|error| format!(", {} while it was demanded", error_text(error)));
    format!("{of}: {}{}.", counts(report), error.unwrap_or_default())
}

/// A sentence for each gateway of the cluster whose part of the history is missing.
fn missing(report: &Report) -> Vec<String> {
    let sentence = |one: &MissingGateway| {
        let MissingGateway { gateway, reason } = one;
        format!("Gateway {gateway} did not answer: {reason}. Periods that it recorded are missing.")
    };
    report.missing.iter().map(sentence).collect()
}

/// The number of intervals in which the contract was kept and broken.
fn counts(report: &Report) -> String {
    let Window { kept, not_demanded, broken, .. } = report.whole;
    // Periods told by seconds are judged by seconds.
    let length = report.resolution_seconds.min(10);
    format!("{kept} intervals of {length} s kept, {not_demanded} not demanded, {broken} broken")
}

fn show(report: &Report) -> Result<()> {
    print::line(sentence(report))?;
    print::lines(missing(report))?;
    print::line("")?;
    let names = ["last 10 s", "last minute", "last hour"];
    let whole = ("total".to_owned(), &report.whole);
    let recent = names.into_iter().map(str::to_owned).zip(&report.recent);
    windows(recent.chain([whole]))?;
    let broken: Vec<_> =
        report.periods.iter().filter(|one| one.verdict == Verdict::Broken).collect();
    if broken.is_empty() {
        return Ok(());
    }
    let first = broken.len().saturating_sub(BROKEN_MAX);
    let newest = broken.get(first..).unwrap_or_default();
    let length = report.resolution_seconds;
    let which = if first > 0 { "; the newest" } else { "" };
    print::line("")?;
    print::line(format_args!("Broken in {} periods of {length} s{which}:", broken.len()))?;
    windows(newest.iter().map(|window| (utc(window.start), *window)))
}

/// A table of windows.
pub(crate) fn windows<'a>(rows: impl IntoIterator<Item = (String, &'a Window)>) -> Result<()> {
    let row = |(name, window): (String, &Window)| {
        let split = &window.split;
        let part = |nanos| format!("{:.0} %", split.part(nanos) * 100.0);
        vec![
            name,
            verdict(window),
            window.error.map_or_else(|| "–".to_owned(), error_text),
            print::limit(window.limit_bytes_per_second, window.limit_iops, None),
            format!("{:.2}", Rate(window.offered_bytes_per_second)),
            format!("{:.2}", Rate(window.delivered_bytes_per_second)),
            format!("{:.0}", window.delivered_iops),
            split.mean_nanos().map_or_else(|| "–".to_owned(), nanos_text),
            part(split.wait_nanos),
            part(split.store_nanos),
            part(split.network_nanos),
            part(split.processing_nanos),
        ]
    };
    let header = [
        "time",
        "verdict",
        "error",
        "limit",
        "offered",
        "delivered",
        "iops",
        "latency",
        "contract",
        "store",
        "network",
        "processing",
    ];
    print::table(&header, rows.into_iter().map(row))
}

/// The verdict with its cause.
pub(crate) fn verdict(window: &Window) -> String {
    match (window.verdict, window.cause) {
        (Verdict::Broken, Some(cause)) => format!("broken: {cause}"),
        (Verdict::Broken, None) => "broken".to_owned(),
        (Verdict::Kept, _) => "kept".to_owned(),
        (Verdict::NotDemanded, _) => "not demanded".to_owned(),
    }
}

/// A cause in words.
const fn cause_words(cause: Cause) -> &'static str {
    match cause {
        Cause::Gate => "the gate",
        Cause::Store => "the store",
        Cause::Network => "the network or the clients",
        Cause::Processing => "too little CPU time",
    }
}

/// A fraction as a percentage.
pub(crate) fn error_text(error: f64) -> String {
    percent(error * 100.0, 2)
}

/// Nanoseconds in a readable unit.
#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
pub(crate) fn nanos_text(nanos: u64) -> String {
    latency(nanos as f64 / 1e6)
}

/// Explains the current performance of a volume.
pub(crate) async fn why(client: &Client, output: Output, name: &str) -> Result<()> {
    let why = client.why(name).await?;
    if output == Output::Json {
        return print::json(&why);
    }
    let Why { window, minute, hour, findings, advice, gateway, .. } = &why;
    print::lines(gateway.iter().map(|gateway| format!("Served by gateway {gateway}.")))?;
    print::lines(findings)?;
    print::lines(advice.iter().map(|advice| format!("→ {advice}")))?;
    print::line("")?;
    let rows = [("last 10 s", window), ("last minute", minute), ("last hour", hour)];
    windows(rows.map(|(name, window)| (name.to_owned(), window)))?;
    why.load.as_ref().filter(|load| !load.operations.is_empty()).map_or(Ok(()), show_load)
}

/// The operations and the clients of a load, in two tables.
fn show_load(load: &Load) -> Result<()> {
    let rate = |per_second: f64| format!("{per_second:.1}");
    print::line("")?;
    print::table(
        &["operation", "protocol", "per second", "errors per second"],
        load.operations.iter().map(|one| {
            let (operation, protocol) = (one.operation.clone(), one.protocol.clone());
            vec![operation, protocol, rate(one.per_second), rate(one.errors_per_second)]
        }),
    )?;
    print::line("")?;
    print::table(
        &["client", "protocol", "connections", "operations per second", "throughput"],
        load.clients.iter().map(|one| {
            vec![
                one.address.clone(),
                one.protocol.clone(),
                one.connections.to_string(),
                rate(one.operations_per_second),
                format!("{:.2}", Rate(one.bytes_per_second)),
            ]
        }),
    )?;
    let listed = load.clients.len() as u64;
    match load.clients_total.saturating_sub(listed) {
        0 => Ok(()),
        more => print::line(format_args!("and {more} more clients")),
    }
}
