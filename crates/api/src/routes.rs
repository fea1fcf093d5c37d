//! The routes, as templates for the server and as paths for the client.
//!
//! | route | methods |
//! |---|---|
//! | `/v1/server` | GET: [`ServerInfo`](crate::ServerInfo) |
//! | `/v1/health` | GET: [`Health`](crate::Health) |
//! | `/v1/levels` | GET: list; POST: make |
//! | `/v1/levels/{name}` | GET; PATCH: change; DELETE |
//! | `/v1/pools` | GET: list; POST: make |
//! | `/v1/pools/{name}` | GET; PATCH: change; DELETE |
//! | `/v1/volumes` | GET: list; POST: make |
//! | `/v1/volumes/{name}` | GET; PATCH: change; DELETE, with its files |
//! | `/v1/volumes/{name}/exports` | GET: list; PUT: replace all; POST: add one; DELETE `?network=`: remove one |
//! | `/v1/volumes/{name}/rescan` | POST: count its usage anew, in the background |
//! | `/v1/volumes/{name}/report` | GET `?since=`: [`Report`](crate::Report) over that many seconds; `&signed=true`: [`SignedReport`](crate::SignedReport) |
//! | `/v1/volumes/{name}/why` | GET: [`Why`](crate::Why) |
//! | `/v1/activity` | GET: [`Activity`](crate::Activity) |
//! | `/v1/catalog/backup` | GET: a backup of the catalogue, as a SQLite file |
//! | `/healthz`, `/readyz` | GET: for probes, without a token |
//! | `/metrics` | GET: Prometheus text |
//!
//! Every method that changes what is configured takes `?dry_run=true` and answers
//! [`Changed`](crate::Changed).

/// What a server says about itself.
pub const SERVER: &str = "/v1/server";
/// Is everything being served?
pub const HEALTH: &str = "/v1/health";
/// All service levels.
pub const LEVELS: &str = "/v1/levels";
/// One service level.
pub const LEVEL: &str = "/v1/levels/{name}";
/// All pools.
pub const POOLS: &str = "/v1/pools";
/// One pool.
pub const POOL: &str = "/v1/pools/{name}";
/// All volumes.
pub const VOLUMES: &str = "/v1/volumes";
/// One volume.
pub const VOLUME: &str = "/v1/volumes/{name}";
/// The export rules of one volume.
pub const EXPORTS: &str = "/v1/volumes/{name}/exports";
/// The recount of one volume's usage.
pub const RESCAN: &str = "/v1/volumes/{name}/rescan";
/// Whether the contract of one volume was kept.
pub const REPORT: &str = "/v1/volumes/{name}/report";
/// Why one volume is as quick or slow as it is.
pub const WHY: &str = "/v1/volumes/{name}/why";
/// What goes on in all volumes.
pub const ACTIVITY: &str = "/v1/activity";
/// A backup of the catalogue.
pub const CATALOG_BACKUP: &str = "/v1/catalog/backup";
/// Answers as long as the process does.
pub const LIVENESS: &str = "/healthz";
/// Answers well while every volume is being served.
pub const READINESS: &str = "/readyz";
/// Metrics in Prometheus' text format.
pub const METRICS: &str = "/metrics";

/// `template` for the thing called `name`.
#[must_use]
pub fn path(template: &str, name: &str) -> String {
    template.replace("{name}", &encode(name))
}

/// `path` with one query parameter.
#[must_use]
pub fn with_query(path: &str, key: &str, value: &str) -> String {
    let separator = if path.contains('?') { '&' } else { '?' };
    format!("{path}{separator}{key}={}", encode(value))
}

/// Percent-encodes all but unreserved characters (RFC 3986 §2.3).
fn encode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_can_not_leave_its_segment() {
        assert_eq!(path(POOL, "a/../b?c d"), "/v1/pools/a%2F..%2Fb%3Fc%20d");
        let one = with_query(EXPORTS, "network", "fd00::/8");
        assert_eq!(
            with_query(&one, "dry_run", "true").split_once('?').unwrap().1,
            "network=fd00%3A%3A%2F8&dry_run=true"
        );
    }
}
