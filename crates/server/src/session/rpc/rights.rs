//! The rights that the export rules of a volume give to the caller of an RPC call.

use std::net::IpAddr;
use weir_catalog::{Access, ExportRule, Squash, Volume};
use weir_core::Rights;
use weir_nfs::rpc::Credential;

/// The rights on `volume` of a caller from `peer`. None if no export rule names that address or the
/// flavor of the credential is not supported.
pub(crate) fn rights_on(volume: &Volume, peer: IpAddr, credential: &Credential) -> Option<Rights> {
    rights(volume.rule_for(peer)?, credential)
}

/// The user whose groups are to be looked up for a caller from `peer`, and the rule that then gives
/// the caller's rights. None for callers whose groups decide nothing.
pub(crate) fn managed<'a>(
    volume: &'a Volume,
    peer: IpAddr,
    credential: &Credential,
) -> Option<(u32, &'a ExportRule)> {
    let rule = volume.rule_for(peer)?;
    match credential {
        Credential::Sys(auth) if !rule.identity(&auth.credentials).is_root() => {
            (rule.squash != Squash::All).then_some((auth.credentials.uid, rule))
        }
        _ => None,
    }
}

/// The identity and rights that `rule` gives to a caller.
pub(crate) fn rights(rule: &ExportRule, credential: &Credential) -> Option<Rights> {
    let cred = match credential {
        Credential::Sys(auth) => rule.identity(&auth.credentials),
        Credential::None => rule.anonymous(),
        Credential::Other(_) => return None,
    };
    Some(Rights { cred, read_only: rule.access == Access::ReadOnly })
}
