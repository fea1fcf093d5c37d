//! `weir size`: what to provision for a wanted rate, the other way round, and what clients need to
//! use it. The server computes; this prints.

use super::{Global, Output, connect, print, values};
use anyhow::Result;
use clap::Args;
use std::time::Duration;
use weir_api::{Concurrency, Qos, SizeChoice, Sizing, SizingQuery, TcpWindow};
use weir_core::units::{Bytes, Rate, latency, parse_time};

/// Show what to provision for a wanted throughput, or the throughput of a quota
///
/// For each contract model and service level: the least quota and pool, and the throughput and IOPS
/// to set. With a latency, also the number of requests in flight by Little's law (operations per
/// second × latency), and how to spread them over clients, connections and queue depth. With a
/// round trip, also the TCP window of each connection and the kernel settings for it. Nothing is
/// changed.
#[derive(Args)]
#[command(after_long_help = "\
Examples:
  weir size --throughput 4500MiB/s
  weir size --throughput 4500MiB/s --level premium
  weir size --quota 100GiB
  weir size --throughput 400MiB/s --bs 64KiB --latency 2ms --clients 4
  weir size --throughput 400MiB/s --measured-on home
  weir size --throughput 1GiB/s --round-trip 10ms --connections 8")]
pub(crate) struct SizeArgs {
    /// Wanted throughput, reads and writes together, such as 400MiB/s
    #[arg(long, value_name = "RATE", value_parser = values::rate)]
    #[arg(required_unless_present_any = ["iops", "quota"], conflicts_with = "quota")]
    throughput: Option<u64>,
    /// Wanted IOPS; without --throughput, the throughput is IOPS × --bs, or, without --bs, the
    /// least of models that limit IOPS themselves
    #[arg(long, value_name = "COUNT", value_parser = values::iops, conflicts_with = "quota")]
    iops: Option<u64>,
    /// Ask for the throughput of this quota instead
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    quota: Option<u64>,
    /// Contract model [default: all]
    #[arg(long)]
    qos: Option<Qos>,
    /// Service level [default: all]
    #[arg(long)]
    level: Option<String>,
    /// Size of each READ and WRITE [default: that of the measured volume, or 64KiB]
    #[arg(long, value_name = "SIZE", value_parser = values::size)]
    bs: Option<u64>,
    /// Latency of a request as the client measures it, without the wait for the contract
    #[arg(long, value_name = "TIME", value_parser = parse_time, conflicts_with = "measured_on")]
    latency: Option<Duration>,
    /// Volume with a load: use the mean latency of its requests in the server, without the wait for
    /// the contract, plus --round-trip
    #[arg(long, value_name = "VOLUME")]
    measured_on: Option<String>,
    /// Round trip between client and server, as `ping` shows it
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    round_trip: Option<Duration>,
    /// Number of clients [default: 1]
    #[arg(long, value_name = "COUNT")]
    clients: Option<u64>,
    /// Connections of each client [default: 1, 4, 8 and 16 are compared]
    #[arg(long, value_name = "COUNT")]
    connections: Option<u64>,
}

/// Asks the server, and prints its answer.
pub(crate) async fn run(global: &Global, args: &SizeArgs) -> Result<()> {
    let nanos = |time: Duration| u64::try_from(time.as_nanos()).unwrap_or(u64::MAX);
    let query = SizingQuery {
        throughput_bytes_per_second: args.throughput,
        iops: args.iops,
        quota_bytes: args.quota,
        qos: args.qos,
        level: args.level.clone(),
        request_bytes: args.bs,
        latency_nanos: args.latency.map(nanos),
        volume: args.measured_on.clone(),
        round_trip_nanos: args.round_trip.map(nanos),
        clients: args.clients,
        connections: args.connections,
    };
    let sizing = connect::client(global)?.sizing(&query).await?;
    if global.output == Output::Json {
        return print::json(&sizing);
    }
    show(&sizing)?;
    match (args.throughput, args.iops) {
        (None, Some(iops)) => {
            let is_known = args.bs.is_some() || args.measured_on.is_some();
            print::lines([String::new(), moved(iops, sizing.request_bytes, is_known)])
        }
        _ => Ok(()),
    }
}

/// The throughput that follows from operations, since none was wanted. A size of requests that is
/// not known is for the models without a limit on IOPS alone.
fn moved(iops: u64, request_bytes: u64, is_known: bool) -> String {
    let rate = Rate(iops.saturating_mul(request_bytes));
    let need = format!("{iops} IOPS of {} need a throughput of {rate}", Bytes(request_bytes));
    if is_known {
        return need + ".";
    }
    format!(
        "Models without a limit on IOPS have the throughput for them: {need}. Give the size with --bs."
    )
}

fn show(Sizing { choices, concurrency, window, .. }: &Sizing) -> Result<()> {
    let is_known = |(_, needs): &Needs| choices.iter().any(|choice| needs(choice).is_some());
    let clients: Vec<_> = CLIENTS.into_iter().filter(is_known).collect();
    let header = COLUMNS.into_iter().chain(clients.iter().map(|(name, _)| *name));
    let header: Vec<_> = header.chain(["remark"]).collect();
    let row = |choice: &SizeChoice| {
        let needed = clients.iter().map(|(_, of)| of(choice).unwrap_or_else(|| "–".to_owned()));
        row(choice).into_iter().chain(needed).chain([choice.unreachable.clone()]).collect()
    };
    print::table(&header, choices.iter().map(row))?;
    // For a quota, each choice has its own.
    let (concurrency, window) = match choices.as_slice() {
        [only] => (
            concurrency.as_ref().or(only.concurrency.as_ref()),
            window.as_ref().or(only.window.as_ref()),
        ),
        _ => (concurrency.as_ref(), window.as_ref()),
    };
    if !clients.is_empty() && choices.len() > 1 {
        print::line("")?;
        print::line(
            "With --qos and --level: how to spread the requests, and the kernel settings.",
        )?;
    }
    if let Some(concurrency) = concurrency {
        print::line("")?;
        show_concurrency(concurrency)?;
    }
    if let Some(window) = window {
        print::line("")?;
        print::lines(window_lines(window))?;
    }
    Ok(())
}

/// The columns of every answer; behind them come those of clients.
const COLUMNS: [&str; 7] =
    ["model", "level", "quota", "pool", "pool purchases", "set for the volume", "limit"];

/// A column with the needs of clients, of a choice that has them.
type Needs = (&'static str, fn(&SizeChoice) -> Option<String>);

const CLIENTS: [Needs; 2] = [
    ("in flight", |choice| choice.concurrency.as_ref().map(|of| of.in_flight.to_string())),
    ("TCP window", |choice| {
        choice.window.as_ref().map(|window| Bytes(window.window_bytes).at_least())
    }),
];

fn row(choice: &SizeChoice) -> Vec<String> {
    let reachable = choice.unreachable.is_empty();
    let size = |bytes: Option<u64>| match bytes {
        Some(bytes) => Bytes(bytes).at_least(),
        None if reachable => "any".to_owned(),
        None => "–".to_owned(),
    };
    let figures = |rate: Option<u64>, iops: Option<u64>| {
        let rate = rate.map(|rate| Rate(rate).at_least());
        let iops = iops.map(|iops| format!("{iops} IOPS"));
        let given: Vec<_> = rate.into_iter().chain(iops).collect();
        if given.is_empty() { "–".to_owned() } else { given.join(", ") }
    };
    let limit = if reachable {
        print::limit(choice.limit_bytes_per_second, choice.limit_iops, choice.base_iops)
    } else {
        "–".to_owned()
    };
    vec![
        choice.qos.to_string(),
        choice.level.clone().unwrap_or_else(|| "–".to_owned()),
        size(choice.quota_bytes),
        size(choice.pool_bytes),
        figures(choice.pool_throughput_bytes_per_second, choice.pool_iops),
        figures(choice.volume_throughput_bytes_per_second, choice.volume_iops),
        limit,
    ]
}

#[expect(clippy::cast_precision_loss, reason = "shown with three digits")]
fn time(nanos: u64) -> String {
    latency(nanos as f64 / 1e6)
}

fn show_concurrency(of: &Concurrency) -> Result<()> {
    print::line(format_args!(
        "{} operations/s of {}, each of which takes {}, need {} requests in flight:",
        of.operations_per_second,
        Bytes(of.request_bytes),
        time(of.latency_nanos),
        of.in_flight,
    ))?;
    let row = |spread: &weir_api::Spread| {
        let remark = if spread.admitted { "" } else { "more than the server reads ahead" };
        let numbers = [spread.clients, spread.connections, spread.depth];
        let numbers = numbers.into_iter().map(|number| number.to_string());
        numbers.chain([remark.to_owned()]).collect()
    };
    let header = ["clients", "connections each", "depth of each connection", "remark"];
    print::table(&header, of.spreads.iter().map(row))
}

/// The buffers that Linux gives a new connection, in bytes: the second numbers of
/// `net.ipv4.tcp_rmem` and `tcp_wmem` by default (tcp(7)).
const RECEIVE_DEFAULT: u64 = 128 << 10;
const SEND_DEFAULT: u64 = 16 << 10;

fn window_lines(window: &TcpWindow) -> Vec<String> {
    let buffer = window.buffer_bytes;
    let connections = match window.connections {
        1 => "1 connection".to_owned(),
        more => format!("{more} connections"),
    };
    let mut lines = vec![format!(
        "A round trip of {} over {connections} needs a TCP window of {} each, and buffers of {}:",
        time(window.round_trip_nanos),
        Bytes(window.window_bytes).at_least(),
        Bytes(buffer).at_least(),
    )];
    let ends = [
        ("rmem", "client (READs)", None),
        ("wmem", "client (WRITEs)", None),
        ("wmem", "server (READs)", window.server_send_max_bytes),
        ("rmem", "server (WRITEs)", window.server_receive_max_bytes),
    ];
    for (which, end, present) in ends {
        // The third number is the most that the kernel gives a connection. The others stay.
        let setting = format!(
            "sysctl -w net.ipv4.tcp_{which}=\"$(awk '{{print $1, $2, {buffer}}}' /proc/sys/net/ipv4/tcp_{which})\""
        );
        let default = if which == "rmem" { RECEIVE_DEFAULT } else { SEND_DEFAULT };
        lines.push(match present {
            Some(present) if present >= buffer => {
                format!("  {end}: enough, net.ipv4.tcp_{which} has {}", Bytes(present))
            }
            None if default >= buffer => {
                format!("  {end}: enough, connections begin with {}", Bytes(default))
            }
            Some(present) => format!("  {end}: {setting}   (now {})", Bytes(present)),
            None => format!("  {end}: {setting}   (if the third number is smaller now)"),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_buffers_that_are_too_small_have_to_be_set() {
        let window = TcpWindow {
            round_trip_nanos: 10_000_000,
            connections: 1,
            window_bytes: 4 << 20,
            buffer_bytes: 8 << 20,
            server_receive_max_bytes: Some(6 << 20),
            server_send_max_bytes: Some(16 << 20),
        };
        let lines = window_lines(&window);
        assert!(lines[0].contains("TCP window of 4 MiB"), "{lines:?}");
        let set = "sysctl -w net.ipv4.tcp_rmem=\"$(awk '{print $1, $2, 8388608}' /proc/sys/net/ipv4/tcp_rmem)\"";
        assert!(lines[1].contains(set) && lines[4].contains(set), "{lines:?}");
        assert!(lines[3].contains("enough") && lines[4].contains("now 6 MiB"), "{lines:?}");
        let small = TcpWindow { window_bytes: 20_000, buffer_bytes: 40_000, ..window };
        let lines = window_lines(&small);
        assert!(lines[1].contains("enough, connections begin with 128 KiB"), "{lines:?}");
        assert!(lines[2].contains("{print $1, $2, 40000}"), "more than 16 KiB: {lines:?}");
        assert!(lines[3].contains("enough") && lines[4].contains("enough"), "{lines:?}");
    }

    #[test]
    fn operations_alone_say_which_throughput_they_need() {
        let known = moved(16_000, 4096, true);
        assert_eq!(known, "16000 IOPS of 4 KiB need a throughput of 62.5 MiB/s.");
        let unknown = moved(16_000, 65_536, false);
        assert!(unknown.contains("without a limit on IOPS") && unknown.contains("1000 MiB/s"));
        assert!(unknown.contains("--bs"), "{unknown}");
    }
}
