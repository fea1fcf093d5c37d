//! Conversions of users, groups and shares.

use super::super::failure::Failure;
use super::etag;
use weir_api::{ANY_NETWORK, PasswordState, Protocol};
use weir_catalog::{
    CatalogError, Group, IdentityError, NamedPrincipal, NetworkError, Protocols, Sealer,
    ShareAccess, ShareClients, ShareRule, SharingChange, Snapshot, User, Volume,
};

/// A user for a response.
pub(in super::super) fn user(snapshot: &Snapshot, sealer: &Sealer, user: &User) -> weir_api::User {
    let mut shown = weir_api::User {
        rid: user.rid,
        name: user.name.clone(),
        sid: sid(snapshot, user.rid),
        uid: user.uid,
        gid: user.gid,
        groups: user.groups.iter().map(|group| group.name.clone()).collect(),
        enabled: user.enabled,
        password: match &user.password {
            None => PasswordState::None,
            Some(sealed) if sealer.open(user.rid, sealed).is_err() => PasswordState::Unreadable,
            Some(_) => PasswordState::Set,
        },
        etag: String::new(),
    };
    shown.etag = etag(&shown);
    shown
}

/// A group with its members for a response.
pub(in super::super) fn group(
    snapshot: &Snapshot,
    group: &Group,
    members: Vec<String>,
) -> weir_api::Group {
    let mut shown = weir_api::Group {
        rid: group.rid,
        name: group.name.clone(),
        sid: sid(snapshot, group.rid),
        gid: group.gid,
        members,
        etag: String::new(),
    };
    shown.etag = etag(&shown);
    shown
}

/// The SID of an account of this catalogue.
fn sid(snapshot: &Snapshot, rid: u32) -> String {
    let [a, b, c] = snapshot.domain();
    format!("S-1-5-21-{a}-{b}-{c}-{rid}")
}

/// The protocols and the share of a volume for a response.
pub(super) fn sharing(volume: &Volume) -> weir_api::Sharing {
    let has = [(volume.protocols.nfs(), Protocol::Nfs), (volume.protocols.smb(), Protocol::Smb)];
    weir_api::Sharing {
        protocols: has.into_iter().filter_map(|(has, protocol)| has.then_some(protocol)).collect(),
        smb_encrypt: volume.smb.encrypt,
        smb_hidden: volume.smb.hidden,
        smb_abe: volume.smb.abe,
    }
}

/// The protocols and the share of a volume to create or change, from a request.
pub(in super::super) fn sharing_asked(
    asked: &weir_api::SharingChange,
) -> Result<SharingChange, Failure> {
    let read = |named: &Vec<Protocol>| {
        let has = |protocol| named.contains(&protocol);
        let none = || CatalogError::from(IdentityError::NoProtocol);
        Protocols::new(has(Protocol::Nfs), has(Protocol::Smb)).ok_or_else(none)
    };
    Ok(SharingChange {
        protocols: asked.protocols.as_ref().map(read).transpose()?,
        encrypt: asked.smb_encrypt,
        hidden: asked.smb_hidden,
        abe: asked.smb_abe,
    })
}

/// A share rule for a response.
pub(super) fn share_rule(snapshot: &Snapshot, rule: &ShareRule) -> weir_api::ShareRule {
    let (user, group) = match NamedPrincipal::of(rule.principal, snapshot) {
        NamedPrincipal::Anyone => (None, None),
        NamedPrincipal::User(name) => (Some(name), None),
        NamedPrincipal::Group(name) => (None, Some(name)),
    };
    weir_api::ShareRule {
        network: rule.network.map_or_else(|| ANY_NETWORK.to_owned(), |net| net.to_string()),
        user,
        group,
        access: match rule.access {
            ShareAccess::None => weir_api::ShareAccess::None,
            ShareAccess::ReadOnly => weir_api::ShareAccess::ReadOnly,
            ShareAccess::ReadWrite => weir_api::ShareAccess::ReadWrite,
        },
    }
}

/// A share rule from a request.
pub(in super::super) fn share_rule_asked(
    rule: &weir_api::ShareRule,
) -> Result<(ShareClients, ShareAccess), Failure> {
    let clients = clients_asked(&rule.network, rule.user.as_ref(), rule.group.as_ref())?;
    let access = match rule.access {
        weir_api::ShareAccess::None => ShareAccess::None,
        weir_api::ShareAccess::ReadOnly => ShareAccess::ReadOnly,
        weir_api::ShareAccess::ReadWrite => ShareAccess::ReadWrite,
    };
    Ok((clients, access))
}

/// The clients of a share rule, from a request.
pub(in super::super) fn clients_asked(
    network: &str,
    user: Option<&String>,
    group: Option<&String>,
) -> Result<ShareClients, Failure> {
    let bad = |error: NetworkError| Failure::bad_request(error.to_string());
    let network = match network {
        ANY_NETWORK => None,
        network => Some(network.parse().map_err(bad)?),
    };
    let principal = match (user, group) {
        (None, None) => NamedPrincipal::Anyone,
        (Some(user), None) => NamedPrincipal::User(user.clone()),
        (None, Some(group)) => NamedPrincipal::Group(group.clone()),
        (Some(_), Some(_)) => {
            let message = "a share rule is for one user or for one group: give user or group";
            return Err(Failure::bad_request(message));
        }
    };
    Ok(ShareClients { network, principal })
}
