//! `weir health`.

use super::{Global, Output, connect, print};
use anyhow::{Result, bail};

/// Shows the state of the server; fails if a volume is not served.
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
    }
    if health.ready {
        return Ok(());
    }
    let names: Vec<_> = health.unserved.into_iter().map(|volume| volume.name).collect();
    bail!("not served: {}; the server's log contains the reason", names.join(", "))
}
