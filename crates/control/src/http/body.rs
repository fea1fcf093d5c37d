//! The body of a request to the API: read within a time and up to a size, and a connection that
//! waits for the rest of one does not count as one that is being answered.

use super::failure::Failure;
use super::listen::Placed;
use crate::limits::API_BODY_WAIT;
use axum::body::{Bytes, HttpBody};
use axum::http::StatusCode;
use hyper::body::{Frame, Incoming, SizeHint};
use std::error::Error;
use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::time::{Sleep, sleep};
use weir_api::limits::REQUEST_BYTES_MAX;
use weir_core::Clock;

/// A body as it comes from a connection.
pub(super) struct Body {
    incoming: Incoming,
    place: Placed,
    /// Deadline for the body's end, set when the body is first read.
    deadline: Option<Pin<Box<Sleep>>>,
}

/// The body took longer than [`API_BODY_WAIT`].
#[derive(Debug, thiserror::Error)]
#[error("the request body took longer than {} s", API_BODY_WAIT.as_secs())]
struct TooSlow;

/// The connection was closed for another.
#[derive(Debug, thiserror::Error)]
#[error("the connection was closed in favour of another")]
struct GaveWay;

impl Body {
    /// The body of a request that came on the connection at `place`.
    pub(super) fn new(incoming: Incoming, place: Placed) -> Self {
        if incoming.is_end_stream()
            && let Some((place, _)) = &place
        {
            // A connection closed meanwhile ends its task with this poll.
            let _still_there = place.answers();
        }
        Self { incoming, place, deadline: None }
    }

    /// The deadline, which begins now unless it has begun.
    fn deadline(&mut self) -> Pin<&mut Sleep> {
        let place = &self.place;
        let begin = || {
            if let Some((place, clock)) = place {
                place.moves_body(clock.now());
            }
            Box::pin(sleep(API_BODY_WAIT))
        };
        self.deadline.get_or_insert_with(begin).as_mut()
    }
}

impl HttpBody for Body {
    type Data = Bytes;
    type Error = Box<dyn Error + Send + Sync>;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        let late = self.deadline().poll(cx).is_ready();
        match Pin::new(&mut self.incoming).poll_frame(cx) {
            Poll::Pending if late => Poll::Ready(Some(Err(TooSlow.into()))),
            Poll::Pending => Poll::Pending,
            Poll::Ready(Some(Ok(_))) if late => Poll::Ready(Some(Err(TooSlow.into()))),
            Poll::Ready(Some(frame)) => Poll::Ready(Some(frame.map_err(Into::into))),
            Poll::Ready(None) => {
                let here = self.place.as_ref().is_none_or(|(place, _)| place.answers());
                Poll::Ready((!here).then(|| Err(GaveWay.into())))
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.incoming.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.incoming.size_hint()
    }
}

/// The whole of `body`.
///
/// # Errors
/// `too_large` beyond [`REQUEST_BYTES_MAX`], whether the body announced its size or not; `timeout`
/// beyond [`API_BODY_WAIT`]; `bad_request` where it breaks off.
pub(super) async fn read(mut body: axum::body::Body) -> Result<Bytes, Failure> {
    let mut whole = Vec::new();
    while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
        let frame = frame.map_err(|error| broken(&error))?;
        let Ok(data) = frame.into_data() else { continue };
        if whole.len() + data.len() > REQUEST_BYTES_MAX {
            return Err(too_large());
        }
        whole.extend_from_slice(&data);
    }
    Ok(whole.into())
}

/// The refusal of a body that is too large.
pub(super) fn too_large() -> Failure {
    let message = format!("a request body must not exceed {REQUEST_BYTES_MAX} bytes");
    Failure::new(StatusCode::PAYLOAD_TOO_LARGE, "too_large", message)
}

fn broken(error: &(dyn Error + 'static)) -> Failure {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if error.is::<TooSlow>() {
            let message = format!("{error}; nothing was changed");
            return Failure::new(StatusCode::REQUEST_TIMEOUT, "timeout", message);
        }
        cause = error.source();
    }
    Failure::bad_request("the request body is incomplete")
}
