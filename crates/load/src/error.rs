//! The errors that keep a measurement from being made. The system's error is the source, not part
//! of the message.

use std::io;
use std::path::PathBuf;
use weir_nfs::client::Refused;

/// Why a run could not be prepared or finished. The message says what to do about it.
#[derive(Debug, thiserror::Error)]
pub enum BenchError {
    /// The workload contradicts itself or exceeds a bound.
    #[error("{0}")]
    Workload(String),
    /// The target is not written as the program expects it.
    #[error("{0}")]
    Target(String),
    /// A connection could not be opened.
    #[error("cannot connect to {address} from {from}{hint}")]
    Connect {
        /// The address.
        address: std::net::SocketAddr,
        /// Source address, or "any address".
        from: String,
        /// The system's error.
        source: io::Error,
        /// The advice, with a leading separator, or empty.
        hint: &'static str,
    },
    /// A connection was lost, or the peer stopped answering.
    #[error("lost the connection to {address}")]
    Connection {
        /// The server.
        address: std::net::SocketAddr,
        /// The system's error.
        source: io::Error,
    },
    /// The peer answered with something that is not the reply to what was asked.
    #[error("{address} sent a malformed reply: {detail}")]
    Protocol {
        /// The server.
        address: std::net::SocketAddr,
        /// The fault.
        detail: String,
    },
    /// The server did not carry a call out (RFC 5531 §9).
    #[error("{address} ({service}): {refused}{hint}")]
    Denied {
        /// The server.
        address: std::net::SocketAddr,
        /// The called program.
        service: &'static str,
        /// The server's reason.
        refused: Refused,
        /// The advice, with a leading separator, or empty.
        hint: &'static str,
    },
    /// The run was stopped while an answer was waited for.
    #[error("stopped while waiting for an answer of {address} ({service})")]
    Stopped {
        /// The server.
        address: std::net::SocketAddr,
        /// The called program or protocol.
        service: &'static str,
    },
    /// The server refused to give the export.
    #[error("{0}")]
    Mount(String),
    /// An NFS operation of the preparation or clean-up failed.
    #[error("{action}: the server answered {status}{hint}")]
    Refused {
        /// The attempted action, with its name.
        action: String,
        /// Name of the NFS status.
        status: String,
        /// The advice, with a leading separator, or empty.
        hint: &'static str,
    },
    /// An operation on a path failed.
    #[error("cannot use {path}{hint}", path = path.display())]
    Path {
        /// The file or directory.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
        /// The advice, with a leading separator, or empty.
        hint: &'static str,
    },
    /// Something of this machine failed: threads, epoll, clocks.
    #[error("{what} failed")]
    Local {
        /// The attempted action.
        what: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Another process of a run over several could not be reached, refused, or failed.
    #[error("{0}")]
    Peer(String),
    /// A worker thread ended abnormally.
    #[error("a worker thread of the load generator ended abnormally")]
    Worker,
}

impl BenchError {
    /// The message and what the system said, for where only text is kept.
    pub fn in_full(&self) -> String {
        std::error::Error::source(self)
            .map_or_else(|| self.to_string(), |source| format!("{self}: {source}"))
    }
}
