//! `/v1/tokens`.

use super::failure::Failure;
use super::page::{PageQuery, page};
use super::{Control, ControlState, blocking, convert, time_of_day};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use weir_api::{MadeToken, NewToken, Page, Token};

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<Token>>, Failure> {
    let all = state.0.tokens.list().into_iter().map(|token| (token.name.clone(), token));
    page(query, "token", all, |token| convert::token(&token))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    new: Result<Json<NewToken>, JsonRejection>,
) -> Result<Json<MadeToken>, Failure> {
    let Json(new) = new?;
    let (created, expires) =
        (time_of_day::seconds(), new.expires.as_deref().map(time_of_day::seconds_of).transpose()?);
    if expires.is_some_and(|end| end <= created) {
        return Err(Failure::bad_request("the expiry time of the token is in the past"));
    }
    let role = convert::role_asked(new.role);
    let token = weir_catalog::Token { name: new.name, role, created, expires };
    let shown = convert::token(&token);
    let secret = blocking(&state, move |control| Ok(control.tokens.create(token)?)).await?;
    Ok(Json(MadeToken { token: shown, secret }))
}

pub(super) async fn revoke(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<Json<Token>, Failure> {
    let revoke = move |control: &Control| {
        let gone = control.tokens.revoke(&name)?;
        // The log has the names of gateways that still know the token.
        control.wait_for_followers();
        Ok(gone)
    };
    let gone = blocking(&state, revoke).await?;
    Ok(Json(convert::token(&gone)))
}
