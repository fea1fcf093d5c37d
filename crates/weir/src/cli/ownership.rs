//! The options for the top directory of a volume, common to `weir volume create` and `weir volume
//! set`.

use clap::Args;
use weir_api::{Top, TopChange, UnixMode};

/// The owner, the group and the mode of the top directory of a volume to create or to change. The
/// options are in the group of the terms, of which `weir volume set` needs at least one.
#[derive(Args)]
#[group(id = "ownership")]
pub(crate) struct OwnershipArgs {
    /// Owner of the volume's top directory: a user (`weir user`) or a user ID; of a new volume by
    /// default root. Digits are always an ID
    #[arg(long, group = "terms", value_name = "USER")]
    owner: Option<String>,
    /// Group of the volume's top directory: a group (`weir group`) or a group ID; of a new volume
    /// by default root's, 0. Digits are always an ID
    #[arg(long, group = "terms", value_name = "GROUP")]
    group: Option<String>,
    /// Permissions of the volume's top directory in octal, such as 0770: read (4), write (2) and
    /// search (1) for the owner, the group and others; of a new volume by default 0755. On a
    /// directory with an access control list, the digit of the group is the mask of the list
    #[arg(long, group = "terms", value_name = "OCTAL")]
    mode: Option<UnixMode>,
}

impl OwnershipArgs {
    /// The top directory for a request, if an option is given.
    pub(crate) fn change(&self) -> Option<TopChange> {
        let ((uid, owner), (gid, group)) =
            (account(self.owner.as_ref()), account(self.group.as_ref()));
        let change = TopChange { uid, owner, gid, group, mode: self.mode };
        (change != TopChange::default()).then_some(change)
    }
}

/// The id or the name of an account. Digits that are no id are a name, which the server refuses.
fn account(given: Option<&String>) -> (Option<u32>, Option<String>) {
    let id = given.and_then(|given| given.parse().ok());
    (id, given.filter(|_| id.is_none()).cloned())
}

/// A top directory as a text.
pub(crate) fn described(top: &Top) -> String {
    let account = |id: u32, name: &Option<String>| match name {
        Some(name) => format!("{name} ({id})"),
        None if id == 0 => "root".to_owned(),
        None => id.to_string(),
    };
    let (owner, group) = (account(top.uid, &top.owner), account(top.gid, &top.group));
    format!("owner {owner}, group {group}, mode {}", top.mode)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(owner: Option<&str>, group: Option<&str>, mode: Option<&str>) -> OwnershipArgs {
        let text = |text: Option<&str>| text.map(str::to_owned);
        let mode = mode.map(|mode| mode.parse().unwrap());
        OwnershipArgs { owner: text(owner), group: text(group), mode }
    }

    #[test]
    fn digits_are_ids_and_other_words_are_names() {
        assert_eq!(args(None, None, None).change(), None);
        let change = args(Some("anna"), Some("50"), None).change().unwrap();
        assert_eq!((change.uid, change.owner.as_deref()), (None, Some("anna")));
        assert_eq!((change.gid, change.group, change.mode), (Some(50), None, None));
        let change = args(Some("4294967296"), None, Some("770")).change().unwrap();
        assert_eq!((change.uid, change.owner.as_deref()), (None, Some("4294967296")));
        assert_eq!(change.mode.unwrap().to_string(), "0770");
    }

    #[test]
    fn a_top_directory_is_described_by_names_and_ids() {
        let mode = "0770".parse().unwrap();
        let mut top = Top { uid: 5001, owner: Some("anna".into()), gid: 0, group: None, mode };
        assert_eq!(described(&top), "owner anna (5001), group root, mode 0770");
        top.gid = 7;
        assert_eq!(described(&top), "owner anna (5001), group 7, mode 0770");
    }
}
