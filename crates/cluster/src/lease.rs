//! This life's lease in etcd: when it has to be attached or renewed, and until when it can be
//! relied on. A lease counts from before its request was sent.

use crate::event::{Kept, LeaseRequest};
use crate::id::RequestId;
use crate::timing::{ANSWER_WITHIN, FRESH, RELIED_ON, RENEW_EVERY};
use weir_core::Mono;

/// The lease of one life.
#[derive(Debug, Default)]
pub(crate) struct Lease {
    /// etcd has it, as far as is known.
    is_attached: bool,
    /// The sending time of the latest request that etcd granted.
    granted: Option<Mono>,
    /// The latest request, and the time when it was sent.
    sent: Option<(RequestId, Mono)>,
    /// The latest request was answered.
    is_answered: bool,
}

impl Lease {
    /// The request that has to be sent at `now`.
    pub(crate) fn due(&self, now: Mono) -> Option<LeaseRequest> {
        let pause = if self.is_answered { RENEW_EVERY } else { ANSWER_WITHIN };
        let is_due = self.sent.is_none_or(|(_, sent)| now >= sent + pause);
        let kind = if self.is_attached { LeaseRequest::Renew } else { LeaseRequest::Attach };
        is_due.then_some(kind)
    }

    pub(crate) fn sent(&mut self, request: RequestId, now: Mono) {
        self.sent = Some((request, now));
        self.is_answered = false;
    }

    /// Takes the answer to a request. An answer to an earlier request than the latest is ignored.
    pub(crate) fn answered(&mut self, request: RequestId, answer: Kept) {
        let Some((_, sent)) = self.sent.filter(|(latest, _)| *latest == request) else { return };
        self.is_answered = true;
        self.is_attached = answer == Kept::Yes;
        self.granted = self.is_attached.then_some(sent);
    }

    /// The end of what the lease gives.
    pub(crate) fn until(&self) -> Mono {
        self.granted.map_or(Mono::ZERO, |granted| granted + RELIED_ON)
    }

    /// Was etcd reached lately?
    pub(crate) fn is_fresh(&self, now: Mono) -> bool {
        self.granted.is_some_and(|granted| now < granted + FRESH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lease_counts_from_its_request_and_a_late_answer_to_an_earlier_one_is_ignored() {
        let at = Mono::from_millis;
        let mut lease = Lease::default();
        assert_eq!(lease.due(at(10)), Some(LeaseRequest::Attach));
        lease.sent(RequestId(1), at(10));
        assert_eq!(lease.due(at(1_009)), None);
        assert_eq!(lease.due(at(1_010)), Some(LeaseRequest::Attach), "no answer came");
        lease.sent(RequestId(2), at(1_010));
        lease.answered(RequestId(1), Kept::Yes);
        assert_eq!(lease.until(), Mono::ZERO);
        lease.answered(RequestId(2), Kept::Yes);
        assert_eq!(lease.until(), at(3_910), "whenever the answer came");
        assert!(lease.is_fresh(at(2_209)) && !lease.is_fresh(at(2_210)));
        assert_eq!(lease.due(at(1_509)), None);
        assert_eq!(lease.due(at(1_510)), Some(LeaseRequest::Renew));
        lease.sent(RequestId(3), at(1_510));
        lease.answered(RequestId(3), Kept::No);
        assert_eq!(lease.until(), Mono::ZERO);
        assert_eq!(lease.due(at(2_010)), Some(LeaseRequest::Attach));
    }
}
