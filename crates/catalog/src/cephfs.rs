//! The name of a CephFS, as its clients find it. Not here: which names are good ([`crate::ceph`]).

use std::path::PathBuf;

/// A CephFS, as its clients find it. Equal values are the same file system; two files with other
/// paths may be too, which nothing here can tell.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ceph {
    /// The absolute path of Ceph's configuration file, on every gateway.
    pub conf: PathBuf,
    /// The user of Ceph, without the prefix `client.`.
    pub user: String,
}

impl Ceph {
    /// The user that Ceph's own tools have by default.
    pub const USER: &'static str = "admin";
}
