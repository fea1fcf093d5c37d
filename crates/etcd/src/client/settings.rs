//! The settings of a connection: members of etcd, and the files with secrets.

use etcd_client::{Certificate, ConnectOptions, Identity, TlsOptions};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Most members of an etcd that a connection knows.
const MEMBERS_MAX: usize = 16;
/// Longest file with a certificate, a key or a password, in bytes.
const FILE_BYTES_MAX: u64 = 1 << 20;
/// Time for a connection to a member.
const CONNECT_WITHIN: Duration = Duration::from_secs(1);
/// An open call is accompanied by a ping this often. etcd closes connections that ping more often
/// than every 5 s.
const PING_EVERY: Duration = Duration::from_secs(6);
/// Time for the answer to a ping.
const PING_WITHIN: Duration = Duration::from_secs(2);

/// The members of an etcd, and the proof towards them.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The addresses of the members for clients, such as `https://192.0.2.1:2379`. Without a scheme
    /// it is `https` if there are settings for TLS, and `http` otherwise.
    pub endpoints: Vec<String>,
    /// TLS, for endpoints with `https`.
    pub tls: Option<Tls>,
    /// The user of etcd, if it has users.
    pub login: Option<Login>,
}

/// Settings of TLS. All files are in PEM.
#[derive(Clone, Debug)]
pub struct Tls {
    /// The file with the certificates of the authorities of etcd's members.
    pub authority: PathBuf,
    /// The files with this gateway's certificate and its key, if etcd asks clients for one.
    pub identity: Option<(PathBuf, PathBuf)>,
}

/// A user of etcd.
#[derive(Clone, Debug)]
pub struct Login {
    /// The name.
    pub user: String,
    /// The file with the password. A line break at its end does not belong to it.
    pub password_file: PathBuf,
}

/// Settings that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SettingsError {
    /// There are no endpoints, or too many.
    #[error("an etcd has 1 to {MEMBERS_MAX} endpoints; there are {0}")]
    Endpoints(usize),
    /// Text that is no endpoint.
    #[error("{0:?} is no endpoint of etcd: write http://HOST:PORT or https://HOST:PORT")]
    Endpoint(String),
    /// An endpoint that does not fit the settings of TLS.
    #[error("the endpoint {0:?} and the settings of TLS do not fit: https needs an authority file")]
    Scheme(String),
    /// A file cannot be read.
    #[error("the file {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The error of the file system.
        source: io::Error,
    },
}

/// An endpoint with the options for its connection.
pub(super) struct Endpoint {
    pub(super) address: String,
    pub(super) options: ConnectOptions,
}

impl Settings {
    /// The endpoints. Reads the files.
    pub(super) fn endpoints(&self) -> Result<Vec<Endpoint>, SettingsError> {
        if self.endpoints.is_empty() || self.endpoints.len() > MEMBERS_MAX {
            return Err(SettingsError::Endpoints(self.endpoints.len()));
        }
        let options = self.options()?;
        let endpoint = |text: &String| {
            let scheme = if self.tls.is_some() { "https" } else { "http" };
            let address =
                if text.contains("://") { text.clone() } else { format!("{scheme}://{text}") };
            let (found, host) = address.split_once("://").unwrap_or_default();
            let is_plain = host.rsplit_once(':').is_some_and(|(name, port)| {
                !name.is_empty() && !name.contains(['/', '@', ' ']) && port.parse::<u16>().is_ok()
            });
            if !is_plain || !matches!(found, "http" | "https") {
                return Err(SettingsError::Endpoint(text.clone()));
            }
            if found != scheme {
                return Err(SettingsError::Scheme(text.clone()));
            }
            Ok(Endpoint { address, options: options.clone() })
        };
        self.endpoints.iter().map(endpoint).collect()
    }

    fn options(&self) -> Result<ConnectOptions, SettingsError> {
        let mut options = ConnectOptions::new()
            .with_connect_timeout(CONNECT_WITHIN)
            .with_keep_alive(PING_EVERY, PING_WITHIN)
            .with_keep_alive_while_idle(false)
            .with_require_leader(true);
        if let Some(tls) = &self.tls {
            let authority = Certificate::from_pem(read(&tls.authority)?);
            let mut secured = TlsOptions::new().ca_certificate(authority);
            if let Some((certificate, key)) = &tls.identity {
                secured = secured.identity(Identity::from_pem(read(certificate)?, read(key)?));
            }
            options = options.with_tls(secured);
        }
        if let Some(login) = &self.login {
            let password = String::from_utf8(read(&login.password_file)?);
            let password = password.map_err(|_| SettingsError::File {
                path: login.password_file.clone(),
                source: io::Error::new(io::ErrorKind::InvalidData, "the password is not UTF-8"),
            })?;
            let password = password.trim_end_matches(['\r', '\n']);
            options = options.with_user(&login.user, password).with_auto_token_refresh(true);
        }
        Ok(options)
    }
}

fn read(path: &Path) -> Result<Vec<u8>, SettingsError> {
    let mut bytes = Vec::new();
    let reading =
        File::open(path).and_then(|file| file.take(FILE_BYTES_MAX).read_to_end(&mut bytes));
    reading.map_err(|source| SettingsError::File { path: path.into(), source })?;
    Ok(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn addresses(endpoint: &str, tls: Option<Tls>) -> Result<String, SettingsError> {
        let settings = Settings { endpoints: vec![endpoint.to_owned()], tls, login: None };
        Ok(settings.endpoints()?.remove(0).address)
    }

    #[test]
    fn endpoints_are_hosts_with_ports_and_a_scheme_that_fits() {
        let directory = tempfile::tempdir().unwrap();
        let authority = directory.path().join("ca.pem");
        std::fs::write(&authority, "").unwrap();
        let tls = || Some(Tls { authority: authority.clone(), identity: None });
        assert_eq!(addresses("a:2379", None).unwrap(), "http://a:2379");
        assert_eq!(addresses("a:2379", tls()).unwrap(), "https://a:2379");
        assert_eq!(addresses("https://[::1]:2379", tls()).unwrap(), "https://[::1]:2379");
        for wrong in ["", "a", "a:x", ":2379", "ftp://a:1", "http://a:1/x", "http://u@a:1"] {
            let error = addresses(wrong, None).unwrap_err();
            assert!(matches!(error, SettingsError::Endpoint(_)), "{wrong}: {error}");
        }
        for (wrong, tls) in [("https://a:1", None), ("http://a:1", tls())] {
            let error = addresses(wrong, tls).unwrap_err();
            assert!(matches!(error, SettingsError::Scheme(_)), "{wrong}: {error}");
        }
        let none = Settings::default().endpoints().err().unwrap();
        assert!(matches!(none, SettingsError::Endpoints(0)));
    }

    #[test]
    fn a_file_that_is_missing_is_named() {
        let login = Login { user: "weir".to_owned(), password_file: "/nonexistent/pw".into() };
        let endpoints = vec!["a:1".to_owned()];
        let settings = Settings { endpoints, tls: None, login: Some(login) };
        let error = settings.endpoints().err().unwrap().to_string();
        assert!(error.contains("/nonexistent/pw"), "{error}");
    }
}
