//! The share rules of a volume: the users that may connect to its share, and from where.

use crate::catalog::{Catalog, Mode, Outcome, Touched};
use crate::error::{IdentityError, Result};
use crate::limits::SHARE_RULES_MAX;
use crate::model::{Principal, ShareAccess, ShareRule};
use crate::network::IpNetwork;
use crate::snapshot::Snapshot;
use crate::{accounts, rows, volumes};
use std::collections::HashSet;
use std::fmt;

/// The clients that a share rule is for, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShareClients {
    /// The client addresses; `None` for all.
    pub network: Option<IpNetwork>,
    /// The users.
    pub principal: NamedPrincipal,
}

/// The users that a share rule is for, by name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NamedPrincipal {
    /// Every user.
    Anyone,
    /// The users in this group.
    Group(String),
    /// This user.
    User(String),
}

impl NamedPrincipal {
    /// `principal` by its name in `snapshot`, which has every account that a share rule names: an
    /// account cannot be deleted before its rules. Of any other account, the RID is the name.
    #[must_use]
    pub fn of(principal: Principal, snapshot: &Snapshot) -> Self {
        match principal {
            Principal::Anyone => Self::Anyone,
            Principal::Group(rid) => Self::Group(
                snapshot.group_by_rid(rid).map_or(rid.to_string(), |group| group.name.clone()),
            ),
            Principal::User(rid) => Self::User(
                snapshot.user_by_rid(rid).map_or(rid.to_string(), |user| user.name.clone()),
            ),
        }
    }

    fn resolve(&self, now: &Snapshot) -> Result<Principal> {
        Ok(match self {
            Self::Anyone => Principal::Anyone,
            Self::Group(name) => Principal::Group(accounts::group(now, name)?.rid),
            Self::User(name) => Principal::User(accounts::user(now, name)?.rid),
        })
    }
}

impl fmt::Display for ShareClients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.principal {
            NamedPrincipal::Anyone => f.write_str("any user")?,
            NamedPrincipal::Group(name) => write!(f, "group {name:?}")?,
            NamedPrincipal::User(name) => write!(f, "user {name:?}")?,
        }
        match self.network {
            None => f.write_str(" from any network"),
            Some(network) => write!(f, " from {network}"),
        }
    }
}

impl Catalog {
    /// Replaces all share rules of a volume. Without rules, nobody can connect.
    ///
    /// # Errors
    /// `NoSuch`, `TooManyShareRules`, `ShareRuleExists` if two rules are for the same clients.
    pub fn set_share_rules(
        &self,
        name: &str,
        rules: &[(ShareClients, ShareAccess)],
        mode: Mode,
    ) -> Result<Outcome> {
        let edit = |now: &Snapshot, _: &[ShareRule]| rules.iter().map(|r| rule(now, r)).collect();
        self.edit_share_rules(name, mode, edit)
    }

    /// Adds one rule.
    ///
    /// # Errors
    /// `NoSuch`, `TooManyShareRules`, `ShareRuleExists`.
    pub fn add_share_rule(
        &self,
        name: &str,
        clients: &ShareClients,
        access: ShareAccess,
        mode: Mode,
    ) -> Result<Outcome> {
        self.edit_share_rules(name, mode, |now, rules| {
            let new = rule(now, &(clients.clone(), access))?;
            Ok(rules.iter().copied().chain([new]).collect())
        })
    }

    /// Removes the rule for these clients.
    ///
    /// # Errors
    /// `NoSuch`, `NoSuchShareRule`.
    pub fn remove_share_rule(
        &self,
        name: &str,
        clients: &ShareClients,
        mode: Mode,
    ) -> Result<Outcome> {
        self.edit_share_rules(name, mode, |now, rules| {
            let removed = (clients.network, clients.principal.resolve(now)?);
            let is_kept = |rule: &&ShareRule| (rule.network, rule.principal) != removed;
            let kept: Vec<_> = rules.iter().filter(is_kept).copied().collect();
            if kept.len() == rules.len() {
                let (volume, rule) = (name.to_owned(), clients.to_string());
                return Err(IdentityError::NoSuchShareRule { volume, rule }.into());
            }
            Ok(kept)
        })
    }

    fn edit_share_rules(
        &self,
        name: &str,
        mode: Mode,
        edit: impl Fn(&Snapshot, &[ShareRule]) -> Result<Vec<ShareRule>>,
    ) -> Result<Outcome> {
        self.mutate(mode, |tx, now| {
            let volume = volumes::find(now, name)?;
            let rules = edit(now, &volume.smb.rules)?;
            if rules.len() > SHARE_RULES_MAX {
                return Err(IdentityError::TooManyShareRules.into());
            }
            let mut clients = HashSet::new();
            let mut duplicates =
                rules.iter().filter(|one| !clients.insert((one.network, one.principal)));
            if let Some(ShareRule { network, principal, .. }) = duplicates.next() {
                let principal = NamedPrincipal::of(*principal, now);
                let rule = ShareClients { network: *network, principal }.to_string();
                let volume = volume.name.clone();
                return Err(IdentityError::ShareRuleExists { volume, rule }.into());
            }
            rows::store_share_rules(tx, volume.id, &rules)?;
            Ok(Touched::Volume(volume.id))
        })
    }
}

fn rule(now: &Snapshot, (clients, access): &(ShareClients, ShareAccess)) -> Result<ShareRule> {
    let principal = clients.principal.resolve(now)?;
    Ok(ShareRule { network: clients.network, principal, access: *access })
}
