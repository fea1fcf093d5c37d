//! Trust in a server over TLS: the fingerprint of its certificate, or CA certificates for its name.

use ring::digest::{SHA256, digest};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::ring::default_provider;
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{
    ClientConfig, DigitallySignedStruct, Error, OtherError, RootCertStore, SignatureScheme,
};
use std::str::FromStr;
use std::sync::Arc;

/// The method of authenticating a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trust {
    /// By its certificate, regardless of the name in it.
    Fingerprint(Fingerprint),
    /// By its name, with a certificate from one of these CAs (PEM).
    Authorities(Vec<u8>),
}

/// The SHA-256 of a certificate's DER, as `AB:CD:…` or without colons.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Fingerprint([u8; 32]);

/// A trust setting that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TrustError {
    /// The text is not a fingerprint.
    #[error(
        "a fingerprint is the SHA-256 of a certificate: 64 hexadecimal digits, with colons or without"
    )]
    NotFingerprint,
    /// The PEM text has no certificate, or one cannot be parsed.
    #[error("the CA file contains no usable certificate (PEM)")]
    NoAuthorities,
    /// The TLS library rejects its settings.
    #[error("TLS cannot be set up: {0}")]
    Setup(String),
}

impl Fingerprint {
    /// The fingerprint of a certificate (DER).
    #[must_use]
    pub fn of(certificate: &[u8]) -> Self {
        let mut hash = [0; 32];
        hash.copy_from_slice(digest(&SHA256, certificate).as_ref());
        Self(hash)
    }
}

impl FromStr for Fingerprint {
    type Err = TrustError;

    fn from_str(text: &str) -> Result<Self, TrustError> {
        let digits: String = text.chars().filter(|c| *c != ':').collect();
        if digits.len() != 64 || !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(TrustError::NotFingerprint);
        }
        let mut hash = [0; 32];
        for (byte, place) in hash.iter_mut().zip((0..64).step_by(2)) {
            let pair = digits.get(place..place + 2).ok_or(TrustError::NotFingerprint)?;
            *byte = u8::from_str_radix(pair, 16).map_err(|_| TrustError::NotFingerprint)?;
        }
        Ok(Self(hash))
    }
}

impl std::fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        for (place, byte) in self.0.iter().enumerate() {
            let colon = if place == 0 { "" } else { ":" };
            write!(f, "{colon}{byte:02X}")?;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{self}")
    }
}

impl Trust {
    /// The TLS configuration for this trust.
    pub(crate) fn config(&self) -> Result<Arc<ClientConfig>, TrustError> {
        let setup = |error: Error| TrustError::Setup(error.to_string());
        let provider = Arc::new(default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(setup)?;
        let mut config = match self {
            Self::Fingerprint(wanted) => {
                let verifier = Arc::new(Pinned { wanted: *wanted, provider });
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            Self::Authorities(pem) => {
                let mut roots = RootCertStore::empty();
                for certificate in CertificateDer::pem_slice_iter(pem) {
                    let certificate = certificate.map_err(|_| TrustError::NoAuthorities)?;
                    roots.add(certificate).map_err(|_| TrustError::NoAuthorities)?;
                }
                if roots.is_empty() {
                    return Err(TrustError::NoAuthorities);
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

/// Trusts one certificate, and requires proof that the server has its key.
#[derive(Debug)]
struct Pinned {
    wanted: Fingerprint,
    provider: Arc<CryptoProvider>,
}

/// The server has another certificate.
#[derive(Debug, thiserror::Error)]
#[error("the server's certificate has the fingerprint {found}, expected {wanted}")]
struct AnotherCertificate {
    found: Fingerprint,
    wanted: Fingerprint,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let found = Fingerprint::of(end_entity);
        if found == self.wanted {
            return Ok(ServerCertVerified::assertion());
        }
        let other = AnotherCertificate { found, wanted: self.wanted };
        Err(Error::Other(OtherError(Arc::new(other))))
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls12_signature(message, cert, dss, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        verify_tls13_signature(message, cert, dss, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_people_write_it() {
        let plain = "0a".repeat(32);
        let read: Fingerprint = plain.parse().unwrap();
        assert_eq!(read.to_string().parse(), Ok(read));
        assert!(read.to_string().starts_with("0A:0A:"));
        for wrong in ["", "0a", &"0g".repeat(32), &"0a".repeat(33), &"é".repeat(32)] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(TrustError::NotFingerprint), "{wrong}");
        }
    }

    #[test]
    fn authorities_are_certificates() {
        for wrong in ["", "x", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"] {
            let trust = Trust::Authorities(wrong.into());
            assert_eq!(trust.config().unwrap_err(), TrustError::NoAuthorities, "{wrong}");
        }
    }
}
