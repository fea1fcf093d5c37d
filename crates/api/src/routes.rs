//! The routes, as templates for the server and as paths for the client.
//!
//! [`ROUTES`] is the complete table, with the minimum role for each route. Every method that
//! changes configuration accepts `?dry_run=true` and returns [`Changed`](crate::Changed).

use crate::words::Role;

/// One method of one path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, as a template.
    pub path: &'static str,
    /// The minimum role that may use it; `None` if not even a token is required.
    pub least: Option<Role>,
}

const fn route(method: &'static str, path: &'static str, least: Role) -> Route {
    Route { method, path, least: Some(least) }
}

/// Every route. A route that is not in this table is restricted to administrators.
pub const ROUTES: &[Route] = &[
    Route { method: "GET", path: LIVENESS, least: None },
    Route { method: "GET", path: READINESS, least: None },
    route("GET", METRICS, Role::Viewer),
    route("GET", OPENAPI, Role::Viewer),
    route("GET", SERVER, Role::Viewer),
    route("GET", HEALTH, Role::Viewer),
    route("GET", LEVELS, Role::Viewer),
    route("POST", LEVELS, Role::Operator),
    route("GET", LEVEL, Role::Viewer),
    route("PATCH", LEVEL, Role::Operator),
    route("DELETE", LEVEL, Role::Operator),
    route("GET", POOLS, Role::Viewer),
    route("POST", POOLS, Role::Operator),
    route("GET", POOL, Role::Viewer),
    route("PATCH", POOL, Role::Operator),
    route("DELETE", POOL, Role::Operator),
    route("GET", VOLUMES, Role::Viewer),
    route("POST", VOLUMES, Role::Operator),
    route("GET", VOLUME, Role::Viewer),
    route("PATCH", VOLUME, Role::Operator),
    route("DELETE", VOLUME, Role::Operator),
    route("GET", VOLUME_HOME, Role::Viewer),
    route("PUT", VOLUME_HOME, Role::Operator),
    route("GET", GATEWAYS, Role::Viewer),
    route("DELETE", GATEWAY, Role::Admin),
    route("PUT", GATEWAY_DRAIN, Role::Operator),
    route("DELETE", GATEWAY_DRAIN, Role::Operator),
    route("PUT", GATEWAY_GONE, Role::Admin),
    route("GET", ADDRESSES, Role::Viewer),
    route("POST", ADDRESSES, Role::Operator),
    route("DELETE", ADDRESS, Role::Operator),
    route("GET", CAPACITY, Role::Viewer),
    route("GET", SIZING, Role::Viewer),
    route("GET", CALIBRATIONS, Role::Viewer),
    route("GET", CALIBRATION, Role::Viewer),
    route("PUT", CALIBRATION, Role::Operator),
    route("DELETE", CALIBRATION, Role::Operator),
    route("GET", EXPORTS, Role::Viewer),
    route("PUT", EXPORTS, Role::Operator),
    route("POST", EXPORTS, Role::Operator),
    route("DELETE", EXPORTS, Role::Operator),
    route("GET", SHARE_RULES, Role::Viewer),
    route("PUT", SHARE_RULES, Role::Operator),
    route("POST", SHARE_RULES, Role::Operator),
    route("DELETE", SHARE_RULES, Role::Operator),
    route("GET", USERS, Role::Viewer),
    route("POST", USERS, Role::Admin),
    route("GET", USER, Role::Viewer),
    route("PATCH", USER, Role::Admin),
    route("DELETE", USER, Role::Admin),
    route("PUT", PASSWORD, Role::Admin),
    route("GET", GROUPS, Role::Viewer),
    route("POST", GROUPS, Role::Admin),
    route("GET", GROUP, Role::Viewer),
    route("DELETE", GROUP, Role::Admin),
    route("POST", MEMBERS, Role::Admin),
    route("DELETE", MEMBERS, Role::Admin),
    route("GET", SMB_SESSIONS, Role::Operator),
    route("DELETE", SMB_SESSION, Role::Operator),
    route("GET", SMB_OPENS, Role::Operator),
    route("DELETE", SMB_OPEN, Role::Operator),
    route("GET", LOCKS, Role::Operator),
    route("DELETE", LOCK, Role::Operator),
    route("GET", REPORT, Role::Viewer),
    route("GET", WHY, Role::Viewer),
    route("GET", LOAD, Role::Viewer),
    route("GET", ACTIVITY, Role::Viewer),
    route("POST", RESCAN, Role::Operator),
    route("GET", OPERATIONS, Role::Viewer),
    route("GET", OPERATION, Role::Viewer),
    route("GET", CATALOG_BACKUP, Role::Admin),
    route("GET", TOKENS, Role::Admin),
    route("POST", TOKENS, Role::Admin),
    route("DELETE", TOKEN, Role::Admin),
    route("GET", AUDIT, Role::Admin),
];

/// Information about the server.
pub const SERVER: &str = "/v1/server";
/// Whether all volumes are served.
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
/// The gateway that serves one volume of a cluster.
pub const VOLUME_HOME: &str = "/v1/volumes/{name}/home";
/// The gateways of the cluster.
pub const GATEWAYS: &str = "/v1/gateways";
/// One gateway.
pub const GATEWAY: &str = "/v1/gateways/{name}";
/// Whether one gateway is drained.
pub const GATEWAY_DRAIN: &str = "/v1/gateways/{name}/drain";
/// The operator's word that no process of one gateway runs.
pub const GATEWAY_GONE: &str = "/v1/gateways/{name}/gone";
/// The addresses of the cluster.
pub const ADDRESSES: &str = "/v1/addresses";
/// One address of the cluster, without the prefix.
pub const ADDRESS: &str = "/v1/addresses/{name}";
/// Measured capacity, and the capacity committed to contracts.
pub const CAPACITY: &str = "/v1/capacity";
/// The sizes to provision for a wanted rate.
pub const SIZING: &str = "/v1/sizing";
/// The calibrations.
pub const CALIBRATIONS: &str = "/v1/calibrations";
/// The calibration of one directory, by its path.
pub const CALIBRATION: &str = "/v1/calibrations/{name}";
/// The export rules of one volume.
pub const EXPORTS: &str = "/v1/volumes/{name}/exports";
/// The share rules of one volume.
pub const SHARE_RULES: &str = "/v1/volumes/{name}/share-rules";
/// All users.
pub const USERS: &str = "/v1/users";
/// One user.
pub const USER: &str = "/v1/users/{name}";
/// The password of one user.
pub const PASSWORD: &str = "/v1/users/{name}/password";
/// All groups.
pub const GROUPS: &str = "/v1/groups";
/// One group.
pub const GROUP: &str = "/v1/groups/{name}";
/// The users that were added to one group.
pub const MEMBERS: &str = "/v1/groups/{name}/members";
/// The SMB sessions.
pub const SMB_SESSIONS: &str = "/v1/smb/sessions";
/// One SMB session, by its ID.
pub const SMB_SESSION: &str = "/v1/smb/sessions/{name}";
/// The files and directories that SMB clients have open.
pub const SMB_OPENS: &str = "/v1/smb/opens";
/// One open, by its ID.
pub const SMB_OPEN: &str = "/v1/smb/opens/{name}";
/// The byte-range locks of SMB and NFS clients.
pub const LOCKS: &str = "/v1/locks";
/// One lock, by its ID.
pub const LOCK: &str = "/v1/locks/{name}";
/// The recount of one volume's usage.
pub const RESCAN: &str = "/v1/volumes/{name}/rescan";
/// Whether the contract of one volume was kept.
pub const REPORT: &str = "/v1/volumes/{name}/report";
/// The explanation of a volume's current performance.
pub const WHY: &str = "/v1/volumes/{name}/why";
/// The operations, the clients and the kind of the load of one volume.
pub const LOAD: &str = "/v1/volumes/{name}/load";
/// The activity of all volumes.
pub const ACTIVITY: &str = "/v1/activity";
/// The operations that were started.
pub const OPERATIONS: &str = "/v1/operations";
/// One operation, by its ID.
pub const OPERATION: &str = "/v1/operations/{name}";
/// A backup of the catalogue.
pub const CATALOG_BACKUP: &str = "/v1/catalog/backup";
/// All tokens except that of the data directory.
pub const TOKENS: &str = "/v1/tokens";
/// One token.
pub const TOKEN: &str = "/v1/tokens/{name}";
/// The audit log.
pub const AUDIT: &str = "/v1/audit";
/// The OpenAPI document.
pub const OPENAPI: &str = "/v1/openapi.json";
/// Liveness: succeeds while the process runs.
pub const LIVENESS: &str = "/healthz";
/// Readiness: succeeds while every volume is served.
pub const READINESS: &str = "/readyz";
/// Metrics in Prometheus' text format.
pub const METRICS: &str = "/metrics";

/// The route for `method` and the template `path`. A route for GET also handles HEAD.
#[must_use]
pub fn find(method: &str, path: &str) -> Option<&'static Route> {
    let method = if method == "HEAD" { "GET" } else { method };
    ROUTES.iter().find(|route| route.method == method && route.path == path)
}

/// `template` with the name inserted.
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
