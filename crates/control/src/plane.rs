//! The control plane's interface to the data plane, and nothing more.
//!
//! Handlers of the API decide in the catalogue first; the data plane is told the outcome as a
//! whole snapshot and makes itself agree with it. It never refuses a limit or an export rule; it
//! can fail only where the disk does.

mod clients;
mod top;

pub use clients::{ClientState, Lock, LockOwner, Object, SmbOpen, SmbSession, Step, Uses};
pub use top::{Top, TopChange};

use crate::logins::Logins;
use std::io;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;
use weir_catalog::{Condemned, Pool, Snapshot, Volume};
use weir_core::{FsResult, Mono, OpClass, VolumeId};
use weir_qos::load::FileShare;
use weir_qos::verdict::{Entitled, Reading};

/// Why the data plane could not follow a snapshot.
#[derive(Debug, thiserror::Error)]
pub enum PlaneError {
    /// A volume's directory could not be opened or made.
    #[error("volume {name}: {reason}")]
    Volume {
        /// The volume's name.
        name: String,
        /// The failed step, with the cause.
        reason: String,
    },
}

/// The number of times that a volume was asked for one operation, since the server started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OperationCount {
    /// The protocol, such as `nfs3`.
    pub protocol: &'static str,
    /// The name that the protocol's standard gives the operation, such as `GETATTR`.
    pub operation: &'static str,
    /// The kind of the operation.
    pub class: OpClass,
    /// Requests answered, including those with an error status.
    pub answered: u64,
    /// Requests answered with an error status.
    pub failed: u64,
}

/// Counters of one volume since the server started; all only grow, except the gauges.
#[derive(Clone, Debug, Default)]
pub struct VolumeLive {
    /// READ operations completed.
    pub read_ops: u64,
    /// Bytes they returned.
    pub read_bytes: u64,
    /// WRITE operations completed.
    pub write_ops: u64,
    /// Bytes they took.
    pub write_bytes: u64,
    /// All other operations completed.
    pub other_ops: u64,
    /// The operations that were answered at least once, by protocol and name.
    pub operations: Vec<OperationCount>,
    /// Operations answered with an error status.
    pub failed_ops: u64,
    /// Requests that had to wait at the gate.
    pub delayed_ops: u64,
    /// Nanoseconds that requests spent waiting at the gate, in all.
    pub wait_nanos: u64,
    /// Nanoseconds from arrival to reply, in all.
    pub latency_nanos: u64,
    /// Of READs, WRITEs and COMMITs, nanoseconds in the store, in all.
    pub store_nanos: u64,
    /// Nanoseconds until the client's socket took the reply.
    pub network_nanos: u64,
    /// Nanoseconds in which the server was busy with other requests.
    pub processing_nanos: u64,
    /// Bytes that READs and WRITEs requested on arrival.
    pub offered_bytes: u64,
    /// Gauge: requests waiting at the gate now.
    pub waiting: u64,
    /// Gauge: bytes of memory those requests pin.
    pub parked_bytes: u64,
    /// Gauge: the limit in force, bytes per second.
    pub limit_bytes_per_second: u64,
    /// Gauge: the limit in force in READs and WRITEs a second, if they are counted.
    pub limit_iops: Option<u64>,
    /// Gauge: the credits for bursts that are left, where there are bursts.
    pub credits: Option<u64>,
    /// Gauge: bytes that files hold, as FSSTAT shows it.
    pub used_bytes: u64,
    /// Is that exact?
    pub used_exact: bool,
    /// Progress of a recount that is under way.
    pub counting: Option<weir_store::Counting>,
    /// The result of the last recount.
    pub counted: Option<weir_store::Counted>,
}

/// The counters of a volume at a moment, by which its contract is judged.
#[derive(Clone, Copy, Debug)]
pub struct VolumeReading {
    /// The volume.
    pub id: VolumeId,
    /// Its limits, with the certain part of them.
    pub entitled: Entitled,
    /// Its counters.
    pub reading: Reading,
    /// Operations of all kinds that were answered since the server started.
    pub answered: u64,
}

/// The use that clients made of a volume since the server started.
#[derive(Clone, Debug, Default)]
pub struct VolumeUses {
    /// The moment.
    pub at: Mono,
    /// The operations that were answered at least once, by protocol and name.
    pub operations: Vec<OperationCount>,
    /// Bytes moved by READs and WRITEs.
    pub bytes: u64,
    /// Nanoseconds from arrival to reply, in all.
    pub latency_nanos: u64,
    /// The open connections with requests on the volume. One that had none for 9 to 17 s may be
    /// missing, if the volume is used on more than eight.
    pub connections: Vec<VolumeConnection>,
    /// The file that most READs and WRITEs of the last 9 to 17 s were for.
    pub file: FileShare,
}

/// An open connection, and its use of a volume.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VolumeConnection {
    /// A number that no other open connection has.
    pub connection: u64,
    /// The client's address.
    pub address: IpAddr,
    /// The protocol: `nfs` or `smb`.
    pub protocol: &'static str,
    /// Operations answered since the connection first used the volume. Begins anew if the
    /// connection was forgotten in between.
    pub operations: u64,
    /// Bytes moved by READs and WRITEs among them.
    pub bytes: u64,
}

/// Upper bounds of the times that histograms count by; longer ones count beyond the last.
pub const DURATION_BOUNDS: [Duration; 17] = [
    Duration::from_micros(50),
    Duration::from_micros(100),
    Duration::from_micros(250),
    Duration::from_micros(500),
    Duration::from_millis(1),
    Duration::from_micros(2_500),
    Duration::from_millis(5),
    Duration::from_millis(10),
    Duration::from_millis(25),
    Duration::from_millis(50),
    Duration::from_millis(100),
    Duration::from_millis(250),
    Duration::from_millis(500),
    Duration::from_secs(1),
    Duration::from_millis(2_500),
    Duration::from_secs(5),
    Duration::from_secs(10),
];

/// A histogram of times since the server started.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Durations {
    /// The number of times up to the bound with the same index and above the one before; the last,
    /// above every bound.
    pub counts: [u64; DURATION_BOUNDS.len() + 1],
    /// Nanoseconds of all together.
    pub nanos: u64,
}

impl Durations {
    /// The number of times in the histogram.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.counts.iter().sum()
    }
}

/// The histograms of a volume for which they are configured.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct VolumeHistograms {
    /// READs, from arrival to reply.
    pub read: Durations,
    /// WRITEs, from arrival to reply.
    pub write: Durations,
    /// All others, from arrival to reply.
    pub other: Durations,
    /// Time that requests waited for their contract: READs, WRITEs and COMMITs, and others where
    /// they count. Zero for a request that did not wait.
    pub wait: Durations,
}

/// Gauges and counters of the whole server.
#[derive(Clone, Copy, Debug, Default)]
pub struct Totals {
    /// Gauge: open client connections.
    pub connections: u64,
    /// Connections accepted since the start.
    pub connections_accepted: u64,
    /// Connections refused because a bound was reached.
    pub connections_refused: u64,
    /// Idle connections closed to make room for others.
    pub connections_shed: u64,
    /// Connections closed because of what the peer sent.
    pub connections_misbehaved: u64,
    /// Gauge: bytes of memory pinned by requests that wait, all volumes.
    pub parked_bytes: u64,
    /// Times that reading from a connection was stopped because a bound was reached.
    pub reading_stopped: u64,
    /// Requests refused because those that wait for contracts hold all the memory they may.
    pub requests_refused: u64,
    /// Calls that came again while they were underway, and were dropped.
    pub repetitions_dropped: u64,
    /// Calls that came again after they were answered, and got the same reply.
    pub repetitions_answered: u64,
    /// Log lines of this process that were dropped because the log was not read.
    pub log_lines_dropped: u64,
    /// Log lines left out because there were too many alike, in this process.
    pub log_lines_left_out: u64,
    /// The lock manager's counters.
    pub locks: LockTotals,
}

/// Gauges and counters of the lock manager; all zero where there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct LockTotals {
    /// Is there a lock manager?
    pub served: bool,
    /// Gauge: ranges held.
    pub held: u64,
    /// Gauge: requests that wait for a lock.
    pub waiting: u64,
    /// Gauge: hosts that would be notified of a restart.
    pub hosts: u64,
    /// Locks refused because their host could not be remembered for a restart, or a bound was
    /// reached on such hosts.
    pub hosts_refused: u64,
    /// Gauge: is the grace period on?
    pub grace: bool,
    /// Locks granted at once.
    pub granted: u64,
    /// Locks refused.
    pub refused: u64,
    /// Calls to clients that were answered.
    pub called_back: u64,
    /// Attempts to call a client that were not.
    pub unheard: u64,
}

/// The data plane as the control plane sees it.
pub trait Plane: ClientState + Send + Sync + 'static {
    /// Makes the data plane agree with `snapshot`. In force for the next request when it returns.
    ///
    /// # Errors
    /// [`PlaneError`] where a volume can't be opened; everything else in the snapshot is in force.
    fn apply(&self, snapshot: Arc<Snapshot>) -> Result<(), PlaneError>;

    /// Whether the directory of a pool that is not on this machine holds trees of volumes: of
    /// volumes that were moved and not served since, or deleted and not removed yet.
    ///
    /// # Errors
    /// It cannot be looked at.
    fn holds_volumes(&self, _: &Pool) -> io::Result<bool> {
        Ok(false)
    }

    /// Whether this server is to serve the volume: not if it is one of several, and another is its
    /// home.
    fn is_home_of(&self, _: &Volume) -> bool {
        true
    }

    /// The live counters of a volume, if it is being served.
    fn volume_live(&self, id: VolumeId) -> Option<VolumeLive>;

    /// The histograms of a volume, if it is served and they are configured.
    fn volume_histograms(&self, id: VolumeId) -> Option<Box<VolumeHistograms>>;

    /// Calls `each` for every volume that clients ever used since the server started.
    fn readings(&self, each: &mut dyn FnMut(VolumeReading));

    /// The use that clients made of a volume, if it is being served.
    fn volume_uses(&self, id: VolumeId) -> Option<VolumeUses>;

    /// Begins to count a volume's usage anew, if the volume is being served; false if that is
    /// under way already. Blocks.
    fn rescan(&self, id: VolumeId) -> Option<bool>;

    /// The top directory of a volume, if the volume is being served.
    fn top(&self, id: VolumeId) -> Option<Top>;

    /// Changes the top directory of a volume, if the volume is being served. The change is in force
    /// for the next request, and has reached stable storage, when the step is done.
    fn change_top(&self, id: VolumeId, change: TopChange) -> Step<'_, Option<FsResult<()>>>;

    /// Removes a condemned tree that is not on this machine, until `leaving` says that the process
    /// ends. Tells whether all of it is gone. Blocks. A plane without stores elsewhere removes
    /// none.
    ///
    /// # Errors
    /// The reason for which it stays, in whole or in part, until the next call.
    fn remove_tree(&self, _condemned: &Condemned, _leaving: &dyn Fn() -> bool) -> io::Result<bool> {
        Ok(false)
    }

    /// The logins of users over SMB, for the audit log.
    fn logins(&self) -> Arc<Logins>;

    /// The counters of the whole server.
    fn totals(&self) -> Totals;
}
