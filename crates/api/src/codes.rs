//! Every error code of the API. The meaning of a code never changes.

/// An error code of [`ApiError`](crate::ApiError).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The code.
    pub word: &'static str,
    /// The HTTP statuses used with it.
    pub statuses: &'static [u16],
    /// Its meaning.
    pub meaning: &'static str,
}

const fn code(word: &'static str, statuses: &'static [u16], meaning: &'static str) -> Code {
    Code { word, statuses, meaning }
}

/// The code with the name `word`.
#[must_use]
pub fn find(word: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.word == word)
}

/// All codes, grouped by the reaction they call for.
pub const CODES: &[Code] = &[
    // The request.
    code(
        "bad_request",
        &[400, 413, 415, 422],
        "the request is malformed: invalid JSON, an unknown field, or an invalid parameter",
    ),
    code("too_large", &[413], "the request body is larger than 256 KiB"),
    code(
        "timeout",
        &[408],
        "the body took longer than 30 s, or the request longer than 60 s; in the latter case the change may still be made",
    ),
    code("no_such_route", &[404], "no resource exists at this path"),
    code("no_such_method", &[405], "the path does not support this method"),
    // Authentication and authorization.
    code("unauthorized", &[401], "the token is missing or unknown"),
    code("token_expired", &[401], "the token has expired"),
    code("forbidden", &[403], "the role of the token does not permit this request"),
    code(
        "no_measurement",
        &[409],
        "the volume had no requests from which a latency could be measured",
    ),
    // Names.
    code("bad_name", &[400], "the name is invalid"),
    code("name_taken", &[409], "the name is already in use"),
    code("no_such_level", &[404], "the service level does not exist"),
    code("no_such_pool", &[404], "the pool does not exist"),
    code("no_such_volume", &[404], "the volume does not exist"),
    code("no_such_rule", &[404], "the volume has no export rule for this network"),
    code("no_such_token", &[404], "the token does not exist"),
    code("no_such_user", &[404], "the user does not exist"),
    code("no_such_group", &[404], "the group does not exist"),
    code("no_such_member", &[404], "the user was not added to this group"),
    code(
        "no_such_share_rule",
        &[404],
        "the volume has no share rule for this network and these users",
    ),
    code("no_such_session", &[404], "the SMB session does not exist or has ended"),
    code("no_such_open", &[404], "the open does not exist or was closed"),
    code("no_such_lock", &[404], "the lock does not exist or was released"),
    code("no_such_calibration", &[404], "no calibration exists for this directory"),
    code("no_such_gateway", &[404], "the cluster has no gateway of this name"),
    code("no_such_address", &[404], "the cluster does not have this address"),
    code(
        "no_such_operation",
        &[404],
        "the operation does not exist, is too old, or was started before the last restart",
    ),
    code("rule_exists", &[409], "the volume already has an export rule for this network"),
    code(
        "share_rule_exists",
        &[409],
        "the volume already has a share rule for this network and these users",
    ),
    code("id_taken", &[409], "another user has this user ID, or another group this group ID"),
    code("member_exists", &[409], "the user is already in this group"),
    code("share_name_taken", &[409], "another share has the same name; case does not count"),
    code(
        "share_name_reserved",
        &[409],
        "the protocol reserves the name of the volume, so it cannot be a share",
    ),
    code("too_many", &[400, 409], "the maximum number of objects is reached"),
    // Values out of range; `allowed` contains the range.
    code("size_out_of_bounds", &[400], "the size or quota is out of range"),
    code("level_rate_out_of_bounds", &[400], "the throughput per TiB is out of range"),
    code("ceiling_out_of_bounds", &[400], "the ceiling is out of range"),
    code(
        "pool_throughput_out_of_bounds",
        &[422],
        "the throughput is out of range for a pool of this model and size",
    ),
    code("pool_iops_out_of_bounds", &[422], "the IOPS are out of range for a pool of this model"),
    code(
        "throughput_out_of_bounds",
        &[422],
        "the throughput is out of range for a volume of this model",
    ),
    code("iops_out_of_bounds", &[422], "the IOPS are out of range for a volume of this model"),
    code("weight_out_of_bounds", &[400], "the weight is out of range"),
    code("bad_calibration", &[400], "the calibration contains impossible values"),
    code("bad_path", &[400], "the directory cannot be used for a pool or a calibration"),
    code("pool_not_on_ceph", &[400], "a pool of a cluster must be in a directory of CephFS"),
    code("other_ceph", &[400], "the gateways have no sessions with this CephFS"),
    code("bad_ceph_user", &[400], "the name of the Ceph user is invalid"),
    code("bad_address", &[400], "the address cannot be one of a host that others reach"),
    code("bad_id", &[400], "the user ID or group ID cannot be assigned"),
    code("bad_password", &[400], "the password is empty, or longer than 256 characters"),
    code("no_protocol", &[400], "a volume needs at least one protocol"),
    // Values that don't fit the contract model.
    code(
        "throughput_in_auto_pool",
        &[400],
        "throughput cannot be set in this pool: it follows from the quota",
    ),
    code("throughput_missing", &[400], "a volume of this pool requires a throughput"),
    code("iops_not_given", &[400], "IOPS cannot be set for volumes of this pool"),
    code("not_shared", &[400], "only volumes of a shared pool have a weight"),
    code(
        "not_bought",
        &[400],
        "a pool of this model does not purchase throughput or IOPS separately from its size",
    ),
    code("zero_throughput", &[422], "a throughput of 0 would stop all I/O"),
    code("zero_iops", &[422], "0 IOPS would stop all I/O"),
    // Requests beyond the limits of the pool; `allowed` contains the range that is possible.
    code(
        "pool_capacity_exceeded",
        &[422],
        "the sum of the quotas would exceed the size of the pool",
    ),
    code(
        "pool_throughput_exceeded",
        &[422],
        "the sum of the throughputs would exceed the throughput of the pool",
    ),
    code("pool_iops_exceeded", &[422], "the sum of the IOPS would exceed the IOPS of the pool"),
    code(
        "pool_below_quotas",
        &[422],
        "the pool would be smaller than the sum of its volumes' quotas",
    ),
    code(
        "pool_below_throughput",
        &[422],
        "the pool's throughput would be less than the sum of its volumes' throughputs",
    ),
    code(
        "pool_below_iops",
        &[422],
        "the pool's IOPS would be less than the sum of its volumes' IOPS",
    ),
    code(
        "quota_without_throughput",
        &[422],
        "the quota would result in less than 1 byte per second",
    ),
    code(
        "throughput_without_iops",
        &[422],
        "the throughput would result in less than one operation per second",
    ),
    code(
        "level_below_throughput",
        &[422],
        "a pool of this level would have too little throughput for its volumes",
    ),
    code("quota_below_used", &[422], "the volume uses more space than the quota"),
    // Requests beyond the capacity of the hardware.
    code(
        "hardware_exceeded",
        &[422],
        "the change would commit more than the measured capacity of the disks",
    ),
    // Temporary conditions.
    code(
        "usage_unknown",
        &[409],
        "a recount is running: the quota cannot be reduced until it is complete",
    ),
    code("counting", &[409], "a recount is already running"),
    code("pool_not_empty", &[409], "the pool still has volumes"),
    code("account_in_use", &[409], "share rules name the user or group"),
    code("level_in_use", &[409], "the level is used by pools"),
    code("level_published", &[409], "the level is built in and cannot be changed"),
    code("other_file_system", &[409], "volumes can only be moved within one file system"),
    code(
        "volume_not_served",
        &[409, 500],
        "the volume is not served; the server's log contains the reason",
    ),
    code("home_not_answering", &[503], "the gateway that serves the volume does not answer"),
    code(
        "top_not_permitted",
        &[409],
        "the server runs without the rights to change the owner or the mode of the top directory",
    ),
    code("busy", &[503], "too many changes are pending: try again later"),
    code(
        "metrics_busy",
        &[503],
        "another request has the metrics of all gateways collected: try again later",
    ),
    code("audit_unavailable", &[503], "the audit log cannot record the change, so it was not made"),
    code("changed_meanwhile", &[412], "the object was modified: its etag does not match If-Match"),
    code(
        "idempotency_key_reused",
        &[422],
        "the Idempotency-Key was already used for a different request",
    ),
    // Errors of the server or its disks; the server's log has details.
    code("failed", &[500], "internal server error"),
    code("metrics", &[500], "the metrics cannot be generated"),
    code("backup", &[500], "the backup failed in the server"),
    code("io", &[500], "a file of the server cannot be read or written"),
    code("database", &[500], "the catalogue's database failed"),
    code("damaged", &[500], "the catalogue contains data that no version of Weir writes"),
    code("pool_away", &[500], "the directory of the pool does not exist"),
    code("pool_foreign", &[500], "the directory of the pool belongs to another server"),
    code("pool_busy", &[500], "the directory of the pool is in use by another server"),
    code("volume_away", &[500], "the directory of the volume does not exist"),
    // Errors at server startup, or of commands that work on a data directory.
    code("locked", &[500], "the data directory is in use by another server"),
    code("not_a_data_directory", &[500], "the directory is not a data directory of Weir"),
    code("foreign_owner", &[500], "a secret file belongs to another user"),
    code("newer_format", &[500], "the catalogue has the format of a later version"),
    code("no_catalog", &[500], "the catalogue does not exist"),
    code("catalog_exists", &[500], "a catalogue already exists"),
    code("restore_interrupted", &[500], "a restore was interrupted"),
    code("not_a_backup", &[500], "the file is not a backup"),
    code("newer_backup", &[500], "the backup was made by a later version"),
    code("damaged_backup", &[500], "the backup is damaged"),
    code("passwords_unreadable", &[409], "the key of passwords in an import opens not all of them"),
    code("backup_of_cluster", &[409], "the backup is that of a cluster"),
    code("backup_of_server", &[409], "the backup is that of a server that is alone"),
    code("pools_not_on_ceph", &[409], "pools of an import have no directory in CephFS"),
    code("volume_numbers_taken", &[409], "numbers of volumes of an import belong to other volumes"),
    code("secret_exists", &[409], "an export would replace a secret file"),
    code("bad_secret", &[500], "handle.key does not contain a valid key"),
    code("bad_smb_key", &[500], "smb.key does not contain a valid key"),
    code("smb_key_unreadable", &[500], "smb.key cannot be read"),
    code("bad_token", &[500], "api.token does not contain a valid token"),
    code("damaged_tokens", &[500], "api.tokens is damaged"),
    code("bad_report_key", &[500], "report.key does not contain a valid key"),
    code("no_report_key", &[500], "reports cannot be signed; the server's log contains the reason"),
    // The cluster.
    code(
        "cluster_unreachable",
        &[500],
        "the store of the cluster does not answer: nothing was changed",
    ),
    code(
        "cluster_in_doubt",
        &[500],
        "the store of the cluster stopped answering during the change, which was made or not",
    ),
    code("cluster_overtaken", &[409], "other gateways change the catalogue at the same time"),
    code("cluster_busy", &[409], "another gateway makes a large change of the catalogue"),
    code(
        "cluster_change_undone",
        &[409],
        "another gateway undid the change before it was complete",
    ),
    code("cluster_row_damaged", &[500], "a row in the store of the cluster is damaged or foreign"),
    code("cluster_row_too_large", &[400], "a row would be too large for the store of the cluster"),
    code("cluster_format", &[409], "a gateway of the cluster does not know this setting yet"),
    code("cluster_exists", &[409], "the store already has a catalogue of this cluster"),
    code("cluster_replaced", &[500], "the catalogue of the cluster was replaced by an import"),
    code("no_cluster", &[500], "the store has no catalogue of this cluster"),
    code("not_a_member", &[500], "the gateway is no longer a member of the cluster"),
    code("not_a_gateway", &[409], "the server is not a gateway of a cluster"),
    code("pool_on_ceph", &[409], "the pool is on CephFS, which only gateways of a cluster serve"),
    code("no_address", &[409], "the cluster has no address for the volume, or the volume has none"),
    code("address_in_use", &[409], "the address still has volumes"),
    code("address_kept", &[409], "the volume has another address, which it keeps"),
    code("address_moving", &[409], "the address is moving, or has no gateway at present"),
    code("gateway_address_taken", &[409], "another gateway has this address and port"),
    code("gateway_busy", &[409], "the gateway is carrying out another command"),
    code("gateway_not_live", &[409], "the gateway does not serve at present"),
    code("gateway_draining", &[409], "the gateway is being drained"),
    code("gateway_live", &[409], "the gateway is alive"),
    code("gateway_not_gone", &[409], "the gateway may still run, or its addresses have not moved"),
    code("request_repeated", &[409], "another gateway has carried out this request"),
    code("wrong_cluster_key", &[500], "a secret cannot be opened with the key of the cluster"),
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of docs/api.md.
    fn table() -> String {
        let row = |code: &Code| {
            let statuses: Vec<_> = code.statuses.iter().map(u16::to_string).collect();
            format!("| `{}` | {} | {} |\n", code.word, statuses.join(", "), code.meaning)
        };
        "| code | status | meaning |\n|---|---|---|\n".to_owned()
            + &CODES.iter().map(row).collect::<String>()
    }

    #[test]
    fn each_code_has_one_row_here_and_in_the_document() {
        for (place, code) in CODES.iter().enumerate() {
            assert!(CODES[..place].iter().all(|other| other.word != code.word), "{code:?}");
            assert!(code.statuses.iter().all(|status| (400..600).contains(status)), "{code:?}");
        }
        let document = include_str!("../../../docs/api.md");
        assert!(document.contains(&table()), "docs/api.md must have this table:\n{}", table());
    }
}
