//! Links between gateways in one process, over loopback.

use super::*;
use crate::{FRAME_BYTES_MAX, KeyFile};
use std::path::Path;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use weir_cluster::GatewayId;

/// A directory with key files.
struct Keys(tempfile::TempDir);

impl Keys {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        for name in ["ours", "theirs"] {
            KeyFile::create(&base.path().join(name)).unwrap();
        }
        Self(base)
    }

    fn helper(&self, gateway: u16) -> Identity {
        let key = KeyFile::read(&self.0.path().join("ours")).unwrap();
        Identity::of_helper(&key, GatewayId(gateway)).unwrap()
    }

    /// A gateway with key file `key`, in its fifth life.
    fn gateway(&self, key: &str, gateway: u16) -> Identity {
        let key = KeyFile::read(&Path::join(self.0.path(), key)).unwrap();
        Identity::new(&key, fifth(gateway)).unwrap()
    }
}

fn fifth(gateway: u16) -> Life {
    Life { gateway: GatewayId(gateway), number: 5 }
}

type Accepted = JoinHandle<Result<Link, LinkError>>;

/// A listener that accepts one link as `own`.
async fn listening(own: Identity) -> (SocketAddr, Accepted) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let accepted = tokio::spawn(async move {
        let (tcp, _) = listener.accept().await.unwrap();
        Link::accept(&own, tcp).await
    });
    (address, accepted)
}

/// The two ends of an attempt of `from` to open a link to gateway `to`, where `there` listens.
async fn attempt(
    from: Identity,
    to: u16,
    there: Identity,
) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
    attempt_as(from, Role::Server, to, there).await
}

async fn attempt_as(
    from: Identity,
    role: Role,
    to: u16,
    there: Identity,
) -> (Result<Link, LinkError>, Result<Link, LinkError>) {
    let (address, accepted) = listening(there).await;
    let to = Name { role, gateway: GatewayId(to) };
    let dialled = Link::dial(&from, to, address).await;
    (dialled, accepted.await.unwrap())
}

/// An open link.
async fn open() -> (Link, Link) {
    let keys = Keys::new();
    let (g1, g2) = (keys.gateway("ours", 1), keys.gateway("ours", 2));
    let (near, far) = attempt(g1, 2, g2).await;
    (near.unwrap(), far.unwrap())
}

#[tokio::test]
async fn gateways_of_a_cluster_exchange_messages() {
    let (mut near, mut far) = open().await;
    let server = |gateway| Peer { role: Role::Server, life: fifth(gateway) };
    assert_eq!((near.peer(), far.peer()), (server(2), server(1)));
    assert_eq!((near.version(), far.version()), (Version::CURRENT, Version::CURRENT));
    let long = vec![7; FRAME_BYTES_MAX];
    let sending = tokio::spawn(async move {
        for message in [b"".as_slice(), b"one", &long, b"two"] {
            near.outgoing.send(message).await.unwrap();
        }
        near.outgoing.close().await;
        near
    });
    let mut lengths = Vec::new();
    while let Some(message) = far.incoming.receive().await.unwrap() {
        lengths.push(message.len());
    }
    assert_eq!(lengths, [0, 3, FRAME_BYTES_MAX, 3]);
    let mut near = sending.await.unwrap();
    far.outgoing.send(b"back").await.unwrap();
    assert_eq!(near.incoming.receive().await.unwrap().unwrap(), b"back");
}

#[tokio::test]
async fn a_gateway_of_another_cluster_is_refused_by_both_sides() {
    let keys = Keys::new();
    let (g1, g2) = (keys.gateway("theirs", 1), keys.gateway("ours", 2));
    let (near, far) = attempt(g1, 2, g2).await;
    assert!(matches!(near, Err(LinkError::OtherCluster)), "{near:?}");
    assert!(matches!(far, Err(LinkError::OtherCluster)), "{far:?}");
}

#[tokio::test]
async fn another_gateway_is_not_taken_for_the_dialled_one() {
    let keys = Keys::new();
    let (g1, g2) = (keys.gateway("ours", 1), keys.gateway("ours", 2));
    let (near, far) = attempt(g1, 3, g2).await;
    let error = near.unwrap_err().to_string();
    assert_eq!(error, "the peer is not gateway 3");
    assert!(far.is_err());
}

#[tokio::test]
async fn a_helper_proves_that_it_is_one_and_of_which_gateway() {
    let keys = Keys::new();
    let of_helper = |gateway| Life { gateway: GatewayId(gateway), number: 0 };
    let (near, far) = attempt_as(keys.gateway("ours", 1), Role::Helper, 2, keys.helper(2)).await;
    assert_eq!(near.unwrap().peer(), Peer { role: Role::Helper, life: of_helper(2) });
    assert_eq!(far.unwrap().peer(), Peer { role: Role::Server, life: fifth(1) });
    let (near, far) = attempt(keys.helper(1), 2, keys.gateway("ours", 2)).await;
    assert_eq!(near.unwrap().peer(), Peer { role: Role::Server, life: fifth(2) });
    assert_eq!(far.unwrap().peer(), Peer { role: Role::Helper, life: of_helper(1) });
}

#[tokio::test]
async fn a_helper_does_not_pass_for_a_server_nor_a_server_for_a_helper() {
    let keys = Keys::new();
    let (near, far) = attempt(keys.gateway("ours", 1), 2, keys.helper(2)).await;
    assert_eq!(near.unwrap_err().to_string(), "the peer is not gateway 2");
    assert!(far.is_err());
    let there = keys.gateway("ours", 2);
    let (near, _) = attempt_as(keys.gateway("ours", 1), Role::Helper, 2, there).await;
    assert_eq!(near.unwrap_err().to_string(), "the peer is not the helper of gateway 2");
    let (near, far) = attempt_as(keys.helper(1), Role::Helper, 2, keys.helper(2)).await;
    for end in [near, far] {
        let error = end.unwrap_err().to_string();
        assert!(error.contains("this is a helper, too"), "{error}");
    }
}

#[tokio::test]
async fn nobody_dials_in_the_name_of_another_gateway() {
    let keys = Keys::new();
    let (address, accepted) = listening(keys.gateway("ours", 2)).await;
    let mut impostor = keys.gateway("ours", 1);
    impostor.rename(fifth(3));
    let to = Name { role: Role::Server, gateway: GatewayId(2) };
    for end in [Link::dial(&impostor, to, address).await, accepted.await.unwrap()] {
        let error = end.unwrap_err().to_string();
        assert!(error.contains("that of another gateway"), "{error}");
    }
}

#[tokio::test]
async fn a_second_process_of_one_gateway_is_refused_with_the_reason() {
    let keys = Keys::new();
    let (g1, other) = (keys.gateway("ours", 1), keys.gateway("ours", 1));
    let (near, far) = attempt(g1, 1, other).await;
    for end in [near, far] {
        let error = end.unwrap_err().to_string();
        assert!(error.contains("another process has its number"), "{error}");
    }
}

/// The outcome at a listener to which `bytes` are sent, and nothing else.
async fn sent_to_a_listener(bytes: &[u8], stays: bool) -> LinkError {
    let (address, accepted) = listening(Keys::new().gateway("ours", 2)).await;
    let mut tcp = TcpStream::connect(address).await.unwrap();
    tcp.write_all(bytes).await.unwrap();
    let kept = stays.then_some(tcp);
    let error = accepted.await.unwrap().unwrap_err();
    drop(kept);
    error
}

#[tokio::test]
async fn bytes_that_are_no_handshake_are_refused() {
    for bytes in [b"".as_slice(), b"GET / HTTP/1.1\r\n\r\n", &[0xff; 4096], &[22, 3, 1, 255, 255]] {
        let error = sent_to_a_listener(bytes, false).await;
        assert!(matches!(error, LinkError::Connection(_)), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_silent_peer_does_not_hold_a_place_for_ever() {
    for bytes in [b"".as_slice(), &[22, 3, 1, 1, 0, 1]] {
        let error = sent_to_a_listener(bytes, true).await;
        assert!(matches!(error, LinkError::Slow { limit: HANDSHAKE_TIME, .. }), "{error}");
    }
}

#[tokio::test]
async fn a_client_without_a_certificate_is_refused() {
    let keys = Keys::new();
    let (address, accepted) = listening(keys.gateway("ours", 2)).await;
    let mut config = rustls::ClientConfig::builder_with_provider(
        rustls::crypto::ring::default_provider().into(),
    )
    .with_safe_default_protocol_versions()
    .unwrap()
    .with_root_certificates(rustls::RootCertStore::empty())
    .with_no_client_auth();
    config.dangerous().set_certificate_verifier(std::sync::Arc::new(Anyone));
    let connector = tokio_rustls::TlsConnector::from(std::sync::Arc::new(config));
    let tcp = TcpStream::connect(address).await.unwrap();
    // The client's half of the handshake may succeed before the server looks for the certificate.
    let stream = connector.connect(ServerName::try_from("gateway-2").unwrap(), tcp).await;
    let error = accepted.await.unwrap().unwrap_err();
    assert!(error.to_string().contains("no certificates"), "{error}");
    drop(stream);
}

/// Believes every server.
#[derive(Debug)]
struct Anyone;

impl rustls::client::danger::ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &[rustls::pki_types::CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: rustls::pki_types::UnixTime,
    ) -> Result<rustls::client::danger::ServerCertVerified, rustls::Error> {
        Ok(rustls::client::danger::ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn verify_tls13_signature(
        &self,
        _: &[u8],
        _: &rustls::pki_types::CertificateDer<'_>,
        _: &rustls::DigitallySignedStruct,
    ) -> Result<rustls::client::danger::HandshakeSignatureValid, rustls::Error> {
        Ok(rustls::client::danger::HandshakeSignatureValid::assertion())
    }

    fn supported_verify_schemes(&self) -> Vec<rustls::SignatureScheme> {
        rustls::crypto::ring::default_provider()
            .signature_verification_algorithms
            .supported_schemes()
    }
}

impl Outgoing {
    /// Sends bytes that need not be frames.
    async fn raw(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).await.unwrap();
        self.0.flush().await.unwrap();
    }
}

#[tokio::test]
async fn a_frame_that_says_it_is_too_long_ends_the_link() {
    let (mut near, mut far) = open().await;
    near.outgoing.raw(&u32::MAX.to_be_bytes()).await;
    let error = far.incoming.receive().await.unwrap_err();
    assert!(matches!(error, LinkError::TooLong(_)), "{error}");
}

#[tokio::test]
async fn a_link_that_ends_within_a_frame_is_no_end_of_the_messages() {
    let (mut near, mut far) = open().await;
    near.outgoing.raw(&[0, 0, 0, 9, 1, 2]).await;
    near.outgoing.close().await;
    let error = far.incoming.receive().await.unwrap_err();
    assert!(matches!(error, LinkError::Cut), "{error}");
}

#[tokio::test]
async fn a_frame_that_is_not_completed_ends_the_link() {
    let (mut near, mut far) = open().await;
    near.outgoing.raw(&[0, 0, 0, 9, 1, 2]).await;
    // All that was sent is received before the time is stopped.
    while far.incoming.due.is_none() {
        let once = timeout(Duration::from_millis(10), far.incoming.receive()).await;
        assert!(once.is_err(), "{once:?}");
    }
    tokio::time::pause();
    let error = far.incoming.receive().await.unwrap_err();
    assert!(matches!(error, LinkError::Slow { limit: FRAME_TIME, .. }), "{error}");
}

#[tokio::test]
async fn a_receive_that_is_dropped_loses_nothing() {
    let (mut near, mut far) = open().await;
    let frame = framed(b"in two parts").unwrap();
    let (first, second) = frame.split_at(7);
    near.outgoing.raw(first).await;
    while far.incoming.due.is_none() {
        assert!(timeout(Duration::from_millis(10), far.incoming.receive()).await.is_err());
    }
    near.outgoing.raw(second).await;
    assert_eq!(far.incoming.receive().await.unwrap().unwrap(), b"in two parts");
}

#[tokio::test]
async fn a_message_that_is_too_long_is_not_sent() {
    let (mut near, mut far) = open().await;
    let error = near.outgoing.send(&vec![0; FRAME_BYTES_MAX + 1]).await.unwrap_err();
    assert!(matches!(error, LinkError::TooLong(_)), "{error}");
    near.outgoing.send(b"after it").await.unwrap();
    assert_eq!(far.incoming.receive().await.unwrap().unwrap(), b"after it");
}
