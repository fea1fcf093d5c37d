//! Bounds of the look-ups of users, and their behaviour when they are reached.

/// Threads that look up the groups of users, where that is turned on.
pub(crate) const GROUP_THREADS: usize = 4;

/// Users whose groups wait to be looked up. Beyond: requests of others are answered
/// `NFS3ERR_JUKEBOX`, and clients ask again.
pub(crate) const GROUP_LOOKUPS_MAX: usize = 1024;

/// Users whose groups are remembered. Beyond: all are forgotten and looked up anew.
pub(crate) const GROUP_USERS_MAX: usize = 65_536;

/// Groups of all these users together, 4 bytes each. Beyond: all users are forgotten and looked up
/// anew.
pub(crate) const GROUP_IDS_MAX: usize = 4 << 20;
