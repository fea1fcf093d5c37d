//! The top directory of a volume: its owner, its group and its permissions. They are state of the
//! file system, which clients can change too.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::str::FromStr;

/// The owner, the group and the permissions of a volume's top directory.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Top {
    /// User ID of the owner.
    pub uid: u32,
    /// Name of the user with this user ID; absent if there is none.
    #[serde(default)]
    pub owner: Option<String>,
    /// Group ID.
    pub gid: u32,
    /// Name of the group with this group ID; absent if there is none.
    #[serde(default)]
    pub group: Option<String>,
    /// Permissions.
    pub mode: UnixMode,
}

/// A change of a volume's top directory; absent fields are not changed.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct TopChange {
    /// User ID of the owner; 0 is root.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub uid: Option<u32>,
    /// Name of the user who is to be the owner, instead of `uid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Group ID.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gid: Option<u32>,
    /// Name of the group, instead of `gid`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<String>,
    /// Permissions, as chmod sets them: on a directory with an access control list, the digit of
    /// the group is the mask of the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mode: Option<UnixMode>,
}

/// Permissions of a file: the low 12 bits of its mode. In JSON and on the command line, one to four
/// octal digits such as `0770`: set-user-ID (4), set-group-ID (2) and sticky (1); then read (4),
/// write (2) and execute (1) of the owner, of the group and of others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct UnixMode(u32);

/// A text is not the permissions of a file.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a mode of one to four octal digits, such as 0770")]
pub struct UnixModeError(String);

impl UnixMode {
    /// The permissions of `mode`, without its other bits.
    #[must_use]
    pub const fn of(mode: u32) -> Self {
        Self(mode & 0o7777)
    }

    /// The bits.
    #[must_use]
    pub const fn bits(self) -> u32 {
        self.0
    }
}

impl fmt::Display for UnixMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04o}", self.0)
    }
}

impl FromStr for UnixMode {
    type Err = UnixModeError;

    fn from_str(text: &str) -> Result<Self, UnixModeError> {
        let wrong = || UnixModeError(text.chars().take(64).collect());
        let octal = text.bytes().all(|byte| (b'0'..=b'7').contains(&byte));
        if !octal || !(1..=4).contains(&text.len()) {
            return Err(wrong());
        }
        u32::from_str_radix(text, 8).map(Self).map_err(|_| wrong())
    }
}

impl TryFrom<String> for UnixMode {
    type Error = UnixModeError;

    fn try_from(text: String) -> Result<Self, UnixModeError> {
        text.parse()
    }
}

impl From<UnixMode> for String {
    fn from(mode: UnixMode) -> Self {
        mode.to_string()
    }
}

#[cfg(test)]
impl schemars::JsonSchema for UnixMode {
    fn schema_name() -> std::borrow::Cow<'static, str> {
        "UnixMode".into()
    }

    fn json_schema(_: &mut schemars::SchemaGenerator) -> schemars::Schema {
        schemars::json_schema!({
            "description": "Permissions of a file in octal: set-user-ID (4), set-group-ID (2) and sticky (1); then \
                            read (4), write (2) and execute (1) of the owner, of the group and of others. In \
                            responses always four digits.",
            "type": "string",
            "pattern": "^[0-7]{1,4}$",
            "examples": ["0770"],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::VolumeChange;

    #[test]
    fn a_mode_is_octal_digits() {
        for (text, bits, shown) in [
            ("0770", 0o770, "0770"),
            ("755", 0o755, "0755"),
            ("2770", 0o2770, "2770"),
            ("0", 0, "0000"),
        ] {
            let mode: UnixMode = text.parse().unwrap();
            assert_eq!((mode.bits(), mode.to_string().as_str()), (bits, shown));
        }
        for wrong in ["", "0780", "00770", "+770", "0o770", "rwx", "-1"] {
            assert!(wrong.parse::<UnixMode>().is_err(), "{wrong}");
        }
        assert_eq!(UnixMode::of(0o40755), "0755".parse().unwrap());
    }

    #[test]
    fn a_change_in_json_has_the_mode_as_text() {
        let text = "{\"top\":{\"owner\":\"anna\",\"gid\":50,\"mode\":\"0770\"}}";
        let change: VolumeChange = serde_json::from_str(text).unwrap();
        let top = change.top.clone().unwrap();
        assert_eq!((top.owner.as_deref(), top.uid, top.gid), (Some("anna"), None, Some(50)));
        assert_eq!(serde_json::to_string(&change).unwrap(), text);
        for (wrong, told) in [
            ("{\"top\":{\"mode\":770}}", "expected a string"),
            ("{\"top\":{\"mode\":\"0o770\"}}", "not a mode of one to four octal digits"),
            ("{\"top\":{\"user\":\"anna\"}}", "unknown field `user`"),
        ] {
            let refused = serde_json::from_str::<VolumeChange>(wrong).unwrap_err().to_string();
            assert!(refused.contains(told), "{refused}");
        }
    }
}
