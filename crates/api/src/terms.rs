//! The terms of a volume: its settings beside quota and pool, which are fields of the volume in
//! JSON.

use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize};

/// The terms of a volume.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Terms {
    /// Assigned throughput, in pools with an individual throughput per volume. In a shared pool:
    /// guaranteed minimum.
    pub throughput_bytes_per_second: Option<u64>,
    /// Weight relative to the other volumes of a shared pool.
    #[serde(default)]
    pub weight: Option<u32>,
    /// IOPS limit (custom and provisioned-v2 pools). If absent, in a custom pool the pool's IOPS
    /// are allocated in proportion to throughput.
    #[serde(default)]
    pub iops: Option<u64>,
    /// Throughput ceiling, independent of the contract; absent if there is none.
    #[serde(default)]
    pub max_throughput_bytes_per_second: Option<u64>,
    /// IOPS ceiling; absent if there is none.
    #[serde(default)]
    pub max_iops: Option<u64>,
    /// Throughput ceiling of each file; absent if there is none.
    #[serde(default)]
    pub max_file_throughput_bytes_per_second: Option<u64>,
    /// IOPS ceiling of each file; absent if there is none.
    #[serde(default)]
    pub max_file_iops: Option<u64>,
    /// Whether the server caches names and attributes of the volume in memory; absent if the
    /// configuration of the server (`metadata_cache`) decides.
    #[serde(default)]
    pub metadata_cache: Option<bool>,
}

/// The terms of a volume to create or to change. An absent field is the default of a new volume,
/// and no change of an existing one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TermsChange {
    /// Throughput limit, only in pools with an individual throughput per volume. In a shared pool:
    /// guaranteed minimum; zero for none, the default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throughput_bytes_per_second: Option<u64>,
    /// IOPS limit (custom and provisioned-v2 pools). `null` is the default: in a custom pool, a
    /// share of the pool's IOPS in proportion to throughput.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub iops: Option<Option<u64>>,
    /// Throughput ceiling, independent of the contract; `null` for none, the default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub max_throughput_bytes_per_second: Option<Option<u64>>,
    /// IOPS ceiling; `null` for none, the default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub max_iops: Option<Option<u64>>,
    /// Throughput ceiling of each file, at least 1 MiB/s; `null` for none, the default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub max_file_throughput_bytes_per_second: Option<Option<u64>>,
    /// IOPS ceiling of each file, at least 10; `null` for none, the default.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub max_file_iops: Option<Option<u64>>,
    /// Whether the server caches names and attributes of the volume in memory; `null`, the default,
    /// for the configuration of the server.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    pub metadata_cache: Option<Option<bool>>,
    /// Weight relative to the other volumes of a shared pool, 1 to 1,000. Default: 100.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub weight: Option<u32>,
}

/// Reads flattened fields. An error names the field, which is lost without this.
pub(crate) fn flat<'de, D, T>(from: D) -> Result<T, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    serde_path_to_error::deserialize(from).map_err(D::Error::custom)
}

/// Distinguishes `null` from an absent field.
pub(crate) fn present<'de, D, T>(from: D) -> Result<Option<Option<T>>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    Option::deserialize(from).map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{NewVolume, SharingChange, VolumeChange};

    #[test]
    fn no_ceiling_is_not_the_same_as_an_absent_field() {
        let read = |text: &str| serde_json::from_str::<VolumeChange>(text).unwrap().terms;
        assert_eq!(read("{}").max_iops, None);
        assert_eq!(read("{\"max_iops\":null}").max_iops, Some(None));
        assert_eq!(read("{\"max_iops\":7}").max_iops, Some(Some(7)));
        let terms = TermsChange { max_iops: Some(None), ..TermsChange::default() };
        let removed = VolumeChange { terms, ..VolumeChange::default() };
        assert_eq!(serde_json::to_string(&removed).unwrap(), "{\"max_iops\":null}");
    }

    #[test]
    fn an_error_names_the_field() {
        for (text, named) in [
            ("{\"max_iops\":\"x\"}", "max_iops: invalid type"),
            ("{\"weight\":-1}", "weight: invalid value"),
            ("{\"smb_hidden\":1}", "smb_hidden: invalid type"),
            ("{\"protocols\":[\"ftp\"]}", "protocols[0]: unknown variant"),
        ] {
            let refused = serde_json::from_str::<VolumeChange>(text).unwrap_err().to_string();
            assert!(refused.starts_with(named), "{refused}");
        }
    }

    #[test]
    fn the_json_of_a_volume_is_flat_and_unknown_fields_are_refused() {
        let terms = TermsChange { weight: Some(7), ..TermsChange::default() };
        let sharing = SharingChange { smb_abe: Some(true), ..SharingChange::default() };
        let new = NewVolume {
            name: "v".into(),
            pool: "p".into(),
            quota_bytes: 1,
            address: None,
            top: None,
            terms,
            sharing,
        };
        let text =
            "{\"name\":\"v\",\"pool\":\"p\",\"quota_bytes\":1,\"weight\":7,\"smb_abe\":true}";
        assert_eq!(serde_json::to_string(&new).unwrap(), text);
        assert_eq!(serde_json::from_str::<NewVolume>(text).unwrap(), new);
        for unknown in ["{\"quota\":1}", "{\"terms\":{}}", "{\"live\":null}"] {
            let refused = serde_json::from_str::<VolumeChange>(unknown).unwrap_err().to_string();
            assert!(refused.contains("unknown field `"), "{unknown}: {refused}");
        }
    }
}
