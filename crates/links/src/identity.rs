//! The proof of a gateway's server, or of the helper on its machine, towards others: a certificate
//! of the cluster's authority.

use crate::key_file::KeyFile;
use crate::name::{Name, Role};
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};
use rustls::client::{Resumption, WebPkiServerVerifier, verify_server_name};
use rustls::crypto::ring::default_provider;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer, ServerName};
use rustls::server::{NoServerSessionStorage, ParsedCertificate, WebPkiClientVerifier};
use rustls::version::TLS13;
use rustls::{ClientConfig, RootCertStore, ServerConfig};
use std::fmt;
use std::io;
use std::sync::Arc;
use tokio_rustls::{TlsAcceptor, TlsConnector};
use weir_cluster::{GatewayId, Life};

/// The bytes of an Ed25519 key before its seed (PKCS #8, RFC 8410, section 7).
const ED25519_HEAD: [u8; 16] =
    [0x30, 0x2e, 2, 1, 0, 0x30, 5, 6, 3, 0x2b, 0x65, 0x70, 4, 0x22, 4, 0x20];
/// The name of a connection for questions, in the handshake (ALPN). Links for words have none, and
/// a gateway that does not know it agrees on none.
pub(crate) const QUESTIONS: &[u8] = b"weir-questions/1";
/// The purpose of the key that the authority signs with.
const AUTHORITY: &[u8] = b"authority of links";

/// A life of a gateway, or the helper on its machine, with the certificate for its links.
///
/// The authority of a cluster is made of its key file by each of them, and is the same on each.
/// The key of the certificate is new in each process and is never stored. The certificate has the
/// number of the gateway and the role, so that neither passes for the other.
#[derive(Clone)]
pub struct Identity {
    role: Role,
    life: Life,
    acceptor: TlsAcceptor,
    connector: TlsConnector,
    asking: TlsConnector,
}

impl Identity {
    /// The identity of `life`, a server, in the cluster of `key`.
    ///
    /// # Errors
    /// The cryptographic library gives no key or refuses its settings.
    pub fn new(key: &KeyFile, life: Life) -> io::Result<Self> {
        Self::of(key, Role::Server, life)
    }

    /// The identity of the helper on the machine of `gateway`. It has no life: its number is 0,
    /// which no life has.
    ///
    /// # Errors
    /// The cryptographic library gives no key or refuses its settings.
    pub fn of_helper(key: &KeyFile, gateway: GatewayId) -> io::Result<Self> {
        Self::of(key, Role::Helper, Life { gateway, number: 0 })
    }

    fn of(key: &KeyFile, role: Role, life: Life) -> io::Result<Self> {
        let (root, issuer) = authority(key)?;
        let own = KeyPair::generate().map_err(io::Error::other)?;
        let name = Name { role, gateway: life.gateway }.in_certificate();
        let mut params = CertificateParams::new([name.clone()]).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.signed_by(&own, &issuer).map_err(io::Error::other)?;
        let mut roots = RootCertStore::empty();
        roots.add(root).map_err(io::Error::other)?;
        let proof = (CertificateDer::from(certificate), own.serialize_der());
        let roots = Arc::new(roots);
        let mut accepting = accepting(&roots, &proof)?;
        if role == Role::Server {
            accepting.alpn_protocols = vec![QUESTIONS.to_vec()];
        }
        let dialling = dialling(&roots, &proof)?;
        let mut asking = dialling.clone();
        asking.alpn_protocols = vec![QUESTIONS.to_vec()];
        Ok(Self {
            role,
            life,
            acceptor: TlsAcceptor::from(Arc::new(accepting)),
            connector: TlsConnector::from(Arc::new(dialling)),
            asking: TlsConnector::from(Arc::new(asking)),
        })
    }

    /// The life; of a helper, its gateway with the number 0.
    #[must_use]
    pub fn life(&self) -> Life {
        self.life
    }

    /// The role.
    #[must_use]
    pub fn role(&self) -> Role {
        self.role
    }

    /// Takes no questions, as gateways of earlier versions.
    #[cfg(test)]
    pub(crate) fn forget_questions(&mut self) {
        let mut accepting = ServerConfig::clone(self.acceptor.config());
        accepting.alpn_protocols.clear();
        self.acceptor = TlsAcceptor::from(Arc::new(accepting));
    }

    /// Introduces itself as another life than that of the certificate.
    #[cfg(test)]
    pub(crate) fn rename(&mut self, life: Life) {
        self.life = life;
    }

    pub(crate) fn acceptor(&self) -> &TlsAcceptor {
        &self.acceptor
    }

    pub(crate) fn connector(&self) -> &TlsConnector {
        &self.connector
    }

    /// As [`Self::connector`], for a connection for questions.
    pub(crate) fn asking(&self) -> &TlsConnector {
        &self.asking
    }
}

/// The role in which `certificate`, which the handshake has verified, is that of `gateway`; none if
/// it is another's.
pub(crate) fn role_of(certificate: &CertificateDer<'_>, gateway: GatewayId) -> Option<Role> {
    let parsed = ParsedCertificate::try_from(certificate).ok()?;
    [Role::Server, Role::Helper].into_iter().find(|role| {
        let name = ServerName::try_from(Name { role: *role, gateway }.in_certificate());
        name.is_ok_and(|name| verify_server_name(&parsed, &name).is_ok())
    })
}

/// The certificate of the cluster's authority, and what signs with its key.
fn authority(key: &KeyFile) -> io::Result<(CertificateDer<'static>, Issuer<'static, KeyPair>)> {
    let document = [ED25519_HEAD.as_slice(), &key.derive(AUTHORITY)].concat();
    let signer =
        KeyPair::try_from(&PrivatePkcs8KeyDer::from(document)).map_err(io::Error::other)?;
    let mut params = CertificateParams::default();
    params.distinguished_name.push(DnType::CommonName, "Weir cluster");
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    let certificate = params.self_signed(&signer).map_err(io::Error::other)?;
    Ok((certificate.into(), Issuer::new(params, signer)))
}

/// A certificate and its key (PKCS #8).
type Proof = (CertificateDer<'static>, Vec<u8>);

fn private_key(proof: &Proof) -> PrivateKeyDer<'static> {
    PrivatePkcs8KeyDer::from(proof.1.clone()).into()
}

/// For those who dial: only those of this cluster may.
fn accepting(roots: &Arc<RootCertStore>, proof: &Proof) -> io::Result<ServerConfig> {
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiClientVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider))
            .build()
            .map_err(io::Error::other)?;
    let mut config = ServerConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_client_cert_verifier(verifier)
        .with_single_cert(vec![proof.0.clone()], private_key(proof))
        .map_err(io::Error::other)?;
    // Each link proves both sides anew.
    config.session_storage = Arc::new(NoServerSessionStorage {});
    config.send_tls13_tickets = 0;
    Ok(config)
}

/// For dialling: the other side must have the dialled name.
fn dialling(roots: &Arc<RootCertStore>, proof: &Proof) -> io::Result<ClientConfig> {
    let provider = Arc::new(default_provider());
    let verifier =
        WebPkiServerVerifier::builder_with_provider(Arc::clone(roots), Arc::clone(&provider))
            .build()
            .map_err(io::Error::other)?;
    let mut config = ClientConfig::builder_with_provider(provider)
        .with_protocol_versions(&[&TLS13])
        .map_err(io::Error::other)?
        .with_webpki_verifier(verifier)
        .with_client_auth_cert(vec![proof.0.clone()], private_key(proof))
        .map_err(io::Error::other)?;
    config.resumption = Resumption::disabled();
    Ok(config)
}

/// Shows nothing of the keys.
impl fmt::Debug for Identity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Identity({:?} of {})", self.role, self.life)
    }
}
