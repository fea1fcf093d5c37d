//! `/v1/users`. A password arrives here in clear text, over the socket, loopback or TLS, and leaves
//! as its NT hash; neither is logged or recorded.

use super::change::{ChangeResult, Options, WithEtag};
use super::failure::Failure;
use super::page::{PageQuery, page};
use super::preconditions::Target;
use super::{Control, ControlState, convert};
use axum::Json;
use axum::extract::rejection::JsonRejection;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use md4::{Digest as _, Md4};
use weir_api::limits::PASSWORD_CHARS_MAX;
use weir_api::{NewPassword, Page, User};
use weir_catalog::{
    Asked, Catalog, CatalogError, NT_HASH_BYTES, NewUser, Outcome, Snapshot, Thing, UserChange,
};

pub(super) async fn list(
    State(state): State<ControlState>,
    query: PageQuery,
) -> Result<Json<Page<User>>, Failure> {
    let (snapshot, sealer) = (state.0.catalog.snapshot(), state.0.catalog.sealer());
    let all = snapshot.users().iter().map(|user| (format!("{:010}", user.rid), user));
    page(query, "user", all, |user| convert::user(&snapshot, sealer, user))
}

pub(super) async fn show(
    State(state): State<ControlState>,
    Path(name): Path<String>,
) -> Result<WithEtag<User>, Failure> {
    let user = state.0.user(&state.0.catalog.snapshot(), &name);
    Ok(WithEtag(user.ok_or(CatalogError::NoSuch { thing: Thing::User, name })?))
}

pub(super) async fn create(
    State(state): State<ControlState>,
    options: Options,
    new: Result<Json<weir_api::NewUser>, JsonRejection>,
) -> ChangeResult<User> {
    let Json(weir_api::NewUser { name, uid, gid, groups, enabled }) = new?;
    let shown = name.clone();
    let new = NewUser { name, uid, gid, groups, enabled };
    let apply = move |catalog: &Catalog, asked: Asked| catalog.create_user(&new, asked.mode);
    let view =
        move |control: &Control, outcome: &Outcome| Ok(control.user(&outcome.snapshot, &shown));
    state.change(options, Target::New, apply, view).await
}

pub(super) async fn change(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    change: Result<Json<weir_api::UserChange>, JsonRejection>,
) -> ChangeResult<User> {
    let Json(weir_api::UserChange { name: next, gid, groups, enabled }) = change?;
    let (target, shown) = (Target::User(name.clone()), next.clone().unwrap_or(name.clone()));
    let change = UserChange { name: next, gid, groups, enabled };
    let apply =
        move |catalog: &Catalog, asked: Asked| catalog.change_user(&name, &change, asked.mode);
    let view =
        move |control: &Control, outcome: &Outcome| Ok(control.user(&outcome.snapshot, &shown));
    state.change(options, target, apply, view).await
}

pub(super) async fn set_password(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
    new: Result<Json<NewPassword>, JsonRejection>,
) -> ChangeResult<User> {
    // The reason of the rejection may repeat a part of the body.
    let vague = |rejection: JsonRejection| {
        let message = "the body must be a JSON object with the text \"password\" and nothing else";
        Failure::new(rejection.status(), "bad_request", message)
    };
    let Json(new) = new.map_err(vague)?;
    if !(1..=PASSWORD_CHARS_MAX).contains(&new.password.chars().count()) {
        let message = format!("a password must have 1 to {PASSWORD_CHARS_MAX} characters");
        return Err(Failure::new(StatusCode::BAD_REQUEST, "bad_password", message));
    }
    let (target, shown, hash) = (Target::User(name.clone()), name.clone(), nt_hash(&new.password));
    let apply =
        move |catalog: &Catalog, asked: Asked| catalog.set_password(&name, &hash, asked.mode);
    let view =
        move |control: &Control, outcome: &Outcome| Ok(control.user(&outcome.snapshot, &shown));
    state.change(options, target, apply, view).await
}

pub(super) async fn delete(
    State(state): State<ControlState>,
    Path(name): Path<String>,
    options: Options,
) -> ChangeResult<User> {
    let (target, shown) = (Target::User(name.clone()), name.clone());
    let apply = move |catalog: &Catalog, asked: Asked| catalog.delete_user(&name, asked.mode);
    // After a preview the catalogue still has it.
    let view =
        move |control: &Control, _: &Outcome| Ok(control.user(&control.catalog.snapshot(), &shown));
    state.change(options, target, apply, view).await
}

/// The NT hash of a password: MD4 of its UTF-16 in little-endian order (MS-NLMP §3.3.1, NTOWFv1).
/// SMB itself is not needed for that, and the control plane does not know it.
fn nt_hash(password: &str) -> [u8; NT_HASH_BYTES] {
    let text: Vec<u8> = password.encode_utf16().flat_map(u16::to_le_bytes).collect();
    Md4::digest(text).into()
}

impl Control {
    /// A user as it is in `snapshot`.
    pub(super) fn user(&self, snapshot: &Snapshot, name: &str) -> Option<User> {
        let user = snapshot.user_named(name)?;
        Some(convert::user(snapshot, self.catalog.sealer(), user))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_is_that_of_the_specification() {
        // MS-NLMP §4.2.2.1.2.
        let expected = 0xa4f4_9c40_6510_bdca_b682_4ee7_c30f_d852_u128;
        assert_eq!(nt_hash("Password"), expected.to_be_bytes());
        assert_eq!(nt_hash(""), 0x31d6_cfe0_d16a_e931_b73c_59d7_e0c0_89c0_u128.to_be_bytes());
    }
}
