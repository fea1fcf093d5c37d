//! The keys of rows.

#[cfg(feature = "client")]
use weir_cluster::Life;
use weir_cluster::{GatewayId, GroupId};

/// Longest name of a cluster, in bytes.
const NAME_BYTES_MAX: usize = 63;

/// The rows that have keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Key {
    Generation,
    Format,
    Gateway(GatewayId),
    Group(GroupId),
    Life(GatewayId),
    Knows(GatewayId),
}

/// The keys of one cluster. Several clusters may share an etcd.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keys {
    prefix: String,
}

/// A text that can't be the name of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the name of a cluster has 1 to 63 lower-case letters, digits and hyphens")]
pub struct InvalidPrefix;

impl Keys {
    /// The keys of the cluster `name`: they begin with `/weir/NAME/`.
    ///
    /// # Errors
    /// The name is empty, too long, or has other characters than lower-case letters, digits and
    /// hyphens.
    pub fn new(name: &str) -> Result<Self, InvalidPrefix> {
        let allowed = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        if name.is_empty() || name.len() > NAME_BYTES_MAX || !name.bytes().all(allowed) {
            return Err(InvalidPrefix);
        }
        Ok(Self { prefix: format!("/weir/{name}/cluster/") })
    }

    /// The begin of all keys of the records.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// The row that lives as long as the lease of `life`: its key and its value.
    #[cfg(feature = "client")]
    #[must_use]
    pub fn life_row(&self, life: Life) -> (String, String) {
        (self.text(Key::Life(life.gateway)), life.number.to_string())
    }

    pub(crate) fn text(&self, key: Key) -> String {
        let prefix = &self.prefix;
        match key {
            Key::Generation => format!("{prefix}generation"),
            Key::Format => format!("{prefix}format"),
            Key::Gateway(gateway) => format!("{prefix}gateway/{:05}", gateway.0),
            Key::Group(group) => format!("{prefix}group/{:010}", group.0),
            Key::Life(gateway) => format!("{prefix}life/{:05}", gateway.0),
            Key::Knows(gateway) => format!("{prefix}knows/{:05}", gateway.0),
        }
    }

    /// The key in `text`, if it is one of this cluster's and in the form in which they are written.
    pub(crate) fn parse(&self, text: &[u8]) -> Option<Key> {
        let text = std::str::from_utf8(text).ok()?;
        let below = text.strip_prefix(&self.prefix)?;
        let key = match below.split_once('/') {
            None if below == "generation" => Key::Generation,
            None if below == "format" => Key::Format,
            Some(("gateway", number)) => Key::Gateway(GatewayId(number.parse().ok()?)),
            Some(("group", number)) => Key::Group(GroupId(number.parse().ok()?)),
            Some(("life", number)) => Key::Life(GatewayId(number.parse().ok()?)),
            Some(("knows", number)) => Key::Knows(GatewayId(number.parse().ok()?)),
            _ => return None,
        };
        // No row has two keys.
        (self.text(key) == text).then_some(key)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_read_as_they_were_written() {
        let keys = Keys::new("prod-1").unwrap();
        let all = [
            Key::Generation,
            Key::Format,
            Key::Gateway(GatewayId(0)),
            Key::Gateway(GatewayId(u16::MAX)),
            Key::Group(GroupId(u32::MAX)),
            Key::Life(GatewayId(7)),
            Key::Knows(GatewayId(7)),
        ];
        for key in all {
            assert_eq!(keys.parse(keys.text(key).as_bytes()), Some(key));
        }
        assert_eq!(keys.text(Key::Gateway(GatewayId(7))), "/weir/prod-1/cluster/gateway/00007");
        assert_eq!(keys.text(Key::Group(GroupId(12))), "/weir/prod-1/cluster/group/0000000012");
    }

    #[test]
    fn other_keys_are_none_of_the_cluster() {
        let keys = Keys::new("a").unwrap();
        let below = [
            "",
            "gateway",
            "gateway/",
            "gateway/7",
            "gateway/+0007",
            "gateway/00007/x",
            "gateway/70000",
            "other/00007",
            "generation/1",
        ];
        for below in below {
            let text = format!("/weir/a/cluster/{below}");
            assert_eq!(keys.parse(text.as_bytes()), None, "{text}");
        }
        assert_eq!(keys.parse(b"/weir/b/cluster/generation"), None);
        assert_eq!(keys.parse(b"/weir/a/cluster/\xff"), None);
    }

    #[test]
    fn names_of_clusters_are_plain() {
        for name in ["", "A", "a/b", "a b", "ä", &"a".repeat(64)] {
            assert_eq!(Keys::new(name), Err(InvalidPrefix), "{name:?}");
        }
    }
}
