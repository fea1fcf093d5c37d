//! Requests about users, groups and share rules.

use super::{Client, Dry, NOTHING, Pages, Result};
use crate::routes;
use crate::{
    Changed, Group, Member, NewGroup, NewPassword, NewUser, ShareRule, User, UserChange, Volume,
};
use hyper::Method;

impl Client {
    /// All users.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError), as for every request.
    pub async fn users(&self) -> Result<Vec<User>> {
        Pages::new(self, routes::USERS).all().await
    }

    /// One user.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn user(&self, name: &str) -> Result<User> {
        self.get(&routes::path(routes::USER, name)).await
    }

    /// Creates a user without a password.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn create_user(&self, new: &NewUser, dry: Dry) -> Result<Changed<User>> {
        self.make(routes::USERS, new, dry).await
    }

    /// Changes a user.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn change_user(
        &self,
        name: &str,
        change: &UserChange,
        dry: Dry,
    ) -> Result<Changed<User>> {
        self.send(Method::PATCH, &routes::path(routes::USER, name), Some(change), dry).await
    }

    /// Sets the password of a user.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn set_password(
        &self,
        name: &str,
        new: &NewPassword,
        dry: Dry,
    ) -> Result<Changed<User>> {
        self.send(Method::PUT, &routes::path(routes::PASSWORD, name), Some(new), dry).await
    }

    /// Deletes a user.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn delete_user(&self, name: &str, dry: Dry) -> Result<Changed<User>> {
        self.send(Method::DELETE, &routes::path(routes::USER, name), NOTHING, dry).await
    }

    /// All groups.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn groups(&self) -> Result<Vec<Group>> {
        Pages::new(self, routes::GROUPS).all().await
    }

    /// One group.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn group(&self, name: &str) -> Result<Group> {
        self.get(&routes::path(routes::GROUP, name)).await
    }

    /// Creates a group without members.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn create_group(&self, new: &NewGroup, dry: Dry) -> Result<Changed<Group>> {
        self.make(routes::GROUPS, new, dry).await
    }

    /// Deletes a group.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn delete_group(&self, name: &str, dry: Dry) -> Result<Changed<Group>> {
        self.send(Method::DELETE, &routes::path(routes::GROUP, name), NOTHING, dry).await
    }

    /// Adds a user to a group.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn add_member(&self, group: &str, user: &str, dry: Dry) -> Result<Changed<Group>> {
        let member = Member { user: user.to_owned() };
        self.make(&routes::path(routes::MEMBERS, group), &member, dry).await
    }

    /// Removes a user from a group.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn remove_member(&self, group: &str, user: &str, dry: Dry) -> Result<Changed<Group>> {
        let path = routes::path(routes::MEMBERS, group);
        self.send(Method::DELETE, &routes::with_query(&path, "user", user), NOTHING, dry).await
    }

    /// The share rules of a volume, in the order in which they are evaluated.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn share_rules(&self, volume: &str) -> Result<Vec<ShareRule>> {
        self.get(&routes::path(routes::SHARE_RULES, volume)).await
    }

    /// Replaces all share rules of a volume.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn set_share_rules(
        &self,
        volume: &str,
        rules: &[ShareRule],
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        self.send(Method::PUT, &routes::path(routes::SHARE_RULES, volume), Some(rules), dry).await
    }

    /// Adds a share rule to a volume.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn add_share_rule(
        &self,
        volume: &str,
        rule: &ShareRule,
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        self.make(&routes::path(routes::SHARE_RULES, volume), rule, dry).await
    }

    /// Removes the share rule with the network and the users of `rule` from a volume, whatever its
    /// access.
    ///
    /// # Errors
    /// [`ClientError`](super::ClientError).
    pub async fn remove_share_rule(
        &self,
        volume: &str,
        rule: &ShareRule,
        dry: Dry,
    ) -> Result<Changed<Volume>> {
        let path = routes::path(routes::SHARE_RULES, volume);
        let mut path = routes::with_query(&path, "network", &rule.network);
        for (key, name) in [("user", &rule.user), ("group", &rule.group)] {
            if let Some(name) = name {
                path = routes::with_query(&path, key, name);
            }
        }
        self.send(Method::DELETE, &path, NOTHING, dry).await
    }
}
