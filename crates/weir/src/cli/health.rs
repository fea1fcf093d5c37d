//! `weir health`.

use super::{Global, Output, connect, print};
use anyhow::{Result, bail};
use weir_api::{GatewayHealth, Health, UnservedVolume};

/// Shows the state of the server, and in a cluster of all gateways; fails if a volume is not
/// served, or a gateway has a fault.
pub(crate) async fn run(global: &Global) -> Result<()> {
    let client = connect::client(global)?;
    let (server, health) = (client.server().await?, client.health().await?);
    if global.output == Output::Json {
        print::json(&serde_json::json!({ "server": server, "health": health }))?;
    } else {
        let mut fields = vec![
            ("version", server.version),
            ("pid", server.pid.to_string()),
            ("nfs", server.nfs.join(", ")),
            ("smb", if server.smb.is_empty() { "off".to_owned() } else { server.smb.join(", ") }),
            ("volumes served", health.volumes_served.to_string()),
        ];
        fields.extend(server.tls_fingerprint.map(|print| ("certificate (SHA-256)", print)));
        print::fields(&fields)?;
        if !health.gateways.is_empty() {
            print::line("")?;
            print::table(
                &["gateway", "state", "volumes", "answer"],
                health.gateways.iter().map(row),
            )?;
        }
    }
    if health.ready { Ok(()) } else { bail!(findings(&health)) }
}

/// A gateway in the table.
fn row(gateway: &GatewayHealth) -> Vec<String> {
    let GatewayHealth { name, state, volumes_served, no_answer, .. } = gateway;
    let volumes = volumes_served.map_or_else(|| "–".to_owned(), |count| count.to_string());
    let answer = no_answer.as_ref().map_or_else(|| "yes".to_owned(), |why| format!("no: {why}"));
    vec![name.clone(), state.to_string(), volumes, answer]
}

/// The faults, in one sentence each.
fn findings(health: &Health) -> String {
    let mut found = Vec::new();
    let names: Vec<_> = health.unserved.iter().map(|volume| named(health, volume)).collect();
    if !names.is_empty() {
        let whose = if health.gateways.is_empty() { "the server's" } else { "their gateway's" };
        let names = names.join(", ");
        found.push(format!("not served: {names}; {whose} log contains the reason"));
    }
    for GatewayHealth { name, fault, .. } in &health.gateways {
        found.extend(fault.as_ref().map(|fault| format!("gateway {name} {fault}")));
    }
    found.join("; ")
}

/// The name of a volume that is not served, in a cluster with its gateway.
fn named(health: &Health, UnservedVolume { name, gateway }: &UnservedVolume) -> String {
    match gateway {
        _ if health.gateways.is_empty() => name.clone(),
        Some(gateway) => format!("{name} (gateway {gateway})"),
        None => format!("{name} (no gateway at present)"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weir_api::GatewayState;

    fn unserved(gateway: Option<&str>) -> UnservedVolume {
        UnservedVolume { name: "home".to_owned(), gateway: gateway.map(str::to_owned) }
    }

    #[test]
    fn a_server_that_is_alone_names_its_volumes() {
        let health = Health { unserved: vec![unserved(None)], ..Health::default() };
        let words = "not served: home; the server's log contains the reason";
        assert_eq!(findings(&health), words);
    }

    #[test]
    fn findings_of_a_cluster_name_the_gateway() {
        let of = |name: &str, state, no_answer: Option<&str>, fault: Option<&str>| GatewayHealth {
            name: name.to_owned(),
            state,
            volumes_served: no_answer.is_none().then_some(3),
            no_answer: no_answer.map(str::to_owned),
            fault: fault.map(str::to_owned),
        };
        let late = "it did not answer within 3 s";
        let fault = format!("does not answer: {late}");
        let gateways = vec![
            of("g1", GatewayState::Live, None, None),
            of("g2", GatewayState::Silent, Some(late), Some(&fault)),
            of("g3", GatewayState::Ended, Some("it has ended"), None),
            of("g4", GatewayState::Live, Some("it runs an older version"), None),
            of("g5", GatewayState::Live, None, Some("may not reply")),
        ];
        let unserved = vec![unserved(Some("g1")), unserved(None)];
        let health = Health { unserved, gateways, ..Health::default() };
        let words = "not served: home (gateway g1), home (no gateway at present); their gateway's \
                     log contains the reason; gateway g2 does not answer: it did not answer within \
                     3 s; gateway g5 may not reply";
        assert_eq!(findings(&health), words);
        let rows: Vec<_> = health.gateways.iter().map(row).collect();
        assert_eq!(rows[0], ["g1", "live", "3", "yes"]);
        assert_eq!(rows[2], ["g3", "ended", "–", "no: it has ended"]);
    }
}
