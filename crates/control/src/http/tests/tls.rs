//! The API over TLS.

use super::*;
use weir_api::{Fingerprint, Trust};

async fn secured() -> (Running, String, Fingerprint) {
    let running = Running::start_as(tempfile::tempdir().unwrap(), ApiTls::On).await;
    let token = std::fs::read_to_string(running.directory.path().join("api.token")).unwrap();
    let told = running.client.server().await.unwrap().tls_fingerprint.unwrap();
    (running, token.trim().to_owned(), told.parse().unwrap())
}

#[tokio::test]
async fn a_server_is_known_by_its_fingerprint_or_its_certificate() {
    let (running, token, fingerprint) = secured().await;
    let pem = std::fs::read(running.directory.path().join("api.pem")).unwrap();
    for trust in [Trust::Fingerprint(fingerprint), Trust::Authorities(pem)] {
        let client = Client::tls(running.address.to_string(), Some(token.clone()), &trust).unwrap();
        client.create_pool(&pool(Qos::Auto), Dry::No).await.unwrap();
        client.delete_pool("p", Dry::No).await.unwrap();
        let stranger = Client::tls(running.address.to_string(), None, &trust).unwrap();
        assert_eq!(refusal(stranger.pools().await).0, 401);
    }
    running.stop().await;
}

#[tokio::test]
async fn another_server_is_not_trusted_and_learns_no_token() {
    let (running, token, right) = secured().await;
    let wrong: Fingerprint = "00".repeat(32).parse().unwrap();
    let (other, _, _) = secured().await;
    let others = std::fs::read(other.directory.path().join("api.pem")).unwrap();
    for trust in [Trust::Fingerprint(wrong), Trust::Authorities(others)] {
        let client = Client::tls(running.address.to_string(), Some(token.clone()), &trust).unwrap();
        let error = client.pools().await.unwrap_err();
        assert!(matches!(error, ClientError::Handshake { .. }), "{error}");
        if let Trust::Fingerprint(_) = trust {
            assert!(error.to_string().contains(&format!("{right}, expected {wrong}")), "{error}");
        }
    }
    other.stop().await;
    running.stop().await;
}

#[tokio::test]
async fn plain_text_is_not_answered_where_tls_is_spoken() {
    let (running, token, _) = secured().await;
    running.tcp(Some(token)).pools().await.unwrap_err();
    // Somebody who never begins the handshake is in nobody's way, nor in that of the stop.
    let _silent = TcpStream::connect(running.address).await.unwrap();
    running.client.pools().await.unwrap();
    running.stop().await;
}
