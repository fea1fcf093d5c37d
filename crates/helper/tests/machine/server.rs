//! A server for the tests: it is a life of gateway 1, holds an address, and does what it is told
//! line by line. Not here: what is expected of the helper.

use crate::bed::ADDRESS;
use std::collections::BTreeMap;
use std::env::var;
use std::io::BufRead;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::time::Duration;
use weir_address::{Interface, Place};
use weir_cluster::{GatewayId, Life, MachineId};
use weir_helper::{Client, ClientError, Reports};

/// Names of environment variables: `announce N` or `attach N`, the other gateways, and the socket.
pub(crate) const COMMAND: &str = "WEIR_TEST_COMMAND";
pub(crate) const SERVERS: &str = "WEIR_TEST_SERVERS";
pub(crate) const SOCKET_PATH: &str = "WEIR_TEST_SOCKET_PATH";

/// The server's local state.
pub(crate) const MACHINE: MachineId = MachineId(77);

/// Longer than any test takes, so that no lease ends an address.
const LEASE: Duration = Duration::from_secs(58);

fn say(words: &str) {
    println!("says: {words}");
}

fn outcome(result: Result<(), ClientError>) -> String {
    result.map_or_else(|error| error.to_string(), |()| "done".to_owned())
}

fn servers() -> BTreeMap<GatewayId, SocketAddr> {
    let all = var(SERVERS).unwrap();
    let each = all.split(',').filter(|one| !one.is_empty()).map(|one| {
        let (gateway, address) = one.split_once('=').unwrap();
        (GatewayId(gateway.parse().unwrap()), address.parse().unwrap())
    });
    each.collect()
}

/// Begins the life, then obeys the lines on the standard input until it is closed.
pub(crate) fn run() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let command = var(COMMAND).unwrap();
    let (verb, number) = command.split_once(' ').unwrap();
    let life = Life { gateway: GatewayId(1), number: number.parse().unwrap() };
    let mut link = match runtime.block_on(begin(verb, life)) {
        Ok((link, words)) => {
            say(words);
            Some(link)
        }
        Err(error) => {
            say(&error.to_string());
            None
        }
    };
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        match (line.as_str(), &mut link) {
            ("lost", Some((_, reports))) => {
                while runtime.block_on(reports.next()).is_some() {}
                say("lost");
            }
            ("attach", _) => {
                // The link ends before the next one begins.
                drop(link.take());
                let (again, words) = runtime.block_on(begin("attach", life)).unwrap();
                link = Some(again);
                say(words);
            }
            (line, Some((client, _))) => say(&runtime.block_on(obey(client, line))),
            (line, None) => panic!("{line} without a link"),
        }
    }
}

async fn begin(verb: &str, life: Life) -> Result<((Client, Reports), &'static str), ClientError> {
    let socket = PathBuf::from(var(SOCKET_PATH).unwrap());
    let (client, reports, words) = if verb == "announce" {
        let (client, reports) = Client::announce(&socket, MACHINE, life).await?;
        (client, reports, "announced")
    } else {
        let attached = Client::attach(&socket, MACHINE, life).await?;
        let words = if attached.known { "known" } else { "unknown" };
        (attached.client, attached.reports, words)
    };
    client.follow(servers()).await?;
    Ok(((client, reports), words))
}

async fn obey(client: &Client, line: &str) -> String {
    let address: IpAddr = ADDRESS.parse().unwrap();
    let until = weir_address::now() + LEASE;
    let (verb, number) = line.split_once(' ').unwrap_or((line, "0"));
    let other = Life { gateway: GatewayId(2), number: number.parse().unwrap() };
    outcome(match verb {
        "hold" => {
            let place = Place::new(address, 32, Interface::parse("eth0").unwrap()).unwrap();
            client.hold(place, until).await
        }
        "renew" => client.renew(until).await,
        "release" => client.release(address).await,
        "note" => client.note(other).await,
        "unnote" => client.unnote(other).await,
        other => panic!("{other}"),
    })
}
