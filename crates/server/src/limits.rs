//! Every bound of the data plane, with what happens when it is reached.
//!
//! Not here: the bounds of gates, which are `weir-gate`'s, and bounds that are configured, on
//! connections and on the memory of waiting requests (`parked_total_mib`). Beyond the latter a
//! request that would have to wait is answered "busy".

use std::time::Duration;
use weir_core::limits::IO_BYTES_MAX;
pub(crate) use weir_gate::limits::REPLY_BYTES_MAX;

/// The bounds of bytes that count together, of all clients and of each. Bytes that would pass one
/// are refused.
#[derive(Clone, Copy, Debug)]
pub(crate) struct SumBounds {
    /// The most bytes of all clients.
    pub(crate) most: usize,
    /// The divisor for the part of each client: it may have one in this number of the bytes that
    /// the others leave free.
    pub(crate) one_in: usize,
    /// The least part of a client, however much the others have.
    pub(crate) least: usize,
}

/// Connections beyond the bound while those that are to make room have not closed. Beyond:
/// newcomers are closed.
pub(crate) const CONNECTIONS_OVER_MAX: usize = 64;

/// Connections that the kernel keeps until they are accepted. Beyond: it makes clients wait.
pub(crate) const LISTEN_BACKLOG: i32 = 1024;

/// A receive buffer of the usual size. One is held by a connection only while it has data.
pub(crate) const RECV_BYTES: usize = 256 << 10;

/// The receive buffer of a connection with little traffic: thousands of connections whose requests
/// wait for the disk at the same moment hold this much each. Filled once, the usual size follows.
pub(crate) const RECV_SMALL_BYTES: usize = 32 << 10;

/// A connection has little traffic again after so many times that what came would have filled no
/// more than half of the small buffer.
pub(crate) const RECV_CALM: u8 = 64;

/// The largest record of any protocol, in bytes, without its framing: one full payload and what
/// stands around it. Longer: the session refuses the record, and its connection is closed.
pub(crate) const RECORD_BYTES_MAX: usize = IO_BYTES_MAX as usize + (256 << 10);

/// A receive buffer for records that do not fit the usual one: the largest record and room to
/// receive the start of the next with it.
pub(crate) const RECV_LARGE_BYTES: usize = RECORD_BYTES_MAX + (256 << 10);

/// A partial record up to this size is kept in a buffer of its own, so that a peer who sends a few
/// bytes and stops pins no more than about eight times what it sent.
pub(crate) const PARTIAL_COPY_MAX: usize = RECV_BYTES / 8;

/// Receive buffers of one connection that its requests in flight keep from being used again, each
/// of the usual or the large size. Beyond: reading from it stops.
pub(crate) const LENT_MAX: usize = 16;

/// Bytes of such buffers, all connections of a worker. Beyond: a connection gets one.
pub(crate) const LENT_BYTES_WORKER_MAX: usize = 256 << 20;

/// Bytes of such buffers over all connections of one origin, also over closed ones whose requests
/// are not done. Beyond: each of its connections gets one buffer.
pub(crate) const LENT_BYTES_ORIGIN_CROWDED: usize = 64 << 20;

/// Bytes of such buffers of one origin at which no request of the origin is started.
pub(crate) const LENT_BYTES_ORIGIN_MAX: usize = 128 << 20;

/// Bytes of a record that must arrive within [`RECORD_SECONDS`], unless that ends it.
pub(crate) const RECORD_PROGRESS_BYTES: usize = 16 << 10;

/// Seconds in which an unfinished record must grow by [`RECORD_PROGRESS_BYTES`] while the server
/// reads from its connection. Beyond: the connection is closed, since a peer that slow holds a
/// buffer for nothing.
pub(crate) const RECORD_SECONDS: u64 = 60;

/// Bytes of buffers that hold parts of records, all connections of a worker. Beyond: records of
/// origins that hold more than [`PARTIAL_BYTES_ORIGIN_MIN`] have only [`CROWDED_SECONDS`]; those
/// that have not grown for longest are given up. Records that grow are never, since under a heavy
/// load honest ones hold more than this.
pub(crate) const PARTIAL_BYTES_WORKER_MAX: usize = 256 << 20;

/// Bytes of such buffers over all connections of one origin. Beyond: records of that origin have
/// only [`CROWDED_SECONDS`].
pub(crate) const PARTIAL_BYTES_ORIGIN_MAX: usize = PARTIAL_BYTES_WORKER_MAX / 4;

/// Bytes of buffers that hold received data over all connections of a worker: partial records, and
/// records that wait because a bound of their connection is reached. Beyond: a connection receives
/// into a small buffer, and one whose record needs a larger one is not read until others have given
/// memory back. One connection at a time may exceed the bound by its record, and each origin may
/// always receive one of the largest records.
pub(crate) const RECEIVED_BYTES_WORKER_MAX: usize = 2 * PARTIAL_BYTES_WORKER_MAX;

/// Bytes of such buffers over all connections of one origin. Beyond: as above.
pub(crate) const RECEIVED_BYTES_ORIGIN_MAX: usize = RECEIVED_BYTES_WORKER_MAX / 4;

/// Bytes of such buffers that an origin may hold even while a worker holds too much: a few of the
/// largest records.
pub(crate) const PARTIAL_BYTES_ORIGIN_MIN: usize = 4 * RECV_LARGE_BYTES;

/// Seconds without progress after which a connection is closed while it, or others of its origin,
/// hold more than they may: a record that does not grow, or replies that the peer does not take.
pub(crate) const CROWDED_SECONDS: u64 = 5;

/// Requests of one connection that a worker takes before the next has its turn. Beyond: the rest
/// is taken in the connection's next turn.
pub(crate) const TURN_REQUESTS_MAX: usize = 64;

/// Requests of one origin that a worker takes in one round of all connections: one half for
/// requests that arrive in this round, the other for requests left over by earlier turns. Beyond:
/// the rest is taken in the next round. So other origins' connections have their turns, and gates
/// are asked in time, however many connections an origin has.
pub(crate) const ROUND_REQUESTS_ORIGIN_MAX: usize = 512;

/// Rounds of receiving on one connection before the others get their turn.
pub(crate) const RECV_ROUNDS_MAX: usize = 4;

/// Requests of one connection that were admitted and not answered. Beyond: reading from it stops.
pub(crate) const IN_FLIGHT_MAX: usize = 512;

/// Operations of one origin that wait for the disk on one worker, also those whose connections are
/// gone. Beyond: its connections are not read, and none of its requests at a gate goes.
pub(crate) const TASKS_ORIGIN_MAX: usize = 16_384;

/// Bytes of requests in flight and of unsent replies over all connections of one origin on one
/// worker, closed ones included. Beyond: each of its connections gets one request at a time, and
/// connections whose peers take no replies for [`CROWDED_SECONDS`] are closed.
pub(crate) const REPLY_BYTES_ORIGIN_CROWDED: usize = 64 << 20;

/// Bytes of requests in flight and of unsent replies of one origin at which none of its requests is
/// started.
pub(crate) const REPLY_BYTES_ORIGIN_MAX: usize = 128 << 20;

/// Bytes of requests in flight and of unsent replies over all connections of a worker. Beyond: each
/// connection gets one request at a time, and of origins that hold more than [`REPLY_BYTES_MAX`],
/// connections whose peers take no replies for [`CROWDED_SECONDS`] are closed.
pub(crate) const REPLY_BYTES_WORKER_MAX: usize = 256 << 20;

/// Time after which replies that were held for want of the right to reply are tried again.
pub(crate) const HELD_RETRY: Duration = Duration::from_millis(20);

/// Bytes of finished replies that are sent at once, before more of a batch is served. More would
/// leave the processor's cache before the kernel copies it; less would wake the peer more often
/// than it has work for.
pub(crate) const SEND_EARLY_BYTES: usize = 512 << 10;

/// Bytes of finished replies of one connection that its socket did not take. Beyond: its requests
/// wait, rather than fill cold memory.
pub(crate) const UNSENT_BYTES_MAX: usize = 512 << 10;

/// Replies handed to the kernel in one call.
pub(crate) const SEND_SLICES_MAX: usize = 256;

/// Parked memory of one origin on one worker, all volumes. Beyond: its connections are not read.
pub(crate) const PARKED_BYTES_ORIGIN_MAX: usize = 128 << 20;

/// Seconds that unacknowledged data may stay unacknowledged before the connection is closed: the
/// bound on a peer that stops reading or vanishes.
pub(crate) const SEND_STALL_SECONDS: u32 = 60;

/// Seconds that a stop waits, when all is answered, for peers to close their side. Then the
/// connections of those that went on sending are reset.
pub(crate) const LINGER_SECONDS: u64 = 2;

/// Remembered MOUNT entries, for `showmount`. Beyond: the oldest is forgotten.
pub(crate) const MOUNTS_MAX: usize = 4096;

/// Largest call over UDP, in bytes; MOUNT and the lock manager need about half. Longer: dropped.
pub(crate) const DATAGRAM_BYTES_MAX: usize = 8 << 10;

/// Largest reply over UDP in bytes, if its call is not larger. Beyond: the caller gets a
/// system error and asks over TCP. It keeps forged source addresses from turning the server on a
/// third party.
pub(crate) const DATAGRAM_REPLY_BYTES_MAX: usize = 256;

/// Datagrams looked at within a second. Beyond: dropped, and their senders send them again.
pub(crate) const DATAGRAMS_SECOND_MAX: usize = 10_000;

/// Divisor for the datagrams of one origin within a second: one in so many of the room that the
/// others leave, and at least [`DATAGRAMS_SECOND_ORIGIN_MIN`]. Beyond: dropped like those beyond
/// [`DATAGRAMS_SECOND_MAX`].
pub(crate) const DATAGRAMS_SECOND_ORIGIN_ONE_IN: usize = 4;

/// See [`DATAGRAMS_SECOND_ORIGIN_ONE_IN`].
pub(crate) const DATAGRAMS_SECOND_ORIGIN_MIN: usize = 16;

/// Datagrams taken from one socket before the others get their turn.
pub(crate) const DATAGRAMS_ROUND_MAX: usize = 64;

/// Requests of one origin on one worker whose callers' groups are looked up. Beyond: its
/// connections are not read.
pub(crate) const GROUP_LOOKUPS_ORIGIN_MAX: usize = 64;

/// Largest arguments of a call to the lock manager over TCP, in bytes; three opaque words and a
/// name of 1,024 bytes each fit. Longer: refused as garbage.
pub(crate) const LOCK_ARGS_BYTES_MAX: usize = DATAGRAM_BYTES_MAX;

/// Hosts that hold locks, or did a short while ago, and are to be told of a restart. Beyond: one
/// without locks is forgotten for a new one; if all hold locks, a new one gets none.
pub(crate) const MONITORED_HOSTS_MAX: usize = 16_384;

/// Divisor for the monitored hosts of one origin: one in so many of the room that the others leave,
/// and at least [`MONITORED_HOSTS_ORIGIN_MIN`]. Beyond: one of the origin's hosts without locks is
/// forgotten for a new one; if all of them hold locks, a new one gets none.
pub(crate) const MONITORED_HOSTS_ORIGIN_ONE_IN: usize = 16;

/// See [`MONITORED_HOSTS_ORIGIN_ONE_IN`].
pub(crate) const MONITORED_HOSTS_ORIGIN_MIN: usize = 16;

/// Hosts of earlier lives of the server that are to be told of the restart. Beyond: hosts of the
/// origins that have the most are not told, with a log line.
pub(crate) const NOTICES_MAX: usize = 2 * MONITORED_HOSTS_MAX;

/// Sessions of SMB on one connection. Beyond: a login is refused with
/// `STATUS_INSUFFICIENT_RESOURCES`.
pub(crate) const SESSIONS_CONNECTION_MAX: usize = 64;

/// Logins of SMB that go on at the same time on one connection, and those whose answers are held
/// back. Beyond: of those that go on, the oldest is dropped, and its client begins again; while so
/// many are held back, requests of others are refused with `STATUS_REQUEST_NOT_ACCEPTED`.
pub(crate) const LOGINS_CONNECTION_MAX: usize = 4;

/// Tree connects of one session of SMB. Beyond: refused with `STATUS_INSUFFICIENT_RESOURCES`.
pub(crate) const TREES_SESSION_MAX: usize = 256;

/// Opens of pipes of one session of SMB. Beyond: refused with `STATUS_INSUFFICIENT_RESOURCES`.
pub(crate) const PIPES_SESSION_MAX: usize = 16;

/// Bytes that the pipes of SMB hold, from which on they take no more. A client may begin one long
/// list of shares that it does not read, however much the others have. Beyond: refused with
/// `STATUS_INSUFFICIENT_RESOURCES`.
pub(crate) const PIPE_BYTES: SumBounds = SumBounds { most: 64 << 20, one_in: 16, least: 256 << 10 };

/// Bytes of the path of an open as operators see it in lists. The rest is cut: a page of long
/// paths would be larger than clients of the API take.
pub(crate) const PATH_LISTED_BYTES_MAX: usize = 4096;

/// Opens of files of one session of SMB. Beyond: refused with `STATUS_INSUFFICIENT_RESOURCES`.
pub(crate) const OPENS_SESSION_MAX: usize = 1 << 16;

/// Bytes of the path of each open of SMB that do not count in the sum below: the number of opens
/// bounds them.
pub(crate) const PATH_BYTES_UNCOUNTED: usize = 256;

/// Bytes of the paths of all opens of SMB, beyond [`PATH_BYTES_UNCOUNTED`] of each. Beyond: a
/// CREATE that opens by a longer path is refused with `STATUS_INSUFFICIENT_RESOURCES`. A rename to
/// a longer path succeeds, and the opens for which there is no room keep the old path. The longer
/// paths that clients give to the opens of others have a part like that of one client.
pub(crate) const PATH_BYTES: SumBounds = SumBounds { most: 64 << 20, one_in: 4, least: 256 << 10 };

/// Message ids that a connection of SMB may have unused while its requests wait for the memory of
/// a gate: enough for one request of the largest size.
pub(crate) const CREDITS_UNDER_PRESSURE: u64 = 16;

const _: () = assert!(RECV_LARGE_BYTES > IO_BYTES_MAX as usize + RECV_BYTES);
const _: () = assert!(REPLY_BYTES_ORIGIN_MAX + REPLY_BYTES_ORIGIN_CROWDED < REPLY_BYTES_WORKER_MAX);
const _: () = assert!(LENT_BYTES_ORIGIN_MAX + LENT_BYTES_ORIGIN_CROWDED < LENT_BYTES_WORKER_MAX);
