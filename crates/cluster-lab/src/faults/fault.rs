//! The faults. Each says what it does, what is expected, and does and undoes it.

use super::scene::Scene;
use super::{ceph, cuts, etcd, gateways, strangers};
use anyhow::Result;

/// The moves of addresses that a fault causes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Moves {
    /// All addresses of one gateway.
    OfOne,
    /// None.
    None,
}

/// The number of rounds that a fault gets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Often {
    /// As many as for the ends of gateways.
    Deaths,
    /// As many as for all other faults.
    Rounds,
    /// One, because it takes long; none in a list of one round each, unless it is chosen by name.
    Once,
}

/// A fault.
pub(crate) struct Fault {
    /// Name.
    pub(crate) name: &'static str,
    /// The event and the expectation, for the report.
    pub(crate) what: &'static str,
    /// The moves that it causes.
    pub(crate) moves: Moves,
    /// Longest pause of the clients, if there is a bar.
    pub(crate) bar_s: Option<f64>,
    /// The number of rounds.
    pub(crate) often: Often,
    /// Refusals that clients may see.
    pub(crate) refusals: &'static [&'static str],
    /// Does it, waits for what has to follow, and undoes it.
    pub(crate) act: fn(&mut Scene<'_>) -> Result<()>,
}

impl Fault {
    /// A fault that moves nothing, without a bar.
    pub(crate) const fn quiet(
        name: &'static str,
        what: &'static str,
        act: fn(&mut Scene<'_>) -> Result<()>,
    ) -> Self {
        let (moves, often) = (Moves::None, Often::Rounds);
        Self { name, what, moves, bar_s: None, often, refusals: &[], act }
    }

    /// A fault that moves the addresses of one gateway.
    pub(crate) const fn moving(
        name: &'static str,
        what: &'static str,
        act: fn(&mut Scene<'_>) -> Result<()>,
    ) -> Self {
        Self { moves: Moves::OfOne, ..Self::quiet(name, what, act) }
    }

    /// This fault, with a bar for the pause.
    pub(crate) const fn within(self, bar_s: f64) -> Self {
        Self { bar_s: Some(bar_s), ..self }
    }

    /// This fault, as often as gateways end.
    pub(super) const fn like_a_death(self) -> Self {
        Self { often: Often::Deaths, ..self }
    }

    /// This fault, once in a campaign.
    pub(super) const fn once(self) -> Self {
        Self { often: Often::Once, ..self }
    }
}

/// All faults, in the order in which they happen.
pub(super) fn all() -> Vec<&'static Fault> {
    let groups: [&'static [Fault]; 5] =
        [&gateways::FAULTS, &cuts::FAULTS, &ceph::FAULTS, &etcd::FAULTS, &strangers::FAULTS];
    groups.into_iter().flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unlike_and_everything_is_said() {
        let all = all();
        for (place, fault) in all.iter().enumerate() {
            assert!(
                !all.iter().take(place).any(|other| other.name == fault.name),
                "{}",
                fault.name
            );
            assert!(fault.what.ends_with('.'), "{}", fault.name);
            let is_a_word = |byte: u8| byte.is_ascii_lowercase() || byte == b'-';
            assert!(fault.name.bytes().all(is_a_word), "{}", fault.name);
        }
        assert!(all.iter().any(|fault| fault.often == Often::Deaths));
    }
}
