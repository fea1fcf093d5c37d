//! The bounds of the control plane and of the log, with what happens when one is reached, and the
//! default bounds on connections of clients, which the configuration may change.

use std::time::Duration;

/// Open client connections, by default (`connections_max`). Beyond: an idle one of the origin that
/// has the most is closed for a newcomer whose origin has less; otherwise the newcomer is, with a
/// log line.
pub(crate) const CONNECTIONS_MAX: usize = 16_384;

/// Open connections of one origin, by default (`connections_per_client_max`): 64 Linux clients
/// behind one address with `nconnect=16` each, and a sixteenth of all. Beyond: accepted and closed
/// at once, with a log line.
pub(crate) const CONNECTIONS_ORIGIN_MAX: usize = 1024;

/// Bytes of log lines that wait to be written. Beyond: lines are dropped and counted; lines of the
/// levels debug and trace at half of it.
pub(crate) const LOG_QUEUE_BYTES_MAX: usize = 1 << 20;

/// Origins with log rates of their own, each for each kind of line. Beyond: others share one rate
/// for each kind.
pub(crate) const LOG_PEERS_MAX: usize = 4096;

/// Time between two reports of lines left out of the log.
pub(crate) const LOG_REPORT_EVERY: Duration = Duration::from_secs(10);

/// Origins that such a report names. Beyond: the rest in one sum for each kind of line.
pub(crate) const LOG_REPORT_LINES_MAX: usize = 32;

/// Longest that the end of the process waits for the reader of the log.
pub(crate) const LOG_FLUSH_WAIT: Duration = Duration::from_secs(2);

/// Longest that all lines written at the start, before the log has a thread, wait for the reader.
/// Beyond: lines that would have to wait are dropped and counted.
pub(crate) const LOG_DIRECT_WAIT: Duration = Duration::from_secs(1);

/// Clients of a volume that the API lists with their loads. Beyond: those with the fewest
/// operations are counted only.
pub(crate) const LOAD_CLIENTS_MAX: usize = 32;

/// Clients of a volume that have a metric of their own. Beyond: those with the fewest connections
/// share one with the label `others`.
pub(crate) const METRICS_CLIENTS_VOLUME_MAX: usize = 16;

/// Clients of all volumes that have a metric of their own: as many lines as 100 volumes have for
/// everything else. Beyond: `others`, as above.
pub(crate) const METRICS_CLIENTS_MAX: usize = 4096;

/// Records of denied requests to the API in a minute, by which a stranger could fill the disk: some
/// 20 MB a day. Beyond: they are counted in the next record.
pub(crate) const DENIALS_MINUTE_MAX: u32 = 30;

/// Records of refused logins over SMB in a minute: some 13 MB a day. Beyond: they are counted in
/// the next record of one, or in one at the end of the minute.
pub(crate) const LOGIN_REFUSALS_MINUTE_MAX: u32 = 30;

/// Records of logins and logoffs over SMB in a minute: users who do nothing else can write some
/// 130 MB a day. Beyond: as above.
pub(crate) const LOGIN_RECORDS_MINUTE_MAX: u32 = 300;

/// Logins over SMB that wait to be recorded. Beyond: they are counted, and not recorded.
pub(crate) const LOGINS_WAITING_MAX: usize = 1024;

/// Characters of an account's name in a record; longer names are cut.
pub(crate) const USER_CHARS_MAX: usize = 256;

/// Connections of the API over TCP, all addresses it listens on. Beyond: of the origin that has the
/// most, the connection that has waited longest for a request is closed for a newcomer; if all have
/// requests that are being answered, the newcomer is closed.
pub(crate) const API_CONNECTIONS_MAX: usize = 512;

/// API connections of one origin over TCP. Beyond: of the origin's own, the one that has waited
/// longest for a request is closed for a newcomer.
pub(crate) const API_CONNECTIONS_ORIGIN_MAX: usize = 256;

/// Connections that the kernel keeps until the API accepts them. Beyond: the kernel makes clients
/// wait.
pub(crate) const API_LISTEN_BACKLOG: i32 = 4096;

/// Connections that the API accepts before its open ones get their turn.
pub(crate) const API_ACCEPTS_ROUND_MAX: usize = 16;

/// Delay of a connection's waiting time while it sends a body that it may send, or takes a large
/// answer.
pub(crate) const API_BODY_CREDIT: Duration = Duration::from_secs(10);

/// Connections of one origin with [`API_BODY_CREDIT`] at a time. Beyond: they wait as others do.
pub(crate) const API_BODIES_ORIGIN_MAX: usize = 64;

/// Size (bytes) above which an answer is large: no client without a token gets a larger one.
pub(crate) const API_ANSWER_LARGE_BYTES: u64 = 32 << 10;

/// Longest that the body of a request to the API may take. Beyond: the request is answered
/// `timeout`.
pub(crate) const API_BODY_WAIT: Duration = Duration::from_secs(30);

/// Seconds that unacknowledged data of the API may stay unacknowledged. Beyond: the connection is
/// closed.
pub(crate) const API_SEND_STALL_SECONDS: u32 = 60;

/// Questions to one other gateway of a cluster at the same time. Each needs one of the places that
/// it has for handshakes of one address, of which most are for links of words. Beyond: they wait,
/// for `ASK_TURN_WAIT`.
pub const ASKS_GATEWAY_MAX: usize = 4;

/// Longest that a question waits for others to the same gateway. Beyond: it gives no answer.
pub(crate) const ASK_TURN_WAIT: Duration = Duration::from_millis(800);

/// Time for which a failure to reach another gateway answers further questions to it.
pub(crate) const ASK_FAILED_KEPT: Duration = Duration::from_secs(2);

/// Largest answer of another gateway, in bytes: the metrics of some 2,000 busy volumes. Beyond: it
/// counts as none.
pub(crate) const ASK_BYTES_MAX: usize = 16 << 20;

/// Longest until there is a connection to another gateway. Beyond: it gives no answer.
pub(crate) const ASK_DIAL_WAIT: Duration = Duration::from_secs(2);

/// Longest until another gateway has answered, with the wait for a turn and for the connection.
/// Beyond: as above.
pub(crate) const ASK_WAIT: Duration = Duration::from_secs(3);

/// Longest that a request for the metrics of all gateways waits for another one. Beyond: it is
/// answered `metrics_busy`.
pub(crate) const MERGE_TURN_WAIT: Duration = Duration::from_secs(1);

/// Metrics in the text of another gateway, each with any number of samples: many times those that
/// there are. Beyond: the text counts as none.
pub(crate) const METRICS_FAMILIES_MAX: usize = 1000;

/// Labels of a sample in the text of another gateway. Beyond: its metric is left out.
pub(crate) const METRIC_LABELS_MAX: usize = 16;

/// Connections of other gateways that are answered at the same time. Beyond: they wait, and as many
/// more as the links keep; further ones are closed.
pub(crate) const ANSWERING_MAX: usize = 16;

/// Longest that a connection of another gateway is answered. Beyond: it is closed.
pub(crate) const ANSWERING_WAIT: Duration = Duration::from_secs(10);

const _: () = assert!(
    ASK_TURN_WAIT.as_millis() + ASK_DIAL_WAIT.as_millis() < ASK_WAIT.as_millis(),
    "a silent gateway is told from one that is slow"
);
const _: () = assert!(API_CONNECTIONS_ORIGIN_MAX < API_CONNECTIONS_MAX);
