//! Answers of the other gateways of a cluster.
//!
//! Some facts are known to one gateway alone: to the home of a volume its counters, to each gateway
//! its metrics and the history that it recorded. The gateway that a client asks collects them. It
//! checks the role of the client; gateways ask each other over connections that prove that both
//! belong to the cluster ([`Cluster::ask`]), and what they are asked they answer for themselves
//! alone ([`answering`]), so that no question goes round.
//!
//! A gateway that does not answer is named in the answer to the client, with the reason, and delays
//! it by at most [`ASK_WAIT`].
//!
//! Not here: the changes that only the home of a volume can make. They are refused elsewhere, with
//! the place to ask.

mod activity;
mod answering;
mod asking;
mod health;
mod history;
mod home;
mod metrics;
mod volumes;

pub(super) use activity::activity;
pub(super) use answering::answer;
pub(super) use health::health;
pub(super) use history::report;
pub(super) use home::{load, why};
pub(super) use metrics::metrics;

use super::failure::Failure;
use super::{Control, ControlState, convert};
use crate::cluster::{Cluster, NotAsked, Stream};
use crate::limits::{ASK_BYTES_MAX, ASK_DIAL_WAIT, ASK_WAIT};
use crate::sync::{Arc, Semaphore};
use asking::Ways;
use axum::extract::Query;
use axum::extract::rejection::QueryRejection;
use axum::http::StatusCode;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use std::net::SocketAddr;
use tokio::task::JoinSet;
use tokio::time::timeout;
use weir_api::{ApiError, ClientError, GatewayState, Gateways, MissingGateway};
use weir_catalog::{GatewayId, Snapshot, Volume};

/// The gateways that a client wants an answer for.
#[derive(Deserialize)]
pub(super) struct Whose {
    gateways: Option<Gateways>,
}

/// The query with [`Whose`].
pub(super) type WhoseQuery = Result<Query<Whose>, QueryRejection>;

/// The state of a gateway that asks others.
pub(super) struct Others {
    ways: Ways,
    /// The one request at a time that has the metrics of all gateways collected.
    merges: Arc<Semaphore>,
}

impl Default for Others {
    fn default() -> Self {
        Self { ways: Ways::default(), merges: Arc::new(Semaphore::new(1)) }
    }
}

/// A gateway that was started at some time.
#[derive(Clone, Debug)]
pub(super) struct Known {
    id: GatewayId,
    name: String,
    links: SocketAddr,
    state: GatewayState,
    life: u32,
}

impl Known {
    /// Has it ended, so that others have its volumes, or get them?
    fn has_ended(&self) -> bool {
        matches!(self.state, GatewayState::Ended | GatewayState::Ending)
    }

    fn missing(&self, error: &NoAnswer) -> MissingGateway {
        MissingGateway { gateway: self.name.clone(), reason: error.to_string() }
    }
}

/// The place where a volume is served.
enum Home {
    /// At this server, as far as it is served.
    Here,
    /// At another gateway.
    At(Known),
    /// Nowhere at present.
    Nowhere,
}

/// The reason for which another gateway gave no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NoAnswer {
    /// It does not run.
    #[error("it has ended")]
    Ended,
    /// There is no connection.
    #[error(transparent)]
    NotAsked(#[from] NotAsked),
    /// Too many questions to it are under way.
    #[error("this gateway asks it too much at the moment")]
    TooMany,
    /// It took too long.
    #[error("it did not answer within {} s", ASK_WAIT.as_secs())]
    Late,
    /// The answer is too long.
    #[error("its answer is longer than {} MiB", ASK_BYTES_MAX >> 20)]
    TooLong,
    /// The connection broke, or carried no HTTP.
    #[error("{0}")]
    Broken(String),
    /// It answered with a failure.
    #[error("it answered with status {0}")]
    Failed(u16),
    /// The answer is not of the expected form.
    #[error("its answer is malformed")]
    Malformed,
}

/// The answers of gateways.
type Answers<T> = Vec<(Known, Result<T, NoAnswer>)>;

impl Control {
    /// The other gateways that were started at some time, in the order of their numbers; none if
    /// the server is alone.
    fn others(&self) -> Vec<Known> {
        let (snapshot, own) = (self.catalog.snapshot(), self.cluster.get().map(|it| it.own()));
        let ids = snapshot.gateways().map(|gateway| gateway.id).filter(|id| Some(*id) != own);
        ids.filter_map(|id| self.known(&snapshot, id)).collect()
    }

    /// The question for `path` to all other gateways.
    fn to_all(&self, path: &str) -> Vec<(Known, String)> {
        self.others().into_iter().map(|other| (other, path.to_owned())).collect()
    }

    /// A gateway, if the server belongs to its cluster and it was started.
    fn known(&self, snapshot: &Snapshot, id: GatewayId) -> Option<Known> {
        let (view, gateway) = (self.cluster.get()?.view(), snapshot.gateway(id)?);
        let life = view.records.gateways.get(&id)?.number();
        let state = convert::gateway_state(snapshot, &view, id);
        Some(Known { id, name: gateway.name.clone(), links: gateway.links, state, life })
    }

    /// This gateway; none if the server is alone.
    fn own(&self) -> Option<Known> {
        let (snapshot, cluster) = (self.catalog.snapshot(), self.cluster.get()?);
        let (id, view) = (cluster.own(), cluster.view());
        let links = snapshot.gateway(id)?.links;
        let life = view.records.gateways.get(&id).map_or(0, weir_cluster::Gateway::number);
        let state = convert::gateway_state(&snapshot, &view, id);
        Some(Known { id, name: convert::gateway_name(&snapshot, id), links, state, life })
    }

    /// The place where `volume` is served.
    fn home(&self, snapshot: &Snapshot, volume: &Volume) -> Home {
        let Some(cluster) = self.cluster.get() else { return Home::Here };
        if self.plane.volume_live(volume.id).is_some() || self.plane.is_home_of(volume) {
            return Home::Here;
        }
        let home = volume.address.and_then(|group| convert::home(&cluster.view(), group));
        match home {
            Some(id) if id == cluster.own() => Home::Here,
            Some(id) => self.known(snapshot, id).map_or(Home::Nowhere, Home::At),
            None => Home::Nowhere,
        }
    }
}

impl ControlState {
    /// Is the answer for all gateways? The server may be alone.
    fn is_for_all(&self, whose: WhoseQuery, default: Gateways) -> Result<bool, Failure> {
        let Query(Whose { gateways }) = whose?;
        let all = gateways.unwrap_or(default) == Gateways::All;
        Ok(all && self.0.cluster.get().is_some())
    }

    /// The answer of another gateway to a GET of `path`.
    async fn ask(&self, other: &Known, path: &str) -> Result<Vec<u8>, NoAnswer> {
        let Some(cluster) = self.0.cluster.get() else { return Err(NoAnswer::Ended) };
        if other.has_ended() {
            return Err(NoAnswer::Ended);
        }
        let asking = async {
            let _turn = self.0.others.ways.turn(other.id, other.life).await?;
            let stream = self.dial(&**cluster, other).await?;
            weir_api::get_over(stream, path, ASK_BYTES_MAX).await.map_err(broken)
        };
        let (status, body) = timeout(ASK_WAIT, asking).await.map_err(|_| NoAnswer::Late)??;
        match status {
            200 => Ok(body),
            status if is_unknown(status, &body) => Err(NotAsked::Older.into()),
            status => Err(NoAnswer::Failed(status)),
        }
    }

    /// A connection to another gateway. A failure is remembered.
    async fn dial(&self, cluster: &dyn Cluster, other: &Known) -> Result<Stream, NotAsked> {
        let dialled = timeout(ASK_DIAL_WAIT, cluster.ask(other.id, other.links)).await;
        let dialled = dialled.unwrap_or_else(|_| {
            let waited = ASK_DIAL_WAIT.as_secs();
            Err(NotAsked::Failed(format!("it was not reached within {waited} s")))
        });
        dialled.inspect_err(|error| self.0.others.ways.failed(other.id, other.life, error))
    }

    /// The answers of all gateways to a GET of `path`; this one's is `own`.
    async fn ask_all<T: Send + 'static>(
        &self,
        own: T,
        path: &str,
        read: fn(&[u8]) -> Result<T, NoAnswer>,
    ) -> Answers<T> {
        let mut answers = self.ask_each(self.0.to_all(path), read).await;
        answers.extend(self.0.own().map(|known| (known, Ok(own))));
        answers.sort_by_key(|(gateway, _)| gateway.id);
        answers
    }

    /// Asks other gateways for these paths, at the same time.
    async fn ask_each<T: Send + 'static>(
        &self,
        questions: Vec<(Known, String)>,
        read: fn(&[u8]) -> Result<T, NoAnswer>,
    ) -> Answers<T> {
        let mut asking = JoinSet::new();
        for (other, path) in questions {
            let state = self.clone();
            asking.spawn(async move {
                let answer = state.ask(&other, &path).await.and_then(|body| read(&body));
                (other, answer)
            });
        }
        let answers = asking.join_all().await;
        for (other, error) in
            answers.iter().filter_map(|(other, answer)| Some((other, answer.as_ref().err()?)))
        {
            tracing::debug!(gateway = other.name, %error, "another gateway did not answer");
        }
        answers
    }
}

/// The refusal of a request about a volume whose home does not answer.
fn no_answer(home: &Known, volume: &str, error: &NoAnswer) -> Failure {
    let name = &home.name;
    let message =
        format!("gateway {name}, the home of volume {volume:?}, does not answer: {error}");
    Failure::new(StatusCode::SERVICE_UNAVAILABLE, "home_not_answering", message)
}

fn json<T: DeserializeOwned>(body: &[u8]) -> Result<T, NoAnswer> {
    serde_json::from_slice(body).map_err(|_| NoAnswer::Malformed)
}

/// Does an answer say that the gateway does not know the question?
fn is_unknown(status: u16, body: &[u8]) -> bool {
    let code = || serde_json::from_slice::<ApiError>(body).map(|error| error.code);
    status == 404 && code().is_ok_and(|code| code == "no_such_route")
}

fn broken(error: ClientError) -> NoAnswer {
    if error.is_too_long() {
        return NoAnswer::TooLong;
    }
    let ClientError::Broken(source) = error else { return NoAnswer::Malformed };
    NoAnswer::Broken(format!("the connection was lost: {source}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A gateway with this number, called `g` and the number.
    pub(super) fn known(number: u16, state: GatewayState) -> Known {
        let links = ([10, 0, 1, 1], 7450).into();
        Known { id: GatewayId(number), name: format!("g{number}"), links, state, life: 1 }
    }

    #[test]
    fn only_a_question_that_is_not_known_tells_an_older_version() {
        let error = |code: &str| serde_json::to_vec(&ApiError::new(code, "")).unwrap();
        assert!(is_unknown(404, &error("no_such_route")));
        assert!(!is_unknown(404, &error("no_such_volume")));
        assert!(!is_unknown(500, &error("no_such_route")));
        assert!(!is_unknown(404, b"no_such_route"));
    }
}
