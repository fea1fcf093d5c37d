//! The descriptors of the server's process: how many it may have, and who gets them.

use rustix::process::{Resource, Rlimit, setrlimit};
use weir_control::config::ServerConfig;

/// Descriptors for all but connections and objects: listeners, the catalogue, the API.
const DESCRIPTORS_OTHER: usize = 1024;
/// Descriptors that an operation on a thread of the store holds until it is done, at most.
const DESCRIPTORS_OPERATION: usize = 4;

/// Makes sure of descriptors for all connections and for the objects of one volume at least. Where
/// the hard limit, `limit`, is below that, root raises it, and others are warned. Returns the
/// descriptors that all volumes together may hold: what connections and the server itself leave.
pub fn ensure_descriptors(config: &ServerConfig, limit: u64) -> usize {
    let reserved = config.connections_max + own_descriptors(config);
    let wanted = reserved + config.cached_objects_max;
    let available = usize::try_from(limit).unwrap_or(usize::MAX);
    if available >= wanted {
        return available - reserved;
    }
    let raised = Some(wanted as u64);
    if setrlimit(Resource::Nofile, Rlimit { current: raised, maximum: raised }).is_ok() {
        return config.cached_objects_max;
    }
    let objects_max = descriptors_within(config, available);
    tracing::warn!(
        limit,
        wanted,
        objects_max,
        "the limit of open files is low: volumes cache fewer objects, and connections may be \
         refused before connections_max is reached; raise the hard limit (ulimit -Hn, \
         LimitNOFILE=), or reduce connections_max and cached_objects_max"
    );
    objects_max
}

/// Descriptors of the server itself, and of operations that are being executed.
fn own_descriptors(config: &ServerConfig) -> usize {
    DESCRIPTORS_OTHER + DESCRIPTORS_OPERATION * config.blocking_threads
}

/// Descriptors for the objects of all volumes within `limit`, of which connections get up to a
/// quarter and the server itself as much.
fn descriptors_within(config: &ServerConfig, limit: usize) -> usize {
    let quarter = limit / 4;
    limit - config.connections_max.min(quarter) - own_descriptors(config).min(quarter)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn volumes_hold_no_more_descriptors_than_connections_and_the_server_leave() {
        let (connections_max, blocking_threads) = (16_384, 64);
        let config = ServerConfig { connections_max, blocking_threads, ..Default::default() };
        let own = 1024 + 4 * 64;
        assert_eq!(ensure_descriptors(&config, 1 << 20), (1 << 20) - 16_384 - own);
        assert_eq!(descriptors_within(&config, 20_000), 20_000 - 5_000 - own);
        assert_eq!(descriptors_within(&config, 1024), 512, "half of any limit");
        let few = ServerConfig { connections_max: 100, ..config };
        assert_eq!(descriptors_within(&few, 20_000), 20_000 - 100 - own);
    }
}
