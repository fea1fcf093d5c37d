//! `weir top`: activity of all volumes, refreshed every second.

use super::report::{error_text, nanos_text, utc, verdict};
use super::{Global, Output, connect, print};
use anyhow::Result;
use clap::{Args, ValueEnum};
use std::io::Read;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use weir_api::{Active, Activity, Client, LoadKind};
use weir_core::units::Rate;
use weir_report::terminal::{self, Screen, Text};

/// Show the activity of all volumes, refreshed every second
///
/// Rates are averages over the last second; verdicts and latencies cover the last 10 s, operations
/// of all kinds (OPS) and the kind of the load the last 10 to 15 s. IOPS counts READs and WRITEs.
/// The columns CONTRACT, STORE, NETWORK and PROCESSING show the shares of the latency. Volumes
/// without requests in the last minute are omitted. In a terminal, press q to quit and s to sort by
/// the next column.
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
                print::table(&HEADER, rows(activity, args.sort))?;
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
    text.blank();
    text.append(&print::columns(&HEADER, rows(activity.clone(), sort)));
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
    volumes.iter().map(row).collect()
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
        }
    }

    #[test]
    fn volumes_are_sorted_greatest_first() {
        let volumes = vec![
            active("a", 10, 30.0, None, 5),
            active("b", 30, 20.0, Some(-0.2), 7),
            active("c", 20, 10.0, Some(0.01), 6),
        ];
        let activity = Activity { at: 0, served: 4, volumes };
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
        let row = rows(Activity { at: 0, served: 1, volumes }, Sort::Name).remove(0);
        assert_eq!(row.len(), HEADER.len());
        assert_eq!(row[5..8], ["60", "2", "8"]);
        assert_eq!(row[16], "one-file, small-requests");
        assert_eq!(kinds_text(&[]), "–");
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
