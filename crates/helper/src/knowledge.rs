//! The helper's knowledge of lives, and its words. Plain data without I/O: the same rules as those
//! of the simulated helper in `weir-cluster`. Not here: processes, and how words travel.

use std::collections::BTreeMap;
use weir_cluster::timing::GATEWAYS_MAX;
use weir_cluster::{Asked, GatewayId, HelperWord, Life, MachineId, Version};
use weir_core::Mono;

/// The knowledge of one helper, from its start on.
#[derive(Debug)]
pub(crate) struct Knowledge {
    gateway: GatewayId,
    announced: Option<Announced>,
    /// Lives of other gateways that lives of this one had begun to condemn. They outlive those: the
    /// change may happen after its author's end.
    notes: BTreeMap<GatewayId, u32>,
}

/// The latest life that was announced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Announced {
    machine: MachineId,
    number: u32,
    runs: bool,
}

/// A request that the helper's knowledge forbids.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Objection {
    /// The life is of another gateway.
    #[error("this is the helper of gateway {own}, and {life} is none of its lives")]
    OtherGateway {
        /// The helper's gateway.
        own: GatewayId,
        /// The life.
        life: Life,
    },
    /// Lives count upwards.
    #[error("{life} cannot begin: life {latest} of the same local state was there before")]
    NotLater {
        /// The life.
        life: Life,
        /// The latest one.
        latest: u32,
    },
    /// There is no room for a note.
    #[error("{GATEWAYS_MAX} gateways are noted already")]
    Full,
}

impl Knowledge {
    pub(crate) fn new(gateway: GatewayId) -> Self {
        Self { gateway, announced: None, notes: BTreeMap::new() }
    }

    /// Is `life` one of this gateway's?
    ///
    /// # Errors
    /// [`Objection::OtherGateway`]
    pub(crate) fn check(&self, life: Life) -> Result<(), Objection> {
        let own = self.gateway;
        let is_own = life.gateway == own && life.number > 0;
        if is_own { Ok(()) } else { Err(Objection::OtherGateway { own, life }) }
    }

    /// A process is `life`. `again`: the same process has said so before.
    ///
    /// # Errors
    /// [`Objection::OtherGateway`] and [`Objection::NotLater`]
    pub(crate) fn announce(
        &mut self,
        machine: MachineId,
        life: Life,
        again: bool,
    ) -> Result<(), Objection> {
        self.check(life)?;
        if let Some(known) = self.announced.filter(|known| known.machine == machine) {
            let is_same = again && self.knows(machine, life);
            if life.number <= known.number && !is_same {
                return Err(Objection::NotLater { life, latest: known.number });
            }
        }
        self.announced = Some(Announced { machine, number: life.number, runs: true });
        Ok(())
    }

    /// Is `life` the announced one, and running?
    pub(crate) fn knows(&self, machine: MachineId, life: Life) -> bool {
        let running = Announced { machine, number: life.number, runs: true };
        life.gateway == self.gateway && self.announced == Some(running)
    }

    /// The process that is `life` has ended, and its addresses are gone.
    pub(crate) fn ended(&mut self, machine: MachineId, life: Life) {
        if self.knows(machine, life)
            && let Some(announced) = &mut self.announced
        {
            announced.runs = false;
        }
    }

    /// A life of this gateway begins to condemn `life`.
    ///
    /// # Errors
    /// [`Objection::Full`]
    pub(crate) fn note(&mut self, life: Life) -> Result<(), Objection> {
        if self.notes.len() >= GATEWAYS_MAX && !self.notes.contains_key(&life.gateway) {
            return Err(Objection::Full);
        }
        self.notes.insert(life.gateway, life.number);
        Ok(())
    }

    /// That is over.
    pub(crate) fn unnote(&mut self, life: Life) {
        if self.notes.get(&life.gateway) == Some(&life.number) {
            self.notes.remove(&life.gateway);
        }
    }

    /// The answer to a question in `version`, that `by` asked at `at` on its clock; none if no life
    /// was announced.
    pub(crate) fn answer(&self, version: Version, by: Life, at: Mono) -> Option<HelperWord> {
        let noted = self.notes.get(&by.gateway).is_some_and(|number| *number >= by.number);
        self.word(version, Some(Asked { by, at, noted }))
    }

    /// The word that nobody asked for, in `version`: that the latest life has ended.
    pub(crate) fn unasked(&self, version: Version) -> Option<HelperWord> {
        self.word(version, None).filter(|word| !word.runs)
    }

    fn word(&self, version: Version, answers: Option<Asked>) -> Option<HelperWord> {
        let Announced { machine, number, runs } = self.announced?;
        let life = Life { gateway: self.gateway, number };
        Some(HelperWord { version, machine, life, runs, answers })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: MachineId = MachineId(7);

    fn life(number: u32) -> Life {
        Life { gateway: GatewayId(1), number }
    }

    fn other(number: u32) -> Life {
        Life { gateway: GatewayId(2), number }
    }

    fn knowledge() -> Knowledge {
        Knowledge::new(GatewayId(1))
    }

    fn asked(knowledge: &Knowledge, by: Life) -> Option<(u32, bool, bool)> {
        let word = knowledge.answer(Version(1), by, Mono(5))?;
        assert_eq!((word.version, word.machine), (Version(1), MACHINE));
        let asked = word.answers.unwrap();
        assert_eq!((asked.by, asked.at), (by, Mono(5)));
        Some((word.life.number, word.runs, asked.noted))
    }

    #[test]
    fn a_helper_says_nothing_of_a_life_that_was_not_announced_to_it() {
        let mut fresh = knowledge();
        assert_eq!(asked(&fresh, other(1)), None);
        assert!(!fresh.knows(MACHINE, life(1)));
        fresh.ended(MACHINE, life(1));
        assert_eq!(fresh.unasked(Version(1)), None);
        assert_eq!(asked(&fresh, other(1)), None);
    }

    #[test]
    fn the_end_of_the_latest_life_is_said_until_the_next_is_announced() {
        let mut helper = knowledge();
        helper.announce(MACHINE, life(1), false).unwrap();
        assert_eq!(asked(&helper, other(1)), Some((1, true, false)));
        assert_eq!(helper.unasked(Version(1)), None);
        helper.ended(MACHINE, life(1));
        assert_eq!(asked(&helper, other(1)), Some((1, false, false)));
        let word = helper.unasked(Version(1)).unwrap();
        assert_eq!((word.life, word.runs, word.answers), (life(1), false, None));
        helper.announce(MACHINE, life(3), false).unwrap();
        assert_eq!(asked(&helper, other(1)), Some((3, true, false)));
        assert_eq!(helper.unasked(Version(1)), None);
        helper.ended(MACHINE, life(1));
        helper.ended(MachineId(8), life(3));
        assert_eq!(asked(&helper, other(1)), Some((3, true, false)), "another's end");
    }

    #[test]
    fn lives_count_upwards_and_only_the_same_process_says_so_again() {
        let mut helper = knowledge();
        let own = GatewayId(1);
        for life in [other(1), life(0)] {
            let refused = Err(Objection::OtherGateway { own, life });
            assert_eq!(helper.announce(MACHINE, life, false), refused);
        }
        helper.announce(MACHINE, life(4), false).unwrap();
        let refused = |life| Err(Objection::NotLater { life, latest: 4 });
        assert_eq!(helper.announce(MACHINE, life(4), false), refused(life(4)));
        assert_eq!(helper.announce(MACHINE, life(3), true), refused(life(3)));
        assert_eq!(helper.announce(MACHINE, life(4), true), Ok(()));
        helper.ended(MACHINE, life(4));
        assert_eq!(helper.announce(MACHINE, life(4), true), refused(life(4)), "it has ended");
        // A new local state begins anew.
        assert_eq!(helper.announce(MachineId(8), life(1), false), Ok(()));
        assert!(helper.knows(MachineId(8), life(1)) && !helper.knows(MACHINE, life(4)));
    }

    #[test]
    fn a_note_stays_until_the_same_life_is_taken_back_and_outlives_its_author() {
        let mut helper = knowledge();
        helper.announce(MACHINE, life(1), false).unwrap();
        helper.note(other(5)).unwrap();
        helper.ended(MACHINE, life(1));
        helper.announce(MACHINE, life(2), false).unwrap();
        assert_eq!(asked(&helper, other(5)), Some((2, true, true)));
        assert_eq!(asked(&helper, other(4)), Some((2, true, true)));
        assert_eq!(asked(&helper, other(6)), Some((2, true, false)), "a later life");
        helper.unnote(other(4));
        assert_eq!(asked(&helper, other(5)), Some((2, true, true)));
        helper.unnote(other(5));
        assert_eq!(asked(&helper, other(5)), Some((2, true, false)));
    }

    #[test]
    fn notes_are_bounded() {
        let mut helper = knowledge();
        let of = |gateway| Life { gateway: GatewayId(gateway), number: 1 };
        let many = u16::try_from(GATEWAYS_MAX).unwrap();
        for gateway in 0..many {
            helper.note(of(gateway)).unwrap();
        }
        assert_eq!(helper.note(of(many)), Err(Objection::Full));
        assert_eq!(helper.note(Life { number: 2, ..of(3) }), Ok(()));
    }
}
