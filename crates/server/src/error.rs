//! The errors with which the server ends. Not here: those of single requests.

use std::net::SocketAddr;
use weir_catalog::CatalogError;
use weir_control::http::BindError;
use weir_process::ConfineError;
use weir_rpcbind::RegisterError;

/// Why the server can't start, or ended badly.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// The data directory or the catalogue in it.
    #[error(transparent)]
    Catalog(#[from] CatalogError),
    /// An address can't be listened on.
    #[error("cannot listen for NFS on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// An address of the API can't be listened on.
    #[error(transparent)]
    ListenApi(#[from] BindError),
    /// Port 111 can't be listened on.
    #[error(
        "cannot listen for rpcbind on {address}: {source}; if an rpcbind runs on this machine, use \
         --rpcbind register"
    )]
    Portmapper {
        /// The address.
        address: SocketAddr,
        /// The kernel's error.
        source: std::io::Error,
    },
    /// The rpcbind of this machine did not take our programs.
    #[error(transparent)]
    Register(#[from] RegisterError),
    /// The control plane.
    #[error("the API: {0}")]
    Control(#[source] std::io::Error),
    /// Privileges can't be given up.
    #[error(transparent)]
    Confine(#[from] ConfineError),
    /// The machine gave something too little of.
    #[error("can't start: {0}")]
    System(#[from] std::io::Error),
    /// A thread of the data plane ended by itself.
    #[error("a {0} thread ended unexpectedly; acknowledged data is safe")]
    Thread(&'static str),
}
