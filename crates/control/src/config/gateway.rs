//! `gateway.toml` in the data directory: the cluster that a server is a gateway of, and the ways to
//! it. A server whose data directory has no such file is alone.
//!
//! The file is written once, when a gateway is added to a cluster, and holds no secret: the key of
//! the cluster is a file of its own. Not here: the settings of `weir serve`, which are the same for
//! all servers, and whatever the gateways of a cluster share.

use serde::{Deserialize, Serialize};
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::SocketAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use toml::de::{DeTable, DeValue};
use weir_catalog::Ceph;

/// The name of the file in a data directory.
const FILE: &str = "gateway.toml";
/// The name under which it is written before it is complete.
const NEW: &str = "gateway.toml.new";
/// The version of its format.
const VERSION: u32 = 1;
/// Longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 64 << 10;
/// Longest name of a cluster or a gateway, in characters: that of the catalogue.
const NAME_CHARS_MAX: usize = 64;
/// Most members of etcd that are tried.
const ENDPOINTS_MAX: usize = 16;
/// Longest name of a network interface, in bytes (Linux, `IFNAMSIZ`).
const INTERFACE_BYTES_MAX: usize = 15;

/// A gateway's place in its cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GatewayConfig {
    /// `cluster`: the name of the cluster.
    pub cluster: String,
    /// `gateway`: the name of this gateway.
    pub gateway: String,
    /// `number`: the number of this gateway, from 1.
    pub number: u16,
    /// `key`: the key file of the cluster.
    pub key: PathBuf,
    /// `links`: the address at which other gateways reach this one.
    pub links: SocketAddr,
    /// `etcd`: the store that the gateways share.
    pub etcd: EtcdConfig,
    /// `helper`: the helper on this machine.
    pub helper: HelperConfig,
    /// `addresses`: the addresses of the cluster on this machine.
    pub addresses: AddressesConfig,
    /// `ceph`: the Ceph cluster in which the gateway's sessions are.
    pub ceph: CephConfig,
}

/// The section `etcd`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EtcdConfig {
    /// `endpoints`: URLs of the members, such as `https://10.0.1.11:2379`.
    pub endpoints: Vec<String>,
    /// `ca`: certificates that verify the members, PEM; needed for https.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ca: Option<PathBuf>,
    /// `cert`: the certificate of this gateway, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert: Option<PathBuf>,
    /// `cert_key`: the private key of that certificate, PEM.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cert_key: Option<PathBuf>,
}

/// The section `helper`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HelperConfig {
    /// `socket`: the Unix socket of the helper on this machine.
    pub socket: PathBuf,
    /// `links`: the address at which other gateways reach the helper of this machine.
    pub links: SocketAddr,
}

/// The section `addresses`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddressesConfig {
    /// `interface`: the network interface that the addresses are added to.
    pub interface: String,
}

/// The section `ceph`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CephConfig {
    /// `conf`: the configuration file of Ceph.
    pub conf: PathBuf,
    /// `user`: the user of Ceph, without the prefix `client.`; by default that of Ceph's tools.
    #[serde(default = "ceph_user")]
    pub user: String,
}

fn ceph_user() -> String {
    Ceph::USER.to_owned()
}

/// The file cannot be used or written.
#[derive(Debug, thiserror::Error)]
pub enum GatewayConfigError {
    /// The file cannot be read or written.
    #[error("{}: {source}", path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The file is too long.
    #[error("{} is larger than {FILE_BYTES_MAX} bytes", .0.display())]
    TooLarge(PathBuf),
    /// A line of the file is wrong, or something is missing.
    #[error("{}:{line}: {message}", path.display())]
    Invalid {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The fault, and a valid value.
        message: String,
    },
    /// A value that is to be written is wrong.
    #[error("{key}: {reason}")]
    Value {
        /// The key, with its section.
        key: &'static str,
        /// The fault, and a valid value.
        reason: String,
    },
    /// The data directory is that of a gateway already.
    #[error("{} exists: this data directory is that of a gateway already", .0.display())]
    Exists(PathBuf),
}

type Result<T> = std::result::Result<T, GatewayConfigError>;
/// The key with a wrong value, and the fault with a valid value.
type Checked = std::result::Result<(), (&'static str, String)>;

impl GatewayConfig {
    /// The configuration in the data directory `directory`; nothing if the server is alone.
    ///
    /// # Errors
    /// The file cannot be read, is of a later version, or is wrong: with the line.
    pub fn read(directory: &Path) -> Result<Option<Self>> {
        let path = directory.join(FILE);
        let fault = |source| GatewayConfigError::Io { path: path.clone(), source };
        let file = match File::open(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
            opened => opened.map_err(fault)?,
        };
        let mut text = String::new();
        let count = file.take(FILE_BYTES_MAX + 1).read_to_string(&mut text).map_err(fault)?;
        if u64::try_from(count).is_ok_and(|count| count > FILE_BYTES_MAX) {
            return Err(GatewayConfigError::TooLarge(path));
        }
        Self::parse(&path, &text).map(Some)
    }

    /// Writes the configuration to the data directory `directory`, which has none. The file is
    /// there either whole or not at all, and stays after a power cut.
    ///
    /// # Errors
    /// `Value`, `Exists`, `Io`.
    pub fn write(&self, directory: &Path) -> Result<()> {
        self.validate()?;
        let (path, new) = (directory.join(FILE), directory.join(NEW));
        let written = || {
            let text = toml::to_string(self).map_err(io::Error::other)?;
            let mut options = OpenOptions::new();
            options.write(true).create(true).truncate(true).mode(0o600);
            let mut file = options.open(&new)?;
            write!(file, "version = {VERSION}\n{text}")?;
            file.sync_all()?;
            // Unlike a rename, this replaces no file.
            let linked = std::fs::hard_link(&new, &path);
            std::fs::remove_file(&new)?;
            linked?;
            File::open(directory)?.sync_all()
        };
        written().map_err(|source| match source.kind() {
            ErrorKind::AlreadyExists => GatewayConfigError::Exists(path.clone()),
            _ => GatewayConfigError::Io { path: path.clone(), source },
        })
    }

    /// Checks the values as [`GatewayConfig::write`] does.
    ///
    /// # Errors
    /// `Value`.
    pub fn validate(&self) -> Result<()> {
        self.check().map_err(|(key, reason)| GatewayConfigError::Value { key, reason })
    }

    fn parse(path: &Path, text: &str) -> Result<Self> {
        let invalid = |at: Option<usize>, message: String| {
            let before = text.as_bytes().iter().take(at.unwrap_or(0));
            let line = 1 + before.filter(|byte| **byte == b'\n').count();
            GatewayConfigError::Invalid { path: path.to_owned(), line, message }
        };
        let fault = |error: toml::de::Error| {
            invalid(error.span().map(|span| span.start), error.message().to_owned())
        };
        let mut table = DeTable::parse(text).map_err(fault)?;
        let (at, version) = (place(table.get_ref(), "version"), table.get_mut().remove("version"));
        let found = match version.as_ref().map(toml::Spanned::get_ref) {
            Some(DeValue::Integer(number)) => u32::from_str_radix(number.as_str(), number.radix()),
            _ => return Err(invalid(at, format!("\"version\" is missing: use {VERSION}"))),
        };
        if found != Ok(VERSION) {
            let told = format!(
                "this version of Weir does not know this version of the file; it supports {VERSION}"
            );
            return Err(invalid(at, told));
        }
        let places = table.clone();
        let config = Self::deserialize(toml::Deserializer::from(table)).map_err(fault)?;
        match config.check() {
            Ok(()) => Ok(config),
            Err((key, reason)) => {
                Err(invalid(place(places.get_ref(), key), format!("{key}: {reason}")))
            }
        }
    }

    fn check(&self) -> Checked {
        for (key, name) in [("cluster", &self.cluster), ("gateway", &self.gateway)] {
            check_name(key, name)?;
        }
        if self.number == 0 {
            return Err(("number", "gateways are numbered from 1".to_owned()));
        }
        for (key, address) in [("links", self.links), ("helper.links", self.helper.links)] {
            let ip = address.ip();
            if address.port() == 0 || ip.is_unspecified() || ip.is_multicast() {
                let told = "other gateways must be able to connect to it: use ADDRESS:PORT";
                return Err((key, told.to_owned()));
            }
        }
        if self.helper.links == self.links {
            let told = "the helper needs an address of its own: use another port than \"links\"";
            return Err(("helper.links", told.to_owned()));
        }
        let interface = &self.addresses.interface;
        let is_name = (1..=INTERFACE_BYTES_MAX).contains(&interface.len())
            && interface.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'/');
        if !is_name || [".", ".."].contains(&interface.as_str()) {
            let told = format!(
                "{interface:?} is not a network interface: use 1 to {INTERFACE_BYTES_MAX} characters, such as eth0"
            );
            return Err(("addresses.interface", told));
        }
        if self.ceph.user.is_empty() || self.ceph.user.starts_with("client.") {
            return Err(("ceph.user", "use a name without the prefix \"client.\"".to_owned()));
        }
        self.check_paths()?;
        self.etcd.check()
    }

    fn check_paths(&self) -> Checked {
        let EtcdConfig { ca, cert, cert_key, .. } = &self.etcd;
        let paths = [
            ("key", Some(&self.key)),
            ("etcd.ca", ca.as_ref()),
            ("etcd.cert", cert.as_ref()),
            ("etcd.cert_key", cert_key.as_ref()),
            ("helper.socket", Some(&self.helper.socket)),
            ("ceph.conf", Some(&self.ceph.conf)),
        ];
        match paths.into_iter().find(|(_, path)| path.is_some_and(|path| !path.is_absolute())) {
            None => Ok(()),
            Some((key, _)) => Err((key, "use an absolute path".to_owned())),
        }
    }
}

impl EtcdConfig {
    fn check(&self) -> Checked {
        if !(1..=ENDPOINTS_MAX).contains(&self.endpoints.len()) {
            return Err(("etcd.endpoints", format!("use 1 to {ENDPOINTS_MAX} URLs")));
        }
        let https = |url: &String| url.starts_with("https://");
        for url in &self.endpoints {
            let rest = url.strip_prefix("https://").or_else(|| url.strip_prefix("http://"));
            let parts = rest.and_then(|rest| rest.rsplit_once(':'));
            let is_good = parts.is_some_and(|(host, port)| {
                let plain = |byte: u8| byte.is_ascii_alphanumeric() || b".-_:[]".contains(&byte);
                !host.is_empty()
                    && host.bytes().all(plain)
                    && port.bytes().all(|digit| digit.is_ascii_digit())
                    && port.parse::<u16>().is_ok_and(|port| port > 0)
            });
            if !is_good {
                let told = format!("{url:?} is not http://HOST:PORT or https://HOST:PORT");
                return Err(("etcd.endpoints", told));
            }
        }
        let secure = self.endpoints.iter().filter(|url| https(url)).count();
        let told = |key, told: &str| Err((key, told.to_owned()));
        if secure != 0 && secure != self.endpoints.len() {
            return told("etcd.endpoints", "use https:// for all members, or http:// for all");
        }
        match (secure > 0, &self.ca, &self.cert, &self.cert_key) {
            (true, None, ..) => {
                told("etcd.endpoints", "https:// needs \"ca\", the certificates that verify etcd")
            }
            (true, Some(_), Some(_), None) => told("etcd.cert", "\"cert_key\" is missing"),
            (true, Some(_), None, Some(_)) => told("etcd.cert_key", "\"cert\" is missing"),
            (false, Some(_), ..) => told("etcd.ca", "http:// has no certificates"),
            (false, None, Some(_), _) => told("etcd.cert", "http:// has no certificates"),
            (false, None, None, Some(_)) => told("etcd.cert_key", "http:// has no certificates"),
            _ => Ok(()),
        }
    }
}

fn check_name(key: &'static str, name: &str) -> Checked {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let begins_well = name.bytes().next().is_some_and(|byte| byte.is_ascii_alphanumeric());
    if begins_well && name.len() <= NAME_CHARS_MAX && name.bytes().all(plain) {
        return Ok(());
    }
    let name: String = name.chars().take(NAME_CHARS_MAX).collect();
    let told = format!(
        "{name:?} is not a valid name: use 1 to {NAME_CHARS_MAX} characters of A-Z a-z 0-9 . _ -, starting with a letter or digit"
    );
    Err((key, told))
}

/// The place of a key in the file, or of the section that should have it.
fn place(table: &DeTable<'_>, key: &str) -> Option<usize> {
    let (first, rest) = match key.split_once('.') {
        Some((first, rest)) => (first, Some(rest)),
        None => (key, None),
    };
    let (name, value) = table.iter().find(|(name, _)| name.get_ref() == first)?;
    let here = name.span().start;
    match (rest, value.get_ref()) {
        (Some(rest), DeValue::Table(inner)) => place(inner, rest).or(Some(here)),
        _ => Some(here),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    const WHOLE: &str = r#"version = 1
cluster = "nas"
gateway = "g1"
number = 1
key = "/var/lib/weir/cluster.key"
links = "10.0.1.1:7450"

[etcd]
endpoints = ["https://10.0.1.11:2379", "https://etcd2.example:2379"]
ca = "/etc/weir/etcd-ca.pem"
cert = "/etc/weir/etcd.pem"
cert_key = "/etc/weir/etcd.key"

[helper]
socket = "/run/weir/helper.sock"
links = "10.0.1.1:7451"

[addresses]
interface = "eth0"

[ceph]
conf = "/etc/ceph/ceph.conf"
user = "weir"
"#;

    fn parse(text: &str) -> Result<GatewayConfig> {
        GatewayConfig::parse(Path::new("gateway.toml"), text)
    }

    /// The file with `from` as `to`.
    fn with(from: &str, to: &str) -> String {
        assert_eq!(WHOLE.matches(from).count(), 1, "{from}");
        WHOLE.replace(from, to)
    }

    #[test]
    fn a_file_is_read_back_as_it_was_written_and_replaces_none() {
        let base = tempfile::tempdir().unwrap();
        assert_eq!(GatewayConfig::read(base.path()).unwrap(), None, "a server alone");
        let config = parse(WHOLE).unwrap();
        assert_eq!((config.number, config.ceph.user.as_str()), (1, "weir"));
        config.write(base.path()).unwrap();
        assert_eq!(GatewayConfig::read(base.path()).unwrap().as_ref(), Some(&config));
        let path = base.path().join(FILE);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        let again = GatewayConfig { number: 2, ..config.clone() }.write(base.path()).unwrap_err();
        assert!(matches!(again, GatewayConfigError::Exists(_)), "{again}");
        assert_eq!(GatewayConfig::read(base.path()).unwrap(), Some(config));
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn a_wrong_value_is_not_written() {
        let base = tempfile::tempdir().unwrap();
        let config = GatewayConfig { number: 0, ..parse(WHOLE).unwrap() };
        let refused = config.write(base.path()).unwrap_err().to_string();
        assert_eq!(refused, "number: gateways are numbered from 1");
        assert_eq!(std::fs::read_dir(base.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_is_not_given_has_a_default_where_there_is_one() {
        let text = with("user = \"weir\"\n", "");
        assert_eq!(parse(&text).unwrap().ceph.user, "admin");
        let plain = with("cert = \"/etc/weir/etcd.pem\"\n", "");
        let plain = plain.replace("cert_key = \"/etc/weir/etcd.key\"\n", "");
        assert_eq!(parse(&plain).unwrap().etcd.cert, None);
    }

    #[test]
    fn each_fault_is_named_with_its_line() {
        let refused = [
            ("version = 1\n", "", ":1: \"version\" is missing: use 1"),
            ("version = 1", "version = 2", ":1: this version of Weir does not know"),
            ("version = 1", "version = \"1\"", ":1: \"version\" is missing"),
            ("cluster = \"nas\"", "cluster = \"a/b\"", ":2: cluster: \"a/b\" is not a valid name"),
            ("gateway = \"g1\"", "gateway = \"-g\"", ":3: gateway: \"-g\" is not a valid name"),
            ("number = 1", "number = 0", ":4: number: gateways are numbered from 1"),
            ("number = 1", "number = 65536", ":4: "),
            ("key = \"/var/lib/weir/cluster.key\"", "key = \"k\"", ":5: key: use an absolute path"),
            ("10.0.1.1:7450", "10.0.1.1", ":6: "),
            ("10.0.1.1:7450", "0.0.0.0:7450", ":6: links: other gateways must be able"),
            ("10.0.1.1:7450", "224.0.0.1:7450", ":6: links: other gateways must be able"),
            ("10.0.1.1:7451", "10.0.1.1:0", ":16: helper.links: other gateways must be able"),
            ("10.0.1.1:7451", "10.0.1.1:7450", ":16: helper.links: the helper needs an address"),
            ("links = \"10.0.1.1:7451\"\n", "", "missing field `links`"),
            ("links = \"10.0.1.1:7450\"", "linkz = 1", ":6: unknown field `linkz`"),
            ("ca = ", "ca_file = ", ":10: unknown field `ca_file`"),
            ("\"https://10.0.1.11:2379\", ", "\"10.0.1.11:2379\", ", ":9: etcd.endpoints: "),
            ("\"https://10.0.1.11:2379\", ", "\"https://a:0\", ", ":9: etcd.endpoints: "),
            ("\"https://10.0.1.11:2379\", ", "\"http://a:1\", ", ":9: etcd.endpoints: use https"),
            ("ca = \"/etc/weir/etcd-ca.pem\"\n", "", ":9: etcd.endpoints: https:// needs \"ca\""),
            ("cert = \"/etc/weir/etcd.pem\"\n", "", ":11: etcd.cert_key: \"cert\" is missing"),
            ("cert_key = \"/etc/weir/etcd.key\"\n", "", ":11: etcd.cert: \"cert_key\" is missing"),
            ("eth0", "eth0/1", ":19: addresses.interface: "),
            ("eth0", "sixteen-letters!", ":19: addresses.interface: "),
            ("user = \"weir\"", "user = \"client.weir\"", ":23: ceph.user: use a name without"),
            ("conf = \"/etc/ceph/ceph.conf\"\n", "", "missing field `conf`"),
            ("[helper]\n", "", ":15: unknown field `links`"),
            ("[ceph]", "[ceph", ":21: "),
        ];
        for (from, to, told) in refused {
            let refused = parse(&with(from, to)).unwrap_err().to_string();
            assert!(refused.contains(told), "{to:?}: {refused}");
        }
    }

    #[test]
    fn http_has_no_certificates() {
        let text = WHOLE.replace("https://", "http://");
        assert!(parse(&text).unwrap_err().to_string().contains(":10: etcd.ca: http:// has no"));
        let bare: String = text
            .lines()
            .filter(|line| !line.contains("/etc/weir/"))
            .fold(String::new(), |text, line| text + line + "\n");
        assert!(parse(&bare).is_ok());
    }

    #[test]
    fn a_file_that_is_too_long_is_not_read() {
        let base = tempfile::tempdir().unwrap();
        let long = "#".repeat(usize::try_from(FILE_BYTES_MAX).unwrap() + 1);
        std::fs::write(base.path().join(FILE), long).unwrap();
        let refused = GatewayConfig::read(base.path()).unwrap_err();
        assert!(matches!(refused, GatewayConfigError::TooLarge(_)), "{refused}");
    }
}
