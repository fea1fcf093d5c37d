//! TLS of the API over TCP: the certificate, which is the operator's or one of our own, and what it
//! is known by. Not who may ask: that is decided by tokens, on every listener alike.
//!
//! The certificate of our own proves nothing by a chain of authorities: clients know it by its
//! fingerprint, the SHA-256 of its DER.

use crate::config::{ApiTls, ServerConfig};
use crate::sync::Arc;
use arc_swap::ArcSwap;
use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use std::fs::{File, OpenOptions};
use std::io::{self, ErrorKind, Read, Write};
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use tokio_rustls::TlsAcceptor;
use weir_api::Fingerprint;

/// Largest file with a certificate or a key that is read, in bytes.
const PEM_BYTES_MAX: u64 = 1 << 20;
/// The file of the data directory with the certificate of our own and its key.
const OWN: &str = "api.pem";

/// The certificate in force, and where it comes from.
#[derive(Debug)]
pub(super) struct Tls {
    files: Files,
    current: Arc<Current>,
    acceptor_config: Arc<rustls::ServerConfig>,
}

#[derive(Debug)]
struct Files {
    certificate: PathBuf,
    key: PathBuf,
}

/// The certificate of handshakes.
#[derive(Debug)]
struct Current(ArcSwap<CertifiedKey>);

impl ResolvesServerCert for Current {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.0.load_full())
    }
}

impl Tls {
    /// The certificate that `config` names, or else the one in the data directory `directory`, made
    /// for `addresses` if there is none yet.
    ///
    /// # Errors
    /// A file can't be read or made, holds no certificate or key, or the two don't belong together.
    pub(super) fn open(
        config: &ServerConfig,
        directory: &Path,
        addresses: &[IpAddr],
    ) -> io::Result<Self> {
        let files = match (&config.api_tls_cert, &config.api_tls_key) {
            (Some(certificate), Some(key)) => {
                Files { certificate: certificate.clone(), key: key.clone() }
            }
            _ => Files::own(directory, addresses)?,
        };
        let current = Arc::new(Current(ArcSwap::from(Arc::new(files.read()?))));
        let mut acceptor_config =
            rustls::ServerConfig::builder_with_provider(Arc::new(default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(io::Error::other)?
                .with_no_client_auth()
                .with_cert_resolver(Arc::clone(&current) as Arc<dyn ResolvesServerCert>);
        acceptor_config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Self { files, current, acceptor_config: Arc::new(acceptor_config) })
    }

    /// The acceptor that makes TLS of a connection.
    pub(super) fn acceptor(&self) -> TlsAcceptor {
        TlsAcceptor::from(Arc::clone(&self.acceptor_config))
    }

    /// Takes the certificate from its files again, for connections from now on.
    ///
    /// # Errors
    /// The errors of [`Tls::open`]; the certificate before stays in force.
    pub(super) fn reload(&self) -> io::Result<()> {
        self.current.0.store(Arc::new(self.files.read()?));
        Ok(())
    }

    /// The SHA-256 of the certificate in force, as hexadecimal digits in pairs.
    pub(super) fn fingerprint(&self) -> String {
        let current = self.current.0.load();
        current.cert.first().map_or_else(String::new, |der| Fingerprint::of(der).to_string())
    }
}

/// Is TLS spoken at `address`? Elsewhere than on this machine a token would be everybody's
/// otherwise.
pub(super) const fn is_spoken(tls: ApiTls, address: IpAddr) -> bool {
    match tls {
        ApiTls::On => true,
        ApiTls::Auto => !address.is_loopback(),
        ApiTls::Off => false,
    }
}

impl Files {
    fn own(directory: &Path, addresses: &[IpAddr]) -> io::Result<Self> {
        let path = directory.join(OWN);
        if !path.try_exists()? {
            make(directory, &path, addresses)?;
            tracing::info!(path = %path.display(), "created a self-signed certificate for the API");
        }
        Ok(Self { certificate: path.clone(), key: path })
    }

    fn read(&self) -> io::Result<CertifiedKey> {
        let bad = |path: &Path, what: &dyn std::fmt::Display| {
            let message = format!("TLS of the API: {}: {what}", path.display());
            io::Error::new(ErrorKind::InvalidData, message)
        };
        let (text, key) = (read(&self.certificate)?, read(&self.key)?);
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(&text).collect();
        let chain = chain.map_err(|error| bad(&self.certificate, &error))?;
        if chain.is_empty() {
            return Err(bad(&self.certificate, &"it contains no certificate (PEM)"));
        }
        let key = PrivateKeyDer::from_pem_slice(&key).map_err(|error| bad(&self.key, &error))?;
        CertifiedKey::from_der(chain, key, &default_provider())
            .map_err(|error| bad(&self.key, &error))
    }
}

fn read(path: &Path) -> io::Result<Vec<u8>> {
    let fault = |error: io::Error| {
        io::Error::new(error.kind(), format!("TLS of the API: {}: {error}", path.display()))
    };
    let mut bytes = Vec::new();
    let file = File::open(path).map_err(fault)?;
    file.take(PEM_BYTES_MAX).read_to_end(&mut bytes).map_err(fault)?;
    Ok(bytes)
}

/// Makes a certificate and its key in one file, which is there whole or not at all.
fn make(directory: &Path, path: &Path, addresses: &[IpAddr]) -> io::Result<()> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    names.extend(host_name());
    names.extend(addresses.iter().filter(|ip| !ip.is_unspecified()).map(ToString::to_string));
    names.dedup();
    let key = KeyPair::generate().map_err(io::Error::other)?;
    let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
    params.distinguished_name.push(DnType::CommonName, "Weir");
    let certificate = params.self_signed(&key).map_err(io::Error::other)?;
    let new = directory.join(format!("{OWN}.new"));
    let mut options = OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(&new)?;
    file.write_all(certificate.pem().as_bytes())?;
    file.write_all(key.serialize_pem().as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&new, path)?;
    File::open(directory)?.sync_all()
}

/// The name of this machine, if it can be in a certificate.
fn host_name() -> Option<String> {
    let name = std::fs::read_to_string("/proc/sys/kernel/hostname").ok()?;
    let name = name.trim();
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-');
    (!name.is_empty() && name.bytes().all(allowed)).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_certificate_is_made_once_for_its_owner_alone() {
        let base = tempfile::tempdir().unwrap();
        let open = || Tls::open(&ServerConfig::default(), base.path(), &[[192, 0, 2, 7].into()]);
        let made = open().unwrap().fingerprint();
        assert_eq!(made.len(), 95);
        let path = base.path().join(OWN);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(open().unwrap().fingerprint(), made);
    }

    #[test]
    fn a_certificate_that_is_none_is_refused_and_does_not_replace_a_good_one() {
        let (base, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let own = |at: &Path| Tls::open(&ServerConfig::default(), at, &[]).unwrap();
        let tls = own(base.path());
        let (path, before) = (base.path().join(OWN), tls.fingerprint());
        let another = own(other.path());
        let pem = std::fs::read_to_string(other.path().join(OWN)).unwrap();
        let mine = std::fs::read_to_string(&path).unwrap();
        let (certificate, _) = pem.split_once("-----BEGIN PRIVATE").unwrap();
        let (_, key) = mine.split_once("-----BEGIN PRIVATE").unwrap();
        let mixed = format!("{certificate}-----BEGIN PRIVATE{key}");
        for wrong in ["", "x", certificate, &mixed] {
            std::fs::write(&path, wrong).unwrap();
            let message = tls.reload().unwrap_err().to_string();
            assert!(message.contains("api.pem"), "{message}");
            assert_eq!(tls.fingerprint(), before);
        }
        std::fs::write(&path, &pem).unwrap();
        tls.reload().unwrap();
        assert_eq!(tls.fingerprint(), another.fingerprint());
    }

    #[test]
    fn only_this_machine_is_spoken_to_in_plain_text_unless_told_otherwise() {
        let (near, far): (IpAddr, IpAddr) = ([127, 0, 0, 5].into(), [0, 0, 0, 0].into());
        assert!(!is_spoken(ApiTls::Auto, near) && is_spoken(ApiTls::Auto, far));
        assert!(is_spoken(ApiTls::On, near) && !is_spoken(ApiTls::Off, far));
    }
}
