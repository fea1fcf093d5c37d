//! The top directories of volumes in requests and responses. Only the file system has their owners
//! and permissions, so the catalogue has no part in this but the names of users and groups.

use super::failure::Failure;
use super::{Control, convert};
use crate::plane::{Top, TopChange};
use axum::http::StatusCode;
use tokio::runtime::Handle;
use weir_api::Volume;
use weir_catalog::{Asked, CatalogError, IdentityError, Mode, Outcome, Snapshot, Thing};
use weir_core::{FsError, VolumeId};

/// Characters of an unknown name in a refusal.
const NAME_CHARS_SHOWN: usize = 64;

/// A change from a request, with the ids of the users and groups that `snapshot` has.
pub(super) fn asked(
    snapshot: &Snapshot,
    asked: &weir_api::TopChange,
) -> Result<TopChange, Failure> {
    let uid = |name: &str| match snapshot.user_named(name) {
        Some(user) => Ok(user.uid),
        None => Err(no_such("user", name)),
    };
    let gid = |name: &str| match snapshot.group_named(name) {
        Some(group) => Ok(group.gid),
        None => Err(no_such("group", name)),
    };
    Ok(TopChange {
        uid: id("uid", asked.uid, asked.owner.as_deref().map(uid).transpose()?)?,
        gid: id("gid", asked.gid, asked.group.as_deref().map(gid).transpose()?)?,
        mode: asked.mode.map(weir_api::UnixMode::bits),
    })
}

/// The refusal of a name that no user or no group has; `thing` is `user` or `group`.
fn no_such(thing: &str, name: &str) -> Failure {
    let name: String = name.chars().take(NAME_CHARS_SHOWN).collect();
    let message = format!(
        "{thing} {name:?} does not exist: create it with `weir {thing} create`, or give a numeric ID"
    );
    Failure::new(StatusCode::NOT_FOUND, &format!("no_such_{thing}"), message)
}

/// An id that is given as a number, or found by a name. `what` is `uid` or `gid`.
fn id(what: &'static str, given: Option<u32>, found: Option<u32>) -> Result<Option<u32>, Failure> {
    match (given, found) {
        (Some(_), Some(_)) => {
            let name = if what == "uid" { "owner" } else { "group" };
            Err(Failure::bad_request(format!("top has both {what} and {name}: give one of them")))
        }
        (Some(id @ u32::MAX), None) => {
            Err(CatalogError::from(IdentityError::BadId { what, id }).into())
        }
        (given, found) => Ok(given.or(found)),
    }
}

impl Control {
    /// Changes a volume by `change`, and its top directory by `top`. If one of them is refused, or
    /// fails, neither is changed.
    pub(super) fn change_with_top(
        &self,
        name: &str,
        top: Option<&weir_api::TopChange>,
        asked: Asked,
        change: impl Fn(Asked) -> weir_catalog::Result<Outcome>,
    ) -> Result<Outcome, Failure> {
        let Some(top) = top else { return Ok(change(asked)?) };
        let plan = change(Asked { mode: Mode::Preview, ..asked })?;
        let (id, top) = (volume(&plan.snapshot, name)?, self::asked(&plan.snapshot, top)?);
        let before = self.plane.top(id).ok_or_else(|| self.not_served(name))?;
        if !asked.mode.commits() {
            return Ok(plan);
        }
        let made = self.change_top(name, id, top).and_then(|()| Ok(change(asked)?));
        if made.is_err()
            && self.plane.top(id) != Some(before)
            && let Err(failure) = self.change_top(name, id, before.into())
        {
            let code = failure.code();
            tracing::error!(volume = name, code, "cannot undo the change of the top directory");
        }
        made
    }

    /// Changes the top directory of a volume that was just created in `snapshot`.
    pub(super) fn prepare_top(
        &self,
        snapshot: &Snapshot,
        name: &str,
        top: &weir_api::TopChange,
    ) -> Result<(), Failure> {
        self.change_top(name, volume(snapshot, name)?, asked(snapshot, top)?)
    }

    /// The refusal of a request that only the server of the volume `name` can carry out.
    pub(super) fn not_served(&self, name: &str) -> Failure {
        let snapshot = self.catalog.snapshot();
        let is_elsewhere =
            snapshot.volume_named(name).is_some_and(|volume| !self.plane.is_home_of(volume));
        let message = if is_elsewhere {
            format!(
                "volume {name:?} has another gateway as its home: repeat the request there (`weir volume home {name}` shows it)"
            )
        } else {
            format!("volume {name:?} is not served; the server's log contains the reason")
        };
        Failure::new(StatusCode::CONFLICT, "volume_not_served", message)
    }

    /// Changes a top directory, for the next request and on stable storage. For threads that may
    /// block.
    fn change_top(&self, name: &str, id: VolumeId, top: TopChange) -> Result<(), Failure> {
        let changed = Handle::current().block_on(self.plane.change_top(id, top));
        match changed.ok_or_else(|| self.not_served(name))? {
            Ok(()) => Ok(()),
            Err(error @ (FsError::NotPermitted | FsError::AccessDenied)) => {
                let message = format!(
                    "the top directory of volume {name:?} was not changed: {error}; to change owners, the server must run as root, with CAP_CHOWN"
                );
                Err(Failure::new(StatusCode::CONFLICT, "top_not_permitted", message))
            }
            Err(error) => {
                let message =
                    format!("the top directory of volume {name:?} was not changed: {error}");
                Err(Failure::internal("io", message))
            }
        }
    }

    /// The plan of a change of a volume, which shows the top directory as it would be.
    pub(super) fn planned(
        &self,
        snapshot: &Snapshot,
        name: &str,
        top: &weir_api::TopChange,
    ) -> Result<Option<Volume>, Failure> {
        let (id, top) = (volume(snapshot, name)?, asked(snapshot, top)?);
        let after = self.plane.top(id).map(|before: Top| before.with(top));
        let shown = self.volume(snapshot, name);
        Ok(shown.map(|shown| Volume { top: after.map(|top| convert::top(snapshot, top)), ..shown }))
    }
}

/// The id of a volume by its name.
fn volume(snapshot: &Snapshot, name: &str) -> Result<VolumeId, Failure> {
    let no_such = || CatalogError::NoSuch { thing: Thing::Volume, name: name.to_owned() };
    Ok(snapshot.volume_named(name).ok_or_else(no_such)?.id)
}
