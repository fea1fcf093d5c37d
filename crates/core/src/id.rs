//! Small number newtypes that name things. They carry no behaviour.

use core::fmt;

macro_rules! id {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(pub u32);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A volume, for the life of the data directory. Never used again after a delete.
    VolumeId
}
id! {
    /// A capacity pool, for the life of the data directory. Never used again after a delete.
    PoolId
}
id! {
    /// A snapshot of a volume; [`SnapshotId::LIVE`] is the volume as it is now.
    SnapshotId
}

impl SnapshotId {
    /// The live volume.
    pub const LIVE: Self = Self(0);
}
