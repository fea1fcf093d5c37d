//! The groups that this life serves, or is about to serve: what the records say is followed step by
//! step, and each step waits for the driver.
//!
//! The life that serves a group stops before it writes another home into the records, and it alone
//! writes that as long as it is a member.

use crate::event::{Action, Reason};
use crate::id::{Generation, GroupId, Life};
use crate::records::{Came, Home, View};
use alloc::collections::BTreeMap;
use alloc::vec::Vec;

/// The groups of one life.
#[derive(Debug, Default)]
pub(crate) struct Hosting(BTreeMap<GroupId, Stage>);

/// Abilities of a life at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Able {
    /// It has the right to reply. A life without it follows an old view perhaps, and takes up no
    /// group.
    pub(crate) replies: bool,
    /// It reaches etcd. A life without it begins to give no group away.
    pub(crate) changes: bool,
}

/// How far a group has got.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The driver makes it ready.
    Adopting(Came),
    /// It is ready.
    Adopted(Came),
    /// The driver brings its addresses. Replies may leave from now on.
    Addressing(Came),
    Serving,
    /// The driver ends its service. Replies may leave until it has.
    Stopping,
    /// No replies leave. Its new home is in a change that was sent upon this generation.
    Stopped(Option<Generation>),
}

impl Hosting {
    /// Does the next step of each group.
    pub(crate) fn follow(
        &mut self,
        me: Life,
        view: &View,
        able: Able,
        actions: &mut Vec<Action>,
    ) -> Result<(), Reason> {
        self.lose(me, view, actions)?;
        for (&group, row) in &view.records.groups {
            let Home::At { life, came, to } = row.home else { continue };
            if life != me {
                continue;
            }
            let stage = self.0.get(&group).copied();
            let next = match stage {
                None if able.replies => {
                    actions.push(Action::Adopt { group, came });
                    Stage::Adopting(came)
                }
                None => continue,
                Some(Stage::Adopted(came)) if able.replies => {
                    actions.push(Action::Address(group));
                    Stage::Addressing(came)
                }
                Some(Stage::Serving) if to.is_some() && able.changes => {
                    actions.push(Action::Stop { group, to });
                    Stage::Stopping
                }
                Some(Stage::Stopped(sent))
                    if resumes(sent, to, view.generation(), able.changes) =>
                {
                    actions.push(Action::Resume(group));
                    Stage::Serving
                }
                Some(stage) => stage,
            };
            if stage != Some(next) {
                self.0.insert(group, next);
            }
        }
        Ok(())
    }

    /// Ends the service of groups that are not at `me` any more.
    fn lose(&mut self, me: Life, view: &View, actions: &mut Vec<Action>) -> Result<(), Reason> {
        let mut result = Ok(());
        self.0.retain(|&group, stage| {
            let row = view.records.groups.get(&group);
            let home = row.and_then(|row| row.home.at());
            if home.is_some_and(|(life, _)| life == me) {
                return true;
            }
            match (*stage, row) {
                (Stage::Stopped(_), _) => return false,
                (Stage::Adopted(_) | Stage::Serving, None) => {
                    actions.push(Action::Stop { group, to: None });
                    *stage = Stage::Stopping;
                }
                // Deleted: a step that is under way ends before the service does.
                (_, None) => {}
                // Only a life that is condemned loses a group, and it has ended.
                (_, Some(_)) => result = Err(Reason::HomesTaken),
            }
            true
        });
        result
    }

    /// The groups that are stopped and have a life to go to, with their new homes.
    pub(crate) fn handovers(&self, me: Life, view: &View) -> Vec<(GroupId, Home)> {
        let stopped = self.0.iter().filter(|(_, stage)| matches!(stage, Stage::Stopped(_)));
        let homes = stopped.filter_map(|(&group, _)| {
            let (life, to) = view.records.groups.get(&group)?.home.at()?;
            let to = to.filter(|to| life == me && view.is_member(*to))?;
            Some((group, Home::At { life: to, came: Came::Handed { from: me }, to: None }))
        });
        homes.collect()
    }

    /// A change with the new homes of `groups` is sent upon `generation`.
    pub(crate) fn sent(&mut self, groups: &[(GroupId, Home)], generation: Generation) {
        for (group, _) in groups {
            if let Some(stage) = self.0.get_mut(group) {
                *stage = Stage::Stopped(Some(generation));
            }
        }
    }

    pub(crate) fn adopted(&mut self, group: GroupId) {
        if let Some(stage) = self.0.get_mut(&group)
            && let Stage::Adopting(came) = *stage
        {
            *stage = Stage::Adopted(came);
        }
    }

    pub(crate) fn addressed(&mut self, group: GroupId, actions: &mut Vec<Action>) {
        if let Some(stage) = self.0.get_mut(&group)
            && let Stage::Addressing(came) = *stage
        {
            *stage = Stage::Serving;
            // After a handover without loss nobody is owed a notice, which the server knows.
            if came != Came::New {
                actions.push(Action::Notify(group));
            }
        }
    }

    pub(crate) fn stopped(&mut self, group: GroupId) {
        if let Some(stage) = self.0.get_mut(&group)
            && *stage == Stage::Stopping
        {
            *stage = Stage::Stopped(None);
        }
    }

    /// The groups for which replies may leave.
    pub(crate) fn replying(&self) -> impl Iterator<Item = GroupId> {
        let replies = |stage: &Stage| {
            matches!(stage, Stage::Addressing(_) | Stage::Serving | Stage::Stopping)
        };
        self.0.iter().filter(move |(_, stage)| replies(stage)).map(|(group, _)| *group)
    }
}

/// May a stopped group be served again? It may where no change with its new home was sent, or none
/// can happen any more, and the move is off, or can't go on without etcd.
fn resumes(sent: Option<Generation>, to: Option<Life>, now: Generation, changes: bool) -> bool {
    match sent {
        None => to.is_none() || !changes,
        Some(sent) => now > sent && to.is_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::id::GatewayId;
    use crate::records::Records;

    const ME: Life = Life { gateway: GatewayId(1), number: 1 };
    const OTHER: Life = Life { gateway: GatewayId(2), number: 1 };
    const GROUP: GroupId = GroupId(5);

    /// Two gateways, and a group at `home`, which moves to `to`.
    fn view(home: Life, to: Option<Life>) -> View {
        let home = Home::At { life: home, came: Came::New, to };
        let records = Records::default()
            .with(&Change::registers(ME))
            .with(&Change::registers(OTHER))
            .with(&Change::Place { group: GROUP, weight: 1 })
            .with(&Change::Homes([(GROUP, home)].into()));
        View { records: records.into(), ..View::default() }
    }

    /// Follows `view` and returns what is to be done.
    fn follow(hosting: &mut Hosting, view: &View, changes: bool) -> Vec<Action> {
        let mut actions = Vec::new();
        hosting.follow(ME, view, Able { replies: true, changes }, &mut actions).unwrap();
        actions
    }

    fn serving() -> Hosting {
        let mut hosting = Hosting::default();
        let (home, mut actions) = (view(ME, None), Vec::new());
        let unable = Able { replies: false, changes: true };
        hosting.follow(ME, &home, unable, &mut actions).unwrap();
        assert_eq!(actions, [], "it has no right to reply");
        actions.extend(follow(&mut hosting, &home, true));
        hosting.adopted(GROUP);
        hosting.follow(ME, &home, unable, &mut actions).unwrap();
        assert_eq!(hosting.replying().count(), 0, "it has no right to reply");
        actions.extend(follow(&mut hosting, &home, true));
        assert_eq!(hosting.replying().count(), 1);
        hosting.addressed(GROUP, &mut actions);
        let adopt = Action::Adopt { group: GROUP, came: Came::New };
        assert_eq!(
            actions,
            [adopt, Action::Address(GROUP)],
            "new groups have no clients to notify"
        );
        hosting
    }

    #[test]
    fn a_group_is_stopped_before_its_new_home_is_written() {
        let mut hosting = serving();
        let moving = view(ME, Some(OTHER));
        assert_eq!(follow(&mut hosting, &moving, false), [], "not while cut from etcd");
        let stop = Action::Stop { group: GROUP, to: Some(OTHER) };
        assert_eq!(follow(&mut hosting, &moving, true), [stop]);
        assert_eq!(hosting.handovers(ME, &moving), []);
        hosting.stopped(GROUP);
        assert_eq!(hosting.replying().count(), 0);
        let home = Home::At { life: OTHER, came: Came::Handed { from: ME }, to: None };
        assert_eq!(hosting.handovers(ME, &moving), [(GROUP, home)]);
        assert_eq!(follow(&mut hosting, &view(OTHER, None), true), []);
        assert!(hosting.0.is_empty());
    }

    #[test]
    fn a_stopped_group_is_served_again_unless_its_new_home_may_stand_in_the_records() {
        let mut hosting = serving();
        let (moving, off) = (view(ME, Some(OTHER)), view(ME, None));
        let _stop = follow(&mut hosting, &moving, true);
        hosting.stopped(GROUP);
        let mut sent = Hosting(hosting.0.clone());
        assert_eq!(follow(&mut hosting, &moving, false), [Action::Resume(GROUP)], "cut from etcd");
        sent.sent(&sent.handovers(ME, &moving), moving.generation());
        assert_eq!(follow(&mut sent, &moving, false), []);
        assert_eq!(follow(&mut sent, &off, true), [], "the generation is the same");
        let next = View { records: off.records.with(&Change::Settle).into(), ..off };
        assert_eq!(follow(&mut sent, &next, true), [Action::Resume(GROUP)]);
    }

    #[test]
    fn a_group_that_is_lost_while_it_is_served_ends_the_life_and_a_deleted_one_its_service() {
        let mut hosting = serving();
        let able = Able { replies: true, changes: true };
        let lost = hosting.follow(ME, &view(OTHER, None), able, &mut Vec::new());
        assert_eq!(lost, Err(Reason::HomesTaken));
        let mut hosting = serving();
        let deleted = view(ME, None).records.with(&Change::Withdraw { group: GROUP });
        let deleted = View { records: deleted.into(), ..View::default() };
        assert_eq!(follow(&mut hosting, &deleted, true), [Action::Stop { group: GROUP, to: None }]);
        assert_eq!(follow(&mut hosting, &deleted, true), []);
        hosting.stopped(GROUP);
        assert_eq!(follow(&mut hosting, &deleted, true), []);
        assert!(hosting.0.is_empty());
    }

    #[test]
    fn a_group_that_is_deleted_while_it_is_made_ready_is_stopped_too() {
        let (mut hosting, home) = (Hosting::default(), view(ME, None));
        follow(&mut hosting, &home, true);
        let deleted = home.records.with(&Change::Withdraw { group: GROUP });
        let deleted = View { records: deleted.into(), ..View::default() };
        assert_eq!(follow(&mut hosting, &deleted, true), [], "the driver is not done");
        hosting.adopted(GROUP);
        assert_eq!(follow(&mut hosting, &deleted, true), [Action::Stop { group: GROUP, to: None }]);
        hosting.stopped(GROUP);
        assert_eq!(follow(&mut hosting, &deleted, true), []);
        assert!(hosting.0.is_empty());
    }
}
