//! The ceilings that can be out of bounds, with their fields and the message for one that is.

use weir_core::units::Rate;
use weir_qos::rate::Iops;

/// A ceiling that a request sets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CeilingOf {
    /// The rate of a volume.
    VolumeRate,
    /// The operations of a volume.
    VolumeIops,
    /// The rate of each file of a volume.
    FileRate,
    /// The operations of each file of a volume.
    FileIops,
    /// The rate of each volume at a service level.
    Level,
}

impl CeilingOf {
    /// The field of a request that has the ceiling.
    #[must_use]
    pub const fn field(self) -> &'static str {
        match self {
            Self::VolumeRate => "max_throughput_bytes_per_second",
            Self::VolumeIops => "max_iops",
            Self::FileRate => "max_file_throughput_bytes_per_second",
            Self::FileIops => "max_file_iops",
            Self::Level => "volume_ceiling_bytes_per_second",
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::VolumeRate => "the throughput ceiling of the volume",
            Self::VolumeIops => "the IOPS ceiling of the volume",
            Self::FileRate => "the throughput ceiling of each file",
            Self::FileIops => "the IOPS ceiling of each file",
            Self::Level => "the volume ceiling of the level",
        }
    }

    /// The message for a ceiling that is not between `least` and `most`.
    pub(super) fn out_of_bounds(self, asked: u64, least: u64, most: u64) -> String {
        let [asked, least, most] = match self {
            Self::VolumeRate | Self::FileRate | Self::Level => {
                [Rate(asked).to_string(), Rate(least).at_least(), Rate(most).at_most()]
            }
            Self::VolumeIops | Self::FileIops => {
                [asked, least, most].map(|iops| Iops(iops).to_string())
            }
        };
        format!("{} cannot be {asked}: the range is {least} to {most}, or none", self.name())
    }
}
