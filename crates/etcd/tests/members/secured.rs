//! An etcd that wants certificates and a password.

use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::Duration;
use tempfile::TempDir;
use weir_etcd::{Connection, EtcdError, Login, Settings, Tls};

/// A member with TLS, clients of which need a certificate.
struct Secured {
    directory: TempDir,
    endpoint: String,
    process: Child,
}

impl Drop for Secured {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Writes an authority, and a certificate of it with its key, both under this name.
fn certify(directory: &Path, name: &str) {
    let authority_key = KeyPair::generate().unwrap();
    let mut authority = CertificateParams::default();
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let certificate = authority.self_signed(&authority_key).unwrap();
    fs::write(directory.join(format!("{name}-ca.pem")), certificate.pem()).unwrap();
    let key = KeyPair::generate().unwrap();
    let own = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
    let own = own.signed_by(&key, &Issuer::new(authority, authority_key)).unwrap();
    fs::write(directory.join(format!("{name}.pem")), own.pem()).unwrap();
    fs::write(directory.join(format!("{name}-key.pem")), key.serialize_pem()).unwrap();
}

impl Secured {
    fn start() -> Self {
        let directory = TempDir::new().unwrap();
        let path = |name: &str| directory.path().join(name).display().to_string();
        certify(directory.path(), "member");
        certify(directory.path(), "client");
        certify(directory.path(), "other");
        fs::write(path("password"), "secret\n").unwrap();
        fs::write(path("wrong"), "guessed").unwrap();
        let listeners = [0; 2].map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
        let [port, peer] = listeners.map(|listener| listener.local_addr().unwrap().port());
        let (endpoint, peer) =
            (format!("https://127.0.0.1:{port}"), format!("http://127.0.0.1:{peer}"));
        let process = Command::new("etcd")
            .args(["--name", "m0", "--data-dir", &path("data"), "--log-level", "error"])
            .args(["--initial-cluster", &format!("m0={peer}"), "--logger", "zap"])
            .args(["--initial-advertise-peer-urls", &peer, "--listen-peer-urls", &peer])
            .args(["--advertise-client-urls", &endpoint, "--listen-client-urls", &endpoint])
            .args(["--cert-file", &path("member.pem"), "--key-file", &path("member-key.pem")])
            .args(["--client-cert-auth", "--trusted-ca-file", &path("client-ca.pem")])
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { directory, endpoint, process }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.path().join(name)
    }

    fn control(&self, command: &[&str]) -> bool {
        let mut control = Command::new("etcdctl");
        control.env("ETCDCTL_API", "3").args(["--endpoints", &self.endpoint]);
        control.arg("--cacert").arg(self.path("member-ca.pem"));
        control.arg("--cert").arg(self.path("client.pem"));
        control.arg("--key").arg(self.path("client-key.pem"));
        control.args(command).stdout(Stdio::null()).stderr(Stdio::null());
        control.status().unwrap().success()
    }

    /// The settings with the certificate of this name.
    fn settings(&self, authority: &str, identity: Option<&str>) -> Settings {
        let identity = identity
            .map(|name| (self.path(&format!("{name}.pem")), self.path(&format!("{name}-key.pem"))));
        let authority = self.path(&format!("{authority}-ca.pem"));
        let tls = Some(Tls { authority, identity });
        Settings { endpoints: vec![self.endpoint.clone()], tls, login: None }
    }
}

async fn ask(settings: &Settings) -> Result<(), EtcdError> {
    Connection::new(settings).unwrap().get("/x").await.map(drop)
}

#[tokio::test]
async fn certificates_and_a_password_let_in_and_others_do_not() {
    let etcd = Secured::start();
    let good = etcd.settings("member", Some("client"));
    let is_up = (0..600).any(|_| {
        sleep(Duration::from_millis(100));
        etcd.control(&["endpoint", "health"])
    });
    assert!(is_up);
    assert_eq!(ask(&good).await, Ok(()));
    assert!(ask(&etcd.settings("member", None)).await.is_err(), "without a certificate");
    assert!(ask(&etcd.settings("member", Some("other"))).await.is_err(), "with another's");
    assert!(ask(&etcd.settings("other", Some("client"))).await.is_err(), "the member is another");
    assert!(etcd.control(&["user", "add", "root:secret"]));
    assert!(etcd.control(&["user", "grant-role", "root", "root"]));
    assert!(etcd.control(&["auth", "enable"]));
    let refused = ask(&good).await;
    assert!(matches!(refused, Err(EtcdError::Refused(_))), "no user: {refused:?}");
    let login = |file| {
        let login = Login { user: "root".to_owned(), password_file: etcd.path(file) };
        Settings { login: Some(login), ..good.clone() }
    };
    assert_eq!(ask(&login("password")).await, Ok(()));
    let refused = ask(&login("wrong")).await;
    assert!(matches!(refused, Err(EtcdError::Refused(_))), "{refused:?}");
}
