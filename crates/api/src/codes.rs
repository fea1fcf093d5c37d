//! Every code that an error of the API may have. A code never changes its meaning.

/// A code of [`ApiError`](crate::ApiError).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Code {
    /// The word.
    pub word: &'static str,
    /// The HTTP statuses that come with it.
    pub statuses: &'static [u16],
    /// What it means.
    pub meaning: &'static str,
}

const fn code(word: &'static str, statuses: &'static [u16], meaning: &'static str) -> Code {
    Code { word, statuses, meaning }
}

/// The code called `word`.
#[must_use]
pub fn find(word: &str) -> Option<&'static Code> {
    CODES.iter().find(|code| code.word == word)
}

/// All codes, by what is to be done about them.
pub const CODES: &[Code] = &[
    // The request.
    code(
        "bad_request",
        &[400, 413, 415, 422],
        "the request makes no sense by itself: no JSON, an unknown field, a bad parameter",
    ),
    code("too_large", &[413], "the body has more than 256 KiB"),
    code(
        "timeout",
        &[408],
        "the body took over 30 s, or the request over a minute; of the latter a change may be made yet",
    ),
    code("no_such_route", &[404], "there is nothing at this path"),
    code("no_such_method", &[405], "this path doesn't take that method"),
    // Authentication and authorization.
    code("unauthorized", &[401], "there is no token, or nobody knows it"),
    code("token_expired", &[401], "the token has come to its end"),
    code("forbidden", &[403], "the token's role is too small for this"),
    // Names.
    code("bad_name", &[400], "that can't be a name"),
    code("name_taken", &[409], "there is one of that name already"),
    code("no_such_level", &[404], "there is no such service level"),
    code("no_such_pool", &[404], "there is no such pool"),
    code("no_such_volume", &[404], "there is no such volume"),
    code("no_such_rule", &[404], "the volume has no export rule for that network"),
    code("no_such_token", &[404], "there is no such token"),
    code("no_such_calibration", &[404], "nothing was measured in that directory"),
    code(
        "no_such_operation",
        &[404],
        "there is no such operation since the server started, or it is long ago",
    ),
    code("rule_exists", &[409], "the volume has an export rule for that network already"),
    code("too_many", &[400, 409], "a bound on how many there may be is reached"),
    // Values out of bounds; `allowed` has the bounds.
    code(
        "size_out_of_bounds",
        &[400],
        "that size is too small or too large for any pool or volume",
    ),
    code("level_rate_out_of_bounds", &[400], "no level may buy that"),
    code("ceiling_out_of_bounds", &[400], "that can't be a ceiling"),
    code(
        "pool_throughput_out_of_bounds",
        &[422],
        "a pool of this model and size can't buy that throughput",
    ),
    code("pool_iops_out_of_bounds", &[422], "a pool of this model can't buy those IOPS"),
    code("throughput_out_of_bounds", &[422], "no volume of this model can have that throughput"),
    code("iops_out_of_bounds", &[422], "no volume of this model can have those IOPS"),
    code("weight_out_of_bounds", &[400], "that can't be a weight"),
    code("bad_calibration", &[400], "that can't have been measured"),
    code("bad_path", &[400], "no pool can be in that directory, or nothing can be measured there"),
    // Values that don't fit the contract model.
    code("throughput_in_auto_pool", &[400], "volumes of an auto pool have what their quota buys"),
    code("throughput_missing", &[400], "volumes of this pool are given a throughput"),
    code("iops_not_given", &[400], "volumes of this pool are given no IOPS"),
    code("not_shared", &[400], "only volumes of a shared pool have weights"),
    code("not_bought", &[400], "a pool of this model doesn't buy that apart from its size"),
    code("zero_throughput", &[422], "a throughput of 0 would stop all I/O"),
    code("zero_iops", &[422], "0 IOPS would stop all I/O"),
    // Demands that the pool can't carry; `allowed` has those it could.
    code("pool_capacity_exceeded", &[422], "the quotas would be more than the pool's size"),
    code("pool_throughput_exceeded", &[422], "the throughputs would be more than the pool's"),
    code("pool_iops_exceeded", &[422], "the IOPS would be more than the pool's"),
    code("pool_below_quotas", &[422], "the pool would be smaller than its volumes' quotas"),
    code(
        "pool_below_throughput",
        &[422],
        "the pool would have less throughput than its volumes were given",
    ),
    code("pool_below_iops", &[422], "the pool would have fewer IOPS than its volumes were given"),
    code("quota_without_throughput", &[422], "that quota would buy less than 1 byte per second"),
    code(
        "throughput_without_iops",
        &[422],
        "that throughput would come with less than one operation a second",
    ),
    code("level_below_throughput", &[422], "a pool of that level could not carry its volumes"),
    code("quota_below_used", &[422], "the volume holds more than that"),
    // Demands that the hardware can't carry.
    code(
        "hardware_exceeded",
        &[422],
        "the disks would be committed to more than they were measured to hold",
    ),
    // Present obstacles.
    code(
        "usage_unknown",
        &[409],
        "a recount is under way: the quota can't be lowered until it is done",
    ),
    code("counting", &[409], "a recount is under way already"),
    code("pool_not_empty", &[409], "the pool has volumes"),
    code("level_in_use", &[409], "pools have that level"),
    code("level_published", &[409], "that level is a published one, and stays as it is"),
    code("other_file_system", &[409], "volumes move only within one file system"),
    code("volume_not_served", &[409, 500], "the volume is not served; the server's log says why"),
    code("busy", &[503], "too many changes wait for one another: try again later"),
    code("audit_unavailable", &[503], "the audit log can't record the change, so it was not made"),
    code("changed_meanwhile", &[412], "it is no longer what If-Match says"),
    code("idempotency_key_reused", &[422], "another request had that Idempotency-Key"),
    // The server or its disks; its log says more.
    code("failed", &[500], "it failed inside the server"),
    code("metrics", &[500], "the metrics can't be written"),
    code("backup", &[500], "the backup failed inside the server"),
    code("io", &[500], "a file of the server can't be read or written"),
    code("database", &[500], "the catalogue's database failed"),
    code("damaged", &[500], "the catalogue says something that no version of Weir wrote"),
    code("pool_away", &[500], "the pool's directory isn't there"),
    code("pool_foreign", &[500], "the pool's directory is another server's"),
    code("pool_busy", &[500], "another server works in the pool's directory"),
    code("volume_away", &[500], "the volume's directory isn't there"),
    // Only when a server starts, or of commands that look at a data directory.
    code("locked", &[500], "another server has the data directory"),
    code("not_a_data_directory", &[500], "the directory is somebody else's"),
    code("foreign_owner", &[500], "a secret belongs to another user"),
    code("newer_format", &[500], "the catalogue is of a later version"),
    code("no_catalog", &[500], "there is no catalogue"),
    code("catalog_exists", &[500], "there is a catalogue already"),
    code("restore_interrupted", &[500], "a restore was cut short"),
    code("not_a_backup", &[500], "that file is no backup"),
    code("newer_backup", &[500], "the backup is of a later version"),
    code("damaged_backup", &[500], "the backup is damaged"),
    code("bad_secret", &[500], "handle.key isn't one"),
    code("bad_token", &[500], "api.token isn't one"),
    code("damaged_tokens", &[500], "api.tokens is damaged"),
    code("bad_report_key", &[500], "report.key is no key"),
    code("no_report_key", &[500], "reports can't be signed; the server's log says why"),
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
