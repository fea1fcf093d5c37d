//! The words that this life holds: until when each other member takes nothing over from it.
//!
//! A word is a member's promise, or the word of the helper on its machine that none of its lives
//! runs. It counts from before the question was sent. One member without a word is enough to end
//! the right, so a member can end it alone, by silence.

use crate::id::GatewayId;
use crate::records::View;
use crate::timing::RELIED_ON;
use alloc::collections::BTreeMap;
use weir_core::Mono;

/// The words that one life holds.
#[derive(Debug, Default)]
pub(crate) struct Words(BTreeMap<GatewayId, Mono>);

impl Words {
    /// Takes the word of `gateway`, which answers a question sent at `asked`.
    pub(crate) fn take(&mut self, now: Mono, gateway: GatewayId, asked: Mono) {
        // A time to come is no time at which this life asked.
        if asked <= now {
            let until = self.0.entry(gateway).or_default();
            *until = (*until).max(asked + RELIED_ON);
        }
    }

    /// Forgets the words of gateways that are no members.
    pub(crate) fn follow(&mut self, view: &View) {
        self.0.retain(|gateway, _| view.member(*gateway).is_some());
    }

    /// The end of the right that words give to `me`: that of the first to end. A single member
    /// needs none.
    pub(crate) fn until(&self, now: Mono, me: GatewayId, view: &View) -> Mono {
        let others = view.members().map(|(life, _)| life.gateway).filter(|other| *other != me);
        let ends = others.map(|other| self.0.get(&other).copied().unwrap_or(Mono::ZERO));
        ends.min().unwrap_or(now + RELIED_ON)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::change::Change;
    use crate::id::Life;
    use crate::records::Records;

    fn view(gateways: u16) -> View {
        let records = (1..=gateways).fold(Records::default(), |records, gateway| {
            records.with(&Change::registers(Life { gateway: GatewayId(gateway), number: 1 }))
        });
        View { records: records.into(), ..View::default() }
    }

    #[test]
    fn the_right_needs_every_other_member_and_counts_from_the_questions() {
        let at = Mono::from_millis;
        let (me, other, third) = (GatewayId(1), GatewayId(2), GatewayId(3));
        let mut words = Words::default();
        assert_eq!(words.until(at(100), me, &view(1)), at(3_000), "it is alone");
        words.take(at(900), other, at(500));
        assert_eq!(words.until(at(900), me, &view(2)), at(3_400));
        assert_eq!(words.until(at(900), me, &view(3)), Mono::ZERO);
        words.take(at(900), third, at(300));
        assert_eq!(words.until(at(900), me, &view(3)), at(3_200));
        words.take(at(900), third, at(901));
        assert_eq!(words.until(at(900), me, &view(3)), at(3_200), "it was not asked yet");
        words.follow(&view(1));
        assert_eq!(words.until(at(900), me, &view(2)), Mono::ZERO);
    }
}
