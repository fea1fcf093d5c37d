//! Who may use the API over TCP: whoever has the token of the data directory. The socket needs
//! none, because its directory lets nobody in but its owner.

use super::failure::Failure;
use crate::sync::Arc;
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, WWW_AUTHENTICATE};
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use weir_api::routes::{LIVENESS, READINESS};

/// The token, as a layer's state.
#[derive(Clone)]
pub(super) struct Token(Arc<str>);

impl Token {
    pub(super) fn new(token: &str) -> Self {
        Self(token.into())
    }

    /// Does `authorization` carry the token? Takes the same time wherever they differ.
    fn matches(&self, authorization: Option<&HeaderValue>) -> bool {
        let given = authorization.and_then(|value| value.as_bytes().strip_prefix(b"Bearer "));
        let Some(given) = given else { return false };
        let expected = self.0.as_bytes();
        let differing = given.iter().zip(expected).fold(0, |sum, (a, b)| sum | (a ^ b));
        !expected.is_empty()
            && given.len() == expected.len()
            && std::hint::black_box(differing) == 0
    }
}

/// Lets a request pass that carries the token, or that asks for nothing but life signs.
pub(super) async fn require(State(token): State<Token>, request: Request, next: Next) -> Response {
    let for_probes = [LIVENESS, READINESS].contains(&request.uri().path());
    if for_probes || token.matches(request.headers().get(AUTHORIZATION)) {
        return next.run(request).await;
    }
    let message = "this listener needs the token that the server keeps in the file api.token of \
                   its data directory, sent as \"Authorization: Bearer TOKEN\"";
    let mut response =
        Failure::new(StatusCode::UNAUTHORIZED, "unauthorized", message).into_response();
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_whole_token_passes() {
        let token = Token::new("0123456789abcdef");
        let matches = |text: &'static str| token.matches(Some(&HeaderValue::from_static(text)));
        assert!(matches("Bearer 0123456789abcdef"));
        for wrong in [
            "Bearer 0123456789abcdeF",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "0123456789abcdef",
            "Basic 0123456789abcdef",
        ] {
            assert!(!matches(wrong), "{wrong}");
        }
        assert!(!token.matches(None));
        assert!(!Token::new("").matches(Some(&HeaderValue::from_static("Bearer "))));
    }
}
