//! The agreement between the catalogue, which makes a volume's directory, and the store, which
//! fills it.

/// The name of the empty file that marks a volume's directory as one that is still to be filled.
/// It is there before the catalogue knows the volume and goes once the volume is whole, so that a
/// directory which was emptied later is never taken for a new volume's.
pub const NEW_VOLUME_MARK: &str = "new";
