//! Every answer that is no success: status, body, and how loudly it is logged. The one place
//! where the catalogue's errors meet HTTP.

use axum::Json;
use axum::extract::rejection::{JsonRejection, QueryRejection};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use weir_api::{Allowed, ApiError, codes};
use weir_catalog::{CatalogError, Fault};

/// An answer that is no success.
#[derive(Debug)]
pub(super) struct Failure {
    status: StatusCode,
    error: ApiError,
}

impl Failure {
    pub(super) fn new(status: StatusCode, code: &str, message: impl Into<String>) -> Self {
        debug_assert!(codes::find(code).is_some(), "{code} is not in the table");
        Self { status, error: ApiError::new(code, message) }
    }

    /// The failure's HTTP status.
    pub(super) const fn status(&self) -> StatusCode {
        self.status
    }

    /// The failure's code for programs.
    pub(super) fn code(&self) -> &str {
        &self.error.code
    }

    /// The server's own fault.
    pub(super) fn internal(code: &str, message: impl Into<String>) -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, code, message)
    }

    /// The request makes no sense by itself.
    pub(super) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "bad_request", message)
    }
}

/// The code of a failure, in the extensions of its answer.
#[derive(Clone, Debug)]
pub(super) struct Code(pub(super) String);

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        if self.status.is_server_error() {
            tracing::error!(code = self.error.code, "{}", self.error.message);
        } else {
            tracing::info!(code = self.error.code, "refused: {}", self.error.message);
        }
        let code = Code(self.error.code.clone());
        let mut response = (self.status, Json(self.error)).into_response();
        response.extensions_mut().insert(code);
        response
    }
}

impl From<CatalogError> for Failure {
    fn from(error: CatalogError) -> Self {
        let status = match error.fault() {
            Fault::Invalid => StatusCode::BAD_REQUEST,
            Fault::NotFound => StatusCode::NOT_FOUND,
            Fault::Conflict => StatusCode::CONFLICT,
            Fault::Infeasible => StatusCode::UNPROCESSABLE_ENTITY,
            Fault::Internal => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let allowed = error.allowed().map(|allowed| Allowed {
            field: allowed.field.to_owned(),
            min: allowed.min,
            max: allowed.max,
        });
        let (code, message) = (error.code().to_owned(), error.to_string());
        Self { status, error: ApiError { code, message, allowed } }
    }
}

impl From<JsonRejection> for Failure {
    fn from(rejection: JsonRejection) -> Self {
        Self::new(rejection.status(), "bad_request", rejection.body_text())
    }
}

impl From<QueryRejection> for Failure {
    fn from(rejection: QueryRejection) -> Self {
        Self::new(rejection.status(), "bad_request", rejection.body_text())
    }
}
