//! The typed client: one connection per request, over the Unix socket in a data directory or over
//! TCP with a token. A request that creates an object is retried once after a broken connection,
//! with an idempotency key. Other requests are not retried, because the change may have been made.

mod gateway;
mod identity;
mod smb;
mod watching;

use crate::error::ApiError;
use crate::limits::{ANSWER_BYTES_MAX, ANSWER_WAIT_MAX, CONNECT_WAIT_MAX};
use crate::routes;
use crate::trust::{Trust, TrustError};
use crate::{
    AuditPage, Calibration, Capacity, Changed, ExportRule, Health, Level, LevelChange, MadeToken,
    NewCalibration, NewLevel, NewPool, NewToken, NewVolume, Operation, Page, Pool, PoolChange,
    ServerInfo, Token, Volume, VolumeChange,
};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::header::{AUTHORIZATION, CONTENT_TYPE, HOST, IF_MATCH};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use ring::rand::{SecureRandom as _, SystemRandom};
use rustls::pki_types::ServerName;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpStream, UnixStream};
use tokio::time::timeout;
use tokio_rustls::TlsConnector;

/// Name of the API's socket in a data directory.
const SOCKET: &str = "api.sock";

/// Whether a change is made, or only its effect is returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dry {
    /// Make the change.
    No,
    /// Dry run: only return the effect.
    Run,
}

/// Selection of audit records; by default the latest 100.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AuditQuery {
    /// Only records since this time: RFC 3339, UTC.
    pub since: Option<String>,
    /// Start after this position ([`AuditPage::next`]).
    pub after: Option<String>,
    /// Maximum number of records.
    pub limit: Option<usize>,
}

/// A client for one server.
#[derive(Clone)]
pub struct Client {
    endpoint: Endpoint,
    if_match: Option<String>,
    overcommits: bool,
}

#[derive(Clone)]
enum Endpoint {
    Socket(PathBuf),
    Tcp { address: String, token: Option<String>, tls: Option<TlsConnector> },
}

/// A failed or refused request.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// No server listens at the endpoint.
    #[error("cannot connect to a Weir server at {endpoint}: {source}")]
    Unreachable {
        /// The socket or address.
        endpoint: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The server is not trusted, or does not use TLS.
    #[error("TLS handshake with the server at {endpoint} failed: {source}")]
    Handshake {
        /// The address.
        endpoint: String,
        /// The cause.
        source: std::io::Error,
    },
    /// The server did not respond in time.
    #[error("the server at {0} did not respond in time; a requested change may have been made")]
    Timeout(String),
    /// The connection was lost.
    #[error("the connection to the server was lost: {0}; a requested change may have been made")]
    Broken(#[source] Box<dyn std::error::Error + Send + Sync>),
    /// The response cannot be parsed by this version.
    #[error("cannot parse the server's response (status {status}): {reason}")]
    Unreadable {
        /// HTTP status.
        status: u16,
        /// The parse error.
        reason: String,
    },
    /// The server refused the request or failed.
    #[error("{error}")]
    Refused {
        /// HTTP status.
        status: u16,
        /// The reason.
        error: ApiError,
    },
}

type Result<T> = std::result::Result<T, ClientError>;

impl ClientError {
    /// Whether the response was longer than its reader allows.
    #[must_use]
    pub fn is_too_long(&self) -> bool {
        matches!(self, Self::Broken(source) if source.is::<LengthLimitError>())
    }
}

impl Client {
    /// A client for the server of `data_dir`; only the owner of the directory can connect.
    #[must_use]
    pub fn local(data_dir: &Path) -> Self {
        Self::of(Endpoint::Socket(data_dir.join(SOCKET)))
    }

    /// A client for the server at `address` (`HOST:PORT`), with a token.
    #[must_use]
    pub fn tcp(address: impl Into<String>, token: Option<String>) -> Self {
        Self::of(Endpoint::Tcp { address: address.into(), token, tls: None })
    }

    /// A client over TLS for a server authenticated by `trust`.
    ///
    /// # Errors
    /// [`TrustError`].
    pub fn tls(
        address: impl Into<String>,
        token: Option<String>,
        trust: &Trust,
    ) -> std::result::Result<Self, TrustError> {
        let (address, tls) = (address.into(), Some(TlsConnector::from(trust.config()?)));
        Ok(Self::of(Endpoint::Tcp { address, token, tls }))
    }

    const fn of(endpoint: Endpoint) -> Self {
        Self { endpoint, if_match: None, overcommits: false }
    }

    /// This client, with changes of levels, pools and volumes made even if they commit more than
    /// the measured capacity.
    #[must_use]
    pub fn overcommitting(&self) -> Self {
        Self { overcommits: true, ..self.clone() }
    }

    /// This client, with changes refused (412, `changed_meanwhile`) unless the object still has
    /// this `etag`.
    #[must_use]
    pub fn if_match(&self, etag: &str) -> Self {
        Self { if_match: Some(etag.to_owned()), ..self.clone() }
    }

    /// Information about the server.
    ///
    /// # Errors
    /// [`ClientError`], as for every request.
    pub async fn server(&self) -> Result<ServerInfo> {
        self.get(routes::SERVER).await
    }

    /// Whether all volumes are served: of a cluster, those of all gateways.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn health(&self) -> Result<Health> {
        self.get(routes::HEALTH).await
    }

    /// A backup of the catalogue, as the content of a file. It contains the key of the file
    /// handles.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn catalog_backup(&self) -> Result<Vec<u8>> {
        let (status, body) =
            self.exchange(Method::GET, routes::CATALOG_BACKUP, Vec::new(), None).await?;
        Ok(succeed(status, &body)?.into())
    }

    /// All service levels, built-in and custom.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn levels(&self) -> Result<Vec<Level>> {
        self.level_pages().all().await
    }

    /// All service levels, page by page.
    #[must_use]
    pub const fn level_pages(&self) -> Pages<'_, Level> {
        Pages::new(self, routes::LEVELS)
    }

    /// One service level.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn level(&self, name: &str) -> Result<Level> {
        self.get(&routes::path(routes::LEVEL, name)).await
    }

    /// Creates a service level.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_level(&self, new: &NewLevel, dry: Dry) -> Result<Changed<Level>> {
        self.make(routes::LEVELS, new, dry).await
    }

    /// Changes a service level. The change is in force in all its pools when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_level(
        &self,
        name: &str,
        change: &LevelChange,
        dry: Dry,
    ) -> Result<Changed<Level>> {
        self.send(Method::PATCH, &routes::path(routes::LEVEL, name), Some(change), dry).await
    }

    /// Deletes a service level that no pool uses.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_level(&self, name: &str, dry: Dry) -> Result<Changed<Level>> {
        self.send(Method::DELETE, &routes::path(routes::LEVEL, name), NOTHING, dry).await
    }

    /// All pools.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn pools(&self) -> Result<Vec<Pool>> {
        self.pool_pages().all().await
    }

    /// All pools, page by page.
    #[must_use]
    pub const fn pool_pages(&self) -> Pages<'_, Pool> {
        Pages::new(self, routes::POOLS)
    }

    /// One pool.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn pool(&self, name: &str) -> Result<Pool> {
        self.get(&routes::path(routes::POOL, name)).await
    }

    /// Creates a pool.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_pool(&self, new: &NewPool, dry: Dry) -> Result<Changed<Pool>> {
        self.make(routes::POOLS, new, dry).await
    }

    /// Changes a pool.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_pool(
        &self,
        name: &str,
        change: &PoolChange,
        dry: Dry,
    ) -> Result<Changed<Pool>> {
        self.send(Method::PATCH, &routes::path(routes::POOL, name), Some(change), dry).await
    }

    /// Deletes an empty pool.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_pool(&self, name: &str, dry: Dry) -> Result<Changed<Pool>> {
        self.send(Method::DELETE, &routes::path(routes::POOL, name), NOTHING, dry).await
    }

    /// All volumes.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn volumes(&self) -> Result<Vec<Volume>> {
        self.volume_pages().all().await
    }

    /// All volumes, page by page.
    #[must_use]
    pub const fn volume_pages(&self) -> Pages<'_, Volume> {
        Pages::new(self, routes::VOLUMES)
    }

    /// One volume.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn volume(&self, name: &str) -> Result<Volume> {
        self.get(&routes::path(routes::VOLUME, name)).await
    }

    /// Creates a volume. It can be mounted when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_volume(&self, new: &NewVolume, dry: Dry) -> Result<Changed<Volume>> {
        self.make(routes::VOLUMES, new, dry).await
    }

    /// Changes a volume's contract. The change is in force when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn change_volume(
        &self,
        name: &str,
        change: &VolumeChange,
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        self.send(Method::PATCH, &routes::path(routes::VOLUME, name), Some(change), dry).await
    }

    /// Deletes a volume **and all its files**.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn delete_volume(&self, name: &str, dry: Dry) -> Result<Changed<Volume>> {
        self.send(Method::DELETE, &routes::path(routes::VOLUME, name), NOTHING, dry).await
    }

    /// The measured capacity, and the capacity committed to contracts.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn capacity(&self) -> Result<Capacity> {
        self.get(routes::CAPACITY).await
    }

    /// The calibrations of file systems.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn calibrations(&self) -> Result<Vec<Calibration>> {
        Pages::new(self, routes::CALIBRATIONS).all().await
    }

    /// The calibration of `directory`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn calibration(&self, directory: &str) -> Result<Calibration> {
        self.get(&routes::path(routes::CALIBRATION, directory)).await
    }

    /// Stores the calibration of `directory`. It replaces an earlier calibration of the same file
    /// system.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn keep_calibration(
        &self,
        directory: &str,
        new: &NewCalibration,
        dry: Dry,
    ) -> Result<Changed<Calibration>> {
        let path = routes::path(routes::CALIBRATION, directory);
        self.send(Method::PUT, &path, Some(new), dry).await
    }

    /// Deletes the calibration of `directory`.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn forget_calibration(
        &self,
        directory: &str,
        dry: Dry,
    ) -> Result<Changed<Calibration>> {
        let path = routes::path(routes::CALIBRATION, directory);
        self.send(Method::DELETE, &path, NOTHING, dry).await
    }

    /// The export rules of a volume, in the order in which they are evaluated.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn exports(&self, volume: &str) -> Result<Vec<ExportRule>> {
        self.get(&routes::path(routes::EXPORTS, volume)).await
    }

    /// Replaces all export rules of a volume.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn set_exports(
        &self,
        volume: &str,
        rules: &[ExportRule],
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        self.send(Method::PUT, &routes::path(routes::EXPORTS, volume), Some(rules), dry).await
    }

    /// Adds an export rule to a volume.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn add_export(
        &self,
        volume: &str,
        rule: &ExportRule,
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        self.make(&routes::path(routes::EXPORTS, volume), rule, dry).await
    }

    /// Removes the export rule of one network from a volume.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn remove_export(
        &self,
        volume: &str,
        network: &str,
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        let path = routes::path(routes::EXPORTS, volume);
        let path = routes::with_query(&path, "network", network);
        self.send(Method::DELETE, &path, NOTHING, dry).await
    }

    /// Starts a recount of a volume's usage. Progress and result are available from
    /// [`Client::operation`] and in the volume's live counters.
    ///
    /// # Errors
    /// [`ClientError`]; a refusal `counting` if a recount is already running.
    pub async fn rescan(&self, volume: &str) -> Result<Operation> {
        let path = routes::path(routes::RESCAN, volume);
        self.send(Method::POST, &path, NOTHING, Dry::No).await
    }

    /// The last operations since the server started.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn operations(&self) -> Result<Vec<Operation>> {
        Pages::new(self, routes::OPERATIONS).all().await
    }

    /// The state of an operation.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn operation(&self, id: u64) -> Result<Operation> {
        self.get(&routes::path(routes::OPERATION, &id.to_string())).await
    }

    /// All tokens except that of the data directory.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn tokens(&self) -> Result<Vec<Token>> {
        Pages::new(self, routes::TOKENS).all().await
    }

    /// Creates a token. Only this response contains its secret.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn create_token(&self, new: &NewToken) -> Result<MadeToken> {
        self.send(Method::POST, routes::TOKENS, Some(new), Dry::No).await
    }

    /// Revokes a token. It is no longer accepted when this returns.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn revoke_token(&self, name: &str) -> Result<Token> {
        self.send(Method::DELETE, &routes::path(routes::TOKEN, name), NOTHING, Dry::No).await
    }

    /// A page of the audit log.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn audit(&self, query: &AuditQuery) -> Result<AuditPage> {
        let mut path = routes::AUDIT.to_owned();
        let limit = query.limit.map(|limit| limit.to_string());
        let given = [("since", &query.since), ("after", &query.after), ("limit", &limit)];
        for (key, value) in given {
            if let Some(value) = value {
                path = routes::with_query(&path, key, value);
            }
        }
        self.get(&path).await
    }

    async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let (status, body) = self.exchange(Method::GET, path, Vec::new(), None).await?;
        read(status, &succeed(status, &body)?)
    }

    /// Creates an object, with one retry if the response is lost.
    async fn make<T: DeserializeOwned, B: Serialize + ?Sized>(
        &self,
        path: &str,
        new: &B,
        dry: Dry,
    ) -> Result<T> {
        let key = match dry {
            Dry::Run => None,
            Dry::No => request_name(),
        };
        let send = || self.send_named(Method::POST, path, Some(new), dry, key.as_deref());
        match send().await {
            Err(lost @ ClientError::Broken(_)) if key.is_some() => match send().await {
                // The first error says more: that it may have been made.
                Err(ClientError::Unreachable { .. } | ClientError::Broken(_)) => Err(lost),
                outcome => outcome,
            },
            outcome => outcome,
        }
    }

    async fn send<T: DeserializeOwned, B: Serialize + ?Sized>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
        dry: Dry,
    ) -> Result<T> {
        self.send_named(method, path, body, dry, None).await
    }

    async fn send_named<T: DeserializeOwned, B: Serialize + ?Sized>(
        &self,
        method: Method,
        path: &str,
        body: Option<&B>,
        dry: Dry,
        key: Option<&str>,
    ) -> Result<T> {
        let mut path = match dry {
            Dry::No => path.to_owned(),
            Dry::Run => routes::with_query(path, "dry_run", "true"),
        };
        if self.overcommits {
            path = routes::with_query(&path, "overcommit", "true");
        }
        let json = match body {
            Some(body) => serde_json::to_vec(body).map_err(|e| ClientError::Broken(e.into()))?,
            None => Vec::new(),
        };
        let (status, body) = self.exchange(method, &path, json, key).await?;
        read(status, &succeed(status, &body)?)
    }

    /// One request and its response, as bytes.
    async fn exchange(
        &self,
        method: Method,
        path: &str,
        body: Vec<u8>,
        key: Option<&str>,
    ) -> Result<(StatusCode, Bytes)> {
        let endpoint = self.endpoint.to_string();
        let unreachable = |source| ClientError::Unreachable { endpoint: endpoint.clone(), source };
        let late = |_| ClientError::Timeout(endpoint.clone());
        let changes = method != Method::GET;
        let mut request = Request::builder().method(method).uri(path);
        if let Some(etag) = self.if_match.as_ref().filter(|_| changes) {
            request = request.header(IF_MATCH, format!("\"{etag}\""));
        }
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, "application/json");
        }
        match &self.endpoint {
            Endpoint::Socket(path) => {
                let request = finish(request.header(HOST, "localhost"), body)?;
                let connect = timeout(CONNECT_WAIT_MAX, UnixStream::connect(path));
                let stream = connect.await.map_err(late)?.map_err(unreachable)?;
                timeout(ANSWER_WAIT_MAX, round_trip(stream, request, ANSWER_BYTES_MAX))
                    .await
                    .map_err(late)?
            }
            Endpoint::Tcp { address, token, tls } => {
                if let Some(token) = token {
                    request = request.header(AUTHORIZATION, format!("Bearer {token}"));
                }
                let request = finish(request.header(HOST, address), body)?;
                let connect = timeout(CONNECT_WAIT_MAX, TcpStream::connect(address));
                let stream = connect.await.map_err(late)?.map_err(unreachable)?;
                let Some(tls) = tls else {
                    return timeout(ANSWER_WAIT_MAX, round_trip(stream, request, ANSWER_BYTES_MAX))
                        .await
                        .map_err(late)?;
                };
                let failed = |source| ClientError::Handshake { endpoint: endpoint.clone(), source };
                let name = host_of(address).map_err(failed)?;
                let handshake = timeout(CONNECT_WAIT_MAX, tls.connect(name, stream));
                let stream = handshake.await.map_err(late)?.map_err(failed)?;
                timeout(ANSWER_WAIT_MAX, round_trip(stream, request, ANSWER_BYTES_MAX))
                    .await
                    .map_err(late)?
            }
        }
    }
}

/// The host of `HOST:PORT`, which the certificate must name.
fn host_of(address: &str) -> std::io::Result<ServerName<'static>> {
    let host = address.rsplit_once(':').map_or(address, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    ServerName::try_from(host.to_owned()).map_err(std::io::Error::other)
}

/// A list, page by page. Items that stay in the list during the iteration are returned exactly
/// once, even if others are added or removed.
#[derive(Debug)]
pub struct Pages<'a, T> {
    client: &'a Client,
    path: &'static str,
    limit: Option<usize>,
    after: Option<String>,
    ended: bool,
    of: PhantomData<fn() -> T>,
}

impl<'a, T: DeserializeOwned> Pages<'a, T> {
    const fn new(client: &'a Client, path: &'static str) -> Self {
        Self { client, path, limit: None, after: None, ended: false, of: PhantomData }
    }

    /// This list with at most `limit` items per page.
    #[must_use]
    pub const fn of(mut self, limit: usize) -> Self {
        self.limit = Some(limit);
        self
    }

    /// The next page; nothing after the last.
    ///
    /// # Errors
    /// [`ClientError`]; the same page can be requested again.
    pub async fn next(&mut self) -> Result<Option<Vec<T>>> {
        if self.ended {
            return Ok(None);
        }
        let mut path = self.path.to_owned();
        if let Some(limit) = self.limit {
            path = routes::with_query(&path, "limit", &limit.to_string());
        }
        if let Some(after) = &self.after {
            path = routes::with_query(&path, "after", after);
        }
        let page: Page<T> = self.client.get(&path).await?;
        self.ended = page.next.is_none();
        self.after = page.next;
        Ok(Some(page.items))
    }

    /// All remaining items.
    ///
    /// # Errors
    /// [`ClientError`].
    pub async fn all(mut self) -> Result<Vec<T>> {
        let mut all = Vec::new();
        while let Some(page) = self.next().await? {
            all.extend(page);
        }
        Ok(all)
    }
}

/// A random idempotency key; `None` if the system has no random source.
fn request_name() -> Option<String> {
    let mut bytes = [0_u8; 16];
    SystemRandom::new().fill(&mut bytes).ok()?;
    Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// The body of a request without a body.
const NOTHING: Option<&()> = None;

fn finish(request: hyper::http::request::Builder, body: Vec<u8>) -> Result<Request<Full<Bytes>>> {
    request.body(Full::new(body.into())).map_err(|error| ClientError::Broken(error.into()))
}

/// The status and the body of the answer to a GET of `path` over a connection that is open and is
/// closed after it. No timeout applies.
///
/// # Errors
/// The connection breaks, the answer is not HTTP, or its body is longer than `bytes_max`
/// ([`ClientError::is_too_long`]). A status of failure is no error.
pub async fn get_over(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    path: &str,
    bytes_max: usize,
) -> Result<(u16, Vec<u8>)> {
    let request = Request::builder().method(Method::GET).uri(path).header(HOST, "gateway");
    let (status, body) = round_trip(stream, finish(request, Vec::new())?, bytes_max).await?;
    Ok((status.as_u16(), body.into()))
}

async fn round_trip(
    stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static,
    request: Request<Full<Bytes>>,
    bytes_max: usize,
) -> Result<(StatusCode, Bytes)> {
    let broken = |error: hyper::Error| ClientError::Broken(error.into());
    let (mut sender, connection) =
        hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(broken)?;
    let answer = async {
        let response = sender.send_request(request).await.map_err(broken)?;
        let status = response.status();
        let body = Limited::new(response.into_body(), bytes_max);
        let body = body.collect().await.map_err(ClientError::Broken)?;
        Ok((status, body.to_bytes()))
    };
    let mut answer = std::pin::pin!(answer);
    tokio::select! {
        answer = &mut answer => return answer,
        outcome = connection => outcome.map_err(broken)?,
    }
    // The server closed the connection behind a whole answer, which is still to be read out.
    answer.await
}

fn succeed(status: StatusCode, body: &Bytes) -> Result<Bytes> {
    if status.is_success() {
        return Ok(body.clone());
    }
    match serde_json::from_slice(body) {
        Ok(error) => Err(ClientError::Refused { status: status.as_u16(), error }),
        Err(_) => {
            let reason = String::from_utf8_lossy(body).chars().take(200).collect();
            Err(ClientError::Unreadable { status: status.as_u16(), reason })
        }
    }
}

fn read<T: DeserializeOwned>(status: StatusCode, body: &Bytes) -> Result<T> {
    serde_json::from_slice(body).map_err(|error| ClientError::Unreadable {
        status: status.as_u16(),
        reason: error.to_string(),
    })
}

impl std::fmt::Display for Endpoint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Socket(path) => path.display().fmt(f),
            Self::Tcp { address, .. } => address.fmt(f),
        }
    }
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.endpoint)
    }
}
