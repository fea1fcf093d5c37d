//! The protocols and the share settings of a volume as a change of it. The share rules are in
//! `shares`.

use crate::error::{IdentityError, Result};
use crate::model::{Protocols, ShareRule, ShareSettings};
use crate::rows;
use crate::snapshot::Snapshot;
use rusqlite::{Connection, params};
use weir_core::VolumeId;

/// Names that the protocol reserves, as far as a volume can have them; those with `$` it cannot.
const RESERVED: [&str; 2] = ["MAILSLOT", "PIPE"];

/// A change of the protocols and the share settings of a volume; `None` stays as it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SharingChange {
    /// The protocols.
    pub protocols: Option<Protocols>,
    /// Whether every SMB request must be encrypted.
    pub encrypt: Option<bool>,
    /// Whether lists of shares omit the share.
    pub hidden: Option<bool>,
    /// Whether lists of files omit those that the user may not read.
    pub abe: Option<bool>,
}

/// Changes the volume `id`, called `name`, which has these protocols and settings `before`. A share
/// without rules that is turned on gets the rules for this machine.
///
/// # Errors
/// `ShareNameTaken`, `ShareNameReserved`, `Database`.
pub(crate) fn store(
    tx: &Connection,
    now: &Snapshot,
    (id, name): (VolumeId, &str),
    before: (Protocols, &ShareSettings),
    change: &SharingChange,
) -> Result<()> {
    if *change == SharingChange::default() {
        return Ok(());
    }
    let (protocols_before, settings) = before;
    let protocols = change.protocols.unwrap_or(protocols_before);
    if protocols.smb() && !protocols_before.smb() {
        check_name(now, name)?;
        if settings.rules.is_empty() {
            rows::store_share_rules(tx, id, &ShareRule::defaults())?;
        }
    }
    tx.execute(
        "UPDATE volumes SET nfs = ?2, smb = ?3, smb_encrypt = ?4, smb_hidden = ?5, smb_abe = ?6
         WHERE id = ?1",
        params![
            id.0,
            protocols.nfs(),
            protocols.smb(),
            change.encrypt.unwrap_or(settings.encrypt),
            change.hidden.unwrap_or(settings.hidden),
            change.abe.unwrap_or(settings.abe)
        ],
    )?;
    Ok(())
}

fn check_name(now: &Snapshot, name: &str) -> Result<()> {
    let volume = name.to_owned();
    if RESERVED.iter().any(|reserved| reserved.eq_ignore_ascii_case(name)) {
        return Err(IdentityError::ShareNameReserved { volume }.into());
    }
    match now.share_named(name) {
        None => Ok(()),
        Some(other) => {
            Err(IdentityError::ShareNameTaken { volume, other: other.name.clone() }.into())
        }
    }
}
