//! `weir top`: activity of all volumes, refreshed every second.

use super::report::{error_text, nanos_text, utc, verdict};
use super::{Global, Output, connect, print};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::io::Read;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use weir_api::{Active, Activity, Client, LoadKind, MissingGateway};
use weir_core::units::Rate;
use weir_report::terminal::{self, Screen, Text};

/// Show the activity of all volumes, refreshed every second
///
/// Rates are averages over the last second; verdicts and latencies cover the last 10 s, operations
/// of all kinds (OPS) and the kind of the load the last 10 to 15 s. IOPS counts READs and WRITEs.
/// The columns CONTRACT, STORE, NETWORK and PROCESSING show the shares of the latency. Volumes
/// without requests in the last minute are omitted.
///
/// In a cluster, any gateway shows the volumes of all of them; a line names each gateway that does
/// not answer.
///
/// In a terminal, press q to quit and s to sort by the next column.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir top
  weir top --sort latency
  weir top --once
  weir top --iterations 60 --output json")]
pub(crate) struct TopArgs {
    /// Sort order, highest value first
    #[arg(long, value_enum, default_value_t = Sort::Throughput, value_name = "WHAT")]
    sort: Sort,
    /// Print once and exit; this is also the default if standard output is not a terminal
    #[arg(long, conflicts_with = "iterations")]
    once: bool,
    /// Number of times to print, one second apart, before exiting; at least 1
    #[arg(long, value_name = "COUNT", value_parser = clap::value_parser!(u64).range(1..))]
    iterations: Option<u64>,
}

/// Sort order.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Sort {
    Throughput,
    Iops,
    /// Share of time in which requests were throttled by the contract
    Wait,
    Latency,
    /// Deviation from the contract
    Error,
    Name,
}

/// Refresh interval.
const PAUSE: Duration = Duration::from_secs(1);

/// Shows the activity until stopped.
pub(crate) async fn run(global: &Global, args: &TopArgs) -> Result<()> {
    let client = connect::client(global)?;
    let live = terminal::shows_output()
        && global.output == Output::Table
        && !args.once
        && args.iterations.is_none();
    if live { watch(&client, args.sort).await } else { batches(&client, global.output, args).await }
}

async fn batches(client: &Client, output: Output, args: &TopArgs) -> Result<()> {
    let count = args.iterations.unwrap_or(1);
    for round in 0..count {
        if round > 0 {
            tokio::time::sleep(PAUSE).await;
        }
        let activity = client.activity().await?;
        match output {
            Output::Json => terminal::json_line(&activity)?,
            Output::Table => {
                print::line(heading(&activity))?;
                print::lines(missing(&activity))?;
                print::table(&header(&activity), rows(activity, args.sort))?;
            }
        }
    }
    Ok(())
}

async fn watch(client: &Client, mut sort: Sort) -> Result<()> {
    // Before the screen is taken, so that an error is said where it stays.
    let mut activity = client.activity().await?;
    let screen = Screen::enter()?;
    let mut keys = keys();
    let mut looks = tokio::time::interval(PAUSE);
    let (mut interrupt, mut terminate) =
        (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Without a keyboard, signals end it.
    let mut listening = true;
    loop {
        screen.draw(&drawing(&activity, sort))?;
        tokio::select! {
            _ = looks.tick() => activity = client.activity().await?,
            key = keys.recv(), if listening => match key {
                Some(b'q' | b'Q') => return Ok(()),
                Some(b's') => sort = next(sort),
                Some(_) => {}
                None => listening = false,
            },
            _ = interrupt.recv() => return Ok(()),
            _ = terminate.recv() => return Ok(()),
        }
    }
}

/// Keys as they are pressed, from a thread that ends with the program.
fn keys() -> mpsc::Receiver<u8> {
    let (pressed, keys) = mpsc::channel(16);
    std::thread::spawn(move || {
        let mut byte = [0];
        while std::io::stdin().read_exact(&mut byte).is_ok() {
            if pressed.blocking_send(byte[0]).is_err() {
                break;
            }
        }
    });
    keys
}

fn next(sort: Sort) -> Sort {
    let all = Sort::value_variants();
    let at = all.iter().position(|one| *one == sort).unwrap_or(0);
    all.get((at + 1) % all.len()).copied().unwrap_or(sort)
}

fn name(sort: Sort) -> &'static str {
    match sort {
        Sort::Throughput => "throughput",
        Sort::Iops => "iops",
        Sort::Wait => "wait",
        Sort::Latency => "latency",
        Sort::Error => "error",
        Sort::Name => "name",
    }
}

fn drawing(activity: &Activity, sort: Sort) -> Text {
    let mut text = Text::new();
    let (heading, sort_name) = (heading(activity), name(sort));
    text.line(format_args!("{heading}   sorted by {sort_name} (s: change), q: quit"));
    for line in missing(activity) {
        text.line(line);
    }
    text.blank();
    text.append(&print::columns(&header(activity), rows(activity.clone(), sort)));
    text
}

fn heading(activity: &Activity) -> String {
    let sum = |get: fn(&Active) -> u64| activity.volumes.iter().map(get).sum::<u64>();
    let delivered = Rate(sum(|one| one.second.delivered_bytes_per_second));
    format!(
        "{}   {} of {} volumes active, {delivered:.2}, {} requests waiting",
        utc(activity.at),
        activity.volumes.len(),
        activity.served,
        sum(|one| one.waiting),
    )
}

/// The gateways that did not answer, a line for each.
fn missing(activity: &Activity) -> Vec<String> {
    let line =
        |one: &MissingGateway| format!("gateway {} does not answer: {}", one.gateway, one.reason);
    activity.missing.iter().map(line).collect()
}

/// Are the volumes those of several gateways?
fn is_of_cluster(activity: &Activity) -> bool {
    !activity.missing.is_empty() || activity.volumes.iter().any(|one| one.gateway.is_some())
}

/// The header of the columns; those of a cluster have one for the gateway.
fn header(activity: &Activity) -> Vec<&'static str> {
    let mut header = HEADER.to_vec();
    if is_of_cluster(activity) {
        header.insert(1, "gateway");
    }
    header
}

const HEADER: [&str; 17] = [
    "volume",
    "limit",
    "offered",
    "delivered",
    "iops",
    "operations",
    "clients",
    "connections",
    "waiting",
    "verdict",
    "error",
    "latency",
    "contract",
    "store",
    "network",
    "processing",
    "kind of load",
];

fn rows(activity: Activity, sort: Sort) -> Vec<Vec<String>> {
    let is_of_cluster = is_of_cluster(&activity);
    let mut volumes = activity.volumes;
    let by = |get: fn(&Active) -> f64| move |a: &Active, b: &Active| get(b).total_cmp(&get(a));
    match sort {
        Sort::Throughput => {
            volumes.sort_by_key(|one| std::cmp::Reverse(one.second.delivered_bytes_per_second));
        }
        Sort::Iops => volumes.sort_by(by(|one| one.second.delivered_iops)),
        Sort::Wait => volumes.sort_by(by(|one| one.window.waited)),
        Sort::Latency => {
            volumes.sort_by_key(|one| std::cmp::Reverse(one.window.split.mean_nanos()));
        }
        Sort::Error => volumes.sort_by(by(|one| one.window.error.map_or(-1.0, f64::abs))),
        Sort::Name => volumes.sort_by(|a, b| a.volume.cmp(&b.volume)),
    }
    let of_gateway = |active: &Active| {
        let mut row = row(active);
        if is_of_cluster {
            row.insert(1, active.gateway.clone().unwrap_or_default());
        }
        row
    };
    volumes.iter().map(of_gateway).collect()
}

fn row(active: &Active) -> Vec<String> {
    let Active { volume, second, window, waiting, clients, connections, kinds, .. } = active;
    let operations_per_second = active.operations_per_second;
    let split = &window.split;
    let part = |nanos| format!("{:.0} %", split.part(nanos) * 100.0);
    vec![
        volume.clone(),
        print::limit(window.limit_bytes_per_second, window.limit_iops, None),
        format!("{:.2}", Rate(second.offered_bytes_per_second)),
        format!("{:.2}", Rate(second.delivered_bytes_per_second)),
        format!("{:.0}", second.delivered_iops),
        format!("{operations_per_second:.0}"),
        clients.to_string(),
        connections.to_string(),
        waiting.to_string(),
        verdict(window),
        window.error.map_or_else(|| "–".to_owned(), error_text),
        split.mean_nanos().map_or_else(|| "–".to_owned(), nanos_text),
        part(split.wait_nanos),
        part(split.store_nanos),
        part(split.network_nanos),
        part(split.processing_nanos),
        kinds_text(kinds),
    ]
}

fn kinds_text(kinds: &[LoadKind]) -> String {
    let words: Vec<_> = kinds.iter().map(|kind| kind.word()).collect();
    if words.is_empty() { "–".to_owned() } else { words.join(", ") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_api::{Split, Window};

    fn active(volume: &str, delivered: u64, iops: f64, error: Option<f64>, store: u64) -> Active {
        let split = Split { requests: 1, store_nanos: store, ..Split::default() };
        Active {
            volume: volume.into(),
            pool: "pool".into(),
            second: Window {
                delivered_bytes_per_second: delivered,
                delivered_iops: iops,
                ..Window::default()
            },
            window: Window { error, split, waited: iops / 100.0, ..Window::default() },
            waiting: 3,
            clients: 2,
            connections: 8,
            operations_per_second: 2.0 * iops,
            kinds: vec![LoadKind::OneFile, LoadKind::SmallRequests],
            gateway: None,
        }
    }

    #[test]
    fn volumes_are_sorted_greatest_first() {
        let volumes = vec![
            active("a", 10, 30.0, None, 5),
            active("b", 30, 20.0, Some(-0.2), 7),
            active("c", 20, 10.0, Some(0.01), 6),
        ];
        let activity = Activity { at: 0, served: 4, volumes, missing: Vec::new() };
        let order = |sort| {
            let rows = rows(activity.clone(), sort);
            rows.iter().map(|row| row[0].clone()).collect::<String>()
        };
        assert_eq!(order(Sort::Throughput), "bca");
        assert_eq!(order(Sort::Iops), "abc");
        assert_eq!(order(Sort::Wait), "abc");
        assert_eq!(order(Sort::Latency), "bca");
        assert_eq!(order(Sort::Error), "bca");
        assert_eq!(order(Sort::Name), "abc");
        assert!(heading(&activity).contains("3 of 4 volumes active, 60 B/s, 9 requests wait"));
    }

    #[test]
    fn the_load_is_shown_beside_the_contract() {
        let volumes = vec![active("a", 10, 30.0, None, 5)];
        let activity = Activity { at: 0, served: 1, volumes, missing: Vec::new() };
        assert_eq!(header(&activity), HEADER);
        let row = rows(activity, Sort::Name).remove(0);
        assert_eq!(row.len(), HEADER.len());
        assert_eq!(row[5..8], ["60", "2", "8"]);
        assert_eq!(row[16], "one-file, small-requests");
        assert_eq!(kinds_text(&[]), "–");
    }

    #[test]
    fn a_cluster_has_a_column_for_the_gateway_and_a_line_for_each_that_is_missing() {
        let of_second = Active { gateway: Some("g2".into()), ..active("a", 10, 30.0, None, 5) };
        let gone = MissingGateway { gateway: "g3".into(), reason: "no connection".into() };
        let mut activity =
            Activity { at: 0, served: 1, volumes: vec![of_second], missing: vec![gone] };
        assert_eq!(missing(&activity), ["gateway g3 does not answer: no connection"]);
        assert_eq!(header(&activity)[..3], ["volume", "gateway", "limit"]);
        let row = rows(activity.clone(), Sort::Name).remove(0);
        assert_eq!((row.len(), &row[..2]), (HEADER.len() + 1, &["a".into(), "g2".into()][..]));
        activity.missing.clear();
        assert_eq!(header(&activity).len(), HEADER.len() + 1);
    }

    #[test]
    fn every_way_to_sort_comes_round() {
        let mut sort = Sort::Throughput;
        for _ in Sort::value_variants() {
            sort = next(sort);
        }
        assert!(sort == Sort::Throughput);
    }
}
